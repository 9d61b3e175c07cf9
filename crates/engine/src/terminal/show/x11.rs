//! X11: finds the window of a process, and has the window manager bring it to the front, or say which is active.
//!
//! This follows EWMH: window managers list their windows, programs set their pid on theirs, and a message requests
//! activation. The request claims to come from a pager, that is from the user, because most window managers would
//! otherwise only mark the window as urgent. Afterwards this checks that the window is active.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use super::on_screen::{OnScreen, pick};
use pilotlight_system::deadline::run_within;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt, EventMask, MapState, Window,
};
use x11rb::rust_connection::RustConnection;

/// Timeout for the X server.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for the window manager to activate the window.
const ACTIVATION_TIMEOUT: Duration = Duration::from_secs(1);
/// The source indication of a pager, in EWMH.
const SOURCE_PAGER: u32 = 2;
/// Maximum length of a property that is read, in units of four bytes.
const PROPERTY_MAX: u32 = 4096;

/// Why a window could not be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No connection to an X server.
    NoServer,
    /// The server does not answer.
    NoAnswer,
    /// None of the processes has a window.
    NoWindow,
    /// The window manager did not activate the window.
    NotActivated,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoServer => "there is no display that could show its window",
            Self::NoAnswer => "the display does not answer",
            Self::NoWindow => "no window here belongs to it or to what started it",
            Self::NotActivated => "the window manager did not bring its window to the front",
        })
    }
}

/// Activates a window of the first process in the chain that has one, and returns a description of the window. `hint`
/// is the window that the terminal announced to its programs; it decides if a process has several.
///
/// # Errors
/// If no window could be activated.
pub(super) fn raise(display: Option<String>, chain: Vec<u32>, hint: Option<Window>) -> Result<String, Failure> {
    let work = move || X11::connect(display.as_deref())?.raise(&chain, hint);
    run_within("x11", TIMEOUT, work).map_err(|_| Failure::NoServer)?.ok_or(Failure::NoAnswer)?
}

/// The windows on a display. `None` if it does not answer.
pub(super) fn on_screen(display: Option<String>) -> Option<Vec<OnScreen>> {
    run_within("x11", TIMEOUT, move || X11::connect(display.as_deref()).ok()?.on_screen().ok()).ok()??
}

/// A menu on the display.
pub struct OpenMenu {
    x11: X11,
    pid: u32,
    window: Window,
}

impl OpenMenu {
    /// The topmost menu of this process, as the display's own windows say. `None` if there is none, or the display does
    /// not answer.
    pub(super) fn find(display: Option<String>, pid: u32) -> Option<Self> {
        let work = move || {
            let x11 = X11::connect(display.as_deref()).ok()?;
            let window = x11.menu_of(pid).ok()??;
            Some(Self { x11, pid, window })
        };
        run_within("x11", TIMEOUT, work).ok()??
    }

    /// Blocks until the process has no menu on the display any more, or the display has gone.
    pub fn wait_until_closed(mut self) {
        while let Ok(event) = self.x11.connection.wait_for_event() {
            let gone = match event {
                Event::UnmapNotify(event) => event.window,
                Event::DestroyNotify(event) => event.window,
                _ => continue,
            };
            if gone == self.window {
                // A submenu closes before the menu that it belongs to.
                let Ok(Some(window)) = self.x11.menu_of(self.pid) else { return };
                self.window = window;
            }
        }
    }
}

struct X11 {
    connection: RustConnection,
    root: Window,
}

/// Windows with the pid of each, the topmost last.
type Windows = Vec<(u32, Window)>;

impl X11 {
    fn connect(display: Option<&str>) -> Result<Self, Failure> {
        let (connection, screen) = RustConnection::connect(display).map_err(|_| Failure::NoServer)?;
        let root = connection.setup().roots.get(screen).ok_or(Failure::NoServer)?.root;
        Ok(Self { connection, root })
    }

    fn raise(&self, chain: &[u32], hint: Option<Window>) -> Result<String, Failure> {
        let windows = self.on_screen().map_err(|_| Failure::NoAnswer)?;
        let picked = pick(&windows, chain, hint).ok_or(Failure::NoWindow)?;
        self.activate(windows[picked.index].x11.ok_or(Failure::NoWindow)?)?;
        Ok(picked.name)
    }

    fn on_screen(&self) -> Result<Vec<OnScreen>, ReplyError> {
        let active = self.values(self.root, self.atom("_NET_ACTIVE_WINDOW")?, AtomEnum::WINDOW)?;
        let on_screen = |(pid, window)| OnScreen { pid, x11: Some(window), has_focus: active.first() == Some(&window) };
        Ok(self.windows()?.into_iter().map(on_screen).collect())
    }

