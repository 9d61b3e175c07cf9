//! What is done with sessions: orders in, effects out, one at a time a session.
//!
//! An order names a session and what is asked of it. Whether it may be done is decided by [`core::action`](crate::core::action)
//! on what is seen right then, whatever a menu showed before. What is allowed runs as a task beside the loop and sends back what
//! happens: steps, which are logged by their tag and passed on, and its end. A connection that is to stay is kept here. What
//! comes of a connection that was replaced meanwhile is told by its generation, and dropped.

use super::Key;
use super::asking::Looked;
use super::opened::{Resumed, makes_an_owner};
use super::work::Work;
use crate::agent::copilot::bridge::carry::Way;
use crate::agent::copilot::process::Lock;
use crate::agent::copilot::server::attached::{Attached, Event};
use crate::agent::copilot::server::fault::{Fault, Place};
use crate::agent::copilot::server::hosted::Hosted;
use crate::agent::copilot::server::recover::{Permit, Sight, Site};
use crate::agent::copilot::server::servers::Endpoint;
use crate::agent::copilot::server::warned::Warned;
use crate::config::Actions;
use crate::core::action::{Action, Reach, is_cut_off};
use crate::core::attempts::Attempts;
use crate::core::fleet::Session;
use crate::core::form::Form;
use crate::core::order::{Given, Outcome, Report, Step};
use crate::core::time::Time;
use crate::core::turn::Ending;
use crate::core::verdict::Status;
use crate::engine::ledger::Hold;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// So many recoveries run at a time; more would only fight for the same machine.
const AT_ONCE: usize = 3;

/// Names a task beside the loop, and the connection that may come of it: no two have the same number.
pub(super) type Task = u64;

/// What a task beside the loop tells it.
pub(super) enum Happening {
    /// Something is about to be done.
    Step(Task, Step, String),
    /// A request, whole, that is about to be answered.
    Request(Task, String),
    /// A question, whole.
    Question(Task, Box<Form>),
    /// Something is about to be sent: may it?
    MaySend(Task, oneshot::Sender<Result<(), String>>),
    /// It is over.
    Over(Task, Over),
    /// Something happened to a session that we are attached to.
    Live(Event),
    /// Servers were asked what sessions do.
    Looked(Vec<Looked>),
}

/// How a task ended.
pub(super) struct Over {
    pub(super) outcome: Outcome,
    pub(super) bond: Option<Arc<Bond>>,
    /// Whether the session was sent on.
    pub(super) sequel: Sequel,
    /// What went wrong with which server.
    pub(super) faults: Vec<Fault>,
    /// Servers over which all went well.
    pub(super) well: Vec<Place>,
    /// The session's server refused us: why.
    pub(super) refused: Option<Box<str>>,
}

/// What became of what a session had been told to do, where it was reconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sequel {
    /// Nothing was sent.
    None,
    /// A prompt was sent, and the session took it.
    Sent,
    /// It is to go on when the turn is over that still runs.
    Waits,
}

/// A connection that is kept.
#[allow(clippy::large_enum_variant, reason = "there are a few of them, each in an `Arc` of its own")]
pub(super) enum Bond {
    /// To a server of somebody else's.
    Attached(Attached),
    /// To a server of our own.
    Hosted(Hosted),
}

impl Bond {
    /// What both have in common.
    pub(super) fn attached(&self) -> &Attached {
        match self {
            Self::Attached(attached) => attached,
            Self::Hosted(hosted) => hosted,
        }
    }
}

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
    bond: Arc<Bond>,
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

/// What an order is carried out on.
pub(super) struct Ground<'a> {
    pub(super) key: &'a Key,
    pub(super) session: &'a Session,
    pub(super) status: Status,
    pub(super) path: &'a Path,
    /// The lock of the session's owner.
    pub(super) lock: Option<Lock>,
    pub(super) endpoints: Vec<Endpoint>,
    /// The bridge to its terminal.
    pub(super) way: Option<Way>,
    /// Further programs that count as Copilot.
    pub(super) names: &'a [String],
    pub(super) actions: &'a Actions,
    pub(super) now: Time,
    pub(super) hold: Option<Hold>,
}

