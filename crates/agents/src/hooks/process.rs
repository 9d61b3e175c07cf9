//! The process of a hook: how it reaches the tray, and waits for its word.
//!
//! If there is any doubt, it ends at once, silently and with 0: then the dialog in the terminal decides, as it does while this
//! waits. It keeps nothing of its environment, writes no file, and starts nothing.

use super::wire::{FromHook, Header, INPUT_MAX, ToHook, VERSION};
use pilotlight_core::time::Time;
use pilotlight_system::paths::{project, runtime_folders};
use pilotlight_system::runtime::{Runtime, connect_now};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, FileType, statat};
use rustix::process::geteuid;
use serde::Serialize;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an agent may take to hand over what it asks, and the tray to take it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The tray, to a hook.
#[derive(Debug)]
pub(crate) struct Tray {
    /// It never blocks: it is waited for.
    stream: UnixStream,
    peer: Peer,
    /// What it has said and was not taken up yet.
    line: Vec<u8>,
}

impl Tray {
    /// Connects to the tray that listens at a socket of this name. `None` if there is none that could be trusted.
    pub(crate) fn find(socket: &str) -> Option<Self> {
        let folders = project().as_ref().map(runtime_folders)?;
        let (stream, peer) = folders.iter().find_map(|folder| connect(folder, socket))?;
        Some(Self { stream, peer, line: Vec::new() })
    }

    /// Hands over what is asked, until then at the latest. `began`: when this process did.
    pub(crate) fn hand_over(&mut self, input: &[u8], began: Time, until: Instant) -> Option<()> {
        self.write(&line_of(&Header { v: VERSION, length: input.len(), at: began.0 })?, until)?;
        self.write(input, until)
    }

    /// Says what became of its answer.
    pub(crate) fn reply(&mut self, said: FromHook) -> Option<()> {
        self.write(&line_of(&said)?, Instant::now() + PATIENCE)
    }

    fn write(&mut self, mut bytes: &[u8], until: Instant) -> Option<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut end = [PollFd::new(&self.stream, PollFlags::OUT)];
                    poll_until(&mut end, Some(until)).filter(|ready| *ready > 0)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(())
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
            let read = self.peer.read(&self.stream, &mut buffer).filter(|read| *read > 0)?;
            self.line.extend_from_slice(&buffer[..read]);
            if self.line.len() > INPUT_MAX * 2 {
                return None;
            }
        }
    }

    /// Whether it has let this go, while this was stopped or slow. It says nothing between its answer and ours.
    pub(crate) fn is_gone(&self) -> bool {
        let mut end = [PollFd::new(&self.stream, PollFlags::IN)];
        poll_until(&mut end, Some(Instant::now())) != Some(0)
    }
}

fn line_of(what: &impl Serialize) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(what).ok()?;
    line.push(b'\n');
    Some(line)
}

/// Connects to the tray whose socket is in this folder: if both are ours alone, and it runs this very program.
fn connect(folder: &Path, socket: &str) -> Option<(UnixStream, Peer)> {
    Runtime::open(folder).ok()??;
    let path = folder.join(socket);
    let meta = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(meta.st_mode) != FileType::Socket || meta.st_uid != geteuid().as_raw() {
        return None;
    }
    let stream = connect_now(&path).ok()?;
    let peer = Peer::of(&stream)?;
    Some((stream, peer))
}

/// The process that listens at the tray's socket.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug)]
struct Peer(rustix::process::Pid);

#[cfg(target_os = "linux")]
impl Peer {
    /// It is of our user, runs this very program, and was not started by the agent that started this.
    fn of(stream: &UnixStream) -> Option<Self> {
        use pilotlight_system::process::{ancestors, runs_our_program};
        let peer = rustix::net::sockopt::socket_peercred(stream).ok().filter(|peer| peer.uid == geteuid())?;
        let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).ok()?;
        let agent = rustix::process::getppid().and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok())?;
        if !runs_our_program(pid) || ancestors(pid).contains(&agent) {
            return None;
        }
        rustix::net::sockopt::set_socket_passcred(stream, true).ok()?;
        Some(Self(peer.pid))
    }

    /// Reads what it has written. `None` if another process has, to which it left its end: the one that began to listen may have
    /// become our program since.
    fn read(self, stream: &UnixStream, buffer: &mut [u8]) -> Option<usize> {
        use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let buffers = &mut [io::IoSliceMut::new(buffer)];
        let read = rustix::io::retry_on_intr(|| recvmsg(stream, buffers, &mut control, RecvFlags::empty())).ok()?;
        let is_its = |message| matches!(message, RecvAncillaryMessage::ScmCredentials(by) if by.pid == self.0);
        (control.drain().filter(|_| read.bytes > 0).any(is_its)).then_some(read.bytes)
    }
}

