//! Whether a person can be told to have given an order, by where the process comes from that gave it.
//!
//! [`caller`](super::caller) refuses what an agent provably started. A tool that leaves its family (`setsid`, a double
//! fork) and clears its environment shows neither sign. Nor does one that has another program start something for it: the
//! session bus, a window manager, a server of tmux or Emacs, `systemd --user`, `at`. All of these are older than the
//! session and do what any program of the user asks of them, so that the age of an ancestor proves nothing.
//!
//! So an order that answers for the user is carried out only if the user typed it, or clicked for it:
//!
//! - it was typed into a shell that leads a terminal, or a pane, of its own and is itself older than the process that runs
//!   the session, and it runs in the foreground there;
//! - it was typed or given in a login (`login`, `sshd`), which no program of the user can make from within this machine:
//!   not while this machine has an ssh connection to itself;
//! - it came from outside of this container;
//! - it runs in a window that the tray itself opened at a click ([`opened`](super::opened));
//! - it is a tray in which the user clicked, that is older than that process, or that the desktop started; or any process
//!   that is older than the session itself, whose first tool came later.
//!
//! A session that was resumed is older than the process that runs it. What a tool of an earlier run left behind is older
//! than that process as well, but hardly leads a terminal.
//!
//! Everything else is unclear, such as a desktop's shortcut, a timer, or a window that was opened since: the user is
//! asked. The name of a systemd unit proves nothing, because a tool can choose it. Only Linux shows all this.

use pilotlight_core::action::{Operation, Reply};
use pilotlight_core::session::Kind;
use pilotlight_core::session::Session;
use pilotlight_core::time::Time;

/// Whether an order answers for the user, so that it must be clear that the user gave it.
pub(crate) const fn answers_for_user(operation: &Operation) -> bool {
    operation.approved().is_some() || matches!(operation, Operation::Answer(Reply::Give { .. }) | Operation::LetAnswer)
}

/// When the process started that runs a session now, and when the session was created.
#[cfg(target_os = "linux")]
struct Ages {
    /// No tool of the session's current process started anything older than this.
    since: Time,
    /// What is older is of no tool of the session, also before it was resumed.
    first: Time,
}

#[cfg(target_os = "linux")]
fn ages(session: &Session, now: Time) -> Ages {
    use pilotlight_system::process::lineage;
    let owner = session.runner().pid();
    let started = owner.and_then(|owner| lineage(owner, now).first().map(|owner| owner.at));
    let created = session.observed.about.created;
    // A server may run for days before it creates a session.
    let opened = created.filter(|_| started.is_none() || session.observed.about.kind == Kind::Sdk);
    let since = started.max(opened).unwrap_or(session.observed.touched);
    let first = created.map_or(since, |created| created.min(started.unwrap_or(since)));
    Ages { since, first }
}

/// The process that runs a session, by which programs are told from what a tool of the session can have started.
#[derive(Clone, Copy, Debug)]
pub struct Runner {
    pid: u32,
    /// When the session was created, if its process may have run for days before.
    opened: Option<Time>,
}

impl Runner {
    /// The process that runs this session here, if one is known to.
    pub fn of(session: &Session) -> Option<Self> {
        let opened = session.observed.about.created.filter(|_| session.observed.about.kind == Kind::Sdk);
        Some(Self { pid: session.runner().pid()?, opened })
    }
}

/// Whether a process is too old to have been started by a tool of these runners' sessions. If a start time cannot be read, the
/// answer is no.
#[cfg(target_os = "linux")]
pub fn is_older(pid: u32, runners: &[Runner]) -> bool {
    use pilotlight_system::process::lineage;
    let now = pilotlight_system::clock::Clock::start().now().wall;
    let started = |pid: u32| lineage(pid, now).first().map(|process| process.at);
    let is_younger =
        |runner: &Runner, than: Time| started(runner.pid).is_some_and(|at| than < at.max(runner.opened.unwrap_or(at)));
    started(pid).is_some_and(|than| runners.iter().all(|runner| is_younger(runner, than)))
}

/// Other systems do not show enough.
#[cfg(not(target_os = "linux"))]
pub const fn is_older(_pid: u32, _runners: &[Runner]) -> bool {
    true
}

/// Checks that no tool of the session can have started the process `caller`, which gave an order for it. `is_click`: it is
/// a tray in which the user clicked. `allowed`: the settings let scripts answer, and were last changed then, which counts
/// if no tool of the session can have done that. `now` is the wall clock.
///
/// # Errors
/// Why it may have, to follow "it".
#[cfg(target_os = "linux")]
pub(crate) fn check(
    caller: u32,
    is_click: bool,
    allowed: Option<Time>,
    session: &Session,
    now: Time,
) -> Result<(), &'static str> {
    use linux::Caller;
    use pilotlight_system::process::{group_of, has_ssh_to_itself, lineage};
    let Ages { since, first } = ages(session, now);
    if allowed.is_some_and(|allowed| allowed < session.observed.about.created.unwrap_or(since)) {
        return Ok(());
    }
    if caller == std::process::id() && !is_own_number(caller) {
        return Err("runs in a process namespace of its own");
    }
    linux::judge(&linux::Found {
        line: &lineage(caller, now),
        since,
        first,
        group: group_of(caller).as_deref(),
        owners_group: session.runner().pid().and_then(group_of).as_deref(),
        caller: if is_click { Caller::Tray } else { Caller::Command },
        is_typed_into: &shell::is_typed_into,
        has_ssh_to_itself: &has_ssh_to_itself,
    })
}

/// Other systems do not show enough.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn check(
    _caller: u32,
    _is_click: bool,
    _allowed: Option<Time>,
    _session: &Session,
    _now: Time,
) -> Result<(), &'static str> {
    Ok(())
}

/// Whether `/proc` shows this very process by its own number: in a space of processes of its own (`unshare --pid`), it shows
/// another by that.
#[cfg(target_os = "linux")]
fn is_own_number(own: u32) -> bool {
    std::fs::read_link("/proc/self").is_ok_and(|number| number.to_str() == Some(&*own.to_string()))
}

/// Whether no tool of the sessions that the process `owner` runs can have started this very process, which listens for
/// their bridges. No setting changes that: a tool can choose the settings of what it starts.
#[cfg(target_os = "linux")]
pub fn is_listener_of_user(owner: u32) -> bool {
    use pilotlight_system::process::{group_of, has_ssh_to_itself, lineage};
    let (own, now) = (std::process::id(), pilotlight_system::clock::Clock::start().now().wall);
    let Some(since) = lineage(owner, now).first().map(|owner| owner.at).filter(|_| is_own_number(own)) else {
        return false;
    };
    linux::judge(&linux::Found {
        line: &lineage(own, now),
        since,
        first: since, // what it is asked to do is judged by session
        group: group_of(own).as_deref(),
        owners_group: group_of(owner).as_deref(),
        caller: linux::Caller::Listener,
        is_typed_into: &shell::is_typed_into,
        has_ssh_to_itself: &has_ssh_to_itself,
    })
    .is_ok()
}

#[cfg(not(target_os = "linux"))]
pub const fn is_listener_of_user(_owner: u32) -> bool {
    true
}

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod shell;
