//! Forwards an attached session's events to the engine: whether it works, what it asks, and that the connection is
//! lost.

use crate::channel::connection_event::{ConnectionEvent, ConnectionEventKind};
use crate::channel::fault::Fault;
use crate::copilot::server::client::ServerClient;
use crate::copilot::server::questions::{self, Questions};
use github_copilot_sdk::subscription::{EventSubscription, RecvErrorKind};
use github_copilot_sdk::types::SessionEvent;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// The interval of pings to an attached server, and the timeout of each. Both are shorter in tests, but long enough for
/// any machine.
const HEARTBEAT: (Duration, Duration) = if cfg!(test) {
    (Duration::from_millis(100), Duration::from_secs(2))
} else {
    (Duration::from_secs(30), Duration::from_secs(10))
};
/// How many pings in a row may time out before the server counts as lost.
const PINGS_MAX: u8 = 3;
/// The delay between an event and the check whether the session works, as events come in bursts.
const DEBOUNCE: Duration = Duration::from_millis(200);

pub(super) struct EventForwarder {
    pub(super) link: ServerClient,
    pub(super) id: Box<str>,
    pub(super) generation: u64,
    pub(super) events: UnboundedSender<ConnectionEvent>,
    pub(super) questions: Arc<watch::Sender<Questions>>,
    pub(super) recheck: Arc<Notify>,
}

/// What was last reported, and what is to be checked.
struct Checks {
    /// The last reported state, `None` after an event that may have changed it.
    active: Option<bool>,
    /// Whether the session was last reported to approve everything.
    approves: Option<bool>,
    /// When to check.
    at: Option<Instant>,
    /// Events were missed.
    lagged: bool,
    /// The session has been found gone from disk: from now on, every heartbeat checks.
    recheck: bool,
    /// What the session approves may have changed.
    mode_changed: bool,
}

impl Checks {
    /// Checks when the burst of events is over.
    fn debounce(&mut self) {
        self.at.get_or_insert_with(|| Instant::now() + DEBOUNCE);
    }
}

impl EventForwarder {
    /// Runs until the connection or the session is over.
    pub(super) async fn run(self, mut subscription: EventSubscription, active: bool) {
        self.send(ConnectionEventKind::Active(active));
        let mut checks = Checks {
            active: Some(active),
            approves: None,
            at: None,
            lagged: false,
            recheck: false,
            mode_changed: false,
        };
        self.check_approvals(&mut checks.approves).await;
        self.update_questions(|questions| !questions.is_empty());
        let (every, within) = HEARTBEAT;
        let mut heartbeat = interval_at(Instant::now() + every, every);
        // After the machine slept, one ping is enough.
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let fault = loop {
            tokio::select! {
                event = subscription.recv() => match event {
                    Ok(event) => self.hear(event, &mut checks),
                    // Missed events show in the session's activity and in the server's event log.
                    Err(error) if matches!(error.kind(), RecvErrorKind::Lagged(_)) => {
                        checks.lagged = true;
                        checks.debounce();
                    }
                    Err(_) => break self.link.end_fault(),
                },
                () = sleep_until(checks.at.unwrap_or_else(Instant::now)), if checks.at.is_some() => {
                    if let Err(fault) = self.check(&mut checks).await {
                        break fault;
                    }
                }
                () = self.recheck.notified() => {
                    checks.recheck = true;
                    checks.debounce();
                }
                _ = heartbeat.tick() => {
                    if let Err(fault) = self.check_alive(within).await {
                        break fault;
                    }
                    if checks.recheck {
                        checks.at.get_or_insert_with(Instant::now);
                    }
                }
            }
        };
        self.send(ConnectionEventKind::Lost(fault));
        self.link.leave();
    }

    /// Forwards what an event itself says, and has the rest checked.
    fn hear(&self, event: SessionEvent, checks: &mut Checks) {
        if event.event_type == "session.idle" && event.agent_id.is_none() {
            self.send(ConnectionEventKind::Idle);
            checks.active = None;
        }
        checks.mode_changed |= event.event_type == "session.permissions_changed";
        let event = questions::Event {
            kind: event.event_type,
            agent_id: event.agent_id,
            timestamp: event.timestamp,
            data: event.data,
        };
        self.update_questions(|questions| questions.apply(&event));
        checks.debounce();
    }

    /// Checks what the events of the last burst may have changed. Fails if the connection or the session is over.
    async fn check(&self, checks: &mut Checks) -> Result<(), Fault> {
        checks.at = None;
        self.send(ConnectionEventKind::Activity);
        if std::mem::take(&mut checks.lagged)
            && let Ok(now) = self.link.questions(&self.id).await
        {
            self.update_questions(|questions| std::mem::replace(questions, now.clone()) != now);
        }
        let before = checks.active;
        self.check_activity(&mut checks.active).await?;
        // At the start and the end of each turn.
        if before != checks.active || std::mem::take(&mut checks.mode_changed) {
            self.check_approvals(&mut checks.approves).await;
        }
        Ok(())
    }

    /// Pings the server, more than once if it is slow, because leaving may end the session.
    async fn check_alive(&self, within: Duration) -> Result<(), Fault> {
        let mut pings = 1;
        loop {
            match self.link.ping(within).await {
                Err(Fault::Silent { .. }) if pings < PINGS_MAX => pings += 1,
                result => return result,
            }
        }
    }

    /// Asks whether the session works, and sends a change. Fails if the connection or the session is over.
    async fn check_activity(&self, active: &mut Option<bool>) -> Result<(), Fault> {
        match self.link.activity(&self.id).await {
            Ok(now) if Some(now.has_active_work) != *active => {
                *active = Some(now.has_active_work);
                self.send(ConnectionEventKind::Active(now.has_active_work));
                Ok(())
            }
            Err(fault @ (Fault::NotLoaded(_) | Fault::Gone(_) | Fault::NotCopilot(_) | Fault::TooLong(_))) => {
                Err(fault)
            }
            // If the server is only slow, the heartbeat decides whether it lives.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Asks whether the session approves everything, and sends a change.
    async fn check_approvals(&self, approves: &mut Option<bool>) {
        if let Some(all) = self.link.approves_all(&self.id).await
            && approves.replace(all) != Some(all)
        {
            self.send(ConnectionEventKind::Approves(all));
        }
    }

    /// Updates the questions, and sends them if `update` returns that they changed.
    fn update_questions(&self, update: impl FnOnce(&mut Questions) -> bool) {
        if self.questions.send_if_modified(update) {
            let open = self.questions.borrow().open();
            self.send(ConnectionEventKind::Asks(open));
        }
    }

    fn send(&self, kind: ConnectionEventKind) {
        // Fails only while the attachment is being dropped.
        let _ = self.events.send(ConnectionEvent { generation: self.generation, id: self.id.clone(), kind });
    }
}
