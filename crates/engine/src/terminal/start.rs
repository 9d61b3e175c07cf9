//! Starts a terminal as an independent process.
//!
//! On Unix it gets a session of its own, so that neither a signal to our process group nor the end of our own terminal
//! reaches it. Its standard streams are the null device. A thread waits for its end, because it would otherwise remain
//! as a zombie.
#![cfg_attr(unix, allow(unsafe_code))]

use super::known::Known;
use super::quote::shown;
use pilotlight_agents::callers::marks;
use pilotlight_system::deadline::run_within;
use pilotlight_system::descriptors;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long a new terminal is watched for errors. Without a display or a bus, terminals fail within a few hundred
/// milliseconds.
pub(super) const WATCH_TIME: Duration = Duration::from_secs(1);

/// Runs the words in `folder`, with `env` set, and watches the process for `watch_time`. The first word is the path of
/// a program.
///
/// # Errors
/// If the process cannot be started, or fails within that time.
pub(super) fn run(
    name: &str,
    words: &[OsString],
    folder: &Path,
    env: &[(OsString, OsString)],
    watch_time: Duration,
) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Err("there is nothing to run".into()) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).envs(env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if cfg!(unix) {
        command.env("PWD", folder); // as a shell would set it
    }
    // A new window is not inside our tmux. But a program other than a terminal may be one that opens a window in it.
    if Known::of(Path::new(program).file_name().unwrap_or_default()).is_some() {
        command.env_remove("TMUX").env_remove("TMUX_PANE");
    }
    // A terminal that the user opens is not a tool of an agent's, even if such a tool started us: see
    // `callers::agent_above`.
    for mark in marks() {
        command.env_remove(mark);
    }
    detach(&mut command);
    descriptors::restore(&mut command);
    let spawned = command.spawn();
    let mut child = spawned.map_err(|error| format!("{name} cannot be started in {}: {error}", shown(folder)))?;
    let unwatched = |error| format!("{name} was started, but cannot be watched: {error}");
    match run_within("terminal", watch_time, move || child.wait()).map_err(unwatched)? {
        None => Ok(()),                                 // it runs
        Some(Ok(status)) if status.success() => Ok(()), // it has asked another process for a window
        Some(Ok(status)) => Err(format!("{name} ended at once, {}", describe(status))),
        Some(Err(error)) => Err(unwatched(error)),
    }
}

#[cfg(unix)]
fn detach(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let leave = || rustix::process::setsid().map(drop).map_err(std::io::Error::from);
    // SAFETY: only this system call is made between fork and exec, and nothing is allocated.
    unsafe { command.pre_exec(leave) };
}

#[cfg(windows)]
fn detach(command: &mut Command) {
    use std::os::windows::process::CommandExt;
    use windows_sys::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, DETACHED_PROCESS};
    command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("by signal {signal}");
    }
    status.code().map_or_else(|| "with an error".into(), |code| format!("with the exit code {code}"))
}
