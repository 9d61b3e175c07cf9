//! Settings that change while the tray runs, the tray's log, and its diagnostics for a bug report.

use crate::desk::bus::Bus;
use crate::desk::panel::{Entry, Panel};
use crate::desk::popups::Popups;
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use crate::support::executable::executable;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::fs;

/// A user who has already been welcomed.
fn user(sessions: &Sessions) -> User {
    let user = User::new(sessions);
    fs::create_dir_all(user.state()).unwrap();
    fs::write(user.state().join("welcomed"), "").unwrap();
    user
}

fn log(user: &User) -> String {
    fs::read_to_string(user.state().join("pilotlight.log")).unwrap_or_default()
}

/// Panels look for new files only every few seconds, so the icon comes with a folder in which all files are there.
#[test]
fn case_213_other_pictures_are_another_icons() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (user(&sessions), Panel::start(&bus));
    sessions.add("the one").prompt();
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    panel.wait_for("the session", |entry| entry.label.contains("the one"));
    let folder = || String::try_from(panel.property("IconThemePath")).unwrap();
    let (icon, before, registered) = (panel.icon(), folder(), panel.registered());
    fs::write(user.scratch.path().join(".config/pilotlight/config.toml"), "[tray]\nhigh-contrast = true\n").unwrap();
    wait_until(SOON, "another icon", || panel.icon(), || (panel.registered() > registered).then_some(()));
    assert!(panel.icon() != icon && folder() != before, "{}", folder());
    assert_eq!(panel.picture(), Some(panel.pixels()));
    assert_eq!(fs::read_dir(folder()).unwrap().count(), 20);
    panel.wait_for("the session", |entry| entry.label.contains("the one"));
}

#[test]
fn case_154_changed_settings_apply_at_once_and_a_wrong_key_affects_only_itself() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel, popups) = (user(&sessions), Panel::start(&bus), Popups::start(&bus));
    let session = sessions.add("the one");
    session.prompt();
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "working");
    let good = || {
        let wrong = || panel.layout().1.find(&|entry: &Entry| entry.shown().starts_with("Settings: ")).is_some();
        wait_until(SOON, "nothing is wrong", || format!("{:#?}", panel.menu()), || (!wrong()).then_some(()));
    };
    let config = user.scratch.path().join(".config/pilotlight/config.toml");
    fs::write(
        &config,
        "[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"2s\"\nthinking-quiet = \"1s\"\nthinking-stuck = \"2s\"\n",
    )
    .unwrap();
    user.wait_status(&panel, &session, "stuck");
    for _ in 0..2 {
        fs::write(&config, "[limits]\nfresh-quiet = \"1m\"\nfresh-stuk = \"2h\"\n").unwrap();
        panel
            .wait_for("where it is wrong", |entry| entry.shown().starts_with("Settings: config.toml:3:1: unknown key"));
    }
    // The session's own popups come between them.
    let told = || popups.received().into_iter().filter(|popup| popup.title == "Pilotlight's settings");
    let nth = |n: usize| wait_until(SOON, "it is told", || format!("{:#?}", popups.received()), || told().nth(n));
    let popup = nth(0);
    assert!(popup.body.contains("config.toml:3:1") && popup.body.contains("is ignored"), "{popup:?}");
    wait_until(SOON, "it is in the log", || log(&user), || log(&user).contains("config.toml:3:1").then_some(()));
    // The other keys apply. A file that cannot be parsed changes nothing.
    user.wait_status(&panel, &session, "working");
    fs::write(
        &config,
        "[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"2s\"\nthinking-quiet = \"1s\"\nthinking-stuck = \"2s\"\n",
    )
    .unwrap();
    good();
    user.wait_status(&panel, &session, "stuck");
    fs::write(&config, "[limits\n").unwrap();
    panel.wait_for("it is no TOML", |entry| entry.shown().starts_with("Settings: config.toml:1:8: not TOML"));
    let popup = nth(1);
    assert!(popup.body.contains("The previous settings stay in force"), "{popup:?}");
    session.metric();
    panel.wait_for("it is stuck as before", |entry| entry.shown().starts_with("stuck: "));
    fs::write(&config, "[limits]\nfresh-quiet = \"1h\"\nfresh-stuck = \"2h\"\n[log]\nlevel = \"error\"\n").unwrap();
    good();
    user.wait_status(&panel, &session, "working");
    assert_eq!(told().count(), 2, "{:#?}", popups.received());
    let before = log(&user);
    session.answer("Done.");
    user.wait_status(&panel, &session, "idle");
    assert_eq!(log(&user), before, "the log's level changed as well");
}

