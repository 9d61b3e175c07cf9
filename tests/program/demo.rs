//! The demo, as a user starts it: it shows every status, says what it is, and leaves nothing behind however it ends.

mod agents;
mod walk;

use crate::support::desktop::bus::Bus;
use crate::support::desktop::panel::{Entry, Panel};
use crate::support::desktop::sessions::Sessions;
use crate::support::desktop::tray::{TrayProcess, User};
use crate::support::process::{is_live, parent, signal};
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use pilotlight_core::verdict::Status;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A demo on the test's own desktop.
struct Demo {
    tray: TrayProcess,
    panel: Panel,
    user: User,
    bus: Bus,
}

impl Demo {
    fn start() -> Self {
        Self::at_speed("8")
    }

    fn at_speed(speed: &str) -> Self {
        Self::of(user(), speed, |_| {})
    }

    /// A demo of this user, started as `prepare` says.
    fn of(user: User, speed: &str, prepare: impl FnOnce(&mut std::process::Command)) -> Self {
        let bus = Bus::start();
        let panel = Panel::start(&bus);
        let mut command = user.command_without_home(Some(&bus), &["demo", "--speed", speed]);
        command.env("TMPDIR", tmp(&user));
        prepare(&mut command);
        let tray = user.start_tray_as(command);
        panel.wait_for_icon();
        panel.wait_for("a session plays", |entry| entry.label.contains("Demo: "));
        Self { tray, panel, user, bus }
    }

    /// The contents of the temporary folder.
    fn left(&self) -> Vec<PathBuf> {
        std::fs::read_dir(tmp(&self.user)).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// The log of the session whose id begins so.
    fn log(&self, id: &str) -> String {
        let sessions = std::fs::read_dir(self.left()[0].join("copilot/session-state")).unwrap();
        let named = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(id);
        let session = sessions.filter_map(Result::ok).find(named);
        session
            .and_then(|session| std::fs::read_to_string(session.path().join("events.jsonl")).ok())
            .unwrap_or_default()
    }

    fn wait_log(&self, id: &str, what: &str) {
        wait_until(SOON, &format!("{id} writes {what}"), || self.log(id), || self.log(id).contains(what).then_some(()));
    }

    /// Runs a command inside of the demo, as the keys of its table do.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let folder = self.left()[0].to_string_lossy().into_owned();
        let inside = ["demo", "--part", "command", "--speed", "1", "--stage", &folder, "--"];
        let mut command = self.user.command_without_home(None, &[&inside, arguments].concat());
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    /// The processes that own sessions now.
    fn players(&self) -> Vec<u32> {
        let sessions = self.left()[0].join("copilot/session-state");
        let folders =
            std::fs::read_dir(sessions).unwrap().filter_map(|entry| std::fs::read_dir(entry.ok()?.path()).ok());
        let names = folders.flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.strip_prefix("inuse.")?.strip_suffix(".lock")?.parse().ok()).collect()
    }

    /// Kills the process that plays the sessions of these.
    fn kill_stage(&self, players: &[u32]) {
        // A player that has died has none, or another process has its id by now.
        let stage = players.iter().filter_map(|pid| parent(*pid)).find(|pid| parent(*pid) == Some(self.tray.pid()));
        signal(stage.unwrap(), Signal::KILL);
    }

    /// Waits until no folder is left, and none of these processes.
    fn leaves_nothing(&self, processes: &[u32]) {
        let left = || format!("{:?} {:?}\n{}", self.left(), processes, self.tray.output());
        wait_until(SOON, "nothing is left of the demo", left, || {
            (self.left().is_empty() && !processes.iter().any(|pid| is_live(*pid))).then_some(())
        });
        assert!(!self.user.state().exists(), "the demo does not touch the state of the user's own tray");
        assert_eq!(std::fs::read_dir(self.user.scratch.path().join("run")).unwrap().count(), 0);
    }
}

fn user() -> User {
    let user = User::new(&Sessions::new());
    std::fs::create_dir(tmp(&user)).unwrap();
    user
}

fn tmp(user: &User) -> PathBuf {
    user.scratch.path().join("tmp")
}