    /// The topmost menu of this process. Its closing is an event of this connection from now on.
    fn menu_of(&self, pid: u32) -> Result<Option<Window>, ReplyError> {
        let closing = ChangeWindowAttributesAux::new().event_mask(EventMask::STRUCTURE_NOTIFY);
        let (owner, kind) = (self.atom("_NET_WM_PID")?, self.atom("_NET_WM_WINDOW_TYPE")?);
        let menus = [self.atom("_NET_WM_WINDOW_TYPE_POPUP_MENU")?, self.atom("_NET_WM_WINDOW_TYPE_DROPDOWN_MENU")?];
        // The topmost first.
        for window in self.connection.query_tree(self.root)?.reply()?.children.into_iter().rev() {
            let is_menu = || {
                if self.values(window, owner, AtomEnum::CARDINAL)?.first() != Some(&pid)
                    || !self.values(window, kind, AtomEnum::ATOM)?.iter().any(|kind| menus.contains(kind))
                {
                    return Ok(false);
                }
                // Asked for before it is looked at, so that no closing is missed.
                self.connection.change_window_attributes(window, &closing)?.check()?;
                let attributes = self.connection.get_window_attributes(window)?.reply()?;
                Ok(attributes.override_redirect && attributes.map_state == MapState::VIEWABLE)
            };
            match is_menu() {
                Ok(true) => return Ok(Some(window)),
                Ok(false) | Err(ReplyError::X11Error(_)) => {} // it may have closed meanwhile
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The windows that the window manager lists, each with its process on this machine. Panels and desktops are left
    /// out, because terminals are started from them and so have them among their ancestors.
    fn windows(&self) -> Result<Windows, ReplyError> {
        let mut list = self.values(self.root, self.atom("_NET_CLIENT_LIST_STACKING")?, AtomEnum::WINDOW)?;
        if list.is_empty() {
            list = self.values(self.root, self.atom("_NET_CLIENT_LIST")?, AtomEnum::WINDOW)?;
        }
        let (pid, kind) = (self.atom("_NET_WM_PID")?, self.atom("_NET_WM_WINDOW_TYPE")?);
        let excluded = [self.atom("_NET_WM_WINDOW_TYPE_DOCK")?, self.atom("_NET_WM_WINDOW_TYPE_DESKTOP")?];
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut windows = Windows::new();
        for window in list {
            let about = || {
                let kinds = self.values(window, kind, AtomEnum::ATOM)?;
                let pids = self.values(window, pid, AtomEnum::CARDINAL)?;
                Ok((kinds, pids, self.machine(window)?))
            };
            let (kinds, pids, machine) = match about() {
                Ok(about) => about,
                Err(ReplyError::X11Error(_)) => continue, // the window has closed
                Err(error) => return Err(error),
            };
            let is_here =
                machine.is_empty() || machine == "localhost" || first_label(&machine) == first_label(host.trim());
            if let (Some(pid), true) = (pids.first(), is_here && !kinds.iter().any(|kind| excluded.contains(kind))) {
                windows.push((*pid, window));
            }
        }
        Ok(windows)
    }

    /// Requests activation, and waits until the window is active.
    fn activate(&self, window: Window) -> Result<(), Failure> {
        let deadline = Instant::now() + ACTIVATION_TIMEOUT;
        let ask = || -> Result<Atom, ReplyError> {
            let active = self.atom("_NET_ACTIVE_WINDOW")?;
            let changes = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
            self.connection.change_window_attributes(self.root, &changes)?;
            let message = ClientMessageEvent::new(32, window, active, [SOURCE_PAGER, x11rb::CURRENT_TIME, 0, 0, 0]);
            let to_manager = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
            self.connection.send_event(false, self.root, to_manager, message)?;
            self.connection.flush()?;
            Ok(active)
        };
        let active = ask().map_err(|_| Failure::NoAnswer)?;
        loop {
            // Drains events before reading the property: a change after this wakes the poll below.
            while self.connection.poll_for_event().map_err(|_| Failure::NoAnswer)?.is_some() {}
            let now = self.values(self.root, active, AtomEnum::WINDOW).map_err(|_| Failure::NoAnswer)?;
            if now.first() == Some(&window) {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::NotActivated);
            }
            if let Some(_event) = self.connection.poll_for_event().map_err(|_| Failure::NoAnswer)? {
                continue;
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: left.min(Duration::from_millis(500)).subsec_nanos().into() };
            let mut wait = [PollFd::new(self.connection.stream(), PollFlags::IN)];
            let _ = poll(&mut wait, Some(&timeout)); // if interrupted, checks again
        }
    }

    fn atom(&self, name: &str) -> Result<Atom, ReplyError> {
        Ok(self.connection.intern_atom(false, name.as_bytes())?.reply()?.atom)
    }

    /// The numbers in a property; empty if the window does not have it.
    fn values(&self, window: Window, property: Atom, kind: AtomEnum) -> Result<Vec<u32>, ReplyError> {
        let reply = self.connection.get_property(false, window, property, kind, 0, PROPERTY_MAX)?.reply()?;
        Ok(reply.value32().map(Iterator::collect).unwrap_or_default())
    }

    /// The machine that the window's program runs on; empty if it is not set.
    fn machine(&self, window: Window) -> Result<String, ReplyError> {
        let (property, any) = (AtomEnum::WM_CLIENT_MACHINE, AtomEnum::ANY);
        let reply = self.connection.get_property(false, window, property, any, 0, 64)?.reply()?;
        Ok(String::from_utf8_lossy(&reply.value).trim_end_matches('\0').to_owned())
    }
}

/// The name of a machine without its domain.
fn first_label(host: &str) -> &str {
    host.split('.').next().unwrap_or_default()
}
