//! The real Claude Code without a terminal: a run, a session of the SDK, a background session.

use super::ClaudeHome;
use crate::support::process::{PATIENCE, kill, signal};
use crate::support::{COPILOT, wait, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

/// A run, which is killed when this value is dropped.
pub(crate) struct Headless {
    child: Child,
    home: PathBuf,
    said: Arc<Mutex<Vec<Value>>>,
}

impl Headless {
    pub(crate) fn start(home: &ClaudeHome, arguments: &[&str]) -> Self {
        let mut command = home.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let (lines, into) = (BufReader::new(child.stdout.take().unwrap()).lines(), Arc::clone(&said));
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                into.lock().unwrap().extend(serde_json::from_str::<Value>(&line));
            }
        });
        Self { child, home: home.dir(), said }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The id of its session, once its process says it.
    pub(crate) fn id(&self) -> String {
        let file = self.home.join(format!("sessions/{}.json", self.pid()));
        let read = || {
            serde_json::from_slice::<Value>(&std::fs::read(&file).ok()?).ok()?["sessionId"].as_str().map(str::to_owned)
        };
        wait_until(COPILOT, "its process names its session", String::new, read)
    }

    /// Writes a line to its input.
    pub(crate) fn say(&mut self, line: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits for a line of its output that fits.
    pub(crate) fn heard(&self, fits: impl Fn(&Value) -> bool) -> Value {
        let said = || self.said.lock().unwrap().clone();
        wait_until(COPILOT, "it says that", || format!("{:#?}", said()), || said().into_iter().find(&fits))
    }

    pub(crate) fn signal(&self, with: Signal) {
        signal(self.pid(), with);
    }

    /// Closes its input, and waits until it has exited.
    pub(crate) fn wait(&mut self) {
        drop(self.child.stdin.take());
        let exited = || self.child.try_wait().unwrap().map(drop);
        wait_until(COPILOT, "it exits", String::new, exited);
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have exited
        let _ = self.child.wait();
    }
}

/// A background session. What it and its daemon left running is killed when this value is dropped.
pub(crate) struct Background<'a> {
    home: &'a ClaudeHome,
    job: String,
}

impl ClaudeHome {
    /// Starts a background session with this prompt. Its daemon knows the model from the settings alone.
    pub(crate) fn start_in_background(&self, prompt: &str) -> Background<'_> {
        let variables = self.environment().into_iter().filter(|(name, _)| name.starts_with("ANTHROPIC_"));
        let settings = serde_json::json!({
            "env": variables.collect::<std::collections::BTreeMap<_, _>>(), "permissions": {"defaultMode": "default"},
        });
        std::fs::write(self.dir().join("settings.json"), settings.to_string()).unwrap();
        let mut background = Background { home: self, job: String::new() };
        let output = background.claude(&["--bg", prompt]);
        let job = output.split_whitespace().skip_while(|word| *word != "·").nth(1);
        let job = job.unwrap_or_else(|| panic!("no job in {output:?}")).to_owned();
        background.job = job;
        background
    }
}

impl Background<'_> {
    fn claude(&self, arguments: &[&str]) -> String {
        let output = self.home.command(arguments).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The id of its session.
    pub(crate) fn id(&self) -> String {
        let file = self.home.dir().join("jobs").join(&self.job).join("state.json");
        let read = || {
            serde_json::from_slice::<Value>(&std::fs::read(&file).ok()?).ok()?["sessionId"].as_str().map(str::to_owned)
        };
        wait_until(COPILOT, "its job names its session", String::new, read)
    }

    /// Ends it by its own command.
    pub(crate) fn stop(&self) {
        self.claude(&["stop", &self.job]);
    }
}

impl Drop for Background<'_> {
    /// Its processes are those that were started in this home.
    fn drop(&mut self) {
        let home = format!("HOME={}\0", self.home.scratch.path().display()).into_bytes();
        let is_its = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(home.len()).any(|part| part == home)
        };
        let pids =
            || std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        for pid in pids().filter(is_its) {
            kill(pid);
        }
        wait(PATIENCE, || (!pids().any(|pid| is_its(&pid))).then_some(()));
    }
}
