//! What is asked of a process that is signalled.

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
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Terminate => "terminate",
            Self::Kill => "kill",
        }
    }
}

#[cfg(unix)]
impl Force {
    pub(super) const fn signal(self) -> Signal {
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

/// Why a process was not signalled.
#[cfg(unix)]
pub(super) fn unsent(pid: u32, error: Errno) -> String {
    match error {
        Errno::SRCH => format!("process {pid} has ended. Nothing was signalled"),
        error => format!("cannot signal process {pid}: {error}"),
    }
}
