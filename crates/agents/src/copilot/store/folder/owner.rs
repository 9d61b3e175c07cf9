//! Determines a session's owner, from its locks and from the processes that have it open without one.
//!
//! In this order: a lock whose process lives; a process that says itself, in its log or on its command line, that it has the
//! session open; a process that is gone, by a lock that it left or by its own log. Only where none of these says anything, a
//! guess counts: that a terminal which logs nothing opened what its home recorded as opened.

use super::Folder;
use crate::copilot::opened::{OpenScanner, former_owner, left_open};
use crate::copilot::owner::{Claim, Lock, claim_so_far};
use crate::openings::OpenSession;
use crate::reading::Reading;
use crate::tail::ReadContext;
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::{Doubt, HoldProof, Owner};
use pilotlight_core::session::Observed;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_system::file_times::modified;
use pilotlight_system::process::SLACK;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// How long the evidence that a process does not hold a session is valid while the session's folder is unchanged.
/// Checking a process's open files takes longer than everything else that is done for a new line of a log.
const EVIDENCE: Span = Span::seconds(5);

/// Determines a session's current owner from scratch, by its locks and the processes' open sessions. A process that
/// does not hold the session yet does not count as its owner. `root` is the folder that contains the session's folder.
/// A missing session has no owner.
pub(crate) fn owner_now(root: &Path, id: &str, names: &[String], now: Time) -> Owner {
    let openings = OpenScanner::default().scan(&[root.to_owned()], names, now);
    let (limits, known) = (Limits::default(), HashSet::new());
    let reading = Reading {
        context: ReadContext { now: Moment { wall: now, awake: now }, limits: &limits, until: None },
        owner_names: names,
        known: &known,
        openings: &openings,
        all: false,
    };
    let mut folder = Folder::new(root, id);
    let Ok(meta) = fs::symlink_metadata(&folder.path) else { return Owner::Never };
    let _ = folder.list_locks(modified(&meta), &reading); // a folder that cannot be listed counts as one without locks
    let mut observed = Observed::default();
    folder.find_owner(&mut observed, &reading);
    folder.note_log(&mut observed, &meta);
    folder.find_guessed_owner(&mut observed, &reading);
    folder.read_workspace(&mut observed);
    folder.doubt(&mut observed, &reading);
    match observed {
        Observed { owner: Owner::Alive { pid, .. }, held: HoldProof::Pending, .. } => Owner::Unheld { pid },
        Observed { owner, .. } => owner,
    }
}

/// Moves the owner's start time back to an event that was written while it owned the session: where the wall clock
/// was set back since the process started, the event would seem older than its owner.
pub(super) fn cap_owner_start(observed: &mut Observed, before: &Owner, progress: Option<Moment>) {
    if let (Some(new), Owner::Alive { pid, started: Some(started) }) = (observed.facts.progress, &mut observed.owner)
        && matches!(before, Owner::Alive { pid: known, .. } if known == pid)
        && progress.is_none_or(|progress| progress.awake < new.awake)
    {
        *started = new.wall.min(*started);
    }
}

