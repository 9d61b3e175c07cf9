//! Notification servers that start, exit, refuse, or do not answer.

use super::*;
use crate::support::running_time::running_time;

#[test]
fn a_signal_that_arrives_before_the_servers_answer_counts() {
    let bus = Bus::start();
    let manner = Manner { closes_at_once: true, ..Manner::default() };
    let (server, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    server.set_last_number(40);
    desk.raise(1);
    desk.wait_for_events(&[(1, EXPIRED)]);
}

#[test]
fn a_popup_without_a_server_is_shown_once_one_starts() {
    let bus = Bus::start();
    let desk = Desk::new(&bus);
    desk.raise(1);
    let tried = || (bus.names().iter().filter(|name| name.starts_with(':')).count() > 1).then_some(());
    wait_until(SOON, "it looks for a server", String::new, tried);
    let server = Server::start(&bus);
    let shown = server.wait_for(1);
    assert!(shown.title.ends_with("<1>"), "{shown:#?}");
    desk.click_after_reading(&server, shown.number, "deny");
    desk.wait_for_events(&[(1, PopupEvent::Action(Button::Act(Action::Deny)))]);
}

#[test]
fn popups_lost_with_their_server_are_shown_silently_by_the_next_one() {
    let bus = Bus::start();
    let (first, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    desk.raise(2);
    let number = first.wait_for(2).number;
    desk.wait_for_answers(&first, 3);
    first.end();
    let second = Server::with(&bus, Manner { can: vec!["body"], ..Manner::default() });
    second.click(number, "approve");
    second.wait_for(2);
    for (shown, id) in second.received().iter().zip(["<1>", "<2>"]) {
        assert!(shown.title.ends_with(id) && shown.actions.is_empty(), "{shown:#?}");
        assert_eq!(shown.hint("suppress-sound"), Some("true"), "{shown:#?}");
    }
    desk.popups.apply(Change::Withdraw(PopupId(1)));
    second.wait_for_closed(&[1]);
    assert_eq!((second.capability_requests(), desk.events()), (1, vec![]));
}

/// It answers only after another server has taken over.
#[test]
fn a_server_replaced_during_the_handshake_is_sent_no_popup() {
    let bus = Bus::start();
    let hesitates = Arc::new(Semaphore::new(0));
    let manner = Manner { hesitates: Some(Arc::clone(&hesitates)), ..Manner::default() };
    let (first, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    desk.raise(1);
    wait_until(SOON, "it is asked what it can do", String::new, || (first.capability_requests() == 1).then_some(()));
    first.release_name();
    let second = Server::start(&bus);
    hesitates.add_permits(1);
    second.wait_for(1);
    assert_eq!(first.received(), []);
}

#[test]
fn a_refused_popup_is_retried_later_and_does_not_delay_others() {
    let bus = Bus::start();
    let (server, desk) = (Server::with(&bus, Manner { refuses: Some("<1>"), ..Manner::default() }), Desk::new(&bus));
    let begun = Instant::now();
    desk.raise(1);
    desk.raise(2);
    assert!(server.wait_for(1).title.ends_with("<2>"));
    let retried = || (server.refused() > 1).then_some(());
    wait_until(SOON, "it is retried", || format!("{}", server.refused()), retried);
    assert!(begun.elapsed() >= Duration::from_secs(5), "{:?}", begun.elapsed());
    desk.popups.apply(Change::Withdraw(PopupId(1)));
    desk.raise(3);
    assert!(server.wait_for(2).title.ends_with("<3>"));
    assert_eq!((server.refused(), desk.events()), (2, vec![]));
}

/// Popups that it shows late are closed and shown again.
#[test]
fn a_server_that_does_not_answer_delays_nothing() {
    let bus = Bus::start();
    let held = Arc::new(Semaphore::new(0));
    let manner = Manner { held: Some(Arc::clone(&held)), ..Manner::default() };
    let (server, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    let begun = running_time();
    // Nothing here waits for the server: otherwise each of these would take its whole timeout.
    for id in 1..=1000 {
        desk.raise(id);
        desk.popups.apply(Change::Withdraw(PopupId(id)));
    }
    desk.raise(1001);
    desk.raise(1002);
    let took = running_time() - begun;
    assert!(took < Duration::from_secs(5), "{took:?}");
    server.wait_for(2);
    held.add_permits(1000);
    let dump = || format!("{:#?}, {:?}", server.received(), server.closed());
    let left = || {
        let closed = server.closed();
        let mut left = server.received();
        left.retain(|popup| !closed.contains(&popup.number));
        left
    };
    let both = || {
        let titles: Vec<_> = left().into_iter().map(|popup| popup.title).collect();
        (titles == ["Needs permission: <1001>", "Needs permission: <1002>"]).then_some(())
    };
    wait_until(SOON, "both are shown, and late ones are closed", dump, both);
    let sent = server.received().len();
    assert!(sent < 10, "{sent} popups were sent");
    desk.raise(2000);
    let number = server.wait_for(sent + 1).number;
    desk.click_after_reading(&server, number, "approve");
    desk.wait_for_events(&[(2000, PopupEvent::Action(Button::Act(Action::Approve)))]);
}

/// It may still show each of them, so all of them must be remembered.
#[test]
fn a_server_that_never_answers_is_sent_only_as_many_popups_as_can_be_withdrawn() {
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
    assert_eq!(server.received().len(), 4, "{:#?}", server.received());
    held.add_permits(1000);
    let closed = || (1..=4).all(|number| server.closed().contains(&number)).then_some(());
    wait_until(SOON, "all late ones are closed", || format!("{:?}", server.closed()), closed);
}

#[test]
fn popups_lost_with_the_bus_are_shown_on_the_next_one() {
    let mut bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    server.wait_for(1);
    bus.end();
    desk.raise(2);
    bus.begin();
    let server = Server::start(&bus);
    let shown = || {
        let titles: Vec<_> = server.received().into_iter().map(|popup| popup.title).collect();
        ["<1>", "<2>"].iter().all(|id| titles.iter().any(|title| title.ends_with(id))).then_some(())
    };
    wait_until(SOON, "both are shown", || format!("{:#?}", server.received()), shown);
    assert_eq!(desk.events(), []);
}

#[test]
fn at_exit_all_popups_are_closed() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    desk.raise(2);
    let numbers = [server.wait_for(1).number, server.wait_for(2).number];
    block_on(desk.popups.close());
    server.wait_for_closed(&numbers);
    assert!(desk.events.lock().unwrap().is_empty());
}

/// A click on that number is for the second popup.
#[test]
fn a_server_that_assigns_a_number_twice_shows_the_second_popup() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    assert_eq!(server.wait_for(1).number, 1);
    server.set_last_number(0);
    desk.raise(2);
    assert_eq!(server.wait_for(2).number, 1);
    desk.wait_for_events(&[(1, EXPIRED)]);
    server.click(1, "mute");
    desk.wait_for_events(&[(1, EXPIRED), (2, PopupEvent::Action(Button::Mute))]);
}

#[test]
fn at_exit_a_server_that_does_not_answer_is_told_to_close_all_popups() {
    let bus = Bus::start();
    let manner = Manner { closes_in_silence: true, ..Manner::default() };
    let (server, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    for id in 1..=5 {
        desk.raise(id);
        server.wait_for(usize::try_from(id).unwrap());
    }
    block_on(desk.popups.close());
    let closed = || {
        let mut closed = server.closed();
        closed.sort_unstable();
        closed
    };
    let all = || (closed() == [1, 2, 3, 4, 5]).then_some(());
    wait_until(SOON, "it is told to close all", || format!("{:?}", closed()), all);
}

/// Some servers close a program's popups when its connection closes.
#[test]
fn all_notes_share_one_connection_that_stays_open_and_is_reopened_with_the_bus() {
    let mut bus = Bus::start();
    let server = Server::start(&bus);
    let note_sender = NoteSender::on(block_on(async { Handle::current() }), bus.address());
    let note = Note::test();
    note_sender.send(&note, Box::new(drop), || ());
    let first = server.wait_for(1).sender;
    note_sender.clone().send(&note, Box::new(drop), || ());
    assert_eq!(server.wait_for(2).sender, first);
    assert!(bus.names().contains(&first), "{first}: {:?}", bus.names());
    bus.end();
    bus.begin();
    let server = Server::start(&bus);
    note_sender.send(&note, Box::new(drop), || ());
    let sender = server.wait_for(1).sender;
    assert!(bus.names().contains(&sender), "{sender}: {:?}", bus.names());
}
