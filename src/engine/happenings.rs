//! What comes back from orders that are carried out, and from connections that are kept.

use super::acting::{Happening, Sequel, Waiting, excludes};
use super::orders::is_attempt;
use super::{Engine, Key, Round};
use crate::agent::copilot::server::attached::{Event, What};
use crate::agent::copilot::server::fault::Fault;
use crate::core::action::{Action, ServerState};
use crate::core::order::{Outcome, Step};

impl Engine {
    /// What a task, or a connection that is kept, tells.
    pub(super) fn happened(&mut self, happening: Happening, round: &mut Round) {
        match happening {
            Happening::Step(task, step, words) => {
                self.acting.step(task, step, words);
                let now = self.clock.now().wall;
                // What we send is no sign that the user went on.
                if let Some((key, action)) = self.acting.task(task)
                    && let Some(folder) = self.fleet.folder(&key)
                {
                    let attempts = &mut folder.session.control.attempts;
                    match step {
                        Step::Abort => attempts.aborts(now),
                        // With a denial the turn ends.
                        Step::TakeOver if action == Action::Deny => attempts.aborts(now),
                        Step::Resend => attempts.prompts(now),
                        _ => return,
                    }
                    self.keep_attempts(task, &key);
                }
            }
            Happening::Request(task, text) => self.acting.request(task, text),
            Happening::Question(task, form) => self.acting.question(task, form),
            Happening::MaySend(task, answer) => {
                let _ = answer.send(self.may_send(task, round)); // the task may have ended
            }
            Happening::Over(task, over) => {
                let Some((key, action)) = self.acting.task(task) else { return };
                let now = self.clock.now().wall;
                let (outcome, refused) = (over.outcome.clone(), over.refused.clone());
                self.warn(&over.faults);
                over.well.iter().for_each(|place| self.acting.warned.succeeded(*place));
                let is_reached = !over.well.is_empty();
                let sends = is_attempt(action) || matches!(action, Action::Stop | Action::Deny);
                if let Some(folder) = self.fleet.folder(&key).filter(|_| sends) {
                    folder.session.control.attempts.ended(&folder.session.facts.marks, now);
                    self.keep_attempts(task, &key);
                }
                self.resumed(task, &key, matches!(outcome, Outcome::Done(_) | Outcome::Unconfirmed(_)));
                let (cut_off, sequel) = (self.acting.cut_off_before(task), over.sequel);
                let early = self.acting.over(task, over);
                let attached = self.acting.attached(&key);
                if let Some(folder) = self.fleet.folder(&key) {
                    let session = &mut folder.session;
                    let words = outcome.words().to_owned();
                    if matches!((&outcome, action), (Outcome::Done(_), Action::Stop)) {
                        session.live.stopped = Some(now);
                    }
                    session.control.outcome = Some((now, words.into()));
                    if is_attempt(action) {
                        session.control.goes_on = (sequel == Sequel::Waits).then_some(session.facts.marks);
                    }
                    if excludes(action) {
                        session.control.under_way = None;
                    }
                    let is_new = attached.is_some() && !session.control.server.is_attached();
                    if is_new {
                        session.live.attached = Some(now);
                        self.seen.mark_attached(&key.1, now);
                    }
                    // What may have been sent is looked for in the log, and not taken for undone.
                    let is_known = matches!(outcome, Outcome::Done(_) | Outcome::Failed(_)) && sequel != Sequel::Sent;
                    let left_undone = cut_off.filter(|_| is_known && is_attempt(action) && attached.is_some());
                    if let Some(at) = left_undone {
                        session.live.left_undone = Some(at);
                        self.seen.mark_left_undone(&key.1, at);
                    }
                    if (is_new || left_undone.is_some())
                        && let Err(error) = self.seen.save()
                    {
                        tracing::warn!("{error:#}");
                    }
                    if let Some(why) = refused {
                        session.control.server = ServerState::Refused(why);
                    } else if is_reached && matches!(session.control.server, ServerState::Refused(_)) {
                        session.control.server = ServerState::Listens;
                    }
                }
                self.released(&key, round);
                for event in early {
                    self.live(event, round);
                }
                while let Some(Waiting { key, given }) = self.acting.next() {
                    self.change_control(&key, round, |control| control.under_way = None);
                    self.act(given, round);
                }
            }
            Happening::Live(event) => {
                if let Some(event) = self.acting.keep_early(event) {
                    self.live(event, round);
                }
            }
            Happening::Looked(looked) => self.looked(looked, round),
        }
    }

    pub(super) fn live(&mut self, event: Event, round: &mut Round) {
        // What a connection tells that was replaced meanwhile says nothing of the one that is kept.
        let Some(key) = self.acting.session_of(event.generation) else { return };
        let active = match event.what {
            What::Idle => Some(false),
            What::Active(active) => Some(active),
            What::Happened => return,
            What::Asks(questions) => {
                if let Some(folder) = self.fleet.folder(&key) {
                    folder.session.live.questions = questions;
                }
                return self.judge(&key, round);
            }
            What::Lost(fault) => {
                self.warn(std::slice::from_ref(&fault));
                self.acting.let_go(&key);
                let now = self.clock.now().wall;
                self.change_control(&key, round, |control| {
                    control.outcome = Some((now, format!("the connection to its server was lost: {fault}").into()));
                });
                return self.released(&key, round);
            }
        };
        self.acting.said(&key, self.clock.now().awake);
        if let Some(place) = self.acting.place_of(&key) {
            self.acting.warned.succeeded(place);
        }
        if let Some(folder) = self.fleet.folder(&key) {
            folder.session.live.has_active_work = active;
        }
        self.judge(&key, round);
    }

    /// A session's connection came or went: what was known through it is known anew.
    pub(super) fn released(&mut self, key: &Key, round: &mut Round) {
        if self.acting.attached(key).is_none()
            && let Some(folder) = self.fleet.folder(key)
        {
            folder.session.live.has_active_work = None;
            folder.session.live.questions.clear();
            if folder.session.control.server.is_attached() {
                folder.session.control.server = ServerState::Unknown;
            }
        }
        self.reach(key);
        round.redraw = true;
        self.look_into(key, round);
    }

    /// Warns of servers that fail, each once.
    pub(super) fn warn(&mut self, faults: &[Fault]) {
        let now = self.clock.now().awake;
        for fault in faults {
            let place = fault.place().filter(|_| fault.is_the_servers());
            if place.is_none_or(|place| self.acting.warned.failed(place, now)) {
                tracing::warn!("{fault}");
            }
        }
    }
}
