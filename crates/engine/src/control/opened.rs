//! The terminal windows that a tray opened at a click: what its user types there is the user's.
//!
//! A terminal that runs a command directly shows nothing of its user: the command leads the terminal's session and is as
//! young as the window, whatever program opened that. So the tray gives what it opens a ticket, one word on the command
//! line that nobody can guess. The first process that comes with it holds it until it ends: it must run this very program,
//! in a terminal. A ticket is for one request, if the window was opened for one.
//!
//! Any program of the user can read a command line. A second process that comes with a ticket makes it void for both, and
//! nothing counts that a window answers before its user can have read anything: by then the real one has come. That
//! leaves a program that reads the ticket of a window, ends that window before it has come, and poses as it; see
//! `SECURITY.md`.

use pilotlight_core::order::{Operation, Reply, Which};
use pilotlight_system::log;
#[cfg(target_os = "linux")]
use pilotlight_system::paths::own_program;
use pilotlight_system::process::birth_of;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The option with the ticket.
const OPTION: &str = "--window=";
/// How long a window may take to come with its ticket. A terminal takes up to a few seconds on a busy machine.
const COMES_WITHIN: Duration = Duration::from_secs(120);
/// What a window answers sooner than this after it came was not read before.
pub const UNREAD: Duration = Duration::from_millis(700);
/// The most windows that are known at a time. The oldest is forgotten.
const WINDOWS_MAX: usize = 64;

/// The windows that were opened. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct OpenedWindows(Arc<Mutex<Vec<Window>>>);

#[derive(Debug)]
struct Window {
    ticket: String,
    /// What it was opened for. `None`: whatever its user chooses there.
    request: Option<String>,
    opened: Instant,
    holder: Option<Holder>,
    /// Two processes came with its ticket.
    is_void: bool,
}

/// The process that came with a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pid: u32,
    /// When it started, in the system's unit: another process may get its id.
    born: u64,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    process: Process,
    came: Instant,
}

/// Whether an order comes from a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InWindow {
    No,
    Yes,
    /// It does, and its user cannot have read what it shows.
    Unread,
}

impl OpenedWindows {
    /// Makes a ticket for a window that is about to be opened, as a word of its command line. `None` if the system gives no
    /// random number: then the window is as any other.
    pub fn open(&self, request: Option<&str>) -> Option<String> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let ticket = random.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        let word = format!("{OPTION}{ticket}");
        let (request, opened) = (request.map(str::to_owned), Instant::now());
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        windows.retain(Window::is_open);
        if windows.len() >= WINDOWS_MAX {
            windows.remove(0);
        }
        windows.push(Window { ticket, request, opened, holder: None, is_void: false });
        Some(word)
    }

    /// Notes that the window of this word could not be opened.
    pub fn revoke(&self, word: &str) {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        windows.retain(|window| word.strip_prefix(OPTION) != Some(&*window.ticket));
    }

    /// Notes that the window has come in which this process runs, before it gives any order.
    pub(crate) fn hold(&self, comer: u32) {
        self.come(comer, |_, _| ());
    }

    /// Whether the process that gives this order runs in a window, or was started by this program there. To be called for
    /// every order, as the first one shows that the window has come.
    pub(crate) fn find(&self, caller: u32, operation: &Operation) -> InWindow {
        let judged = |window: &Window, is_in| match window.is_void || !window.fits(operation) {
            true => InWindow::No,
            false => is_in,
        };
        self.come(caller, judged).unwrap_or(InWindow::No)
    }

    /// Notes that a process has come, and returns what is made of its window and of whether it is in it.
    fn come<T>(&self, comer: u32, judge: impl FnOnce(&Window, InWindow) -> T) -> Option<T> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.is_empty() {
            return None;
        }
        let (ticket, process) = ticket_of(comer)?;
        windows.retain(Window::is_open);
        let window = windows.iter_mut().find(|window| *window.ticket == *ticket)?;
        let is_in = window.come(process, Instant::now());
        Some(judge(window, is_in))
    }
}

impl Window {
    /// Whether its holder lives, or it is still expected.
    fn is_open(&self) -> bool {
        match self.holder {
            Some(Holder { process, .. }) => birth_of(process.pid) == Some(process.born),
            None => self.opened.elapsed() < COMES_WITHIN,
        }
    }

    /// A process comes with its ticket.
    fn come(&mut self, process: Process, now: Instant) -> InWindow {
        let holder = *self.holder.get_or_insert(Holder { process, came: now });
        if holder.process != process {
            if !self.is_void {
                log::warn!(
                    "two processes claim to run in the window that your click opened: neither may answer for you"
                );
            }
            self.is_void = true;
            return InWindow::No;
        }
        if now.saturating_duration_since(holder.came) < UNREAD { InWindow::Unread } else { InWindow::Yes }
    }

    /// Whether it was opened for what this order answers.
    fn fits(&self, operation: &Operation) -> bool {
        let Some(request) = &self.request else { return true };
        match operation {
            Operation::Approve(Which::Shown { id, .. }) | Operation::Always { which: Which::Shown { id, .. }, .. } => {
                id == request
            }
            Operation::Approve(Which::These(ids)) | Operation::Always { which: Which::These(ids), .. } => {
                ids.iter().all(|id| id == request)
            }
            Operation::Deny(Which::Shown { id, .. }) | Operation::DenyWith { which: Which::Shown { id, .. }, .. } => {
                id == request
            }
            Operation::Answer(Reply::Give { request: of, .. }) => of == request,
            _ => false,
        }
    }
}

/// The ticket on the command line of a process, or of the nearest one above it; all up to that one run this program.
#[cfg(target_os = "linux")]
fn ticket_of(caller: u32) -> Option<(String, Process)> {
    use pilotlight_system::process::{ancestors, command_line, terminal_of};
    let line = std::iter::once(caller).chain(ancestors(caller));
    for pid in line.take_while(|pid| runs_this_program(*pid)) {
        let words = command_line(pid)?;
        let ticket =
            words.iter().find_map(|word| word.to_str()?.strip_prefix(OPTION)).filter(|ticket| !ticket.is_empty());
        if let Some(ticket) = ticket {
            terminal_of(pid)?;
            return Some((ticket.to_owned(), Process { pid, born: birth_of(pid)? }));
        }
    }
    None
}

/// Elsewhere, nothing is asked of those who give orders.
#[cfg(not(target_os = "linux"))]
const fn ticket_of(_caller: u32) -> Option<(String, Process)> {
    None
}

#[cfg(target_os = "linux")]
fn runs_this_program(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let file = |path: PathBuf| std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    // An update may have replaced our file since we started.
    let ours = [Some("/proc/self/exe".into()), own_program()].into_iter().flatten().filter_map(file);
    let theirs = file(format!("/proc/{pid}/exe").into());
    ours.into_iter().any(|ours| theirs == Some(ours))
}
