//! The program killed at any moment, and started again.

use crate::desk::bus::Bus;
use crate::desk::light::User;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// What the state folder holds is whole after every kill, and what was written before it is there. The light comes back as
/// if nothing had been: lock, socket and icon are taken over from the dead one.
#[test]
fn a_light_that_is_killed_at_any_moment_comes_back_with_its_memory() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    let made: Vec<_> = (1..=4).map(|n| sessions.add(&format!("session number {n}"))).collect();
    let marks = user.state().join("seen.json");
    let mut known = 0;
    for round in 0..12u32 {
        let panel = Panel::start(&bus);
        let mut light = user.light(&bus);
        panel.wait_for_icon();
        for session in &made {
            session.prompt();
            session.answer("Done.");
        }
        for session in &made {
            user.agrees(&panel, session, "idle");
        }
        panel.rest();
        let all = panel.wait_for("Mark all as seen", |entry| entry.label.starts_with("Mark all as seen"));
        assert!(panel.click(all.id));
        let until = Instant::now() + Duration::from_micros(700) * round;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        light.signal(Signal::KILL);
        light.ended();
        if let Ok(text) = fs::read_to_string(&marks) {
            let kept: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
            assert!(kept.len() >= known, "something was forgotten: {text}");
            known = kept.len();
        } else {
            assert_eq!(known, 0, "what was kept is gone");
        }
        panel.end();
    }
    // What a dead one left half written is not in the way of the next, and does not pile up.
    let left = || {
        let files = fs::read_dir(user.state()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|end| end == "new")).collect::<Vec<_>>()
    };
    for path in left() {
        fs::File::options().append(true).open(path).unwrap().set_modified(UNIX_EPOCH).unwrap();
    }
    let panel = Panel::start(&bus);
    let mut light = user.light(&bus);
    panel.wait_for_icon();
    for session in &made {
        session.prompt();
        session.answer("Done.");
        user.agrees(&panel, session, "idle");
    }
    panel.rest();
    let all = panel.wait_for("Mark all as seen", |entry| entry.label.starts_with("Mark all as seen"));
    assert!(panel.click(all.id));
    let seen = || made.iter().all(|session| user.row(session).unwrap()["unseen"] == false);
    wait_until(SOON, "all are seen", || format!("{:?}", user.rows()), || seen().then_some(()));
    light.signal(Signal::TERM);
    assert!(light.ended().0.success());
    assert!(left().is_empty(), "{:?}", left());
}
