//! `pilotlight hook opencode`: the process that the plugin starts when opencode asks its user something.
//!
//! It takes the request as a line of standard input, which stays open as long as the request is, hands it to the tray, and
//! prints the tray's answer as a line. The next line of the plugin's says what came of that: the tray is told.

use super::{SOCKET, VERSION};
use crate::hooks::process::{PATIENCE, Tray, is_called_by_agent, poll_until, print};
use crate::hooks::wire::{FromHook, INPUT_MAX, LINE_MAX, ToHook};
use pilotlight_system::clock::Clock;
use rustix::event::{PollFd, PollFlags};
use serde::Deserialize;
use std::time::{Duration, Instant};

/// How long opencode may take to say what came of an answer.
pub(super) const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

/// What is looked at of a request.
#[derive(Deserialize)]
struct Glance {
    v: u32,
}

/// What came of an answer.
#[derive(Deserialize)]
struct Outcome {
    /// The status of opencode's reply, as HTTP has it. 0: there was none.
    status: u16,
}

/// Hands over what is asked, and prints the answer if there is one. `None` if there is none.
pub fn run() -> Option<()> {
    let began = Clock::start().now().wall;
    let mut input = Lines::default();
    let request = input.next(INPUT_MAX, Instant::now() + PATIENCE)?;
    if serde_json::from_slice::<Glance>(&request).ok()?.v != VERSION || !is_called_by_agent() {
        return None;
    }
    let mut tray = Tray::find(SOCKET)?;
    tray.hand_over(&request, began, Instant::now() + PATIENCE)?;
    drop(request);
    let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
    // The plugin says nothing before it has an answer: that its end is closed means that the request is over.
    let ends = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&stdout, PollFlags::empty())];
    let Some(said) = tray.hear(&ends, None) else { return tray.reply(FromHook::LetGo) };
    let ToHook::Answer { output } = said else { return None };
    let mut line = serde_json::to_vec(&output).ok()?;
    line.push(b'\n');
    // It has said that nothing is known of this.
    if tray.is_gone() {
        return None;
    }
    print(&line)?;
    let outcome = input.next(LINE_MAX, Instant::now() + ANSWERED_WITHIN);
    let outcome = outcome.and_then(|line| serde_json::from_slice::<Outcome>(&line).ok());
    tray.reply(outcome.map_or(FromHook::Printed, |outcome| FromHook::Answered { status: outcome.status }))
}

/// The lines of standard input.
#[derive(Default)]
struct Lines {
    read: Vec<u8>,
}

impl Lines {
    /// The next one, if it comes until then and is no longer than this.
    fn next(&mut self, longest: usize, until: Instant) -> Option<Vec<u8>> {
        let stdin = std::io::stdin();
        let mut buffer = [0; 16 << 10];
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.read[searched..]) {
                let rest = self.read.split_off(searched + end + 1);
                let mut line = std::mem::replace(&mut self.read, rest);
                line.pop();
                return Some(line);
            }
            searched = self.read.len();
            if searched > longest {
                return None;
            }
            poll_until(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(until)).filter(|ready| *ready > 0)?;
            // Unbuffered: what is read elsewhere would not be waited for.
            let read = rustix::io::read(&stdin, &mut buffer).ok().filter(|read| *read > 0)?;
            self.read.extend_from_slice(&buffer[..read]);
        }
    }
}
