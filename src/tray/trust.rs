//! Which programs of the desktop are believed when they say that the user clicked.
//!
//! A popup's buttons are pressed by whoever is the notification server, and the menu's entries by whoever calls them on the
//! bus. A tool of a session can be either: it ends the server, takes its name, and "clicks". So a click that answers for
//! the user counts only from a program that is older than every session that asks, as is that of a command
//! ([`origin`](pilotlight_engine::control::origin)), and that no agent started. The user's own server or panel that was started anew
//! since looks the same. So what is left is to have the user type: such a server is offered "Review…" in place of Approve,
//! and such a panel's Approve opens that window as well.

use pilotlight_agents::callers::agent_above;
use pilotlight_core::action::questions;
use pilotlight_core::session::Session;
use pilotlight_engine::Fleet;
use pilotlight_engine::control::origin::{Runner, is_older};
use pilotlight_system::log;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the tray knows about the programs that report clicks. Clones are the same.
#[derive(Clone)]
pub(crate) struct DesktopTrust(Arc<Shared>);

struct Shared {
    /// File names of further executables that count as agents.
    names: Vec<String>,
    /// The processes that run sessions which ask now.
    asking: Mutex<Vec<Runner>>,
    /// Whether the notification server is too young.
    is_server_young: AtomicBool,
    /// Called when that changes.
    redraw: Box<dyn Fn() + Send + Sync>,
}

impl DesktopTrust {
    /// `names` are the programs that count as agents; `redraw` is called when there is something new to say.
    pub(crate) fn new(names: Vec<String>, redraw: impl Fn() + Send + Sync + 'static) -> Self {
        let (asking, is_server_young) = (Mutex::default(), AtomicBool::new(false));
        Self(Arc::new(Shared { names, asking, is_server_young, redraw: Box::new(redraw) }))
    }

    /// Notes which sessions ask now.
    pub(crate) fn observe(&self, fleet: &Fleet) {
        let asks = |session: &Session| !session.observed.facts.requests.is_empty() || !questions(session).is_empty();
        // A tool of a session on another machine starts nothing here; those of the sessions here do.
        let is_asked_from_elsewhere = fleet.shown().any(|shown| shown.session.remote.is_some() && asks(shown.session));
        let here = fleet.shown().map(|shown| shown.session).filter(|session| session.remote.is_none());
        let asking = here.filter(|session| is_asked_from_elsewhere || asks(session));
        *self.0.asking.lock().unwrap_or_else(PoisonError::into_inner) = asking.filter_map(Runner::of).collect();
    }

    /// Whether a click that this process reports is the user's.
    pub(crate) fn is_of_user(&self, pid: u32) -> bool {
        let asking = self.0.asking.lock().unwrap_or_else(PoisonError::into_inner).clone();
        agent_above(pid, &self.0.names).is_none() && is_older(pid, &asking)
    }

    /// The same of the process that shows popups.
    pub(crate) fn is_server_of_user(&self, pid: u32) -> bool {
        let is_of_user = self.is_of_user(pid);
        if self.0.is_server_young.swap(!is_of_user, Ordering::Relaxed) == is_of_user {
            log::info!(is_of_user = is_of_user, "whether popups may approve has changed");
            (self.0.redraw)();
        }
        is_of_user
    }

    /// Whether popups cannot approve, because their server was started after a session.
    pub(crate) fn is_server_young(&self) -> bool {
        self.0.is_server_young.load(Ordering::Relaxed)
    }
}
