//! The demo, as a user starts it: it shows every status, says what it is, and leaves nothing behind however it ends.

use crate::support::desktop::bus::Bus;
use crate::support::desktop::panel::{Entry, Panel};
use crate::support::desktop::sessions::Sessions;
use crate::support::desktop::tray::{TrayProcess, User};
use crate::support::process::{is_live, signal};
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use pilotlight::core::verdict::Status;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A demo on the test's own desktop.
struct Demo {
    tray: TrayProcess,
    panel: Panel,
    user: User,
    _bus: Bus,
}

impl Demo {
    fn start() -> Self {
        Self::at_speed("8")
    }

    fn at_speed(speed: &str) -> Self {
        let (bus, user) = (Bus::start(), user());
        let panel = Panel::start(&bus);
        let mut command = user.command_without_home(Some(&bus), &["demo", "--speed", speed]);
        command.env("TMPDIR", tmp(&user));
        let tray = user.start_tray_as(command);
        panel.wait_for_icon();
        panel.wait_for("a session plays", |entry| entry.label.contains("Demo: "));
        Self { tray, panel, user, _bus: bus }
    }

    /// The contents of the temporary folder.
    fn left(&self) -> Vec<PathBuf> {
        std::fs::read_dir(tmp(&self.user)).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// The processes that own sessions now.
    fn players(&self) -> Vec<u32> {
        let sessions = self.left()[0].join("copilot/session-state");
        let folders =
            std::fs::read_dir(sessions).unwrap().filter_map(|entry| std::fs::read_dir(entry.ok()?.path()).ok());
        let names = folders.flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.strip_prefix("inuse.")?.strip_suffix(".lock")?.parse().ok()).collect()
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

/// The process that started this one.
fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap()
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
    signal(parent(players[0]), Signal::KILL);
    wait_until(SOON, "the players follow", String::new, || (!players.iter().any(|pid| is_live(*pid))).then_some(()));
    demo.tray.signal(Signal::INT);
    let (status, _) = demo.tray.wait_exit();
    assert_eq!(status.code(), Some(1));
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

#[test]
fn it_changes_nothing_of_the_users() {
    let demo = Demo::start();
    let entry = demo.panel.wait_for("the entry", |entry| entry.label.starts_with("Start at login"));
    assert!(entry.label.contains("not in a demo") && !entry.enabled && entry.checked == Some(false), "{entry:?}");
    let named = demo.user.command_without_home(None, &["demo", "--home", "/elsewhere"]).output().unwrap();
    assert_eq!(named.status.code(), Some(2), "{}", String::from_utf8_lossy(&named.stderr));
}

#[test]
fn without_a_desktop_the_table_shows_it() {
    let user = user();
    let mut command = user.command_without_home(None, &["demo", "--speed", "8"]);
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
    let tray = user.start_tray_as(command);
    panel.wait_for_icon();
    tray.wait_output("without Copilot: pilotlight demo");
    assert_eq!(std::fs::read_dir(tmp(&user)).unwrap().count(), 0);
}