#[test]
fn every_status_is_shown_and_nothing_is_left() {
    let mut demo = Demo::start();
    let mut missing = BTreeSet::from(Status::ALL.map(Status::name));
    wait_until(
        SOON,
        "every status is shown",
        || format!("{:#?}", demo.panel.menu()),
        || {
            let menu = demo.panel.layout().1;
            missing.retain(|status| {
                menu.find(&|entry: &Entry| entry.shown().starts_with(&format!("{status}: "))).is_none()
            });
            missing.is_empty().then_some(())
        },
    );
    assert!(demo.panel.tooltip().starts_with("demo: "), "{}", demo.panel.tooltip());
    let title: String = demo.panel.property("Title").try_into().unwrap();
    assert_eq!(title, "Pilotlight demo");
    let menu = demo.panel.menu();
    assert!(menu[0].label.starts_with("Demo: ") && menu[1].label.contains("play themselves"), "{menu:#?}");
    demo.tray.wait_output("this is a demo");
    let players = demo.players();
    assert!(players.len() > 5, "each session has a process of its own: {players:?}");
    demo.tray.signal(Signal::TERM);
    let (status, _) = demo.tray.wait_exit();
    assert!(status.success(), "{status}: {}", demo.tray.output());
    demo.leaves_nothing(&players);
}

/// Commands of the user's own see no session of a demo, so it names none.
#[test]
fn case_873_a_demo_without_an_icon_names_no_command_that_would_not_show_it() {
    let user = user();
    let mut command = user.command_without_home(None, &["demo", "--speed", "8"]);
    command.env("TMPDIR", tmp(&user)).env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
    let mut tray = user.start_tray_as(command);
    tray.wait_output("there is no session bus");
    assert!(!tray.output().contains("pilotlight live"), "{}", tray.output());
    tray.signal(Signal::TERM);
    assert!(tray.wait_exit().0.success());
}

#[test]
fn a_demo_that_is_killed_leaves_nothing_either() {
    let mut demo = Demo::start();
    let players = demo.players();
    demo.tray.signal(Signal::KILL);
    demo.tray.wait_exit();
    demo.leaves_nothing(&players);
}

#[test]
fn quit_ends_it_as_well() {
    let mut demo = Demo::start();
    let players = demo.players();
    let quit = demo.panel.wait_for("there is Quit", |entry| entry.label == "Quit");
    demo.panel.click(quit.id);
    let (status, _) = demo.tray.wait_exit();
    assert!(status.success(), "{status}: {}", demo.tray.output());
    demo.leaves_nothing(&players);
}

#[test]
fn a_demo_whose_stage_dies_says_so_at_its_end() {
    let mut demo = Demo::start();
    let players = demo.players();
    demo.kill_stage(&players);
    wait_until(SOON, "the players follow", String::new, || (!players.iter().any(|pid| is_live(*pid))).then_some(()));
    demo.tray.signal(Signal::INT);
    let (status, _) = demo.tray.wait_exit();
    assert_eq!(status.code(), Some(1), "{}", demo.tray.output());
    demo.tray.wait_output("not played to the end");
    demo.leaves_nothing(&players);
}

/// The program then exits without its main thread, which waits for the panel.
#[test]
fn a_panel_that_never_answers_does_not_keep_a_demo_from_cleaning_up() {
    let (bus, user) = (Bus::start(), user());
    let panel = Panel::deaf(&bus);
    let mut command = user.command_without_home(Some(&bus), &["demo", "--speed", "8"]);
    command.env("TMPDIR", tmp(&user));
    let tray = user.start_tray_as(command);
    let mut demo = Demo { tray, panel, user, bus };
    demo.tray.wait_output("the panel does not answer");
    let players = demo.players();
    demo.kill_stage(&players);
    demo.tray.signal(Signal::INT);
    let (status, _) = demo.tray.wait_exit();
    assert_eq!(status.code(), Some(1), "{}", demo.tray.output());
    demo.tray.wait_output("not played to the end");
    demo.leaves_nothing(&players);
}

#[test]
fn a_session_that_the_user_ends_is_shut_down() {
    // The script takes a minute at this speed; a session that was ended returns when it restarts.
    let demo = Demo::at_speed("2");
    let ended = |title: &str| {
        demo.panel.wait_for(&format!("{title} has ended"), |entry| {
            entry.shown().starts_with('○') && entry.words().contains(title) && entry.words().contains("ended: ")
        });
    };
    let players = demo.players();
    let login = demo.left()[0].join("copilot/session-state/de010000-0000-4000-8000-000000000001");
    let log = || std::fs::read_to_string(login.join("events.jsonl")).unwrap_or_default();
    wait_until(SOON, "it works", log, || log().contains("user.message").then_some(()));
    let pid = *players.iter().find(|pid| login.join(format!("inuse.{pid}.lock")).exists()).unwrap();
    // As the menu's "End it" does.
    signal(pid, Signal::INT);
    ended("Demo: Fix the login page");
    assert!(log().contains("session.shutdown"), "{}", log());
}

