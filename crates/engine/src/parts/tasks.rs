//! Tasks that carry out orders, and the connections that they leave behind.
//!
//! An order names a session and what is asked of it. [`core::action`](pilotlight_core::action) decides whether it may be
//! carried out, on the session's current state, whatever a menu showed before. An allowed order runs as a task next to
//! the loop ([`OrderTask`]) and sends messages back: steps, which are logged by their tag and passed on, and finally its end.
//! Connections that must stay are kept here. A connection has a generation, so that messages of one that has been
//! replaced can be dropped.

mod order_task;

pub(crate) use order_task::{Continuation, NewOwner, OrderResult, OrderTask};

use super::fleet::Fleet;
use super::resumes::Resumer;
use crate::connections::QueriedSession;
use crate::ledger::Section;
use crate::parts::stream_probes::ProbeId;
use pilotlight_agents::channel::action_context::{LogView, LoggedRequest, Permit, ReportSink};
use pilotlight_agents::channel::connection_event::ConnectionEvent;
use pilotlight_agents::channel::fault::Place;
use pilotlight_agents::channel::warnings::ServerWarnings;
use pilotlight_agents::channel::{Connection, ServiceReport};
use pilotlight_agents::home::Resume;
use pilotlight_core::action::{Action, ActionFlag, ServerState};
use pilotlight_core::attempts::Attempts;
use pilotlight_core::fleet::Session;
use pilotlight_core::form::FormAnswer;

use pilotlight_core::order::{Operation, OrderReport, Outcome, Reply, Step};
use pilotlight_core::session::{HomeId, Key};
use pilotlight_core::stream_probe::Word;
use pilotlight_core::time::Time;
use pilotlight_core::turn::Ending;
use pilotlight_core::verdict::Status;
use pilotlight_core::verdict::reported_state::State;
use pilotlight_system::log::{self, private};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

impl Section for Attempts {
    const NAME: &'static str = "attempts";
}

/// At most this many recoveries run at a time; more would only compete for the same machine.
const RECOVERIES_MAX: usize = 3;

/// A task, as the loop has it.
struct Running {
    task: Arc<OrderTask>,
    /// Events of its connection from before that is kept.
    early: Vec<ConnectionEvent>,
    handle: AbortHandle,
}

/// The engine may end while a task still runs. Aborting it drops the sender of its reports, so that whoever waits for them
/// hears of that.
impl Drop for Running {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

struct KeptConnection {
    connection: Arc<dyn Connection>,
    generation: u64,
    log_view: watch::Sender<LogView>,
    /// When, by the awake clock, its server last reported whether the session works.
    activity_reported_at: Option<Time>,
}

/// All running tasks and kept connections.
pub(crate) struct Tasks {
    sender: mpsc::UnboundedSender<TaskMessage>,
    messages: mpsc::UnboundedReceiver<TaskMessage>,
    running: HashMap<TaskId, Running>,
    connections: HashMap<Key, KeptConnection>,
    generation: u64,
    pub(crate) warned: ServerWarnings,
    /// The last sign of life in each session's log when its server was last asked what it does.
    pub(crate) queried: HashMap<Key, Time>,
    /// Who resumes sessions instead of a new terminal, if anybody.
    pub(crate) resumes_here: Option<mpsc::UnboundedSender<Resume>>,
    /// The tasks that listen to services, and until when no other one is started.
    pub(crate) watches: HashMap<HomeId, (AbortHandle, Time)>,
    /// For each session that was reconnected automatically: since when its permissions had been lost.
    pub(crate) auto_reconnected: HashMap<Key, Time>,
}

impl Tasks {
    /// No tasks, no connections.
    pub(crate) fn new() -> Self {
        let (sender, messages) = mpsc::unbounded_channel();
        Self {
            sender,
            messages,
            running: HashMap::new(),
            connections: HashMap::new(),
            generation: 0,
            warned: ServerWarnings::default(),
            queried: HashMap::new(),
            resumes_here: None,
            watches: HashMap::new(),
            auto_reconnected: HashMap::new(),
        }
    }

