//! Who owns a session: what its locks claim, and who has it open without one.

use super::{Folder, Reading, modified};
use crate::agent::copilot::opened::{Openers, Opening, former_owner};
use crate::agent::copilot::owner::{Claim, Lock, claim_so_far};
use crate::agent::copilot::tail::Look;
use crate::core::fleet::Session;
use crate::core::limits::Limits;
use crate::core::owner::{Held, Owner};
use crate::core::time::{Moment, Span, Time};
use crate::system::process::SLACK;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// For so long it is believed that a process does not hold a session, where nothing was written to the session's folder since:
/// to look at what a process has open takes longer than all else that a line of a log asks for.
const EVIDENCE: Span = Span::seconds(5);

/// Who owns a session now, looked up afresh: by its locks, and by what processes have open. Who does not hold it yet does not own
/// it. `root` is the folder that its folder is in. A session that is not there is nobody's.
pub(crate) fn owner_now(root: &Path, id: &str, names: &[String], now: Time) -> Owner {
    let openings = Openers::default().look(&[root.to_owned()], names, now);
    let (limits, known) = (Limits::default(), HashSet::new());
    let reading = Reading {
        look: Look { now: Moment { wall: now, awake: now }, limits: &limits, until: None },
        owner_names: names,
        known: &known,
        openings: &openings,
        all: false,
    };
    let mut folder = Folder::new(root, id);
    let Ok(meta) = fs::symlink_metadata(&folder.path) else { return Owner::Never };
    let _ = folder.locks_in_folder(modified(&meta), &reading); // one that cannot be listed has no locks to read
    folder.find_owner(&reading);
    match folder.session {
        Session { owner: Owner::Alive { pid, .. }, held: Held::Soon, .. } => Owner::Unheld { pid },
        Session { owner, .. } => owner,
    }
}