/// Case 225: what the user does in a demo is done there.
#[test]
fn case_225_its_requests_are_approved_from_the_menu() {
    let demo = Demo::at_speed("1");
    let approve = demo.panel.wait_for("Approve is shown first", |entry| entry.label == "Approve once");
    demo.panel.click(approve.id);
    demo.wait_log("de02", "human_response");
    assert!(demo.log("de02").contains(r#""kind":"approved""#), "{}", demo.log("de02"));
    demo.wait_log("de02", "Done, as you allowed it.");
}

#[test]
fn case_225_its_sessions_are_stopped_denied_and_answered_by_commands() {
    let demo = Demo::at_speed("1");
    demo.wait_log("de02", "permission.requested");
    wait_until(
        SOON,
        "it is denied",
        || demo.log("de02"),
        || (demo.run(&["deny", "--yes", "de02"]).0 == Some(0)).then_some(()),
    );
    demo.wait_log("de02", "denied-interactively-by-user");
    demo.wait_log("de01", "tool.execution_start");
    let stopped = demo.run(&["stop", "de01"]);
    assert_eq!(stopped.0, Some(0), "{stopped:?}");
    demo.wait_log("de01", "user_initiated");
    demo.wait_log("de03", "ask_user");
    let asked = "de030000-0001-4000-8000-000000000003";
    let answered = || demo.run(&["answer", "de03", "Cold", "--request", asked]).0 == Some(0);
    wait_until(SOON, "it is answered", || demo.log("de03"), || answered().then_some(()));
    demo.wait_log("de03", "tool.execution_complete");
    // Only the demo's own sessions are known there.
    assert_eq!(demo.run(&["explain", "de99"]).0, Some(2));
}

#[test]
fn case_225_a_session_that_lost_its_permissions_is_reconnected_and_asks_again() {
    let demo = Demo::at_speed("1");
    demo.wait_log("de06", "I may not change anything here.");
    wait_until(
        SOON,
        "it is reconnected",
        || demo.log("de06"),
        || (demo.run(&["reconnect", "de06", "--continue"]).0 == Some(0)).then_some(()),
    );
    demo.wait_log("de06", "permission.requested");
    wait_until(
        SOON,
        "it is approved",
        || demo.log("de06"),
        || (demo.run(&["approve", "--yes", "de06"]).0 == Some(0)).then_some(()),
    );
    demo.wait_log("de06", "Done, as you allowed it.");
}

#[test]
fn case_225_a_crashed_session_is_resumed_by_the_demos_own_copilot() {
    let demo = Demo::at_speed("4");
    let players = demo.players();
    let folder = demo.left()[0].clone();
    let photos = folder.join("copilot/session-state/de070000-0000-4000-8000-000000000007");
    demo.wait_log("de07", "exiftool");
    let lock = |pid: u32| photos.join(format!("inuse.{pid}.lock"));
    let pid = *players.iter().find(|pid| lock(**pid).exists()).unwrap();
    wait_until(SOON, "it crashes", || demo.log("de07"), || (!is_live(pid)).then_some(()));
    let mut copilot = std::process::Command::new(folder.join("bin/copilot"));
    copilot.arg("--resume=de070000-0000-4000-8000-000000000007");
    copilot.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut copilot = copilot.spawn().unwrap();
    wait_until(SOON, "it owns the session", || demo.log("de07"), || lock(copilot.id()).exists().then_some(()));
    demo.wait_log("de07", "session.resume");
    demo.tray.signal(Signal::TERM);
    let ended = || format!("{:?}", demo.left());
    wait_until(SOON, "it ends with the demo", ended, || copilot.try_wait().unwrap());
}

#[test]
fn it_changes_nothing_of_the_users() {
    let demo = Demo::start();
    let entry = demo.panel.wait_for("the entry", |entry| entry.label.starts_with("Start at login"));
    assert!(entry.label.contains("not in a demo") && !entry.enabled && entry.checked == Some(false), "{entry:?}");
    let bridge = demo.panel.layout().1.find(&|entry: &Entry| entry.label.contains("terminal sessions")).cloned();
    assert!(bridge.is_none(), "{bridge:?}");
    let named = demo.user.command_without_home(None, &["demo", "--home", "/elsewhere"]).output().unwrap();
    assert_eq!(named.status.code(), Some(2), "{}", String::from_utf8_lossy(&named.stderr));
}

#[test]
fn without_a_desktop_the_table_shows_it() {
    let user = user();
    let mut command = user.command_without_home(None, &["demo", "--speed", "8"]);
    command.env("PILOTLIGHT_DISCOVER", "false");
    command.env("TMPDIR", tmp(&user)).env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
    let terminal = Tmux::start(&command, 140, 40);
    wait_until(
        SOON,
        "the table shows the demo",
        || terminal.screen(),
        || {
            let screen = terminal.screen();
            (screen.contains("Pilotlight demo: ") && screen.contains("Demo: Fix the login page")).then_some(())
        },
    );
    terminal.press(&["C-c"]);
    let left = || std::fs::read_dir(tmp(&user)).unwrap().count();
    wait_until(SOON, "Ctrl-C ends it", || terminal.screen(), || (left() == 0).then_some(()));
}

#[test]
fn without_copilot_the_demo_is_offered_but_not_started() {
    let (bus, user) = (Bus::start(), user());
    let panel = Panel::start(&bus);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pilotlight"));
    command.env_clear().env("HOME", user.scratch.path()).env("XDG_RUNTIME_DIR", user.scratch.path().join("run"));
    command.env("TMPDIR", tmp(&user)).env("DBUS_SESSION_BUS_ADDRESS", bus.address());
    command.env("PILOTLIGHT_DISCOVER", "false");
    let tray = user.start_tray_as(command);
    panel.wait_for_icon();
    tray.wait_output("without an agent: pilotlight demo");
    assert_eq!(std::fs::read_dir(tmp(&user)).unwrap().count(), 0);
}

/// Inode, times and size of every file below a folder.
fn files(folder: &Path) -> Vec<(PathBuf, u64, i64, i64, u64)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                folders.push(path.clone());
            }
            found.push((path, meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.size()));
        }
    }
    found.sort();
    found
}