    /// Drops what is kept for a session that is gone from disk. A connection to it stays until its server reports the
    /// session gone: the folder may only have been moved, and disconnecting could end what runs.
    pub(crate) fn forget(&mut self, key: &Key) {
        if let Some(kept) = self.connections.get(key) {
            kept.connection.recheck_loaded();
        }
        self.queried.remove(key);
        self.auto_reconnected.remove(key);
    }

    /// The next message of a task or connection.
    pub(crate) async fn next_message(&mut self) -> Option<TaskMessage> {
        self.messages.recv().await
    }

    /// Reports what tasks have sent by now, at exit: a command that waits for its order must learn that it may have
    /// happened.
    pub(crate) fn deliver_remaining(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            match message {
                TaskMessage::Report(task, report) => self.report(task, report),
                TaskMessage::End(task, result) => drop(self.finish(task, &result)),
                TaskMessage::MaySend(..)
                | TaskMessage::Receives(_)
                | TaskMessage::Connection(_)
                | TaskMessage::Queried(_)
                | TaskMessage::ServiceReports(..)
                | TaskMessage::StreamProbed(..) => {}
            }
        }
    }

    /// A sender for messages to the loop.
    pub(crate) fn sender(&self) -> mpsc::UnboundedSender<TaskMessage> {
        self.sender.clone()
    }

    /// The number of a new task.
    pub(crate) const fn new_id(&mut self) -> TaskId {
        self.generation += 1;
        self.generation
    }

    /// A permit that asks the loop, right before something is sent, whether it may still be sent.
    pub(crate) fn permit(&self, task: TaskId) -> Permit {
        let (ask, mut questions) = mpsc::unbounded_channel();
        let messages = self.sender();
        tokio::spawn(async move {
            while let Some(answer) = questions.recv().await {
                if messages.send(TaskMessage::MaySend(task, answer)).is_err() {
                    return;
                }
            }
        });
        Permit::from(ask)
    }

    /// Reports that go to the loop.
    pub(crate) fn reports(&self, task: TaskId) -> ReportSink {
        let messages = self.sender();
        ReportSink::to(move |report| drop(messages.send(TaskMessage::Report(task, report)))) // fails only when the engine has ended
    }

    /// Starts a task. The caller has checked that its order may be carried out.
    pub(crate) fn start(&mut self, task: OrderTask) -> Arc<OrderTask> {
        let task = Arc::new(task);
        if task.new_owner.is_some() {
            task.write_resume_record(task.now, Resumer::ours(task.now));
        }
        let handle = tokio::spawn(Arc::clone(&task).run()).abort_handle();
        self.running.insert(task.id, Running { task: Arc::clone(&task), early: Vec::new(), handle });
        task
    }

    /// Whether this action may start now, or too many recoveries are running.
    pub(crate) fn has_room(&self, action: Action) -> bool {
        !action.is(ActionFlag::Recovery)
            || self.running().filter(|task| task.action().is(ActionFlag::Recovery)).count() < RECOVERIES_MAX
    }

    /// How we are connected to a session, if we are.
    pub(crate) fn connection_state(&self, key: &Key) -> Option<ServerState> {
        self.connections.get(key).map(|kept| kept.connection.state())
    }

