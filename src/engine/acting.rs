//! What is done with sessions: orders in, effects out, one at a time a session.
//!
//! An order names a session and what is asked of it. Whether it may be done is decided by [`core::action`](crate::core::action)
//! on what is seen right then, whatever a menu showed before. What is allowed runs as a task beside the loop and sends back what
//! happens: steps, which are logged by their tag and passed on, and its end. A connection that is to stay is kept here. What
//! comes of a connection that was replaced meanwhile is told by its generation, and dropped.

mod begin;
mod task;

pub(super) use begin::Ground;
pub(super) use task::{Connection, Happening, Over, Sequel, Task};

use super::Key;
use super::ledger::Hold;
use super::resumed::Resumed;
use crate::agent::copilot::server::attached::Event;
use crate::agent::copilot::server::fault::Place;
use crate::agent::copilot::server::recover::Sight;
use crate::agent::copilot::server::warned::Warned;
use crate::core::action::{Action, ServerState};
use crate::core::attempts::Attempts;
use crate::core::fleet::Session;
use crate::core::form::Form;
use crate::core::order::{Given, Outcome, Report, Step};
use crate::core::time::Time;
use crate::core::verdict::Status;
use begin::sight_of;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use task::leave;
use tokio::sync::{mpsc, watch};

/// So many recoveries run at a time; more would only fight for the same machine.
const AT_ONCE: usize = 3;

struct Running {
    key: Key,
    given: Given,
    action: Action,
    /// Its last turn was denied, or cut off, when this began.
    cut_off: bool,
    sight: watch::Sender<Sight>,
    /// The right to act on the session, as long as this runs.
    hold: Option<Hold>,
    /// It gives the session a new owner, which it had not.
    resumes: bool,
    /// What the connection told that is being made.
    early: Vec<Event>,
    /// When it was begun, by the wall clock.
    begun: Time,
}

struct Held {
    connection: Arc<Connection>,
    generation: u64,
    sight: watch::Sender<Sight>,
    /// When, by the awake clock, its server last said whether it works.
    said: Option<Time>,
}

/// An order that waits for room.
pub(super) struct Waiting {
    pub(super) key: Key,
    pub(super) given: Given,
}

/// Everything that is being done.
pub(super) struct Acting {
    tell: mpsc::UnboundedSender<Happening>,
    happenings: mpsc::UnboundedReceiver<Happening>,
    running: HashMap<Task, Running>,
    waiting: VecDeque<Waiting>,
    held: HashMap<Key, Held>,
    generation: u64,
    pub(super) warned: Warned,
    /// The last sign of life of each session when its server was last asked what it does.
    pub(super) asked: HashMap<Key, Time>,
    /// Since when the permissions were lost that we reconnected for by ourselves.
    pub(super) by_itself: HashMap<Key, Time>,
}

/// Whether nothing else may be done with the session meanwhile.
pub(super) const fn excludes(action: Action) -> bool {
    !matches!(action, Action::ShowTerminal)
}

const fn is_recovery(action: Action) -> bool {
    matches!(action, Action::Continue | Action::Reconnect | Action::Resend | Action::Resume)
}

impl Acting {
    /// Nothing is being done.
    pub(super) fn new() -> Self {
        let (tell, happenings) = mpsc::unbounded_channel();
        Self {
            tell,
            happenings,
            running: HashMap::new(),
            waiting: VecDeque::new(),
            held: HashMap::new(),
            generation: 0,
            warned: Warned::default(),
            asked: HashMap::new(),
            by_itself: HashMap::new(),
        }
    }

