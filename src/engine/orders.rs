//! Orders and what comes of them, as far as the loop has a part in it: which session is meant, whether it may be done now, and
//! what a session's row shows of it.

use super::acting::{Ground, Happening, Sequel, Waiting, action_of, excludes};
use super::{Engine, Key, Round, reading};
use crate::act::{Ask, Given, Order, Outcome, Report, Step};
use crate::copilot::attached::{Event, What};
use crate::copilot::fault::Fault;
use crate::copilot::servers::{Endpoint, endpoints};
use crate::core::action::{Action, Reach, offer};
use crate::core::owner::Owner;
use crate::core::session::Facts;
use crate::core::verdict::Status;
use tokio::sync::mpsc;

impl Engine {
    /// Carries an order out, has it wait, or says why it is refused.
    pub(super) fn act(&mut self, given: Given, round: &mut Round) {
        if given.order.ask == Ask::Said {
            return self.tell_said(&given);
        }
        let key = match self.find(&given.order.id, round) {
            Ok(key) => key,
            Err(outcome) => return given.report(Report::End(outcome)),
        };
        // What a menu showed may be over: everything is looked at once more; where a process is to be signalled, whatever
        // else it may have taken up as well.
        match given.order.ask {
            Ask::End | Ask::ForceQuit => self.look_around(round),
            _ => self.look_into_now(&key, round),
        }
        self.fleet.share_owners(self.clock.now(), &mut round.changed);
        self.reach(&key);
        self.start(&key, given, round);
    }

    /// Begins to carry out what may be done now.
    fn start(&mut self, key: &Key, given: Given, round: &mut Round) {
        let now = self.clock.now();
        let action = action_of(&given.order.ask);
        let (endpoints, names) = (self.endpoints_of(key), &self.config.owners.names);
        let refuse = |why: &str| {
            tracing::info!(tag = "refused", action = action.name(), session = %key.1, "{why}");
            given.report(Report::End(Outcome::Refused(why.into())));
        };
        let Some(entry) = self.fleet.get(key) else { return refuse("there is no such session any more") };
        if let Err(why) = offer(action, entry.session(), entry.verdict.status) {
            return refuse(&why);
        }
        // Its folder may have been made anew meanwhile, which forgets what is under way.
        if excludes(action) && self.acting.is_busy(key) {
            return refuse("something else is still being done with it");
        }
        if !self.acting.has_room(action) {
            let prompt = entry.session().facts.marks.prompt;
            self.acting.wait(Waiting { key: key.clone(), given, prompt });
            return self.deal(key, round, |dealings| dealings.under_way = Some(action));
        }
        let ground = Ground {
            key,
            session: entry.session(),
            status: entry.verdict.status,
            path: entry.path(),
            lock: entry.owners_lock(),
            endpoints,
            names,
            actions: &self.config.actions,
            now: now.wall,
        };
        self.acting.start(given, &ground);
        let marks = entry.session().facts.marks;
        let recovers = matches!(action, Action::Reconnect | Action::Resend | Action::Continue);
        self.deal(key, round, |dealings| {
            if excludes(action) {
                dealings.under_way = Some(action);
            }
            // What waited for the end of a turn is the rest of one that was counted.
            if recovers && dealings.goes_on.is_none() {
                dealings.attempts.tried(&marks, now.wall);
            }
        });
    }

    /// Changes what we have to do with a session, and judges it anew.
    fn deal(&mut self, key: &Key, round: &mut Round, change: impl FnOnce(&mut crate::core::action::Dealings)) {
        if let Some(folder) = self.fleet.folder(key) {
            change(&mut folder.session.dealings);
        }
        round.redraw = true;
        self.judge(key, round);
    }

    /// The session of this id, read if nothing but its folder was looked at. Where two homes have one (somebody copied a
    /// home), it is not guessed which is meant.
    fn find(&mut self, id: &str, round: &mut Round) -> Result<Key, Outcome> {
        let mut keys = self.fleet.keys().chain(self.history.iter()).filter(|key| *key.1 == *id);
        let key = keys.next().ok_or(Outcome::Unknown)?;
        if keys.next().is_some() {
            let why = "two homes have a session of this id: say which is meant with `pilotlight --home DIR`";
            return Err(Outcome::Refused(why.into()));
        }
        drop(keys);
        if !self.history.contains(&key) {
            return Ok(key);
        }
        let mut folder = crate::watch::store::Folder::new(&self.homes[key.0], &key.1);
        self.seen.recall(&mut folder.session);
        let reading = reading(&self.config, &self.known, self.clock.now());
        folder.look(&reading, &mut self.buffer).map_err(|_| Outcome::Unknown)?;
        folder.read_history(&reading, &mut self.buffer);
        self.hold(&key, folder, round);
        Ok(key)
    }

