//! Processes to watch, and a way to wait for what they do.

#[cfg(target_os = "linux")]
use std::ffi::OsStr;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

use crate::core::time::Time;

/// How long a test waits for what should come at once: only a failure takes it.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The file name of what [`waiting`] runs.
pub(super) const WAITING: &str = if cfg!(windows) { "cmd" } else { "cat" };

/// A process that is ended with the test.
pub(super) struct Running(pub(super) Child);

impl Running {
    pub(super) fn start(command: &mut Command) -> Self {
        // In a group of its own, so that what it starts ends with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let process = Self(command.spawn().unwrap());
        // The start is over for us a moment before the kernel shows the new program and its command line.
        #[cfg(target_os = "linux")]
        wait_until("the new program", || {
            let [exe, line] = ["exe", "cmdline"].map(|name| format!("/proc/{}/{name}", process.pid()));
            std::fs::read_link(exe).is_ok_and(|exe| Some(exe) != std::env::current_exe().ok())
                && std::fs::read(line).is_ok_and(|line| !line.is_empty())
        });
        process
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Kills it (SIGKILL), and leaves a zombie on Unix.
    pub(super) fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Kills it and waits: its id is free then.
    pub(super) fn end(&mut self) {
        self.kill();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid() as i32)
            && self.0.try_wait().is_ok_and(|ended| ended.is_none())
        {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that waits for input that never comes.
pub(super) fn waiting() -> Running {
    let command = &mut Command::new(WAITING);
    Running::start(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()))
}

/// Becomes `program`, which waits for input, after these lines of perl: what they open stays open.
#[cfg(target_os = "linux")]
pub(super) fn after(perl: &str, program: &Path, arguments: &[&OsStr]) -> Running {
    let script = format!("$^F = 255; {perl} my $program = shift; exec {{ $program }} $program, @ARGV or die");
    let mut command = Command::new("perl");
    command.args(["-e", &script]).arg(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
    let process = Running::start(&mut command);
    let exe = format!("/proc/{}/exe", process.pid());
    wait_until("the program", || std::fs::read_link(&exe).is_ok_and(|exe| exe.file_name() == program.file_name()));
    process
}

/// The perl that takes the lock beside the session's own in this folder.
#[cfg(target_os = "linux")]
pub(super) fn holding(folder: &Path) -> String {
    format!(r#"open(F, ">", "{}/inuse.$$.hold") or die; flock(F, 6) or die;"#, folder.display())
}

/// Waits until `condition` holds.
#[cfg(target_os = "linux")]
pub(super) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The wall clock.
pub(super) fn now() -> Time {
    Time(jiff::Timestamp::now().as_millisecond())
}