    /// A session is gone from disk, and what was kept of it with it. A connection to it is over when its server says so: the folder
    /// may only have been moved, and to leave could end what runs.
    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(held) = self.held.get(key) {
            held.connection.attached().doubt();
        }
        self.asked.remove(key);
        self.by_itself.remove(key);
    }

    /// What tasks and connections tell next.
    pub(super) async fn happens(&mut self) -> Option<Happening> {
        self.happenings.recv().await
    }

    /// What was sent meanwhile is told: whoever waits for it must know that it may have happened.
    pub(super) fn tell_the_rest(&mut self) {
        while let Ok(happening) = self.happenings.try_recv() {
            match happening {
                Happening::Step(task, step, words) => self.step(task, step, words),
                Happening::Over(task, over) => drop(self.over(task, over)),
                Happening::Request(..)
                | Happening::Question(..)
                | Happening::MaySend(..)
                | Happening::Live(_)
                | Happening::Looked(_) => {}
            }
        }
    }

    /// Where tasks beside the loop tell what they found.
    pub(super) fn teller(&self) -> mpsc::UnboundedSender<Happening> {
        self.tell.clone()
    }

    /// Whether another recovery may begin.
    pub(super) fn has_room(&self, action: Action) -> bool {
        !is_recovery(action) || self.running.values().filter(|running| is_recovery(running.action)).count() < AT_ONCE
    }

    /// Keeps an order for when there is room.
    pub(super) fn wait(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// The next order that waited.
    pub(super) fn next(&mut self) -> Option<Waiting> {
        self.has_room(Action::Reconnect).then(|| self.waiting.pop_front()).flatten()
    }

    /// How we are attached, if we are.
    pub(super) fn attached(&self, key: &Key) -> Option<ServerState> {
        self.held.get(key).map(|held| match &*held.connection {
            Connection::Attached(_) => ServerState::Attached,
            Connection::Hosted(hosted) => hosted.pid().map_or(ServerState::Attached, ServerState::Hosted),
        })
    }

    /// Tells tasks and connections what is seen of a session now.
    pub(super) fn see(&self, key: &Key, session: &Session, status: Status) {
        let senders = self.running.values().filter(|running| running.key == *key).map(|running| &running.sight);
        for sight in senders.chain(self.held.get(key).map(|held| &held.sight)) {
            let now = sight_of(session, status);
            sight.send_if_modified(|before| {
                let differs = *before != now;
                *before = now.clone();
                differs
            });
        }
    }

    /// Whether something is done with a session that nothing else may be done beside.
    pub(super) fn is_busy(&self, key: &Key) -> bool {
        self.running.values().any(|running| running.key == *key && excludes(running.action))
    }

    /// The session that a task works on, and what it does.
    pub(super) fn task(&self, task: Task) -> Option<(Key, Action)> {
        self.running.get(&task).map(|running| (running.key.clone(), running.action))
    }

    /// The order that a task carries out.
    pub(super) fn given(&self, task: Task) -> Option<&Given> {
        self.running.get(&task).map(|running| &running.given)
    }

    /// Keeps how often a session was recovered, for whoever acts on it next.
    pub(super) fn keep(&self, task: Task, attempts: &Attempts) {
        let hold = self.running.get(&task).and_then(|running| running.hold.as_ref());
        if let Some(hold) = hold.filter(|hold| hold.page().read::<Attempts>().unwrap_or_default() != *attempts)
            && let Err(error) = hold.write(attempts)
        {
            tracing::warn!("how often a session was recovered cannot be kept for other processes: {error:#}");
        }
    }

    /// Whether a task gives its session a new owner.
    pub(super) fn resumes(&self, task: Task) -> bool {
        self.running.get(&task).is_some_and(|running| running.resumes)
    }

    /// What a task resumed has its new owner, or is not resumed after all: others need not wait any more.
    pub(super) fn is_settled(&self, task: Task) {
        let hold = self.running.get(&task).and_then(|running| running.hold.as_ref());
        if let Some(Err(error)) = hold.map(Hold::remove::<Resumed>) {
            tracing::warn!("that a session was resumed cannot be taken back for other processes: {error:#}");
        }
    }

    /// Where the last turn of the session that a task works on had been denied, or cut off: when the task was begun.
    pub(super) fn cut_off_before(&self, task: Task) -> Option<Time> {
        self.running.get(&task).filter(|running| running.cut_off).map(|running| running.begun)
    }

    /// What a connection tells before it is kept is kept until then; an event of one that is, or was, comes back.
    pub(super) fn keep_early(&mut self, event: Event) -> Option<Event> {
        match self.running.get_mut(&event.generation) {
            Some(running) => {
                running.early.push(event);
                None
            }
            None => Some(event),
        }
    }

    /// Passes a step on, to the log by its tag and to whoever listens.
    pub(super) fn step(&self, task: Task, step: Step, words: String) {
        let Some(running) = self.running.get(&task) else { return };
        tracing::info!(tag = step.tag(), session = %running.key.1, "{words}");
        running.given.report(Report::Step(step, words));
    }

    /// Passes a request on, to whoever listens and nowhere else.
    pub(super) fn request(&self, task: Task, text: String) {
        if let Some(running) = self.running.get(&task) {
            running.given.report(Report::Request(text));
        }
    }

    /// Passes a question on, to whoever listens and nowhere else.
    pub(super) fn question(&self, task: Task, form: Box<Form>) {
        if let Some(running) = self.running.get(&task) {
            running.given.report(Report::Question(form));
        }
    }

    /// A task is over: its connection is kept, its outcome told. What the connection told meanwhile comes back.
    pub(super) fn over(&mut self, task: Task, over: Over) -> Vec<Event> {
        let Some(running) = self.running.remove(&task) else { return Vec::new() };
        let key = &running.key;
        let tag = match &over.outcome {
            Outcome::Done(_) => "done",
            Outcome::Failed(_) => Step::GiveUp.tag(),
            Outcome::Unconfirmed(_) => "unconfirmed",
            Outcome::Refused(_) | Outcome::Unknown => "refused",
        };
        let words = over.outcome.words();
        tracing::info!(tag, action = running.action.name(), session = %key.1, "{words}");
        if let Some(connection) = over.connection {
            let held = Held { connection, generation: task, sight: running.sight, said: None };
            self.held.insert(key.clone(), held);
        } else if running.action == Action::Detach
            && let Some(held) = self.held.remove(key)
        {
            tokio::spawn(leave(held.connection));
        }
        running.given.report(Report::End(over.outcome));
        running.early
    }

    /// When a session's server last said whether it works, by the awake clock.
    pub(super) fn said_at(&self, key: &Key) -> Option<Time> {
        self.held.get(key)?.said
    }

    /// A session's server says whether it works.
    pub(super) fn said(&mut self, key: &Key, now: Time) {
        if let Some(held) = self.held.get_mut(key) {
            held.said = Some(now);
        }
    }

    /// Whether an event comes from the connection that is kept now; which session's it is.
    pub(super) fn session_of(&self, generation: u64) -> Option<Key> {
        self.held.iter().find(|(_, held)| held.generation == generation).map(|(key, _)| key.clone())
    }

    /// The server that a session's connection goes to.
    pub(super) fn place_of(&self, key: &Key) -> Option<Place> {
        self.held.get(key).map(|held| held.connection.attached().link().place())
    }

    /// The sessions that end with our connection to them, as far as can be told.
    pub(super) fn last_held(&self) -> impl Iterator<Item = &Key> {
        let is_last = |held: &Held| match &*held.connection {
            Connection::Hosted(_) => true,
            Connection::Attached(attached) => attached.is_last_client() == Some(true),
        };
        self.held.iter().filter(move |(_, held)| is_last(held)).map(|(key, _)| key)
    }

    /// A connection was lost, or its session is gone.
    pub(super) fn let_go(&mut self, key: &Key) -> bool {
        self.held.remove(key).is_some()
    }

    /// Lets go of everything, gently, for as long as `patience` lasts.
    pub(super) async fn leave(&mut self, patience: Duration) {
        let all = self.held.drain().map(|(_, held)| async move { leave(held.connection).await });
        let all: Vec<_> = all.map(tokio::spawn).collect();
        let gone = async {
            for one in all {
                let _ = one.await; // what broke down while leaving is gone as well
            }
        };
        let _ = tokio::time::timeout(patience, gone).await; // what takes longer ends by itself when we are gone
    }
}
