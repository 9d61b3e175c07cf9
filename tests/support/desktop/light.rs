//! The real program, as a user's desktop starts it: with a bus, a folder for the login session, and no terminal.

use super::bus::Bus;
use super::panel::{Entry, Panel};
use super::sessions::{Session, Sessions};
use crate::support::freeze::freeze;
use crate::support::ran::ran;
use crate::support::{SOON, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A user: a home of its own, in which things are remembered.
pub(crate) struct User {
    pub(crate) scratch: TempDir,
    home: PathBuf,
}

/// The program, running.
pub(crate) struct Light {
    child: Child,
    said: PathBuf,
}

impl User {
    /// A user who never ran the program, and whose sessions are these.
    pub(crate) fn new(sessions: &Sessions) -> Self {
        Self::of(sessions.home())
    }

    /// The same, with this home of Copilot's.
    pub(crate) fn of(home: PathBuf) -> Self {
        let scratch = tempfile::Builder::new().prefix("pilotlight-user-").tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("run")).unwrap();
        Self { scratch, home }
    }

    /// The program with these arguments, on this bus.
    pub(crate) fn command(&self, bus: Option<&Bus>, arguments: &[&str]) -> Command {
        self.homeless(bus, &[&["--home", self.home.to_str().unwrap()], arguments].concat())
    }

    /// The same, where no home is named.
    pub(crate) fn homeless(&self, bus: Option<&Bus>, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
        command
            .env_clear()
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

    /// Starts the light on this bus.
    pub(crate) fn light(&self, bus: &Bus) -> Light {
        self.light_from(self.command(Some(bus), &[]))
    }

    /// Starts the light as this command.
    pub(crate) fn light_from(&self, mut command: Command) -> Light {
        let said = self.scratch.path().join(format!("said-{}", std::process::id()));
        let file = std::fs::File::options().create(true).append(true).open(&said).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Light { child: command.spawn().unwrap(), said }
    }

    /// Where the program keeps what it remembers.
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

    /// Waits until the menu says of this session what `status --json` says, and that is this status. Returns its entry.
    pub(crate) fn agrees(&self, panel: &Panel, session: &Session, status: &str) -> Entry {
        let dump = || format!("{:?}\n{:#?}", self.row(session), panel.menu());
        wait_until(SOON, &format!("menu and status say {status}"), dump, || {
            let row = self.row(session)?;
            let entry = panel.layout().1.find(&|entry: &Entry| entry.says(&row))?.clone();
            (row["status"] == status).then_some(entry)
        })
    }
}

impl Light {
    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it printed so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// Waits until it has printed this.
    pub(crate) fn says(&self, what: &str) {
        let what_for = format!("it says {what:?}");
        wait_until(SOON, &what_for, || self.said(), || self.said().contains(what).then_some(()));
    }

    /// Whether it runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops all of it, until it is sent a `CONT`.
    pub(crate) fn freeze(&self) {
        freeze(self.child.id());
    }

    /// Waits for its end, and tells how it ended and how long that took, as far as the machine had time for it.
    pub(crate) fn ended(&mut self) -> (ExitStatus, Duration) {
        let begun = ran();
        let Self { child, said } = self;
        let said = || std::fs::read_to_string(&*said).unwrap_or_default();
        let status = wait_until(SOON, "it ends", said, || child.try_wait().unwrap());
        (status, ran() - begun)
    }

    fn proc(&self) -> PathBuf {
        proc(self.pid())
    }

    /// The context switches of each thread so far, by its id.
    pub(crate) fn switches(&self) -> Switches {
        Switches::of(self.pid())
    }

    /// Its memory, as the system words it.
    pub(crate) fn memory(&self) -> String {
        let status = std::fs::read_to_string(self.proc().join("status")).unwrap();
        let lines = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
        let words: Vec<_> = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        words.join(", ")
    }

    /// CPU time used so far, in clock ticks.
    pub(crate) fn ticks(&self) -> u64 {
        ticks(self.pid())
    }
}

fn proc(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// CPU time that a process used so far, in clock ticks.
pub(crate) fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(proc(pid).join("stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

impl Drop for Light {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Context switches, by thread.
pub(crate) struct Switches(BTreeMap<u32, Thread>);

/// Those of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) name: String,
    /// Made by waiting.
    pub(crate) own: u64,
    /// Forced on it: another program wanted the processor.
    pub(crate) forced: u64,
}

impl Switches {
    /// Those of a process so far.
    pub(crate) fn of(pid: u32) -> Self {
        let read = |task: std::io::Result<std::fs::DirEntry>| {
            let task = task.ok()?;
            // A thread may end while it is read.
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

    /// What came since, of the threads that still run: who has ended is in none of them.
    pub(crate) fn since(self, before: &Self) -> Vec<Thread> {
        let since = |(id, now): (u32, Thread)| {
            let then = before.0.get(&id).cloned().unwrap_or_default();
            Thread { name: now.name, own: now.own - then.own, forced: now.forced - then.forced }
        };
        self.0.into_iter().map(since).collect()
    }
}

/// All of them together.
pub(crate) fn sum(threads: &[Thread]) -> u64 {
    threads.iter().map(|thread| thread.own + thread.forced).sum()
}
