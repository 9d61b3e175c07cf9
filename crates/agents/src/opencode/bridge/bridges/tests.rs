use super::*;
use crate::control::Bridges as _;
use crate::hooks::listener::{Handle, Told};
use pilotlight_core::owner::Owner;
use pilotlight_core::time::Time;
use serde_json::json;
use tokio::sync::mpsc;

const SESSION: &str = "ses_1";

fn bridges() -> Bridges {
    Bridges::at(HookConfig::nowhere())
}

/// A hook that a process started to ask for the command `touch REQUEST`, and what it is told.
fn hook(id: ConnectionId, owner: u32, session: &str, request: &str) -> (HookEvent<Asked>, mpsc::Receiver<Told>) {
    let input = json!({"v": 1, "kind": "permission", "session": session, "directory": "/p", "request": {"id": request,
        "sessionID": session, "permission": "bash", "patterns": [], "metadata": {"command": format!("touch {request}")}}});
    let (sender, told) = mpsc::channel(2);
    let asked = Asked::read(input.to_string().as_bytes()).unwrap();
    (HookEvent::Asks(id, Box::new(Hook { asked, owner, at: Time(0), handle: Handle::new(sender) })), told)
}

fn texts(bridges: &Bridges, session: &str, owner: u32) -> Vec<String> {
    let report = bridges.report(session, owner, false);
    report.into_iter().flat_map(|report| report.requests).filter_map(|request| Some(request.asks?.into())).collect()
}

#[test]
fn case_784_requests_of_a_session_are_open_side_by_side_until_their_hooks_are_let_go() {
    let (mut bridges, own) = (bridges(), std::process::id());
    let ((two, told), (one, _also)) = (hook(1, own, SESSION, "per_2"), hook(2, own, SESSION, "per_1"));
    assert_eq!(bridges.handle(two, Moment::default()).as_deref(), Some(SESSION));
    bridges.handle(one, Moment::default());
    assert_eq!(texts(&bridges, SESSION, own), ["touch per_1", "touch per_2"], "one has overtaken the other");
    assert_eq!(bridges.report(SESSION, own, false).unwrap().about.unwrap().cwd.as_deref(), Some("/p"));
    drop(told);
    let (again, _too) = hook(3, own, SESSION, "per_2");
    bridges.handle(again, Moment::default());
    assert_eq!(texts(&bridges, SESSION, own), ["touch per_1", "touch per_2"], "asked anew");
    assert_eq!(bridges.handle(HookEvent::Gone(1), Moment::default()), None);
    assert_eq!(bridges.handle(HookEvent::Gone(2), Moment::default()).as_deref(), Some(SESSION));
    assert!(!bridges.was_answered(SESSION), "it was answered in its terminal");
    let open = bridges.open.values().next().unwrap();
    open.hook.is_answered.store(true, Ordering::Relaxed);
    bridges.handle(HookEvent::Gone(3), Moment::default());
    assert!(bridges.was_answered(SESSION) && bridges.report(SESSION, own, false).is_none());
}

#[test]
fn case_784_only_the_process_that_runs_a_session_asks_for_it() {
    let (mut bridges, own) = (bridges(), std::process::id());
    let (asks, _told) = hook(1, own, SESSION, "per_1");
    bridges.handle(asks, Moment::default());
    assert!(bridges.report("ses_2", own, false).is_none() && bridges.report(SESSION, 1, false).is_none());
    assert!(bridges.bridge(SESSION, 1).is_none() && bridges.bridge(SESSION, own).is_some());
    // Another process has its number meanwhile.
    let other = Process::of(1).unwrap();
    bridges.open.values_mut().for_each(|open| open.process = other);
    assert!(bridges.report(SESSION, own, false).is_none());
}

/// Another plugin may start a hook for a request that opencode's own one asks for.
#[test]
fn case_861_of_two_hooks_for_one_request_neither_is_shown() {
    let (mut bridges, own) = (bridges(), std::process::id());
    let ((one, told), (forged, also)) = (hook(1, own, SESSION, "per_1"), hook(2, own, SESSION, "per_1"));
    bridges.handle(one, Moment::default());
    assert_eq!(bridges.handle(forged, Moment::default()).as_deref(), Some(SESSION));
    assert!(told.is_closed() && also.is_closed() && texts(&bridges, SESSION, own).is_empty());
    assert_eq!(control::Bridges::let_go(&bridges, SESSION, own), Some(LetGo::TwoAsk));
    let (again, told) = hook(3, own, SESSION, "per_1");
    bridges.handle(again, Moment::default());
    assert!(told.is_closed() && texts(&bridges, SESSION, own).is_empty(), "nor is the next one for it");
    let (next, _told) = hook(4, own, SESSION, "per_2");
    bridges.handle(next, Moment::default());
    assert_eq!(texts(&bridges, SESSION, own), ["touch per_2"]);
    assert_eq!(control::Bridges::let_go(&bridges, SESSION, own), None);
}

