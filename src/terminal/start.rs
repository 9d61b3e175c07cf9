//! Starting a terminal: a process that owes us nothing.
//!
//! On Unix it gets a session of its own, so that neither a signal to our process group nor the end of our own terminal
//! reaches it. It has nothing to read from or write to. A thread waits for its end, for otherwise it would stay as a zombie
//! until ours.
#![cfg_attr(unix, allow(unsafe_code))]

use super::known::Known;
use super::shown;
use crate::agent::copilot::identity::AGENT_MARKS;
use crate::system::descriptors::give_back;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Runs the words in `folder`, with `env` set, and watches for as long as `watched`. The first word is the path of a program.
///
/// # Errors
/// Where they cannot be started, or end at once with an error.
pub(super) fn run(
    name: &str,
    words: &[OsString],
    folder: &Path,
    env: &[(OsString, OsString)],
    watched: Duration,
) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Err("there is nothing to run".into()) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).envs(env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if cfg!(unix) {
        command.env("PWD", folder); // what a shell would have said
    }
    // A new window is in no tmux, even where we are; but a program that opens one in ours has to find it.
    if Known::of(Path::new(program).file_name().unwrap_or_default()).is_some() {
        command.env_remove("TMUX").env_remove("TMUX_PANE");
    }
    // A terminal of the user's is no tool's, even where a tool started us: see `watch::process::copilot_ancestor`.
    for mark in AGENT_MARKS {
        command.env_remove(mark);
    }
    detach(&mut command);
    give_back(&mut command);
    let spawned = command.spawn();
    let mut child = spawned.map_err(|error| format!("{name} cannot be started in {}: {error}", shown(folder)))?;
    let unwatched = |error| format!("{name} was started, but cannot be watched: {error}");
    let (tell, told) = mpsc::channel();
    let wait = move || {
        let _ = tell.send(child.wait()); // nobody listens any more once it has lasted
    };
    std::thread::Builder::new().name("terminal".into()).spawn(wait).map_err(unwatched)?;
    match told.recv_timeout(watched) {
        // Lasting, or one that has asked another process for a window.
        Err(_) => Ok(()),
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("{name} ended at once, {}", worded(status))),
        Ok(Err(error)) => Err(unwatched(error)),
    }
}

#[cfg(unix)]
fn detach(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let leave = || rustix::process::setsid().map(drop).map_err(std::io::Error::from);
    // SAFETY: between fork and exec only this one system call is made, and no memory is allocated.
    unsafe { command.pre_exec(leave) };
}

#[cfg(windows)]
fn detach(command: &mut Command) {
    use std::os::windows::process::CommandExt;
    use windows_sys::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, DETACHED_PROCESS};
    command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
}

fn worded(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("by signal {signal}");
    }
    status.code().map_or_else(|| "with an error".into(), |code| format!("with the exit code {code}"))
}
