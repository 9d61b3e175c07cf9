//! The real Pilotlight, observed in the four ways that a user or a script has: `pilotlight status --json`, run again
//! each time; `pilotlight watch --json`, running throughout the test; the live table on a terminal; and the menu in the
//! panel, on a private bus.
//!
//! A [`Pilot`] runs the latter three from its start, so every status must reach them as a change.
//! [`Pilot::wait_status`] waits until all four agree.

use super::desktop::bus::Bus;
use super::desktop::panel::{Entry, Panel};
use super::desktop::popups::Popups;
use super::home::Home;
use super::tmux::Tmux;
use super::wait_until;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// How long a status may take to be shown everywhere. The promise is milliseconds; the rest is for a busy machine. It
/// is shorter than any rescan, so a change that only a rescan finds fails the test.
const DEADLINE: Duration = Duration::from_secs(30);

/// The name of the config file.
const CONFIG: &str = "pilotlight.toml";

/// Pilotlight, watching one or more homes.
pub(crate) struct Pilot {
    homes: Vec<PathBuf>,
    scratch: TempDir,
    watch: Child,
    watched: Arc<Mutex<Watched>>,
    table: Tmux,
    tray: Child,
    panel: Panel,
    bus: Bus,
}

/// The output of `watch --json` so far.
#[derive(Default)]
struct Watched {
    /// Every line, in order.
    lines: Vec<Value>,
    /// The last line of each session that was not removed.
    latest: BTreeMap<String, Value>,
}

fn spawn_tray(scratch: &TempDir, homes: &[PathBuf], bus: &Bus, environment: &[(OsString, OsString)]) -> Child {
    spawn(command(scratch, homes, &["tray"]), scratch, bus, environment)
}

