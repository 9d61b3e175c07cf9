//! The real program, as a user's desktop starts it: with a bus, a runtime folder, and no terminal.

use super::bus::Bus;
use super::panel::{Entry, Panel};
use super::sessions::{Session, Sessions};
use crate::support::freeze::freeze;
use crate::support::running_time::running_time;
use crate::support::{SOON, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A user: a home folder, in which the program keeps its state.
pub(crate) struct User {
    pub(crate) scratch: TempDir,
    home: PathBuf,
}

/// A running Pilotlight, usually the tray.
pub(crate) struct TrayProcess {
    child: Child,
    /// What it printed.
    output: PathBuf,
}

impl User {
    /// A user with these sessions who never ran the program.
    pub(crate) fn new(sessions: &Sessions) -> Self {
        Self::with_home(sessions.home())
    }

    /// A user with this Copilot home who never ran the program.
    pub(crate) fn with_home(home: PathBuf) -> Self {
        let scratch = tempfile::Builder::new().prefix("pilotlight-user-").tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("run")).unwrap();
        Self { scratch, home }
    }

    /// A command that runs the program with these arguments on this bus.
    pub(crate) fn command(&self, bus: Option<&Bus>, arguments: &[&str]) -> Command {
        self.command_without_home(bus, &[&["--home", self.home.to_str().unwrap()], arguments].concat())
    }

    /// As [`command`](Self::command), without a `--home` argument.
    pub(crate) fn command_without_home(&self, bus: Option<&Bus>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .env_clear()
            .env("PILOTLIGHT_DISCOVER", "false")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.scratch.path())
            .env("XDG_RUNTIME_DIR", self.scratch.path().join("run"))
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .current_dir(self.scratch.path())
            .args(arguments);
        if let Some(bus) = bus {
            command.env("DBUS_SESSION_BUS_ADDRESS", bus.address());
        }
        command
    }

    /// Starts the tray on this bus.
    pub(crate) fn start_tray(&self, bus: &Bus) -> TrayProcess {
        self.start_tray_as(self.command(Some(bus), &[]))
    }

    /// Starts the tray as this command.
    pub(crate) fn start_tray_as(&self, mut command: Command) -> TrayProcess {
        let output = self.scratch.path().join(format!("output-{}", std::process::id()));
        let file = std::fs::File::options().create(true).append(true).open(&output).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        TrayProcess { child: command.spawn().unwrap(), output }
    }

    /// The folder in which the program keeps its state.
    pub(crate) fn state(&self) -> PathBuf {
        self.scratch.path().join(".local/state/pilotlight")
    }

    /// All rows of `status --json`, now.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let output = self.command(None, &["status", "--json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The row of one session in `status --json`, now.
    pub(crate) fn row(&self, session: &Session) -> Option<Value> {
        self.rows().into_iter().find(|row| row["id"] == *session.id)
    }

    /// Waits until the menu and `status --json` both show this status of the session. Returns its entry.
    pub(crate) fn wait_status(&self, panel: &Panel, session: &Session, status: &str) -> Entry {
        let dump = || format!("{:?}\n{:#?}", self.row(session), panel.menu());
        wait_until(SOON, &format!("menu and `status` show {status}"), dump, || {
            let row = self.row(session)?;
            let entry = panel.layout().1.find(&|entry: &Entry| entry.matches_row(&row))?.clone();
            (row["status"] == status).then_some(entry)
        })
    }

    /// Waits until `status --json` says that the user has seen the session.
    pub(crate) fn wait_seen(&self, session: &Session) {
        let seen = || (self.row(session)?["unseen"] == false).then_some(());
        wait_until(SOON, "it was seen", || format!("{:?}", self.rows()), seen);
    }
}

/// The program of this build, or another one that the environment names: that is how the benches compare two builds.
fn program() -> OsString {
    std::env::var_os("PILOTLIGHT_TEST_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_pilotlight").into())
}

impl TrayProcess {
    /// Its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything that it has printed.
    pub(crate) fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Waits until it has printed this.
    pub(crate) fn wait_output(&self, text: &str) {
        let what = format!("it prints {text:?}");
        wait_until(SOON, &what, || self.output(), || self.output().contains(text).then_some(()));
    }

    /// Whether it is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Signals it.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops all its threads until it receives SIGCONT.
    pub(crate) fn freeze(&self) {
        freeze(self.child.id());
    }

    /// Waits for its exit. Returns its exit status and how long it took, measured by [`running_time`].
    pub(crate) fn wait_exit(&mut self) -> (ExitStatus, Duration) {
        let start = running_time();
        let Self { child, output } = self;
        let output = || std::fs::read_to_string(&*output).unwrap_or_default();
        let status = wait_until(SOON, "it exits", output, || child.try_wait().unwrap());
        (status, running_time() - start)
    }

    fn proc(&self) -> PathBuf {
        proc(self.pid())
    }

    /// The context switches of each thread so far, by its id.
    pub(crate) fn switches(&self) -> Switches {
        Switches::of(self.pid())
    }

    /// Its memory use, in the system's words.
    pub(crate) fn memory(&self) -> String {
        let status = std::fs::read_to_string(self.proc().join("status")).unwrap();
        let lines = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
        let words: Vec<_> = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        words.join(", ")
    }

    /// The CPU time that it has used, in clock ticks.
    pub(crate) fn ticks(&self) -> u64 {
        ticks(self.pid())
    }
}

fn proc(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// The CPU time that a process has used, in clock ticks.
pub(crate) fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(proc(pid).join("stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

impl Drop for TrayProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Context switches, by thread.
pub(crate) struct Switches(BTreeMap<u32, Thread>);

/// The context switches of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) name: String,
    /// Voluntary: the thread waited.
    pub(crate) own: u64,
    /// Involuntary: another program needed the processor.
    pub(crate) forced: u64,
}

impl Switches {
    /// The context switches of a process so far.
    pub(crate) fn of(pid: u32) -> Self {
        let read = |task: std::io::Result<std::fs::DirEntry>| {
            let task = task.ok()?;
            // A thread may exit while it is read.
            let status = std::fs::read_to_string(task.path().join("status")).ok()?;
            let field = |name: &str| Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim());
            let count = |name: &str| field(name)?.parse().ok();
            let own = count("voluntary_ctxt_switches:")?;
            let forced = count("nonvoluntary_ctxt_switches:")?;
            let id = task.file_name().to_str()?.parse().ok()?;
            Some((id, Thread { name: field("Name:")?.to_owned(), own, forced }))
        };
        Self(std::fs::read_dir(proc(pid).join("task")).unwrap().filter_map(read).collect())
    }

    /// The switches since `before`, of the threads that still run.
    pub(crate) fn since(self, before: &Self) -> Vec<Thread> {
        let since = |(id, now): (u32, Thread)| {
            let then = before.0.get(&id).cloned().unwrap_or_default();
            Thread { name: now.name, own: now.own - then.own, forced: now.forced - then.forced }
        };
        self.0.into_iter().map(since).collect()
    }
}

/// The number of all these switches.
pub(crate) fn sum(threads: &[Thread]) -> u64 {
    threads.iter().map(|thread| thread.own + thread.forced).sum()
}
