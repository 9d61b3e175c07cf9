//! The rule, by what the kernel keeps of the process that gave an order and of its ancestors. Pure.

use pilotlight_core::time::Time;
use pilotlight_system::process::ProcessInfo;

/// What starts commands at a time that anything of the user may have set.
const TIMERS: [&str; 4] = ["cron", "crond", "atd", "anacron"];
/// What lets a user in who has proved who they are, and then runs their shell or command. A desktop's login is none of
/// these: everything in the desktop is below it.
const CONSOLE: [&str; 1] = ["login"];
const REMOTE: [&str; 6] = ["sshd", "sshd-session", "dropbear", "tailscaled", "in.telnetd", "telnetd"];

/// What gave the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A command.
    Command,
    /// A tray, in which the user clicked.
    Tray,
    /// This very process, which listens for bridges.
    Listener,
}

/// What is known about the process that gave an order.
pub(super) struct Found<'a> {
    /// The process and its ancestors.
    pub(super) line: &'a [ProcessInfo],
    /// What is older is not of a tool of the process that runs the session now.
    pub(super) since: Time,
    /// No tool of the session, even before it was resumed, started anything older than this.
    pub(super) first: Time,
    /// Its control group.
    pub(super) group: Option<&'a str>,
    /// That of the process that runs the session.
    pub(super) owners_group: Option<&'a str>,
    pub(super) caller: Caller,
    /// Whether a process is a shell that somebody types into, and that was not started to run a given command.
    pub(super) is_typed_into: &'a dyn Fn(u32) -> bool,
    /// Whether this machine has an ssh connection to itself.
    pub(super) has_ssh_to_itself: &'a dyn Fn() -> bool,
}

pub(super) fn judge(found: &Found<'_>) -> Result<(), &'static str> {
    let Some(caller) = found.line.first() else { return Err("has ended") };
    let is_click = found.caller == Caller::Tray;
    // Entered from outside of this container: nothing in it can do that.
    if caller.leader == 0 || caller.at < found.first || is_click && caller.at < found.since {
        return Ok(());
    }
    if found.line.iter().any(|process| TIMERS.contains(&&*process.name)) {
        return Err("was started by a timer");
    }
    if is_click && is_started_by_desktop(found, caller) {
        return Ok(());
    }
    let Some(at) = found.line.iter().position(|process| process.pid == caller.leader) else {
        return Err("was not started from a shell that you type into");
    };
    let (leader, above) = (&found.line[at], &found.line[at + 1..]);
    // A program that was started from the console, such as a desktop, may start others in its own session.
    if found.caller == Caller::Command && caller.has_terminal && !caller.is_in_foreground {
        return Err("runs in the background of its terminal");
    }
    if leader.parent == 0 && leader.pid != 1 {
        return Ok(()); // entered from outside of this container, with a terminal of its own
    }
    if let Some(is_remote) = login(found, above) {
        return match is_remote && (found.has_ssh_to_itself)() {
            true => Err("came in over ssh while this machine has an ssh connection to itself"),
            false => Ok(()),
        };
    }
    if !caller.has_terminal {
        return Err("has no terminal");
    }
    // `sudo -i` and `su -` run the shell that is typed into, in a terminal of theirs, and no tool makes an older one.
    if !leader.is_ours && leader.at < found.since {
        return Ok(());
    }
    if leader.pid == caller.pid || !(found.is_typed_into)(leader.pid) {
        return Err("runs in a terminal that was opened for it");
    }
    if leader.at < found.since { Ok(()) } else { Err("runs in a shell that was opened after the session began") }
}

/// Whether a session of processes is a login, by what is above its leader; and if so, whether from another machine.
fn login(found: &Found<'_>, above: &[ProcessInfo]) -> Option<bool> {
    let is_remote = |process: &ProcessInfo| REMOTE.contains(&&*process.name);
    let is_login = |process: &ProcessInfo| is_remote(process) || CONSOLE.contains(&&*process.name);
    let parent = above.first().filter(|parent| is_login(parent))?;
    // The user's own part of `sshd` comes first, then what another user runs up to the top. A program can have any name;
    // what runs as another user is none of ours.
    let theirs = above.iter().position(|process| !process.is_ours);
    let is_theirs = theirs.is_some_and(|at| {
        above[..=at].iter().all(is_login) && above[at..].iter().all(|process| !process.is_ours || process.pid == 1)
    });
    (is_theirs || is_login_session(found)).then(|| is_remote(parent))
}

/// Whether it is in another login session than the session: only the system makes one, outside of what the user's
/// systemd runs.
fn is_login_session(found: &Found<'_>) -> bool {
    other_unit(found).is_some_and(|(group, unit)| unit.starts_with("session-") && !group.contains("/user@"))
}

/// Whether a tray was started by the desktop, at a login or by its icon: it has no terminal, and a unit of its own.
fn is_started_by_desktop(found: &Found<'_>, tray: &ProcessInfo) -> bool {
    // `systemd-run` names its units so, and what the user's systemd itself runs may come from anybody.
    let is_known = |unit: &str| !unit.starts_with("run-") && !unit.starts_with("user@");
    let is_elsewhere = !tray.has_terminal && other_unit(found).is_some_and(|(_, unit)| is_known(unit));
    is_elsewhere || is_login_session(found)
}

/// The control group and the systemd unit of the process, if they are not those of the process that runs the session.
fn other_unit<'a>(found: &Found<'a>) -> Option<(&'a str, &'a str)> {
    let group = found.group.filter(|group| found.owners_group.is_some_and(|owners| owners != *group))?;
    Some((group, group.rsplit('/').next()?))
}

#[cfg(test)]
mod tests;
