//! Tests of what the menu says of its sessions: the headline, remedies, folds, and how much of a name is shown.

use super::*;
use crate::tray::view::Reviewed;
use pilotlight_agents::adapter::{ADAPTERS, FIRST};
use pilotlight_core::alert::Detail;
use pilotlight_core::owner::HoldProof;

#[test]
fn a_remedy_that_mends_comes_before_one_that_only_shows_a_terminal() {
    let mut world = World::new();
    for n in 0..3 {
        let name = format!("terminal {n}");
        world.add(&name, Status::PermissionLost);
        world.session(&name).observed.owner = Owner::Alive { pid: 1, started: None };
        world.session(&name).observed.about.kind = Use::Terminal;
        world.session(&name).control.server = ServerState::NotListening;
    }
    let crashed = "36535f61-5c7b-4f09-a70b-2f8aed972800";
    world.add(crashed, Status::Crashed);
    world.session(crashed).observed.owner = Owner::Gone { pid: 1, at: None };
    world.update().unwrap();
    let shown = names(&world.menu.shown.as_ref().unwrap().items);
    assert_eq!(shown, ["terminal 0", "+", "terminal 1", "+", "terminal 2", crashed, "+"]);
}

#[test]
fn folds_say_what_they_hold() {
    let mut world = World::new();
    let crashed: Vec<_> = (0..9).map(|n| format!("crashed {n}")).collect();
    crashed.iter().for_each(|name| world.add(name, Status::Crashed));
    world.add("asks", Status::NeedsInput);
    world.add("fails", Status::Failed);
    for name in ["a", "b", "c", "d"] {
        world.add(name, Status::Idle);
        world.row(name).unseen = true;
    }
    world.update().unwrap();
    let entries = world.entries();
    for fold in ["3 more: 2 crashed, 1 failed", "4 idle, all new"] {
        assert!(entries.contains(&fold.to_owned()), "{fold}: {entries:#?}");
    }
    for name in &crashed {
        world.set(name, Status::Working);
    }
    world.menu.capacity = 12;
    world.after(SHAPE_INTERVAL).unwrap();
    assert!(world.entries().contains(&"5 more working".to_owned()), "{:#?}", world.entries());
}

#[test]
fn a_folder_that_all_share_is_left_out_of_their_rows() {
    let mut world = World::all(&["a", "b"], Status::Stuck);
    for (name, title) in [("a", "Load test"), ("b", "Rotate TLS")] {
        world.row(name).label = Label { who: "infra".into(), agent: None, title: Some(title.into()) };
    }
    world.update().unwrap();
    assert_eq!(world.entries()[2..4], ["◷ Load test — is stuck", "◷ Rotate TLS — is stuck"]);
    world.add("c", Status::Working);
    world.row("c").label = Label { who: "docs".into(), agent: None, title: Some("Translate".into()) };
    world.after(SHAPE_INTERVAL).unwrap();
    assert_eq!(world.entries()[2..4], ["◷ infra · Load test — is stuck", "◷ infra · Rotate TLS — is stuck"]);
}

#[test]
fn the_headline_names_the_first_session_and_leads_to_it() {
    let mut world = World::all(&["works"], Status::Working);
    let headline = |world: &World| {
        let view = world.menu.shown.clone().unwrap();
        let effect = view.effect_of(&ItemId::own(Kind::Headline)).cloned().unwrap();
        (text(&view.items[0]), view.tooltip.clone(), effect)
    };
    world.update().unwrap();
    assert_eq!(headline(&world), ("1 working".into(), "1 working".into(), Effect::LiveTable));
    world.add("api", Status::Stuck);
    world.ask("api", 1, "rm -rf build && cargo test --workspace --locked");
    world.after(SHAPE_INTERVAL).unwrap();
    let (text, tooltip, effect) = headline(&world);
    assert_eq!(text, "1 needs you · api wants to run rm -rf build && …");
    assert_eq!(tooltip, "1 needs you · api wants to run rm -rf build && cargo test --workspace --locked · 1 working");
    assert_eq!(
        effect,
        Effect::Review { what: Reviewed::Permission, id: "api".into(), host: None, request: "request-1".into() }
    );
    world.menu.set_notifications(&NotificationState { detail: Detail::Title, ..NotificationState::default() });
    world.after(SHAPE_INTERVAL).unwrap();
    assert_eq!(headline(&world).1, "1 needs you · 1 working", "a tooltip may be read by others");
    world.answered("api");
    world.set("api", Status::Stuck);
    world.session("api").control.server = ServerState::NotListening;
    world.session("api").observed.about.kind = Use::Terminal;
    world.after(SHAPE_INTERVAL).unwrap();
    let show = Effect::Act(Box::new(Order { who: "api".into(), ..Order::new("api", Operation::ShowTerminal) }));
    assert_eq!((headline(&world).0, headline(&world).2), ("1 needs you · api is stuck".into(), show));
}

/// Case 391: the settings that it would change are the user's, of whose nothing is changed by a demo.
#[test]
fn case_391_no_machine_is_added_from_a_demo() {
    for (demo, offered) in [(false, 1), (true, 0)] {
        let mut world = World::all(&["api"], Status::Idle);
        (world.menu.demo, world.menu.edits_settings) = (demo, !demo);
        world.after(SHAPE_INTERVAL);
        let entries = world.menu.shown.as_ref().unwrap();
        assert_eq!(entries.effect_of(&ItemId::own(Kind::AddHost)).iter().count(), offered, "{demo}");
    }
}

