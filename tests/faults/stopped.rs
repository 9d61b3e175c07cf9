//! The program stopped for a while, as a shell's job control or a debugger does it.

use crate::desk::bus::Bus;
use crate::desk::light::User;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;

/// What happened while the light was stopped is in the menu at once when it goes on; a popup is not raised for each of it.
#[test]
fn a_light_that_was_stopped_tells_the_truth_when_it_goes_on() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (1..=5).map(|n| sessions.add(&format!("session number {n}"))).collect();
    let mut light = user.light(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.agrees(&panel, session, "idle");
    }
    for _ in 0..3 {
        light.freeze();
        made[0].prompt();
        made[1].prompt();
        made[1].tool("a", "bash", "make");
        made[1].ask("r", "a");
        made[2].prompt();
        made[2].answer("Done.");
        light.signal(Signal::CONT);
        user.agrees(&panel, &made[0], "working");
        user.agrees(&panel, &made[1], "needs-permission");
        user.agrees(&panel, &made[2], "idle");
        light.freeze();
        made[0].answer("Done.");
        made[1].permit("r");
        made[1].tool_done("a");
        made[1].answer("Done.");
        light.signal(Signal::CONT);
        user.agrees(&panel, &made[0], "idle");
        user.agrees(&panel, &made[1], "idle");
    }
    // Its owner dies and its folder goes while nobody looks.
    light.freeze();
    made[3].prompt();
    made[3].kill();
    made[4].delete();
    light.signal(Signal::CONT);
    user.agrees(&panel, &made[3], "crashed");
    panel.wait_for("the deleted one is gone or greyed", |entry| {
        !entry.shown().contains("number 5 — ") || !entry.enabled
    });
    // A signal that came meanwhile ends it as soon as it goes on.
    light.freeze();
    light.signal(Signal::TERM);
    assert!(light.runs());
    light.signal(Signal::CONT);
    assert!(light.ended().0.success(), "{}", light.said());
}

/// Ctrl-C while it looks at everything for the first time.
#[test]
fn an_interrupt_in_the_first_look_ends_it() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    for n in 0..3000 {
        let folder = sessions.home().join(format!("session-state/36535f61-5c7b-4f09-a70b-2f8aed98{n:04x}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("workspace.yaml"), format!("cwd: /nowhere/{n}\n")).unwrap();
        std::fs::write(folder.join("events.jsonl"), "").unwrap();
    }
    let mut watch = user.light_from(user.command(Some(&bus), &["watch", "--json"]));
    let caught = || std::fs::read_to_string(format!("/proc/{}/status", watch.pid())).unwrap_or_default();
    wait_until(SOON, "it catches SIGINT", caught, || {
        let caught = caught();
        let set = caught.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let set = u64::from_str_radix(set.trim(), 16).unwrap();
        (set & 1 << (Signal::INT.as_raw() - 1) != 0).then_some(())
    });
    watch.signal(Signal::INT);
    assert!(watch.ended().0.success(), "{}", watch.said());
}
