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

/// The present millisecond, once it is over. The log has milliseconds, so later lines differ from this time.
fn after_this_millisecond() -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    while jiff::Timestamp::now().as_millisecond() == now.as_millisecond() {
        std::thread::yield_now();
    }
    now
}

#[test]
fn the_log_explains_past_statuses_and_contains_nothing_that_a_session_wrote() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (user(&sessions), Panel::start(&bus));
    let session = sessions.add("Project Zebra");
    let mut tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    session.prompt();
    session.tool("a", "launchcodes", "rm -rf hunter2");
    user.wait_status(&panel, &session, "working");
    let working = after_this_millisecond();
    session.fail("hunter2 is wrong");
    user.wait_status(&panel, &session, "failed");
    let failed = after_this_millisecond();
    session.prompt();
    session.tool("b", "launchcodes", "rm -rf hunter2");
    user.wait_status(&panel, &session, "working");
    session.kill();
    user.wait_status(&panel, &session, "crashed");
    let crashed = jiff::Timestamp::now();
    panel.wait_idle(); // so that the tray exits a moment later
    tray.signal(Signal::TERM);
    tray.wait_exit();
    let ask = |at: String| {
        let output = user.command(None, &["explain", &session.id, "--at", &at]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    let (code, text) = ask(working.to_string());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("status          working, said since"), "{text}");
    let (code, text) = ask(failed.to_string());
    assert!(code == Some(0) && text.contains("status          failed") && text.contains("query, HTTP 500\n"), "{text}");
    let (_, text) = ask(crashed.to_string());
    assert!(text.contains("status          crashed") && text.contains("unfinished: a tool\n"), "{text}");
    let (code, text) = ask("2020-01-01T00:00:00Z".into());
    assert!(code == Some(1) && text.contains("does not reach that far back"), "{text}");
    let (code, text) = ask(jiff::Timestamp::now().to_string());
    assert!(code == Some(1) && text.contains("no tray ran then: the last one had ended at"), "{text}");
    let minute = failed.to_zoned(jiff::tz::TimeZone::UTC).strftime("%H:%M").to_string();
    let output = user.command(None, &["explain", &session.id, "--at", &minute]).env("TZ", "UTC").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("failed"), "{text}");
    let log = log(&user);
    for secret in ["Zebra", "launchcodes", "hunter2", "rm -rf", "is wrong"] {
        assert!(!log.contains(secret), "{secret} is in:\n{log}");
    }
}

/// Neither for a time when statuses were not logged, nor after the last line of a run that was killed.
#[test]
fn explain_at_states_no_status_that_the_log_does_not_have() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (user(&sessions), Panel::start(&bus));
    let session = sessions.add("the one");
    let mut tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    let set = |level: &str| {
        let config = user.scratch.path().join(".config/pilotlight/config.toml");
        fs::write(config, format!("[log]\nlevel = \"{level}\"\n")).unwrap();
        let line = format!("tag=\"level\" level=\"{level}\"");
        wait_until(SOON, "the level has changed", || log(&user), || log(&user).contains(&line).then_some(()));
        after_this_millisecond();
    };
    let ask = || {
        let now = after_this_millisecond().to_string();
        let output = user.command(None, &["explain", &session.id, "--at", &now]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    set("warn");
    session.prompt();
    user.wait_status(&panel, &session, "working");
    let (code, text) = ask();
    assert!(code == Some(1) && text.contains("not logged then: the level was \"warn\""), "{text}");
    set("info");
    let logged_again = || log(&user).contains("was=\"idle\" is=\"working\"").then_some(());
    wait_until(SOON, "the missed status is logged", || log(&user), logged_again);
    let (code, text) = ask();
    assert!(code == Some(0) && text.contains("status          working, said since"), "{text}");
    tray.signal(Signal::KILL);
    tray.wait_exit();
    let (code, text) = ask();
    assert!(code == Some(1) && text.contains("the log of that run breaks off at"), "{text}");
    assert!(text.contains("before that it was working"), "{text}");
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
