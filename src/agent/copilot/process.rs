//! The processes behind the sessions: whose lock is it, when does it end, does its work use CPU.
//!
//! A lock file names a process id, and a process id is a weak name: locks outlive a SIGKILL, ids are handed out anew,
//! another user's process shows little of itself. So an owner is *alive* only when three things hold: the id is in use,
//! its process did not start after the lock was made, and it runs Copilot. It is *gone* when the id is free or provably
//! another program's. Everything between, what cannot be read, is *unknown*, and is never taken for gone: a wrong "gone"
//! shows a crash that never was and offers to start a second owner, which forks the log.
//!
//! Reading and deciding are apart. `platform::read` tells what the system shows of a process; `decide` is pure and
//! holds the rules, so that what no test machine has at hand (another user's process, a container's) is tested too.
//! Linux reads `/proc` itself: twenty locks at start cost a millisecond. macOS and Windows go through `sysinfo`.
//!
//! - [`owner_of`]: the lock's process, now; [`claim`]: whether it really holds the session.
//! - [`Exits`]: tells when a process ends, with no polling.
//! - [`cpu_of_descendants`]: what an owner's tools use, two samples of which say busy or not.
//! - [`listening`]: where a process can be reached.
//! - [`copilot_ancestor`]: whether a process was started by Copilot.
//! - [`terminal_of`]: the terminal that a process runs in.
//! - [`Target`]: an owner that can be signalled, and nobody else instead. Nothing but it ever sends a signal.
//!
//! Nothing here reads the wall clock. An id may change hands between two calls: watch it first and read its owner
//! afterwards, and then no end is missed.

mod ancestry;
mod cpu;
mod exits;
mod hold;
#[cfg(target_os = "linux")]
#[path = "process/linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "process/elsewhere.rs"]
mod platform;
mod ports;
mod programs;
mod target;
mod terminal;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hold::Hold;

use crate::core::owner::{Held, Owner};
use crate::core::time::{Span, Time};

pub use ancestry::{AGENT_MARKS, ancestors, copilot_ancestor};
pub use cpu::CpuSample;
pub(crate) use exits::Exits;
pub use ports::listening;
#[cfg(test)]
pub(crate) use programs::programs;
pub use programs::{Program, Search};
pub use target::{Force, Target};
pub use terminal::terminal_of;

/// How much later than its lock a process may seem to have started and still be the one that made it. Covers the coarse
/// clock of file times (10 ms), whole seconds on macOS and Windows, and small steps of the wall clock.
pub(crate) const SLACK: Span = Span::seconds(2);

/// A lock file `inuse.<pid>.lock`: who says to own the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The process id in the file's name.
    pub pid: u32,
    /// When the lock was made, by the wall clock: the file's modification time.
    pub made: Time,
}

/// Who the lock's process is, now: [`Owner::Alive`], [`Owner::Gone`] (without a time: it was not seen to go) or
/// [`Owner::Unknown`]; never [`Owner::Never`].
///
/// `names` are file names of further executables that count as Copilot, from the config; on Windows with or without
/// `.exe`. `now` is the wall clock, read just before: Linux tells when a process started only as time since boot, and
/// that is counted back from `now`, so a clock that was set by more than [`SLACK`] since the lock was made shifts it.
///
/// A lock that was made in a container names an id of that container, which here is another program's or nobody's: its
/// owner reads as gone.
///
/// Takes 30 to 70 us on Linux (6 us where the process does not exist), some milliseconds elsewhere. Cannot fail: what
/// cannot be read is `Unknown`.
pub(crate) fn owner_of(lock: Lock, names: &[String], now: Time) -> Owner {
    let pid = lock.pid;
    // 0 names no process on any system, nor does a number past `i32::MAX`. This process is not Copilot, whatever its file
    // is called.
    if pid == 0 || i32::try_from(pid).is_err() || pid == std::process::id() {
        return Owner::Gone { pid, at: None };
    }
    decide(lock, platform::read(pid, now), names, || platform::arguments(pid))
}

/// For so long after it made its lock, a process counts as the owner of a session that it does not hold yet: a hundred times
/// as long as Copilot took at worst on a busy machine.
pub const GRACE: Span = Span(250);

impl Lock {
    /// How soon it is to be looked at again whether its process holds the session, of which no event tells: when [`GRACE`] is
    /// over, and once more when [`SLACK`] is. `None` where that is long past, and where the system never tells.
    pub fn tells_in(self, now: Time) -> Option<Span> {
        let age = now - self.made;
        let due = [GRACE, SLACK].into_iter().find(|end| age < *end)?;
        // A lock from the future would never grow old.
        (cfg!(target_os = "linux") && age > Span::ZERO - SLACK).then_some(due - age)
    }

