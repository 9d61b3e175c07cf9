//! Orders before they become tasks: finds the session that is meant, decides whether the order may be carried out now,
//! and shows that in the session's row.
//!
//! Orders come from the menu, a popup, the control socket, or a setting that recovers sessions by itself. A command that
//! finds no tray gives its order to an engine of its own: there is one way in. [`offer`] decides, from the disk as it is
//! right now; the menu, `explain` and JSON have called the same function before. Two limits hold across all our processes,
//! because the one that acts holds the session's lock (`ledger.rs`) and checks once more when it has it: one order at a time
//! for a session (showing its terminal aside), and two recoveries until its user continues. Besides, a process runs at most
//! three recoveries at a time.
//!
//! An order names its session by id, one of a command also by home. A tray that watches only a copy of that home
//! leaves the order to the command. A prompt is sent again only while it is the last one, however long the order waited.

mod automatic;
mod postponed;
mod start;

pub(crate) use postponed::PostponedOrder;

use crate::Engine;
use crate::control::opened::InWindow;
use crate::control::{self, PendingOrder, origin};
use crate::ledger::{LockError, LockGuard};
use crate::parts::settings_file::SettingsFile;
use pilotlight_core::action::{ActionFlag, is_bridged, may_end_without_asking, offer, unproven};
use pilotlight_core::attempts::Attempts;
use pilotlight_core::fleet::Session;
use pilotlight_core::order::{Operation, Order, OrderReport, Outcome, Risk, Which};
use pilotlight_core::owner::HoldProof;
use pilotlight_core::session::Key;
use pilotlight_core::time::Time;
use pilotlight_core::words::refusal::Refusal;
use pilotlight_system::log::{self, private};
use pilotlight_system::note::Note;
use pilotlight_system::paths::canonical;
use pilotlight_system::process::is_stopped;
use postponed::{MayWait, WaitReason};
use std::path::PathBuf;

/// What becomes of an order now.
enum Next {
    /// It waits for this, until then by the awake clock.
    Wait(WaitReason, Time),
    /// Nothing is done, for this reason.
    Refuse(String),
    /// The command that holds the session, and serves it in this folder, carries it out.
    Forward(PathBuf),
    /// It is carried out, with the session's lock if it needs that.
    Start(Option<LockGuard>),
}

/// Reports that nothing is done for an order.
fn refuse(pending: &PendingOrder, why: &str) {
    log::info!(
        tag = "refused",
        action = pending.order.operation.action().name(),
        session = private(&pending.order.id),
        "{}",
        private(&why)
    );
    pending.report(OrderReport::End(Outcome::Refused(why.into())));
}

/// Checks that the turn that an order was given for is still the last.
fn check_turn(order: &Order, session: &Session) -> Result<(), String> {
    let action = order.operation.action();
    // What is sent over a bridge reaches whatever the terminal does now.
    let must_be_known = action.is(ActionFlag::ForTurn) && action.is(ActionFlag::OverBridge) && is_bridged(session);
    match (&order.turn, &session.observed.facts.turn_id) {
        (None, Some(_)) if must_be_known => Err("its turn was unknown when you asked for this: try again".into()),
        (Some(meant), Some(now)) if meant != now => {
            Err("another turn has begun since you asked for this, so nothing was done".into())
        }
        _ => Ok(()),
    }
}

/// The refusal while another Pilotlight has the session's lock, by its note.
fn held_by(note: Option<&Note>) -> String {
    match note {
        Some(Note { process, doing }) if is_stopped(*process) => format!(
            "another Pilotlight is busy with it ({doing} by process {process}), but is stopped: `kill -CONT {process}` continues it"
        ),
        _ => {
            let by = |Note { process, doing }: &Note| format!("{doing} by process {process}");
            let who = note.map_or_else(|| "another process".into(), by);
            format!("another Pilotlight is busy with it ({who}): try again when that is done")
        }
    }
}

