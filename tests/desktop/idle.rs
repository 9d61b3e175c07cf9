//! What does not happen while nothing happens. What it costs is told by the figures.

use crate::desk::bus::Bus;
use crate::desk::light::{User, sum};
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::support::{SOON, wait_until};
use std::time::Duration;

/// Twenty rows, the first line, the icon: all of it is one change, and comes as one message for the words, one for the places and
/// one for the picture, whatever the number of words.
#[test]
fn a_change_of_many_words_is_one_signal() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (0..20).map(|n| sessions.add(&format!("session {n}"))).collect();
    for session in &made {
        session.prompt();
        session.answer("Done.");
    }
    let _light = user.light(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.agrees(&panel, session, "idle");
    }
    let all = panel.wait_for("Mark all as seen", |entry| entry.label == "Mark all as seen" && entry.enabled);
    panel.settle();
    let signals = || ["LayoutUpdated", "ItemsPropertiesUpdated", "NewIcon"].map(|name| panel.signals(name));
    let before = signals();
    let all_before = panel.all_signals();
    assert!(panel.click(all.id));
    let unseen = || panel.layout().1.find(&|entry| entry.shown().contains('●')).is_some();
    wait_until(SOON, "all are seen", || format!("{:#?}", panel.menu()), || (!unseen()).then_some(()));
    panel.settle();
    // What marked them as seen goes with it: the menu is laid out anew.
    let after = signals();
    assert_eq!([0, 1, 2].map(|n| after[n] - before[n]), [1, 1, 1]);
    // The picture stands in the tooltip too.
    assert!(panel.all_signals() - all_before <= 4, "{}", panel.all_signals() - all_before);
}

/// A backup, an index, an editor, `pilotlight status`: whoever reads the logs wakes nobody.
#[test]
fn whoever_reads_the_sessions_wakes_nobody() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (0..20).map(|n| sessions.add(&format!("session {n}"))).collect();
    let light = user.light(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.agrees(&panel, session, "idle");
    }
    panel.settle();
    let (before, mut read) = (light.switches(), 0);
    for _ in 0..50 {
        for session in &made {
            for entry in std::fs::read_dir(&session.path).unwrap() {
                read += u64::from(std::fs::read(entry.unwrap().path()).is_ok());
            }
        }
    }
    let woken = sum(&light.switches().since(&before));
    assert!(read >= 2000 && woken < 50, "{woken} wakings, while {read} files were read");
}

/// Twenty sessions that wait for their user, and nothing is due: no thread of the program runs at all. In so many seconds the
/// look around that comes once a minute may fall once, and once what holds popups back after the start; one waking of the
/// engine each, and a menu whose ages have changed. Whatever else the machine does, a thread that is not woken is not switched to;
/// how often one that is awake has to let others run is the machine's business.
#[test]
fn while_nothing_is_due_nothing_runs() {
    const WINDOWS: usize = 3;
    /// An engine's waking, and the menu and the icon that it sends, with the panel's answers.
    const OF_A_WAKING: u64 = 6;
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (0..20).map(|n| sessions.add(&format!("session {n}"))).collect();
    for session in &made {
        session.prompt();
        session.answer("Done.");
    }
    let light = user.light(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.agrees(&panel, session, "idle");
    }
    panel.settle();
    let mut windows = Vec::new();
    for _ in 0..WINDOWS {
        let before = light.switches();
        #[expect(clippy::disallowed_methods, reason = "that nothing happens meanwhile is what is tested")]
        std::thread::sleep(Duration::from_secs(8));
        let woken = light.switches().since(&before);
        windows.push(woken);
    }
    assert!(windows.iter().any(|woken| sum(woken) == 0), "it always has something to do: {windows:?}");
    let wakings = windows.iter().flatten().map(|thread| thread.own).sum::<u64>();
    assert!(wakings <= 2 * OF_A_WAKING, "{windows:?}");
}
