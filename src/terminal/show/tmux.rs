//! tmux: which pane a process runs in, and who looks at it.
//!
//! tmux is asked by its own program, over a socket that is there and ours: asking starts no server. Panes, windows and
//! sessions are named by their ids, which hold nothing that tmux would read as something else.

use super::proc;
use crate::core::text::plain;
use crate::system::descriptors;
use rustix::process::getuid;
use std::fmt;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A server that has not answered after this does not.
const PATIENCE: Duration = Duration::from_secs(2);
/// How much of an answer is read, in bytes.
const LARGEST: u64 = 1024 * 1024;
/// What is asked of each pane: the name is last, because it may hold spaces.
const PANE: &str = "#{pane_tty} #{pane_pid} #{pane_id} #{window_id} #{session_id} #{session_attached} \
                    #{window_index}.#{pane_index} #{session_name}";

/// The socket of the server that is meant where none is named.
pub(super) fn default_socket() -> Option<PathBuf> {
    let folder = std::env::var_os("TMUX_TMPDIR").filter(|folder| !folder.is_empty()).unwrap_or_else(|| "/tmp".into());
    ours(Path::new(&folder).join(format!("tmux-{}", getuid().as_raw())).join("default"))
}

/// The socket of the server that the process was started in: its `TMUX` is that path, the server's process and the session,
/// with commas in between.
pub(super) fn socket_of(pid: u32) -> Option<PathBuf> {
    let value = proc::variable(pid, "TMUX")?;
    let path = value.to_str()?.rsplitn(3, ',').nth(2)?;
    ours(path.into())
}

/// The path, if a socket of this user is there.
fn ours(path: PathBuf) -> Option<PathBuf> {
    let meta = std::fs::symlink_metadata(&path).ok().filter(|_| path.is_absolute())?;
    (meta.file_type().is_socket() && meta.uid() == getuid().as_raw()).then_some(path)
}

/// One server of tmux.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tmux<'a> {
    program: &'a Path,
    socket: &'a Path,
}

/// A pane, in one of the sessions that have it. Shown, it is what the user calls it.
#[derive(Debug)]
pub(super) struct Pane<'a> {
    tmux: Tmux<'a>,
    pane: String,
    window: String,
    session: String,
    place: String,
    name: String,
    /// Whether its terminal is the one that was asked for; otherwise it holds it, as `script` or `ssh` do.
    has_tty: bool,
    /// Whether somebody looks at its session.
    attached: bool,
}

impl fmt::Display for Pane<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pane {} of the tmux session {}", self.place, plain(&self.name, 80))
    }
}

impl<'a> Tmux<'a> {
    /// The server at this socket, asked by this program.
    pub(super) fn new(program: &'a Path, socket: &'a Path) -> Self {
        Self { program, socket }
    }

    /// The pane whose terminal is `tty`, or whose first process is in the chain. Where several sessions have it, one that
    /// somebody looks at.
    ///
    /// # Errors
    /// Where tmux does not answer.
    pub(super) fn pane(self, chain: &[u32], tty: Option<&Path>) -> Result<Option<Pane<'a>>, String> {
        let Ok(answer) = self.ask(&["list-panes", "-a", "-F", PANE])? else { return Ok(None) };
        let mut panes: Vec<_> = answer.lines().filter_map(|line| self.read(line, chain, tty)).collect();
        panes.sort_by_key(|pane| (!pane.has_tty, !pane.attached));
        Ok(panes.into_iter().next())
    }

    /// The pane of this line, if it is the one, and how sure that is.
    fn read(self, line: &str, chain: &[u32], tty: Option<&Path>) -> Option<Pane<'a>> {
        let fields: Vec<&str> = line.splitn(8, ' ').collect();
        let &[its_tty, first, pane, window, session, attached, place, name] = &fields[..] else { return None };
        let has_tty = tty.is_some_and(|tty| tty == Path::new(its_tty));
        if !has_tty && !first.parse().is_ok_and(|first| chain.contains(&first)) {
            return None;
        }
        let [pane, window, session, place, name] = [pane, window, session, place, name].map(str::to_owned);
        Some(Pane { tmux: self, pane, window, session, place, name, has_tty, attached: attached != "0" })
    }

    /// What tmux answers; the inner error is a refusal.
    fn ask(self, words: &[&str]) -> Result<Result<String, ()>, String> {
        let mut command = Command::new(self.program);
        command.arg("-u").arg("-S").arg(self.socket).args(words).env_remove("TMUX");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        descriptors::give_back(&mut command);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err("its tmux server cannot be asked, because there is no tmux program here".into());
            }
            Err(error) => return Err(format!("tmux cannot be started: {error}")),
        };
        let (tell, told) = mpsc::channel();
        let answer = child.stdout.take();
        let read = move || {
            let mut text = Vec::new();
            let read = answer.map(|answer| answer.take(LARGEST).read_to_end(&mut text));
            let _ = tell.send(read.is_some_and(|read| read.is_ok()).then_some(text)); // nobody waits any more when late
        };
        let reading = std::thread::Builder::new().name("tmux".into()).spawn(read);
        let answer = reading.ok().and_then(|_| told.recv_timeout(PATIENCE).ok());
        if answer.is_none() {
            let _ = child.kill(); // it may just have ended
        }
        let ended = child.wait().map_err(|error| format!("tmux cannot be waited for: {error}"))?;
        let text = answer.ok_or_else(|| format!("tmux did not answer within {} s", PATIENCE.as_secs()))?;
        Ok(text.filter(|_| ended.success()).map(|text| String::from_utf8_lossy(&text).into_owned()).ok_or(()))
    }
}

impl Pane<'_> {
    /// Makes it the one that its session shows.
    ///
    /// # Errors
    /// Where tmux does not answer, or the pane is gone.
    pub(super) fn select(&self) -> Result<(), String> {
        let window = format!("{}:{}", self.session, self.window);
        for words in [["select-window", "-t", &window], ["select-pane", "-t", &self.pane]] {
            self.tmux.ask(&words)?.map_err(|()| "tmux will not select it: it may have closed".to_owned())?;
        }
        Ok(())
    }

    /// The process that shows its session in a terminal, and that terminal; of several, the one that was last used.
    ///
    /// # Errors
    /// Where tmux does not answer.
    pub(super) fn client(&self) -> Result<Option<(u32, PathBuf)>, String> {
        let format = "#{client_activity} #{client_pid} #{client_tty}";
        let answer = self.tmux.ask(&["list-clients", "-t", &self.session, "-F", format])?.unwrap_or_default();
        let clients = answer.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ' ');
            let (used, pid) = (fields.next()?.parse::<u64>().ok()?, fields.next()?.parse().ok()?);
            Some((used, (pid, PathBuf::from(fields.next()?))))
        });
        Ok(clients.max().map(|(_, client)| client))
    }

    /// The command that shows its session in a terminal.
    pub(super) fn attach(&self) -> String {
        let socket = match default_socket() {
            Some(socket) if socket == self.tmux.socket => String::new(),
            _ => format!("-S {} ", quoted(&self.tmux.socket.to_string_lossy())),
        };
        format!("tmux {socket}attach -t {}", quoted(&self.session))
    }
}

/// A word as the user would type it into a shell.
fn quoted(word: &str) -> String {
    let text = plain(word, 400);
    if super::super::known::plain(std::ffi::OsStr::new(&*text)) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