/// Forwards an order to the command that holds its session, and its reports back.
async fn forward_order(folder: PathBuf, mut pending: PendingOrder) {
    pending.order.by_command = pending.is_by_command();
    pending.begin(); // whether anything is sent, only the other process knows
    let forwarded = async {
        let mut connection = match control::ask(&folder, &pending.order).await {
            Ok(Some(connection)) => connection,
            Ok(None) => return Outcome::Refused("the command that held it has just gone; try again".into()),
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        let mut is_taken_back = false;
        loop {
            let next = tokio::select! {
                next = connection.next() => next,
                () = pending.taken_back(), if !is_taken_back => {
                    is_taken_back = true;
                    connection.take_back().await;
                    continue;
                }
            };
            match next {
                Ok(Some(OrderReport::End(outcome))) => return outcome,
                Ok(Some(report)) => pending.report(report),
                Ok(None) => return Outcome::Unknown,
                Err(error) => return Outcome::Unconfirmed(format!("may have happened: {error}")),
            }
        }
    };
    // Dropping the connection takes back the forwarded order as well.
    tokio::select! {
        outcome = forwarded => pending.report(OrderReport::End(outcome)),
        () = pending.reply.closed(), if pending.lapses => {}
    }
}

impl Engine {
    /// Starts an order, lets it wait, or reports why it is refused.
    pub(super) fn handle_order(&mut self, mut pending: PendingOrder) {
        match self.windows.find(pending.caller, &pending.order.operation) {
            InWindow::No => {}
            InWindow::Unread if origin::answers_for_user(&pending.order.operation) => {
                return refuse(
                    &pending,
                    "this answer came faster than anyone can read: read what it asks, and answer again",
                );
            }
            InWindow::Unread | InWindow::Yes => pending.is_in_window = true,
        }
        if let Some(host) = pending.order.host.clone() {
            return self.machines().hand_on(&host, pending);
        }
        if let Err(why) = self.check_caller(&pending) {
            return refuse(&pending, &why);
        }
        self.run_or_postpone(pending, MayWait::ForAnything);
    }

    /// Checks that an order which answers for the user can be told to be the user's. If a command's cannot, and it
    /// would approve, the user is asked about that in the session's row and popup.
    fn check_caller(&mut self, pending: &PendingOrder) -> Result<(), String> {
        let operation = &pending.order.operation;
        if !origin::answers_for_user(operation) || pending.is_in_window || pending.is_abandoned() {
            return Ok(());
        }
        let settings = self.disk.settings_file.as_ref().filter(|_| self.world.config.actions.scripts_may_answer);
        let allowed = settings.and_then(SettingsFile::changed);
        // A session that is not known is refused later, with the reason.
        let Ok(key) = self.find_session(&pending.order) else { return Ok(()) };
        let Some(entry) = self.world.fleet.get(&key) else { return Ok(()) };
        let (session, now) = (entry.session(), self.world.now().wall);
        let judged = origin::check(pending.caller, pending.is_click(), allowed, session, now);
        let Err(why) = judged else { return Ok(()) };
        let unclear = format!("a tool of the session may have started this program: it {why}");
        const ALLOWS: &str = "`scripts-may-answer = true` in the settings lets such programs answer sessions that begin after you set it";
        if !pending.is_by_other() {
            return Err(format!(
                "{unclear}. Answer in the session's terminal, in Pilotlight's menu, or in a shell that is older than the session. {ALLOWS}"
            ));
        }
        let requested = match operation.approved() {
            Some(Which::Shown { id, .. }) => Some(id),
            Some(Which::These(ids)) => ids.first(),
            None => None,
        };
        if operation.approved().is_some() {
            let requested = requested.map(|id| id.as_str().into());
            self.world.update_control(&key, |control| control.approval_requested = requested);
        }
        Err(format!(
            "{unclear}. So Pilotlight asks you again: approve or answer in its menu or popup, or in the session's terminal. {ALLOWS}"
        ))
    }

    fn run_or_postpone(&mut self, pending: PendingOrder, may_wait: MayWait) {
        let action = pending.order.operation.action();
        if pending.is_abandoned() {
            log::info!(
                tag = "dropped",
                action = action.name(),
                session = private(&pending.order.id),
                "whoever asked has gone"
            );
            return;
        }
        let key = match self.find_session(&pending.order) {
            Ok(key) => key,
            Err(outcome) => return pending.report(OrderReport::End(outcome)),
        };
        match self.next_of(&key, &pending, may_wait) {
            Next::Refuse(why) => refuse(&pending, &why),
            Next::Forward(folder) => drop(tokio::spawn(forward_order(folder, pending))),
            Next::Wait(waits_for, until) => {
                if let WaitReason::RecoverySlot(_) = waits_for {
                    self.world.update_control(&key, |control| control.under_way = Some(action));
                }
                self.postponed.push(PostponedOrder { pending, waits_for, until });
            }
            Next::Start(guard) => self.start_task(&key, &pending, guard),
        }
    }

    /// Decides what becomes of an order now.
    fn next_of(&mut self, key: &Key, pending: &PendingOrder, may_wait: MayWait) -> Next {
        let is_new = matches!(may_wait, MayWait::ForAnything);
        let action = pending.order.operation.action();
        if !self.disk.may_touch(key) {
            return Next::Refuse("its file system does not answer, so the session's state is unknown".into());
        }
        // What only shows something needs no log.
        if action.excludes_others() {
            if let Some(folder) = self.connections.folder_of_holder(&self.disk, key) {
                return Next::Forward(folder);
            }
            if let Some(until) = self.log_deadline(key, may_wait) {
                return Next::Wait(WaitReason::Log(key.clone(), may_wait), until);
            }
        }
        if let Some(until) = self.bridge_deadline(key, action).filter(|_| is_new) {
            return Next::Wait(WaitReason::Bridge((*key.id).into()), until);
        }
        if let Err(why) = self.recheck_offer(key, &pending.order) {
            let wait = self.reason_to_wait(key, action, may_wait);
            return wait.map_or(Next::Refuse(why), |(waits_for, until)| Next::Wait(waits_for, until));
        }
        if let Some(until) = is_new.then(|| self.activity_deadline(key, action)).flatten() {
            return Next::Wait(WaitReason::Activity(key.clone()), until);
        }
        // Also checked here: if the session's folder was recreated in the meantime, `under_way` is lost.
        if action.excludes_others() && self.connections.tasks.is_busy(key) {
            return Next::Refuse("another action on it is still under way".into());
        }
        if !self.connections.tasks.has_room(action) {
            return Next::Wait(WaitReason::RecoverySlot(key.clone()), Time(i64::MAX));
        }
        if action.excludes_others() { self.next_with_lock(key, &pending.order, may_wait) } else { Next::Start(None) }
    }

    /// Decides what becomes of an order that needs the session's lock, and nothing else any more.
    fn next_with_lock(&mut self, key: &Key, order: &Order, may_wait: MayWait) -> Next {
        let action = order.operation.action();
        let guard = match self.disk.page(key).try_lock(action.name()) {
            Ok(guard) => guard,
            Err(LockError::Taken(who)) => {
                let wait = self.wait_for_lock(action, who.as_ref(), may_wait);
                return wait.map_or_else(
                    || Next::Refuse(held_by(who.as_ref())),
                    |(waits_for, until)| Next::Wait(waits_for, until),
                );
            }
            Err(LockError::Unknown(path, error)) => {
                let of = path.map(|path| format!("{}: ", path.display())).unwrap_or_default();
                return Next::Refuse(format!(
                    "cannot tell whether another Pilotlight is busy with it: {of}{error}; fix that and try \
                     again"
                ));
            }
        };
        // Whoever held the lock until now may have changed everything, and may hold the session.
        if let Some(folder) = self.connections.folder_of_holder(&self.disk, key) {
            return Next::Forward(folder);
        }
        let now = self.world.now().wall;
        if let Some(attempts) = self.disk.page(key).read::<Attempts>()
            && let Some(session) = self.world.fleet.session(key)
        {
            session.control.attempts = attempts.until(now);
        }
        match self.recheck_offer(key, order) {
            Ok(()) => Next::Start(Some(guard)),
            Err(why) => Next::Refuse(why),
        }
    }

    /// Reads a session again and decides whether the order may be carried out now: what a menu or a command saw may be
    /// outdated.
    fn recheck_offer(&mut self, key: &Key, order: &Order) -> Result<(), String> {
        let action = order.operation.action();
        if action.is(ActionFlag::EndsOwner) {
            // Before a process is signalled, everything is read: it may have opened other sessions as well.
            self.disk.rescan_now(&mut self.world);
            self.take_up_disk_changes();
        } else {
            if action.is(ActionFlag::Recovery) {
                // Another process may have opened it in the meantime.
                self.disk.scan_processes_now(&mut self.world);
            }
            self.read_session_now(key);
            if !self.disk.may_touch(key) {
                return Err("its file system has not answered in time; nothing was sent: try again".into());
            }
        }
        self.world.count_shared_owners();
        self.connections.find_server(&mut self.world, &self.disk, key);
        let entry = self.world.fleet.get(key).ok_or("this session no longer exists")?;
        let session = entry.session();
        if session.observed.held == HoldProof::Pending {
            return Err("which process runs it is not clear yet: try again in a moment".into());
        }
        // Checked before the offer because this refusal says how long to wait.
        self.disk.why_not_resumable(&self.world, key, action, session).map_or(Ok(()), Err)?;
        offer(action, session, entry.verdict.status)?;
        if action.is(ActionFlag::EndsOwner)
            && let Some(pid) = unproven(session).filter(|_| !order.agreed.contains(&Risk::OtherProcess))
        {
            return Err(Refusal::Unproven { pid }.into());
        }
        if action.is(ActionFlag::EndsOwner) && order.operation != (Operation::End { confirmed: true }) {
            may_end_without_asking(session)?;
        }
        if self.session_being_opened(session, action).is_some() {
            return Err(
                "its process is just opening another session, which would end as well: try again in a moment".into()
            );
        }
        check_turn(order, session)
    }

    /// The session that an order means, read now if only its folder was checked so far. If two homes have a session
    /// with this id (a home was copied), and the order does not say which one is meant, it is refused.
    fn find_session(&mut self, order: &Order) -> Result<Key, Outcome> {
        let is_meant = |key: &Key| *key.id == *order.id && order.is_for(&canonical(self.disk.homes.home_folder(key)));
        let mut keys = self.world.fleet.keys().chain(self.disk.history.iter()).filter(is_meant);
        let key = keys.next().ok_or(Outcome::Unknown)?;
        if keys.next().is_some() {
            let why = "two homes have a session with this id: name one with `pilotlight --home DIR`";
            return Err(Outcome::Refused(why.into()));
        }
        drop(keys);
        if self.disk.history.contains(&key) {
            self.disk.load(&mut self.world, &key)?;
            self.take_up_disk_changes();
        }
        Ok(key)
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
