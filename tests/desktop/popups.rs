//! Popups on a notification server that shows them, clicks them, forgets them, lies, or does not answer.

use crate::desk::bus::Bus;
use crate::desk::popups::{Manner, Popups as Server};
use crate::support::{SOON, block_on, wait_until};
use pilotlight::core::alert::{About, Asked, Button, Cause, Change, Popup, PopupId, Urgency};
use pilotlight::core::time::Time;
use pilotlight::desktop::notify::{Clicked, Means, Popups};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

const GONE: Clicked = Clicked::Closed { by_user: false };
const PUT_AWAY: Clicked = Clicked::Closed { by_user: true };

/// The popups under test, and what they told.
struct Desk {
    popups: Popups,
    heard: Arc<Mutex<Vec<(u64, Clicked)>>>,
}

impl Desk {
    fn new(bus: &Bus) -> Self {
        Self::that(bus, true)
    }

    fn that(bus: &Bus, may_answer: bool) -> Self {
        let heard = Arc::<Mutex<Vec<_>>>::default();
        let into = Arc::clone(&heard);
        let popups = Popups::start(Means {
            runtime: block_on(async { Handle::current() }),
            bus: Some(bus.address()),
            may_answer: Box::new(move |pid| pid == std::process::id() && may_answer),
            clicked: Box::new(move |id, clicked| into.lock().unwrap().push((id.0, clicked))),
        });
        Self { popups, heard }
    }

    fn raise(&self, id: u64) -> Popup {
        let popup = popup(id);
        self.popups.apply(Change::Raise(popup.clone()));
        popup
    }

    fn heard(&self) -> Vec<(u64, Clicked)> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until this was told, and nothing else.
    fn hears(&self, what: &[(u64, Clicked)]) {
        let dump = || format!("{:?}", self.heard());
        wait_until(SOON, &format!("{what:?} is told"), dump, || (self.heard().len() >= what.len()).then_some(()));
        assert_eq!(self.heard(), what);
    }
}

/// A popup with Approve, on one session.
fn popup(id: u64) -> Popup {
    Popup {
        id: PopupId(id),
        about: About::One((0, "a".into())),
        cause: Cause::NeedsPermission,
        asked: Some(Asked { request: id, text: "make".into() }),
        title: format!("Needs permission: <{id}>"),
        body: "shell\nmake && echo <done>".into(),
        urgency: Urgency::Normal,
        sound: true,
        buttons: vec![Button::Approve, Button::Deny, Button::Mute],
        since: Time::default(),
    }
}

#[test]
fn a_popup_is_shown_with_its_buttons() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    let shown = server.wait_for(1);
    assert_eq!((&*shown.title, &*shown.body), ("Needs permission: <1>", "shell\nmake &amp;&amp; echo &lt;done&gt;"));
    let actions = ["approve", "Approve once", "deny", "Deny", "mute", "Mute", "default", "Open"];
    assert_eq!(shown.actions, actions);
    assert_eq!((shown.replaces, &*shown.icon), (0, "pilotlight"));
    let hint = |name: &str| shown.hint(name).map(str::to_owned);
    assert_eq!(hint("urgency").as_deref(), Some("byte 0x01"));
    assert_eq!(hint("category").as_deref(), Some("\"x-pilotlight.needs-permission\""));
    assert_eq!(hint("desktop-entry").as_deref(), Some("\"pilotlight\""));
    assert_eq!(hint("suppress-sound").as_deref(), Some("false"));
    assert_eq!(hint("image-data").as_deref(), Some("a picture"));
    let urgent = Popup { urgency: Urgency::Critical, sound: false, cause: Cause::Stuck, ..popup(2) };
    desk.popups.apply(Change::Raise(urgent));
    let shown = server.wait_for(2);
    assert_eq!((shown.hint("urgency"), shown.hint("suppress-sound")), (Some("byte 0x02"), Some("true")));
    assert_eq!(server.asked(), 1, "what it can do is asked once");
}

#[test]
fn a_click_is_told_once_and_takes_the_popup_along() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    for (id, action, told) in [
        (1, "approve", Clicked::Action(Button::Approve)),
        (2, "mute", Clicked::Action(Button::Mute)),
        (3, "default", Clicked::Default),
    ] {
        desk.raise(id);
        let number = server.wait_for(usize::try_from(id).unwrap()).number;
        server.click(number, "reconnect"); // it has no such button
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

/// CASES.md 92 and 107b.
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

/// CASES.md 107b: a click that was aimed at a popup which another one took the place of answers nothing.
#[test]
fn case_107b_a_click_just_after_one_popup_took_the_place_of_another_only_shows_the_request() {
    for (action, button) in [("approve", Button::Approve), ("deny", Button::Deny)] {
        let bus = Bus::start();
        let (server, desk) = (Server::start(&bus), Desk::new(&bus));
        desk.raise(1);
        server.wait_for(1);
        desk.popups.apply(Change::Withdraw(PopupId(1)));
        desk.raise(2);
        server.click(server.wait_for(2).number, action);
        let shown = (2, Clicked::Action(Button::Details));
        desk.hears(&[shown]);
        // Once it has stood there for a while, it is as ever.
        desk.raise(3);
        let number = server.wait_for(3).number;
        let begun = Instant::now();
        let rested = || (begun.elapsed() > Duration::from_millis(1300)).then_some(());
        wait_until(SOON, "it has stood there for a while", String::new, rested);
        server.click(number, action);
        desk.hears(&[shown, (3, Clicked::Action(button))]);
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
    server.click(number, "deny");
    desk.hears(&[(1, Clicked::Action(Button::Deny))]);
}

/// A notification server that an agent started.
#[test]
fn a_server_that_is_not_believed_is_offered_no_approval() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::that(&bus, false));
    desk.raise(1);
    let shown = server.wait_for(1);
    assert_eq!(shown.actions, ["details", "Details", "mute", "Mute", "default", ""]);
    server.click(shown.number, "approve");
    server.click(shown.number, "details");
    desk.hears(&[(1, Clicked::Action(Button::Details))]);
}

