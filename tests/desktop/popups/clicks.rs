//! How clicks on popups are reported, and which clicks do not count.

use super::*;

#[test]
fn a_click_is_reported_once_and_closes_the_popup() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    for (id, action, event) in [
        (1, "approve", PopupEvent::Action(Button::Act(Action::Approve))),
        (2, "mute", PopupEvent::Action(Button::Mute)),
        (3, "default", PopupEvent::Default),
    ] {
        desk.raise(id);
        let number = server.wait_for(usize::try_from(id).unwrap()).number;
        desk.click_after_reading(&server, number, "reconnect"); // it has no such button
        server.click(number, action);
        server.click(number, "deny");
        server.wait_for_closed(&(1..=number).collect::<Vec<_>>());
        assert_eq!(desk.events().last(), Some(&(id, event)));
    }
    assert_eq!(desk.events().len(), 3);
}

#[test]
fn a_dismissed_popup_is_distinguished_from_one_that_expired() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    desk.raise(2);
    let numbers = [server.wait_for(1).number, server.wait_for(2).number];
    server.close(numbers[0], 2);
    server.close(numbers[1], 1);
    desk.wait_for_events(&[(1, DISMISSED), (2, EXPIRED)]);
    assert!(server.closed().is_empty());
}

/// Cases 92 and 107b.
#[test]
fn case_92_and_107b_a_withdrawn_popup_is_closed_and_a_click_on_it_does_not_count() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    let old = server.wait_for(1).number;
    desk.popups.apply(Change::Withdraw(PopupId(1)));
    desk.raise(2);
    let new = server.wait_for(2);
    assert_eq!((new.replaces, server.closed()), (0, vec![old]), "closed first, then raised again");
    server.click(old, "approve");
    server.click(new.number, "details");
    server.click(new.number, "mute");
    desk.wait_for_events(&[(2, PopupEvent::Action(Button::Mute))]);
}

/// The click may have been meant for something else, so it only shows the popup again.
#[test]
fn case_112_a_click_on_a_popup_that_just_appeared_answers_nothing() {
    for (action, button) in [("approve", Button::Act(Action::Approve)), ("deny", Button::Act(Action::Deny))] {
        let bus = Bus::start();
        let (server, desk) = (Server::start(&bus), Desk::new(&bus));
        desk.raise(1);
        let first = server.wait_for(1);
        server.click(first.number, action);
        let again = server.wait_for(2);
        assert_eq!(
            (again.replaces, &again.title, &again.body, &again.actions),
            (0, &first.title, &first.body, &first.actions)
        );
        assert_eq!((again.hint("suppress-sound"), server.closed()), (Some("true"), vec![first.number]));
        server.click(again.number, action); // too early as well
        let number = server.wait_for(3).number;
        server.click(again.number, action); // closed by now
        assert_eq!(desk.events(), []);
        desk.click_after_reading(&server, number, action);
        desk.wait_for_events(&[(1, PopupEvent::Action(button))]);
    }
}

/// With the choice's own words. Like Approve, it counts only after the popup could be read.
#[test]
fn a_choice_of_a_question_is_a_button() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    let asks = |id: u64| Popup {
        cause: Cause::NeedsInput,
        asked: Some(ShownRequest {
            request: id,
            text: "Which?".into(),
            choices: vec!["red".into(), "dark blue".into()],
        }),
        buttons: vec![Button::Choice(0), Button::Choice(1), Button::Act(Action::Answer), Button::Mute],
        ..popup(id)
    };
    desk.popups.apply(Change::Raise(asks(1)));
    let shown = server.wait_for(1);
    let actions = ["choice-1", "red", "choice-2", "dark blue", "answer", "Answer…", "default", "", "mute", "Mute"];
    assert_eq!(shown.actions, actions);
    server.click(shown.number, "choice-2");
    let again = server.wait_for(2).number;
    assert_eq!(desk.events(), [], "it has just appeared");
    desk.click_after_reading(&server, again, "choice-2");
    desk.wait_for_events(&[(1, PopupEvent::Action(Button::Choice(1)))]);
    // A server that an agent may have started cannot answer.
    let (bus, server) = {
        let bus = Bus::start();
        let server = Server::start(&bus);
        (bus, server)
    };
    let desk = Desk::with(&bus, false);
    desk.popups.apply(Change::Raise(asks(1)));
    assert_eq!(server.wait_for(1).actions[..4], ["answer", "Answer…", "default", ""]);
    drop(desk);
}

