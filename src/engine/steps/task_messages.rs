//! Handles the messages of tasks and kept connections.

use crate::agent::channel::connection_event::{ConnectionEvent, ConnectionEventKind};
use crate::agent::channel::fault::Fault;
use crate::control::PendingOrder;
use crate::core::action::{Action, ServerState, Trait};
use crate::core::order::{Operation, Outcome, Report, Step};
use crate::core::session::Key;
use crate::engine::last_seen::Marks;
use crate::engine::parts::tasks::{Continuation, TaskEnd, TaskId, TaskMessage};
use crate::engine::{Changes, Engine};

impl Engine {
    /// Handles a message of a task or a kept connection.
    pub(super) fn handle_task_message(&mut self, message: TaskMessage, changes: &mut Changes) {
        match message {
            TaskMessage::Report(task, report) => self.task_reports(task, report),
            TaskMessage::MaySend(task, answer) => {
                let _ = answer.send(self.may_send(task, changes)); // the task may have ended
            }
            TaskMessage::Receives(task) => {
                if let Some((key, _)) = self.tasks.session_and_action(task) {
                    self.note_receiving(&key, changes);
                }
            }
            TaskMessage::End(task, end) => self.task_ended(task, end, changes),
            TaskMessage::Connection(event) => {
                if let Some(event) = self.tasks.buffer_early(event) {
                    self.handle_connection_event(event, changes);
                }
            }
            TaskMessage::ServiceSays(source, says) => self.service_says(source, &says, changes),
            TaskMessage::Probed(probed) => self.apply_probes(probed, changes),
            TaskMessage::Heard(key, look, word) => self.looks.answered(&key, look, word),
        }
    }

    /// Passes on what a task reports. What we send ourselves must not count as the user continuing the session.
    fn task_reports(&mut self, task: TaskId, report: Report) {
        let step = match &report {
            Report::Step(step, _) => Some(*step),
            Report::Request(_) | Report::Question(_) | Report::End(_) => None,
        };
        self.tasks.report(task, report);
        let now = self.clock.now().wall;
        let Some((key, action)) = self.tasks.session_and_action(task) else { return };
        let Some(session) = self.fleet.session(&key) else { return };
        let attempts = &mut session.control.attempts;
        match step {
            Some(Step::Abort) => attempts.note_abort(now),
            // A denial ends the turn.
            Some(Step::TakeOver) if action == Action::Deny => attempts.note_abort(now),
            Some(Step::Resend) => attempts.note_prompt(now),
            _ => return,
        }
        self.save_attempts(task, &key);
    }

    /// Keeps what a task leaves behind, and notes in its session how it ended.
    fn task_ended(&mut self, task: TaskId, end: TaskEnd, changes: &mut Changes) {
        let Some((key, action)) = self.tasks.session_and_action(task) else { return };
        let now = self.clock.now().wall;
        let (outcome, refused, continuation) = (end.outcome.clone(), end.refused.clone(), end.continuation);
        self.warn_of_faults(&end.faults);
        end.healthy.iter().for_each(|place| self.tasks.warned.succeeded(*place));
        let is_reached = !end.healthy.is_empty();
        if let Some(session) = self.fleet.session(&key).filter(|_| action.is(Trait::LeavesMarks)) {
            session.control.attempts.note_end(&session.observed.facts.marks, now);
            self.save_attempts(task, &key);
        }
        let may_be_done = matches!(outcome, Outcome::Done(_) | Outcome::Unconfirmed(_));
        self.resume_ended(task, &key, may_be_done);
        let cut_off = self.tasks.cut_off_before(task);
        // One that only looks at a request is of the same action.
        let approves =
            |order: &PendingOrder| order.is_by_command() && matches!(order.order.operation, Operation::Approve(_));
        let is_approval_by_command = self.tasks.order_of(task).is_some_and(approves);
        let early = self.tasks.finish(task, end);
        let is_attached = self.tasks.connection_state(&key).is_some();
        if let Some(session) = self.fleet.session(&key) {
            session.control.outcome = Some((now, outcome.words().into()));
            if matches!((&outcome, action), (Outcome::Done(_), Action::Stop)) {
                session.vitals.stopped = Some(now);
            }
            if action.is(Trait::Counted) {
                session.control.pending_continue =
                    (continuation == Continuation::Waiting).then_some(session.observed.facts.marks);
            }
            if action.excludes_others() {
                session.control.under_way = None;
            }
            // Only if it is known that nothing was sent. What may have been sent is looked for in the log instead.
            let is_known =
                matches!(outcome, Outcome::Done(_) | Outcome::Failed(_)) && continuation != Continuation::Sent;
            let is_undone = is_known && action.is(Trait::Counted) && is_attached;
            let is_approved = is_approval_by_command && may_be_done;
            let marks = Marks {
                attached: (is_attached && !session.control.server.is_attached()).then_some(now),
                left_undone: cut_off.filter(|_| is_undone),
                approved: is_approved.then_some(now),
                // Whoever ended it knows in what state it is.
                seen: (action.is(Trait::EndsOwner) && matches!(outcome, Outcome::Done(_))).then_some(now),
                ..Marks::default()
            };
            if let Some(why) = refused {
                session.control.server = ServerState::Refused(why);
            } else if is_reached && matches!(session.control.server, ServerState::Refused(_)) {
                session.control.server = ServerState::Listening;
            }
            self.remember(&key, marks);
        }
        self.connection_changed(&key, changes);
        for event in early {
            self.handle_connection_event(event, changes);
        }
    }

