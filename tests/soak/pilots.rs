//! Pilotlight during the soak: `watch --json`, whose lines are recorded with their arrival time, and the tray, both
//! running throughout and with their memory measured; `status --json`, run now and then; and orders by command, with or
//! without the tray.

use super::truth::{Report, UNCERTAIN, now};
use crate::support::desktop::bus::Bus;
use crate::support::desktop::panel::{Entry, Panel};
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::wait;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// The name of the config file.
const CONFIG: &str = "pilotlight.toml";
/// Longer than any tool of the actors runs. A question waits longer, and must not be taken for a hanging tool.
const LIMITS: &str = "[limits]\ntool-quiet = \"10s\"\ntool-stuck = \"12s\"\n";

/// The running programs.
pub(crate) struct Pilots {
    /// Copilot's, and those of other agents.
    homes: Vec<PathBuf>,
    scratch: TempDir,
    watch: Child,
    reader: JoinHandle<()>,
    tray: Child,
    reports: Arc<Mutex<Vec<Report>>>,
    panel: Panel,
    _bus: Bus,
}

impl Pilots {
    /// Starts to watch this home, and those of other agents beside it. Sessions that are resumed in a terminal open in a
    /// separate tmux server, with this model.
    pub(crate) fn start(home: &Home, others: &[&Path], model: &Model) -> Self {
        let scratch = tempfile::Builder::new().prefix("pilotlight-soak-").tempdir().unwrap();
        let run = scratch.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let (program, socket) = (home.program(model).display().to_string(), socket(&scratch).display().to_string());
        let words =
            ["tmux", "-S", &socket, "-f", "/dev/null", "new-session", "-d", "-x", "140", "-y", "45", "{command}"];
        let settings = format!("[actions]\ncopilot = {program:?}\nterminal = {words:?}\n{LIMITS}");
        std::fs::write(scratch.path().join(CONFIG), settings).unwrap();
        let homes: Vec<_> = std::iter::once(home.dir()).chain(others.iter().map(|home| home.to_path_buf())).collect();
        let bus = Bus::start();
        let panel = Panel::start(&bus);
        let tray = command(&scratch, &homes, &["tray"])
            .env("DBUS_SESSION_BUS_ADDRESS", bus.address())
            .env("XDG_RUNTIME_DIR", run)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        panel.wait_for_icon();
        let mut watch = command(&scratch, &homes, &["watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let (lines, reports) = (BufReader::new(watch.stdout.take().unwrap()), Arc::default());
        let into: Arc<Mutex<Vec<Report>>> = Arc::clone(&reports);
        let reader = std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let at = now();
                let row: Value = serde_json::from_str(&line).unwrap();
                let text = |key: &str| row[key].as_str().map(str::to_owned);
                let (id, status) = (text("id").unwrap(), text("status"));
                into.lock().unwrap().push(Report::Line {
                    at,
                    id,
                    status,
                    because: text("because").unwrap_or_default(),
                });
            }
        });
        Self { homes, scratch, watch, reader, tray, reports, panel, _bus: bus }
    }

    /// An order by command: with or without the tray, on the watched home or on another one.
    pub(crate) fn command(&self, with_tray: bool, other: Option<&Path>, arguments: &[&str]) -> Command {
        let homes = other.map(|other| vec![other.to_owned()]);
        let mut command = command(&self.scratch, homes.as_deref().unwrap_or(&self.homes), arguments);
        if with_tray {
            command.env("XDG_RUNTIME_DIR", self.scratch.path().join("run"));
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The row of this session according to the tray.
    pub(crate) fn row(&self, id: &str) -> Option<Value> {
        let output = self.command(true, None, &["status", "--json"]).output().unwrap();
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout).ok()?;
        rows.into_iter().find(|row| row["id"] == id)
    }

    /// Clicks an entry of the session whose row contains `words`, and returns whether it was clicked. Other sessions
    /// keep changing the menu.
    pub(crate) fn click(&self, words: &str, label: &str) -> bool {
        let find = || {
            let menu = self.panel.layout().1;
            let fits = |entry: &Entry| entry.enabled && !entry.entries.is_empty() && entry.shown().contains(words);
            let chosen = |entry: &Entry| entry.enabled && entry.entries.is_empty() && entry.shown().starts_with(label);
            Some(menu.find(&fits)?.find(&chosen)?.id)
        };
        wait(Duration::from_secs(8), find).is_some_and(|entry| self.panel.click(entry))
    }

    /// The tmux socket of the resumed terminals.
    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.scratch)
    }

    /// A folder that is removed with this value.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs `status --json` once.
    pub(crate) fn run_status(&self) {
        let from = now();
        let output = command(&self.scratch, &self.homes, &["status", "--json", "--all"]).output().unwrap();
        let to = now();
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        // For some seconds after a log was written, one look cannot tell whether its process has ended, and says so.
        let is_certain =
            |row: &Value| !text(row, "because").contains("unclear who runs it: an unknown process just wrote its log");
        let status = |row: &Value| if is_certain(row) { "" } else { UNCERTAIN }.to_owned() + &text(row, "status");
        let rows = rows.iter().map(|row| (text(row, "id"), status(row))).collect();
        self.reports.lock().unwrap().push(Report::Status { from, to, rows });
    }

    /// The memory of `watch` and the tray in KiB, without the pages of the program itself, which are loaded as it runs.
    pub(crate) fn memory(&self) -> Vec<(&'static str, u64)> {
        let of = |child: &Child| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("it runs");
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        vec![("watch", of(&self.watch)), ("the tray", of(&self.tray))]
    }

    /// Ends both, and returns all reports.
    pub(crate) fn end(mut self) -> Vec<Report> {
        for child in [&mut self.watch, &mut self.tray] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        self.reader.join().unwrap();
        std::mem::take(&mut self.reports.lock().unwrap())
    }
}

fn socket(scratch: &TempDir) -> PathBuf {
    scratch.path().join("tmux")
}

fn command(scratch: &TempDir, homes: &[PathBuf], arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", scratch.path())
        .env("PILOTLIGHT_CONFIG", scratch.path().join(CONFIG))
        .env("LANG", "C.UTF-8")
        .env("PILOTLIGHT_DISCOVER", "false")
        .stdin(Stdio::null())
        .args(arguments);
    for home in homes {
        command.arg("--home").arg(home);
    }
    command
}
