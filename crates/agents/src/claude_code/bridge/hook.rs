//! `pilotlight hook claude-code`: the process that Claude Code starts when it asks its user for a permission.
//!
//! It hands the request to the tray, and prints the tray's answer. If there is any doubt, it ends at once, silently and
//! with 0: then the dialog in the terminal decides, as it does while this waits. It keeps nothing of its environment,
//! writes no file, and starts nothing.
//!
//! A sub-agent's dialog appears only once this has ended, so that it waits no longer than [`HELD_MAX`] for such a request.

use super::EVENT;
use super::wire::{FromHook, Header, INPUT_MAX, SOCKET, ToHook, VERSION};
use crate::claude_code::pid_file;
use crate::claude_code::running::{HOME, HOME_VARIABLE};
use pilotlight_core::scan::Scan;
use pilotlight_system::clock::Clock;
use pilotlight_system::paths::{project, runtime_folders, user_home};
#[cfg(target_os = "linux")]
use pilotlight_system::process::executable;
use pilotlight_system::runtime::Runtime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, FileType, statat};
#[cfg(target_os = "linux")]
use rustix::net::sockopt::socket_peercred;
use rustix::process::{geteuid, getppid};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long Claude Code may take to hand over what it asks, and the tray to take it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the tray may take to say that it holds a sub-agent's request.
const HOLDS_WITHIN: Duration = Duration::from_millis(500);
/// The longest time that a sub-agent's request is held, and a moment more.
const HELD_MAX: Duration = Duration::from_secs(16);
/// Says whether somebody is at the session's terminal.
const ATTENDED: &str = "CLAUDE_CODE_SESSION_ATTENDED";

/// What is looked at of a hook's input.
#[derive(Debug, Default, PartialEq, Eq)]
struct Glance {
    asks: bool,
    is_sub_agents: bool,
}

/// Hands over what is asked, and prints the answer if there is one. `None` if there is none.
pub fn run() -> Option<()> {
    let began = Clock::start().now().wall;
    let input = read_input()?;
    let glance = Glance::of(&input);
    if !glance.asks || !(is_attended() || is_background()) {
        return None;
    }
    let folders = project().as_ref().map(runtime_folders)?;
    let mut tray = folders.iter().find_map(|folder| connect(folder))?;
    let mut header = serde_json::to_vec(&Header { v: VERSION, length: input.len(), at: began.0 }).ok()?;
    header.push(b'\n');
    tray.write_all(&header).and_then(|()| tray.write_all(&input)).ok()?;
    drop(input);
    let output = wait(&mut tray, glance.is_sub_agents)?;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&output).and_then(|()| stdout.flush()).ok()?;
    let mut printed = serde_json::to_vec(&FromHook::Printed).ok()?;
    printed.push(b'\n');
    tray.write_all(&printed).ok()
}

/// Reads all of standard input. `None` if it is too long, or does not end.
fn read_input() -> Option<Vec<u8>> {
    let (mut stdin, until) = (std::io::stdin().lock(), Instant::now() + PATIENCE);
    let (mut input, mut buffer, mut length) = (Vec::new(), [0; 16 << 10], 0);
    loop {
        poll_until(&mut [PollFd::new(&std::io::stdin(), PollFlags::IN)], Some(until)).filter(|ready| *ready > 0)?;
        match stdin.read(&mut buffer).ok()? {
            0 => break,
            n => {
                length += n;
                // What is too long is read to its end: who writes it may fail otherwise.
                if length <= INPUT_MAX {
                    input.extend_from_slice(&buffer[..n]);
                }
            }
        }
    }
    (length <= INPUT_MAX).then_some(input)
}

impl Glance {
    fn of(json: &[u8]) -> Self {
        let mut glance = Self::default();
        let read = Scan::new(json).object(|key, value| {
            match key {
                b"hook_event_name" => glance.asks = value.text()?.is_some_and(|name| name.0 == EVENT.as_bytes()),
                b"agent_id" => glance.is_sub_agents = value.text()?.is_some(),
                _ => value.skip()?,
            }
            Ok(())
        });
        if read.is_ok() { glance } else { Self::default() }
    }
}

