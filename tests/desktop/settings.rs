//! What the tray makes of settings that change, what it writes into its log, and what it shows for a bug report.

use crate::desk::bus::Bus;
use crate::desk::light::User;
use crate::desk::panel::{Entry, Panel};
use crate::desk::popups::Popups;
use crate::desk::sessions::Sessions;
use crate::support::executable::executable;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::fs;

/// A user who was welcomed long ago.
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
fn case_154_a_change_counts_at_once_and_what_is_wrong_in_it_costs_itself_alone() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel, popups) = (user(&sessions), Panel::start(&bus), Popups::start(&bus));
    let session = sessions.add("the one");
    session.prompt();
    let _light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "working");
    let good = || {
        let wrong = || panel.layout().1.find(&|entry: &Entry| entry.shown().starts_with("Settings: ")).is_some();
        wait_until(SOON, "nothing is wrong", || format!("{:#?}", panel.menu()), || (!wrong()).then_some(()));
    };
    let config = user.scratch.path().join(".config/pilotlight/config.toml");
    fs::write(&config, "[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"2s\"\n").unwrap();
    user.agrees(&panel, &session, "stuck");
    for _ in 0..2 {
        fs::write(&config, "[limits]\nfresh-quiet = \"1m\"\nfresh-stuk = \"2h\"\n").unwrap();
        panel
            .wait_for("where it is wrong", |entry| entry.shown().starts_with("Settings: config.toml:3:1: unknown key"));
    }
    let popup = popups.wait_for(1);
    assert_eq!(popup.title, "Pilotlight's settings");
    assert!(popup.body.contains("config.toml:3:1") && popup.body.contains("is ignored"), "{popup:?}");
    wait_until(SOON, "it is in the log", || log(&user), || log(&user).contains("config.toml:3:1").then_some(()));
    // Case 154: what is right in it counts, and a file that nothing can be read from changes nothing.
    user.agrees(&panel, &session, "working");
    fs::write(&config, "[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"2s\"\n").unwrap();
    good();
    user.agrees(&panel, &session, "stuck");
    fs::write(&config, "[limits\n").unwrap();
    panel.wait_for("it is no TOML", |entry| entry.shown().starts_with("Settings: config.toml:1:8: not TOML"));
    let popup = popups.wait_for(2);
    assert!(popup.body.contains("The previous settings stay in force"), "{popup:?}");
    session.metric();
    panel.wait_for("it is stuck as before", |entry| entry.shown().starts_with("stuck: "));
    fs::write(&config, "[limits]\nfresh-quiet = \"1h\"\nfresh-stuck = \"2h\"\n[log]\nlevel = \"error\"\n").unwrap();
    good();
    user.agrees(&panel, &session, "working");
    assert_eq!(popups.taken().len(), 2, "{:#?}", popups.taken());
    let before = log(&user);
    session.answer("Done.");
    user.agrees(&panel, &session, "idle");
    assert_eq!(log(&user), before, "the log's level changed as well");
}

/// Now, once it is over: the log tells milliseconds, and what is done next may be told within the same one.
fn a_moment() -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    while jiff::Timestamp::now().as_millisecond() == now.as_millisecond() {
        std::thread::yield_now();
    }
    now
}

