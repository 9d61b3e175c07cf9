//! Handles the messages of tasks and kept connections.

use crate::Engine;
use crate::last_seen::SessionMarks;
use crate::parts::tasks::{Continuation, OrderResult, OrderTask, TaskId, TaskMessage};
use pilotlight_agents::channel::connection_event::{ConnectionEvent, ConnectionEventKind};
use pilotlight_agents::channel::failure::FailureKind;
use pilotlight_agents::channel::fault::Fault;
use pilotlight_core::action::{Action, ActionFlag, ServerState};
use pilotlight_core::order::{OrderReport, Outcome, Step};
use pilotlight_core::session::Key;
use pilotlight_system::log::{self, private};

impl Engine {
    /// Handles a message of a task or a kept connection.
    pub(super) fn handle_task_message(&mut self, message: TaskMessage) {
        match message {
            TaskMessage::Report(task, report) => self.task_reports(task, report),
            TaskMessage::MaySend(task, answer) => {
                let _ = answer.send(self.may_send(task)); // the task may have ended
            }
            TaskMessage::Receives(task) => {
                if let Some(task) = self.connections.tasks.get(task).cloned() {
                    self.connections.note_receiving(&mut self.world, &task.key);
                }
            }
            TaskMessage::End(task, result) => self.task_ended(task, &result),
            TaskMessage::Connection(event) => {
                if let Some(event) = self.connections.tasks.buffer_early(event) {
                    self.handle_connection_event(event);
                }
            }
            TaskMessage::ServiceReports(home, report) => {
                self.connections.service_reports(&mut self.world, &mut self.disk, home, &report);
            }
            TaskMessage::Queried(queried) => self.connections.apply_activities(&mut self.world, queried),
            TaskMessage::StreamProbed(key, probe, word) => self.connections.stream_probes.answered(&key, probe, word),
        }
    }

    /// Passes on what a task reports. What we send ourselves must not count as the user continuing the session.
    fn task_reports(&mut self, task: TaskId, report: OrderReport) {
        let step = match &report {
            OrderReport::Step(step, _) => Some(*step),
            OrderReport::Request(_) | OrderReport::Question(_) | OrderReport::End(_) => None,
        };
        self.connections.tasks.report(task, report);
        let now = self.world.now().wall;
        let Some(task) = self.connections.tasks.get(task).cloned() else { return };
        let Some(session) = self.world.fleet.session(&task.key) else { return };
        let attempts = &mut session.control.attempts;
        match step {
            Some(Step::Abort) => attempts.note_abort(now),
            // A denial ends the turn.
            Some(Step::Answer) if task.action() == Action::Deny => attempts.note_abort(now),
            Some(Step::Resend) => attempts.note_prompt(now),
            _ => return,
        }
        self.save_attempts(&task);
    }

    /// Keeps what a task leaves behind, and notes in its session how it ended.
    fn task_ended(&mut self, id: TaskId, result: &OrderResult) {
        let Some(task) = self.connections.tasks.get(id).cloned() else { return };
        let (key, action, now) = (task.key.clone(), task.action(), self.world.now().wall);
        let faults = result.as_ref().map_or_else(|failure| &*failure.faults, |_| &[]);
        self.warn_of_faults(faults);
        let healthy = if result.is_ok() { task.contacted() } else { Vec::new() };
        healthy.iter().for_each(|place| self.connections.tasks.warned.succeeded(*place));
        if let Some(session) = self.world.fleet.session(&key).filter(|_| action.is(ActionFlag::LeavesMarks)) {
            session.control.attempts.note_end(&session.observed.facts.marks, now);
            self.save_attempts(&task);
        }
        let may_be_done = result.as_ref().map_or_else(|failure| failure.kind == FailureKind::Unconfirmed, |_| true);
        if task.new_owner.is_some() {
            self.resume_ended(&task, may_be_done);
        }
        let cut_off = task.cut_off.then_some(task.now);
        // One that only looks at a request is of the same action.
        let is_approval_by_command = task.pending.is_by_command() && task.operation().approved().is_some();
        // What it holds ends here: the session's lock above all.
        drop(task);
        let Some((outcome, early)) = self.connections.tasks.finish(id, result) else { return };
        let continuation = result.as_ref().map_or(Continuation::None, |done| done.continuation);
        let is_attached = self.connections.tasks.connection_state(&key).is_some();
        if let Some(session) = self.world.fleet.session(&key) {
            session.control.outcome = Some((now, outcome.words().into()));
            if matches!((&outcome, action), (Outcome::Done(_), Action::Stop)) {
                session.liveness.stopped = Some(now);
            }
            if action.is(ActionFlag::Counted) {
                session.control.pending_continue =
                    (continuation == Continuation::Waiting).then_some(session.observed.facts.marks);
            }
            if action.excludes_others() {
                session.control.under_way = None;
            }
            // Only if it is known that nothing was sent. What may have been sent is looked for in the log instead.
            let is_known =
                matches!(outcome, Outcome::Done(_) | Outcome::Failed(_)) && continuation != Continuation::Sent;
            let is_undone = is_known && action.is(ActionFlag::Counted) && is_attached;
            let is_unconfirmed = matches!(outcome, Outcome::Unconfirmed(_));
            let approval = is_approval_by_command.then_some(now).filter(|_| may_be_done);
            let marks = SessionMarks {
                attached: (is_attached && !session.control.server.is_attached()).then_some(now),
                left_undone: cut_off.filter(|_| is_undone),
                approved: approval.filter(|_| !is_unconfirmed),
                unconfirmed: approval.filter(|_| is_unconfirmed),
                // Whoever ended it knows in what state it is.
                seen: (action.is(ActionFlag::EndsOwner) && matches!(outcome, Outcome::Done(_))).then_some(now),
                ..SessionMarks::default()
            };
            if let Some(refusal) = faults.iter().find(|fault| fault.refuses_us()) {
                session.control.server = ServerState::Refused(refusal.to_string().into());
            } else if !healthy.is_empty() && matches!(session.control.server, ServerState::Refused(_)) {
                session.control.server = ServerState::Listening;
            }
            self.disk.remember(&mut self.world, &key, marks);
        }
        self.connection_changed(&key);
        for event in early {
            self.handle_connection_event(event);
        }
    }

