//! Clicks while sessions change, as panels of each kind report them. Cases 163, 164 and 165.

use super::ids;
use crate::desk::bus::Bus;
use crate::desk::panel::{Entry, Panel};
use crate::desk::popups::Popups;
use crate::desk::sessions::{Session, Sessions};
use crate::desk::tray::{TrayProcess, User};
use crate::support::executable::executable;
use crate::support::{SOON, wait_until};
use std::time::Duration;

/// How many clicks each kind of panel makes.
const CLICKS: usize = 24;

/// Changes the order of the rows five times a second.
fn change(sessions: &[Session], is_over: impl Fn() -> bool) {
    for n in 0.. {
        if is_over() {
            return;
        }
        let session = &sessions[n % sessions.len()];
        if (n / sessions.len()).is_multiple_of(2) {
            session.prompt();
        } else {
            session.answer(if n.is_multiple_of(3) { "Done." } else { "Which one?" });
        }
        #[expect(clippy::disallowed_methods, reason = "the rate is part of the test")]
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Clicks with `click`, which is given what finds the number of the entry, and checks that each click does what its
/// entry said.
fn every_click_lands(click: impl Fn(&Panel, &dyn Fn() -> i32) + Sync) {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let titles: Vec<_> = (0..4).map(|n| format!("session {n}")).collect();
    let made: Vec<_> = titles.iter().map(|title| sessions.add(title)).collect();
    let targets: Vec<_> = titles.into_iter().zip(made.iter().map(|session| session.id.clone())).collect();
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.wait_status(&panel, session, "idle");
    }
    let saved = user.state().join("quiet.json");
    std::thread::scope(|scope| {
        let person = scope.spawn(|| {
            for (n, (title, id)) in targets.iter().cycle().take(CLICKS).enumerate() {
                let muted = || std::fs::read_to_string(&saved).unwrap_or_default();
                let was_muted = muted().contains(id);
                click(&panel, &|| {
                    let row = |entry: &Entry| !entry.entries.is_empty() && entry.shown().contains(title);
                    let row = panel.wait_for(title, row);
                    let entry = row.find(&|entry: &Entry| entry.label.ends_with("ute this session")).unwrap();
                    assert_eq!(entry.label.starts_with('U'), was_muted, "{}", entry.label);
                    entry.id
                });
                let landed = || (muted().contains(id) != was_muted).then_some(());
                wait_until(SOON, &format!("click {n} lands on {title}"), muted, landed);
            }
        });
        change(&made, || person.is_finished());
        person.join().unwrap();
    });
}

/// Plasma says "closed" 0.3 ms before "clicked".
#[test]
fn case_163_every_click_lands_though_the_menu_is_closed_first() {
    every_click_lands(|panel, find| {
        panel.about_to_show();
        panel.open();
        let entry = find();
        #[expect(clippy::disallowed_methods, reason = "a person takes time to press")]
        std::thread::sleep(Duration::from_millis(600));
        panel.close();
        assert!(panel.click_unopened(entry));
    });
}

/// XFCE, MATE and waybar say `AboutToShow(0)`, never "opened".
#[test]
fn case_164_every_click_lands_though_the_panel_only_says_that_it_is_about_to_show_the_menu() {
    every_click_lands(|panel, find| {
        #[expect(clippy::disallowed_methods, reason = "two openings are further apart than a panel's repetition")]
        std::thread::sleep(Duration::from_millis(1000));
        panel.about_to_show();
        let (entry, before) = (find(), ids(panel));
        #[expect(clippy::disallowed_methods, reason = "a person takes time to press")]
        std::thread::sleep(Duration::from_millis(600));
        assert_eq!(ids(panel), before, "the menu stands still");
        assert!(panel.click_unopened(entry));
    });
}

#[test]
fn case_165_quit_is_guarded_like_any_other_entry() {
    // On a busy machine a click may come too late to be ignored; then it is rightly carried out, and shows nothing.
    assert!((0..10).any(|_| quit_is_guarded()), "the machine is too slow for this test");
}

/// Whether there was time to see that.
fn quit_is_guarded() -> bool {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel, popups) = (User::new(&sessions), Panel::start(&bus), Popups::start(&bus));
    let _session = sessions.add("one");
    let mut tray = user.start_tray(&bus);
    popups.wait_for(1);
    let quit = || panel.wait_for("Quit", |entry| entry.label == "Quit").id;
    // A new session has just moved it.
    let begun = std::time::Instant::now();
    let _new = sessions.add("new");
    panel.wait_for("the new one", |entry| entry.shown().contains("new — "));
    assert!(panel.click_unopened(quit()));
    if begun.elapsed() >= Duration::from_millis(1200) {
        return false;
    }
    let note = popups.wait_for(2);
    assert_eq!(note.title, "Nothing was done");
    assert!(note.body.contains("changed under the pointer"), "{}", note.body);
    assert!(tray.is_running());
    assert!(panel.click(quit()));
    assert!(tray.wait_exit().0.success());
    true
}

