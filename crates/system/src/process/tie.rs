//! Child processes that end with us, even if we are killed.
#![cfg_attr(target_os = "linux", allow(unsafe_code))]

use std::process::Command;

/// Makes the command's process receive SIGTERM when this process ends, for whatever reason. The end of its input alone is
/// not enough: a Copilot server that is just loading a session may miss it.
#[cfg(target_os = "linux")]
pub fn end_with_us(command: &mut Command) {
    use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
    use std::os::unix::process::CommandExt;
    let parent: Pid = getpid();
    let tie = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // We may have ended before that.
        if getppid() == Some(parent) { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: between fork and exec only these two system calls are made, and no memory is allocated.
    unsafe { command.pre_exec(tie) };
}

/// Does nothing: this system has no such signal.
#[cfg(not(target_os = "linux"))]
pub fn end_with_us(_command: &mut Command) {}