    /// Where the server of a session's owner can be reached.
    fn endpoints_of(&self, key: &Key) -> Vec<Endpoint> {
        match self.fleet.get(key).map(|entry| &entry.session().owner) {
            Some(&Owner::Alive { pid, .. }) => self.endpoints_at(pid),
            _ => Vec::new(),
        }
    }

    /// The same, of a process that the system tells the addresses of: none that is merely likely.
    pub(super) fn verified_endpoints_at(&self, pid: u32) -> Vec<Endpoint> {
        if crate::watch::process::listening(pid).is_ok() { self.endpoints_at(pid) } else { Vec::new() }
    }

    fn endpoints_at(&self, pid: u32) -> Vec<Endpoint> {
        let homes: Vec<_> = self.homes.iter().filter_map(|sessions| sessions.parent().map(Into::into)).collect();
        endpoints(pid, &homes, &self.config.servers, crate::paths::user_home().as_deref())
    }

    /// Finds out whether the server of a session's owner can be reached, without connecting to it.
    pub(super) fn reach(&mut self, key: &Key) {
        let attached = self.acting.attached(key);
        let Some(folder) = self.fleet.folder(key) else { return };
        let known = &folder.session.dealings.reach;
        let reach = match (attached, &folder.session.owner) {
            (Some(reach), _) => reach,
            (None, &Owner::Alive { pid, .. }) => {
                match known {
                    // A server that listens goes on listening; what refused us is asked again when the user asks for it.
                    Reach::Listens | Reach::Refused(_) => return,
                    Reach::Unknown | Reach::Nowhere | Reach::Attached | Reach::Hosted(_) => {
                        if self.endpoints_at(pid).is_empty() { Reach::Nowhere } else { Reach::Listens }
                    }
                }
            }
            (None, _) => Reach::Unknown,
        };
        if let Some(folder) = self.fleet.folder(key) {
            folder.session.dealings.reach = reach;
        }
    }