/// The other buttons are harmless.
#[test]
fn case_112_only_answers_wait_until_the_popup_could_be_read() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    server.click(server.wait_for(1).number, "mute");
    desk.wait_for_events(&[(1, PopupEvent::Action(Button::Mute))]);
}

/// However slowly the server answers.
#[test]
fn case_112_the_reading_time_counts_from_when_the_popup_was_sent() {
    let bus = Bus::start();
    let held = Arc::new(Semaphore::new(0));
    let (server, desk) =
        (Server::with(&bus, Manner { held: Some(Arc::clone(&held)), ..Manner::default() }), Desk::new(&bus));
    desk.raise(1);
    let number = server.wait_for(1).number;
    desk.click_after_reading(&server, number, "approve"); // it has been shown for long
    held.add_permits(1000);
    desk.wait_for_events(&[(1, PopupEvent::Action(Button::Act(Action::Approve)))]);
}

/// Cases 107b, 112: the click may have been meant for the previous popup.
#[test]
fn case_107b_a_click_on_a_popup_that_just_replaced_another_only_shows_it_again() {
    for (action, button) in [("approve", Button::Act(Action::Approve)), ("deny", Button::Act(Action::Deny))] {
        let bus = Bus::start();
        let (server, desk) = (Server::start(&bus), Desk::new(&bus));
        desk.raise(1);
        server.wait_for(1);
        desk.popups.apply(Change::Withdraw(PopupId(1)));
        desk.raise(2);
        server.click(server.wait_for(2).number, action);
        let again = server.wait_for(3);
        assert!(again.title.ends_with("<2>") && desk.events().is_empty(), "{again:#?}");
        // After the reading time a click counts.
        desk.click_after_reading(&server, again.number, action);
        desk.wait_for_events(&[(2, PopupEvent::Action(button))]);
    }
}

/// Whoever closed the other one: the popup may have moved to its place.
#[test]
fn case_107b_a_click_just_after_another_popup_closed_only_shows_it_again() {
    for close in [
        |server: &Server| server.close(1, 2),
        |server: &Server| server.close(1, 1),
        |server: &Server| {
            server.click(1, "mute");
        },
    ] {
        let bus = Bus::start();
        let (server, desk) = (Server::start(&bus), Desk::new(&bus));
        desk.raise(1);
        desk.raise(2);
        let number = server.wait_for(2).number;
        desk.read();
        close(&server);
        server.click(number, "approve");
        let again = server.wait_for(3);
        assert!(again.title.ends_with("<2>"), "{again:#?}");
        assert!(desk.events().iter().all(|(id, _)| *id == 1), "{:?}", desk.events());
    }
}

/// An agent's shell is on the same bus.
#[test]
fn a_click_that_is_not_from_the_server_does_not_count() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    let number = server.wait_for(1).number;
    let other = block_on(bus.connect());
    Server::forge(&other, number, "approve");
    // Match rules do not filter signals that are addressed to us.
    let names: Vec<String> = block_on(async {
        let bus = zbus::fdo::DBusProxy::new(&other).await.unwrap();
        bus.list_names().await.unwrap().iter().map(ToString::to_string).filter(|name| name.starts_with(':')).collect()
    });
    for name in names {
        let (path, signal) = ("/org/freedesktop/Notifications", (number, "approve"));
        block_on(other.emit_signal(Some(&*name), path, "org.freedesktop.Notifications", "ActionInvoked", &signal))
            .unwrap();
    }
    desk.click_after_reading(&server, number, "deny");
    desk.wait_for_events(&[(1, PopupEvent::Action(Button::Act(Action::Deny)))]);
}

/// For example, a notification server that an agent started.
#[test]
fn an_untrusted_server_is_not_offered_approve() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::with(&bus, false));
    desk.raise(1);
    let shown = server.wait_for(1);
    assert_eq!(shown.actions, ["review", "Review…", "default", "", "mute", "Mute"]);
    desk.click_after_reading(&server, shown.number, "approve");
    server.click(shown.number, "review");
    desk.wait_for_events(&[(1, PopupEvent::Action(Button::Review))]);
}