    fn is_new(self, now: Time) -> bool {
        self.tells_in(now).is_some() && now - self.made < GRACE
    }
}

/// What a lock's process is to the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who it is: what [`owner_of`] says, or [`Owner::Unheld`].
    pub owner: Owner,
    /// What shows that it holds the session.
    pub held: Held,
}

/// Who the lock's process is, and whether it really has the session in `folder` open.
///
/// The process that provably holds it is its owner even where it seems to have started after the lock: then the wall clock was
/// set since. One that provably does not is [`Owner::Unheld`]. Where the system tells neither, [`owner_of`] alone decides.
///
/// Takes some 100 us more than [`owner_of`] on Linux.
pub(crate) fn claim(lock: Lock, folder: &Path, names: &[String], now: Time) -> Claim {
    claim_where(lock, folder, names, now, false)
}

/// The same for who looks again when [`Lock::tells_in`] says: Copilot makes its lock, and holds the session a moment later. Until
/// [`GRACE`] is over, the lock's process counts as the owner, [`Held::Soon`].
pub fn claim_so_far(lock: Lock, folder: &Path, names: &[String], now: Time) -> Claim {
    claim_where(lock, folder, names, now, lock.is_new(now))
}

fn claim_where(lock: Lock, folder: &Path, names: &[String], now: Time, may_come: bool) -> Claim {
    let owner = owner_of(lock, names, now);
    let (pid, known) = (lock.pid, |owner, held| Claim { owner, held });
    match owner {
        Owner::Alive { .. } => match hold::of(lock.pid, folder) {
            Hold::Held => known(owner, Held::Seen),
            Hold::Home | Hold::Untold => known(owner, Held::Untold),
            // The user says that this is a Copilot, and perhaps none that we know.
            Hold::Nothing if !is_copilot(pid, &[]) => known(owner, Held::Untold),
            Hold::Nothing | Hold::Elsewhere if may_come => known(owner, Held::Soon),
            Hold::Nothing | Hold::Elsewhere => known(Owner::Unheld { pid }, Held::Untold),
            Hold::Hidden => known(Owner::Unknown { pid }, Held::Untold),
        },
        Owner::Gone { .. } if hold::of(pid, folder) == Hold::Held => {
            let owner = owner_of(Lock { made: now, ..lock }, names, now);
            let held = if matches!(owner, Owner::Alive { .. }) { Held::Seen } else { Held::Untold };
            known(owner, held)
        }
        owner => known(owner, Held::Untold),
    }
}

/// CPU time used so far by each descendant of `pid`: its children, their children and so on, not the process itself.
/// `None` where the process does not exist or cannot be read.
///
/// Costs some 35 us a descendant on Linux, a listing of all processes elsewhere: for when a deadline asks, not for every
/// event. A process that was handed to init when its parent ended is no descendant any more.
pub(crate) fn cpu_of_descendants(pid: u32) -> Option<CpuSample> {
    platform::descendants(pid)
}

/// Whether the process is of the user that we run as. `false` where that cannot be read, and where there is none.
pub fn is_of_our_user(pid: u32) -> bool {
    platform::is_of_our_user(pid)
}

/// Whether a process was killed, or ends by itself, and is not quite gone yet. While its first thread has ended and others have
/// not, it shows no executable, and the owner of its lock is unknown. Only Linux tells.
pub(crate) fn is_ending(pid: u32) -> bool {
    platform::is_ending(pid)
}

/// Whether a process is gone for good. `now` is the wall clock.
pub(crate) fn is_gone(pid: u32, now: Time) -> bool {
    platform::read(pid, now) == Reading::Absent
}

/// The program that a process runs. `None` where it cannot be read.
pub(crate) fn executable(pid: u32) -> Option<PathBuf> {
    platform::executable(pid)
}

/// The command line of a process, and behind it the real paths of its scripts. `None` where it cannot be read.
pub(crate) fn arguments(pid: u32) -> Option<Vec<OsString>> {
    platform::arguments(pid)
}

/// Whether a process that runs in a container has this id there. Only Linux tells, and only of containers on this machine.
pub(crate) fn is_inside_container(pid: u32) -> bool {
    platform::is_inside_container(pid)
}

