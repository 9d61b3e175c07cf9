//! Pilotlight in the forms that stay, for as long as the soak runs: `watch --json`, whose lines are noted with the time of
//! their coming, and the tray, whose memory is looked at; and `status --json`, asked now and then.

use super::truth::{Said, now};
use crate::support::desktop::bus::Bus;
use crate::support::desktop::panel::Panel;
use crate::support::home::Home;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// What watches.
pub(crate) struct Pilots {
    home: PathBuf,
    scratch: TempDir,
    watch: Child,
    reader: JoinHandle<()>,
    tray: Child,
    said: Arc<Mutex<Vec<Said>>>,
    _panel: Panel,
    _bus: Bus,
}

impl Pilots {
    /// Starts to watch this home.
    pub(crate) fn start(home: &Home) -> Self {
        let scratch = tempfile::Builder::new().prefix("pilotlight-soak-").tempdir().unwrap();
        let run = scratch.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let (home, bus) = (home.dir(), Bus::start());
        let panel = Panel::start(&bus);
        let tray = command(&scratch, &home, &["tray"])
            .env("DBUS_SESSION_BUS_ADDRESS", bus.address())
            .env("XDG_RUNTIME_DIR", run)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        panel.wait_for_icon();
        let mut watch = command(&scratch, &home, &["watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let (lines, said) = (BufReader::new(watch.stdout.take().unwrap()), Arc::default());
        let into: Arc<Mutex<Vec<Said>>> = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let at = now();
                let row: Value = serde_json::from_str(&line).unwrap();
                let text = |key: &str| row[key].as_str().map(str::to_owned);
                let (id, status) = (text("id").unwrap(), text("status"));
                into.lock().unwrap().push(Said::Line { at, id, status, because: text("because").unwrap_or_default() });
            }
        });
        Self { home, scratch, watch, reader, tray, said, _panel: panel, _bus: bus }
    }

    /// Asks `status --json` once.
    pub(crate) fn ask(&self) {
        let from = now();
        let output = command(&self.scratch, &self.home, &["status", "--json", "--all"]).output().unwrap();
        let to = now();
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let rows = rows.iter().map(|row| (text(row, "id"), text(row, "status"))).collect();
        self.said.lock().unwrap().push(Said::Asked { from, to, rows });
    }

    /// What those that stay hold in memory, in KiB.
    pub(crate) fn memory(&self) -> Vec<(&'static str, u64)> {
        let of = |child: &Child| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it runs");
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        vec![("watch", of(&self.watch)), ("the tray", of(&self.tray))]
    }

    /// Ends them, and returns all that was said.
    pub(crate) fn end(mut self) -> Vec<Said> {
        for child in [&mut self.watch, &mut self.tray] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        self.reader.join().unwrap();
        std::mem::take(&mut self.said.lock().unwrap())
    }
}

fn command(scratch: &TempDir, home: &PathBuf, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", scratch.path())
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .args(arguments)
        .arg("--home")
        .arg(home);
    command
}