/// A desktop whose terminal leaves behind what it was told to run.
fn with_terminal() -> (Bus, Sessions, User, std::path::PathBuf) {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    let (terminal, ran) = (user.scratch.path().join("terminal"), user.scratch.path().join("ran"));
    executable(&terminal, &format!("#!/bin/sh\necho \"$@\" >>{}\n", ran.display()));
    let config = user.scratch.path().join(".config/pilotlight");
    std::fs::create_dir_all(&config).unwrap();
    let text = format!("[actions]\nterminal = [{:?}]\n[notifications]\nafter-start = \"1ms\"\n", terminal.display());
    std::fs::write(config.join("config.toml"), text).unwrap();
    std::fs::create_dir_all(user.state()).unwrap();
    std::fs::write(user.state().join("welcomed"), "").unwrap();
    (bus, sessions, user, ran)
}

/// LXQt 1.2 and MATE's notification area call `Activate` on a left click, and open no menu. Others call it and open the
/// menu as well.
#[test]
fn case_214_a_click_on_the_icon_shows_the_sessions_where_the_panel_opens_no_menu() {
    let (bus, _sessions, user, ran) = with_terminal();
    let panel = Panel::start(&bus);
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let runs = || std::fs::read_to_string(&ran).unwrap_or_default();
    // A panel that opens the menu when the call fails, and one on which it was the second click of two.
    for opens_before in [false, true] {
        if opens_before {
            panel.about_to_show();
        }
        assert!(panel.click_icon().unwrap_err().to_string().contains("UnknownMethod"));
        if !opens_before {
            panel.about_to_show();
        }
        #[expect(clippy::disallowed_methods, reason = "nothing must happen, and the next click must be another one")]
        std::thread::sleep(Duration::from_millis(1200));
        assert_eq!(runs(), "");
        panel.close();
    }
    // Two clicks of an impatient user are one.
    assert!(panel.click_icon().is_err() && panel.click_icon().is_err());
    wait_until(SOON, "the table is shown", runs, || runs().contains("live").then_some(()));
    #[expect(clippy::disallowed_methods, reason = "nothing more must happen")]
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(runs().lines().count(), 1, "{}", runs());
}

/// What vanished meanwhile says what became of it, and offers the next thing: by a button, and by a click beside it.
#[test]
fn case_212_a_note_leads_to_the_next_thing() {
    let (bus, sessions, user, ran) = with_terminal();
    let (panel, popups) = (Panel::start(&bus), Popups::start(&bus));
    let session = sessions.add("one");
    session.prompt();
    session.tool("a", "bash", "x");
    let tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "working");
    session.kill();
    let row = user.wait_status(&panel, &session, "crashed");
    let remedy = panel.wait_for("its remedy", |entry| entry.shown().starts_with("     Resume "));
    assert!(!row.entries.is_empty());
    let crashed = popups.wait_for(1);
    // Somebody ends it meanwhile.
    session.shut_down();
    user.wait_status(&panel, &session, "ended");
    let runs = || std::fs::read_to_string(&ran).unwrap_or_default();
    for (n, action) in [(2, "offer"), (3, "default")] {
        assert!(panel.click_unopened(remedy.id), "{}", tray.output());
        let note = popups.wait_for(n);
        assert_eq!(note.title, "Nothing was done", "{crashed:#?}");
        assert_eq!(note.body, "The session no longer needs that.\nIt has ended now.");
        assert_eq!(note.actions, ["default", "", "offer", "Show all sessions"]);
        assert_eq!(runs().lines().count(), n - 2, "{}", runs());
        popups.click(note.number, action);
        wait_until(SOON, "the table is shown", runs, || (runs().matches("live").count() == n - 1).then_some(()));
        let closed = || popups.closed().contains(&note.number).then_some(());
        wait_until(SOON, "the note is closed", || format!("{:?}", popups.closed()), closed);
    }
}

/// The test of notifications, clicked, on a server of this name: what `then` needs to look at its note.
fn on_server(name: &'static str, then: impl FnOnce(&Popups, &dyn Fn(), &dyn Fn() -> String)) {
    let (bus, _sessions, user, ran) = with_terminal();
    let manner = crate::desk::popups::Manner { name, ..crate::desk::popups::Manner::default() };
    let (panel, popups) = (Panel::start(&bus), Popups::with(&bus, manner));
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let test = panel.wait_for("the test of notifications", |entry| entry.shown() == "Test notification");
    let click = || assert!(panel.click(test.id));
    click();
    then(&popups, &click, &|| std::fs::read_to_string(&ran).unwrap_or_default());
}