/// The entry under Settings does not depend on it.
#[test]
fn case_228_the_bridge_is_offered_while_a_terminal_is_out_of_reach() {
    const OFFER: &str = "Answer terminal sessions from here…";
    let mut world = World::all(&["api"], Status::Idle);
    let session = world.session("api");
    session.observed.owner = Owner::Alive { pid: 1, started: None };
    session.observed.about.kind = Use::Terminal;
    session.control.server = ServerState::NotListening;
    let offered = |world: &mut World| {
        world.after(SHAPE_INTERVAL);
        world.entries().iter().filter(|entry| *entry == OFFER).count()
    };
    assert_eq!(offered(&mut world), 0, "it can be neither installed nor removed, as in a demo");
    let bridge = |state, is_offered| AgentBridge { agent: FIRST, state, is_offered };
    world.menu.set_bridges(vec![bridge(Bridge::Off, true)]);
    assert_eq!(offered(&mut world), 1);
    let effect = world.menu.shown.as_ref().unwrap().effect_of(&ItemId::own(Kind::OfferBridge(0))).cloned();
    assert_eq!(effect, Some(Effect::Bridge("copilot", true)));
    for (state, open) in [(Bridge::Off, false), (Bridge::On, true), (Bridge::Old, true)] {
        world.menu.set_bridges(vec![bridge(state, open)]);
        assert_eq!(offered(&mut world), 0, "{state:?} {open}");
    }
    world.menu.set_bridges(vec![bridge(Bridge::Off, true)]);
    let plain = world.session("api").clone();
    let others: [fn(&mut Session); 7] = [
        |session| session.observed.about.kind = Use::Sdk,
        |session| session.observed.owner = Owner::Gone { pid: 1, at: None },
        |session| session.control.server = ServerState::Listening,
        |session| session.control.bridge = Some(pilotlight_core::action::Bridge::Joined),
        |session| session.observed.allows = Allows::Nothing { why: "its agent cannot be acted on".into() },
        |session| session.observed.allows = Allows::Process,
        |session| {
            session.observed.allows = Allows::Only { actions: [].as_slice().into(), why: "it has no bridge".into() }
        },
    ];
    for change in others {
        assert_eq!(offered(&mut world), 1);
        change(world.session("api"));
        assert_eq!(offered(&mut world), 0);
        *world.session("api") = plain.clone();
    }
}

/// Each agent's is offered for its own sessions, and named where there are several.
#[test]
fn the_bridge_of_each_agent_is_offered_for_its_own_sessions() {
    let claude = *ADAPTERS.iter().find(|adapter| adapter.name() == "claude-code").unwrap();
    let mut world = World::all(&["api"], Status::Idle);
    let session = world.session("api");
    session.observed.owner = Owner::Alive { pid: 1, started: None };
    session.observed.about.kind = Use::Terminal;
    (session.observed.agent, session.observed.allows) = (claude.agent(), Allows::Process);
    let bridge = |agent, state| AgentBridge { agent, state, is_offered: true };
    let offered = |world: &mut World| {
        world.after(SHAPE_INTERVAL);
        let entries = world.entries();
        entries.iter().filter(|entry| entry.contains("sessions from here")).cloned().collect::<Vec<_>>()
    };
    let both = |of_claude| vec![bridge(FIRST, Bridge::Off), bridge(claude, of_claude)];
    world.menu.set_bridges(both(Bridge::Off));
    assert_eq!(offered(&mut world), ["Answer Claude Code sessions from here…"]);
    let effect = world.menu.shown.as_ref().unwrap().effect_of(&ItemId::own(Kind::OfferBridge(1))).cloned();
    assert_eq!(effect, Some(Effect::Bridge("claude-code", true)));
    world.menu.set_bridges(both(Bridge::On));
    assert_eq!(offered(&mut world), Vec::<String>::new());
    world.menu.set_bridges(vec![bridge(claude, Bridge::Off)]);
    assert_eq!(offered(&mut world), ["Answer terminal sessions from here…"]);
}

#[test]
fn case_230_a_terminal_that_cannot_be_shown_is_offered_neither_in_the_menu_nor_in_json() {
    for why in [None, Some("it runs in no tmux pane")] {
        let mut world = World::all(&["api"], Status::Stuck);
        let now = world.now;
        let session = world.session("api");
        session.observed.owner = Owner::Alive { pid: 1, started: None };
        session.observed.about.kind = Use::Terminal;
        session.control.server = ServerState::NotListening;
        session.terminal = Some((1, why.map(Into::into)));
        let row = session.row(now, &Limits::default()).0;
        let row = Row { status: Status::Stuck, ..row };
        assert_eq!(row.actions.contains(&Action::ShowTerminal), why.is_none(), "{row:?}");
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(json.contains("show-terminal"), why.is_none(), "{json}");
        *world.row("api") = row;
        world.after(SHAPE_INTERVAL);
        let items = format!("{:?}", world.menu.shown.as_ref().unwrap().items);
        assert_eq!(items.contains("ShowTerminal)"), why.is_none(), "{items}");
        assert_eq!(why.is_some_and(|why| items.contains(why)), why.is_some(), "the menu says why");
    }
}

#[test]
fn force_quit_is_in_the_menu_only_where_it_is_not_refused() {
    for (allows, is_killed) in [(Allows::All, true), (Allows::Process, false)] {
        let mut world = World::all(&["api"], Status::Working);
        let session = world.session("api");
        session.observed.owner = Owner::Alive { pid: 1, started: None };
        session.observed.held = HoldProof::Verified;
        session.observed.about.kind = Use::Terminal;
        session.control.server = ServerState::NotListening;
        session.observed.allows = allows;
        world.after(SHAPE_INTERVAL);
        let items = format!("{:?}", world.menu.shown.as_ref().unwrap().items);
        assert!(items.contains("\"End it\""), "{items}");
        assert_eq!(items.contains("Force quit"), is_killed, "{items}");
    }
}