#[test]
fn a_server_is_sent_only_what_it_can_show() {
    let all = "shell\nmake && echo <done>";
    for (can, body, actions) in
        [(vec!["body", "actions"], all, 8), (vec!["actions"], "", 6), (vec!["body"], all, 0), (vec![], "", 0)]
    {
        let bus = Bus::start();
        let (server, desk) = (Server::with(&bus, Manner { can: can.clone(), ..Manner::default() }), Desk::new(&bus));
        desk.raise(1);
        let shown = server.wait_for(1);
        assert_eq!((&*shown.body, shown.actions.len()), (body, actions), "{can:?}");
        assert_eq!(shown.actions.contains(&"approve".into()), actions == 8, "{can:?}: only with what it answers");
    }
}

#[test]
fn a_popup_that_says_something_else_keeps_its_place_and_does_not_come_back() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    let popup = desk.raise(1);
    let number = server.wait_for(1).number;
    desk.popups.apply(Change::Replace(Popup { title: "less".into(), ..popup.clone() }));
    let shown = server.wait_for(2);
    assert_eq!((shown.replaces, shown.number, &*shown.title), (number, number, "less"));
    server.close(number, 2);
    desk.hears(&[(1, PUT_AWAY)]);
    desk.popups.apply(Change::Replace(Popup { title: "nothing".into(), ..popup }));
    desk.raise(2);
    assert!(server.wait_for(3).title.ends_with("<2>"));
}

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
fn a_server_that_is_absent_costs_a_popup_and_the_next_one_is_tried() {
    let bus = Bus::start();
    let desk = Desk::new(&bus);
    desk.raise(1);
    desk.hears(&[(1, GONE)]);
    let server = Server::start(&bus);
    desk.raise(2);
    let number = server.wait_for(1).number;
    server.click(number, "deny");
    desk.hears(&[(1, GONE), (2, Clicked::Action(Button::Deny))]);
}

#[test]
fn with_a_server_its_popups_go_and_another_one_is_met_anew() {
    let bus = Bus::start();
    let (first, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    desk.raise(2);
    let number = first.wait_for(2).number;
    first.end();
    desk.hears(&[(1, GONE), (2, GONE)]);
    let second = Server::with(&bus, Manner { can: vec!["body"], ..Manner::default() });
    second.click(number, "approve");
    desk.raise(3);
    assert!(second.wait_for(1).actions.is_empty());
    assert_eq!((second.asked(), desk.heard().len()), (1, 2));
}

#[test]
fn a_server_that_refuses_costs_the_popups_that_wait() {
    let bus = Bus::start();
    let (_server, desk) = (Server::with(&bus, Manner { refuses: true, ..Manner::default() }), Desk::new(&bus));
    desk.raise(1);
    desk.hears(&[(1, GONE)]);
    desk.raise(2);
    desk.hears(&[(1, GONE), (2, GONE)]);
}

/// And what it shows after all is taken away.
#[test]
fn a_server_that_does_not_answer_holds_nothing_up() {
    let bus = Bus::start();
    let held = Arc::new(Semaphore::new(0));
    let manner = Manner { held: Some(Arc::clone(&held)), ..Manner::default() };
    let (server, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    let begun = Instant::now();
    for id in 1..=1000 {
        desk.raise(id);
        desk.popups.apply(Change::Withdraw(PopupId(id)));
    }
    desk.raise(1001);
    desk.raise(1002);
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    server.wait_for(1);
    let told = |desk: &Desk| desk.heard().iter().filter(|(id, _)| *id > 1000).count() == 2;
    wait_until(SOON, "both are told to be gone", || format!("{:?}", desk.heard()), || told(&desk).then_some(()));
    let sent = server.taken().len();
    assert!(sent < 10, "{sent} popups were sent");
    held.add_permits(1000);
    let all = || (server.closed().len() == sent).then_some(());
    wait_until(SOON, "what came late is closed", || format!("{sent}, {:?}", server.closed()), all);
    desk.raise(2000);
    let number = server.wait_for(sent + 1).number;
    server.click(number, "approve");
    let approved = || desk.heard().contains(&(2000, Clicked::Action(Button::Approve))).then_some(());
    wait_until(SOON, "the next one is as ever", || format!("{:?}", desk.heard()), approved);
}

#[test]
fn with_the_bus_all_popups_go_and_another_bus_is_found() {
    let mut bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    server.wait_for(1);
    bus.end();
    desk.hears(&[(1, GONE)]);
    desk.raise(2);
    desk.hears(&[(1, GONE), (2, GONE)]);
    bus.begin();
    let server = Server::start(&bus);
    desk.raise(3);
    assert!(server.wait_for(1).title.ends_with("<3>"));
}

#[test]
fn no_more_than_a_bounded_number_is_kept() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    for id in 1..=40 {
        desk.raise(id);
    }
    desk.hears(&(33..=40).map(|id| (id, GONE)).collect::<Vec<_>>());
    server.wait_for(32);
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
