//! The positions of rows as a panel sees them: by ids, layout revisions and signals.

use super::{ids, one_idle_session};
use crate::desk::bus::Bus;
use crate::desk::panel::{Entry, Panel};
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use crate::support::{SOON, wait_until};
use std::time::{Duration, Instant};

#[test]
fn rows_are_in_their_current_order() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = ["first", "second", "third"].map(|title| sessions.add(title)).into();
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    for session in &made {
        session.prompt();
        user.wait_status(&panel, session, "working");
    }
    made[2].tool("a", "bash", "x");
    made[2].ask("r", "a");
    user.wait_status(&panel, &made[2], "needs-permission");
    let names = || -> Vec<_> {
        let named = |entry: &Entry| ["first", "second", "third"].into_iter().find(|name| entry.shown().contains(name));
        panel.menu().iter().skip(1).filter_map(named).collect() // the first entry names a session, too
    };
    wait_until(
        SOON,
        "the session that asks is first",
        || format!("{:?}", names()),
        || (names()[0] == "third").then_some(()),
    );
    made[0].shut_down();
    user.wait_status(&panel, &made[0], "ended");
    let folded = panel.wait_for("the submenu of ended sessions", |entry| entry.shown() == "1 ended");
    assert!(folded.entries[0].shown().contains("first"), "{folded:#?}");
    assert_eq!(names(), ["third", "second"]);
}

/// A session disappears and another one takes its position, in a menu with the same number of entries everywhere. A
/// click in transit must not hit the new session.
#[test]
fn case_106_a_click_never_lands_on_another_session() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let old = sessions.add_answered("the old one");
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let target = user.wait_status(&panel, &old, "idle").get("Mark as seen").id;
    old.delete();
    let new = sessions.add_answered("the new one");
    let row = user.wait_status(&panel, &new, "idle");
    wait_until(
        SOON,
        "it is gone",
        || format!("{:#?}", panel.menu()),
        || panel.layout().1.find(&|entry| entry.shown().contains("the old one")).is_none().then_some(()),
    );
    assert!(panel.click(target), "it is for the session that it was shown for");
    panel.wait_idle();
    assert_eq!(user.row(&new).unwrap()["unseen"], true);
    assert!(row.get("Mark as seen").id != target && panel.click(row.get("Mark as seen").id));
    user.wait_seen(&new);
}

/// On a new layout a panel closes the open submenu and opens the one under the pointer, so a click in transit would hit
/// the same entry of another session. This panel does not say when it opens the menu.
#[test]
fn case_106_a_click_just_after_the_menu_changed_does_nothing() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let old = sessions.add("the old one");
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let mark_as_seen =
        || panel.wait_for("it can be marked as seen", |entry| entry.label == "Mark as seen" && entry.enabled).id;
    let mut made = Vec::new();
    // On a busy machine a click may not be early enough to be ignored; then try again.
    loop {
        assert!(made.len() < 20, "no click was early enough");
        old.prompt();
        user.wait_status(&panel, &old, "working");
        old.answer("Done.");
        user.wait_status(&panel, &old, "idle");
        panel.wait_menu_stable();
        let (begun, name) = (Instant::now(), format!("new one {}", made.len()));
        made.push(sessions.add(&name));
        panel.wait_for(&name, |entry| entry.shown().contains(&name));
        assert!(panel.click_unopened(mark_as_seen()));
        if begun.elapsed() < Duration::from_millis(1200) {
            break;
        }
    }
    panel.wait_idle();
    assert_eq!(user.row(&old).unwrap()["unseen"], true, "the click was ignored");
    assert!(panel.click(mark_as_seen()));
    user.wait_seen(&old);
}

/// An id from before the change still belongs to its own session.
#[test]
fn case_106_a_click_after_two_rows_swapped_hits_its_own_session() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let (first, second) = (sessions.add_answered("first"), sessions.add_answered("second"));
    let gone = sessions.add("gone");
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &second, "idle");
    user.wait_status(&panel, &gone, "idle");
    let target = user.wait_status(&panel, &first, "idle").get("Mark as seen").id;
    second.prompt();
    second.answer("Which one?");
    user.wait_status(&panel, &second, "needs-input");
    gone.delete();
    let _new = sessions.add("new");
    panel.wait_for("the new one", |entry| entry.shown().contains("new — "));
    assert!(panel.menu()[2].shown().contains("second"), "{:#?}", panel.menu());
    assert!(panel.click(target));
    user.wait_seen(&first);
    assert_eq!(user.row(&second).unwrap()["unseen"], true);
}

/// This panel reports when the menu is open.
#[test]
fn while_the_menu_is_open_no_entry_moves() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let (one, gone) = (sessions.add("first"), sessions.add("gone"));
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &one, "idle");
    user.wait_status(&panel, &gone, "idle");
    panel.open();
    let (revision, before) = (panel.layout().0, ids(&panel));
    let new = sessions.add("new");
    gone.delete();
    one.prompt();
    user.wait_status(&panel, &one, "working");
    wait_until(SOON, "it knows", || panel.tooltip(), || (panel.tooltip() == "1 working · 1 idle").then_some(()));
    panel.wait_for("it is gone and still shown", |entry| entry.shown().contains("gone — ") && entry.enabled);
    panel.wait_idle();
    assert_eq!((panel.layout().0, ids(&panel)), (revision, before));
    panel.close();
    user.wait_status(&panel, &new, "idle");
    assert!(panel.layout().0 != revision);
}

