//! Who has a thread loaded: the process that holds its lock.

use super::Thread;
use crate::codex::Codex;
use crate::codex::daemon;
use crate::codex::lock::{Holder, LOCKS, Lock};
use crate::codex::running;
use crate::codex::target;
use crate::reading::{GRACE, Reading};
use crate::runners::{Runner, identity};
use pilotlight_core::action::Action;
use pilotlight_core::owner::{Doubt, HoldProof, Owner};
use pilotlight_core::session::{Allows, Observed};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_system::process::{self, SLACK, arguments, executable, is_stopped};
use std::borrow::Cow;
use std::path::Path;

/// The oldest release of which it is known that it makes locks.
const LOCKS_SINCE: [u32; 3] = [0, 169, 0];
/// How soon it is looked again whether a log is still open whose thread lost its lock. Twice as late each time.
const RECHECK_AFTER: Span = Span::seconds(1);
/// What can be done with a thread that nobody has loaded.
pub(super) const AT_REST: Allows = Allows::Only {
    actions: Cow::Borrowed(&[Action::Resume]),
    why: Cow::Borrowed("no process runs it: resume it in a terminal"),
};
/// What can be done with a thread that the daemon has loaded.
const SERVED: Allows = Allows::Only {
    actions: Cow::Borrowed(&[
        Action::Approve,
        Action::Deny,
        Action::Stop,
        Action::End,
        Action::ForceQuit,
        Action::Resume,
        Action::ShowTerminal,
    ]),
    why: Cow::Borrowed("Codex's daemon takes only approvals, refusals and stops: use its terminal"),
};
/// What can be done with a thread that has a process of its own.
const ALONE: Allows = Allows::Only {
    actions: Cow::Borrowed(&[Action::End, Action::ForceQuit, Action::Resume, Action::ShowTerminal]),
    why: Cow::Borrowed("it runs without Codex's daemon: use its terminal"),
};

/// A process that holds a thread's lock.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) pid: u32,
    lock: Lock,
    started: Option<Time>,
    /// It serves terminals and editors, and is none itself.
    is_service: bool,
    /// It is not known to run Codex.
    is_foreign: bool,
    /// Whether that it holds the lock is shown by the system.
    is_shown: bool,
    /// The folder it works in.
    pub(super) folder: Option<Box<str>>,
}

impl Thread {
    /// Determines who has the thread loaded.
    pub(super) fn find_owner(&mut self, reading: &Reading<'_>, observed: &mut Observed) {
        self.recheck_at = None;
        let was_open = self.claim.is_some();
        let before = self.claim.as_ref().map(|claim| claim.pid).or(self.stray);
        let holder = self.lock.map(|lock| (lock, self.holder(lock, reading)));
        let (owner, held) = match holder {
            Some((lock, Holder::Process(pid))) => self.claimed(lock, pid, true, reading),
            Some((_, Holder::Hidden)) => (Owner::Unknown { pid: Owner::UNNAMED }, HoldProof::Unverified),
            Some((lock, Holder::Untold)) => match daemon::running(&self.lock_home) {
                Ok(pid) => self.claimed(lock, pid, false, reading),
                Err(_) => (Owner::Never, HoldProof::Unverified),
            },
            Some((lock, Holder::Nobody)) => self.left(lock, reading),
            None => (Owner::Never, HoldProof::Unverified),
        };
        if owner.live().is_none() {
            self.departed = self.claim.take().map(|_| reading.context.now.wall).or(self.departed);
        }
        match self.lock {
            Some(_) => self.closed = None,
            // Of what was closed before, the time is not known.
            None if was_open => self.closed = Some(reading.context.now.wall),
            None => {}
        }
        observed.is_served = self.claim.as_ref().is_some_and(|claim| claim.is_service);
        observed.allows = match (&owner, observed.is_served) {
            (Owner::Alive { .. } | Owner::Opened { .. }, true) => SERVED,
            (Owner::Alive { .. } | Owner::Opened { .. }, false) => ALONE,
            _ => AT_REST,
        };
        observed.holders = owner.live().into_iter().collect();
        observed.is_stopped = owner.live().is_some_and(is_stopped);
        observed.is_foreign = owner.live().is_some() && self.claim.as_ref().is_some_and(|claim| claim.is_foreign);
        (observed.owner, observed.held) = (owner, held);
        self.doubt(before, reading, observed);
    }