/// What the system shows of a process id.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reading {
    /// No process has the id (a zombie's and a thread's id count as free), or it has ended for good.
    Absent,
    /// The id is in use, and that is all that is shown.
    Hidden,
    /// A process, and what of it can be read.
    Process {
        /// When it started, by the wall clock.
        started: Option<Time>,
        /// The path of its executable, or its file name alone.
        executable: Option<PathBuf>,
    },
}

/// The rules: what a reading makes of the lock's process. `arguments` is asked only of a node, for its command line with
/// the resolved paths of its scripts; `None` where that cannot be read.
fn decide(lock: Lock, reading: Reading, names: &[String], arguments: impl FnOnce() -> Option<Vec<OsString>>) -> Owner {
    let pid = lock.pid;
    let gone = Owner::Gone { pid, at: None };
    let unknown = Owner::Unknown { pid };
    let (started, executable) = match reading {
        Reading::Absent => return gone,
        Reading::Hidden => return unknown,
        Reading::Process { started, executable } => (started, executable),
    };
    // Whatever it runs, it did not make this lock.
    if started.is_some_and(|started| started > lock.made + SLACK) {
        return gone;
    }
    let Some(runs_copilot) = executable.and_then(|path| runs_copilot(&path, names, arguments)) else { return unknown };
    match (runs_copilot, started) {
        (false, _) => gone,
        (true, Some(_)) => Owner::Alive { pid, started },
        (true, None) => unknown, // a Copilot, but perhaps a later one with the same id
    }
}

/// Whether a process that runs this executable is Copilot; `None` where it is a node whose arguments cannot be read.
fn runs_copilot(
    executable: &Path,
    names: &[String],
    arguments: impl FnOnce() -> Option<Vec<OsString>>,
) -> Option<bool> {
    let name = executable.file_name()?;
    if is_named(name, "copilot") || names.iter().any(|other| is_named(name, other)) {
        Some(true)
    } else if is_named(name, "node") || is_named(name, "nodejs") {
        Some(arguments()?.iter().any(|argument| names_the_package(argument)))
    } else {
        Some(false)
    }
}

/// Whether the process, now, provably is Copilot.
fn is_copilot(pid: u32, names: &[String]) -> bool {
    let executable = platform::executable(pid);
    executable.and_then(|path| runs_copilot(&path, names, || platform::arguments(pid))) == Some(true)
}

/// Whether an executable's file name is `wanted`: to the letter on Linux, without regard to case elsewhere, and on Windows
/// to `.exe` neither.
fn is_named(name: &OsStr, wanted: &str) -> bool {
    #[cfg(target_os = "linux")]
    return name == wanted;
    #[cfg(not(target_os = "linux"))]
    {
        let bare = |name: &str| {
            let name = name.to_ascii_lowercase();
            let suffix = if cfg!(windows) { ".exe" } else { "" };
            name.strip_suffix(suffix).map_or(name.clone(), str::to_owned)
        };
        bare(&name.to_string_lossy()) == bare(wanted)
    }
}

/// Whether an argument has `@github/copilot` among its path's components: `.../node_modules/@github/copilot/index.js`, but
/// not `@github/copilot-language-server`.
fn names_the_package(argument: &OsStr) -> bool {
    let is_separator = |byte: &u8| *byte == b'/' || (cfg!(windows) && *byte == b'\\');
    let mut parts = argument.as_encoded_bytes().split(is_separator).filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        if part == b"@github" && parts.peek() == Some(&&b"copilot"[..]) {
            return true;
        }
    }
    false
}

/// `arguments` and, behind them, the real paths of those among the first that may be the script: npm installs the command
/// as a link (`/usr/bin/copilot`), and node shows the link's path. `folder` is the process's working directory, where
/// known.
fn with_real_scripts(mut arguments: Vec<OsString>, folder: Option<&Path>) -> Vec<OsString> {
    /// The script is the first argument that is no option, but an option's value (`--require x`) may stand before it.
    const CANDIDATES: usize = 3;
    let resolved: Vec<OsString> = arguments
        .iter()
        .skip(1)
        .filter(|argument| !argument.as_encoded_bytes().starts_with(b"-"))
        .take(CANDIDATES)
        .filter_map(|argument| {
            let path = folder.map_or_else(|| PathBuf::from(argument), |folder| folder.join(argument));
            path.is_absolute().then(|| path.canonicalize().ok()).flatten().map(PathBuf::into_os_string)
        })
        .collect();
    arguments.extend(resolved);
    arguments
}