fn is_attended() -> bool {
    std::env::var_os(ATTENDED).is_none_or(|attended| attended != "0")
}

/// Whether the session runs in the background, where its user may be called: not in a script (`-p`), which a silent hook
/// lets go on.
fn is_background() -> bool {
    let named = std::env::var_os(HOME_VARIABLE).map(PathBuf::from);
    let home = named.or_else(|| user_home().map(|home| home.join(HOME)));
    let parent = getppid().and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok());
    home.zip(parent).and_then(|(home, pid)| pid_file::read(&home, pid)).is_some_and(|file| file.is_background)
}

/// Connects to the tray whose socket is in this folder: if both are ours alone, and it runs this very program.
fn connect(folder: &Path) -> Option<UnixStream> {
    Runtime::open(folder).ok()??;
    let path = folder.join(SOCKET);
    let meta = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(meta.st_mode) != FileType::Socket || meta.st_uid != geteuid().as_raw() {
        return None;
    }
    let tray = UnixStream::connect(path).ok()?;
    tray.set_write_timeout(Some(PATIENCE)).ok()?;
    is_tray(&tray).then_some(tray)
}

/// Whether the other end is of our user, and runs this program.
#[cfg(target_os = "linux")]
fn is_tray(tray: &UnixStream) -> bool {
    let Ok(peer) = socket_peercred(tray) else { return false };
    let its = u32::try_from(peer.pid.as_raw_nonzero().get()).ok().and_then(executable);
    peer.uid == geteuid() && its.is_some_and(|its| executable(std::process::id()) == Some(its))
}

/// Whether the other end is of our user: its socket is. Other systems do not show more in one way.
#[cfg(not(target_os = "linux"))]
const fn is_tray(_tray: &UnixStream) -> bool {
    true
}

/// Waits for the answer. `None` if the tray lets this go, or the session has ended.
fn wait(tray: &mut UnixStream, is_sub_agents: bool) -> Option<Vec<u8>> {
    let mut until = is_sub_agents.then(|| Instant::now() + HOLDS_WITHIN);
    let (mut line, mut buffer) = (Vec::new(), [0; 4 << 10]);
    loop {
        let stdout = std::io::stdout();
        // Nothing is read from there: that its other end is gone is told unasked.
        let mut ends =
            [PollFd::from_borrowed_fd(tray.as_fd(), PollFlags::IN), PollFd::new(&stdout, PollFlags::empty())];
        poll_until(&mut ends, until).filter(|ready| *ready > 0)?;
        if !ends[1].revents().is_empty() {
            return None;
        }
        let read = tray.read(&mut buffer).ok().filter(|read| *read > 0)?;
        line.extend_from_slice(&buffer[..read]);
        if line.len() > INPUT_MAX * 2 {
            return None;
        }
        while let Some(end) = memchr::memchr(b'\n', &line) {
            match serde_json::from_slice(&line[..end]).ok()? {
                ToHook::Hold => until = until.map(|_| Instant::now() + HELD_MAX),
                ToHook::Answer { output } => return serde_json::to_vec(&output).ok(),
            }
            line.drain(..=end);
        }
    }
}

/// Waits for one of these until then. Returns how many are ready.
fn poll_until(ends: &mut [PollFd<'_>], until: Option<Instant>) -> Option<usize> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(ends, left.as_ref()) {
            Ok(ready) => return Some(ready),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_740_only_a_request_for_permission_is_handed_over() {
        let of = |json: &str| Glance::of(json.as_bytes());
        let asks = Glance { asks: true, is_sub_agents: false };
        assert_eq!(of(r#"{"hook_event_name":"PermissionRequest","tool_input":{"agent_id":"a"}}"#), asks);
        let sub_agent = of(r#"{"agent_id":"a","hook_event_name":"PermissionRequest"}"#);
        assert_eq!(sub_agent, Glance { is_sub_agents: true, ..asks });
        for other in
            ["", "{", "[]", "null", r#"{"hook_event_name":"PreToolUse"}"#, r#"{"hook_event_name":"PermissionRequest""#]
        {
            assert_eq!(of(other), Glance::default(), "{other}");
        }
    }
}
