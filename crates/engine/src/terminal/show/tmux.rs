//! tmux: finds the pane that a process runs in, and the client that shows it.
//!
//! This runs the tmux program on an existing socket of the user's, so that it never starts a server. Panes, windows and
//! sessions are named by their ids, which contain nothing that tmux would interpret.

use super::asked::{ask, is_our_socket};
use crate::terminal::quote::quoted;
use pilotlight_core::text::plain;
use rustix::process::getuid;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The fields of each pane. The session's name is last, because it may contain spaces.
const PANE: &str = "#{pane_tty} #{pane_pid} #{pane_id} #{window_id} #{session_id} #{session_attached} \
                    #{pane_active}#{window_active} #{window_index}.#{pane_index} #{session_name}";

/// The socket of the default server.
pub(super) fn default_socket() -> Option<PathBuf> {
    let folder = std::env::var_os("TMUX_TMPDIR").filter(|folder| !folder.is_empty()).unwrap_or_else(|| "/tmp".into());
    let socket = Path::new(&folder).join(format!("tmux-{}", getuid().as_raw())).join("default");
    is_our_socket(&socket).then_some(socket)
}

/// The socket in a `TMUX` variable: the path, the server's pid and the session, separated by commas.
pub(super) fn socket_in(value: &OsStr) -> Option<PathBuf> {
    let path = PathBuf::from(value.to_str()?.rsplitn(3, ',').nth(2)?);
    is_our_socket(&path).then_some(path)
}

/// A tmux server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tmux<'a> {
    program: &'a Path,
    socket: &'a Path,
}

/// A pane, in one of the sessions that contain it. Its `Display` form is how a user names it.
#[derive(Debug)]
pub(super) struct Pane<'a> {
    tmux: Tmux<'a>,
    pane: String,
    window: String,
    session: String,
    place: String,
    name: String,
    /// Whether its terminal is the requested one. If not, a program in it, such as `script`, has a terminal of its own.
    has_tty: bool,
    /// Whether a client shows its session.
    attached: bool,
    /// Whether it is the active pane of the window that its session shows.
    active: bool,
}

impl fmt::Display for Pane<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pane {} of the tmux session {}", self.place, plain(&self.name, 80))
    }
}

impl<'a> Tmux<'a> {
    pub(super) fn new(program: &'a Path, socket: &'a Path) -> Self {
        Self { program, socket }
    }

    /// The pane whose terminal is `tty`, or whose first process is in the chain, or which has the id `named`, in each
    /// session that contains it: first one that a client shows.
    ///
    /// # Errors
    /// If tmux does not answer.
    pub(super) fn panes(self, chain: &[u32], tty: Option<&Path>, named: Option<&str>) -> Result<Vec<Pane<'a>>, String> {
        let Some(answer) = self.ask(&["list-panes", "-a", "-F", PANE])? else { return Ok(Vec::new()) };
        let mut panes: Vec<_> = answer.lines().filter_map(|line| self.read(line, chain, tty, named)).collect();
        panes.sort_by_key(|pane| (!pane.has_tty, !pane.attached));
        let id = panes.first().map(|pane| pane.pane.clone());
        panes.retain(|pane| Some(&pane.pane) == id.as_ref());
        Ok(panes)
    }

    /// Parses a line. `None` if it is not the pane that is searched for.
    fn read(self, line: &str, chain: &[u32], tty: Option<&Path>, named: Option<&str>) -> Option<Pane<'a>> {
        let fields: Vec<&str> = line.splitn(9, ' ').collect();
        let &[its_tty, first, pane, window, session, attached, active, place, name] = &fields[..] else { return None };
        let has_tty = tty.is_some_and(|tty| tty == Path::new(its_tty));
        if !has_tty && named != Some(pane) && !first.parse().is_ok_and(|first| chain.contains(&first)) {
            return None;
        }
        let [pane, window, session, place, name] = [pane, window, session, place, name].map(str::to_owned);
        let (attached, active) = (attached != "0", active == "11");
        Some(Pane { tmux: self, pane, window, session, place, name, has_tty, attached, active })
    }

    /// The output of a tmux command. `None`: tmux failed it.
    fn ask(self, words: &[&str]) -> Result<Option<String>, String> {
        let mut command = Command::new(self.program);
        command.arg("-u").arg("-S").arg(self.socket).args(words).env_remove("TMUX");
        ask("tmux", command)
    }
}

impl Pane<'_> {
    /// Selects the pane and its window in the session.
    ///
    /// # Errors
    /// If tmux does not answer, or the pane is gone.
    pub(super) fn select(&self) -> Result<(), String> {
        let window = format!("{}:{}", self.session, self.window);
        for words in [["select-window", "-t", &window], ["select-pane", "-t", &self.pane]] {
            self.tmux.ask(&words)?.ok_or("tmux will not select it: it may have closed")?;
        }
        Ok(())
    }

    /// Whether it is the active pane of a window that a client shows.
    pub(super) const fn is_shown(&self) -> bool {
        self.attached && self.active
    }

    /// The process and the terminal of each client that shows its session, the most recently used one first.
    ///
    /// # Errors
    /// If tmux does not answer.
    pub(super) fn clients(&self) -> Result<Vec<(u32, PathBuf)>, String> {
        let format = "#{client_activity} #{client_pid} #{client_tty}";
        let answer = self.tmux.ask(&["list-clients", "-t", &self.session, "-F", format])?.unwrap_or_default();
        let clients = answer.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ' ');
            let (used, pid) = (fields.next()?.parse::<u64>().ok()?, fields.next()?.parse().ok()?);
            Some((used, (pid, PathBuf::from(fields.next()?))))
        });
        let mut clients: Vec<_> = clients.collect();
        clients.sort_by(|a, b| b.cmp(a));
        Ok(clients.into_iter().map(|(_, client)| client).collect())
    }

    /// The command that shows its session in a terminal.
    pub(super) fn attach(&self) -> String {
        let socket = match default_socket() {
            Some(socket) if socket == self.tmux.socket => String::new(),
            _ => format!("-S {} ", quoted(self.tmux.socket)),
        };
        format!("tmux {socket}attach -t {}", quoted(&self.session))
    }
}
