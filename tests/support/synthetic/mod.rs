//! Synthetic sessions: folders, logs and locks written by the test, and owners that only sleep.
//!
//! What the real CLI does is tested with the real CLI. This module is for what it does not do on demand: dead locks,
//! broken files, vanished folders, thousands of sessions.

pub(crate) mod holder;

use super::executable::copy_program;
use super::freeze::freeze;
use super::{SOON, wait_until};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// A user: a scratch folder that is their home and contains a Copilot home.
pub(crate) struct User {
    pub(crate) scratch: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        let user = Self { scratch: tempfile::tempdir().unwrap() };
        fs::create_dir_all(user.sessions()).unwrap();
        user
    }

    /// Replaces the settings.
    pub(crate) fn configure(&self, settings: &str) {
        let folder = self.scratch.path().join(".config/pilotlight");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), settings).unwrap();
    }

    /// A user with a working session, and a `watch` that has reported it.
    pub(crate) fn working(n: u32) -> (Self, Folder, Owner, Watch) {
        let user = Self::new();
        let session = user.session(n);
        let owner = session.owner(&user);
        session.prompt();
        let watch = user.watch();
        watch.wait_status(&session, "working");
        (user, session, owner, watch)
    }

    /// `COPILOT_HOME`.
    pub(crate) fn home(&self) -> PathBuf {
        self.scratch.path().join(".copilot")
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.home().join("session-state")
    }

    /// Makes a session with a description and no log. Its id is derived from `n`.
    pub(crate) fn session(&self, n: u32) -> Folder {
        let id = format!("{n:08x}-0000-4000-a000-000000000000");
        let folder = Folder { path: self.sessions().join(&id), id, lines: Arc::default() };
        let project = self.scratch.path().join("project");
        fs::create_dir_all(&folder.path).and_then(|()| fs::create_dir_all(&project)).unwrap();
        folder.workspace(&format!(
            "id: {}\ncwd: {}\nclient_name: github/cli\nname: Session {n}\n",
            folder.id,
            project.display()
        ));
        folder
    }

    /// A command that runs Pilotlight as this user, without the developer's environment.
    pub(crate) fn pilotlight(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
        command
            .env_clear()
            .env("HOME", self.scratch.path())
            .env("LANG", "C.UTF-8")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            // Other tests' agents run on this machine, too.
            .env("PILOTLIGHT_DISCOVER", "false")
            .args(args)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.pilotlight(args).output().unwrap()
    }

    /// The rows of `status --json` with these additional arguments.
    pub(crate) fn rows(&self, args: &[&str]) -> Vec<Value> {
        let output = self.run(&[&["status", "--json"], args].concat());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn row(&self, folder: &Folder) -> Option<Value> {
        self.rows(&[]).into_iter().find(|row| row["id"] == folder.id)
    }

    /// The status and its reason in `status --json`.
    pub(crate) fn status_and_reason(&self, folder: &Folder) -> (String, String) {
        let row = self.row(folder).unwrap_or_else(|| panic!("{} is not listed", folder.id));
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        (text("status"), text("because"))
    }

    /// Starts `watch --json`.
    pub(crate) fn watch(&self) -> Watch {
        Watch::start(self.pilotlight(&["watch", "--json"]))
    }
}

/// A session's folder.
pub(crate) struct Folder {
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    lines: Arc<Mutex<u32>>,
}