#[test]
fn case_150_nothing_moves_when_a_session_asks_while_the_submenu_of_another_is_open() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let (asking, other) = (sessions.add("first"), sessions.add("second"));
    for session in [&asking, &other] {
        session.prompt();
    }
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &asking, "working");
    let row = user.wait_status(&panel, &other, "working");
    panel.open();
    panel.open_submenu(row.id);
    let (revision, before) = (panel.layout().0, ids(&panel));
    asking.tool("a", "bash", "make");
    asking.ask("r", "a");
    user.wait_status(&panel, &asking, "needs-permission");
    panel.wait_idle();
    assert_eq!((panel.layout().0, ids(&panel)), (revision, before));
    panel.close();
    let first = || panel.menu().into_iter().find(|entry| !entry.entries.is_empty());
    let asks_first = || first().is_some_and(|entry| entry.shown().starts_with('⚑')).then_some(());
    wait_until(SOON, "the session that asks is first", || format!("{:#?}", panel.menu()), asks_first);
}

#[test]
fn the_first_click_after_the_menu_was_opened_counts() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add_answered("one");
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    let _new = sessions.add("new");
    panel.wait_for("the new one", |entry| entry.shown().contains("new — "));
    // No user can open a menu and click an entry within this time of a change.
    let changed = Instant::now();
    wait_until(SOON, "a moment passes", String::new, || (changed.elapsed() > Duration::from_millis(300)).then_some(()));
    panel.open();
    assert!(panel.click(user.wait_status(&panel, &session, "idle").get("Mark as seen").id));
    panel.close();
    user.wait_seen(&session);
}

#[test]
fn a_burst_of_changes_causes_few_layouts() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let _first = sessions.add("session number 0");
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    panel.wait_for("the first row", |entry| entry.shown().contains("number 0 — "));
    let before = panel.signals("LayoutUpdated");
    let begun = Instant::now();
    let made: Vec<_> = (1..=20).map(|n| sessions.add(&format!("session number {n}"))).collect();
    for session in &made {
        session.prompt();
    }
    panel.wait_for("all work", |entry| entry.shown() == "20 working · 1 idle");
    panel.wait_idle();
    let max = 2 + usize::try_from(begun.elapsed().as_secs()).unwrap();
    let layouts = panel.signals("LayoutUpdated") - before;
    assert!(layouts <= max, "{layouts} layouts of 20 new sessions in {:?}", begun.elapsed());
    // Twenty changes of text in an open menu cause no new layout.
    panel.open();
    let before = panel.signals("LayoutUpdated");
    for session in &made {
        session.tool("a", "bash", "make");
    }
    let says = |entry: &Entry| entry.shown().starts_with("working: running bash");
    let count = |menu: &Entry| menu.words().matches("working: running bash").count();
    panel.wait_for("the first", says);
    let all = || (count(&panel.layout().1) == 20).then_some(());
    wait_until(SOON, "all of them", || format!("{:#?}", panel.menu()), all);
    panel.wait_idle();
    assert_eq!(panel.signals("LayoutUpdated"), before);
}

/// While the menu is closed, ages cause no signals.
#[test]
fn ages_are_updated_when_the_menu_is_about_to_be_shown() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    session.prompt();
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "working");
    panel.wait_idle();
    let before = panel.all_signals();
    let begun = Instant::now();
    wait_until(SOON, "it grows older", String::new, || (begun.elapsed() > Duration::from_secs(6)).then_some(()));
    panel.wait_idle();
    assert_eq!(panel.all_signals(), before, "the menu is closed");
    assert!(!panel.about_to_show(), "the layout does not change");
    let told = || (panel.all_signals() > before + 1).then_some(());
    wait_until(SOON, "its age is told", || format!("{:#?}", panel.menu()), told);
    panel.wait_idle();
    assert_eq!(panel.all_signals(), before + 2, "its age, in one signal, and that the tooltip is blank");
    // From a number of seconds on, which a busy machine reaches here, it says "last seen 12 s ago".
    let row = user.wait_status(&panel, &session, "working").shown();
    assert!(row.split(' ').any(|word| word.parse().is_ok_and(|seconds: u64| seconds >= 6)), "{row}");
}

/// Plasma opens a submenu that it has not read off the screen.
#[test]
fn case_169_submenus_are_announced_to_a_panel_that_reads_one_level_at_a_time() {
    let (_bus, _sessions, _user, panel, session, _tray) = one_idle_session();
    panel.read_level();
    let submenus = panel.menu().iter().filter(|entry| !entry.entries.is_empty()).count();
    let dump = || format!("{} signals", panel.all_signals());
    let announced = |before: usize| {
        let all = || (panel.signals("LayoutUpdated") == before + submenus).then_some(());
        wait_until(SOON, "each submenu is announced", dump, all);
    };
    panel.wait_idle();
    let before = panel.signals("LayoutUpdated");
    assert!(!panel.about_to_show());
    announced(before);
    panel.close();
    // One that is new is announced once the panel has read the rest again.
    session.prompt();
    wait_until(SOON, "it works", || panel.tooltip(), || (panel.tooltip() == "1 working").then_some(()));
    panel.wait_for("its new row", |entry| entry.shown().starts_with("Now: "));
    panel.wait_idle();
    let before = panel.signals("LayoutUpdated");
    panel.about_to_show();
    panel.read_level();
    wait_until(SOON, "they are announced", dump, || {
        (panel.signals("LayoutUpdated") >= before + submenus).then_some(())
    });
}

#[test]
fn no_signal_is_sent_if_nothing_changed() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    session.prompt();
    session.tool("a", "bash", "x");
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "working");
    panel.wait_idle();
    panel.open();
    panel.wait_idle();
    let before = panel.all_signals();
    for _ in 0..20 {
        session.metric();
    }
    let refresh = panel.wait_for("Refresh", |entry| entry.label == "Refresh");
    assert!(panel.click_unopened(refresh.id));
    panel.wait_idle();
    assert_eq!(panel.all_signals(), before);
}
