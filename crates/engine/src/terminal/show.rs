//! Brings the terminal that a session runs in to the front, or tells whether it has the focus.
//!
//! A process does not know its window, but there are ways to find it. A tmux pane is found by its terminal device. It is
//! selected, and then the window to raise is that of the tmux client. A terminal with tabs or panes is asked to select the
//! one of the process (`places`). An X11 window names the process that created it, which is the session's process or one
//! of its ancestors. Wayland has no such query; sway and Hyprland have one of their own.
//!
//! Each of them may hang, and gets two seconds to answer.

mod asked;
mod compositor;
mod focus;
mod on_screen;
mod places;
#[cfg(test)]
mod tests;
mod tmux;
mod x11;

use compositor::Compositor;
use pilotlight_system::process::{ancestors, terminal_of, variables};
use places::{Place, ProcessInTerminal};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
pub use x11::OpenMenu;

/// Maximum depth of nested tmux sessions.
const NESTING_MAX: u8 = 3;

/// Brings the terminal of a process to the front, and returns what was done, in words. `ancestors` are the process's
/// ancestors, the nearest first; `tty` is its controlling terminal, and `pane` the tmux pane that its agent says it is in.
///
/// May block for some seconds. Nothing is signalled or typed: at most a window and a pane are selected.
///
/// # Errors
/// In words for the user: why this cannot be done, and what is known of the place.
pub fn show(pid: u32, ancestors: &[u32], tty: Option<&Path>, pane: Option<&str>) -> Result<String, String> {
    Desktop::ours(pane).show(pid, ancestors, tty)
}

/// Whether the terminal of a process has the focus, for the arguments of [`show`]. False if nobody can tell.
///
/// May block for some seconds.
pub fn has_focus(pid: u32, ancestors: &[u32], tty: Option<&Path>, pane: Option<&str>) -> bool {
    Desktop::ours(pane).has_focus(pid, ancestors, tty)
}

/// The menu that this process has on the screen. `None` if there is none, or nobody can tell: of Wayland's windows nobody can.
///
/// May block for some seconds.
pub fn open_menu(pid: u32) -> Option<OpenMenu> {
    is_set("DISPLAY").then(|| OpenMenu::find(None, pid))?
}

/// Why the terminal of a process cannot be shown, as far as its environment and ours tell. `None` if it is worth trying.
/// `has_pane`: its agent names the tmux pane.
pub fn why_not(pid: u32, has_pane: bool) -> Option<&'static str> {
    let has_pane = has_pane || variable(pid, "TMUX").is_some_and(|value| tmux::socket_in(&value).is_some());
    let has_window = variable(pid, "WINDOWID").is_some_and(|id| !id.is_empty());
    let can_be_asked = has_pane || places::is_told(pid) || Compositor::ours().is_some();
    cannot_show(can_be_asked, has_window, is_set("DISPLAY"), is_set("WAYLAND_DISPLAY"))
}

/// `can_be_asked`: its terminal, tmux or the compositor takes orders. `has_window`: it runs in an X11 window, also on
/// Wayland.
const fn cannot_show(can_be_asked: bool, has_window: bool, x11: bool, wayland: bool) -> Option<&'static str> {
    match (x11, wayland) {
        _ if can_be_asked => None,
        (true, false) => None,
        (true, true) if has_window => None,
        (_, true) => {
            Some("it runs in no tmux pane, and this desktop is Wayland, which lets no program raise another's window")
        }
        (false, false) => Some("it runs in no tmux pane, and there is no X11 desktop to raise its window on"),
    }
}

/// Where to search for the terminal.
struct Desktop<'a> {
    /// The tmux program.
    tmux: &'a Path,
    /// The socket of the default tmux server.
    socket: Option<PathBuf>,
    /// The X server; `None` for the one in our environment.
    display: Option<&'a str>,
    /// The folder of the terminals' programs; `None` for those in the search path.
    programs: Option<&'a Path>,
    /// The pane of the process, as its agent says.
    pane: Option<&'a str>,
    /// Whether the desktop is Wayland.
    wayland: bool,
    /// Its compositor, if that can be asked.
    compositor: Option<Compositor>,
}

/// Whether a variable in our environment has a value.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

impl<'a> Desktop<'a> {
    /// The one that we run on, for a process in this pane.
    fn ours(pane: Option<&'a str>) -> Self {
        Self {
            tmux: Path::new("tmux"),
            socket: tmux::default_socket(),
            display: None,
            programs: None,
            pane,
            wayland: is_set("WAYLAND_DISPLAY"),
            compositor: Compositor::ours(),
        }
    }
}