    /// Handles an event of a kept connection.
    pub(super) fn handle_connection_event(&mut self, event: ConnectionEvent, changes: &mut Changes) {
        // Events of a connection that has been replaced say nothing about the one that is kept.
        let Some(key) = self.tasks.session_of(event.generation) else { return };
        let active = match event.kind {
            ConnectionEventKind::Idle => Some(false),
            ConnectionEventKind::Active(active) => Some(active),
            ConnectionEventKind::Activity => return,
            ConnectionEventKind::Approves(all) => {
                let now = self.clock.now().wall;
                if let Some(session) = self.fleet.session(&key) {
                    session.vitals.approves_all = Some((all, now));
                }
                return self.judge(&key, changes);
            }
            ConnectionEventKind::Asks(questions) => {
                if let Some(session) = self.fleet.session(&key) {
                    session.vitals.questions = questions;
                }
                return self.judge(&key, changes);
            }
            ConnectionEventKind::Lost(fault) => {
                self.warn_of_faults(std::slice::from_ref(&fault));
                self.tasks.drop_connection(&key);
                let now = self.clock.now().wall;
                self.update_control(&key, changes, |control| {
                    control.outcome = Some((now, format!("the connection to its server was lost: {fault}").into()));
                });
                return self.connection_changed(&key, changes);
            }
        };
        self.tasks.note_activity_report(&key, self.clock.now().awake);
        if let Some(place) = self.tasks.server_of(&key) {
            self.tasks.warned.succeeded(place);
        }
        if let Some(session) = self.fleet.session(&key) {
            session.vitals.has_active_work = active;
        }
        self.judge(&key, changes);
    }

    /// Updates a session after its connection was made or closed.
    pub(super) fn connection_changed(&mut self, key: &Key, changes: &mut Changes) {
        if self.tasks.connection_state(key).is_none()
            && let Some(session) = self.fleet.session(key)
        {
            session.vitals.has_active_work = None;
            session.vitals.questions.clear();
            if session.control.server.is_attached() {
                session.control.server = ServerState::Unknown;
            }
        }
        self.find_server(key);
        changes.redraw = true;
        self.read_session(key, changes);
    }

    /// Warns of faults; of a server that fails, only once.
    pub(super) fn warn_of_faults(&mut self, faults: &[Fault]) {
        let now = self.clock.now().awake;
        for fault in faults {
            let place = fault.place().filter(|_| fault.affects_whole_server());
            if place.is_none_or(|place| self.tasks.warned.failed(place, now)) {
                tracing::warn!("{fault}");
            }
        }
    }
}
