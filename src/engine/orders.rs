//! Orders and what comes of them, as far as the loop has a part in it: which session is meant, whether it may be done now, and
//! what a session's row shows of it.

mod late;
mod unasked;

use super::acting::{Ground, Task, Waiting, excludes};
use super::ledger::{Hold, Locked, Page, Section};
use super::{Engine, Key, Round, reading};
use crate::agent::copilot::server::hosted;
use crate::agent::copilot::store::Folder;
use crate::control::{self, Probe};
use crate::core::action::{Action, Control, is_bridged, may_end_unasked, offer};
use crate::core::attempts::Attempts;
use crate::core::fleet::Session;
use crate::core::order::{Ask, Given, Order, Outcome, Report};
use crate::core::owner::Held;
use late::{For, Late};
use std::path::PathBuf;

/// Orders that are not being carried out, and who else may carry them out.
#[derive(Default)]
pub(super) struct Orders {
    /// Those that wait for something to happen.
    late: Vec<Late>,
    /// The folders in which commands that hold a session serve it.
    pub(super) holders: Vec<PathBuf>,
    /// Called before the first order that may leave a connection with us.
    pub(super) before_holding: Option<Box<dyn FnOnce() + Send>>,
}

impl Section for Attempts {
    const NAME: &'static str = "attempts";
}

/// Whether it is one of the recoveries that are counted.
pub(super) const fn is_attempt(action: Action) -> bool {
    matches!(action, Action::Reconnect | Action::Resend | Action::Continue)
}

/// Whether the turn that an order was given for is still the last.
fn is_its_turn(order: &Order, session: &Session) -> Result<(), String> {
    let is_for_a_turn = matches!(order.ask, Ask::Stop | Ask::LetAnswer | Ask::Continue) && is_bridged(session);
    match (&order.turn, &session.facts.root) {
        (None, Some(_)) if is_for_a_turn => Err("no turn was known when this was asked for".into()),
        (Some(meant), Some(now)) if meant != now => {
            Err("another turn has begun since you asked for this, so nothing was done".into())
        }
        _ => Ok(()),
    }
}

