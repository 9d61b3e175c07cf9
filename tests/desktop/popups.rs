//! Popups on a notification server that shows them, reports clicks, forgets them, lies, or does not answer.

mod clicks;
mod servers;

use crate::desk::bus::Bus;
use crate::desk::popups::{Manner, Popups as Server};
use crate::support::{SOON, block_on, wait_until};
use pilotlight::tray::notify::{Note, NoteSender, PopupConfig, PopupEvent, Popups};
use pilotlight_core::action::Action;
use pilotlight_core::alert::{About, Button, Cause, Change, Popup, PopupId, ShownRequest};
use pilotlight_core::session::{HomeId, Key};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

const EXPIRED: PopupEvent = PopupEvent::Closed { by_user: false };
const DISMISSED: PopupEvent = PopupEvent::Closed { by_user: true };

/// More than the minimum time between a popup and a click that counts; an earlier click only shows the popup again.
const READING_TIME: Duration = Duration::from_secs(2);

/// The popups under test, and the events that they reported. Their clock advances only when a test calls
/// [`Desk::read`], so whether a click is too early does not depend on the machine.
struct Desk {
    popups: Popups,
    events: Arc<Mutex<Vec<(u64, PopupEvent)>>>,
    clock: Arc<Mutex<Instant>>,
}

impl Desk {
    fn new(bus: &Bus) -> Self {
        Self::with(bus, true)
    }

    fn with(bus: &Bus, may_answer: bool) -> Self {
        let events = Arc::<Mutex<Vec<_>>>::default();
        let sink = Arc::clone(&events);
        let clock = Arc::new(Mutex::new(Instant::now()));
        let time = Arc::clone(&clock);
        let popups = Popups::start(PopupConfig {
            runtime: block_on(async { Handle::current() }),
            bus: Some(bus.address()),
            may_answer: Box::new(move |pid| pid == std::process::id() && may_answer),
            now: Box::new(move || *time.lock().unwrap()),
            clicked: Box::new(move |id, clicked| sink.lock().unwrap().push((id.0, clicked))),
        });
        Self { popups, events, clock }
    }

    /// Advances the clock by the time that the user takes to read a popup.
    fn read(&self) {
        *self.clock.lock().unwrap() += READING_TIME;
    }

    /// The user reads the popup, then clicks.
    fn click_after_reading(&self, server: &Server, number: u32, action: &str) {
        self.read();
        server.click(number, action);
    }

    fn raise(&self, id: u64) -> Popup {
        let popup = popup(id);
        self.popups.apply(Change::Raise(popup.clone()));
        popup
    }

    /// Waits until the server has answered for all popups so far, by showing and withdrawing one more with this number.
    fn wait_for_answers(&self, server: &Server, id: u32) {
        self.raise(id.into());
        assert_eq!(server.wait_for(usize::try_from(id).unwrap()).number, id);
        self.popups.apply(Change::Withdraw(PopupId(id.into())));
        server.wait_for_closed(&[id]);
    }

    fn events(&self) -> Vec<(u64, PopupEvent)> {
        self.events.lock().unwrap().clone()
    }

    /// Waits until exactly these events were reported.
    fn wait_for_events(&self, expected: &[(u64, PopupEvent)]) {
        let dump = || format!("{:?}", self.events());
        let all = || (self.events().len() >= expected.len()).then_some(());
        wait_until(SOON, &format!("{expected:?} are reported"), dump, all);
        assert_eq!(self.events(), expected);
    }
}