/// The file that says who runs a session was removed, and written by another opencode.
#[test]
#[cfg(target_os = "linux")]
fn case_860_a_session_stays_with_the_process_that_it_was_seen_with() {
    let run = || pilotlight_system::process::testing::named(std::ffi::OsStr::new("opencode"));
    let ((_first, _, mut owner), (_second, _, other)) = (run(), run());
    let observed = |pid| Observed { owner: Owner::Alive { pid, started: None }, ..Observed::default() };
    let mut bridges = bridges();
    let ask = |bridges: &mut Bridges, pid| {
        let (asks, told) = hook(u64::from(pid), pid, SESSION, "per_1");
        bridges.handle(asks, Moment::default());
        bridges.observe(SESSION, &observed(pid));
        (texts(bridges, SESSION, pid), told)
    };
    assert_eq!(ask(&mut bridges, owner.pid()).0, ["touch per_1"]);
    let (shown, told) = ask(&mut bridges, other.pid());
    assert!(shown.is_empty() && told.is_closed() && texts(&bridges, SESSION, owner.pid()).is_empty());
    owner.end();
    assert_eq!(ask(&mut bridges, other.pid()).0, ["touch per_1"], "it was ended, and goes on in another process");
    bridges.observe(SESSION, &Observed { contested: true, ..observed(other.pid()) });
    assert!(texts(&bridges, SESSION, other.pid()).is_empty(), "by the reports of both");
}

#[tokio::test]
async fn case_784_what_is_in_doubt_is_let_go() {
    let own = std::process::id();
    let mut from_tool = bridges();
    from_tool.source.config.is_users = |_| false;
    let (asks, told) = hook(1, own, SESSION, "per_1");
    assert!(from_tool.handle(asks, Moment::default()).is_none() && told.is_closed());
    let mut gone = bridges();
    let (asks, told) = hook(1, u32::MAX, SESSION, "per_1");
    assert!(gone.handle(asks, Moment::default()).is_none() && told.is_closed(), "the process has ended");
    // Nobody watches its session.
    let mut unwatched = bridges();
    let ((asks, told), clock) = (hook(1, own, SESSION, "per_1"), Clock::start());
    unwatched.handle(asks, clock.now());
    let poll = |bridges: &mut Bridges| {
        let waker = std::task::Waker::noop();
        assert!(bridges.poll_news(&mut Context::from_waker(waker), &clock).is_pending());
    };
    poll(&mut unwatched);
    assert!(!told.is_closed(), "its report may be on its way");
    let observed = Observed { owner: Owner::Alive { pid: own, started: None }, ..Observed::default() };
    let before = Moment { wall: Time(0), awake: Time(clock.now().awake.0 - 60_000) };
    unwatched.open.values_mut().for_each(|open| open.hook.at = before);
    unwatched.observe("ses_2", &observed);
    poll(&mut unwatched);
    assert!(told.is_closed());
    let (asks, told) = hook(2, own, SESSION, "per_1");
    unwatched.handle(asks, before);
    unwatched.observe(SESSION, &observed);
    poll(&mut unwatched);
    assert!(!told.is_closed());
}

#[test]
fn case_784_a_flood_of_one_session_is_bounded() {
    let (mut bridges, own) = (bridges(), std::process::id());
    let told: Vec<_> = (0..200)
        .map(|id| {
            let (asks, told) = hook(id, own, SESSION, &format!("per_{id}"));
            bridges.handle(asks, Moment::default());
            told
        })
        .collect();
    assert_eq!(told.iter().filter(|told| !told.is_closed()).count(), OPEN_MAX);
}

/// A hook of opencode's is a process that opencode itself started beside it, as no tool is.
#[cfg(target_os = "linux")]
#[test]
fn case_788_a_process_that_is_no_hook_is_not_let_in() {
    assert_eq!(owner_of(std::process::id()), Err("it was not started as a hook"));
    assert_eq!(owner_of(1).err(), Some("it runs another program"));
    assert_eq!(leader(std::process::id()), getsid(None).ok());
}
