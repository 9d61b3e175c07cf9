//! Tells whether the terminal of a process has the focus: the window that shows it is the active one and, in tmux, its
//! pane is the active one of what a client shows there.

use super::on_screen::is_in_focus;
use super::places::ProcessInTerminal;
use super::{Desktop, NESTING_MAX, places, tmux, window_hint, x11};
use pilotlight_system::process::ancestors;
use std::path::Path;

impl Desktop<'_> {
    /// Whether the terminal of a process has the focus, for the arguments of [`show`](Self::show). False if nobody can
    /// tell.
    pub(super) fn has_focus(&self, pid: u32, ancestors: &[u32], tty: Option<&Path>) -> bool {
        let chain: Vec<_> = std::iter::once(pid).chain(ancestors.iter().copied()).collect();
        self.chain_has_focus(&chain, tty, NESTING_MAX)
    }

    /// The same for a chain of a process and its ancestors. `depth` is how many more levels of tmux may be nested.
    fn chain_has_focus(&self, chain: &[u32], tty: Option<&Path>, depth: u8) -> bool {
        let pid = chain.first().copied().unwrap_or_default();
        for (socket, named) in self.servers(pid, depth) {
            // Without an answer it may still be found among the windows: that of a server on another socket.
            let panes = tmux::Tmux::new(self.tmux, &socket).panes(chain, tty, named).unwrap_or_default();
            if !panes.is_empty() {
                return panes.iter().any(|pane| pane.is_shown() && self.client_has_focus(pane, depth));
            }
        }
        let place = places::find(self.programs, &ProcessInTerminal { chain, tty }).ok().flatten();
        if place.as_ref().is_some_and(|place| place.is_shown == Some(false)) {
            return false; // another tab of that window has it
        }
        let hint = place.and_then(|place| place.window).or_else(|| window_hint(pid));
        let windows = match &self.compositor {
            Some(compositor) => compositor.on_screen(),
            // Whether Xwayland's windows have the focus is not known to be told by every compositor.
            None if self.wayland => None,
            None => x11::on_screen(self.display.map(str::to_owned)),
        };
        is_in_focus(&windows.unwrap_or_default(), chain, hint)
    }

    /// Whether a client that shows the pane's session is in a terminal that has the focus.
    fn client_has_focus(&self, pane: &tmux::Pane<'_>, depth: u8) -> bool {
        pane.clients().unwrap_or_default().into_iter().any(|(client, tty)| {
            let chain: Vec<_> = std::iter::once(client).chain(ancestors(client)).collect();
            self.chain_has_focus(&chain, Some(&tty), depth - 1)
        })
    }
}
