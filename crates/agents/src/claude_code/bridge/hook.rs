//! `pilotlight hook claude-code`: the process that Claude Code starts when it asks its user for a permission.
//!
//! It hands the request to the tray, and prints the tray's answer. If there is any doubt, it ends at once, silently and
//! with 0: then the dialog in the terminal decides, as it does while this waits. It keeps nothing of its environment,
//! writes no file, and starts nothing.
//!
//! A sub-agent's dialog appears only once this has ended, so that it waits no longer than [`HELD_MAX`] for such a request.

use super::{EVENT, SOCKET};
use crate::claude_code::pid_file;
use crate::claude_code::running::{HOME, HOME_VARIABLE};
use crate::hooks::process::{PATIENCE, Tray, is_called_by_agent, poll_until, print};
use crate::hooks::wire::{FromHook, INPUT_MAX, ToHook};
use pilotlight_core::scan::Scan;
use pilotlight_system::clock::Clock;
use pilotlight_system::paths::user_home;
use rustix::event::{PollFd, PollFlags};
use rustix::process::getppid;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the tray may take to take a sub-agent's request, and to say that it holds it.
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
    if !glance.asks || !is_called_by_agent() || !(is_attended() || is_background()) {
        return None;
    }
    let mut tray = Tray::find(SOCKET)?;
    let held_by = glance.is_sub_agents.then(|| Instant::now() + HOLDS_WITHIN);
    tray.hand_over(&input, began, held_by.unwrap_or_else(|| Instant::now() + PATIENCE))?;
    drop(input);
    let output = wait(&mut tray, held_by)?;
    // It has said that nothing came of this.
    if tray.is_gone() {
        return None;
    }
    print(&output)?;
    tray.reply(FromHook::Printed)
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

/// Waits for the answer. `until`: when a sub-agent's request is held at the latest. `None` if the tray lets this go, or the
/// session has ended.
fn wait(tray: &mut Tray, mut until: Option<Instant>) -> Option<Vec<u8>> {
    let stdout = std::io::stdout();
    loop {
        // Nothing is read from there: that its other end is gone is told unasked.
        match tray.hear(&[PollFd::new(&stdout, PollFlags::empty())], until)? {
            ToHook::Hold => until = until.map(|_| Instant::now() + HELD_MAX),
            ToHook::Answer { output } => return serde_json::to_vec(&output).ok(),
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