#[test]
fn the_log_answers_why_and_holds_nothing_that_a_session_wrote() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (user(&sessions), Panel::start(&bus));
    let session = sessions.add("Project Zebra");
    let mut light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "idle");
    session.prompt();
    session.tool("a", "launchcodes", "rm -rf hunter2");
    user.agrees(&panel, &session, "working");
    let working = a_moment();
    session.fail("hunter2 is wrong");
    user.agrees(&panel, &session, "failed");
    let failed = a_moment();
    session.prompt();
    session.tool("b", "launchcodes", "rm -rf hunter2");
    user.agrees(&panel, &session, "working");
    session.kill();
    user.agrees(&panel, &session, "crashed");
    let crashed = jiff::Timestamp::now();
    panel.settle(); // its end is a moment later, and told apart
    light.signal(Signal::TERM);
    light.ended();
    let ask = |at: String| {
        let output = user.command(None, &["explain", &session.id, "--at", &at]).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), told)
    };
    let (code, told) = ask(working.to_string());
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("status          working, said since"), "{told}");
    let (code, told) = ask(failed.to_string());
    assert!(code == Some(0) && told.contains("status          failed") && told.contains("query, HTTP 500\n"), "{told}");
    let (_, told) = ask(crashed.to_string());
    assert!(told.contains("status          crashed") && told.contains("unfinished: a tool\n"), "{told}");
    let (code, told) = ask("2020-01-01T00:00:00Z".into());
    assert!(code == Some(1) && told.contains("does not reach that far back"), "{told}");
    let (code, told) = ask(jiff::Timestamp::now().to_string());
    assert!(code == Some(1) && told.contains("no tray ran then: the last one had ended at"), "{told}");
    let minute = failed.to_zoned(jiff::tz::TimeZone::UTC).strftime("%H:%M").to_string();
    let output = user.command(None, &["explain", &session.id, "--at", &minute]).env("TZ", "UTC").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("failed"), "{told}");
    let log = log(&user);
    for secret in ["Zebra", "launchcodes", "hunter2", "rm -rf", "is wrong"] {
        assert!(!log.contains(secret), "{secret} is in:\n{log}");
    }
}

/// Where nothing was logged, and after the last word of a run that was killed, `--at` states no status.
#[test]
fn what_the_log_does_not_hold_is_no_answer() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (user(&sessions), Panel::start(&bus));
    let session = sessions.add("the one");
    let mut light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "idle");
    let set = |level: &str| {
        let config = user.scratch.path().join(".config/pilotlight/config.toml");
        fs::write(config, format!("[log]\nlevel = \"{level}\"\n")).unwrap();
        let line = format!("tag=\"level\" level=\"{level}\"");
        wait_until(SOON, "the level is another", || log(&user), || log(&user).contains(&line).then_some(()));
        a_moment();
    };
    let ask = || {
        let now = a_moment().to_string();
        let output = user.command(None, &["explain", &session.id, "--at", &now]).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), told)
    };
    set("warn");
    session.prompt();
    user.agrees(&panel, &session, "working");
    let (code, told) = ask();
    assert!(code == Some(1) && told.contains("not logged then: the level was \"warn\""), "{told}");
    set("info");
    let told_anew = || log(&user).contains("was=\"idle\" is=\"working\"").then_some(());
    wait_until(SOON, "what was missed is told", || log(&user), told_anew);
    let (code, told) = ask();
    assert!(code == Some(0) && told.contains("status          working, said since"), "{told}");
    light.signal(Signal::KILL);
    light.ended();
    let (code, told) = ask();
    assert!(code == Some(1) && told.contains("the log of that run breaks off at"), "{told}");
    assert!(told.contains("before that it was working"), "{told}");
}

#[test]
fn settings_are_found_where_no_event_told_of_them() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (user(&sessions), Panel::start(&bus));
    let folder = user.scratch.path().join(".config/pilotlight");
    let config = folder.join("config.toml");
    let session = sessions.add("the one");
    let _light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "idle");
    let good = || {
        let wrong = || panel.layout().1.find(&|entry: &Entry| entry.shown().starts_with("Settings: ")).is_some();
        wait_until(SOON, "nothing is wrong", || format!("{:#?}", panel.menu()), || (!wrong()).then_some(()));
    };
    let wrong = || panel.wait_for("what is wrong", |entry| entry.shown().starts_with("Settings: config.toml:1:1"));
    good();
    // Another folder takes the place of the one that is watched: the next look finds it, and it is watched from then on.
    fs::rename(&folder, folder.with_extension("old")).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(&config, "wrong = 1\n").unwrap();
    let refresh = || panel.click(panel.wait_for("Refresh", |entry| entry.label == "Refresh").id).then_some(());
    wait_until(SOON, "it looks at everything", String::new, refresh);
    wrong();
    fs::write(&config, "").unwrap();
    good();
    // A link leads to a file with a mistake, which is put right there.
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
    let _light = user.light_from(command);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "working");
    panel.rest();
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
    assert!(fs::read_to_string(config).unwrap().contains("# fresh-stuck = "), "made from the reference");
}