fn spawn(mut tray: Command, scratch: &TempDir, bus: &Bus, environment: &[(OsString, OsString)]) -> Child {
    tray.env("DBUS_SESSION_BUS_ADDRESS", bus.address())
        .env("XDG_RUNTIME_DIR", scratch.path().join("run"))
        .envs(environment.iter().cloned())
        // What must not be in the log must be absent at every level.
        .env("PILOTLIGHT_LOG", "trace")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

impl Pilot {
    /// Watches these homes, as for a user who never configured anything.
    pub(crate) fn start(homes: &[&Home]) -> Self {
        Self::configured(homes, "")
    }

    /// Watches these homes with this config file.
    pub(crate) fn configured(homes: &[&Home], config: &str) -> Self {
        Self::with(homes, config, &[])
    }

    /// Replaces the config file. The change takes effect at once.
    pub(crate) fn configure(&self, config: &str) {
        let (path, new) = (self.scratch.path().join(CONFIG), self.scratch.path().join("new"));
        std::fs::write(&new, config).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    /// Watches these homes with this config file, in this environment, which the programs that it starts inherit.
    pub(crate) fn with(homes: &[&Home], config: &str, environment: &[(OsString, OsString)]) -> Self {
        Self::watching(homes.iter().map(|home| home.dir()).collect(), config, environment)
    }

    /// Watches these homes, of whichever agents, as for a user who never configured anything.
    pub(crate) fn of_folders(homes: Vec<PathBuf>) -> Self {
        Self::watching(homes, "", &[])
    }

    /// The same with homes of any agent.
    pub(crate) fn watching(homes: Vec<PathBuf>, config: &str, environment: &[(OsString, OsString)]) -> Self {
        let scratch = tempfile::Builder::new().prefix("pilotlight-user-").tempdir().unwrap();
        std::fs::write(scratch.path().join(CONFIG), config).unwrap();
        let mut watch = command(&scratch, &homes, &["watch", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let watched = Arc::new(Mutex::new(Watched::default()));
        let (out, into) = (watch.stdout.take().unwrap(), Arc::clone(&watched));
        std::thread::spawn(move || collect(BufReader::new(out), &into));
        let table = Tmux::start(&command(&scratch, &homes, &["live"]), 180, 40);
        let bus = Bus::start();
        let panel = Panel::start(&bus);
        let run = scratch.path().join("run");
        std::fs::create_dir(&run).unwrap();
        // The user was welcomed long ago, so no welcome popup appears.
        let state = scratch.path().join(".local/state/pilotlight");
        std::fs::create_dir_all(&state).unwrap();
        std::fs::write(state.join("welcomed"), "").unwrap();
        let tray = spawn_tray(&scratch, &homes, &bus, environment);
        panel.wait_for_icon();
        Self { homes, scratch, watch, watched, table, tray, panel, bus }
    }

    /// The address of the tray's bus.
    pub(crate) fn bus(&self) -> String {
        self.bus.address()
    }

    /// Makes the test the notification server on the tray's bus.
    pub(crate) fn popups(&self) -> Popups {
        Popups::start(&self.bus)
    }

    /// Waits until `status --json`, `watch --json`, the table and the menu all show this status of the session, with a
    /// reason that contains `because`. Returns its row.
    pub(crate) fn wait_status(&self, id: &str, status: &str, because: &str) -> Value {
        let what = format!("{id} is {status:?} because of {because:?} in all four views");
        let fits = |row: &Value| {
            row["status"] == status && row["because"].as_str().is_some_and(|reason| reason.contains(because))
        };
        wait_until(
            DEADLINE,
            &what,
            || self.dump(id),
            || {
                let row = self.row(id).filter(&fits)?;
                let watched = self.watched.lock().unwrap().latest.get(id).is_some_and(&fits);
                (watched && self.table_shows(&row) && self.menu_shows(&row)).then_some(row)
            },
        )
    }

    /// Clicks an entry of the session's submenu, found by the start of its label, once it can be clicked.
    pub(crate) fn click(&self, id: &str, label: &str) {
        let what = format!("{label:?} of {id} can be clicked");
        let dump = || self.dump(id);
        let find = || {
            let row = self.row(id).or_else(|| self.row_in_tray(id))?;
            let layout = self.panel.layout().1;
            let submenu = layout.find(&|entry: &Entry| entry.is_row_of(row["label"].as_str().unwrap_or_default()))?;
            // A line of `Why` begins with the label, too, and says why that is not possible.
            let is_offer = |text: &str| text.starts_with(label) && !text.starts_with(&format!("{label}:"));
            let fits = |entry: &Entry| is_offer(&entry.shown()) && entry.enabled && entry.entries.is_empty();
            submenu.find(&fits).cloned()
        };
        // As a user does: opens the menu, which then no longer changes, and finds the entry again.
        wait_until(DEADLINE, &what, dump, || {
            find()?;
            self.panel.open();
            let clicked = find().filter(|entry| self.panel.click(entry.id));
            self.panel.close();
            clicked
        });
    }

    /// Waits until the menu contains this text, possibly broken over several lines.
    pub(crate) fn wait_menu(&self, id: &str, text: &str) {
        let contains = || self.panel.layout().1.words().contains(text).then_some(());
        wait_until(DEADLINE, &format!("the menu contains {text:?}"), || self.dump(id), contains);
    }

    /// Runs a command that can reach the tray.
    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(self.command_with_tray(args))
    }

    /// A command that can reach the tray.
    pub(crate) fn command_with_tray(&self, args: &[&str]) -> Command {
        self.with_tray(self.command(args))
    }

    fn with_tray(&self, mut command: Command) -> Command {
        command.env("XDG_RUNTIME_DIR", self.scratch.path().join("run"));
        command
    }

    /// The tray's pid.
    pub(crate) fn tray_pid(&self) -> u32 {
        self.tray.id()
    }

    /// The panel that shows the tray's icon.
    pub(crate) fn panel(&self) -> &Panel {
        &self.panel
    }

    /// Runs a command that cannot find the tray.
    pub(crate) fn run_without_tray(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(self.command(args))
    }

    /// A command that cannot find the tray, also not by the note of where it runs.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let _ = std::fs::remove_file(self.scratch.path().join(".local/state/pilotlight/runtime-folder"));
        command(&self.scratch, &self.homes, args)
    }

    /// Terminates the tray with SIGTERM, and waits for its exit.
    pub(crate) fn end_tray(&mut self) {
        super::process::signal(self.tray.id(), rustix::process::Signal::TERM);
        self.tray.wait().unwrap();
    }

    /// Kills the tray.
    pub(crate) fn kill_tray(&mut self) {
        self.tray.kill().unwrap();
        self.tray.wait().unwrap();
    }

    /// Terminates the tray, and starts another one that leads a session of its own, as a desktop's does.
    pub(crate) fn restart_tray_apart(&mut self) {
        self.end_tray();
        let tray = command(&self.scratch, &self.homes, &["tray"]);
        let mut apart = Command::new("setsid");
        apart.arg(tray.get_program()).args(tray.get_args()).env_clear();
        apart.envs(tray.get_envs().filter_map(|(name, value)| Some((name, value?))));
        self.tray = spawn(apart, &self.scratch, &self.bus, &[]);
        let socket = self.scratch.path().join("run/pilotlight/pilotlight.sock");
        wait_until(DEADLINE, "the tray serves commands", || self.log(), || socket.exists().then_some(()));
    }

    /// Terminates the tray, if it runs, and starts another one. Returns as soon as that one listens for bridges.
    pub(crate) fn restart_tray(&mut self) {
        self.end_tray();
        self.tray = spawn_tray(&self.scratch, &self.homes, &self.bus, &[]);
        let socket = self.scratch.path().join("run/pilotlight/bridge.sock");
        wait_until(DEADLINE, "the tray listens for bridges", || self.log(), || socket.exists().then_some(()));
    }

    /// Terminates the tray, and has this line of a shell start another one, in a folder where `./tray` does that. Returns as
    /// soon as it serves commands.
    pub(crate) fn restart_tray_by(&mut self, line: &str) {
        self.end_tray();
        let tray = command(&self.scratch, &self.homes, &["tray"]);
        let words = |words: &mut dyn Iterator<Item = String>| words.map(|word| format!("'{word}'")).collect::<Vec<_>>();
        let environment = [
            ("DBUS_SESSION_BUS_ADDRESS", self.bus.address()),
            ("XDG_RUNTIME_DIR", self.scratch.path().join("run").display().to_string()),
            ("PILOTLIGHT_LOG", "trace".to_owned()),
        ];
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        let set = tray.get_envs().filter_map(|(name, value)| Some((text(name), text(value?))));
        let set = set.chain(environment.map(|(name, value)| (name.to_owned(), value)));
        let set = words(&mut set.map(|(name, value)| format!("{name}={value}"))).join(" ");
        let line_of = words(&mut std::iter::once(tray.get_program()).chain(tray.get_args()).map(text)).join(" ");
        let script = format!("#!/bin/sh\necho $$ >tray.pid\nexec env -i {set} {line_of} >/dev/null 2>&1\n");
        super::executable::executable(&self.scratch.path().join("tray"), &script);
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.scratch.path());
        shell.env("DBUS_SESSION_BUS_ADDRESS", self.bus.address());
        self.tray = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let socket = self.scratch.path().join("run/pilotlight/pilotlight.sock");
        wait_until(DEADLINE, "the tray serves commands", || self.log(), || socket.exists().then_some(()));
        self.panel.wait_for_icon();
    }

    /// Terminates the tray that [`restart_tray_by`](Self::restart_tray_by) had started, and starts one as usual.
    pub(crate) fn end_tray_by(&mut self) {
        let pid = std::fs::read_to_string(self.scratch.path().join("tray.pid")).unwrap().trim().parse().unwrap();
        super::process::signal(pid, rustix::process::Signal::TERM);
        let gone = || (!super::process::is_live(pid)).then_some(());
        wait_until(DEADLINE, "the tray has ended", || self.log(), gone);
        let _ = self.tray.kill(); // it may have ended with the tray
        self.tray.wait().unwrap();
        self.tray = spawn_tray(&self.scratch, &self.homes, &self.bus, &[]);
    }

    /// The bus of the tray.
    pub(crate) const fn session_bus(&self) -> &Bus {
        &self.bus
    }

    /// The home of its user.
    pub(crate) fn user(&self) -> &Path {
        self.scratch.path()
    }

    /// The tray's own log.
    pub(crate) fn log(&self) -> String {
        let log = self.scratch.path().join(".local/state/pilotlight/pilotlight.log");
        std::fs::read_to_string(log).unwrap_or_default()
    }

    /// Waits until the session's row in `status --json` fits.
    pub(crate) fn row_where(&self, id: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        wait_until(DEADLINE, what, || self.dump(id), || self.row(id).filter(&fits))
    }

    /// The session's row in `status --json`, now.
    pub(crate) fn row(&self, id: &str) -> Option<Value> {
        self.rows().into_iter().find(|row| row["id"] == id)
    }

    /// The session's row in the `status --json` of a command that can reach the tray.
    pub(crate) fn row_in_tray(&self, id: &str) -> Option<Value> {
        self.row_in_tray_for(&self.homes, id)
    }

    /// As [`row_in_tray`](Self::row_in_tray), of a command with these homes as arguments.
    pub(crate) fn row_in_tray_for(&self, homes: &[PathBuf], id: &str) -> Option<Value> {
        self.rows_in_tray_for(homes).into_iter().find(|row| row["id"] == id)
    }

    /// All rows in the `status --json` of a command that can reach the tray.
    pub(crate) fn rows_in_tray(&self) -> Vec<Value> {
        self.rows_in_tray_for(&self.homes)
    }

    fn rows_in_tray_for(&self, homes: &[PathBuf]) -> Vec<Value> {
        let ran = CommandOutput::of(self.with_tray(command(&self.scratch, homes, &["status", "--json"])));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        serde_json::from_str(&ran.out).unwrap()
    }

    /// Waits until the tray's menu, and a `status --json` that can reach the tray, show this status with such a reason.
    /// Returns its row. For facts that are not in the log: without the tray, `status` does not know them.
    pub(crate) fn wait_status_in_tray(&self, id: &str, status: &str, because: &str) -> Value {
        let fits = |row: &Value| {
            row["status"] == status && row["because"].as_str().is_some_and(|reason| reason.contains(because))
        };
        let both = || {
            let row = self.row_in_tray(id).filter(&fits)?;
            self.menu_shows(&row).then_some(row)
        };
        let what = format!("{id} is {status:?} because of {because:?} in the menu and in `status`");
        wait_until(DEADLINE, &what, || self.dump(id), both)
    }

    /// All rows of `status --json`, now.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let output = command(&self.scratch, &self.homes, &["status", "--json"]).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "status --json: {}\n{err}", output.status);
        let rows = serde_json::from_str(&out);
        rows.unwrap_or_else(|error| panic!("status --json printed no array of rows: {error}\n{out}\n{err}"))
    }

    /// Waits until `watch --json` has reported the session as removed, and `status --json` no longer lists it.
    pub(crate) fn wait_removed(&self, id: &str) {
        wait_until(
            DEADLINE,
            &format!("{id} is reported as removed"),
            || self.dump(id),
            || {
                let gone = self.row(id).is_none();
                let lines = &self.watched.lock().unwrap().lines;
                let last = lines.iter().rfind(|line| line["id"] == id);
                (gone && last.is_some_and(|line| line["removed"] == true)).then_some(())
            },
        );
    }

    /// Every status that `watch --json` has reported of the session, in order, without repetitions.
    pub(crate) fn history(&self, id: &str) -> Vec<String> {
        let watched = self.watched.lock().unwrap();
        let of_session = watched.lines.iter().filter(|line| line["id"] == id);
        let mut statuses: Vec<String> =
            of_session.filter_map(|line| Some(line["status"].as_str()?.to_owned())).collect();
        statuses.dedup();
        statuses
    }

    /// The number of lines that `watch --json` has printed about the session.
    pub(crate) fn lines(&self, id: &str) -> usize {
        self.watched.lock().unwrap().lines.iter().filter(|line| line["id"] == id).count()
    }

    /// Whether one line of the table contains the session's name and status. A narrow terminal cuts names, and the
    /// table may print a status with spaces.
    fn table_shows(&self, row: &Value) -> bool {
        let plain = |text: &str| text.to_lowercase().replace('-', " ");
        let name: String = row["label"].as_str().unwrap_or_default().chars().take(16).collect();
        let (name, status) = (plain(&name), plain(row["status"].as_str().unwrap_or_default()));
        self.table.screen().lines().map(plain).any(|line| line.contains(&name) && line.contains(&status))
    }

    /// Whether an entry of the menu shows the session, its status and its reason.
    fn menu_shows(&self, row: &Value) -> bool {
        self.panel.layout().1.find(&|entry: &Entry| entry.matches_row(row)).is_some()
    }

    fn dump(&self, id: &str) -> String {
        let path = self.homes.iter().map(|home| home.join("session-state").join(id)).find(|path| path.is_dir());
        let folder = path.map_or_else(String::new, |path| super::home::Folder { path }.dump());
        let row = self.row(id).map_or("no row".to_owned(), |row| row.to_string());
        let watched = self.watched.lock().unwrap();
        let lines: Vec<String> = watched
            .lines
            .iter()
            .filter(|line| line["id"] == id)
            .map(|line| format!("  {} {} {}", line["status"], line["because"], line["removed"]))
            .collect();
        let (screen, menu, log) = (self.table.screen(), self.panel.menu(), self.log());
        let table = format!("{screen}\nmenu:\n{menu:#?}\nlog:\n{log}");
        format!("status: {row}\nwatch:\n{}\ntable:\n{}\n{folder}", lines.join("\n"), table.trim_end())
    }
}