/// A user's files, among them those of a tray that ran, and a muted session that must not be read by a demo.
fn user_with_files() -> User {
    let user = user();
    for (file, text) in [
        (".config/pilotlight/config.toml", "[limits]\nfresh-quiet = \"1h\"\n"),
        (".local/state/pilotlight/seen.json", "{}"),
        (".local/state/pilotlight/pilotlight.log", "a line\n"),
        (".local/state/pilotlight/bridge.key", "a key"),
        (".copilot/config.json", "{}"),
    ] {
        let path = user.scratch.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    user
}

/// Case 232: two at once, in tables whose keys are mashed, of which one is killed.
#[test]
fn case_232_demos_side_by_side_leave_the_users_files_and_each_other_alone() {
    let user = user_with_files();
    let home = |name: &str| user.scratch.path().join(name);
    let kept = || [".config", ".local", ".copilot", "run"].map(|name| files(&home(name)));
    let before = kept();
    let mut command = user.command_without_home(None, &["demo", "--speed", "8"]);
    command.env("TMPDIR", tmp(&user)).env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
    let tables = [Tmux::start(&command, 100, 30), Tmux::start(&command, 40, 12)];
    for table in &tables {
        // The small one shows one row, of whichever session comes first.
        let plays = || table.screen().contains("› ").then_some(());
        wait_until(SOON, "it plays", || table.screen(), plays);
    }
    let stages = || std::fs::read_dir(tmp(&user)).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(stages().len(), 2, "each has a folder of its own");
    for _ in 0..3 {
        for keys in [&["a", "n", "Enter", "m", "j"][..], &["Enter", "?", "j", "?", "s", "y", "Enter", "r", "d", "o"]] {
            tables.iter().for_each(|table| table.press(keys));
        }
    }
    let pids = tables.each_ref().map(|table| table.pid);
    signal(pids[0], Signal::KILL);
    let left = || format!("{:?}\n{}", stages(), tables[1].screen());
    wait_until(SOON, "the killed one leaves nothing", left, || (stages().len() == 1).then_some(()));
    assert!(is_live(pids[1]), "the other one plays on");
    signal(pids[1], Signal::TERM);
    wait_until(SOON, "nothing is left", left, || (stages().is_empty() && !is_live(pids[1])).then_some(()));
    assert_eq!(kept(), before, "the user's own files are as they were");
}

#[test]
fn a_demo_that_can_write_nowhere_says_what_to_set() {
    let user = User::with_home("/nowhere/at/all".into());
    let output = user.command_without_home(None, &["demo"]).env("TMPDIR", "/nowhere").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("): the demo cannot create its folder /nowhere/"),
        "{said}"
    );
    assert!(said.contains("set TMPDIR to a writable one"), "{said}");
}
