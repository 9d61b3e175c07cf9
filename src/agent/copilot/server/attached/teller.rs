//! Tells the loop what the server of an attached session tells: that it waits, what it asks, and that it is lost.

use crate::agent::copilot::server::asking::{self, Questions};
use crate::agent::copilot::server::client::Link;
use crate::agent::copilot::server::fault::Fault;
use crate::core::verdict::Asking;
use github_copilot_sdk::subscription::{EventSubscription, RecvErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// How often an attached server is asked whether it lives, and how long it may take to say so. Tests have less time, but
/// enough for any machine to answer.
const HEARTBEAT: (Duration, Duration) = if cfg!(test) {
    (Duration::from_millis(100), Duration::from_secs(2))
} else {
    (Duration::from_secs(30), Duration::from_secs(10))
};
/// So many times in a row it is asked before a server that says nothing counts as lost.
const BEATS: u8 = 3;
/// How long after an event it is asked whether the session works: events come in bursts.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Something that an attached session's server told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which attachment it is of, as given when it was made: what a replaced one still tells is told apart by this.
    pub generation: u64,
    /// The session's id.
    pub id: Box<str>,
    /// What.
    pub what: What,
}

/// What a server tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The turn is over, the session waits.
    Idle,
    /// Whether the session works. Told once at the start, and when it changes.
    Active(bool),
    /// What the session asks its user now. Told at the start where something is asked, and when it changes.
    Asks(Vec<Asking>),
    /// Something happened, if only what never reaches the disk. At most a few times a second.
    Happened,
    /// The attachment is over, and this is the last that comes of it.
    Lost(Fault),
}

/// Tells what a server tells.
pub(super) struct Teller {
    pub(super) link: Link,
    pub(super) id: Box<str>,
    pub(super) generation: u64,
    pub(super) events: UnboundedSender<Event>,
    pub(super) questions: Arc<watch::Sender<Questions>>,
    pub(super) doubt: Arc<Notify>,
}

impl Teller {
    /// Goes on until the connection is over, or the session.
    pub(super) async fn tell(self, mut heard: EventSubscription, active: bool) {
        self.say(What::Active(active));
        // What the last look told, where nothing else was told since.
        let mut active = Some(active);
        self.say_questions(|questions| !questions.is_empty());
        let (every, within) = HEARTBEAT;
        let mut heartbeat = interval_at(Instant::now() + every, every);
        // After the machine slept, one is enough.
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut look: Option<Instant> = None;
        let (mut missed, mut doubtful) = (false, false);
        let fault = loop {
            tokio::select! {
                event = heard.recv() => match event {
                    Ok(event) => {
                        if event.event_type == "session.idle" && event.agent_id.is_none() {
                            self.say(What::Idle);
                            active = None;
                        }
                        let event = asking::Event {
                            kind: event.event_type,
                            agent_id: event.agent_id,
                            timestamp: event.timestamp,
                            data: event.data,
                        };
                        self.say_questions(|questions| questions.hear(&event));
                        look.get_or_insert_with(|| Instant::now() + DEBOUNCE);
                    }
                    // What was missed shows in what the session does now, and in its server's log of events.
                    Err(error) if matches!(error.kind(), RecvErrorKind::Lagged(_)) => {
                        missed = true;
                        look.get_or_insert_with(|| Instant::now() + DEBOUNCE);
                    }
                    Err(_) => break self.link.over(),
                },
                () = sleep_until(look.unwrap_or_else(Instant::now)), if look.is_some() => {
                    look = None;
                    self.say(What::Happened);
                    if std::mem::take(&mut missed)
                        && let Ok(now) = self.link.questions(&self.id).await
                    {
                        self.say_questions(|questions| std::mem::replace(questions, now.clone()) != now);
                    }
                    if let Err(fault) = self.look(&mut active).await {
                        break fault;
                    }
                }
                () = self.doubt.notified() => {
                    doubtful = true;
                    look.get_or_insert_with(|| Instant::now() + DEBOUNCE);
                }
                _ = heartbeat.tick() => {
                    if let Err(fault) = self.beat(within).await {
                        break fault;
                    }
                    if doubtful {
                        look.get_or_insert_with(Instant::now);
                    }
                }
            }
        };
        self.say(What::Lost(fault));
        self.link.leave();
    }

    /// Whether the server lives. One that is held up for a while is asked again: to leave may end the session.
    async fn beat(&self, within: Duration) -> Result<(), Fault> {
        let mut asked = 1;
        loop {
            match self.link.ping(within).await {
                Err(Fault::Silent { .. }) if asked < BEATS => asked += 1,
                other => return other,
            }
        }
    }

    /// Asks whether the session works, and tells it where that is news. Fails where the connection or the session is over.
    async fn look(&self, active: &mut Option<bool>) -> Result<(), Fault> {
        match self.link.activity(&self.id).await {
            Ok(now) if Some(now.has_active_work) != *active => {
                *active = Some(now.has_active_work);
                self.say(What::Active(now.has_active_work));
                Ok(())
            }
            Err(fault @ (Fault::NotLoaded(_) | Fault::Gone(_) | Fault::NotCopilot(_) | Fault::TooLong(_))) => {
                Err(fault)
            }
            // A server that is slow for once: the heartbeat tells whether it lives.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Tells what is asked now, if `changed` says that this is another thing than before.
    fn say_questions(&self, changed: impl FnOnce(&mut Questions) -> bool) {
        if self.questions.send_if_modified(changed) {
            let open = self.questions.borrow().open();
            self.say(What::Asks(open));
        }
    }

    fn say(&self, what: What) {
        // Nobody listens any more when the attachment is about to be dropped.
        let _ = self.events.send(Event { generation: self.generation, id: self.id.clone(), what });
    }
}