impl Folder {
    /// The process that says that it has the session open, without a lock.
    fn opening<'a>(&self, reading: &Reading<'a>) -> Option<&'a OpenSession> {
        reading.openings.of(self.path.parent()?, self.id())
    }

    /// Chooses the owner among the locks: one with a live owner, else one whose process is unknown, else one whose
    /// process does not hold the session, else the newest of the dead ones'. Without a live or unknown owner among
    /// them, a process that has the session open without a lock is the owner.
    pub(super) fn find_owner(&mut self, observed: &mut Observed, reading: &Reading<'_>) {
        let known = Claim { owner: observed.owner.clone(), held: observed.held };
        self.ended.retain(|(lock, _)| self.locks.contains(lock));
        let mut claims: Vec<_> = self.locks.iter().map(|lock| (self.claim_by(*lock, &known, reading), *lock)).collect();
        let Moment { wall, awake } = reading.context.now;
        let may_change = |claim: &Claim| {
            claim.held != HoldProof::Verified && matches!(claim.owner, Owner::Alive { .. } | Owner::Unheld { .. })
        };
        let recheck_in =
            claims.iter().filter(|(claim, _)| may_change(claim)).filter_map(|(_, lock)| lock.recheck_in(wall));
        self.owner_recheck_at = recheck_in.min().map(|left| awake + left);
        let weight = |owner: &Owner| match owner {
            Owner::Alive { .. } | Owner::Opened { .. } => 4,
            Owner::Unknown { .. } | Owner::Doubtful { .. } => 3,
            Owner::Unheld { .. } => 2,
            Owner::Gone { .. } => 1,
            Owner::Never => 0,
        };
        claims.sort_by_key(|(claim, lock)| (weight(&claim.owner), claim.held, lock.made));
        let holds = |claim: &Claim| match claim.owner {
            // Not yet a holder. Otherwise anyone who plants locks could make the process's other sessions be reported
            // again with each one. Before a process is signalled, `newcomers` is checked as well.
            Owner::Alive { .. } if claim.held == HoldProof::Pending => None,
            Owner::Alive { pid, .. } | Owner::Unknown { pid } => Some(pid),
            Owner::Opened { .. }
            | Owner::Unheld { .. }
            | Owner::Gone { .. }
            | Owner::Doubtful { .. }
            | Owner::Never => None,
        };
        observed.holders = claims.iter().filter_map(|(claim, _)| holds(claim)).collect();
        let newcomer = |claim: &Claim| claim.owner.pid().filter(|_| claim.held == HoldProof::Pending);
        self.newcomers = claims.iter().filter_map(|(claim, _)| newcomer(claim)).collect();
        let is_live = |claim: &Claim| matches!(claim.owner, Owner::Alive { .. }) && claim.held != HoldProof::Pending;
        observed.contested = claims.iter().filter(|(claim, _)| is_live(claim)).count() > 1;
        let unverified = |owner| Claim { owner, held: HoldProof::Unverified };
        let owner = claims.pop().map_or_else(|| unverified(Owner::Never), |(claim, _)| claim);
        let owner = if self.more_locks && !matches!(owner.owner, Owner::Alive { .. }) {
            // The owner's lock may be among those that were not listed.
            unverified(Owner::Unknown { pid: 0 })
        } else {
            owner
        };
        let opening = self.opening(reading);
        self.opened = opening.map(|opening| opening.pid);
        let holders = &mut observed.holders;
        holders.extend(self.opened.filter(|pid| !holders.contains(pid)));
        (observed.owner, observed.held) = match (owner.owner, opening) {
            (Owner::Gone { pid, .. }, Some(opening)) => (opening.owner(Some(pid)), HoldProof::Unverified),
            (Owner::Never | Owner::Unheld { .. }, Some(opening)) => (opening.owner(None), HoldProof::Unverified),
            (known, _) => (known, owner.held),
        };
        let settled = self.owners_lock(observed).filter(|lock| lock.made + SLACK < wall);
        let since = self.claimed.filter(|(lock, at)| Some(*lock) == settled && awake - *at < EVIDENCE);
        self.claimed = settled.map(|lock| (lock, since.map_or(awake, |(_, at)| at)));
    }

    /// Finds the former owner of a session that was not shut down but has no lock: its process may have been killed, and its
    /// lock removed by the next terminal that starts. The process was seen to exit, or its log in the home identifies it.
    pub(super) fn find_former_owner(&mut self, observed: &mut Observed, reading: &Reading<'_>) {
        let now = reading.context.now;
        let Some(last) = observed.facts.progress.filter(|_| observed.facts.shut_down.is_none()) else { return };
        // A session that was silent for longer has ended, whoever its owner was.
        let matters = observed.owner == Owner::Never && now.since(last) <= reading.context.limits.ownerless;
        let Some(home) = self.path.parent().and_then(Path::parent).filter(|_| matters) else { return };
        let seen = self.departed.filter(|(_, at)| *at >= last.wall);
        let (pid, at) = match seen {
            Some((pid, at)) => (pid, Some(at)),
            None => {
                let is_known = |(at, pid, progress): &(Time, Option<u32>, Time)| {
                    now.awake - *at < EVIDENCE || pid.is_some() && *progress == last.wall
                };
                let search = || {
                    let pid = former_owner(home, self.id(), last.wall, reading.owner_names, now.wall);
                    (now.awake, pid, last.wall)
                };
                let (searched, pid, progress) = self.former.filter(is_known).unwrap_or_else(search);
                self.former = Some((searched, pid, progress));
                let Some(pid) = pid.filter(|_| progress == last.wall) else { return };
                (pid, None)
            }
        };
        observed.owner = Owner::Gone { pid, at };
    }

    /// Takes a terminal that may have opened a session of which nothing else is known for its owner. Nothing is guessed
    /// about an entry that an earlier owner explains: it wrote events since, was seen to end, or its log shows that it had
    /// the session open at that time.
    pub(super) fn find_guessed_owner(&mut self, observed: &mut Observed, reading: &Reading<'_>) {
        if observed.owner != Owner::Never {
            return;
        }
        let Some((opening, at)) = self.guess(observed, reading) else { return };
        // Who shut it down recorded nothing afterwards.
        let was_left = observed.facts.shut_down.is_none();
        let (now, home) = (reading.context.now.wall, self.home().filter(|_| was_left));
        if home.is_some_and(|home| left_open(home, self.id(), at, reading.owner_names, now)) {
            return;
        }
        self.opened = Some(opening.pid);
        if !observed.holders.contains(&opening.pid) {
            observed.holders.push(opening.pid);
        }
        (observed.owner, observed.held) = (opening.owner(None), HoldProof::Unverified);
    }

    /// Whether a process may have it open that shows nothing of what it opens, and cannot be asked: then nobody is known to
    /// have left it.
    pub(super) fn doubt(&mut self, observed: &mut Observed, reading: &Reading<'_>) {
        let (Owner::Never | Owner::Gone { .. }, Some(root)) = (&observed.owner, self.path.parent()) else { return };
        let folder = observed.about.cwd.as_deref().map(Path::new);
        if let Some(pid) = reading.openings.mute(root, folder) {
            self.opened = Some(pid);
            observed.owner = Owner::Doubtful { pid, why: Doubt::Mute };
        }
    }

    /// The terminal that may have opened the session since anything was heard of it, and when.
    pub(super) fn guess<'a>(&self, observed: &Observed, reading: &Reading<'a>) -> Option<(&'a OpenSession, Time)> {
        let written = Some(observed.touched).filter(|_| observed.has_log);
        reading.openings.guess(self.path.parent()?, self.id(), written.max(self.released))
    }

    fn claim_by(&self, lock: Lock, known: &Claim, reading: &Reading<'_>) -> Claim {
        if let Some(&(_, at)) = self.ended.iter().find(|(ended, _)| *ended == lock) {
            return Claim { owner: Owner::Gone { pid: lock.pid, at: Some(at) }, held: HoldProof::Unverified };
        }
        let claim = || claim_so_far(lock, &self.path, reading.owner_names, reading.context.now.wall);
        match known.owner {
            // Verified before, and its exit would have been noticed, so a changed clock does not invalidate it. While
            // its lock was new, whether it holds the session may have been unknown.
            Owner::Alive { pid, .. }
                if pid == lock.pid && known.held != HoldProof::Pending && reading.known.contains(&pid) =>
            {
                let settled =
                    known.held == HoldProof::Verified || self.claimed.is_some_and(|(claimed, _)| claimed == lock);
                let is_conclusive =
                    |again: &Claim| again.held != HoldProof::Unverified || matches!(again.owner, Owner::Unheld { .. });
                let again = (!settled).then(claim).filter(is_conclusive);
                again.unwrap_or_else(|| known.clone())
            }
            // Its open files were checked a moment ago. It may begin to hold the session, or execute another program,
            // at any time.
            Owner::Unheld { pid }
                if pid == lock.pid && reading.known.contains(&pid) && self.is_fresh(lock, reading) =>
            {
                known.clone()
            }
            _ => claim(),
        }
    }

    fn is_fresh(&self, lock: Lock, reading: &Reading<'_>) -> bool {
        self.claimed.is_some_and(|(claimed, at)| claimed == lock && reading.context.now.awake - at < EVIDENCE)
    }

    /// The owner's lock.
    pub(crate) fn owners_lock(&self, observed: &Observed) -> Option<Lock> {
        let owner = observed.owner.pid()?;
        self.locks.iter().find(|lock| lock.pid == owner).copied()
    }

    /// Handles a process's exit: the locks that name it have no owner from now on.
    pub(super) fn note_end(&mut self, observed: &mut Observed, pid: u32, at: Time) {
        let ended = self.locks.iter().filter(|lock| lock.pid == pid).map(|lock| (*lock, at));
        self.ended.extend(ended);
        if self.owners_lock(observed).is_some_and(|lock| lock.pid == pid) {
            self.departed = Some((pid, at));
        }
        if self.opened == Some(pid) {
            self.released = Some(at);
        }
        observed.holders.retain(|holder| *holder != pid);
        if observed.owner.pid() == Some(pid) {
            observed.owner = Owner::Gone { pid, at: Some(at) };
        }
    }
}
