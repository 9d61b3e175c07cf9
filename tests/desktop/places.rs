//! Where rows stand, as a panel sees it: by the ids on the bus, the revisions of the layout and the signals.

use crate::desk::bus::Bus;
use crate::desk::light::User;
use crate::desk::panel::{Entry, Panel};
use crate::desk::sessions::Sessions;
use crate::support::{SOON, wait_until};
use std::time::{Duration, Instant};

/// The ids of the menu's entries, from the top down.
fn ids(panel: &Panel) -> Vec<i32> {
    panel.menu().iter().map(|entry| entry.id).collect()
}

#[test]
fn the_order_is_that_of_now() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = ["first", "second", "third"].map(|title| sessions.add(title)).into();
    let _light = user.light(&bus);
    panel.wait_for_icon();
    for session in &made {
        session.prompt();
        user.agrees(&panel, session, "working");
    }
    made[2].tool("a", "bash", "x");
    made[2].ask("r", "a");
    user.agrees(&panel, &made[2], "needs-permission");
    let names = || -> Vec<_> {
        let named = |entry: &Entry| ["first", "second", "third"].into_iter().find(|name| entry.shown().contains(name));
        panel.menu().iter().filter_map(named).collect()
    };
    wait_until(SOON, "what asks is first", || format!("{:?}", names()), || (names()[0] == "third").then_some(()));
    made[0].shut_down();
    user.agrees(&panel, &made[0], "ended");
    let folded = panel.wait_for("what has ended", |entry| entry.shown() == "1 ended");
    assert!(folded.entries[0].shown().contains("first"), "{folded:#?}");
    assert_eq!(names(), ["third", "second"]);
}

/// The folder of a session goes, another one comes, and the new menu has as many entries everywhere as the old one.
/// Case 106: a click that was on its way must not land on the session that stands there now.
#[test]
fn case_106_a_click_never_lands_on_another_session() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let old = sessions.add("the old one");
    old.prompt();
    old.answer("Done.");
    let _light = user.light(&bus);
    panel.wait_for_icon();
    let aimed_at = user.agrees(&panel, &old, "idle").get("Mark as seen").id;
    old.delete();
    let new = sessions.add("the new one");
    new.prompt();
    new.answer("Done.");
    let now = user.agrees(&panel, &new, "idle");
    wait_until(
        SOON,
        "it is gone",
        || format!("{:#?}", panel.menu()),
        || panel.layout().1.find(&|entry| entry.shown().contains("the old one")).is_none().then_some(()),
    );
    assert!(!panel.click(aimed_at), "the id means nothing any more");
    panel.settle();
    assert_eq!(user.row(&new).unwrap()["unseen"], true);
    panel.rest();
    assert!(now.get("Mark as seen").id != aimed_at && panel.click(now.get("Mark as seen").id));
    wait_until(SOON, "the real click counts", String::new, || (user.row(&new)?["unseen"] == false).then_some(()));
}

/// A panel closes what was open when the menu is laid out anew, and opens what stands under the pointer then: the click that was
/// on its way would hit the same entry of another session.
#[test]
fn case_106_a_click_just_after_the_menu_changed_does_nothing() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let old = sessions.add("the old one");
    let _light = user.light(&bus);
    panel.wait_for_icon();
    let seen = || panel.wait_for("it can be seen", |entry| entry.label == "Mark as seen" && entry.enabled).id;
    let mut made = Vec::new();
    // On a busy machine a click may come too late to be too soon: then once more.
    loop {
        assert!(made.len() < 20, "no click came soon enough");
        old.prompt();
        user.agrees(&panel, &old, "working");
        old.answer("Done.");
        user.agrees(&panel, &old, "idle");
        panel.rest();
        let (begun, name) = (Instant::now(), format!("new one {}", made.len()));
        made.push(sessions.add(&name));
        panel.wait_for(&name, |entry| entry.shown().contains(&name));
        assert!(panel.click(seen()));
        if begun.elapsed() < Duration::from_millis(1200) {
            break;
        }
    }
    panel.settle();
    assert_eq!(user.row(&old).unwrap()["unseen"], true, "the click was ignored");
    panel.rest();
    assert!(panel.click(seen()));
    wait_until(SOON, "the next click counts", String::new, || (user.row(&old)?["unseen"] == false).then_some(()));
}

/// Two sessions change places at a change of shape; an id of before is still its own session's.
#[test]
fn case_106_nor_when_two_sessions_change_places() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let (first, second) = (sessions.add("first"), sessions.add("second"));
    for session in [&first, &second] {
        session.prompt();
        session.answer("Done.");
    }
    let gone = sessions.add("gone");
    let _light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &second, "idle");
    user.agrees(&panel, &gone, "idle");
    let aimed_at = user.agrees(&panel, &first, "idle").get("Mark as seen").id;
    second.prompt();
    second.answer("Which one?");
    user.agrees(&panel, &second, "needs-input");
    gone.delete();
    let _new = sessions.add("new");
    panel.wait_for("the new one", |entry| entry.shown().contains("new — "));
    assert!(panel.menu()[2].shown().contains("second"), "{:#?}", panel.menu());
    panel.rest();
    assert!(panel.click(aimed_at));
    wait_until(SOON, "the first is seen", String::new, || (user.row(&first)?["unseen"] == false).then_some(()));
    assert_eq!(user.row(&second).unwrap()["unseen"], true);
}

