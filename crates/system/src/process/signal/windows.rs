//! A handle to a process on Windows: an open process handle, which keeps the id from being reused.
//!
//! Windows has no signals. Closest to an interrupt is Ctrl-C, which goes to a console: to every process that is
//! attached to it, as when the user presses the keys there. To send it, this process leaves its own console, attaches
//! to the other one, ignores Ctrl-C itself, and goes back. A console on which another process runs the same program is
//! refused.
#![allow(unsafe_code)]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::sync::{Mutex, PoisonError};

use windows_sys::Win32::Foundation::{ERROR_INVALID_PARAMETER, WAIT_OBJECT_0};
use windows_sys::Win32::System::Console::{
    AttachConsole, CTRL_C_EVENT, FreeConsole, GenerateConsoleCtrlEvent, GetConsoleProcessList, SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::Threading::{
    GetProcessId, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE,
    TerminateProcess, WaitForSingleObject,
};

use super::{Expected, Force};
use crate::process::ancestry::ancestors;
use pilotlight_core::time::Time;

/// How long we ignore Ctrl-C after sending it, in milliseconds: it arrives on a thread of its own.
const DELIVERY: u32 = 200;
/// The exit code of a killed process, the same as the task manager sets.
const KILLED: u32 = 1;

#[derive(Debug)]
pub(crate) struct Handle {
    pid: u32,
    process: OwnedHandle,
}

impl Handle {
    /// Holds the process that has the id now. `None` if there is none.
    pub(super) fn open(pid: u32, _now: Time) -> Result<Option<Self>, String> {
        let rights = PROCESS_SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_TERMINATE;
        // SAFETY: takes and returns plain values.
        let handle = unsafe { OpenProcess(rights, 0, pid) };
        if handle.is_null() {
            let error = io::Error::last_os_error();
            if error.raw_os_error().map(i32::unsigned_abs) == Some(ERROR_INVALID_PARAMETER) {
                return Ok(None);
            }
            return Err(format!("cannot hold on to process {pid}: {error}. Nothing was signalled"));
        }
        // SAFETY: just opened, and owned by nothing else.
        let process = unsafe { OwnedHandle::from_raw_handle(handle) };
        // SAFETY: the handle is open and has the right that this call needs.
        let id = unsafe { GetProcessId(process.as_raw_handle()) };
        // Windows ignores the lowest two bits of the id that it is asked to open.
        Ok((id == pid).then_some(Self { pid, process }))
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ends_within(0)
    }

    fn ends_within(&self, milliseconds: u32) -> bool {
        // SAFETY: the handle is open and has the right that this call needs.
        unsafe { WaitForSingleObject(self.process.as_raw_handle(), milliseconds) == WAIT_OBJECT_0 }
    }

    pub(super) fn signal(&self, force: Force, expected: &Expected<'_>) -> Result<(), String> {
        let pid = self.pid;
        match force {
            Force::Interrupt | Force::Terminate => self.press_ctrl_c(expected),
            Force::Kill => {
                // SAFETY: the handle is open and has the right that this call needs.
                let killed = unsafe { TerminateProcess(self.process.as_raw_handle(), KILLED) } != 0;
                let error = io::Error::last_os_error();
                if killed || self.has_ended() { Ok(()) } else { Err(format!("cannot end process {pid}: {error}")) }
            }
        }
    }

    fn press_ctrl_c(&self, expected: &Expected<'_>) -> Result<(), String> {
        // A process has one console.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = self.pid;
        let _visit = Visit::start(pid).map_err(|error| {
            format!("process {pid} has no console that Ctrl-C could be sent to ({error}). Nothing was signalled")
        })?;
        if let Some(other) = on_this_console().into_iter().find(|other| is_another(expected, *other, pid)) {
            return Err(format!(
                "Ctrl-C would also end process {other}, another {} on the console of process {pid}. Nothing was \
                 signalled; end it in its terminal",
                expected.name
            ));
        }
        // SAFETY: takes plain values.
        if unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) } == 0 {
            return Err(format!("cannot send Ctrl-C to process {pid}: {}", io::Error::last_os_error()));
        }
        self.ends_within(DELIVERY);
        Ok(())
    }
}

/// A stay on another process's console, ignoring Ctrl-C. Its drop goes back.
struct Visit {
    /// Another process on our own console, through which we can attach to it again. `None` if we had no console, or no
    /// other process is on it.
    neighbour: Option<u32>,
}

impl Visit {
    fn start(pid: u32) -> io::Result<Self> {
        let neighbour = on_this_console().into_iter().find(|other| *other != std::process::id());
        // SAFETY: these take plain values; no handler is registered, only the flag to ignore Ctrl-C is set.
        let attached = unsafe {
            FreeConsole();
            AttachConsole(pid) != 0 && SetConsoleCtrlHandler(None, 1) != 0
        };
        let error = io::Error::last_os_error();
        let visit = Self { neighbour };
        if attached { Ok(visit) } else { Err(error) }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        // SAFETY: these take plain values.
        unsafe {
            FreeConsole();
            if let Some(neighbour) = self.neighbour {
                AttachConsole(neighbour);
            }
            SetConsoleCtrlHandler(None, 0);
        }
    }
}

/// The processes that are attached to the console that we are attached to; empty without a console.
fn on_this_console() -> Vec<u32> {
    let mut list = vec![0; 64];
    loop {
        // SAFETY: the list has the length that is passed.
        let count = unsafe { GetConsoleProcessList(list.as_mut_ptr(), list.len() as u32) } as usize;
        if count <= list.len() {
            list.truncate(count);
            return list;
        }
        list.resize(count * 2, 0); // nothing was written: the list was too short
    }
}

/// Whether `other` runs the same program as `pid` and is neither that process nor its ancestor or descendant (a
/// script's interpreter may start the native program).
fn is_another(expected: &Expected<'_>, other: u32, pid: u32) -> bool {
    other != pid && (expected.runs_in)(other) && !ancestors(pid).contains(&other) && !ancestors(other).contains(&pid)
}