impl Drop for Pilot {
    fn drop(&mut self) {
        for child in [&mut self.watch, &mut self.tray] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// Its exit code.
    pub(crate) code: Option<i32>,
    /// Its standard output.
    pub(crate) out: String,
    /// Its standard error.
    pub(crate) err: String,
}

impl CommandOutput {
    /// Runs a command to its end, with an empty standard input.
    pub(crate) fn of(mut command: Command) -> Self {
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// Pilotlight for these homes, without the developer's environment.
fn command(scratch: &TempDir, homes: &[PathBuf], args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", scratch.path())
        .env("PILOTLIGHT_CONFIG", scratch.path().join(CONFIG))
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm-256color")
        .env("PILOTLIGHT_DISCOVER", "false")
        .current_dir(scratch.path())
        .args(args);
    for home in homes {
        command.arg("--home").arg(home);
    }
    command
}

fn collect(lines: impl BufRead, into: &Mutex<Watched>) {
    for line in lines.lines().map_while(Result::ok) {
        let row: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("watch --json: {error}: {line}"));
        let mut watched = into.lock().unwrap();
        let id = row["id"].as_str().expect("a line of watch --json names its session").to_owned();
        if row["removed"] == true {
            watched.latest.remove(&id);
        } else {
            watched.latest.insert(id, row.clone());
        }
        watched.lines.push(row);
    }
}
