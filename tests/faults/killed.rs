//! The program is killed at any moment and started again.

use crate::desk::bus::Bus;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// After every kill, the files of the state folder are whole, and everything that was saved before is there. The new
/// tray takes over lock, socket and icon from the dead one.
#[test]
#[ignore = "tests/long.sh"]
fn a_tray_that_is_killed_at_any_moment_keeps_its_saved_state() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    let made: Vec<_> = (1..=4).map(|n| sessions.add(&format!("session number {n}"))).collect();
    let marks = user.state().join("seen.json");
    let mut known = 0;
    for round in 0..12u32 {
        let panel = Panel::start(&bus);
        let mut tray = user.start_tray(&bus);
        panel.wait_for_icon();
        for session in &made {
            session.prompt();
            session.answer("Done.");
        }
        for session in &made {
            user.wait_status(&panel, session, "idle");
        }
        let all = panel.wait_for("Mark all as seen", |entry| entry.label.starts_with("Mark all as seen"));
        assert!(panel.click(all.id));
        let until = Instant::now() + Duration::from_micros(700) * round;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        tray.signal(Signal::KILL);
        tray.wait_exit();
        if let Ok(text) = fs::read_to_string(&marks) {
            let saved: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
            assert!(saved.len() >= known, "something was forgotten: {text}");
            known = saved.len();
        } else {
            assert_eq!(known, 0, "the saved state is gone");
        }
        panel.end();
    }
    // Half-written files of a dead tray do not hinder the next one, and do not accumulate.
    let left = || {
        let files = fs::read_dir(user.state()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|end| end == "new")).collect::<Vec<_>>()
    };
    for path in left() {
        fs::File::options().append(true).open(path).unwrap().set_modified(UNIX_EPOCH).unwrap();
    }
    let panel = Panel::start(&bus);
    let mut tray = user.start_tray(&bus);
    panel.wait_for_icon();
    for session in &made {
        session.prompt();
        session.answer("Done.");
        user.wait_status(&panel, session, "idle");
    }
    let all = panel.wait_for("Mark all as seen", |entry| entry.label.starts_with("Mark all as seen"));
    assert!(panel.click(all.id));
    let seen = || made.iter().all(|session| user.row(session).unwrap()["unseen"] == false);
    wait_until(SOON, "all are seen", || format!("{:?}", user.rows()), || seen().then_some(()));
    tray.signal(Signal::TERM);
    assert!(tray.wait_exit().0.success());
    assert!(left().is_empty(), "{:?}", left());
}
