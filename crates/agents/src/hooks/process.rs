//! The process of a hook: how it reaches the tray, and waits for its word.
//!
//! If there is any doubt, it ends at once, silently and with 0: then the dialog in the terminal decides, as it does while this
//! waits. It keeps nothing of its environment, writes no file, and starts nothing.

use super::wire::{FromHook, Header, INPUT_MAX, ToHook, VERSION};
use pilotlight_core::time::Time;
use pilotlight_system::paths::{project, runtime_folders};
#[cfg(target_os = "linux")]
use pilotlight_system::process::executable;
use pilotlight_system::runtime::Runtime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, FileType, statat};
#[cfg(target_os = "linux")]
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde::Serialize;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an agent may take to hand over what it asks, and the tray to take it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The tray, to a hook.
#[derive(Debug)]
pub(crate) struct Tray {
    stream: UnixStream,
    /// What it has said and was not taken up yet.
    line: Vec<u8>,
}

impl Tray {
    /// Connects to the tray that listens at a socket of this name. `None` if there is none that could be trusted.
    pub(crate) fn find(socket: &str) -> Option<Self> {
        let folders = project().as_ref().map(runtime_folders)?;
        let stream = folders.iter().find_map(|folder| connect(folder, socket))?;
        Some(Self { stream, line: Vec::new() })
    }

    /// Hands over what is asked. `began`: when this process did.
    pub(crate) fn hand_over(&mut self, input: &[u8], began: Time) -> Option<()> {
        self.say(&Header { v: VERSION, length: input.len(), at: began.0 })?;
        self.stream.write_all(input).ok()
    }

    /// Says what became of its answer.
    pub(crate) fn reply(&mut self, said: FromHook) -> Option<()> {
        self.say(&said)
    }

    fn say(&mut self, what: &impl Serialize) -> Option<()> {
        let mut line = serde_json::to_vec(what).ok()?;
        line.push(b'\n');
        self.stream.write_all(&line).ok()
    }

    /// Waits for its next word. `None` if it lets this go, or the time is over, or anything happens on one of `others` first:
    /// the agent's ends of our pipes, which are not read here.
    pub(crate) fn hear(&mut self, others: &[PollFd<'_>], until: Option<Instant>) -> Option<ToHook> {
        let mut buffer = [0; 4 << 10];
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.line) {
                let said = serde_json::from_slice(&self.line[..end]).ok()?;
                self.line.drain(..=end);
                return Some(said);
            }
            let mut ends = vec![PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN)];
            ends.extend(others.iter().cloned());
            poll_until(&mut ends, until).filter(|ready| *ready > 0)?;
            if ends[1..].iter().any(|end| !end.revents().is_empty()) {
                return None;
            }
            let read = self.stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
            self.line.extend_from_slice(&buffer[..read]);
            if self.line.len() > INPUT_MAX * 2 {
                return None;
            }
        }
    }
}

/// Connects to the tray whose socket is in this folder: if both are ours alone, and it runs this very program.
fn connect(folder: &Path, socket: &str) -> Option<UnixStream> {
    Runtime::open(folder).ok()??;
    let path = folder.join(socket);
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

/// Writes this to standard output.
pub(crate) fn print(output: &[u8]) -> Option<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(output).and_then(|()| stdout.flush()).ok()
}

/// Waits for one of these until then. Returns how many are ready.
pub(crate) fn poll_until(ends: &mut [PollFd<'_>], until: Option<Instant>) -> Option<usize> {
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
