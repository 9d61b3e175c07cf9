use super::*;
use crate::control::Bridges as _;
use crate::hooks::listener::{Handle, Told};
use pilotlight_core::owner::Owner;
use pilotlight_core::time::Time;
use pilotlight_core::verdict::reported_state::{ReportedState, Wait};
use serde_json::json;
use tokio::sync::mpsc;

const SESSION: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";
const OWNER: u32 = 7;

fn bridges() -> Bridges {
    let config =
        HookConfig { folder: "/nowhere".into(), is_installed: Box::new(|| true), is_users: |_| true, shared: false };
    Bridges::at(config)
}

/// A hook that asks at this time, and what it is told.
fn hook(sub_agent: Option<&str>, at: i64) -> (HookEvent<Asked>, mpsc::Receiver<Told>) {
    hook_of(1, sub_agent, at)
}

fn hook_of(id: ConnectionId, sub_agent: Option<&str>, at: i64) -> (HookEvent<Asked>, mpsc::Receiver<Told>) {
    let input = json!({"session_id": SESSION, "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": format!("touch {id}")}, "agent_id": sub_agent});
    let (sender, told) = mpsc::channel(2);
    let asked = Asked::read(input.to_string().as_bytes()).unwrap();
    let hook = Hook { asked, owner: OWNER, at: Time(at), handle: Handle::new(sender) };
    (HookEvent::Asks(id, Box::new(hook)), told)
}

/// What the session's process says since then.
fn observed(state: State, since: i64) -> Observed {
    let since = Moment { wall: Time(since), awake: Time(since) };
    Observed {
        owner: Owner::Alive { pid: OWNER, started: None },
        reported_state: Some(ReportedState { state, since, by: "it".into(), waiting_tool: None }),
        ..Observed::default()
    }
}

fn texts(bridges: &Bridges) -> Vec<String> {
    let report = bridges.report(SESSION, OWNER, false);
    report.into_iter().flat_map(|report| report.requests).filter_map(|request| Some(request.asks?.into())).collect()
}

const WAITS: State = State::Waiting(Wait::Permission);

#[test]
fn case_743_a_hook_is_let_go_once_its_process_no_longer_waits() {
    // What its process says, since when, after a hook that asked at 1,000.
    for (says, is_open) in [
        (vec![(State::Busy, 500)], true),
        (vec![(WAITS, 1100)], true),
        (vec![(WAITS, 900), (State::Busy, 1500)], false),
        (vec![(WAITS, 1100), (State::Idle { shell: false }, 1500)], false),
        // It waited for something else, and the file is behind.
        (vec![(WAITS, 100), (State::Busy, 600)], true),
        // The wait was too short to be seen.
        (vec![(State::Busy, 1200)], true),
        (vec![(State::Busy, 5000)], false),
        (vec![(State::Ended, 1200)], false),
    ] {
        let mut bridges = bridges();
        let (asks, told) = hook(None, 1000);
        assert!(bridges.handle(asks, Moment::default()).is_some());
        says.iter().for_each(|(state, since)| bridges.observe(SESSION, &observed(*state, *since)));
        assert_eq!((texts(&bridges).len() == 1, !told.is_closed()), (is_open, is_open), "{says:?}");
    }
}

#[test]
fn case_743_a_newer_request_of_the_session_takes_the_place_of_the_one_before() {
    let mut bridges = bridges();
    let ((first, told), (second, _also)) = (hook_of(1, None, 1000), hook_of(2, None, 2000));
    bridges.handle(first, Moment::default());
    bridges.handle(second, Moment::default());
    assert!(told.is_closed());
    assert_eq!(texts(&bridges), ["touch 2"]);
    assert!(bridges.handle(HookEvent::Gone(1), Moment::default()).is_none());
    assert!(bridges.handle(HookEvent::Gone(2), Moment::default()).is_some() && texts(&bridges).is_empty());
}

#[test]
fn case_749_sub_agents_are_let_go_at_once_unless_a_setting_holds_them() {
    let mut bridges = bridges();
    let (asks, told) = hook(Some("a"), 1000);
    assert!(bridges.handle(asks, Moment::default()).is_none() && told.is_closed());
    bridges.configure(BridgeSettings { untried: false, hold_sub_agents: Span::seconds(60) });
    let ((one, mut held), (two, _also), (main, _too)) =
        (hook_of(1, Some("a"), 1000), hook_of(2, Some("b"), 1000), hook_of(3, None, 1000));
    for asks in [one, two, main] {
        bridges.handle(asks, Moment::default());
    }
    assert!(matches!(held.try_recv(), Ok(Told::Hold(span)) if span == HELD_MAX.to_std()));
    assert_eq!(texts(&bridges), ["touch 1", "touch 2", "touch 3"], "they ask beside each other");
    bridges.observe(SESSION, &observed(State::Busy, 5000));
    assert_eq!(texts(&bridges), ["touch 1", "touch 2"], "their dialogs are not there yet");
}

#[test]
fn case_750_what_is_in_doubt_is_let_go() {
    let asked = |prepare: fn(&mut Bridges, &mut Observed)| {
        let mut bridges = bridges();
        let mut observed = observed(WAITS, 1000);
        prepare(&mut bridges, &mut observed);
        let (asks, told) = hook(None, 1000);
        bridges.handle(asks, Moment::default());
        bridges.observe(SESSION, &observed);
        bridges.forget_unwatched(SESSION);
        !told.is_closed()
    };
    assert!(asked(|_, _| ()));
    assert!(!asked(|bridges, _| bridges.source.config.is_users = |_| false), "a tool may have started us");
    assert!(!asked(|_, observed| observed.untried = Some("9.9".into())), "a release that was not tried");
    assert!(!asked(|_, observed| observed.owner = Owner::Alive { pid: 8, started: None }), "another process");
    assert!(!asked(|_, observed| observed.owner = Owner::Never), "nobody watches it");
    assert!(asked(|bridges, observed| {
        observed.untried = Some("9.9".into());
        bridges.settings.untried = true;
    }));
}

#[test]
fn case_756_a_session_with_too_many_hooks_is_bounded() {
    let mut bridges = bridges();
    bridges.configure(BridgeSettings { untried: false, hold_sub_agents: Span::seconds(5) });
    let told: Vec<_> = (0..200)
        .map(|id| {
            let (asks, told) = hook_of(id, Some("a"), 1000);
            bridges.handle(asks, Moment::default());
            told
        })
        .collect();
    assert_eq!(told.iter().filter(|told| !told.is_closed()).count(), OPEN_MAX);
    let ids: std::collections::HashSet<_> = bridges.open.values().map(|open| open.hook.request.clone()).collect();
    assert!(ids.len() == OPEN_MAX && ids.iter().all(|id| pilotlight_core::text::is_uuid(id)));
}