impl Folder {
    /// The same session at another path.
    pub(crate) fn moved(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    /// The same session in another home.
    pub(crate) fn in_home(&self, home: &Path) -> Self {
        let path = home.join("session-state").join(&self.id);
        Self { id: self.id.clone(), path, lines: Arc::clone(&self.lines) }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    pub(crate) fn workspace(&self, text: &str) {
        fs::write(self.path.join("workspace.yaml"), text).unwrap();
    }

    /// The line of an event that happened `ago`.
    pub(crate) fn line(&self, ago: Duration, kind: &str, data: &str) -> String {
        let mut lines = self.lines.lock().unwrap();
        *lines += 1;
        let at = Timestamp::now() - SignedDuration::try_from(ago).unwrap();
        let parent = if *lines == 1 { "null".to_owned() } else { format!("\"{}\"", *lines - 1) };
        format!(
            "{{\"type\":\"{kind}\",\"data\":{data},\"id\":\"{}\",\"timestamp\":\"{at:.3}\",\"parentId\":{parent}}}\n",
            *lines
        )
    }

    pub(crate) fn append(&self, bytes: impl AsRef<[u8]>) {
        OpenOptions::new().append(true).create(true).open(self.log()).unwrap().write_all(bytes.as_ref()).unwrap();
    }

    /// Appends an event that happens now.
    pub(crate) fn log_event(&self, kind: &str, data: &str) {
        self.append(self.line(Duration::ZERO, kind, data));
    }

    /// It asks for a permission that is described by nothing but its kind.
    pub(crate) fn asks_permission(&self, request: &str) {
        let wanted = r#"{"kind":"shell","toolCallId":"c"}"#;
        self.log_event("permission.requested", &format!(r#"{{"requestId":"{request}","permissionRequest":{wanted}}}"#));
    }

    pub(crate) fn prompt(&self) {
        self.log_event("user.message", r#"{"content":"do it","delivery":"idle"}"#);
    }

    pub(crate) fn answer(&self) {
        self.append(
            self.line(Duration::ZERO, "assistant.message", r#"{"content":"Done.","toolRequests":[]}"#)
                + &self.line(Duration::ZERO, "assistant.turn_end", "{}"),
        );
    }

    /// Writes the log of a session that was shut down `ago`, with the modification time that it would have.
    pub(crate) fn ended(&self, ago: Duration) {
        self.append(
            self.line(ago, "user.message", r#"{"content":"do it"}"#) + &self.line(ago, "session.shutdown", "{}"),
        );
        let at = SystemTime::UNIX_EPOCH + Duration::try_from(Timestamp::now().as_duration()).unwrap() - ago;
        fs::File::options().append(true).open(self.log()).unwrap().set_modified(at).unwrap();
    }

    /// Writes a lock that names this process.
    pub(crate) fn lock(&self, pid: u32) -> PathBuf {
        let lock = self.path.join(format!("inuse.{pid}.lock"));
        fs::write(&lock, format!("{pid}\n")).unwrap();
        lock
    }

    /// Starts a process that passes for Copilot's, and writes its lock.
    pub(crate) fn owner(&self, user: &User) -> Owner {
        let owner = Owner(holder::start(&program(user.scratch.path(), "copilot"), &self.path, false));
        self.lock(owner.pid());
        owner
    }
}

/// The path of a program with this name that only sleeps.
fn program(folder: &Path, name: &str) -> PathBuf {
    let program = folder.join(name);
    if !program.exists() {
        copy_program("/bin/sleep", &program);
    }
    program
}

/// A process that only sleeps, under another name.
pub(crate) struct Owner(Child);

impl Owner {
    pub(crate) fn start(folder: &Path, name: &str) -> Self {
        Self::start_with(folder, name, &[])
    }

    /// The same with these variables, by which it names its home.
    pub(crate) fn start_with(folder: &Path, name: &str, variables: &[(&str, &Path)]) -> Self {
        let mut command = Command::new(program(folder, name));
        command.arg("600").arg0(name).stdin(Stdio::null()).envs(variables.iter().copied());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Kills it with SIGKILL, and waits until it is gone.
    pub(crate) fn kill(mut self) -> u32 {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        self.0.id()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running `watch --json`.
pub(crate) struct Watch {
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
}

impl Watch {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (out, into) = (child.stdout.take().unwrap(), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                into.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, lines }
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap().clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn freeze(&self) {
        freeze(self.pid());
    }

    /// The last line of each session.
    pub(crate) fn latest(&self) -> BTreeMap<String, Value> {
        self.lines().into_iter().map(|line| (line["id"].as_str().unwrap().to_owned(), line)).collect()
    }

    /// The number of lines so far.
    pub(crate) fn count(&self) -> usize {
        self.lines.lock().unwrap().len()
    }

    /// Whether a line after the first `after` reports this status of a session.
    pub(crate) fn has_reported(&self, after: usize, folder: &Folder, status: &str) -> bool {
        let lines = self.lines.lock().unwrap();
        lines.iter().skip(after).any(|line| line["id"] == folder.id && line["status"] == status)
    }

    /// The last reported status of a session.
    pub(crate) fn status(&self, folder: &Folder) -> Option<String> {
        let lines = self.lines.lock().unwrap();
        let last = lines.iter().rev().find(|line| line["id"] == folder.id)?;
        last["status"].as_str().map(str::to_owned)
    }

    /// Waits until the last line of a session fits.
    pub(crate) fn wait_row(&self, folder: &Folder, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let latest = || self.latest().get(&folder.id).cloned();
        wait_until(
            SOON,
            &format!("{} is {what}", folder.id),
            || format!("{:?}", latest()),
            || latest().filter(|row| fits(row)),
        )
    }

    /// Waits until the last line of a session has this status.
    pub(crate) fn wait_status(&self, folder: &Folder, status: &str) -> Value {
        self.wait_row(folder, status, |row| row["status"] == status)
    }

    /// Ends it with a signal, and returns its exit code.
    pub(crate) fn end(mut self, signal: rustix::process::Signal) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