impl Desktop<'_> {
    fn show(&self, pid: u32, ancestors: &[u32], tty: Option<&Path>) -> Result<String, String> {
        let chain = std::iter::once(pid).chain(ancestors.iter().copied()).collect();
        self.show_chain(chain, tty, NESTING_MAX)
            .map_err(|why| format!("the terminal of process {pid} cannot be shown: {why}"))
    }

    /// The same for a chain of a process and its ancestors. `depth` is how many more levels of tmux may be nested.
    fn show_chain(&self, chain: Vec<u32>, tty: Option<&Path>, depth: u8) -> Result<String, String> {
        let pid = chain.first().copied().unwrap_or_default();
        let mut no_pane = "it runs in no tmux pane".to_owned();
        for (socket, named) in self.servers(pid, depth) {
            match tmux::Tmux::new(self.tmux, &socket).panes(&chain, tty, named) {
                Ok(panes) => {
                    if let Some(pane) = panes.first() {
                        return self.show_pane(pane, depth);
                    }
                }
                Err(why) => no_pane = why,
            }
        }
        let found = places::find(self.programs, &ProcessInTerminal { chain: &chain, tty });
        match found
            .and_then(|place| place.map(|place| places::select(self.programs, &place).map(|()| place)).transpose())
        {
            Ok(Some(place)) => Ok(self.show_place(&place, chain, depth)),
            Ok(None) => self.raise(chain, window_hint(pid)).map_err(|why| format!("{no_pane}, and {why}")),
            Err(unselected) => match self.raise(chain, window_hint(pid)) {
                Ok(shown) => Ok(format!("{shown}; what it shows there is not known: {unselected}")),
                Err(why) => Err(format!("{unselected}, and {why}")),
            },
        }
    }

    /// Brings the window with a place that was selected to the front.
    fn show_place(&self, place: &Place, chain: Vec<u32>, depth: u8) -> String {
        let name = place.name;
        let shown = match place.client.filter(|_| depth > 0) {
            Some(client) => {
                let chain = std::iter::once(client).chain(ancestors(client)).collect();
                self.show_chain(chain, terminal_of(client).as_deref(), depth - 1)
            }
            None => {
                let hint = place.window.or_else(|| window_hint(chain.first().copied()?));
                self.raise(chain, hint)
            }
        };
        // Not an error: it is selected, even if its window could not be raised.
        match shown {
            Ok(shown) => format!("{name} is selected, and {shown}"),
            Err(why) => format!("{name} is selected, but its window could not be brought to the front: {why}"),
        }
    }

    /// Brings a window of the first process in the chain that has one to the front, and says so.
    fn raise(&self, chain: Vec<u32>, hint: Option<u32>) -> Result<String, String> {
        let raised = match &self.compositor {
            Some(compositor) => compositor.raise(chain, hint),
            None => x11::raise(self.display.map(str::to_owned), chain, hint).map_err(|why| match why {
                x11::Failure::NoWindow | x11::Failure::NoServer if self.wayland => {
                    "this desktop is Wayland, which lets no program raise another's window".to_owned()
                }
                why => why.to_string(),
            }),
        };
        raised.map(|window| format!("{window} is in front"))
    }

    /// The sockets of the tmux servers that may have a pane of a process, each with the pane's id there, if that is known.
    fn servers(&self, pid: u32, depth: u8) -> Vec<(PathBuf, Option<&str>)> {
        if depth == 0 {
            return Vec::new();
        }
        let own = variable(pid, "TMUX").and_then(|value| tmux::socket_in(&value));
        let sockets = self.socket.iter().chain(own.iter().filter(|own| Some(*own) != self.socket.as_ref()));
        // The id is one of its own server.
        let is_own = |socket: &PathBuf| depth == NESTING_MAX && own.as_ref().is_none_or(|own| own == socket);
        sockets.map(|socket| (socket.clone(), self.pane.filter(|_| is_own(socket)))).collect()
    }

    /// Selects the pane, and brings the window of its tmux client to the front.
    fn show_pane(&self, pane: &tmux::Pane<'_>, depth: u8) -> Result<String, String> {
        let failed = |why: String| format!("it runs in {pane}, but {why}");
        pane.select().map_err(failed)?;
        let Some((client, tty)) = pane.clients().map_err(failed)?.into_iter().next() else {
            return Err(failed(format!("no terminal shows that tmux session. In a terminal, type: {}", pane.attach())));
        };
        let chain = std::iter::once(client).chain(ancestors(client)).collect();
        // Not an error: the pane is selected in a client, even if that client's window could not be raised.
        Ok(match self.show_chain(chain, Some(&tty), depth - 1) {
            Ok(shown) => format!("{pane} is selected, and {shown}"),
            Err(why) => format!("{pane} is selected in a terminal that could not be brought to the front: {why}"),
        })
    }
}

/// The X11 window that a process was started in, which some terminals announce to the programs in them.
fn window_hint(pid: u32) -> Option<u32> {
    variable(pid, "WINDOWID")?.to_str()?.parse().ok()
}

/// A variable in the environment that a process was started with. `None` if it is not set or cannot be read.
fn variable(pid: u32, name: &str) -> Option<OsString> {
    Some(variables(pid, &[name])?.into_iter().next()?.1)
}
