//! Nothing happens while nothing is due. `figures.rs` measures the costs.

use crate::desk::bus::Bus;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::desk::tray::{User, sum};
use crate::support::{SOON, wait_until};
use std::time::Duration;

/// Twenty rows, the header and the icon change at once: one signal for the text, one for the layout, one for the icon.
#[test]
fn a_change_of_many_rows_is_one_signal_of_each_kind() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (0..20).map(|n| sessions.add(&format!("session {n}"))).collect();
    for session in &made {
        session.prompt();
        session.answer("Done.");
    }
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.wait_status(&panel, session, "idle");
    }
    let all = panel.wait_for("Mark all as seen", |entry| entry.label == "Mark all as seen" && entry.enabled);
    panel.about_to_show();
    panel.wait_idle();
    let signals = || ["LayoutUpdated", "ItemsPropertiesUpdated", "NewIcon"].map(|name| panel.signals(name));
    let before = signals();
    let all_before = panel.all_signals();
    assert!(panel.click_unopened(all.id));
    let unseen = || panel.layout().1.find(&|entry| entry.shown().contains('●')).is_some();
    wait_until(SOON, "all are seen", || format!("{:#?}", panel.menu()), || (!unseen()).then_some(()));
    panel.wait_idle();
    // "Mark as seen" disappears, so the layout changes.
    let after = signals();
    assert_eq!([0, 1, 2].map(|n| after[n] - before[n]), [1, 1, 1]);
    // The fourth signal is for the tooltip, which has the icon too.
    assert!(panel.all_signals() - all_before <= 4, "{}", panel.all_signals() - all_before);
}

/// By a backup, a search index, an editor or `pilotlight status`.
#[test]
fn reading_the_sessions_files_wakes_nobody() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (0..20).map(|n| sessions.add(&format!("session {n}"))).collect();
    let tray = user.start_tray(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.wait_status(&panel, session, "idle");
    }
    panel.wait_idle();
    let (before, mut read) = (tray.switches(), 0);
    for _ in 0..50 {
        for session in &made {
            for entry in std::fs::read_dir(&session.path).unwrap() {
                read += u64::from(std::fs::read(entry.unwrap().path()).is_ok());
            }
        }
    }
    let woken = sum(&tray.switches().since(&before));
    assert!(read >= 2000 && woken < 50, "{woken} context switches, while {read} files were read");
}

/// Twenty sessions wait for their user and nothing is due, so no thread of the program runs at all. During the test two
/// wakeups may happen: the rescan once a minute, and the end of the popups' grace period after the start. Each wakes
/// the engine once and may change the ages in the menu. Only voluntary context switches are limited: the number of
/// forced ones depends on what else the machine does.
#[test]
fn while_nothing_is_due_nothing_runs() {
    const WINDOWS: usize = 3;
    /// Context switches of one wakeup: the engine's, and those for the menu, the icon and the panel's answers.
    const SWITCHES_PER_WAKEUP: u64 = 6;
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (0..20).map(|n| sessions.add(&format!("session {n}"))).collect();
    for session in &made {
        session.prompt();
        session.answer("Done.");
    }
    let tray = user.start_tray(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.wait_status(&panel, session, "idle");
    }
    panel.wait_idle();
    let mut windows = Vec::new();
    for _ in 0..WINDOWS {
        let before = tray.switches();
        #[expect(clippy::disallowed_methods, reason = "the test is that nothing happens during this time")]
        std::thread::sleep(Duration::from_secs(8));
        let woken = tray.switches().since(&before);
        windows.push(woken);
    }
    assert!(windows.iter().any(|woken| sum(woken) == 0), "it is never idle: {windows:?}");
    let switches = windows.iter().flatten().map(|thread| thread.own).sum::<u64>();
    assert!(switches <= 2 * SWITCHES_PER_WAKEUP, "{windows:?}");
}