/// A popup with Approve, about one session.
fn popup(id: u64) -> Popup {
    Popup {
        id: PopupId(id),
        about: About::One(Key::new(HomeId::default(), "a")),
        cause: Cause::NeedsPermission,
        asked: Some(ShownRequest { request: id, text: "make".into(), choices: Vec::new() }),
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
    assert_eq!(shown.lasts, 0, "it waits for an answer, so it does not expire");
    for (id, cause, urgency) in [(2, Cause::Stuck, "byte 0x01"), (3, Cause::Done, "byte 0x00")] {
        desk.popups.apply(Change::Raise(Popup { sound: false, cause, ..popup(id) }));
        let shown = server.wait_for(usize::try_from(id).unwrap());
        assert_eq!((shown.hint("urgency"), shown.hint("suppress-sound")), (Some(urgency), Some("true")));
        assert_eq!(shown.lasts, 10_000, "a time of its own: mako shows it for ever otherwise");
    }
    assert_eq!(server.capability_requests(), 1, "what it can do is asked once");
}

/// LXQt's server puts four or more actions into a list, which takes a second click.
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

/// GNOME Shell gives the keyboard to the first button of a banner, so Return that is typed elsewhere presses it.
#[test]
fn case_166_return_typed_elsewhere_approves_nothing() {
    let bus = Bus::start();
    let manner = Manner { name: "gnome-shell", ..Manner::default() };
    let (server, desk) = (Server::with(&bus, manner), Desk::new(&bus));
    let sets: [(&[Button], &str); 3] = [
        (&[Button::Act(Action::Approve), Button::Act(Action::Deny), Button::Mute], "approve"),
        (&[Button::Review, Button::Mute], "review"),
        (&[Button::Act(Action::Stop), Button::Mute], "stop"),
    ];
    for (id, (buttons, next)) in (1..).zip(sets) {
        desk.popups.apply(Change::Raise(Popup { buttons: buttons.to_vec(), ..popup(id) }));
        let shown = server.wait_for(usize::try_from(id).unwrap());
        assert_eq!(shown.actions[..2], ["later", "Not now"]);
        assert_eq!(shown.actions[2], next, "the others follow");
    }
    desk.click_after_reading(&server, 1, "later");
    desk.wait_for_events(&[(1, DISMISSED)]);
    server.wait_for_closed(&[1]);
    desk.click_after_reading(&server, 3, "stop");
    desk.wait_for_events(&[(1, DISMISSED), (3, PopupEvent::Action(Button::Act(Action::Stop)))]);
}

#[test]
fn case_216_the_first_button_is_harmless_wherever_a_server_may_focus_it() {
    for (name, focuses) in [
        ("gnome-shell", true),
        ("SwayNotificationCenter", true),
        ("one that nobody knows", true),
        ("Plasma", false),
        ("Xfce Notify Daemon", false),
        ("Notification Daemon", false),
        ("lxqt-notificationd", false),
        ("cinnamon", false),
        ("dunst", false),
        ("mako", false),
    ] {
        let bus = Bus::start();
        let (server, desk) = (Server::with(&bus, Manner { name, ..Manner::default() }), Desk::new(&bus));
        desk.raise(1);
        let shown = server.wait_for(1);
        assert_eq!(shown.actions[0] == "later", focuses, "{name}: {shown:#?}");
        // Only GNOME Shell drops what it has no room for.
        assert!(shown.actions.contains(&"approve".into()), "{name}: {shown:#?}");
    }
}

/// "Not now" is one of the three buttons that GNOME Shell draws.
#[test]
fn a_question_with_more_answers_than_buttons_is_answered_in_a_terminal() {
    let bus = Bus::start();
    let (choice, other) = (Button::Choice, Button::Act(Action::Answer));
    let asked =
        Some(ShownRequest { request: 1, text: "Which?".into(), choices: vec!["a".into(), "b".into(), "c".into()] });
    let all = [choice(0), choice(1), choice(2), Button::Mute];
    let own_words = [choice(0), choice(1), other, Button::Mute];
    let two = [choice(0), choice(1), Button::Mute];
    for (name, sets) in [
        (
            "gnome-shell",
            [
                (&all[..], "later answer default mute"),
                (&own_words, "later answer default mute"),
                (&two, "later choice-1 choice-2 default mute"),
            ],
        ),
        (
            "Xfce Notify Daemon",
            [
                (&all, "choice-1 choice-2 choice-3 default mute"),
                (&own_words, "choice-1 choice-2 answer mute"),
                (&two, "choice-1 choice-2 default mute"),
            ],
        ),
    ] {
        let (server, desk) = (Server::with(&bus, Manner { name, ..Manner::default() }), Desk::new(&bus));
        for (id, (buttons, names)) in (1..).zip(sets) {
            let popup =
                Popup { asked: asked.clone(), cause: Cause::NeedsInput, buttons: buttons.to_vec(), ..popup(id) };
            desk.popups.apply(Change::Raise(popup));
            let shown = server.wait_for(usize::try_from(id).unwrap());
            assert_eq!(shown.actions.iter().step_by(2).cloned().collect::<Vec<_>>().join(" "), names, "{name}");
        }
        if name == "gnome-shell" {
            desk.click_after_reading(&server, 1, "answer");
            desk.wait_for_events(&[(1, PopupEvent::Action(other))]);
        }
    }
}

/// GNOME's server plays no sound by default.
#[test]
fn a_server_that_plays_sounds_is_sent_a_sounds_name() {
    let bus = Bus::start();
    let (server, desk) =
        (Server::with(&bus, Manner { can: vec!["body", "sound"], ..Manner::default() }), Desk::new(&bus));
    for (id, (sound, name)) in (1..).zip([(true, Some("\"message-new-instant\"")), (false, None)]) {
        desk.popups.apply(Change::Raise(Popup { sound, ..popup(id) }));
        assert_eq!(server.wait_for(usize::try_from(id).unwrap()).hint("sound-name"), name);
    }
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
        assert_eq!(
            shown.actions.contains(&"approve".into()),
            actions == 8,
            "{can:?}: Approve only if the whole request is shown"
        );
    }
}

