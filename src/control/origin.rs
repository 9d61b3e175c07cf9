//! Whether a person can be told to have given an order, by where the process comes from that gave it.
//!
//! [`caller`](super::caller) refuses what an agent provably started. A tool that leaves its family (`setsid`, a double
//! fork) and clears its environment shows neither sign. But a process keeps when it started, who leads its session,
//! whether it has a terminal, and its systemd unit, also when its parents have ended. So an order that answers for the
//! user is carried out only if the process that gave it, or what it comes from, cannot be of a tool of the session:
//!
//! - it, or the leader of its session, is older than the session, whose first tool came later;
//! - it was typed into a shell that leads a terminal of its own, and that shell, or what opened its terminal, is older
//!   than the process that runs the session;
//! - it is a tray in which the user clicked, and older than that process;
//! - another user's process started it that is older (`sshd` for a login), or it is in another login session.
//!
//! A session that was resumed is older than the process that runs it. What a tool of an earlier run left behind is older
//! than that process as well, but has no terminal.
//!
//! Everything else is unclear, such as a desktop's shortcut, a timer, or a window that was opened since: the user is
//! asked. The name of a systemd unit proves nothing, because a tool can choose it. Only Linux shows all this.

use crate::core::action::{Operation, Reply};
#[cfg(target_os = "linux")]
use crate::core::session::Kind;
use crate::core::session::Session;
use crate::core::time::Time;

/// Whether an order answers for the user, so that it must be clear that the user gave it.
pub(crate) const fn answers_for_user(operation: &Operation) -> bool {
    matches!(operation, Operation::Approve(_) | Operation::Answer(Reply::Give { .. }) | Operation::LetAnswer)
}

/// Checks that no tool of the session can have started the process `giver`, which gave an order for it. `is_click`: it is
/// a tray in which the user clicked. `allowed`: the settings let scripts answer, and were last changed then, which counts
/// if no tool of the session can have done that. `now` is the wall clock.
///
/// # Errors
/// Why a tool can have, to follow "it".
#[cfg(target_os = "linux")]
pub(crate) fn check(
    giver: u32,
    is_click: bool,
    allowed: Option<Time>,
    session: &Session,
    now: Time,
) -> Result<(), &'static str> {
    use crate::system::process::{group_of, lineage};
    let owner = session.runner().pid();
    let line = lineage(giver, now);
    let started = owner.and_then(|owner| lineage(owner, now).first().map(|owner| owner.at));
    let created = session.observed.about.created;
    // A server may run for days before it creates a session.
    let opened = created.filter(|_| started.is_none() || session.observed.about.kind == Kind::Sdk);
    let since = started.max(opened).unwrap_or(session.observed.touched);
    if allowed.is_some_and(|allowed| allowed < created.unwrap_or(since)) {
        return Ok(());
    }
    let group = group_of(giver);
    linux::judge(&linux::Found {
        line: &line,
        since,
        first: created.map_or(since, |created| created.min(started.unwrap_or(since))),
        group: group.as_deref(),
        owners_group: owner.and_then(group_of).as_deref(),
        is_click,
        runs_script,
    })
}

/// Other systems do not show enough.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn check(
    _giver: u32,
    _is_click: bool,
    _allowed: Option<Time>,
    _session: &Session,
    _now: Time,
) -> Result<(), &'static str> {
    Ok(())
}

/// Whether no tool of the sessions that the process `owner` runs can have started this very process, which listens for
/// their bridges. No setting changes that: a tool can choose the settings of what it starts.
#[cfg(target_os = "linux")]
pub(crate) fn is_listener_of_user(owner: u32) -> bool {
    use crate::system::process::{group_of, lineage};
    let (own, now) = (std::process::id(), crate::system::clock::Clock::start().now().wall);
    let Some(since) = lineage(owner, now).first().map(|owner| owner.at) else { return false };
    linux::judge(&linux::Found {
        line: &lineage(own, now),
        since,
        first: since, // what it is asked to do is judged by session
        group: group_of(own).as_deref(),
        owners_group: group_of(owner).as_deref(),
        is_click: false,
        runs_script,
    })
    .is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) const fn is_listener_of_user(_owner: u32) -> bool {
    true
}