    /// Finds its lock: the one that is held, of those in the homes that have its log.
    pub(super) fn find_lock(&mut self, reading: &Reading<'_>) {
        let mut homes = reading.openings.homes_with(&Codex, (self.home(), &self.root), &self.path);
        // One whose holder has ended is looked for where it was.
        homes.extend(self.lock.is_some().then(|| self.lock_home.clone()).filter(|known| !homes.contains(known)));
        let mut locks: Vec<_> = homes.iter().filter_map(|home| Some((Lock::of(home, &self.id)?, home))).collect();
        // Who holds the only one is looked up later.
        if locks.len() > 1 {
            let is_held = |lock: &Lock| !matches!(lock.holder(), Holder::Nobody | Holder::Untold);
            locks.sort_by_cached_key(|(lock, _)| (is_held(lock), lock.loaded));
        }
        self.lock = locks.last().map(|(lock, _)| *lock);
        if let Some((_, home)) = locks.last() {
            self.lock_home.clone_from(home);
        }
        self.homes = homes;
    }

    /// Whether somebody has it loaded although nobody holds a lock of it: where that cannot be excluded, nobody is known to
    /// have left it. `before`: the process that had it loaded when it was last read.
    fn doubt(&mut self, before: Option<u32>, reading: &Reading<'_>, observed: &mut Observed) {
        self.stray = None;
        let (Owner::Never | Owner::Gone { .. }, true) = (&observed.owner, observed.has_log) else { return };
        let runners = || reading.openings.runners(&Codex);
        let log = identity(&self.path);
        let has_open = |runner: &&Runner| {
            let has_lock = runner.claims.contains(&self.id) && runner.shares(&self.root, &self.path);
            has_lock || runner.logs.iter().any(|(id, of)| *id == self.id && Some(*of) == log)
        };
        let found = runners().find(has_open).map(|runner| runner.pid);
        // Its lock may have been deleted by somebody else. Whoever closes a thread deletes the lock first, and has the log open
        // for a moment more.
        let found = found.or_else(|| {
            let pid = before.zip(log).filter(|(pid, log)| running::has_open(*pid, *log)).map(|(pid, _)| pid)?;
            let since = reading.context.now.wall - self.closed.unwrap_or(reading.context.now.wall);
            self.recheck_in(reading, since.max(RECHECK_AFTER));
            Some(pid)
        });
        let found = found.map(|pid| (pid, Doubt::HasOpen));
        // What a lock says of a process that was killed stands.
        let is_claimed = matches!(observed.owner, Owner::Gone { .. });
        let is_stray = |runner: &&Runner| self.is_stray(runner, observed.touched);
        let found = found.or_else(|| {
            runners().filter(|_| !is_claimed).filter(is_stray).min_by_key(|it| it.pid).map(|it| (it.pid, self.why(it)))
        });
        if let Some((pid, why)) = found {
            (self.stray, observed.owner) = (Some(pid), Owner::Doubtful { pid, why });
            return;
        }
        // Whoever had it loaded wrote nothing after that.
        let since = self.closed.max(self.departed);
        let is_later = since.map_or(!is_claimed, |at| observed.touched > at + SLACK);
        let rests_at = reading.rests_at(observed.touched).filter(|_| is_later && self.would_show(reading));
        if let Some(rests_at) = rests_at {
            self.recheck_at = self.recheck_at.into_iter().chain([rests_at]).min();
            observed.owner = Owner::Doubtful { pid: Owner::UNNAMED, why: Doubt::Growing };
        }
    }

    const fn why(&self, runner: &Runner) -> Doubt {
        if runner.named.is_some() { Doubt::Named } else { Doubt::WorksThere }
    }

    /// Whether a process that shows no thread of its own may have this one loaded: it names it, or works in its folder.
    fn is_stray(&self, runner: &Runner, touched: Time) -> bool {
        if runner.is_helper || !runner.claims.is_empty() || !runner.logs.is_empty() {
            return false;
        }
        let works_there = || {
            let cwd = self.head.as_ref().and_then(|head| head.cwd.as_deref()).map(Path::new);
            runner.named.is_none() && runner.may_have_written(touched, |folder| cwd == Some(folder))
        };
        let is_named = runner.named.as_ref().is_some_and(|named| *named == self.id);
        (is_named || works_there()) && runner.shares(&self.root, &self.path)
    }

    /// Who holds the lock. While it is the same file, and its holder lives, that does not change.
    fn holder(&self, lock: Lock, reading: &Reading<'_>) -> Holder {
        match &self.claim {
            Some(claim) if claim.lock == lock && claim.is_shown && reading.known.contains(&claim.pid) => {
                Holder::Process(claim.pid)
            }
            _ => lock.holder(),
        }
    }