impl Folder {
    /// The process that has it open without a lock.
    fn opening<'a>(&self, reading: &Reading<'a>) -> Option<&'a Opening> {
        reading.openings.of(self.path.parent()?, &self.session.id)
    }

    /// What is written while a process owns the session is no older than the process, though the clock on the wall was set
    /// back since that started.
    pub(super) fn witness(&mut self, before: &Owner, progress: Option<Moment>) {
        if let (Some(new), Owner::Alive { pid, started: Some(started) }) =
            (self.session.facts.progress, &mut self.session.owner)
            && matches!(before, Owner::Alive { pid: known, .. } if known == pid)
            && progress.is_none_or(|progress| progress.awake < new.awake)
        {
            *started = new.wall.min(*started);
        }
    }

    /// Decides among the locks: the live one, else one that cannot be read, else one that somebody else's process is named by,
    /// else the last to go. Only where none of them lives, a process that has the session open without a lock is its owner.
    pub(super) fn find_owner(&mut self, reading: &Reading<'_>) {
        let known = Claim { owner: self.session.owner.clone(), held: self.session.held };
        self.ended.retain(|(lock, _)| self.locks.contains(lock));
        let mut claims: Vec<_> = self.locks.iter().map(|lock| (self.claim_by(*lock, &known, reading), *lock)).collect();
        let Moment { wall, awake } = reading.look.now;
        let may_tell = |claim: &Claim| {
            claim.held != Held::Seen && matches!(claim.owner, Owner::Alive { .. } | Owner::Unheld { .. })
        };
        let tells_in = claims.iter().filter(|(claim, _)| may_tell(claim)).filter_map(|(_, lock)| lock.tells_in(wall));
        self.tells_at = tells_in.min().map(|left| awake + left);
        let weight = |owner: &Owner| match owner {
            Owner::Alive { .. } | Owner::Opened { .. } => 4,
            Owner::Unknown { .. } => 3,
            Owner::Unheld { .. } => 2,
            Owner::Gone { .. } => 1,
            Owner::Never => 0,
        };
        claims.sort_by_key(|(claim, lock)| (weight(&claim.owner), claim.held, lock.made));
        let holds = |claim: &Claim| match claim.owner {
            // Not yet: or else who plants locks would have the process's other sessions told anew with each of them. Who signals
            // a process asks for `newcomers` as well.
            Owner::Alive { .. } if claim.held == Held::Soon => None,
            Owner::Alive { pid, .. } | Owner::Unknown { pid } => Some(pid),
            Owner::Opened { .. } | Owner::Unheld { .. } | Owner::Gone { .. } | Owner::Never => None,
        };
        self.session.holders = claims.iter().filter_map(|(claim, _)| holds(claim)).collect();
        let comes = |claim: &Claim| claim.owner.pid().filter(|_| claim.held == Held::Soon);
        self.newcomers = claims.iter().filter_map(|(claim, _)| comes(claim)).collect();
        let is_live = |claim: &Claim| matches!(claim.owner, Owner::Alive { .. }) && claim.held != Held::Soon;
        self.session.contested = claims.iter().filter(|(claim, _)| is_live(claim)).count() > 1;
        let untold = |owner| Claim { owner, held: Held::Untold };
        let owner = claims.pop().map_or_else(|| untold(Owner::Never), |(claim, _)| claim);
        let owner = if self.more_locks && !matches!(owner.owner, Owner::Alive { .. }) {
            // Its lock may be among those that were not looked at: who that is, nobody knows.
            untold(Owner::Unknown { pid: 0 })
        } else {
            owner
        };
        let opening = self.opening(reading);
        self.opened = opening.map(|opening| opening.pid);
        let holders = &mut self.session.holders;
        holders.extend(self.opened.filter(|pid| !holders.contains(pid)));
        (self.session.owner, self.session.held) = match (owner.owner, opening) {
            (Owner::Never | Owner::Gone { .. } | Owner::Unheld { .. }, Some(opening)) => {
                (opening.owner(), Held::Untold)
            }
            (known, _) => (known, owner.held),
        };
        let settled = self.owners_lock().filter(|lock| lock.made + SLACK < wall);
        let since = self.claimed.filter(|(lock, at)| Some(*lock) == settled && awake - *at < EVIDENCE);
        self.claimed = settled.map(|lock| (lock, since.map_or(awake, |(_, at)| at)));
    }

    /// A session in the middle of something, without a lock: its process may have been killed, and its lock cleaned away. Who that was
    /// we remember, or its log in the home tells.
    pub(super) fn find_former_owner(&mut self, reading: &Reading<'_>) {
        let (session, now) = (&self.session, reading.look.now);
        let is_open = session.facts.turn.is_some() || !session.facts.requests.is_empty();
        let Some(last) = session.facts.progress.filter(|_| is_open && session.facts.shut_down.is_none()) else {
            return;
        };
        // Beyond that it counts as ended, whoever it was.
        let matters = session.owner == Owner::Never && now.since(last) <= reading.look.limits.ownerless;
        let Some(home) = self.path.parent().and_then(Path::parent).filter(|_| matters) else { return };
        let seen = self.departed.filter(|(_, at)| *at >= last.wall);
        let (pid, at) = match seen {
            Some((pid, at)) => (pid, Some(at)),
            None => {
                let is_known = |(at, pid, progress): &(Time, Option<u32>, Time)| {
                    now.awake - *at < EVIDENCE || pid.is_some() && *progress == last.wall
                };
                let search = || {
                    let pid = former_owner(home, &session.id, last.wall, reading.owner_names, now.wall);
                    (now.awake, pid, last.wall)
                };
                let (searched, pid, progress) = self.former.filter(is_known).unwrap_or_else(search);
                self.former = Some((searched, pid, progress));
                let Some(pid) = pid.filter(|_| progress == last.wall) else { return };
                (pid, None)
            }
        };
        self.session.owner = Owner::Gone { pid, at };
    }

    fn claim_by(&self, lock: Lock, known: &Claim, reading: &Reading<'_>) -> Claim {
        if let Some(&(_, at)) = self.ended.iter().find(|(ended, _)| *ended == lock) {
            return Claim { owner: Owner::Gone { pid: lock.pid, at: Some(at) }, held: Held::Untold };
        }
        let claim = || claim_so_far(lock, &self.path, reading.owner_names, reading.look.now.wall);
        match known.owner {
            // Verified once, and its end would have been told: a clock that was set cannot unmake it. Whether it holds the
            // session may not have shown yet when its lock was new.
            Owner::Alive { pid, .. } if pid == lock.pid && known.held != Held::Soon && reading.known.contains(&pid) => {
                let settled = known.held == Held::Seen || self.claimed.is_some_and(|(claimed, _)| claimed == lock);
                let tells = |again: &Claim| again.held != Held::Untold || matches!(again.owner, Owner::Unheld { .. });
                let again = (!settled).then(claim).filter(tells);
                again.unwrap_or_else(|| known.clone())
            }
            // What it has open was looked at a moment ago. It may come to hold the session, or run another program, at any time.
            Owner::Unheld { pid }
                if pid == lock.pid && reading.known.contains(&pid) && self.is_fresh(lock, reading) =>
            {
                known.clone()
            }
            _ => claim(),
        }
    }

    fn is_fresh(&self, lock: Lock, reading: &Reading<'_>) -> bool {
        self.claimed.is_some_and(|(claimed, at)| claimed == lock && reading.look.now.awake - at < EVIDENCE)
    }

    /// The processes that have just made their lock, and do not hold the session yet.
    pub(crate) fn newcomers(&self) -> &[u32] {
        &self.newcomers
    }

    /// When, by the awake clock, it is to be looked at again, though nothing may have happened: a lock of it was too new to tell
    /// who holds it.
    pub(crate) const fn tells_at(&self) -> Option<Time> {
        self.tells_at
    }

    /// The lock of its owner.
    pub(crate) fn owners_lock(&self) -> Option<Lock> {
        let owner = self.session.owner.pid()?;
        self.locks.iter().find(|lock| lock.pid == owner).copied()
    }

    /// The processes named by the locks, and the one that has it open without.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> {
        self.locks.iter().map(|lock| lock.pid).chain(self.opened)
    }

    /// A process ended: locks that name it have no owner from now on.
    pub(crate) fn process_ended(&mut self, pid: u32, at: Time) {
        let ended = self.locks.iter().filter(|lock| lock.pid == pid).map(|lock| (*lock, at));
        self.ended.extend(ended);
        if self.owners_lock().is_some_and(|lock| lock.pid == pid) {
            self.departed = Some((pid, at));
        }
        self.session.holders.retain(|holder| *holder != pid);
        if self.session.owner.pid() == Some(pid) {
            self.session.owner = Owner::Gone { pid, at: Some(at) };
        }
    }
}
