//! Popups on a notification server that shows them, clicks them, forgets them, lies, or does not answer.

use crate::desk::bus::Bus;
use crate::desk::popups::{Manner, Popups as Server};
use crate::support::{SOON, block_on, wait_until};
use pilotlight::core::action::Action;
use pilotlight::core::alert::{About, Asked, Button, Cause, Change, Popup, PopupId};
use pilotlight::tray::notify::{Clicked, Means, Note, NoteSender, Popups};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

const GONE: Clicked = Clicked::Closed { by_user: false };
const PUT_AWAY: Clicked = Clicked::Closed { by_user: true };

/// So long nobody takes to read a popup and click; a click that comes sooner only shows it anew.
const READ: Duration = Duration::from_secs(2);

/// The popups under test, and what they told. Their clock stands still but for what a test takes for reading, so that a click
/// comes too soon or not however busy the machine is.
struct Desk {
    popups: Popups,
    heard: Arc<Mutex<Vec<(u64, Clicked)>>>,
    clock: Arc<Mutex<Instant>>,
}

impl Desk {
    fn new(bus: &Bus) -> Self {
        Self::that(bus, true)
    }

    fn that(bus: &Bus, may_answer: bool) -> Self {
        let heard = Arc::<Mutex<Vec<_>>>::default();
        let into = Arc::clone(&heard);
        let clock = Arc::new(Mutex::new(Instant::now()));
        let time = Arc::clone(&clock);
        let popups = Popups::start(Means {
            runtime: block_on(async { Handle::current() }),
            bus: Some(bus.address()),
            may_answer: Box::new(move |pid| pid == std::process::id() && may_answer),
            now: Box::new(move || *time.lock().unwrap()),
            clicked: Box::new(move |id, clicked| into.lock().unwrap().push((id.0, clicked))),
        });
        Self { popups, heard, clock }
    }

    /// The user has read what stands there.
    fn read(&self) {
        *self.clock.lock().unwrap() += READ;
    }

    /// The user reads what the server shows, and clicks.
    fn click_read(&self, server: &Server, number: u32, action: &str) {
        self.read();
        server.click(number, action);
    }

    fn raise(&self, id: u64) -> Popup {
        let popup = popup(id);
        self.popups.apply(Change::Raise(popup.clone()));
        popup
    }

    /// Waits until the answers to all popups so far have come: one more, of this number, is shown and taken back.
    fn has_heard(&self, server: &Server, id: u32) {
        self.raise(id.into());
        assert_eq!(server.wait_for(usize::try_from(id).unwrap()).number, id);
        self.popups.apply(Change::Withdraw(PopupId(id.into())));
        server.wait_for_closed(&[id]);
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
        asked: Some(Asked { request: id, text: "make".into(), choices: Vec::new() }),
        title: format!("Needs permission: <{id}>"),
        body: "shell\nmake && echo <done>".into(),
        sound: true,
        buttons: vec![Button::Act(Action::Approve), Button::Act(Action::Deny), Button::Mute],
    }
}

#[test]
fn a_popup_is_shown_with_its_buttons() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    desk.raise(1);
    let shown = server.wait_for(1);
    assert_eq!((&*shown.title, &*shown.body), ("Needs permission: <1>", "shell\nmake &amp;&amp; echo &lt;done&gt;"));
    let actions = ["approve", "Approve once", "deny", "Deny", "default", "Open", "mute", "Mute"];
    assert_eq!(shown.actions, actions);
    assert_eq!((shown.replaces, &*shown.icon), (0, "pilotlight"));
    let hint = |name: &str| shown.hint(name).map(str::to_owned);
    assert_eq!(hint("urgency").as_deref(), Some("byte 0x01"));
    assert_eq!(hint("category").as_deref(), Some("\"x-pilotlight.needs-permission\""));
    assert_eq!(hint("desktop-entry").as_deref(), Some("\"pilotlight\""));
    assert_eq!(hint("suppress-sound").as_deref(), Some("false"));
    assert_eq!(hint("image-data").as_deref(), Some("a picture"));
    assert_eq!(shown.lasts, 0, "it waits for an answer, and does not expire");
    for (id, cause, urgency) in [(2, Cause::Stuck, "byte 0x01"), (3, Cause::Done, "byte 0x00")] {
        desk.popups.apply(Change::Raise(Popup { sound: false, cause, ..popup(id) }));
        let shown = server.wait_for(usize::try_from(id).unwrap());
        assert_eq!((shown.hint("urgency"), shown.hint("suppress-sound")), (Some(urgency), Some("true")));
        assert_eq!(shown.lasts, -1, "as long as the server likes");
    }
    assert_eq!(server.asked(), 1, "what it can do is asked once");
}

/// LXQt's makes a list of four actions, in which a click is two.
#[test]
fn a_server_that_draws_three_buttons_is_given_three() {
    let bus = Bus::start();
    let manner = Manner { name: "lxqt-notificationd", ..Manner::default() };
    let (server, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    let few: [(&[Button], &[&str]); 3] = [
        (&[Button::Act(Action::Approve), Button::Act(Action::Deny), Button::Mute], &["approve", "deny", "mute"]),
        (
            &[Button::Act(Action::Approve), Button::Act(Action::Deny), Button::Act(Action::ShowTerminal), Button::Mute],
            &["approve", "deny", "show-terminal"],
        ),
        (&[Button::Review, Button::Mute], &["review", "default", "mute"]),
    ];
    for (id, (buttons, names)) in (1..).zip(few) {
        desk.popups.apply(Change::Raise(Popup { buttons: buttons.to_vec(), ..popup(id) }));
        let shown = server.wait_for(usize::try_from(id).unwrap());
        assert_eq!(shown.actions.iter().step_by(2).collect::<Vec<_>>(), names);
    }
}

/// GNOME's plays none by itself.
#[test]
fn a_server_that_plays_sounds_is_told_which() {
    let bus = Bus::start();
    let (server, desk) =
        (Server::with(&bus, Manner { can: vec!["body", "sound"], ..Manner::default() }), Desk::new(&bus));
    for (id, (sound, name)) in (1..).zip([(true, Some("\"message-new-instant\"")), (false, None)]) {
        desk.popups.apply(Change::Raise(Popup { sound, ..popup(id) }));
        assert_eq!(server.wait_for(usize::try_from(id).unwrap()).hint("sound-name"), name);
    }
}

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
