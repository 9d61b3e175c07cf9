//! Bounds on popups and wakeups, by examples and for random sequences of events.
//!
//! After every update the stage itself checks the invariants: a session has at most one popup, no popup is open for a
//! cause that is over, popups stay within their bound, sessions that are gone are forgotten, every wakeup lies ahead.

use super::stage::Stage;
use pilotlight_core::action::Action;
use pilotlight_core::alert::{About, Button, Detail, Kinds, Pause, Settings};
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status;
use proptest::prelude::*;

/// Something that may happen.
#[derive(Clone, Debug)]
enum Event {
    TimePasses(i64),
    Status(u8, Status),
    Asks(u8, u64, bool),
    Completes(u8, i64),
    Answerable(u8, bool),
    Seen(u8),
    Disappears(u8),
    Closes(u8, bool),
    InTerminal(u8, Option<bool>),
    Mutes(u8),
    MutesFolder(u8),
    Unmutes,
    Pauses(Option<i64>),
    Resumes,
    Wakes,
    Minute(u16),
    WallJumps(i64),
    Settings(Settings),
}

fn settings() -> impl Strategy<Value = Settings> {
    let spans = (0..3000i64, 0..400_000i64, prop::option::of(0..900_000i64), 0..3i64);
    let hours = prop::option::of((0..1440u16, 0..1440u16));
    (spans, hours, any::<[bool; 8]>()).prop_map(|((gather, cooldown, again, done), hours, on)| {
        let detail = if on[7] { Detail::None } else { Detail::Full };
        let kinds = Kinds { done: on[0], stuck: on[1] || on[2], failed: on[3] || on[4], ..Kinds::default() };
        let settings =
            Settings { kinds, sound: on[5], quiet_hours: hours.filter(|_| on[6]), detail, ..Settings::default() };
        let (gather, cooldown, escalate_after) = (Span(gather), Span(cooldown), again.map(Span));
        Settings { gather, cooldown, escalate_after, done_min: Span::minutes(done), ..settings }
    })
}

fn event() -> impl Strategy<Value = Event> {
    let who = 0..7u8;
    let status = prop::sample::select(Status::ALL.to_vec());
    let gap = prop_oneof![4 => 0..1500i64, 3 => 0..70_000i64, 2 => 0..700_000i64, 1 => 0..90_000_000i64];
    prop_oneof![
        8 => gap.prop_map(Event::TimePasses),
        8 => (who.clone(), status).prop_map(|(who, status)| Event::Status(who, status)),
        4 => (who.clone(), 0..4u64, any::<bool>()).prop_map(|(who, id, known)| Event::Asks(who, id, known)),
        2 => (who.clone(), 0..200i64).prop_map(|(who, took)| Event::Completes(who, took)),
        2 => (who.clone(), any::<bool>()).prop_map(|(who, can)| Event::Answerable(who, can)),
        1 => who.clone().prop_map(Event::Seen),
        1 => who.clone().prop_map(Event::Disappears),
        3 => (who.clone(), any::<bool>()).prop_map(|(who, by_user)| Event::Closes(who, by_user)),
        2 => (who.clone(), any::<Option<bool>>()).prop_map(|(who, focus)| Event::InTerminal(who, focus)),
        1 => who.clone().prop_map(Event::Mutes),
        1 => who.prop_map(Event::MutesFolder),
        1 => Just(Event::Unmutes),
        1 => prop::option::of(-1000..100_000i64).prop_map(Event::Pauses),
        1 => Just(Event::Resumes),
        1 => Just(Event::Wakes),
        1 => (0..1440u16).prop_map(Event::Minute),
        1 => (-4_000_000..4_000_000i64).prop_map(Event::WallJumps),
        1 => settings().prop_map(Event::Settings),
    ]
}

fn apply(stage: &mut Stage, event: Event, now: &mut Span) {
    let id = |who: u8| who.to_string();
    match event {
        Event::TimePasses(span) => {
            *now = *now + Span(span);
            stage.at(*now);
        }
        Event::Status(who, status) => drop(stage.is(&id(who), status)),
        Event::Asks(who, request, known) => drop(stage.asks(&id(who), request, known.then_some("make"))),
        Event::Completes(who, took) => drop(stage.completes(&id(who), Span::seconds(took))),
        Event::Answerable(who, can) => drop(stage.change(&id(who), |actor| {
            actor.request = actor.request.take().map(|(id, _, _)| (id, Some("make".into()), can));
        })),
        Event::Seen(who) => drop(stage.change(&id(who), |actor| {
            actor.row.is_seen = true;
            actor.row.unseen = false;
        })),
        Event::Disappears(who) => drop(stage.disappears(&id(who))),
        Event::Closes(who, by_user) => {
            if stage.popup(&id(who)).is_some() {
                stage.closes(&id(who), by_user);
            }
        }
        Event::InTerminal(who, has_focus) => drop(stage.in_terminal(&id(who), has_focus)),
        Event::Mutes(who) => stage.alerts.quiet.mute_session(&id(who)),
        Event::MutesFolder(who) => stage.alerts.quiet.mute_folder(&format!("/code/{who}")),
        Event::Unmutes => stage.alerts.quiet.unmute_all(),
        Event::Pauses(until) => stage.alerts.quiet.pause(match until {
            Some(ahead) => Pause::Until(stage.moment().wall + Span(ahead)),
            None => Pause::UntilResumed,
        }),
        Event::Resumes => stage.alerts.quiet.resume(),
        Event::Wakes => drop(stage.wakes()),
        Event::Minute(minute) => stage.minute = minute,
        Event::WallJumps(by) => stage.wall_jumps(now.0 / 1000, Span(by)),
        Event::Settings(settings) => stage.alerts.settings = settings,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold_whatever_happens(start in settings(), events in prop::collection::vec(event(), 1..120)) {
        let mut stage = Stage::with(start);
        let mut now = Span::ZERO;
        for event in events {
            apply(&mut stage, event, &mut now);
            stage.update();
            if stage.alerts.quiet.paused().is_some() {
                prop_assert!(stage.open.is_empty(), "open during a pause");
            }
            for popup in stage.open.values() {
                prop_assert_eq!(popup.asked.is_some(), popup.buttons.contains(&Button::Act(Action::Approve)));
                prop_assert!(popup.asked.is_none() || matches!(popup.about, About::One(_)));
                prop_assert!(stage.alerts.settings.detail == Detail::Full || popup.body.is_empty(), "{popup:#?}");
            }
        }
        // Once nothing happens any more, quiet hours are soon the only reason to wake.
        stage.alerts.settings.quiet_hours = None;
        let before = stage.updates;
        stage.at(now + Span::hours(100));
        prop_assert!(stage.updates - before < 40, "{} updates", stage.updates - before);
        prop_assert_eq!(stage.alerts.wake_at(), None);
        stage.actors.clear();
        stage.update();
        prop_assert_eq!((stage.alerts.remembered(), stage.open.len()), (0, 0));
    }
}

#[test]
fn thousands_of_changes_a_second_raise_few_popups() {
    let mut stage = Stage::new();
    let ids: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    for (n, round) in (0..30).zip(Status::ALL.into_iter().cycle()) {
        stage.at(f64::from(n) * 0.1).are(&ids, round);
    }
    stage.at(600);
    assert!(stage.raised.len() < 20, "{}", stage.raised.len());
}

#[test]
fn there_is_no_wakeup_while_nothing_waits() {
    let mut stage = Stage::new();
    stage.is("a", Status::Working).at(10).completes("a", Span::minutes(1));
    assert_eq!(stage.alerts.wake_at(), None);
}
