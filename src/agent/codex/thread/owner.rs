//! Who has a thread loaded: the process that holds its lock.

use super::Thread;
use crate::agent::codex::daemon;
use crate::agent::codex::door::Door;
use crate::agent::codex::lock::{Holder, LOCKS, Lock};
use crate::agent::evidence::Evidence;
use crate::agent::reading::{GRACE, Reading};
use crate::core::action::Action;
use crate::core::owner::{Held, Owner};
use crate::core::session::{Allows, Observed};
use crate::core::time::{Moment, Time};
use crate::system::process::{self, SLACK, arguments, executable, is_stopped};

/// The oldest release of which it is known that it makes locks.
const LOCKS_SINCE: [u32; 3] = [0, 169, 0];
/// What can be done with a thread that nobody has loaded.
const AT_REST: Allows =
    Allows::Only { actions: &[Action::Resume], why: "no process runs it, and a terminal resumes it" };
/// What can be done with a thread that the daemon has loaded.
const SERVED: Allows = Allows::Only {
    actions: &[
        Action::Approve,
        Action::Deny,
        Action::Stop,
        Action::End,
        Action::ForceQuit,
        Action::Resume,
        Action::ShowTerminal,
    ],
    why: "Codex's daemon takes approvals, refusals and stops, and nothing else: go on in its terminal",
};
/// What can be done with a thread that has a process of its own.
const ALONE: Allows = Allows::Only {
    actions: &[Action::End, Action::ForceQuit, Action::Resume, Action::ShowTerminal],
    why: "it runs without Codex's daemon, and takes nothing but what is typed there: go on in its terminal",
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
        let holder = self.lock.map(|lock| (lock, self.holder(lock, reading)));
        let (owner, held) = match holder {
            Some((lock, Holder::Process(pid))) => self.claimed(lock, pid, true, reading),
            Some((_, Holder::Hidden)) => (Owner::Unknown { pid: Owner::UNNAMED }, Held::Unverified),
            Some((lock, Holder::Untold)) => match daemon::running(self.home()) {
                Ok(pid) => self.claimed(lock, pid, false, reading),
                Err(_) => (Owner::Never, Held::Unverified),
            },
            Some((lock, Holder::Nobody)) => self.left(lock, reading),
            None => (Owner::Never, Held::Unverified),
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
    fn claimed(&mut self, lock: Lock, pid: u32, is_shown: bool, reading: &Reading<'_>) -> (Owner, Held) {
        let known = self.claim.as_ref().filter(|claim| claim.pid == pid && claim.lock == lock);
        if known.is_none() || !reading.known.contains(&pid) {
            let started = match process::read(pid, reading.context.now.wall) {
                process::Reading::Process { started, .. } => started,
                process::Reading::Absent => return self.left(lock, reading),
                process::Reading::Hidden => return (Owner::Unknown { pid }, Held::Unverified),
            };
            // Any program can lock a file. That it does keeps Codex from the thread, and says nothing of who has it loaded. A
            // process that is ending shows no program any more.
            let is_foreign = !(self.runs_codex)(pid);
            if is_shown && is_foreign && executable(pid).is_some() {
                return (Owner::Unknown { pid }, Held::Unverified);
            }
            let is_service = arguments(pid).is_some_and(|arguments| daemon::serves(&arguments));
            let folder = process::folder_of(pid).and_then(|folder| folder.to_str().map(Box::from));
            self.claim = Some(Claim { pid, lock, started, is_service, is_foreign, is_shown, folder });
        }
        let started = self.claim.as_ref().and_then(|claim| claim.started);
        let held = if is_shown { Held::Verified } else { Held::Unverified };
        (Owner::Alive { pid, started }, held)
    }

    /// The owner, if nobody holds the lock that is still there. A lock is made a moment before it is held.
    fn left(&mut self, lock: Lock, reading: &Reading<'_>) -> (Owner, Held) {
        let age = reading.context.now.wall - lock.loaded;
        if let Some(end) = [GRACE, SLACK].into_iter().find(|end| age < *end && age.0 > -SLACK.0) {
            self.recheck_in(reading, end - age);
        }
        self.departed = self.claim.take().map(|_| reading.context.now.wall).or(self.departed);
        (self.departed(), Held::Unverified)
    }

    /// The owner that ended. No file names it: who comes later does not know it either.
    const fn departed(&self) -> Owner {
        Owner::Gone { pid: Owner::UNNAMED, at: self.departed }
    }

    /// Completes the owner by what the log says: whether anything happened since it loaded the thread. And notes a thread
    /// that was closed, or whose lock somebody else deleted.
    pub(super) fn note_owner(&self, reading: &Reading<'_>, observed: &mut Observed) {
        let (progress, turn) = (observed.facts.progress, &observed.facts.turn);
        let is_untold = self.lock.is_none() && !self.makes_locks();
        observed.is_untold = is_untold && (turn.is_some() || !reading.is_past(observed.touched));
        match (&observed.owner, self.lock) {
            (&Owner::Alive { pid, .. }, Some(lock)) if progress.is_some_and(|last| last.wall < lock.loaded) => {
                observed.owner = Owner::Opened { pid, started: Some(lock.loaded) };
            }
            (_, None) if is_untold => {}
            // It is closed by deleting its lock.
            (_, None) if turn.is_none() => {
                let now = reading.context.now;
                let last = progress.unwrap_or_default();
                let at = |wall: Time| Moment { wall, awake: now.awake - (now.wall - wall) };
                observed.facts.shut_down = progress.map(|_| self.closed.map_or(last, at));
            }
            // It was not closed so: a process that starts deletes the locks that killed ones left behind.
            (_, None) => observed.owner = self.departed(),
            _ => {}
        }
    }

    /// The door to its owner, if that is the daemon.
    pub(crate) fn door(&self, observed: &Observed) -> Option<Door> {
        let pid = observed.owner.live().filter(|_| observed.is_served)?;
        let sub_agents = observed.facts.sub_agents.iter().map(|sub_agent| sub_agent.id.clone());
        Door::of(self.home(), pid, [self.id.clone()].into_iter().chain(sub_agents).collect())
    }

    /// What shows that its owner owns it, if that runs this thread alone.
    pub(crate) fn evidence(&self, observed: &Observed) -> Option<Evidence> {
        let pid = observed.owner.live().filter(|_| !observed.is_served)?;
        Some(Evidence::Codex { home: self.home().to_owned(), id: self.id.clone(), pid })
    }

    /// Whether whoever has it loaded makes a lock, so that the lack of one says something. An older release makes none.
    fn makes_locks(&self) -> bool {
        let has_made = self.departed.is_some() || self.closed.is_some();
        let version = self.head.as_ref().and_then(|head| numbers(&head.version));
        let is_new = version.is_some_and(|version| version >= LOCKS_SINCE);
        (has_made || is_new) && self.home().join(LOCKS).is_dir()
    }

    /// Handles a process's exit: it has the thread loaded no longer.
    pub(crate) fn process_ended(&mut self, observed: &mut Observed, pid: u32, at: Time) {
        if self.claim.as_ref().is_some_and(|claim| claim.pid == pid) {
            self.claim = None;
            self.departed = Some(at);
        }
        observed.holders.retain(|holder| *holder != pid);
        if observed.owner.pid() == Some(pid) {
            observed.owner = Owner::Gone { pid, at: Some(at) };
        }
    }
}

/// The three numbers of a version.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split(['.', '-', '+']).map(str::parse);
    Some([parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?])
}
