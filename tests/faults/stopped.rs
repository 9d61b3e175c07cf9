//! The program is stopped for a while, as by a shell's job control or a debugger.

use crate::desk::bus::Bus;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;

/// Changes during the stop are in the menu as soon as the tray continues.
#[test]
fn a_tray_that_was_stopped_is_up_to_date_once_it_continues() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (1..=5).map(|n| sessions.add(&format!("session number {n}"))).collect();
    let mut tray = user.start_tray(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.wait_status(&panel, session, "idle");
    }
    for _ in 0..3 {
        tray.freeze();
        made[0].prompt();
        made[1].prompt();
        made[1].tool("a", "bash", "make");
        made[1].ask("r", "a");
        made[2].prompt();
        made[2].answer("Done.");
        tray.signal(Signal::CONT);
        user.wait_status(&panel, &made[0], "working");
        user.wait_status(&panel, &made[1], "needs-permission");
        user.wait_status(&panel, &made[2], "idle");
        tray.freeze();
        made[0].answer("Done.");
        made[1].permit("r");
        made[1].tool_done("a");
        made[1].answer("Done.");
        tray.signal(Signal::CONT);
        user.wait_status(&panel, &made[0], "idle");
        user.wait_status(&panel, &made[1], "idle");
    }
    // An owner dies and a folder is deleted during the stop.
    tray.freeze();
    made[3].prompt();
    made[3].kill();
    made[4].delete();
    tray.signal(Signal::CONT);
    user.wait_status(&panel, &made[3], "crashed");
    panel.wait_for("the deleted one is gone or greyed", |entry| {
        !entry.shown().contains("number 5 — ") || !entry.enabled
    });
    // A SIGTERM during the stop ends it as soon as it continues.
    tray.freeze();
    tray.signal(Signal::TERM);
    assert!(tray.is_running());
    tray.signal(Signal::CONT);
    assert!(tray.wait_exit().0.success(), "{}", tray.output());
}

/// Ctrl-C during the initial scan.
#[test]
fn ctrl_c_during_the_initial_scan_ends_it() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    for n in 0..3000 {
        let folder = sessions.home().join(format!("session-state/36535f61-5c7b-4f09-a70b-2f8aed98{n:04x}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("workspace.yaml"), format!("cwd: /nowhere/{n}\n")).unwrap();
        std::fs::write(folder.join("events.jsonl"), "").unwrap();
    }
    let mut watch = user.start_tray_as(user.command(Some(&bus), &["watch", "--json"]));
    let caught = || std::fs::read_to_string(format!("/proc/{}/status", watch.pid())).unwrap_or_default();
    wait_until(SOON, "it catches SIGINT", caught, || {
        let caught = caught();
        let set = caught.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let set = u64::from_str_radix(set.trim(), 16).unwrap();
        (set & 1 << (Signal::INT.as_raw() - 1) != 0).then_some(())
    });
    watch.signal(Signal::INT);
    assert!(watch.wait_exit().0.success(), "{}", watch.output());
}
