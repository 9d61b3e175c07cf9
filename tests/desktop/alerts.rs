//! Notifications of the real program on made-up sessions, with the test as notification server.

mod focus;
mod hosts;

use crate::desk::bus::Bus;
use crate::desk::panel::{Entry, Panel};
use crate::desk::popups::{Popup, Popups};
use crate::desk::sessions::{Session, Sessions};
use crate::desk::tray::{TrayProcess, User};
use crate::support::running_time::running_time;
use crate::support::{SOON, wait_until};
use pilotlight_system::clock::{Clock, WallClock};
use rustix::process::Signal;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A desktop with a panel and a notification server, and a user who has already been welcomed.
struct Desk {
    tray: TrayProcess,
    user: User,
    panel: Panel,
    popups: Popups,
    sessions: Sessions,
    bus: Bus,
}

/// No grace period after the start, so that tests need not wait for its end.
const NO_GRACE: &str = "after-start = \"1ms\"\n";

impl Desk {
    fn new(settings: &str) -> Self {
        Self::with(settings, |_| {})
    }

    /// With sessions that exist before the program starts.
    fn with(settings: &str, before: impl FnOnce(&Sessions)) -> Self {
        Self::with_environment(settings, before, &[])
    }

    /// The same, and with these variables in the program's environment.
    fn with_environment(settings: &str, before: impl FnOnce(&Sessions), environment: &[(&str, &Path)]) -> Self {
        let (bus, sessions) = (Bus::start(), Sessions::new());
        let (user, panel, popups) = (User::new(&sessions), Panel::start(&bus), Popups::start(&bus));
        std::fs::create_dir_all(user.state()).unwrap();
        std::fs::write(user.state().join("welcomed"), "").unwrap();
        let config = user.scratch.path().join(".config/pilotlight");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("config.toml"), format!("[notifications]\n{settings}")).unwrap();
        before(&sessions);
        let mut command = user.command(Some(&bus), &[]);
        command.envs(environment.iter().copied());
        let tray = user.start_tray_as(command);
        panel.wait_for_icon();
        let scanned = || (panel.menu()[0].label != "Looking for sessions").then_some(());
        wait_until(SOON, "the initial scan is over", || format!("{:#?}", panel.menu()), scanned);
        Self { tray, user, panel, popups, sessions, bus }
    }

    /// A session that the program shows as working.
    fn working(&self, title: &str) -> Session {
        let session = self.sessions.add(title);
        session.prompt();
        self.user.wait_status(&self.panel, &session, "working");
        session
    }

    /// Has another session fail and waits for its popup, which must be number `count`. It is notified at once, so this
    /// shows that nothing before it was notified.
    fn marker(&self, count: usize) -> (Session, Popup) {
        let session = self.working(&format!("marker {count}"));
        session.fail("it is broken");
        let popup = self.popups.wait_for(count);
        let (title, body) = (&*popup.title, popup.body.lines().last());
        let marker = format!("marker {count}");
        assert_eq!((title, body), ("work failed", Some(&*marker)), "{:#?}", self.popups.received());
        (session, popup)
    }

    fn click(&self, label: &str) {
        let entry = self.panel.wait_for(label, |entry: &Entry| entry.shown().starts_with(label) && entry.enabled);
        assert!(self.panel.click(entry.id));
    }

    /// Clicks an entry of a session until its label changes, because a click just after a change of the menu is
    /// ignored. It waits between clicks: a second one would undo a first one that is still in transit.
    fn switch(&self, label: &str, then: &str) {
        let dump = || format!("{:#?}", self.panel.menu());
        let mut clicked: Option<Instant> = None;
        wait_until(SOON, then, dump, || {
            let menu = self.panel.layout().1;
            let entry = menu.find(&|entry: &Entry| entry.shown() == label);
            if let Some(entry) = entry.filter(|_| clicked.is_none_or(|at| at.elapsed() > Duration::from_secs(2))) {
                self.panel.click(entry.id);
                clicked = Some(Instant::now());
            }
            self.panel.layout().1.find(&|entry: &Entry| entry.shown() == then).map(drop)
        });
    }
}

