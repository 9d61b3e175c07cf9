//! What a click on a popup is told as, and when it answers nothing.

use super::*;

#[test]
fn a_click_is_told_once_and_takes_the_popup_along() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    for (id, action, told) in [
        (1, "approve", Clicked::Action(Button::Act(Action::Approve))),
        (2, "mute", Clicked::Action(Button::Mute)),
        (3, "default", Clicked::Default),
    ] {
        desk.raise(id);
        let number = server.wait_for(usize::try_from(id).unwrap()).number;
        desk.click_read(&server, number, "reconnect"); // it has no such button
        server.click(number, action);
        server.click(number, "deny");
        server.wait_for_closed(&(1..=number).collect::<Vec<_>>());
        assert_eq!(desk.heard().last(), Some(&(id, told)));
    }
    assert_eq!(desk.heard().len(), 3);
}

#[test]
fn a_popup_that_is_put_away_is_told_from_one_that_goes_by_itself() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    desk.raise(2);
    let numbers = [server.wait_for(1).number, server.wait_for(2).number];
    server.close(numbers[0], 2);
    server.close(numbers[1], 1);
    desk.hears(&[(1, PUT_AWAY), (2, GONE)]);
    assert!(server.closed().is_empty());
}

/// Cases 92 and 107b.
#[test]
fn case_107b_a_popup_that_is_withdrawn_is_closed_and_a_click_on_it_is_for_nothing() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    let old = server.wait_for(1).number;
    desk.popups.apply(Change::Withdraw(PopupId(1)));
    desk.raise(2);
    let new = server.wait_for(2);
    assert_eq!((new.replaces, server.closed()), (0, vec![old]), "closed first, then raised anew");
    server.click(old, "approve");
    server.click(new.number, "details");
    server.click(new.number, "mute");
    desk.hears(&[(2, Clicked::Action(Button::Mute))]);
}

/// A click that was aimed at what stood there before, or at nothing, answers nothing: the popup is shown anew.
#[test]
fn case_112_a_click_on_a_popup_that_just_came_answers_nothing() {
    for (action, button) in [("approve", Button::Act(Action::Approve)), ("deny", Button::Act(Action::Deny))] {
        let bus = Bus::start();
        let (server, desk) = (Server::start(&bus), Desk::new(&bus));
        desk.raise(1);
        let first = server.wait_for(1);
        server.click(first.number, action);
        let anew = server.wait_for(2);
        assert_eq!(
            (anew.replaces, &anew.title, &anew.body, &anew.actions),
            (0, &first.title, &first.body, &first.actions)
        );
        assert_eq!((anew.hint("suppress-sound"), server.closed()), (Some("true"), vec![first.number]));
        server.click(anew.number, action); // and again
        let number = server.wait_for(3).number;
        server.click(anew.number, action);
        assert_eq!(desk.heard(), []);
        desk.click_read(&server, number, action);
        desk.hears(&[(1, Clicked::Action(button))]);
    }
}

/// A question's choices stand on the buttons as they are; a click on one wants to be read as Approve does.
#[test]
fn a_choice_of_a_question_is_a_button() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    let asks = |id: u64| Popup {
        cause: Cause::NeedsInput,
        asked: Some(Asked { request: id, text: "Which?".into(), choices: vec!["red".into(), "dark blue".into()] }),
        buttons: vec![Button::Choice(0), Button::Choice(1), Button::Act(Action::Answer), Button::Mute],
        ..popup(id)
    };
    desk.popups.apply(Change::Raise(asks(1)));
    let shown = server.wait_for(1);
    let actions = ["choice-1", "red", "choice-2", "dark blue", "answer", "Answer…", "default", "", "mute", "Mute"];
    assert_eq!(shown.actions, actions);
    server.click(shown.number, "choice-2");
    let anew = server.wait_for(2).number;
    assert_eq!(desk.heard(), [], "it came just now");
    desk.click_read(&server, anew, "choice-2");
    desk.hears(&[(1, Clicked::Action(Button::Choice(1)))]);
    // A server that may be the agent's own does not answer.
    let (bus, server) = {
        let bus = Bus::start();
        let server = Server::start(&bus);
        (bus, server)
    };
    let desk = Desk::that(&bus, false);
    desk.popups.apply(Change::Raise(asks(1)));
    assert_eq!(server.wait_for(1).actions[..4], ["answer", "Answer…", "default", ""]);
    drop(desk);
}