    /// The owner, if this process holds the lock.
    fn claimed(&mut self, lock: Lock, pid: u32, is_shown: bool, reading: &Reading<'_>) -> (Owner, HoldProof) {
        let known = self.claim.as_ref().filter(|claim| claim.pid == pid && claim.lock == lock);
        if known.is_none() || !reading.known.contains(&pid) {
            let started = match process::read(pid, reading.context.now.wall) {
                process::PidStatus::Process { started, .. } => started,
                process::PidStatus::Absent => return self.left(lock, reading),
                process::PidStatus::Hidden => return (Owner::Unknown { pid }, HoldProof::Unverified),
            };
            // Any program can lock a file. That it does keeps Codex from the thread, and says nothing of who has it loaded. A
            // process that is ending shows no program any more.
            let is_foreign = !(self.runs_codex)(pid);
            if is_shown && is_foreign && executable(pid).is_some() {
                return (Owner::Unknown { pid }, HoldProof::Unverified);
            }
            let is_service = arguments(pid).is_some_and(|arguments| daemon::serves(&arguments));
            let folder = process::folder_of(pid).and_then(|folder| folder.to_str().map(Box::from));
            self.claim = Some(Claim { pid, lock, started, is_service, is_foreign, is_shown, folder });
        }
        let started = self.claim.as_ref().and_then(|claim| claim.started);
        let held = if is_shown { HoldProof::Verified } else { HoldProof::Unverified };
        (Owner::Alive { pid, started }, held)
    }

    /// The owner, if nobody holds the lock that is still there. A lock is made a moment before it is held.
    fn left(&mut self, lock: Lock, reading: &Reading<'_>) -> (Owner, HoldProof) {
        let age = reading.context.now.wall - lock.loaded;
        if let Some(end) = [GRACE, SLACK].into_iter().find(|end| age < *end && age.0 > -SLACK.0) {
            self.recheck_in(reading, end - age);
        }
        self.departed = self.claim.take().map(|_| reading.context.now.wall).or(self.departed);
        (self.departed(), HoldProof::Unverified)
    }

    /// The owner that ended. No file names it: who comes later does not know it either.
    const fn departed(&self) -> Owner {
        Owner::Gone { pid: Owner::UNNAMED, at: self.departed }
    }

    /// Completes the owner by what the log says: whether anything happened since it loaded the thread. And notes a thread
    /// that was closed, or whose lock somebody else deleted.
    pub(super) fn note_owner(&self, reading: &Reading<'_>, observed: &mut Observed) {
        let (progress, turn) = (observed.facts.progress, &observed.facts.turn);
        let is_untold = self.lock.is_none() && !self.would_show(reading);
        observed.is_untold = is_untold && (turn.is_some() || !reading.is_past(observed.touched));
        match (&observed.owner, self.lock) {
            (&Owner::Alive { pid, .. }, Some(lock)) if progress.is_some_and(|last| last.wall < lock.loaded) => {
                observed.owner = Owner::Opened { pid, started: Some(lock.loaded) };
            }
            // Somebody may have it loaded.
            (Owner::Doubtful { .. }, _) => {}
            (_, None) if is_untold => {}
            // It is closed by deleting its lock.
            (_, None) if turn.is_none() && self.makes_locks() => {
                let now = reading.context.now;
                let last = progress.unwrap_or_default();
                let at = |wall: Time| Moment { wall, awake: now.awake - (now.wall - wall) };
                observed.facts.shut_down = progress.map(|_| self.closed.map_or(last, at));
            }
            // It was not closed so: a process that starts deletes the locks that killed ones left behind. Or its lock was
            // somewhere else.
            (_, None) => observed.owner = self.departed(),
            _ => {}
        }
    }

    /// What shows that its owner owns it, if that runs this thread alone.
    pub(super) fn held(&self, observed: &Observed) -> Option<target::HeldLock> {
        let pid = observed.owner.live().filter(|_| !observed.is_served)?;
        Some(target::HeldLock { home: self.lock_home.clone(), id: self.id.clone(), pid })
    }

    /// Whether it would show that somebody has it loaded: by a lock, which may be in a home that nothing names any more once
    /// its process is gone, or by the files that processes have open.
    fn would_show(&self, reading: &Reading<'_>) -> bool {
        self.makes_locks() || reading.openings.show_all(&Codex)
    }

    /// Whether whoever has it loaded makes a lock, so that the lack of one says something. An older release makes none.
    fn makes_locks(&self) -> bool {
        let has_made = self.departed.is_some() || self.closed.is_some();
        let version = self.head.as_ref().and_then(|head| numbers(&head.version));
        let is_new = version.is_some_and(|version| version >= LOCKS_SINCE);
        (has_made || is_new) && self.homes.iter().any(|home| home.join(LOCKS).is_dir())
    }

    /// Handles a process's exit: it has the thread loaded no longer.
    pub(super) fn note_end(&mut self, observed: &mut Observed, pid: u32, at: Time) {
        if self.claim.as_ref().is_some_and(|claim| claim.pid == pid) {
            self.claim = None;
            self.departed = Some(at);
        }
        observed.holders.retain(|holder| *holder != pid);
        if observed.owner.pid() == Some(pid) && !matches!(observed.owner, Owner::Doubtful { .. }) {
            observed.owner = Owner::Gone { pid, at: Some(at) };
        }
    }
}

/// The three numbers of a version.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split(['.', '-', '+']).map(str::parse);
    Some([parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?])
}