/// Of a panel that tells when the menu is open, nothing changes its place under the pointer.
#[test]
fn while_the_menu_is_open_every_entry_stays_where_it_is() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let (one, gone) = (sessions.add("first"), sessions.add("gone"));
    let _light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &one, "idle");
    user.agrees(&panel, &gone, "idle");
    panel.open();
    let (revision, before) = (panel.layout().0, ids(&panel));
    let new = sessions.add("new");
    gone.delete();
    one.prompt();
    user.agrees(&panel, &one, "working");
    panel.wait_for("it is gone", |entry| entry.shown().contains("gone — ") && !entry.enabled);
    panel.settle();
    assert_eq!((panel.layout().0, ids(&panel)), (revision, before));
    panel.close();
    user.agrees(&panel, &new, "idle");
    assert!(panel.layout().0 != revision);
}

/// Case 150.
#[test]
fn case_150_nothing_moves_when_a_session_asks_while_the_submenu_of_another_is_open() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let (looked_at, other) = (sessions.add("first"), sessions.add("second"));
    for session in [&looked_at, &other] {
        session.prompt();
    }
    let _light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &looked_at, "working");
    let row = user.agrees(&panel, &other, "working");
    panel.open();
    panel.open_submenu(row.id);
    let (revision, before) = (panel.layout().0, ids(&panel));
    looked_at.tool("a", "bash", "make");
    looked_at.ask("r", "a");
    user.agrees(&panel, &looked_at, "needs-permission");
    panel.settle();
    assert_eq!((panel.layout().0, ids(&panel)), (revision, before));
    panel.close();
    let first = || panel.menu().into_iter().find(|entry| !entry.entries.is_empty());
    let asks_first = || first().is_some_and(|entry| entry.shown().starts_with('⚑')).then_some(());
    wait_until(SOON, "what asks is first", || format!("{:#?}", panel.menu()), asks_first);
}

/// The click that a user opened the menu for.
#[test]
fn the_first_click_after_the_menu_was_opened_counts() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    session.prompt();
    session.answer("Done.");
    let _light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "idle");
    let _new = sessions.add("new");
    panel.wait_for("the new one", |entry| entry.shown().contains("new — "));
    // Nobody opens a menu and hits an entry sooner than this after it changed.
    let changed = Instant::now();
    wait_until(SOON, "a moment passes", String::new, || (changed.elapsed() > Duration::from_millis(300)).then_some(()));
    panel.open();
    assert!(panel.click(user.agrees(&panel, &session, "idle").get("Mark as seen").id));
    panel.close();
    wait_until(SOON, "it counts", String::new, || (user.row(&session)?["unseen"] == false).then_some(()));
}

#[test]
fn a_burst_of_changes_is_few_layouts() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let _first = sessions.add("session number 0");
    let _light = user.light(&bus);
    panel.wait_for_icon();
    panel.wait_for("the first row", |entry| entry.shown().contains("number 0 — "));
    let before = panel.signals("LayoutUpdated");
    let begun = Instant::now();
    let made: Vec<_> = (1..=20).map(|n| sessions.add(&format!("session number {n}"))).collect();
    for session in &made {
        session.prompt();
    }
    panel.wait_for("all work", |entry| entry.shown() == "20 working · 1 idle");
    panel.settle();
    let most = 2 + usize::try_from(begun.elapsed().as_secs()).unwrap();
    let layouts = panel.signals("LayoutUpdated") - before;
    assert!(layouts <= most, "{layouts} layouts of 20 new sessions in {:?}", begun.elapsed());
    // Twenty changes of words are no change of places at all.
    let before = panel.signals("LayoutUpdated");
    for session in &made {
        session.tool("a", "bash", "make");
    }
    let says = |entry: &Entry| entry.shown().starts_with("working: bash is open");
    let count = |menu: &Entry| menu.words().matches("working: bash is open").count();
    panel.wait_for("the first", says);
    let all = || (count(&panel.layout().1) == 20).then_some(());
    wait_until(SOON, "all of them", || format!("{:#?}", panel.menu()), all);
    panel.settle();
    assert_eq!(panel.signals("LayoutUpdated"), before);
}

/// Of an age nobody is told while the menu is closed. Who opens it is told what is true.
#[test]
fn ages_are_worded_when_the_menu_is_about_to_be_shown() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    session.prompt();
    let _light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "working");
    panel.settle();
    let before = panel.all_signals();
    let begun = Instant::now();
    wait_until(SOON, "it grows older", String::new, || (begun.elapsed() > Duration::from_secs(6)).then_some(()));
    panel.settle();
    assert_eq!(panel.all_signals(), before, "nobody looks");
    assert!(!panel.about_to_show(), "no place changes");
    panel.settle();
    assert_eq!(panel.all_signals(), before + 1, "its age, in one message");
    let row = user.agrees(&panel, &session, "working").shown();
    assert!(row.ends_with(" s") && !row.ends_with("just begun"), "{row}");
}

#[test]
fn nothing_is_sent_when_nothing_is_new() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    session.prompt();
    session.tool("a", "bash", "x");
    let _light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "working");
    panel.settle();
    let before = panel.all_signals();
    for _ in 0..20 {
        session.metric();
    }
    let refresh = panel.wait_for("Refresh", |entry| entry.label == "Refresh");
    assert!(panel.click(refresh.id));
    panel.settle();
    assert_eq!(panel.all_signals(), before);
}
