//! Sessions of other machines in the menu, and machines that are not reached.

use super::*;
use crate::tray::view::Reviewed;
use pilotlight_core::action::Which;
use pilotlight_core::agent::Agent;
use pilotlight_core::remote::RemoteHost;
use pilotlight_core::remote::{Clocks, SessionReport, read};
use pilotlight_engine::Trouble;

/// Adds a session of devbox that asks to run this.
fn add_remote(world: &mut World, command: &str) -> Key {
    let mut there = World::new();
    there.add("api", Status::Working);
    there.ask("api", 7, command);
    let (_, session, _) = there.sessions.pop().unwrap();
    let row = session.row(world.now, &Limits::default()).0;
    let report = SessionReport::of(&session, &row, (&row.name, &row.label), world.now);
    let (host, clocks) =
        (RemoteHost { name: "devbox".into(), has_terminal: true }, Clocks { now: world.now, ..Clocks::default() });
    let session = read(&host, report, &clocks, Agent::reported).unwrap();
    let (key, row) = (Key::remote("devbox", "api"), session.row(world.now, &Limits::default()).0);
    world.sessions.push((key.clone(), session, row));
    key
}

#[test]
fn case_418_a_session_of_another_machine_is_answered_there_and_nothing_of_it_is_opened_here() {
    let mut world = World::new();
    world.add("api", Status::Idle);
    let key = add_remote(&mut world, "rm -rf build");
    let view = world.update().unwrap();
    assert!(world.entries().contains(&"⚑ x @devbox — rm -rf build".to_owned()), "{:?}", world.entries());
    let effect = |kind| view.effect_of(&ItemId::of(&key, kind)).cloned();
    let call = Call::of("request-7");
    let Some(Effect::Act(order)) = effect(Kind::Approve(call)) else { panic!("{view:#?}") };
    assert_eq!((order.host.as_deref(), &*order.id), (Some("devbox"), "api"));
    let shown = Which::Shown { id: "request-7".into(), text: "rm -rf build".into() };
    assert_eq!(order.operation, Operation::Approve(shown));
    for kind in [Kind::OpenFolder, Kind::OpenLog, Kind::CopyResume, Kind::Act(Action::ShowTerminal)] {
        assert_eq!(effect(kind), None, "{kind:?}");
    }
    // One with the same id here is not meant by it.
    assert_eq!(world.effect("api", Kind::Approve(call)), None);
    let mut world = World::new();
    let key = add_remote(&mut world, &"long ".repeat(100));
    let view = world.update().unwrap();
    let review = view.effect_of(&ItemId::of(&key, Kind::Details(call))).cloned();
    let request = "request-7".into();
    assert_eq!(
        review,
        Some(Effect::Review { what: Reviewed::Permission, id: "api".into(), host: Some("devbox".into()), request })
    );
}

#[test]
fn case_418_a_machine_that_is_not_reached_is_a_row_with_the_reason_and_another_try() {
    let mut world = World::all(&["api"], Status::Idle);
    let trouble = |host: &str| Trouble {
        host: host.into(),
        why: "nothing listens\u{1b} there".into(),
        since: world.now.wall,
        again: None,
    };
    let troubles = ["devbox", "gpu", "third", "fourth"].map(trouble);
    world.menu.set_troubles(&troubles[..1], &[]);
    let view = world.update().unwrap();
    assert_eq!(world.entries()[1], "devbox is not reached");
    let items = world.submenu(Kind::Host(0));
    let words = |item: &Item| item.words().map(|text| text.at(world.now)).unwrap_or_default();
    assert_eq!(words(&items[0]), "nothing listens there");
    assert!(words(&items[1]).starts_with("Since "), "{items:?}");
    let retry = view.effect_of(&ItemId::own(Kind::RetryHost(0)));
    assert_eq!(retry, Some(&Effect::RetryHost("devbox".into())));
    world.menu.set_troubles(&troubles, &[]);
    world.after(Span::seconds(2)).unwrap();
    assert_eq!(
        world.entries()[1..4],
        ["devbox is not reached", "gpu is not reached", "2 more machines are not reached"]
    );
}