#[test]
fn a_request_is_notified_once_after_two_seconds_and_withdrawn_when_it_is_answered() {
    let desk = Desk::new(NO_GRACE);
    let session = desk.working("Fix the parser");
    session.tool("a", "bash", "make");
    let asked = Instant::now();
    session.ask("r", "a");
    let popup = desk.popups.wait_for(1);
    assert!(asked.elapsed() >= Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(popup.title, "work wants to run");
    assert!(popup.body.ends_with("x\nAnswer it where it runs\nFix the parser"), "{popup:#?}");
    assert_eq!(popup.actions, ["details", "Details", "default", "", "mute", "Mute"], "nothing that answers it");
    session.permit("r");
    desk.popups.wait_for_closed(&[popup.number]);
    desk.marker(2);
}

#[test]
fn a_permission_given_at_once_is_not_notified() {
    // Long enough even for a slow machine to give it before.
    let delay = Duration::from_secs(15);
    let desk = Desk::new(&format!("{NO_GRACE}permission-delay = \"15s\"\n"));
    let session = desk.working("Fix the parser");
    session.tool("a", "bash", "make");
    let asked = Instant::now();
    session.ask("r", "a");
    desk.user.wait_status(&desk.panel, &session, "needs-permission");
    session.permit("r");
    desk.user.wait_status(&desk.panel, &session, "working");
    wait_until(SOON, "the delay has passed", String::new, || (asked.elapsed() > delay).then_some(()));
    desk.marker(1);
}

#[test]
fn four_failures_at_once_are_one_popup() {
    let desk = Desk::new(NO_GRACE);
    let all = ["one", "two", "three", "four"].map(|title| desk.working(title));
    // Frozen, so that it finds all of them at once, however slowly they are written.
    desk.tray.freeze();
    for session in &all {
        session.fail("it is broken");
    }
    desk.tray.signal(Signal::CONT);
    let popup = desk.popups.wait_for(1);
    assert_eq!(popup.title, "4 Copilot sessions need you");
    assert_eq!(popup.body, "Failed: work · one\nFailed: work · two\nFailed: work · three\nFailed: work · four");
    all[0].prompt();
    let shorter = desk.popups.wait_for(2);
    assert_eq!((shorter.replaces, &*shorter.title), (popup.number, "3 Copilot sessions need you"));
    desk.marker(3);
}

#[test]
fn a_failure_before_the_start_is_not_notified() {
    let mut failed = None;
    let desk = Desk::with(NO_GRACE, |sessions| {
        let session = sessions.add("Fix the parser");
        session.prompt();
        session.fail("it is broken");
        failed = Some(session);
    });
    desk.user.wait_status(&desk.panel, &failed.unwrap(), "failed");
    desk.marker(1);
}

#[test]
fn nothing_is_notified_during_a_pause_and_a_pause_survives_a_restart() {
    let mut desk = Desk::new(NO_GRACE);
    desk.click("Pause until resumed");
    desk.panel.wait_for("it is paused", |entry| entry.shown() == "Notifications: paused until resumed");
    let session = desk.working("Fix the parser");
    session.fail("it is broken");
    desk.user.wait_status(&desk.panel, &session, "failed");
    assert_eq!(desk.panel.tooltip(), "1 needs you · work failed; notifications are paused until resumed");
    desk.tray.signal(Signal::TERM);
    desk.tray.wait_exit();
    let before = desk.panel.registered();
    desk.tray = desk.user.start_tray(&desk.bus);
    wait_until(SOON, "it is back", String::new, || (desk.panel.registered() > before).then_some(()));
    desk.panel.wait_for("it is still paused", |entry| entry.shown() == "Notifications: paused until resumed");
    desk.click("Resume notifications");
    desk.panel.wait_for("it is not", |entry| entry.shown() == "Notifications");
    desk.marker(1);
}

#[test]
fn a_muted_session_is_not_notified_and_a_muted_folder_mutes_all_its_sessions() {
    let desk = Desk::new(NO_GRACE);
    let session = desk.working("Fix the parser");
    desk.switch("Mute this session", "Unmute this session");
    session.fail("it is broken");
    desk.user.wait_status(&desk.panel, &session, "failed");
    let (_failed, popup) = desk.marker(1);
    // The popup's button does the same as the entry.
    desk.popups.click(popup.number, "mute");
    wait_until(
        SOON,
        "both are muted",
        || format!("{:#?}", desk.panel.menu()),
        || desk.panel.layout().1.find(&|entry: &Entry| entry.shown().starts_with("Unmute all: 2 sessions")).map(drop),
    );
    desk.switch("Mute its folder", "Unmute its folder");
    let other = desk.working("Another one");
    other.fail("it is broken");
    desk.user.wait_status(&desk.panel, &other, "failed");
    desk.click("Unmute all");
    let muted = || desk.panel.layout().1.find(&|entry: &Entry| entry.shown().starts_with("Unmute all")).is_some();
    wait_until(SOON, "nothing is muted", || format!("{:#?}", desk.panel.menu()), || (!muted()).then_some(()));
    desk.marker(2);
    assert!(desk.user.state().join("quiet.json").is_file());
}

#[test]
fn a_kind_that_is_off_is_not_notified_and_detail_is_honoured() {
    let desk = Desk::new(&format!("{NO_GRACE}needs-input = false\ndetail = \"none\"\n"));
    let session = desk.working("Fix the parser");
    session.answer("Shall I go on?");
    desk.user.wait_status(&desk.panel, &session, "needs-input");
    let other = desk.working("Another one");
    other.fail("it is broken");
    let popup = desk.popups.wait_for(1);
    assert_eq!((&*popup.title, &*popup.body), ("A Copilot session needs you", ""));
}

/// If a turn begins and ends between two reads, its duration must not include the turn before.
#[test]
fn a_short_turn_after_a_long_one_is_not_notified_as_done() {
    let desk = Desk::new(&format!("{NO_GRACE}done = true\ndone-min = \"1s\"\ncooldown = \"1ms\"\n"));
    let session = desk.working("Fix the parser");
    let begun = Instant::now();
    let long = || (begun.elapsed() > Duration::from_millis(1200)).then_some(());
    wait_until(SOON, "it takes long", String::new, long);
    session.answer("Done.");
    let popup = desk.popups.wait_for(1);
    assert_eq!(popup.title, "work is done");
    session.prompt();
    session.answer("Done.");
    desk.popups.wait_for_closed(&[popup.number]);
    desk.marker(2);
}

#[test]
fn open_popups_follow_the_settings() {
    let desk = Desk::new(NO_GRACE);
    let (_failed, popup) = desk.marker(1);
    let config = desk.user.scratch.path().join(".config/pilotlight/config.toml");
    std::fs::write(config, format!("[notifications]\n{NO_GRACE}detail = \"none\"\n")).unwrap();
    let less = desk.popups.wait_for(2);
    assert_eq!((less.replaces, &*less.title, &*less.body), (0, "A Copilot session needs you", ""));
    desk.popups.wait_for_closed(&[popup.number]);
}

#[test]
fn quiet_hours_show_like_a_pause() {
    // All day except for one minute, which is not soon, in whatever time zone.
    let minute = WallClock::at(Clock::start().now().wall).minute;
    let [from, to] = [8, 7].map(|ahead| (minute + ahead) % (24 * 60));
    let hours = format!("{}:{:02}-{}:{:02}", from / 60, from % 60, to / 60, to % 60);
    let desk = Desk::new(&format!("{NO_GRACE}quiet-hours = \"{hours}\"\n"));
    desk.panel.wait_for("it is quiet", |entry| entry.shown().starts_with("Notifications: quiet until "));
    assert!(desk.panel.tooltip().contains("; notifications are quiet until "), "{}", desk.panel.tooltip());
}

/// Only what was so before the start waits for the end of the first 30 s.
#[test]
fn what_begins_after_the_start_is_notified_at_once() {
    let begun = running_time();
    let desk = Desk::new("");
    desk.marker(1);
    let took = running_time() - begun;
    assert!(took < Duration::from_secs(25), "after {took:?}");
}

/// A click reaches the engine.
#[test]
fn a_click_takes_the_next_step_or_says_why_it_could_not() {
    let desk = Desk::new(NO_GRACE);
    let (_failed, popup) = desk.marker(1);
    assert_eq!(popup.actions[0], "details", "there is no desktop here to show its terminal on");
    desk.popups.click(popup.number, "default");
    let popup = desk.popups.wait_for(2);
    assert_eq!(popup.title, "Pilotlight could not do that", "{popup:#?}");
    assert!(popup.body.contains("there is no display"), "{popup:#?}");
    desk.panel.wait_idle();
    let tooltip = desk.panel.tooltip();
    assert!(tooltip.contains("needs you") && !tooltip.contains("set aside"), "case 170: its alarm stays: {tooltip}");
    let crashed = desk.working("Fix the parser");
    crashed.tool("a", "bash", "make");
    desk.user.wait_status(&desk.panel, &crashed, "working");
    crashed.kill();
    let popup = desk.popups.wait_for(3);
    assert_eq!(popup.title, "work crashed");
    assert!(["details", "resume"].contains(&&*popup.actions[0]), "{popup:#?}");
    desk.popups.click(popup.number, &popup.actions[0]);
    let popup = desk.popups.wait_for(4);
    assert!(!popup.body.is_empty(), "{popup:#?}");
}

#[test]
fn a_test_notification_is_sent_on_demand_and_notify_test_lists_what_the_desktop_can_do() {
    let desk = Desk::new(NO_GRACE);
    desk.click("Test notification");
    assert_eq!(desk.popups.wait_for(1).title, "Pilotlight: a test");
    let mut command = desk.user.command(Some(&desk.bus), &["notify-test"]);
    let ran = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It runs until the popup closes: some servers close the popups of a program that exits.
    let popup = desk.popups.wait_for(2);
    assert_eq!(popup.title, "Pilotlight: a test");
    assert!(desk.bus.names().contains(&popup.sender));
    desk.popups.close(popup.number, 2);
    let ran = ran.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{ran:?}");
    assert!(stdout.contains("Shown by: Plasma 1") && stdout.contains("Clicks and buttons: yes"), "{stdout}");
    let none = desk.user.command(None, &["notify-test"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    assert!(String::from_utf8_lossy(&none.stderr).contains("notification"), "{none:?}");
}

#[test]
fn popups_close_when_the_program_exits() {
    let mut desk = Desk::new(NO_GRACE);
    let (_failed, popup) = desk.marker(1);
    desk.tray.signal(Signal::TERM);
    let (status, took) = desk.tray.wait_exit();
    assert!(status.success() && took < Duration::from_secs(1), "{took:?}");
    desk.popups.wait_for_closed(&[popup.number]);
}