    /// Ends the record that a task resumes its session, unless its new owner has yet to appear.
    fn resume_ended(&mut self, task: &OrderTask, done: bool) {
        if self.disk.resume_ended(&mut self.world, &task.key, done) {
            task.clear_resume_record();
        }
        self.disk.refresh_recent_resumes(&mut self.world);
    }

    /// Handles an event of a kept connection.
    pub(super) fn handle_connection_event(&mut self, event: ConnectionEvent) {
        // Events of a connection that has been replaced say nothing about the one that is kept.
        let Some(key) = self.connections.tasks.session_of(event.generation) else { return };
        let active = match event.kind {
            ConnectionEventKind::Idle => Some(false),
            ConnectionEventKind::Active(active) => Some(active),
            ConnectionEventKind::Activity => return,
            ConnectionEventKind::Approves(all) => {
                let now = self.world.now().wall;
                if let Some(session) = self.world.fleet.session(&key) {
                    session.liveness.approves_all = Some((all, now));
                }
                return self.world.judge(&key);
            }
            ConnectionEventKind::Asks(questions) => {
                if let Some(session) = self.world.fleet.session(&key) {
                    session.liveness.questions = questions;
                }
                return self.world.judge(&key);
            }
            ConnectionEventKind::Lost(fault) => {
                self.warn_of_faults(std::slice::from_ref(&fault));
                self.connections.tasks.drop_connection(&key);
                let now = self.world.now().wall;
                self.world.update_control(&key, |control| {
                    control.outcome = Some((now, format!("the connection to its server was lost: {fault}").into()));
                });
                return self.connection_changed(&key);
            }
        };
        self.connections.tasks.note_activity_report(&key, self.world.now().awake);
        if let Some(place) = self.connections.tasks.server_of(&key) {
            self.connections.tasks.warned.succeeded(place);
        }
        if let Some(session) = self.world.fleet.session(&key) {
            session.liveness.has_active_work = active;
        }
        self.world.judge(&key);
    }

    /// Updates a session after its connection was made or closed.
    pub(super) fn connection_changed(&mut self, key: &Key) {
        if self.connections.tasks.connection_state(key).is_none()
            && let Some(session) = self.world.fleet.session(key)
        {
            session.liveness.has_active_work = None;
            session.liveness.questions.clear();
            if session.control.server.is_attached() {
                session.control.server = ServerState::Unknown;
            }
        }
        self.connections.find_server(&mut self.world, &self.disk, key);
        self.world.changes.redraw = true;
        self.disk.read_session(&mut self.world, key);
        self.take_up_disk_changes();
    }

    /// Warns of faults; of a server that fails, only once.
    pub(super) fn warn_of_faults(&mut self, faults: &[Fault]) {
        let now = self.world.now().awake;
        for fault in faults {
            let place = fault.place().filter(|_| fault.affects_whole_server());
            if place.is_none_or(|place| self.connections.tasks.warned.failed(place, now)) {
                log::warn!("a server failed: {}", private(&fault));
            }
        }
    }
}