/// Of our user, as its socket is: other systems do not show more in one way.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Copy, Debug)]
struct Peer;

#[cfg(not(target_os = "linux"))]
impl Peer {
    const fn of(_stream: &UnixStream) -> Option<Self> {
        Some(Self)
    }

    fn read(self, stream: &UnixStream, buffer: &mut [u8]) -> Option<usize> {
        io::Read::read(&mut &*stream, buffer).ok()
    }
}

/// Whether the agent that started this made what it reads from and writes to: two sockets, each with the agent at its other end. A
/// tool that the agent runs can start this in the place of its own shell, but with files, or sockets of its own.
#[cfg(target_os = "linux")]
pub(crate) fn is_called_by_agent() -> bool {
    let agent = rustix::process::getppid();
    let (stdin, stdout) = (io::stdin(), io::stdout());
    agent.is_some_and(|agent| [stdin.as_fd(), stdout.as_fd()].into_iter().all(|end| is_made_by(end, agent)))
}

#[cfg(target_os = "linux")]
fn is_made_by(end: std::os::fd::BorrowedFd<'_>, agent: rustix::process::Pid) -> bool {
    rustix::net::sockopt::socket_peercred(end).is_ok_and(|maker| maker.pid == agent)
}

/// Other systems have no common way to show it.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn is_called_by_agent() -> bool {
    true
}

/// Writes this to standard output.
pub(crate) fn print(output: &[u8]) -> Option<()> {
    let mut stdout = io::stdout().lock();
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

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn pair() -> (Tray, UnixStream) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let stream = connect_now(&path).unwrap();
        rustix::net::sockopt::set_socket_passcred(&stream, true).unwrap();
        let tray = Tray { stream, peer: Peer(rustix::process::getpid()), line: Vec::new() };
        (tray, listener.accept().unwrap().0)
    }

    /// Whoever began to listen may start our program in its own place, and leave the socket to a child.
    #[test]
    fn case_820_only_the_process_that_listens_can_answer() {
        let soon = || Some(Instant::now() + Duration::from_secs(60));
        let (mut tray, mut its) = pair();
        its.write_all(b"{\"t\":\"hold\"}\n").unwrap();
        assert_eq!(tray.hear(&[], soon()), Some(ToHook::Hold));
        let status = Command::new("sh")
            .args(["-c", "echo '{\"t\":\"hold\"}'"])
            .stdout(Stdio::from(std::os::fd::OwnedFd::from(its)))
            .status();
        assert!(status.unwrap().success());
        assert_eq!(tray.hear(&[], soon()), None, "another process wrote it");
    }

    #[test]
    fn case_821_a_hook_that_was_let_go_knows() {
        let (tray, its) = pair();
        assert!(!tray.is_gone());
        drop(its);
        assert!(tray.is_gone());
    }

    /// The agent makes a pair of sockets, and hands one to the hook that it starts.
    #[test]
    fn case_861_only_what_the_agent_made_is_its_own() {
        use std::os::unix::net::UnixStream;
        let (agents, _its) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        let (own, parent) = (rustix::process::getpid(), rustix::process::getppid().unwrap());
        assert!(
            is_made_by(agents.as_fd(), own) && !is_made_by(agents.as_fd(), parent) && !is_made_by(file.as_fd(), own)
        );
    }

    /// Nobody reads what it hands over.
    #[test]
    fn case_822_a_tray_that_stands_still_keeps_no_hook() {
        let (mut tray, _its) = pair();
        let until = Instant::now() + Duration::from_millis(50);
        assert_eq!(tray.hand_over(&vec![b' '; INPUT_MAX], Time(0), until), None);
    }
}