/// Hands an order to the command that holds its session, and what comes of it back.
async fn hand_on(folder: PathBuf, given: Given) {
    let handed = async {
        let mut asked = match control::ask(&folder, &given.order).await {
            Ok(Some(asked)) => asked,
            Ok(None) => return Outcome::Refused("the command that held it has just gone; try again".into()),
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        loop {
            match asked.next().await {
                Ok(Some(Report::End(outcome))) => return outcome,
                Ok(Some(report)) => given.report(report),
                Ok(None) => return Outcome::Unknown,
                Err(error) => return Outcome::Unconfirmed(format!("may have happened: {error}")),
            }
        }
    };
    // Dropped, it takes the order back there as well.
    tokio::select! {
        outcome = handed => given.report(Report::End(outcome)),
        () = given.reply.closed(), if given.lapses => {}
    }
}

impl Engine {
    /// Carries an order out, has it wait, or says why it is refused.
    pub(super) fn act(&mut self, given: Given, round: &mut Round) {
        if given.order.ask == Ask::Said {
            return self.tell_said(&given);
        }
        if given.order.ask == Ask::Listen {
            self.listen_anew(round);
            return given.report(Report::End(Outcome::Done(String::new())));
        }
        self.act_or_wait(given, true, round);
    }

    fn act_or_wait(&mut self, given: Given, may_wait: bool, round: &mut Round) {
        let action = given.order.ask.action();
        if given.is_abandoned() {
            tracing::info!(tag = "dropped", action = action.name(), session = %given.order.id, "whoever asked has gone");
            return;
        }
        let key = match self.find(&given.order, round) {
            Ok(key) => key,
            Err(outcome) => return given.report(Report::End(outcome)),
        };
        let refuse = |why: &str| {
            tracing::info!(tag = "refused", action = action.name(), session = %key.1, "{why}");
            given.report(Report::End(Outcome::Refused(why.into())));
        };
        if excludes(action)
            && let Some(folder) = self.holder_of(&key)
        {
            tokio::spawn(hand_on(folder, given));
            return;
        }
        if let Some(until) = self.bridge_comes_until(&key, action).filter(|_| may_wait) {
            return self.orders.late.push(Late { given, for_what: For::Bridge((*key.1).into()), until });
        }
        if let Err(why) = self.look_before(&key, &given.order, round) {
            let passes = if may_wait { self.what_passes(&key, action) } else { None };
            let Some((for_what, within)) = passes else { return refuse(&why) };
            let until = self.clock.now().awake + within;
            return self.orders.late.push(Late { given, for_what, until });
        }
        // Its folder may have been made anew meanwhile, which forgets what is under way.
        if excludes(action) && self.acting.is_busy(&key) {
            return refuse("something else is still being done with it");
        }
        if !self.acting.has_room(action) {
            self.acting.wait(Waiting { key: key.clone(), given });
            return self.change_control(&key, round, |control| control.under_way = Some(action));
        }
        let hold = match excludes(action).then(|| self.page(&key).try_lock(action.name())).transpose() {
            Ok(hold) => hold,
            Err(Locked::ByAnother(who)) => {
                let who = if who.is_empty() { "another process".into() } else { who };
                return refuse(&format!(
                    "another Pilotlight is doing something with it ({who}); try again when that is over"
                ));
            }
            Err(Locked::Unknown(path, error)) => {
                return refuse(&format!(
                    "it cannot be known whether another Pilotlight is doing something with it: {}: {error}; put that right and try \
                     again",
                    path.display()
                ));
            }
        };
        // Who had the lock until now may have changed everything, and may hold the session.
        if hold.is_some() {
            if let Some(folder) = self.holder_of(&key) {
                drop(hold);
                tokio::spawn(hand_on(folder, given));
                return;
            }
            if let Some(attempts) = self.page(&key).read::<Attempts>()
                && let Some(folder) = self.fleet.folder(&key)
            {
                folder.session.control.attempts = attempts;
            }
            if let Err(why) = self.look_before(&key, &given.order, round) {
                return refuse(&why);
            }
        }
        self.start(&key, given, hold, round);
    }

    /// Looks at a session once more, and whether this may be done with it now: what a menu or a command saw may be over.
    fn look_before(&mut self, key: &Key, order: &Order, round: &mut Round) -> Result<(), String> {
        match order.ask {
            // Where a process is to be signalled, whatever else it may have taken up as well.
            Ask::End { .. } | Ask::ForceQuit => self.look_around(round),
            // Another process may have opened it meanwhile.
            Ask::Reconnect { .. } | Ask::Continue | Ask::Resume => {
                self.look_at_processes();
                self.look_into_now(key, round);
            }
            _ => self.look_into_now(key, round),
        }
        self.fleet.share_owners(self.clock.now(), &mut round.changed);
        self.reach(key);
        let entry = self.fleet.get(key).ok_or("this session no longer exists")?;
        let (action, session) = (order.ask.action(), entry.session());
        if session.held == Held::Soon {
            return Err("its process has just made its lock, and does not hold it yet: try again in a moment".into());
        }
        // Says for how long, which an offer does not.
        self.is_being_opened(key, action, session).map_or(Ok(()), Err)?;
        offer(action, session, entry.verdict.status)?;
        match order.ask {
            Ask::End { confirmed: false } | Ask::ForceQuit => may_end_unasked(session)?,
            _ => {}
        }
        if self.opens_another(session, action).is_some() {
            return Err(
                "its process is just opening another session, which would end as well: try again in a moment".into()
            );
        }
        is_its_turn(order, session)
    }

    /// Where a command serves this session, if one holds it.
    pub(super) fn holder_of(&self, key: &Key) -> Option<PathBuf> {
        if self.orders.holders.is_empty() || self.acting.attached(key).is_some() {
            return None;
        }
        let page = self.page(key);
        let folders = self.orders.holders.iter().map(|folder| folder.join(page.key()));
        folders.into_iter().find(|folder| matches!(control::probe(folder), Ok(Probe::Served)))
    }

    /// The page of a session that all processes of ours share.
    pub(super) fn page(&self, key: &Key) -> Page {
        self.ledger.page(self.homes.home_folder(key), &key.1)
    }

    /// Begins to carry out what may be done now.
    fn start(&mut self, key: &Key, given: Given, hold: Option<Hold>, round: &mut Round) {
        let now = self.clock.now();
        let action = given.order.ask.action();
        // From here on orders for the session come to us, and are not handed on.
        if is_attempt(action)
            && let Some(serve) = self.orders.before_holding.take()
        {
            self.orders.holders.clear();
            serve();
        }
        let (endpoints, way, names) = (self.endpoints_of(key), self.way_to(key), &self.config.owners.names);
        let Some(entry) = self.fleet.get(key) else { return given.report(Report::End(Outcome::Unknown)) };
        let ground = Ground {
            key,
            session: entry.session(),
            status: entry.verdict.status,
            path: entry.path(),
            lock: entry.owners_lock(),
            endpoints,
            way,
            names,
            actions: &self.config.actions,
            now: now.wall,
            hold,
        };
        let marks = entry.session().facts.marks;
        let task = self.acting.start(given, ground);
        let recovers = is_attempt(action);
        self.change_control(key, round, |control| {
            if excludes(action) {
                control.under_way = Some(action);
            }
            // What waited for the end of a turn is the rest of one that was counted.
            if recovers && control.goes_on.is_none() {
                control.attempts.tried(&marks, now.wall);
            }
        });
        if recovers {
            self.keep_attempts(task, key);
        }
    }

    pub(super) fn keep_attempts(&mut self, task: Task, key: &Key) {
        if let Some(folder) = self.fleet.folder(key) {
            self.acting.keep(task, &folder.session.control.attempts);
        }
    }

    /// Whether a task may send what it is about to: whoever asked for it is still there, and so is the turn that it was for.
    pub(super) fn may_send(&mut self, task: Task, round: &mut Round) -> Result<(), String> {
        let Some((key, _)) = self.acting.task(task) else { return Err("it was cancelled; nothing was sent".into()) };
        let resumes = self.acting.resumes(task);
        if resumes {
            self.look_at_processes();
        }
        self.look_into_now(&key, round);
        self.fleet.share_owners(self.clock.now(), &mut round.changed);
        // The server that we started for it is no other process.
        let is_ours = hosted::is_of_our_server;
        let owner = self.fleet.get(&key).and_then(|entry| entry.session().owner.live());
        if let Some(pid) = owner.filter(|pid| resumes && !is_ours(*pid)) {
            return Err(format!("process {pid} has opened it meanwhile; nothing was done"));
        }
        let Some(given) = self.acting.given(task) else { return Err("it was cancelled; nothing was sent".into()) };
        if given.is_abandoned() {
            return Err("the command that asked for it has ended; nothing was sent".into());
        }
        match self.fleet.get(&key) {
            Some(entry) => {
                let session = entry.session();
                self.acting.see(&key, session, entry.verdict.status);
                if self.would_end_another(session, given.order.ask.action()) {
                    return Err(
                        "its process has opened another session, which would end as well: it is signalled no further"
                            .into(),
                    );
                }
                is_its_turn(&given.order, session)
            }
            None => Err("this session no longer exists".into()),
        }
    }

    /// Changes what we have to do with a session, and judges it anew.
    pub(super) fn change_control(&mut self, key: &Key, round: &mut Round, change: impl FnOnce(&mut Control)) {
        if let Some(folder) = self.fleet.folder(key) {
            change(&mut folder.session.control);
        }
        round.redraw = true;
        self.judge(key, round);
    }

    /// The session of this id, read if nothing but its folder was looked at. Where two homes have one (somebody copied a
    /// home), and the order does not say which is meant, it is not guessed.
    fn find(&mut self, order: &Order, round: &mut Round) -> Result<Key, Outcome> {
        let is_meant = |key: &Key| *key.1 == *order.id && order.is_for(self.homes.home_folder(key));
        let mut keys = self.fleet.keys().chain(self.history.iter()).filter(is_meant);
        let key = keys.next().ok_or(Outcome::Unknown)?;
        if keys.next().is_some() {
            let why = "two homes have a session of this id: say which is meant with `pilotlight --home DIR`";
            return Err(Outcome::Refused(why.into()));
        }
        drop(keys);
        if !self.history.contains(&key) {
            return Ok(key);
        }
        let mut folder = Folder::new(self.homes.root(key.0), &key.1);
        self.seen.recall(&mut folder.session);
        let reading = reading(&self.config, &self.owners, &self.processes, self.clock.now());
        folder.look(&reading, &mut self.buffer).map_err(|_| Outcome::Unknown)?;
        folder.read_history(&reading, &mut self.buffer);
        self.hold(&key, folder, round);
        Ok(key)
    }
}