#[test]
fn the_log_has_each_status_and_nothing_that_a_session_wrote() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (user(&sessions), Panel::start(&bus));
    let session = sessions.add("Project Zebra");
    let mut tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    session.prompt();
    session.tool("a", "launchcodes", "rm -rf hunter2");
    user.wait_status(&panel, &session, "working");
    session.fail("hunter2 is wrong");
    user.wait_status(&panel, &session, "failed");
    session.prompt();
    session.tool("b", "launchcodes", "rm -rf hunter2");
    user.wait_status(&panel, &session, "working");
    session.kill();
    user.wait_status(&panel, &session, "crashed");
    panel.wait_idle(); // so that the tray exits a moment later
    tray.signal(Signal::TERM);
    tray.wait_exit();
    let log = log(&user);
    let mut lines = log.lines();
    for (was, is, why) in [
        ("none", "idle", ""),
        ("idle", "working", ""),
        ("working", "failed", "Failed, HTTP 500 "),
        ("failed", "working", ""),
        ("working", "crashed", "ProcessGone, Unfinished "),
    ] {
        let change = format!("{why}tag=status session=«{}» was={was} is={is}", session.id);
        assert!(lines.any(|line| line.ends_with(&change)), "{change} is not in its place in:\n{log}");
    }
    for secret in ["Zebra", "launchcodes", "hunter2", "rm -rf", "is wrong"] {
        assert!(!log.contains(secret), "{secret} is in:\n{log}");
    }
}

#[test]
fn settings_are_found_without_a_file_event() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (user(&sessions), Panel::start(&bus));
    let folder = user.scratch.path().join(".config/pilotlight");
    let config = folder.join("config.toml");
    let session = sessions.add("the one");
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    let good = || {
        let wrong = || panel.layout().1.find(&|entry: &Entry| entry.shown().starts_with("Settings: ")).is_some();
        wait_until(SOON, "nothing is wrong", || format!("{:#?}", panel.menu()), || (!wrong()).then_some(()));
    };
    let wrong = || panel.wait_for("what is wrong", |entry| entry.shown().starts_with("Settings: config.toml:1:1"));
    good();
    // Another folder replaces the watched one. The next rescan finds it, and it is watched from then on.
    fs::rename(&folder, folder.with_extension("old")).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(&config, "wrong = 1\n").unwrap();
    let refresh = || panel.click(panel.wait_for("Refresh", |entry| entry.label == "Refresh").id).then_some(());
    wait_until(SOON, "it rescans", String::new, refresh);
    wrong();
    fs::write(&config, "").unwrap();
    good();
    // A symlink to a file with a mistake, which is then corrected in place.
    let (real, link) = (user.scratch.path().join("real"), folder.join("link"));
    fs::create_dir(&real).unwrap();
    fs::write(real.join("config.toml"), "wrong = 1\n").unwrap();
    std::os::unix::fs::symlink(real.join("config.toml"), &link).unwrap();
    fs::rename(&link, &config).unwrap();
    wrong();
    fs::write(real.join("config.toml"), "").unwrap();
    good();
}

#[test]
fn diagnostics_are_shown_before_they_are_copied() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel, popups) = (user(&sessions), Panel::start(&bus), Popups::start(&bus));
    let session = sessions.add("Project Zebra");
    session.prompt();
    let bin = user.scratch.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let (opener, opened) = (bin.join("xdg-open"), user.scratch.path().join("opened"));
    executable(&opener, &format!("#!/bin/sh\necho \"$1\" >>{}\n", opened.display()));
    let mut command = user.command(Some(&bus), &[]);
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    let _tray = user.start_tray_as(command);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "working");
    let click = |label: &str| {
        let entry = panel.wait_for(label, |entry| entry.label == label);
        assert!(panel.click(entry.id), "{label}");
    };
    click("Copy what was shown");
    assert_eq!(popups.wait_for(1).title, "Nothing was copied");
    click("Show diagnostics");
    let file = user.state().join("diagnostics.txt");
    let read = || fs::read_to_string(&opened).unwrap_or_default();
    wait_until(SOON, "it is opened", read, || read().contains(file.to_str().unwrap()).then_some(()));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("Pilotlight diagnostics.") && text.contains("working          1 "), "{text}");
    for secret in ["Zebra", &session.id, user.scratch.path().to_str().unwrap(), sessions.home().to_str().unwrap()] {
        assert!(!text.contains(secret), "{secret} is in:\n{text}");
    }
    click("Edit settings…");
    let config = user.scratch.path().join(".config/pilotlight/config.toml");
    wait_until(SOON, "the settings are opened", read, || read().contains(config.to_str().unwrap()).then_some(()));
    assert!(fs::read_to_string(config).unwrap().contains("# fresh-stuck = "), "created from the reference");
}