/// swaync ignores a default action without a label.
#[test]
fn case_222_a_click_beside_the_buttons_has_a_label_where_a_server_needs_one() {
    on_server("SwayNotificationCenter", |popups, _, runs| {
        let note = popups.wait_for(1);
        assert_eq!(note.actions, ["later", "Not now", "default", "Open", "offer", "Show all sessions"]);
        popups.click(note.number, "default");
        wait_until(SOON, "the table is shown", runs, || runs().contains("live").then_some(()));
    });
}

/// On a server that gives the keyboard to the first button, that does nothing.
#[test]
fn case_212_the_first_button_of_a_note_only_closes_it_where_a_server_focuses_it() {
    on_server("gnome-shell", |popups, click_again, runs| {
        let note = popups.wait_for(1);
        assert_eq!(note.actions, ["later", "Not now", "default", "", "offer", "Show all sessions"]);
        popups.click(note.number, "later");
        popups.wait_for_closed(&[note.number]);
        popups.click(note.number, "offer");
        click_again();
        let note = popups.wait_for(2);
        popups.click(note.number, "offer");
        wait_until(SOON, "the table is shown", runs, || (runs().lines().count() == 1).then_some(()));
    });
}

/// How many entries of the menu itself, not of its submenus, offer the bridge.
fn bridge_offers(panel: &Panel) -> usize {
    panel.menu().iter().filter(|entry| entry.label == "Answer terminal sessions from here…").count()
}

fn wait_offers(panel: &Panel, count: usize) {
    let offers = || (bridge_offers(panel) == count).then_some(());
    wait_until(SOON, &format!("{count} offers of the bridge"), || format!("{:#?}", panel.menu()), offers);
}

/// A user of plain terminals learns of the bridge from the menu, once.
#[test]
fn case_228_the_bridge_is_offered_until_the_offer_is_clicked_and_never_again() {
    let (bus, sessions, user, ran) = with_terminal();
    let (panel, popups) = (Panel::start(&bus), Popups::start(&bus));
    let mut tray = user.start_tray(&bus);
    panel.wait_for_icon();
    panel.wait_for("an empty menu", |entry| entry.label == "No session is open");
    assert_eq!(bridge_offers(&panel), 0, "no session runs in a terminal");
    let session = sessions.add("one");
    user.wait_status(&panel, &session, "idle");
    wait_offers(&panel, 1);
    let again = |tray: &mut TrayProcess| {
        let registered = panel.registered();
        tray.signal(rustix::process::Signal::TERM);
        tray.wait_exit();
        *tray = user.start_tray(&bus);
        wait_until(SOON, "it registers", String::new, || (panel.registered() > registered).then_some(()));
        user.wait_status(&panel, &session, "idle");
    };
    again(&mut tray);
    wait_offers(&panel, 1);
    let offer = panel.menu().into_iter().find(|entry| entry.label.starts_with("Answer terminal sessions"));
    assert!(panel.click(offer.unwrap().id));
    let runs = || std::fs::read_to_string(&ran).unwrap_or_default();
    wait_until(SOON, "it asks in a terminal", runs, || {
        runs().contains("bridge install --agent copilot --wait").then_some(())
    });
    panel.close();
    wait_offers(&panel, 0);
    panel.wait_for("the entry under Settings stays", |entry| entry.label.starts_with("Answer terminal sessions"));
    again(&mut tray);
    panel.wait_for("the entry under Settings", |entry| entry.label.starts_with("Answer terminal sessions"));
    panel.wait_idle();
    assert_eq!(bridge_offers(&panel), 0);
    assert!(popups.received().is_empty(), "{:#?}", popups.received());
}

/// Also if it was installed by a command, and is removed later.
#[test]
fn case_228_an_installed_bridge_settles_the_offer() {
    let (bus, sessions, user, _ran) = with_terminal();
    let panel = Panel::start(&bus);
    let session = sessions.add("one");
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    wait_offers(&panel, 1);
    let key = user.state().join("bridge.key");
    std::fs::write(&key, "").unwrap();
    session.prompt();
    user.wait_status(&panel, &session, "working");
    wait_offers(&panel, 0);
    panel.wait_for("it is known", |entry| entry.label == "Stop answering terminal sessions…");
    std::fs::remove_file(&key).unwrap();
    session.answer("Done.");
    user.wait_status(&panel, &session, "idle");
    panel.wait_for("it is gone", |entry| entry.label.starts_with("Answer terminal sessions"));
    assert_eq!(bridge_offers(&panel), 0);
}
