//! Processes for tests, and waiting for what they do.

#![allow(clippy::disallowed_methods, reason = "what a test starts")]
// What a test starts fails in the test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

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

use pilotlight_core::time::Time;

/// How long a test waits for what should happen at once. Only a failing test waits that long.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The file name of the program that [`waiting`] runs.
pub const WAITING: &str = if cfg!(windows) { "cmd" } else { "cat" };

/// Has the test that says so run in a process of its own, where it starts all children, opens all files and holds all
/// locks itself. The process of all tests has the children of others as well, and each of them has for a moment, between
/// fork and exec, the environment, the open files and the locks of that process: it is taken for a child of ours, keeps a
/// lock that was dropped, or a program from being run that was just written (ETXTBSY). To be said first. An
/// argument is a function that wraps the command which starts that process: in `unshare`, for example.
#[doc(hidden)]
#[macro_export]
macro_rules! alone {
    () => {
        $crate::process::testing::alone!(|command| command)
    };
    ($wrap:expr) => {
        fn here() {}
        if $crate::process::testing::ran_alone(std::any::type_name_of_val(&here), $wrap) {
            return;
        }
    };
}
pub use alone;

/// The variable that names the test of a process that runs no other.
const ALONE: &str = "PILOTLIGHT_TEST_ALONE";

/// Runs the test that contains the function `here` of this path in a process of its own, and returns `true`; `false` in
/// that process.
pub fn ran_alone(here: &str, wrap: impl FnOnce(Command) -> Command) -> bool {
    // `pilotlight::module::test::here`, and within `async` one that is called `{{closure}}`.
    let path = here.trim_end_matches("::here").replace("::{{closure}}", "");
    let test = path.split_once("::").unwrap().1;
    if std::env::var_os(ALONE).is_some_and(|alone| alone == test) {
        return false;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
    command.env(ALONE, test);
    let ran = wrap(command).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    print!("{said}");
    assert!(ran.status.success() && said.contains("test result: ok. 1 passed"), "{test} fails, alone in a process");
    true
}

/// The id of a process that has ended.
pub fn ended() -> u32 {
    let test = std::env::current_exe().unwrap();
    let mut child = Command::new(test).arg("--help").stdout(Stdio::null()).spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// Makes a FIFO. By a program, because `rustix` makes none on macOS.
#[cfg(unix)]
pub fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg("-m600").arg(path).status().unwrap().success());
}

/// A process that ends with the test.
pub struct Running(pub Child);

impl Running {
    pub fn start(command: &mut Command) -> Self {
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

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Kills it (SIGKILL), which leaves a zombie on Unix.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Kills it and waits for it, which frees its id.
    pub fn end(&mut self) {
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
pub fn waiting() -> Running {
    let command = &mut Command::new(WAITING);
    Running::start(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()))
}

/// A process that runs these lines of perl and then execs `program`, which waits for input. The files that perl opened
/// stay open.
#[cfg(target_os = "linux")]
pub fn after(perl: &str, program: &Path, arguments: &[&OsStr]) -> Running {
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

/// Copies a program under another name, by another program: a child that another test starts at that moment would
/// inherit what this process has open for writing, which cannot be run then (ETXTBSY).
#[cfg(target_os = "linux")]
pub fn copy(program: &str, to: &Path) {
    assert!(Command::new("cp").arg(program).arg(to).status().unwrap().success());
}

/// Writes a program, such as a script, in the same way.
#[cfg(unix)]
pub fn write_program(path: &Path, text: &[u8]) {
    let mut install = Command::new("sh");
    install.args(["-c", "mkdir -p \"${1%/*}\" && cat >\"$1\" && chmod 755 \"$1\"", "sh"]).arg(path);
    let mut install = install.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut install.stdin.take().unwrap(), text).unwrap();
    assert!(install.wait().unwrap().success(), "{}", path.display());
}

/// A running program of the given name that waits for input, with its path and the folder that it is in.
#[cfg(target_os = "linux")]
pub fn named(name: &OsStr) -> (tempfile::TempDir, PathBuf, Running) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    copy("/bin/cat", &path);
    let process = Running::start(Command::new(&path).stdin(Stdio::piped()).stdout(Stdio::null()));
    (folder, path, process)
}

/// A process that has ended and that nobody has waited for.
#[cfg(target_os = "linux")]
pub fn zombie() -> Running {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let mut process = waiting();
    process.kill();
    let pid = Pid::from_raw(process.pid() as i32).unwrap();
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    process
}

/// A thread of this process that lives until it is dropped.
#[cfg(target_os = "linux")]
pub struct Thread {
    pub id: u32,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[cfg(target_os = "linux")]
impl Thread {
    pub fn start() -> Self {
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
pub fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for: {description}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The wall clock.
pub fn now() -> Time {
    Time(jiff::Timestamp::now().as_millisecond())
}

/// The process of all tests has the child of this one, which is what a child of another test is to that one.
#[cfg(target_os = "linux")]
#[test]
fn case_503_a_test_that_runs_alone_has_no_children_but_its_own() {
    let own = std::process::id();
    let children = || super::cpu_of_descendants(own).unwrap().descendants();
    let _others = std::env::var_os(ALONE).is_none().then(waiting);
    alone!();
    assert_eq!(children(), 0);
    let _own = waiting();
    assert_eq!(children(), 1);
}