    /// Passes the current state of these sessions to their tasks and connections.
    pub(crate) fn update_log_views<'a>(&self, fleet: &Fleet, keys: impl IntoIterator<Item = &'a Key>) {
        if self.running.is_empty() && self.connections.is_empty() {
            return;
        }
        for (key, entry) in keys.into_iter().filter_map(|key| Some((key, fleet.get(key)?))) {
            let senders = self.running().filter(|task| task.key == *key).map(|task| &task.log_view);
            for log_view in senders.chain(self.connections.get(key).map(|kept| &kept.log_view)) {
                let now = log_view_of(entry.session(), entry.verdict.status);
                log_view.send_if_modified(|before| {
                    let differs = *before != now;
                    *before = now.clone();
                    differs
                });
            }
        }
    }

    /// Whether a task that excludes others is running on a session.
    pub(crate) fn is_busy(&self, key: &Key) -> bool {
        self.running().any(|task| task.key == *key && task.action().excludes_others())
    }

    /// The task with this id, while it runs.
    pub(crate) fn get(&self, task: TaskId) -> Option<&Arc<OrderTask>> {
        self.running.get(&task).map(|running| &running.task)
    }

    /// All tasks that run.
    fn running(&self) -> impl Iterator<Item = &OrderTask> {
        self.running.values().map(|running| &*running.task)
    }

    /// Buffers an event of a connection that is not kept yet. Returns the event if its task is over, so that the
    /// connection is kept, or has been replaced.
    pub(crate) fn buffer_early(&mut self, event: ConnectionEvent) -> Option<ConnectionEvent> {
        match self.running.get_mut(&event.generation) {
            Some(running) => {
                running.early.push(event);
                None
            }
            None => Some(event),
        }
    }

    /// Passes a report on to whoever gave the order. Only a step is logged, too, by its tag.
    pub(crate) fn report(&self, task: TaskId, report: OrderReport) {
        let Some(task) = self.get(task) else { return };
        if let OrderReport::Step(step, words) = &report {
            log::info!(tag = step.tag(), session = private(&task.key.id), "{}", private(&words));
        }
        task.pending.report(report);
    }

    /// Ends a task: keeps its connection and reports its outcome. Returns that, and the events that the connection sent in
    /// the meantime.
    pub(crate) fn finish(&mut self, id: TaskId, result: &OrderResult) -> Option<(Outcome, Vec<ConnectionEvent>)> {
        let mut running = self.running.remove(&id)?;
        let (task, early) = (&running.task, std::mem::take(&mut running.early));
        let outcome = match result {
            Ok(done) => Outcome::Done(done.words.clone()),
            Err(failure) => failure.into(),
        };
        let tag = match &outcome {
            Outcome::Done(_) => "done",
            Outcome::Failed(_) => Step::GiveUp.tag(),
            Outcome::Unconfirmed(_) => "unconfirmed",
            Outcome::Refused(_) | Outcome::Unknown => "refused",
        };
        // The words of an answer are for the user alone.
        let has_words = |with: &FormAnswer| matches!(with, FormAnswer::Choice(_) | FormAnswer::Text(_));
        let is_private = result.is_ok()
            && matches!(task.operation(), Operation::Answer(Reply::Give { with, .. }) if has_words(with));
        let words = if is_private { "answered" } else { outcome.words() };
        let (action, key) = (task.action(), &task.key);
        let by = if task.pending.is_by_command() { "command" } else { "click" };
        let caller = task.pending.caller;
        log::info!(
            tag = tag,
            action = action.name(),
            session = private(&key.id),
            by = by,
            caller = private(&caller),
            "{}",
            private(&words)
        );
        if let Some(connection) = task.kept.get().cloned() {
            let log_view = task.log_view.clone();
            let kept = KeptConnection { connection, generation: id, log_view, activity_reported_at: None };
            self.connections.insert(key.clone(), kept);
        }
        let detached = if action == Action::Detach { self.connections.remove(key) } else { None };
        task.pending.report(OrderReport::End(outcome.clone()));
        // Only the last who has a connection closes it in an orderly way.
        drop(running);
        if let Some(detached) = detached {
            tokio::spawn(detached.connection.close());
        }
        Some((outcome, early))
    }

    /// When, by the awake clock, a session's server last reported whether it works.
    pub(crate) fn activity_reported_at(&self, key: &Key) -> Option<Time> {
        self.connections.get(key)?.activity_reported_at
    }

    /// Notes that a session's server has just reported whether it works.
    pub(crate) fn note_activity_report(&mut self, key: &Key, now: Time) {
        if let Some(kept) = self.connections.get_mut(key) {
            kept.activity_reported_at = Some(now);
        }
    }

    /// The session whose kept connection has this generation; `None` if it was replaced.
    pub(crate) fn session_of(&self, generation: u64) -> Option<Key> {
        self.connections.iter().find(|(_, kept)| kept.generation == generation).map(|(key, _)| key.clone())
    }

    /// The server that a session's connection goes to.
    pub(crate) fn server_of(&self, key: &Key) -> Option<Place> {
        self.connections.get(key).map(|kept| kept.connection.place())
    }

    /// A session's kept connection.
    pub(crate) fn connection_to(&self, key: &Key) -> Option<&Arc<dyn Connection>> {
        self.connections.get(key).map(|kept| &kept.connection)
    }

    /// The sessions known to end when we disconnect.
    pub(crate) fn ending_with_us(&self) -> impl Iterator<Item = &Key> {
        self.connections.iter().filter(|(_, kept)| kept.connection.ends_with_us()).map(|(key, _)| key)
    }

    /// Drops a connection that was lost, or whose session is gone. Returns whether there was one.
    pub(crate) fn drop_connection(&mut self, key: &Key) -> bool {
        self.connections.remove(key).is_some()
    }

    /// Disconnects from everything in an orderly way, for at most `patience`.
    pub(crate) async fn disconnect_all(&mut self, patience: Duration) {
        let all = self.connections.drain().map(|(_, kept)| async move { kept.connection.close().await });
        let all: Vec<_> = all.map(tokio::spawn).collect();
        let gone = async {
            for one in all {
                let _ = one.await; // a connection whose task panicked is closed as well
            }
        };
        let _ = tokio::time::timeout(patience, gone).await; // what takes longer ends when we exit
    }
}

