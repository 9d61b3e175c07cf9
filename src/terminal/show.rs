//! Brings the terminal that a session runs in to the front, on Linux.
//!
//! A process does not know its window. Two chains lead there. A pane of tmux is known by its terminal device; it is selected,
//! and then it is the client's window that is wanted, the terminal in which somebody looks at that tmux. A window of X11
//! says which process made it: one of those that the session's process was started by. Wayland knows no such question.
//!
//! Whatever is asked, tmux or the X server, may not answer: each has two seconds.

#[cfg(target_os = "linux")]
mod proc;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
#[cfg(target_os = "linux")]
mod tmux;
#[cfg(target_os = "linux")]
mod x11;

use std::path::Path;

/// How many times a tmux is looked for in a pane of another.
#[cfg(target_os = "linux")]
const DEEPEST: u8 = 3;
/// How many processes between a terminal and the first one are looked at.
#[cfg(target_os = "linux")]
const LONGEST: usize = 64;

/// Brings the terminal in which the process runs to the front; says what was done. `ancestors` are the processes that started
/// it, the nearest first, `tty` is its controlling terminal.
///
/// Blocks for some seconds at worst. Nothing is signalled or typed: at most a window and a pane are selected.
///
/// # Errors
/// In words for the user, why that cannot be done, and what is known of the place.
#[cfg(target_os = "linux")]
pub(crate) fn show(pid: u32, ancestors: &[u32], tty: Option<&Path>) -> Result<String, String> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let desktop = Desktop {
        tmux: Path::new("tmux"),
        socket: tmux::default_socket(),
        display: None,
        wayland: is_set("WAYLAND_DISPLAY"),
    };
    desktop.show(pid, ancestors, tty)
}

/// There is no way to it on this system.
///
/// # Errors
/// Always, with the reason.
#[cfg(not(target_os = "linux"))]
pub(crate) fn show(pid: u32, _ancestors: &[u32], _tty: Option<&Path>) -> Result<String, String> {
    Err(format!(
        "on this system the terminal of process {pid} cannot be brought to the front; look for it among your windows"
    ))
}

/// What is asked.
#[cfg(target_os = "linux")]
struct Desktop<'a> {
    /// The program.
    tmux: &'a Path,
    /// The socket of tmux's usual server.
    socket: Option<std::path::PathBuf>,
    /// The X server; `None` for that of our environment.
    display: Option<&'a str>,
    /// Whether the desktop is Wayland.
    wayland: bool,
}

#[cfg(target_os = "linux")]
impl Desktop<'_> {
    fn show(&self, pid: u32, ancestors: &[u32], tty: Option<&Path>) -> Result<String, String> {
        let chain = std::iter::once(pid).chain(ancestors.iter().copied()).collect();
        self.show_chain(chain, tty, DEEPEST)
            .map_err(|why| format!("the terminal of process {pid} cannot be shown: {why}"))
    }

    /// The same for a chain that begins with the process itself; `deep` times, a tmux may be shown in a pane of another.
    fn show_chain(&self, chain: Vec<u32>, tty: Option<&Path>, deep: u8) -> Result<String, String> {
        let pid = chain.first().copied().unwrap_or_default();
        let own = tmux::socket_of(pid);
        let sockets = self.socket.iter().chain(own.iter().filter(|own| Some(*own) != self.socket.as_ref()));
        let mut no_pane = "it runs in no tmux pane".to_owned();
        for socket in sockets.filter(|_| deep > 0) {
            match tmux::Tmux::new(self.tmux, socket).pane(&chain, tty) {
                Ok(Some(pane)) => return self.show_pane(&pane, deep),
                Ok(None) => {}
                Err(why) => no_pane = why,
            }
        }
        // What the terminal told its programs, where it did.
        let hint = proc::variable(pid, "WINDOWID").and_then(|id| id.to_str()?.parse().ok());
        let raised = x11::raise(self.display.map(str::to_owned), chain, hint);
        raised.map(|window| format!("{window} is in front")).map_err(|why| match why {
            x11::Lack::Window | x11::Lack::Server if self.wayland => {
                format!("{no_pane}, and this desktop is Wayland, which lets no program raise another's window")
            }
            why => format!("{no_pane}, and {why}"),
        })
    }

    /// Selects the pane, and brings the window in which it is looked at to the front.
    fn show_pane(&self, pane: &tmux::Pane<'_>, deep: u8) -> Result<String, String> {
        let in_vain = |why: String| format!("it runs in {pane}, but {why}");
        pane.select().map_err(in_vain)?;
        let Some((client, tty)) = pane.client().map_err(in_vain)? else {
            return Err(in_vain(format!("no terminal shows that session; in one, type: {}", pane.attach())));
        };
        let chain = std::iter::successors(Some(client), |pid| proc::parent(*pid)).take(LONGEST).collect();
        // It is selected in front of somebody, even where their window cannot be brought to the front.
        Ok(match self.show_chain(chain, Some(&tty), deep - 1) {
            Ok(shown) => format!("{pane} is selected, and {shown}"),
            Err(why) => format!("{pane} is selected in a terminal that is not brought to the front: {why}"),
        })
    }
}