    /// What a task, or a connection that is kept, tells.
    pub(super) fn happened(&mut self, happening: Happening, round: &mut Round) {
        match happening {
            Happening::Step(task, step, words) => {
                self.acting.step(task, step, words);
                let now = self.clock.now().wall;
                if let Some((key, Action::Reconnect | Action::Resend | Action::Continue)) = self.acting.task(task)
                    && let Some(folder) = self.fleet.folder(&key)
                {
                    // What we send is no sign that the user went on.
                    match step {
                        Step::Abort => folder.session.dealings.attempts.aborts(now),
                        Step::Resend => folder.session.dealings.attempts.prompts(now),
                        _ => {}
                    }
                }
            }
            Happening::Request(task, text) => self.acting.request(task, text),
            Happening::Over(task, over) => {
                let Some((key, action)) = self.acting.task(task) else { return };
                let now = self.clock.now().wall;
                let (outcome, refused) = (over.outcome.clone(), over.refused.clone());
                self.warn(&over.faults);
                over.well.iter().for_each(|place| self.acting.warned.succeeded(*place));
                let is_reached = !over.well.is_empty();
                let (cut_off, sequel) = (self.acting.was_cut_off(task), over.sequel);
                let early = self.acting.over(task, over);
                let attached = self.acting.attached(&key);
                if let Some(folder) = self.fleet.folder(&key) {
                    let session = &mut folder.session;
                    let words = outcome.words().to_owned();
                    let recovers = matches!(action, Action::Reconnect | Action::Resend | Action::Continue);
                    let done = recovers && matches!(outcome, Outcome::Done(_));
                    if matches!((&outcome, action), (Outcome::Done(_), Action::Stop)) {
                        session.live.stopped = Some(now);
                    }
                    session.dealings.outcome = Some((now, words.into()));
                    if recovers {
                        let marks = session.facts.marks;
                        session.dealings.attempts.ended(&marks, now);
                        session.dealings.goes_on = (sequel == Sequel::Waits).then_some(marks);
                    }
                    if excludes(action) {
                        session.dealings.under_way = None;
                    }
                    let is_new = attached.is_some() && !session.dealings.reach.is_attached();
                    if is_new {
                        session.live.attached = Some(now);
                        self.seen.mark_attached(&key.1, now);
                    }
                    let is_left_undone = cut_off && attached.is_some() && sequel != Sequel::Sent && done;
                    if is_left_undone {
                        session.live.left_undone = Some(now);
                        self.seen.mark_left_undone(&key.1, now);
                    }
                    if (is_new || is_left_undone)
                        && let Err(error) = self.seen.save()
                    {
                        tracing::warn!("{error:#}");
                    }
                    if let Some(why) = refused {
                        session.dealings.reach = Reach::Refused(why);
                    } else if is_reached && matches!(session.dealings.reach, Reach::Refused(_)) {
                        session.dealings.reach = Reach::Listens;
                    }
                }
                self.released(&key, round);
                for event in early {
                    self.live(event, round);
                }
                while let Some(Waiting { key, given, prompt }) = self.acting.next() {
                    self.deal(&key, round, |dealings| dealings.under_way = None);
                    let now = self.fleet.get(&key).map(|entry| entry.session().facts.marks.prompt);
                    if matches!(given.order.ask, Ask::Reconnect { resend: true } | Ask::Continue)
                        && now.is_some_and(|now| now != prompt)
                    {
                        let why = "another prompt was sent while this waited; it is not done to the turn of that one";
                        given.report(Report::End(Outcome::Refused(why.into())));
                        continue;
                    }
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

    fn live(&mut self, event: Event, round: &mut Round) {
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
                self.deal(&key, round, |dealings| {
                    dealings.outcome = Some((now, format!("the connection to its server was lost: {fault}").into()));
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
    fn released(&mut self, key: &Key, round: &mut Round) {
        if self.acting.attached(key).is_none()
            && let Some(folder) = self.fleet.folder(key)
        {
            folder.session.live.has_active_work = None;
            folder.session.live.questions.clear();
            if folder.session.dealings.reach.is_attached() {
                folder.session.dealings.reach = Reach::Unknown;
            }
        }
        self.reach(key);
        round.redraw = true;
        self.look_into(key, round);
    }

    /// Warns of servers that fail, each once.
    fn warn(&mut self, faults: &[Fault]) {
        let now = self.clock.now().awake;
        for fault in faults {
            let place = fault.place().filter(|_| fault.is_the_servers());
            if place.is_none_or(|place| self.acting.warned.failed(place, now)) {
                tracing::warn!("{fault}");
            }
        }
    }

    /// Has sessions go on whose turn is over by now, where that was asked for; and reconnects those that lost their permissions,
    /// where the user has set that, once for each loss, when the turn that was denied is over.
    pub(super) fn reconnect_by_itself(&mut self, round: &mut Round) {
        let (now, limits) = (self.clock.now(), self.config.limits);
        let is_over = |facts: &Facts| facts.turn.is_none() || facts.lapse(now, &limits).is_some();
        let mut due = Vec::new();
        for (key, entry) in self.fleet.entries() {
            let (session, status) = (entry.session(), entry.verdict.status);
            let (facts, dealings) = (&session.facts, &session.dealings);
            if dealings.under_way.is_some() {
                continue;
            }
            if let Some(marks) = dealings.goes_on {
                let went_on = (marks.prompt, marks.aborted) != (facts.marks.prompt, facts.marks.aborted);
                if went_on || is_over(facts) {
                    let wanted = !went_on && facts.is_left_undone(session.live.left_undone);
                    due.push((key.clone(), wanted.then_some(Ask::Continue)));
                }
            } else if self.config.actions.auto_reconnect && status == Status::PermissionLost && is_over(facts) {
                let since = facts.denials.since().map(|since| since.wall);
                let resends = self.config.actions.resend && offer(Action::Continue, session, status).is_ok();
                let ask = if resends { Ask::Continue } else { Ask::Reconnect { resend: false } };
                if since != self.acting.by_itself.get(key).copied() && offer(action_of(&ask), session, status).is_ok() {
                    due.push((key.clone(), Some(ask)));
                }
            }
        }
        for (key, ask) in due {
            let since = self.fleet.get(&key).and_then(|entry| entry.session().facts.denials.since());
            if let Some(ask) = ask {
                let action = action_of(&ask).name();
                tracing::info!(session = %key.1, action, "it lost its permissions, and its turn is over: done by itself");
                if let Some(since) = since {
                    self.acting.by_itself.insert(key.clone(), since.wall);
                }
                let (reply, _) = mpsc::unbounded_channel();
                self.act(Given { order: Order { id: key.1.clone(), ask }, reply }, round);
            }
            // What is under way knows that it waited; what was refused is not asked again.
            if let Some(folder) = self.fleet.folder(&key).filter(|folder| folder.session.dealings.under_way.is_none()) {
                folder.session.dealings.goes_on = None;
            }
        }
    }
}
