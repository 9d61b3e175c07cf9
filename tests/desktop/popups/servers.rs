//! Servers that come, go, refuse, or do not answer.

use super::*;

#[test]
fn what_a_server_tells_before_it_has_answered_is_heard() {
    let bus = Bus::start();
    let manner = Manner { closes_at_once: true, ..Manner::default() };
    let (server, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    server.counts_from(40);
    desk.raise(1);
    desk.hears(&[(1, GONE)]);
}

#[test]
fn what_finds_no_server_is_shown_when_one_comes() {
    let bus = Bus::start();
    let desk = Desk::new(&bus);
    desk.raise(1);
    let tried = || (bus.names().iter().filter(|name| name.starts_with(':')).count() > 1).then_some(());
    wait_until(SOON, "it looks for a server", String::new, tried);
    let server = Server::start(&bus);
    let shown = server.wait_for(1);
    assert!(shown.title.ends_with("<1>"), "{shown:#?}");
    desk.click_read(&server, shown.number, "deny");
    desk.hears(&[(1, Clicked::Action(Button::Act(Action::Deny)))]);
}

#[test]
fn what_went_with_its_server_is_shown_by_the_next_one_and_not_heard_again() {
    let bus = Bus::start();
    let (first, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    desk.raise(2);
    let number = first.wait_for(2).number;
    desk.has_heard(&first, 3);
    first.end();
    let second = Server::with(&bus, Manner { can: vec!["body"], ..Manner::default() });
    second.click(number, "approve");
    second.wait_for(2);
    for (shown, id) in second.taken().iter().zip(["<1>", "<2>"]) {
        assert!(shown.title.ends_with(id) && shown.actions.is_empty(), "{shown:#?}");
        assert_eq!(shown.hint("suppress-sound"), Some("true"), "{shown:#?}");
    }
    desk.popups.apply(Change::Withdraw(PopupId(1)));
    second.wait_for_closed(&[1]);
    assert_eq!((second.asked(), desk.heard()), (1, vec![]));
}

/// The one that was asked first answers when it is the server no longer.
#[test]
fn a_server_that_went_while_it_was_met_is_not_shown_anything() {
    let bus = Bus::start();
    let hesitates = Arc::new(Semaphore::new(0));
    let manner = Manner { hesitates: Some(Arc::clone(&hesitates)), ..Manner::default() };
    let (first, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    desk.raise(1);
    wait_until(SOON, "it is asked what it can do", String::new, || (first.asked() == 1).then_some(()));
    first.abdicates();
    let second = Server::start(&bus);
    hesitates.add_permits(1);
    second.wait_for(1);
    assert_eq!(first.taken(), []);
}

#[test]
fn what_a_server_refuses_is_tried_again_after_a_while_and_holds_nothing_up() {
    let bus = Bus::start();
    let (server, desk) = (Server::with(&bus, Manner { refuses: Some("<1>"), ..Manner::default() }), Desk::new(&bus));
    let begun = Instant::now();
    desk.raise(1);
    desk.raise(2);
    assert!(server.wait_for(1).title.ends_with("<2>"));
    let again = || (server.refused() > 1).then_some(());
    wait_until(SOON, "it is tried again", || format!("{}", server.refused()), again);
    assert!(begun.elapsed() >= Duration::from_secs(5), "{:?}", begun.elapsed());
    desk.popups.apply(Change::Withdraw(PopupId(1)));
    desk.raise(3);
    assert!(server.wait_for(2).title.ends_with("<3>"));
    assert_eq!((server.refused(), desk.heard()), (2, vec![]));
}

/// And what it shows after all is taken away, and shown anew.
#[test]
fn a_server_that_does_not_answer_holds_nothing_up() {
    let bus = Bus::start();
    let held = Arc::new(Semaphore::new(0));
    let manner = Manner { held: Some(Arc::clone(&held)), ..Manner::default() };
    let (server, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    let begun = Instant::now();
    // Nothing here waits for the server: whatever did would wait for as long as it is waited for, a thousand times.
    for id in 1..=1000 {
        desk.raise(id);
        desk.popups.apply(Change::Withdraw(PopupId(id)));
    }
    desk.raise(1001);
    desk.raise(1002);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    server.wait_for(2);
    held.add_permits(1000);
    let dump = || format!("{:#?}, {:?}", server.taken(), server.closed());
    let left = || {
        let closed = server.closed();
        let mut left = server.taken();
        left.retain(|popup| !closed.contains(&popup.number));
        left
    };
    let both = || {
        let titles: Vec<_> = left().into_iter().map(|popup| popup.title).collect();
        (titles == ["Needs permission: <1001>", "Needs permission: <1002>"]).then_some(())
    };
    wait_until(SOON, "both are shown, and what came late is closed", dump, both);
    let sent = server.taken().len();
    assert!(sent < 10, "{sent} popups were sent");
    desk.raise(2000);
    let number = server.wait_for(sent + 1).number;
    desk.click_read(&server, number, "approve");
    desk.hears(&[(2000, Clicked::Action(Button::Act(Action::Approve)))]);
}

/// What it may show after all must be known.
#[test]
fn a_server_that_never_answers_is_sent_no_more_than_can_be_taken_back() {
    let bus = Bus::start();
    let held = Arc::new(Semaphore::new(0));
    let manner = Manner { held: Some(Arc::clone(&held)), ..Manner::default() };
    let (server, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    for id in 1..=5 {
        desk.raise(id);
        server.wait_for(usize::try_from(id).unwrap().min(4));
        let begun = Instant::now();
        let late = || (begun.elapsed() > Duration::from_millis(5500)).then_some(());
        wait_until(SOON, "the answer is late", String::new, late);
    }
    assert_eq!(server.taken().len(), 4, "{:#?}", server.taken());
    held.add_permits(1000);
    let closed = || (1..=4).all(|number| server.closed().contains(&number)).then_some(());
    wait_until(SOON, "all that came late is closed", || format!("{:?}", server.closed()), closed);
}

#[test]
fn what_went_with_the_bus_is_shown_on_the_next_one() {
    let mut bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    server.wait_for(1);
    bus.end();
    desk.raise(2);
    bus.begin();
    let server = Server::start(&bus);
    let shown = || {
        let titles: Vec<_> = server.taken().into_iter().map(|popup| popup.title).collect();
        ["<1>", "<2>"].iter().all(|id| titles.iter().any(|title| title.ends_with(id))).then_some(())
    };
    wait_until(SOON, "both are shown", || format!("{:#?}", server.taken()), shown);
    assert_eq!(desk.heard(), []);
}

#[test]
fn at_the_end_all_popups_are_taken_away() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    desk.raise(2);
    let numbers = [server.wait_for(1).number, server.wait_for(2).number];
    block_on(desk.popups.end());
    server.wait_for_closed(&numbers);
    assert!(desk.heard.lock().unwrap().is_empty());
}

/// What is shown under that number is the second one; the first is not what a click on it answers.
#[test]
fn a_server_that_gives_one_number_twice_shows_the_second() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    assert_eq!(server.wait_for(1).number, 1);
    server.counts_from(0);
    desk.raise(2);
    assert_eq!(server.wait_for(2).number, 1);
    desk.hears(&[(1, GONE)]);
    server.click(1, "mute");
    desk.hears(&[(1, GONE), (2, Clicked::Action(Button::Mute))]);
}

/// However slowly it answers.
#[test]
fn at_the_end_a_server_that_does_not_answer_is_told_of_all_popups() {
    let bus = Bus::start();
    let manner = Manner { closes_in_silence: true, ..Manner::default() };
    let (server, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    for id in 1..=5 {
        desk.raise(id);
        server.wait_for(usize::try_from(id).unwrap());
    }
    block_on(desk.popups.end());
    let closed = || {
        let mut closed = server.closed();
        closed.sort_unstable();
        closed
    };
    let all = || (closed() == [1, 2, 3, 4, 5]).then_some(());
    wait_until(SOON, "it is told to close all", || format!("{:?}", closed()), all);
}

/// Some servers take away what they show of a program that left the bus.
#[test]
fn all_notes_go_over_one_connection_that_stays_and_is_made_anew_with_the_bus() {
    let mut bus = Bus::start();
    let server = Server::start(&bus);
    let note_sender = NoteSender::on(block_on(async { Handle::current() }), bus.address());
    let note = Note::test();
    note_sender.send(&note, || ());
    let first = server.wait_for(1).sender;
    note_sender.clone().send(&note, || ());
    assert_eq!(server.wait_for(2).sender, first);
    assert!(bus.names().contains(&first), "{first}: {:?}", bus.names());
    bus.end();
    bus.begin();
    let server = Server::start(&bus);
    note_sender.send(&note, || ());
    let sender = server.wait_for(1).sender;
    assert!(bus.names().contains(&sender), "{sender}: {:?}", bus.names());
}