/// Cinnamon draws a picture large beside an icon that is named, and then cuts the labels of the buttons.
#[test]
fn case_801_a_picture_takes_no_room_from_buttons() {
    let bus = Bus::start();
    for (name, icon) in [("cinnamon", ""), ("Plasma", "pilotlight")] {
        let (server, desk) = (Server::with(&bus, Manner { name, ..Manner::default() }), Desk::new(&bus));
        desk.raise(1);
        let shown = server.wait_for(1);
        assert_eq!((&*shown.icon, shown.hint("image-data")), (icon, Some("a picture")), "{name}");
    }
}

/// Budgie draws no button that follows the default action.
#[test]
fn case_802_mute_is_drawn_where_the_default_action_hides_what_follows_it() {
    let bus = Bus::start();
    for (name, order) in [("Budgie Notification Server", "stop mute default"), ("Plasma", "stop default mute")] {
        let (server, desk) = (Server::with(&bus, Manner { name, ..Manner::default() }), Desk::new(&bus));
        desk.popups.apply(Change::Raise(Popup { buttons: vec![Button::Act(Action::Stop), Button::Mute], ..popup(1) }));
        let names: Vec<_> = server.wait_for(1).actions.into_iter().step_by(2).collect();
        assert_eq!(names.join(" "), order, "{name}");
    }
}

#[test]
fn a_popup_that_changes_keeps_its_place_and_does_not_return_after_it_was_closed() {
    let bus = Bus::start();
    let (server, desk) = (Server::start(&bus), Desk::new(&bus));
    let popup = desk.raise(1);
    let number = server.wait_for(1).number;
    desk.popups.apply(Change::Replace(Popup { title: "less".into(), ..popup.clone() }));
    let shown = server.wait_for(2);
    assert_eq!((shown.replaces, shown.number, &*shown.title), (number, number, "less"));
    server.close(number, 2);
    desk.wait_for_events(&[(1, DISMISSED)]);
    desk.popups.apply(Change::Replace(Popup { title: "nothing".into(), ..popup }));
    desk.raise(2);
    assert!(server.wait_for(3).title.ends_with("<2>"));
}
