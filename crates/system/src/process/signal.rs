//! Signals to a process, and to no other in its place.
//!
//! An id alone is too weak a name to signal: between the check of what the process is and the signal, the process may
//! end and its id be reused. So a [`Handle`] holds the process itself: by a pidfd on Linux, by a process handle on
//! Windows; on macOS, which has neither, by the id and the start time.
//!
//! Open the handle *first* and verify the process *afterwards*: if it is the expected one then, and the handle has not
//! ended, both are the same process. [`Handle::signal`] verifies it again right before the signal, since a process may
//! exec another program.

#[cfg(target_os = "linux")]
#[path = "signal/linux.rs"]
mod platform;
#[cfg(target_os = "macos")]
#[path = "signal/macos.rs"]
mod platform;
#[cfg(windows)]
#[path = "signal/windows.rs"]
mod platform;

use crate::log::{self, private};
use pilotlight_core::time::Time;
#[cfg(unix)]
use rustix::{io::Errno, process::Signal};

/// How hard a process is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// As by Ctrl-C: SIGINT; on Windows, Ctrl-C in its console. The program can save its state and end its children.
    Interrupt,
    /// SIGTERM; on Windows, which has no such request for a program without a window, another Ctrl-C.
    Terminate,
    /// SIGKILL; on Windows `TerminateProcess`. The program saves nothing, and its children live on.
    Kill,
}

impl Force {
    /// Its name in the log.
    const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Terminate => "terminate",
            Self::Kill => "kill",
        }
    }
}

#[cfg(unix)]
impl Force {
    const fn signal(self) -> Signal {
        match self {
            Self::Interrupt => Signal::INT,
            Self::Terminate => Signal::TERM,
            Self::Kill => Signal::KILL,
        }
    }
}

/// The program that a process must still run to be signalled.
pub struct Expected<'a> {
    /// Its name, for the user.
    pub name: &'a str,
    /// Whether the process with this id provably runs it.
    pub runs_in: &'a dyn Fn(u32) -> bool,
}

/// A process that can be signalled.
#[derive(Debug)]
pub struct Handle {
    pid: u32,
    process: platform::Handle,
}

impl Handle {
    /// Holds the process that has the id now. `None` if there is none. `now` is the wall clock.
    ///
    /// # Errors
    /// The system does not let us hold the process: the reason, for the user.
    pub fn open(pid: u32, now: Time) -> Result<Option<Self>, String> {
        Ok(platform::Handle::open(pid, now)?.map(|process| Self { pid, process }))
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process has ended. `true` if that is unknown, as nothing is signalled then.
    pub fn has_ended(&self) -> bool {
        self.process.has_ended()
    }

    /// Signals the process if it still exists and still runs the `expected` program. Does not wait for it to end;
    /// returns at once, on Windows within 0.2 s.
    ///
    /// # Errors
    /// It has ended, runs another program, or the system forbids the signal: the reason, for the user.
    pub fn signal(&self, force: Force, expected: &Expected<'_>) -> Result<(), String> {
        let pid = self.pid;
        if self.has_ended() {
            return Err(format!("process {pid} has ended. Nothing was signalled"));
        }
        if !(expected.runs_in)(pid) {
            return Err(format!("process {pid} no longer runs {}. Nothing was signalled", expected.name));
        }
        log::info!(pid = private(&pid), force = force.name(), "signalling");
        self.process.signal(force, expected)
    }
}

/// Why a process was not signalled.
#[cfg(unix)]
fn unsent(pid: u32, error: Errno) -> String {
    match error {
        Errno::SRCH => format!("process {pid} has ended. Nothing was signalled"),
        error => format!("cannot signal process {pid}: {error}"),
    }
}