/// Whether a shell was started to run a given command, and not for somebody to type into.
#[cfg(target_os = "linux")]
fn runs_script(pid: u32) -> bool {
    let arguments = crate::system::process::arguments(pid).unwrap_or_default();
    let is_script = |argument: &std::ffi::OsString| {
        let bytes = argument.as_encoded_bytes();
        bytes.starts_with(b"-") && !bytes.starts_with(b"--") && bytes.ends_with(b"c")
    };
    arguments.iter().any(is_script)
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::core::time::Time;
    use crate::system::process::Kin;

    /// What adopts the processes whose parents have ended. What it starts may come from anybody.
    const ADOPTERS: [&str; 6] = ["systemd", "init", "tini", "dumb-init", "docker-init", "catatonit"];
    /// What starts commands at a time that anything of the user may have set.
    const TIMERS: [&str; 4] = ["cron", "crond", "atd", "anacron"];

    /// What is known about the process that gave an order.
    pub(super) struct Found<'a, F: Fn(u32) -> bool> {
        /// The process and its ancestors.
        pub(super) line: &'a [Kin],
        /// What is older is not of a tool of the process that runs the session now.
        pub(super) since: Time,
        /// What is older is of no tool of the session, also before it was resumed.
        pub(super) first: Time,
        /// Its control group.
        pub(super) group: Option<&'a str>,
        /// That of the process that runs the session.
        pub(super) owners_group: Option<&'a str>,
        /// The user clicked in it.
        pub(super) is_click: bool,
        /// Whether a shell was started to run a given command, and not for somebody to type into.
        pub(super) runs_script: F,
    }

    pub(super) fn judge<F: Fn(u32) -> bool>(found: &Found<'_, F>) -> Result<(), &'static str> {
        let Some(giver) = found.line.first() else { return Err("has ended") };
        // Entered from outside of this container: nothing in it can do that.
        if giver.leader == 0 || giver.at < found.first || found.is_click && giver.at < found.since {
            return Ok(());
        }
        let leader = found.line.iter().find(|kin| kin.pid == giver.leader);
        let is_typed = |leader: &Kin| giver.has_terminal && leader.pid != giver.pid && !(found.runs_script)(leader.pid);
        if leader.is_some_and(|leader| leader.at < found.first || leader.at < found.since && is_typed(leader)) {
            return Ok(());
        }
        let is_adopter = |kin: &&Kin| kin.pid == 1 || ADOPTERS.contains(&&*kin.name);
        let family = || found.line.iter().take_while(|kin| !is_adopter(kin));
        if family().any(|kin| TIMERS.contains(&&*kin.name)) {
            return Err("was started by a timer");
        }
        let root = family().last().unwrap_or(giver);
        let has_older_root = root.at < found.since;
        if has_older_root && !root.is_ours {
            return Ok(());
        }
        // `systemd-run` names its units so, and what the user's systemd itself runs may come from anybody.
        let is_known = |unit: &str| !unit.starts_with("run-") && !unit.starts_with("user@");
        let other = found.group.filter(|group| found.owners_group.is_some_and(|owners| owners != *group));
        let unit = other.and_then(|group| group.rsplit('/').next());
        let is_elsewhere = unit.is_some_and(is_known);
        // Only the system makes a login session, and only outside of what the user's systemd runs.
        if unit.is_some_and(|unit| unit.starts_with("session-")) && other.is_some_and(|group| !group.contains("/user@"))
        {
            return Ok(());
        }
        // A tray that the desktop starts, at a login or by its icon, has no terminal.
        if is_elsewhere && found.is_click && !giver.has_terminal {
            return Ok(());
        }
        let Some(leader) = leader.filter(|_| giver.has_terminal) else {
            return Err("has no terminal of an earlier time than the session");
        };
        if !is_typed(leader) {
            return Err("runs in a terminal that was opened for it");
        }
        if has_older_root { Ok(()) } else { Err("runs in a terminal that was opened since the session began") }
    }

    #[cfg(test)]
    mod tests;
}