/// Everything that is being done.
pub(super) struct Acting {
    tell: mpsc::UnboundedSender<Happening>,
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
    pub(super) fn new(tell: mpsc::UnboundedSender<Happening>) -> Self {
        Self {
            tell,
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
            held.bond.attached().doubt();
        }
        self.asked.remove(key);
        self.by_itself.remove(key);
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
    pub(super) fn attached(&self, key: &Key) -> Option<Reach> {
        self.held.get(key).map(|held| match &*held.bond {
            Bond::Attached(_) => Reach::Attached,
            Bond::Hosted(hosted) => hosted.pid().map_or(Reach::Attached, Reach::Hosted),
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
        if let Some(bond) = over.bond {
            let held = Held { bond, generation: task, sight: running.sight, said: None };
            self.held.insert(key.clone(), held);
        } else if running.action == Action::Detach
            && let Some(held) = self.held.remove(key)
        {
            tokio::spawn(leave(held.bond));
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
        self.held.get(key).map(|held| held.bond.attached().link().place())
    }

    /// The sessions that end with our connection to them, as far as can be told.
    pub(super) fn last_held(&self) -> impl Iterator<Item = &Key> {
        let is_last = |held: &Held| match &*held.bond {
            Bond::Hosted(_) => true,
            Bond::Attached(attached) => attached.is_last_client() == Some(true),
        };
        self.held.iter().filter(move |(_, held)| is_last(held)).map(|(key, _)| key)
    }

    /// A connection was lost, or its session is gone.
    pub(super) fn let_go(&mut self, key: &Key) -> bool {
        self.held.remove(key).is_some()
    }

    /// Lets go of everything, gently, for as long as `patience` lasts.
    pub(super) async fn leave(&mut self, patience: Duration) {
        let all = self.held.drain().map(|(_, held)| async move { leave(held.bond).await });
        let all: Vec<_> = all.map(tokio::spawn).collect();
        let gone = async {
            for one in all {
                let _ = one.await; // what broke down while leaving is gone as well
            }
        };
        let _ = tokio::time::timeout(patience, gone).await; // what takes longer ends by itself when we are gone
    }

    /// Carries an order out, which may be carried out: that was asked before.
    pub(super) fn start(&mut self, given: Given, ground: Ground<'_>) -> Task {
        let key = ground.key.clone();
        let action = given.order.ask.action();
        let (sight, seen) = watch::channel(sight_of(ground.session, ground.status));
        let site = Site {
            id: ground.session.id.clone(),
            cwd: ground.session.about.cwd.as_deref().or(ground.session.facts.cwd.as_deref()).map(PathBuf::from),
            endpoints: ground.endpoints.clone(),
            owned: ground.session.held,
            sight: seen,
            permit: Permit::default(), // the task's own
        };
        self.generation += 1;
        let work = Work {
            tell: self.tell.clone(),
            site,
            ask: given.order.ask.clone(),
            status: ground.status,
            task: self.generation,
            held: self.held.get(&key).map(|held| Arc::clone(&held.bond)),
            way: ground.way,
            home: home_of(ground.path),
            log: ground.path.join(crate::agent::copilot::store::LOG),
            kind: ground.session.about.kind,
            owner: ground.session.owner.clone(),
            lock: ground.lock,
            folder: ground.path.to_owned(),
            names: ground.names.to_vec(),
            actions: ground.actions.clone(),
            now: ground.now,
            begun: Instant::now(),
            waited: ground.session.dealings.goes_on.is_some(),
        };
        let resumes = makes_an_owner(action) && ground.session.runner().live().is_none();
        if let Some(hold) = ground.hold.as_ref().filter(|_| resumes)
            && let Err(error) = hold.write(&Resumed { at: ground.now.0 })
        {
            tracing::warn!("that a session is being resumed cannot be kept for other processes: {error:#}");
        }
        let cut_off = is_cut_off(ground.session, ground.status);
        let (begun, early) = (ground.now, Vec::new());
        let running = Running { key, given, action, cut_off, sight, hold: ground.hold, resumes, early, begun };
        self.running.insert(self.generation, running);
        tokio::spawn(work.run());
        self.generation
    }
}

async fn leave(bond: Arc<Bond>) {
    match Arc::try_unwrap(bond) {
        Ok(Bond::Attached(attached)) => attached.leave().await,
        Ok(Bond::Hosted(hosted)) => hosted.end().await,
        Err(_) => {} // a task still works on it, and lets go of it at its end
    }
}

/// The home of a session's folder.
fn home_of(folder: &Path) -> PathBuf {
    folder.parent().and_then(Path::parent).unwrap_or(folder).to_owned()
}

/// What a recovery needs to see of a session.
fn sight_of(session: &Session, status: Status) -> Sight {
    let facts = &session.facts;
    let aborted = facts.closed.as_ref().filter(|closed| closed.ending == Ending::Aborted).map(|closed| closed.at.wall);
    let tools_open = facts.turn.as_ref().map_or(0, |turn| turn.tools.len());
    Sight {
        turn_open: facts.turn.is_some(),
        tools_open,
        ran: facts.ran,
        prompt: facts.marks.prompt,
        root: facts.root.clone(),
        denied: facts.denials.after(None) > 0,
        answered: facts.answered.iter().copied().collect(),
        requests: facts.requests.iter().map(|request| (request.id, request.asks.clone())).collect(),
        events: facts.events,
        aborted,
        silent: status == Status::Stuck,
        unmatched_tools: tools_open > 0,
    }
}