/// What a task may see of a session.
pub(crate) fn log_view_of(session: &Session, status: Status) -> LogView {
    let facts = &session.observed.facts;
    let aborted = facts.closed.as_ref().filter(|closed| closed.ending == Ending::Aborted).map(|closed| closed.at.wall);
    LogView {
        turn_open: facts.turn.is_some(),
        tools_open: facts.turn.as_ref().map_or(0, |turn| turn.tools.len()),
        ran: facts.ran,
        prompt: facts.marks.prompt,
        turn_id: facts.turn_id.clone(),
        denied: facts.denials.after(None) > 0,
        answered: facts.answered.iter().copied().collect(),
        requests: facts.requests.iter().map(LoggedRequest::of).collect(),
        shows_requests: !facts.asks_unseen,
        commands: facts.requests.iter().filter_map(|request| Some((request.id, request.command.clone()?))).collect(),
        events: facts.events,
        aborted,
        waits: session
            .observed
            .reported_state
            .as_ref()
            .is_some_and(|reported| matches!(reported.state, State::Waiting(_))),
        silent: status == Status::Stuck,
    }
}

/// Identifies a task, and the connection that it may leave behind. Never reused.
pub(crate) type TaskId = u64;

/// A message from a task or a kept connection to the loop.
pub(crate) enum TaskMessage {
    /// What it does, or shows.
    Report(TaskId, OrderReport),
    /// Something is about to be sent: asks for permission.
    MaySend(TaskId, oneshot::Sender<Result<(), String>>),
    /// The session's model is answering.
    Receives(TaskId),
    /// It is over.
    End(TaskId, OrderResult),
    /// An event of a kept connection, or of one that may be kept.
    Connection(ConnectionEvent),
    /// What servers report about silent sessions.
    Queried(Vec<QueriedSession>),
    /// What the service of a home's sessions reports of one of them.
    ServiceReports(HomeId, ServiceReport),
    /// What a session's server or bridge says about its answer.
    StreamProbed(Key, ProbeId, Option<Word>),
}
