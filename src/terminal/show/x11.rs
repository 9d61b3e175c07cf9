//! X11: the window that a process made, and the window manager's help to bring it to the front.
//!
//! By the rules that window managers share (EWMH): they list their windows, programs note their process in theirs, and a
//! message asks for one to be activated. It is asked as a pager asks, on the user's word, for else most window managers would
//! only let the window blink. Whether it was done is looked at.

use super::proc;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt, EventMask, Window,
};
use x11rb::rust_connection::RustConnection;

/// A server that has not answered after this does not.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the window manager may take to do as it was asked.
const ACTIVATED: Duration = Duration::from_secs(1);
/// In the message: the user asks, by a program like a pager.
const BY_A_PAGER: u32 = 2;
/// More windows, or more of a text, than this are not read; in units of four bytes.
const MOST: u32 = 4096;

/// Why a window is not in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// No X server takes us.
    Server,
    /// It does not answer.
    Answer,
    /// None of the processes has a window.
    Window,
    /// The window manager did not do it.
    Front,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "there is no display that could show its window",
            Self::Answer => "the display does not answer",
            Self::Window => "no window here belongs to it or to what started it",
            Self::Front => "the window manager did not bring its window to the front",
        })
    }
}

/// Activates a window of the first process in the chain that has one, and says whose. `hint` is the window that the terminal
/// told its programs of, for a process that has several.
///
/// # Errors
/// Why no window is in front.
pub(super) fn raise(display: Option<String>, chain: Vec<u32>, hint: Option<Window>) -> Result<String, Lack> {
    let (tell, told) = mpsc::channel();
    // A server that does not answer holds this thread, not the caller.
    let work = move || {
        let _ = tell.send(X11::connect(display.as_deref()).and_then(|x11| x11.raise(&chain, hint)));
    };
    std::thread::Builder::new().name("x11".into()).spawn(work).map_err(|_| Lack::Server)?;
    told.recv_timeout(PATIENCE).unwrap_or(Err(Lack::Answer))
}

struct X11 {
    connection: RustConnection,
    root: Window,
}

/// Windows of one process, the topmost last.
type Windows = Vec<(u32, Window)>;

impl X11 {
    fn connect(display: Option<&str>) -> Result<Self, Lack> {
        let (connection, screen) = RustConnection::connect(display).map_err(|_| Lack::Server)?;
        let root = connection.setup().roots.get(screen).ok_or(Lack::Server)?.root;
        Ok(Self { connection, root })
    }

    fn raise(&self, chain: &[u32], hint: Option<Window>) -> Result<String, Lack> {
        let windows = self.windows().map_err(|_| Lack::Answer)?;
        let its = windows.iter().find(|(pid, window)| chain.contains(pid) && Some(*window) == hint);
        let nearest = || chain.iter().find_map(|pid| windows.iter().rev().find(|(owner, _)| owner == pid));
        let (pid, window) = *its.or_else(nearest).ok_or(Lack::Window)?;
        self.activate(window)?;
        let name = proc::name(pid).unwrap_or_else(|| "a program".into());
        let several = windows.iter().filter(|(owner, _)| *owner == pid).count();
        Ok(match several {
            2.. if its.is_none() => {
                format!("the topmost of {several} windows of {name} (process {pid}; which of them cannot be told)")
            }
            _ => format!("the window of {name} (process {pid})"),
        })
    }

    /// The windows that the window manager lists, each with the process of this machine that made it. Panels and desktops,
    /// from which terminals are started, are left out.
    fn windows(&self) -> Result<Windows, ReplyError> {
        let mut list = self.values(self.root, self.atom("_NET_CLIENT_LIST_STACKING")?, AtomEnum::WINDOW)?;
        if list.is_empty() {
            list = self.values(self.root, self.atom("_NET_CLIENT_LIST")?, AtomEnum::WINDOW)?;
        }
        let (pid, kind) = (self.atom("_NET_WM_PID")?, self.atom("_NET_WM_WINDOW_TYPE")?);
        let furniture = [self.atom("_NET_WM_WINDOW_TYPE_DOCK")?, self.atom("_NET_WM_WINDOW_TYPE_DESKTOP")?];
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut windows = Windows::new();
        for window in list {
            let about = || {
                let kinds = self.values(window, kind, AtomEnum::ATOM)?;
                let made_by = self.values(window, pid, AtomEnum::CARDINAL)?;
                Ok((kinds, made_by, self.machine(window)?))
            };
            let (kinds, made_by, machine) = match about() {
                Ok(about) => about,
                Err(ReplyError::X11Error(_)) => continue, // it has closed
                Err(error) => return Err(error),
            };
            let is_here =
                machine.is_empty() || machine == "localhost" || first_label(&machine) == first_label(host.trim());
            if let (Some(pid), true) = (made_by.first(), is_here && !kinds.iter().any(|kind| furniture.contains(kind)))
            {
                windows.push((*pid, window));
            }
        }
        Ok(windows)
    }

    /// Asks for the window, and waits until it is the active one.
    fn activate(&self, window: Window) -> Result<(), Lack> {
        let deadline = Instant::now() + ACTIVATED;
        let ask = || -> Result<Atom, ReplyError> {
            let active = self.atom("_NET_ACTIVE_WINDOW")?;
            let changes = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
            self.connection.change_window_attributes(self.root, &changes)?;
            let message = ClientMessageEvent::new(32, window, active, [BY_A_PAGER, x11rb::CURRENT_TIME, 0, 0, 0]);
            let to_manager = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
            self.connection.send_event(false, self.root, to_manager, message)?;
            self.connection.flush()?;
            Ok(active)
        };
        let active = ask().map_err(|_| Lack::Answer)?;
        loop {
            // First the events: what comes after them wakes the wait below.
            while self.connection.poll_for_event().map_err(|_| Lack::Answer)?.is_some() {}
            let now = self.values(self.root, active, AtomEnum::WINDOW).map_err(|_| Lack::Answer)?;
            if now.first() == Some(&window) {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Lack::Front);
            }
            if let Some(_came_meanwhile) = self.connection.poll_for_event().map_err(|_| Lack::Answer)? {
                continue;
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: left.min(Duration::from_millis(500)).subsec_nanos().into() };
            let mut wait = [PollFd::new(self.connection.stream(), PollFlags::IN)];
            let _ = poll(&mut wait, Some(&timeout)); // an interruption is a reason to look again
        }
    }

    fn atom(&self, name: &str) -> Result<Atom, ReplyError> {
        Ok(self.connection.intern_atom(false, name.as_bytes())?.reply()?.atom)
    }

    /// The numbers of a property; none where the window has no such property.
    fn values(&self, window: Window, property: Atom, kind: AtomEnum) -> Result<Vec<u32>, ReplyError> {
        let reply = self.connection.get_property(false, window, property, kind, 0, MOST)?.reply()?;
        Ok(reply.value32().map(Iterator::collect).unwrap_or_default())
    }

    /// The machine that the window's program runs on, as far as it says.
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
