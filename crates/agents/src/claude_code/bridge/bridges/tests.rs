use super::*;
use crate::control::Bridges as _;
use crate::hooks::carry::Asks as _;
use crate::hooks::listener::{Handle, Told};
use pilotlight_core::owner::Owner;
use pilotlight_core::time::Time;
use pilotlight_core::verdict::reported_state::{ReportedState, Wait};
use serde_json::json;
use tokio::sync::mpsc;

const SESSION: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";
const OWNER: u32 = 7;

fn bridges() -> Bridges {
    Bridges::at(HookConfig::nowhere())
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

/// When a hook comes that asks at this time.
fn at(wall: i64) -> Moment {
    Moment { wall: Time(wall), awake: Time(wall) }
}

/// Two hooks of the session itself, the second of which asks while the first one does: the bridges, and what each is told.
fn two(first: i64, wait: i64, second: i64) -> (Bridges, [mpsc::Receiver<Told>; 2]) {
    let mut bridges = bridges();
    let ((one, told), (other, also)) = (hook_of(1, None, first), hook_of(2, None, second));
    bridges.handle(one, at(first));
    bridges.observe(SESSION, &observed(WAITS, wait));
    bridges.handle(other, at(second));
    bridges.observe(SESSION, &observed(WAITS, wait));
    (bridges, [told, also])
}

fn are_let_go(told: &[mpsc::Receiver<Told>; 2]) -> [bool; 2] {
    [told[0].is_closed(), told[1].is_closed()]
}

#[tokio::test]
async fn case_743_a_newer_request_takes_the_place_of_the_one_before_once_its_process_waits_anew() {
    let (mut bridges, told) = two(1000, 1100, 2000);
    assert_eq!((&*texts(&bridges), are_let_go(&told)), (&["touch 1".to_owned()][..], [false; 2]));
    bridges.observe(SESSION, &observed(WAITS, 2100));
    assert_eq!((&*texts(&bridges), are_let_go(&told)), (&["touch 2".to_owned()][..], [true, false]));
    assert!(bridges.handle(HookEvent::Gone(1), Moment::default()).is_none());
    assert!(bridges.handle(HookEvent::Gone(2), Moment::default()).is_some() && texts(&bridges).is_empty());
    // The process says so before the hook comes.
    let (bridges, told) = two(1000, 1900, 2000);
    assert_eq!(
        (texts(&bridges).len(), are_let_go(&told)),
        (1, [false; 2]),
        "it is the wait for the first one, as far as is known"
    );
    let mut early = self::bridges();
    let ((one, told), (other, also)) = (hook_of(1, None, 1000), hook_of(2, None, 5000));
    early.handle(one, at(1000));
    early.observe(SESSION, &observed(WAITS, 1100));
    early.observe(SESSION, &observed(WAITS, 4900));
    early.handle(other, at(5000));
    early.observe(SESSION, &observed(WAITS, 4900));
    assert_eq!((&*texts(&early), told.is_closed(), also.is_closed()), (&["touch 2".to_owned()][..], true, false));
    // What was shown is over, by what its process says, and the next is not asked yet there.
    let (mut bridges, told) = two(1000, 1100, 2000);
    bridges.observe(SESSION, &observed(State::Busy, 1900));
    assert_eq!((texts(&bridges).len(), are_let_go(&told)), (0, [true, false]));
    bridges.observe(SESSION, &observed(WAITS, 2200));
    assert_eq!(texts(&bridges), ["touch 2"]);
}

/// Any tool of a session may start a hook in its name, in the place of its own shell.
#[tokio::test]
async fn case_861_a_forged_request_takes_no_place() {
    // It comes while the process waits for the real one.
    let (mut bridges, told) = two(1000, 1100, 60_000);
    assert!(bridges.let_go_beside(at(61_999)).is_none());
    assert_eq!(bridges.let_go_beside(at(62_000)).as_deref(), Some(SESSION));
    assert_eq!((&*texts(&bridges), are_let_go(&told)), (&["touch 1".to_owned()][..], [false, true]));
    assert_eq!(control::Bridges::let_go(&bridges, SESSION, OWNER), None);
    // It goes with the wait that it came in: nothing of it is shown in between.
    let (mut bridges, told) = two(1000, 1100, 60_000);
    bridges.observe(SESSION, &observed(State::Busy, 60_500));
    assert_eq!((texts(&bridges).len(), are_let_go(&told)), (0, [true; 2]));
    // It came before the real one, for which the process waits.
    let mut early = self::bridges();
    let ((forged, told), (real, also)) = (hook_of(1, None, 1000), hook_of(2, None, 5000));
    early.handle(forged, at(1000));
    early.observe(SESSION, &observed(State::Busy, 500));
    early.handle(real, at(5000));
    early.observe(SESSION, &observed(WAITS, 5100));
    assert_eq!((&*texts(&early), told.is_closed(), also.is_closed()), (&["touch 2".to_owned()][..], true, false));
}

/// Each of two that come at once may be the forged one.
#[tokio::test]
async fn case_861_what_is_in_doubt_is_left_to_the_terminal_until_its_process_waits_anew() {
    let (mut bridges, told) = two(1000, 1100, 1400);
    bridges.let_go_beside(at(3400));
    assert_eq!((texts(&bridges).len(), are_let_go(&told)), (0, [true; 2]));
    let left = |bridges: &Bridges| control::Bridges::let_go(bridges, SESSION, OWNER);
    assert_eq!(left(&bridges), Some(LetGo::TwoAsk));
    let (again, told) = hook_of(3, None, 4000);
    bridges.handle(again, at(4000));
    bridges.observe(SESSION, &observed(WAITS, 1100));
    assert_eq!((texts(&bridges).len(), left(&bridges)), (0, Some(LetGo::TwoAsk)), "nor is the next one in that wait");
    bridges.let_go_beside(at(6000));
    assert!(told.is_closed());
    let (next, _told) = hook_of(4, None, 9000);
    bridges.handle(next, at(9000));
    bridges.observe(SESSION, &observed(WAITS, 9100));
    assert_eq!((&*texts(&bridges), left(&bridges)), (&["touch 4".to_owned()][..], None));
    // A process that does not say what it does tells of neither.
    let mut untold = observed(WAITS, 1100);
    untold.reported_state = None;
    let mut silent = self::bridges();
    let ((one, told), (other, also)) = (hook_of(1, None, 1000), hook_of(2, None, 60_000));
    silent.handle(one, at(1000));
    silent.observe(SESSION, &untold);
    silent.handle(other, at(60_000));
    silent.observe(SESSION, &untold);
    assert_eq!((told.is_closed(), also.is_closed(), left(&silent)), (true, true, Some(LetGo::TwoAsk)));
}

#[tokio::test]
async fn case_861_a_hook_that_asks_beside_another_is_let_go_in_time() {
    let clock = Clock::start();
    let now = clock.now();
    let mut bridges = bridges();
    let ((one, told), (other, also)) = (hook_of(1, None, now.wall.0 - 60_000), hook_of(2, None, now.wall.0));
    let before = Moment { wall: now.wall - Span::seconds(60), awake: now.awake - Span::seconds(60) };
    bridges.handle(one, before);
    bridges.handle(other, now);
    let news = std::future::poll_fn(|context| bridges.poll_news(context, &clock)).await;
    assert_eq!(news, BridgeNews::Of(SESSION.into()));
    assert_eq!((told.is_closed(), also.is_closed(), bridges.settles.is_none()), (false, true, true));
}

#[test]
fn case_860_a_session_that_two_processes_run_is_left_to_their_terminals() {
    let mut bridges = bridges();
    let (asks, told) = hook(None, 1000);
    bridges.handle(asks, at(1000));
    bridges.observe(SESSION, &Observed { contested: true, ..observed(WAITS, 1100) });
    assert!(told.is_closed() && texts(&bridges).is_empty());
}

#[test]
fn case_862_what_there_is_no_room_for_is_left_to_its_terminal_and_said() {
    let mut bridges = bridges();
    bridges.configure(BridgeSettings { untried: false, hold_sub_agents: Span::seconds(5) });
    let large = |id, length: usize, more: &str| {
        let input = json!({"session_id": SESSION, "hook_event_name": "PermissionRequest", "tool_name": "Write",
            "tool_input": {"file_path": "/p/a", "content": "x".repeat(length), "more": serde_json::from_str::<serde_json::Value>(more).unwrap()}, "agent_id": "a"});
        let (sender, told) = mpsc::channel(2);
        let asked = Asked::read(input.to_string().as_bytes()).unwrap();
        let hook = Hook { asked, owner: OWNER, at: Time(id), handle: Handle::new(sender) };
        (HookEvent::Asks(id as ConnectionId, Box::new(hook)), told)
    };
    let told: Vec<_> = (0..30)
        .map(|id| {
            let (asks, told) = large(id, 900_000, "1");
            bridges.handle(asks, at(id));
            told
        })
        .collect();
    let left = |bridges: &Bridges| control::Bridges::let_go(bridges, SESSION, OWNER);
    let open = told.iter().filter(|told| !told.is_closed()).count();
    assert_eq!((open, left(&bridges)), ((8 << 20) / 900_000, Some(LetGo::Full)));
    // What they ask is kept once, and nothing else of them.
    let kept: usize = bridges.open.values().map(|open| open.hook.hook.asked.kept()).sum();
    assert!(kept < 1000, "{kept}");
    let (small, _told) = large(100, 10, "1");
    bridges.handle(small, at(100));
    assert_eq!(left(&bridges), None, "it has room");
    let (parts, told) = large(101, 10, &json!(vec![0; 30_000]).to_string());
    bridges.handle(parts, at(101));
    assert_eq!((told.is_closed(), left(&bridges)), (true, Some(LetGo::TooMuch)));
    bridges.open.clear();
    let (asks, told) = large(102, 900_000, "1");
    bridges.handle(asks, at(102));
    assert!(!told.is_closed(), "the memory is free again");
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
