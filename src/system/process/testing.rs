//! Processes for tests, and waiting for what they do.

#[cfg(target_os = "linux")]
use std::ffi::OsStr;
#[cfg(unix)]
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
#[cfg(target_os = "linux")]
use std::sync::mpsc::{Sender, channel};
#[cfg(target_os = "linux")]
use std::thread::JoinHandle;
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

use crate::core::time::Time;

/// How long a test waits for what should happen at once. Only a failing test waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The file name of the program that [`waiting`] runs.
pub(crate) const WAITING: &str = if cfg!(windows) { "cmd" } else { "cat" };

/// The id of a process that has ended.
pub(crate) fn ended() -> u32 {
    let test = std::env::current_exe().unwrap();
    let mut child = Command::new(test).arg("--help").stdout(Stdio::null()).spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// Makes a FIFO. By a program, because `rustix` makes none on macOS.
#[cfg(unix)]
pub(crate) fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg("-m600").arg(path).status().unwrap().success());
}

/// A process that ends with the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        // In a process group of its own, so that its children end with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let process = Self(command.spawn().unwrap());
        // `spawn` returns a moment before the kernel shows the new program and its command line.
        #[cfg(target_os = "linux")]
        wait_until("the new program", || {
            let [exe, line] = ["exe", "cmdline"].map(|name| format!("/proc/{}/{name}", process.pid()));
            std::fs::read_link(exe).is_ok_and(|exe| Some(exe) != std::env::current_exe().ok())
                && std::fs::read(line).is_ok_and(|line| !line.is_empty())
        });
        process
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Kills it (SIGKILL), which leaves a zombie on Unix.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Kills it and waits for it, which frees its id.
    pub(crate) fn end(&mut self) {
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

/// A process that waits for input that never arrives.
pub(crate) fn waiting() -> Running {
    let command = &mut Command::new(WAITING);
    Running::start(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()))
}

/// A process that runs these lines of perl and then execs `program`, which waits for input. The files that perl opened
/// stay open.
#[cfg(target_os = "linux")]
pub(crate) fn after(perl: &str, program: &Path, arguments: &[&OsStr]) -> Running {
    let script = format!("$^F = 255; {perl} my $program = shift; exec {{ $program }} $program, @ARGV or die");
    let mut command = Command::new("perl");
    command.args(["-e", &script]).arg(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
    let process = Running::start(&mut command);
    let [exe, line] = ["exe", "cmdline"].map(|name| format!("/proc/{}/{name}", process.pid()));
    wait_until("the program", || {
        // Its command line is set a moment later.
        std::fs::read_link(&exe).is_ok_and(|exe| exe.file_name() == program.file_name())
            && std::fs::read(&line).is_ok_and(|line| !line.is_empty())
    });
    process
}

/// Copies a program under another name. Uses `cp`: a file that this process has opened for writing may be inherited by
/// a child that another test starts at that moment, and then cannot be executed (ETXTBSY).
#[cfg(target_os = "linux")]
pub(crate) fn copy(program: &str, to: &Path) {
    assert!(Command::new("cp").arg(program).arg(to).status().unwrap().success());
}

/// A running program of the given name that waits for input, with its path and the folder that it is in.
#[cfg(target_os = "linux")]
pub(crate) fn named(name: &OsStr) -> (tempfile::TempDir, PathBuf, Running) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    copy("/bin/cat", &path);
    let process = Running::start(Command::new(&path).stdin(Stdio::piped()).stdout(Stdio::null()));
    (folder, path, process)
}

/// A process that has ended and that nobody has waited for.
#[cfg(target_os = "linux")]
pub(crate) fn zombie() -> Running {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let mut process = waiting();
    process.kill();
    let pid = Pid::from_raw(process.pid() as i32).unwrap();
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    process
}

/// A thread of this process that lives until it is dropped.
#[cfg(target_os = "linux")]
pub(crate) struct Thread {
    pub(crate) id: u32,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[cfg(target_os = "linux")]
impl Thread {
    pub(crate) fn start() -> Self {
        let (id_sender, id) = channel();
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            let link = std::fs::read_link("/proc/thread-self").unwrap();
            id_sender.send(link.file_name().unwrap().to_str().unwrap().parse().unwrap()).unwrap();
            let _ = ended.recv();
        });
        Self { id: id.recv().unwrap(), end: Some(end), thread: Some(thread) }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Thread {
    fn drop(&mut self) {
        self.end.take();
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Waits until `condition` holds.
#[cfg(target_os = "linux")]
pub(crate) fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for: {description}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The wall clock.
pub(crate) fn now() -> Time {
    Time(jiff::Timestamp::now().as_millisecond())
}