/// The other buttons do no harm.
#[test]
fn case_112_only_an_answer_wants_to_be_read() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    server.click(server.wait_for(1).number, "mute");
    desk.hears(&[(1, Clicked::Action(Button::Mute))]);
}

/// The time counts from when the popup was sent, however slow the server was to answer.
#[test]
fn case_112_a_slow_servers_popup_wants_to_be_read_as_long() {
    let bus = Bus::start();
    let held = Arc::new(Semaphore::new(0));
    let (server, desk) =
        (Server::with(&bus, Manner { held: Some(Arc::clone(&held)), ..Manner::default() }), Desk::new(&bus));
    desk.raise(1);
    let number = server.wait_for(1).number;
    desk.click_read(&server, number, "approve"); // it stood there for long
    held.add_permits(1000);
    desk.hears(&[(1, Clicked::Action(Button::Act(Action::Approve)))]);
}

/// Cases 107b, 112: a click that was aimed at a popup which another one took the place of answers nothing.
#[test]
fn case_107b_a_click_just_after_one_popup_took_the_place_of_another_only_shows_it_anew() {
    for (action, button) in [("approve", Button::Act(Action::Approve)), ("deny", Button::Act(Action::Deny))] {
        let bus = Bus::start();
        let (server, desk) = (Server::start(&bus), Desk::new(&bus));
        desk.raise(1);
        server.wait_for(1);
        desk.popups.apply(Change::Withdraw(PopupId(1)));
        desk.raise(2);
        server.click(server.wait_for(2).number, action);
        let anew = server.wait_for(3);
        assert!(anew.title.ends_with("<2>") && desk.heard().is_empty(), "{anew:#?}");
        // Once it has stood there for a while, it is as ever.
        desk.click_read(&server, anew.number, action);
        desk.hears(&[(2, Clicked::Action(button))]);
    }
}

/// Whoever took it away: what is below may slide to where it stood.
#[test]
fn case_107b_a_click_just_after_another_popup_went_by_itself_only_shows_it_anew() {
    for goes in [
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
        goes(&server);
        server.click(number, "approve");
        let anew = server.wait_for(3);
        assert!(anew.title.ends_with("<2>"), "{anew:#?}");
        assert!(desk.heard().iter().all(|(id, _)| *id == 1), "{:?}", desk.heard());
    }
}

/// An agent's shell is on the same bus.
#[test]
fn a_click_that_is_not_the_servers_is_for_nothing() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    let number = server.wait_for(1).number;
    let other = block_on(bus.connect());
    Server::forge(&other, number, "approve");
    // Addressed to us alone, no rule of the bus keeps it away.
    let names: Vec<String> = block_on(async {
        let bus = zbus::fdo::DBusProxy::new(&other).await.unwrap();
        bus.list_names().await.unwrap().iter().map(ToString::to_string).filter(|name| name.starts_with(':')).collect()
    });
    for name in names {
        let (path, signal) = ("/org/freedesktop/Notifications", (number, "approve"));
        block_on(other.emit_signal(Some(&*name), path, "org.freedesktop.Notifications", "ActionInvoked", &signal))
            .unwrap();
    }
    desk.click_read(&server, number, "deny");
    desk.hears(&[(1, Clicked::Action(Button::Act(Action::Deny)))]);
}

/// A notification server that an agent started.
#[test]
fn a_server_that_is_not_believed_is_offered_no_approval() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::that(&bus, false));
    desk.raise(1);
    let shown = server.wait_for(1);
    assert_eq!(shown.actions, ["review", "Review…", "default", "", "mute", "Mute"]);
    desk.click_read(&server, shown.number, "approve");
    server.click(shown.number, "review");
    desk.hears(&[(1, Clicked::Action(Button::Review))]);
}
