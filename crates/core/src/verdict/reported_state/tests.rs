use crate::agent::Agent;
use crate::event::{Body, Event, ToolResult};
use crate::facts::Facts;
use crate::limits::Limits;
use crate::owner::Owner;
use crate::scan::Text;
use crate::session::Session;
use crate::time::{Moment, Span, Time};
use crate::verdict::reported_state::{ReportedState, State, Wait, WaitingTool};
use crate::verdict::{Liveness, Observations, Status, judge};

const START: i64 = 1_795_461_440_000;
const BY: &str = "its process";

fn at(millis: i64) -> Moment {
    Moment::of(Time(START + millis))
}

fn facts(events: &[(i64, Body<'_>)]) -> Facts {
    let mut facts = Facts::default();
    for (millis, body) in events {
        let at = at(*millis);
        facts.fold(&Event::of(b"x", at.wall, body.clone()), at, &Limits::default());
    }
    facts
}

const PROMPT: Body<'_> = Body::Prompt { joins: false, continuation: false, autopilot: None };

fn tool<'a>(name: &'a str, asks: bool) -> Body<'a> {
    let (call, name, command) = (Text(b"t"), Some(Text(name.as_bytes())), Some(Text(b"make")));
    Body::ToolStart { call, name, command, detached: false, asks, question: None, nested: false, asks_unseen: false }
}

fn answer(asks: bool) -> Body<'static> {
    Body::Answer { asks, model: None }
}

fn told_by(
    facts: &Facts,
    state: State,
    since: i64,
    asks: Option<WaitingTool>,
    owner: &Owner,
    now: i64,
) -> (Status, String) {
    let reported_state = ReportedState { state, since: at(since), by: BY.into(), waiting_tool: asks };
    let told = Observations { agent: &Agent::default(), facts, reported_state: Some(&reported_state) };
    let verdict = judge(told, owner, &Liveness::default(), None, at(now), &Limits::default());
    (verdict.status, verdict.because.to_string())
}

fn told(facts: &Facts, state: State, since: i64, now: i64) -> (Status, String) {
    told_by(facts, state, since, None, &Owner::Alive { pid: 7, started: None }, now)
}

const IDLE: State = State::Idle { shell: false };
const PERMISSION: State = State::Waiting(Wait::Permission);

#[test]
fn idle_ends_a_turn_once_it_has_lasted() {
    let done = facts(&[(0, PROMPT), (1000, answer(false))]);
    assert_eq!(told(&done, IDLE, 1100, 1300).0, Status::Finishing, "a sub-agent's end may follow");
    assert_eq!(told(&done, IDLE, 1100, 1600).0, Status::Idle);
    // A prompt is in the log before its process says so.
    assert_eq!(told(&facts(&[(0, PROMPT)]), IDLE, -5000, 4900).0, Status::Working);
    assert_eq!(told(&facts(&[(0, PROMPT)]), IDLE, -5000, 5000).0, Status::Idle);
    // One that was stopped is at rest at once, and has answered nothing.
    let stopped = facts(&[(0, PROMPT), (1000, Body::Abort)]);
    assert_eq!(told(&stopped, IDLE, 1050, 1100).0, Status::Idle);
    // A session that was resumed has come to rest long ago.
    assert_eq!(told(&done, IDLE, 9000, 9001).0, Status::Idle);
    // Esc while its model is silent leaves nothing in the log. What else ends a turn is in the log within a second.
    let silent = facts(&[(0, PROMPT)]);
    assert_eq!(told(&silent, IDLE, 30_000, 30_999).0, Status::Working);
    assert_eq!(told(&silent, IDLE, 30_000, 31_000).0, Status::Idle);
    let asks = facts(&[(0, PROMPT), (1000, answer(true))]);
    assert_eq!(told(&asks, IDLE, 1100, 1600).0, Status::NeedsInput);
    let (status, because) = told(&done, State::Idle { shell: true }, 1100, 9000);
    assert_eq!((status, &*because), (Status::Idle, "done, your turn, 1 background shell"));
}

/// Case 353: the process of a session says that it is idle before the log says that its turn failed.
#[test]
fn case_353_a_turn_that_fails_is_never_idle_in_between() {
    let error = Body::Error { kind: None, message: None, status: None };
    let asked = facts(&[(0, PROMPT), (5000, Body::ModelAsked { request: Text(b"one") })]);
    let failed = facts(&[(0, PROMPT), (5000, Body::ModelAsked { request: Text(b"one") }), (9600, error)]);
    let mut said = vec![told(&asked, State::Busy, 0, 8900).0];
    said.extend([9000, 9300, 9599].map(|now| told(&asked, IDLE, 9000, now).0));
    said.extend([9600, 9700, 30_000].map(|now| told(&failed, IDLE, 9000, now).0));
    let [working, failed] = [Status::Working, Status::Failed];
    assert_eq!(said, [working, working, working, working, failed, failed, failed]);
    // A turn that another process left open is none of its own: who resumes it is idle at once.
    let resumed = Owner::Alive { pid: 7, started: Some(at(7000).wall) };
    assert_eq!(told_by(&asked, IDLE, 9000, None, &resumed, 9100).0, Status::Idle);
}

/// Case 356.
#[test]
fn case_356_of_several_calls_of_one_tool_one_is_asked_for() {
    let second = Body::ToolStart {
        call: Text(b"u"),
        name: Some(Text(b"Bash")),
        command: None,
        detached: false,
        asks: false,
        question: None,
        nested: false,
        asks_unseen: false,
    };
    let two = facts(&[(0, PROMPT), (900, tool("Bash", false)), (901, second)]);
    assert_eq!(told(&two, PERMISSION, 1000, 2000).1, "asks for permission: one of 2 Bash calls");
    assert_eq!(told(&two, State::Busy, 1000, 2000).1, "running 2 Bash calls");
    let gone = Owner::Gone { pid: 7, at: None };
    let (_, because) = told_by(&two, State::Busy, 1000, None, &gone, 6000);
    assert_eq!(because, "its process is gone; unfinished: 2 Bash calls");
}

/// Case 357: nobody saw it end. It was there when its process last said something.
#[test]
fn case_357_an_unseen_crash_is_dated_by_what_was_last_heard() {
    let open = facts(&[(0, PROMPT), (900, tool("Bash", false))]);
    let (day, gone) = (24 * 3_600_000, |at| Owner::Gone { pid: 7, at });
    let reported_state = ReportedState { state: State::Busy, since: at(600_000), by: BY.into(), waiting_tool: None };
    let told = Observations { agent: &Agent::default(), facts: &open, reported_state: Some(&reported_state) };
    let judged = |at_end, now| judge(told, &gone(at_end), &Liveness::default(), None, at(now), &Limits::default());
    let verdict = judged(None, 900_000);
    assert_eq!((verdict.status, verdict.since), (Status::Crashed, at(600_000).wall));
    assert_eq!(verdict.short_reason.words(at(900_000)), "died, last seen 5 min ago");
    let because = judged(None, 600_000 + 2 * day).because.to_string();
    assert_eq!(because, "crashed, last seen 2 d ago; unfinished: Bash");
    let end = Some(at(700_000).wall);
    assert_eq!(judged(end, 1_000_000).short_reason.words(at(1_000_000)), "died, 5 min ago");
    assert_eq!(judged(end, 700_000 + 2 * day).because.to_string(), "crashed 2 d ago; unfinished: Bash");
}

#[test]
fn busy_wins_over_a_log_that_is_closed() {
    let done = facts(&[(0, PROMPT), (1000, answer(false))]);
    let (status, because) = told(&done, State::Busy, 900, 2000);
    assert_eq!((status, &*because), (Status::Working, "its process says that it works"));
    assert_eq!(told(&done, State::Busy, 900, 700_000).0, Status::Stuck, "and has its limits");
    let failed = facts(&[(0, PROMPT), (1000, Body::Error { kind: None, message: None, status: None })]);
    assert_eq!(told(&failed, State::Busy, 1500, 2000).0, Status::Working);
    assert_eq!(told(&failed, IDLE, 1100, 2000).0, Status::Failed);
}

#[test]
fn the_log_has_a_second_to_tell_what_is_asked() {
    let asked = facts(&[(0, PROMPT)]);
    assert_eq!(told(&asked, PERMISSION, 1000, 1900).0, Status::Working);
    assert_eq!(told(&asked, PERMISSION, 1000, 2000), (Status::NeedsPermission, "asks for permission: a tool".into()));
    let named = facts(&[(0, PROMPT), (1100, tool("Bash", false))]);
    assert_eq!(told(&named, PERMISSION, 1000, 1100), (Status::NeedsPermission, "asks for permission: Bash".into()));
    let plan = facts(&[(0, PROMPT), (900, tool("ExitPlanMode", true))]);
    assert_eq!(told(&plan, PERMISSION, 1000, 1100).0, Status::NeedsInput);
    assert_eq!(told(&plan, State::Busy, 1000, 1100).0, Status::Working, "it is answered");
}

#[test]
fn case_831_the_sub_agent_whose_tool_waits_is_named() {
    let asked = facts(&[(0, PROMPT)]);
    let asks = |by: Option<&str>| Some(WaitingTool { tool: "Write".into(), text: None, by: by.map(Into::into) });
    let owner = Owner::Alive { pid: 7, started: None };
    let by_sub_agent = |by| told_by(&asked, PERMISSION, 1000, asks(by), &owner, 1001);
    assert_eq!(by_sub_agent(None), (Status::NeedsPermission, "asks for permission: Write".into()));
    let named = "asks for permission: Write; by its sub-agent: paint the fence";
    assert_eq!(by_sub_agent(Some("paint the fence")).1, named);
}

#[test]
fn a_dialog_is_of_a_tool_or_else_only_a_note() {
    const DIALOG: State = State::Waiting(Wait::Dialog);
    let done = facts(&[(0, PROMPT), (1000, answer(false))]);
    assert_eq!(
        told(&done, DIALOG, 2000, 9000),
        (Status::Idle, "done, your turn; a dialog is open in its terminal".into())
    );
    let open = facts(&[(0, PROMPT), (900, tool("Bash", false))]);
    assert_eq!(told(&open, DIALOG, 1000, 1100).0, Status::NeedsInput);
    // The log has a second to tell which.
    let bare = facts(&[(0, PROMPT)]);
    assert_eq!([1999, 2000].map(|now| told(&bare, DIALOG, 1000, now).0), [Status::Working, Status::Idle]);
}

#[test]
fn the_log_has_a_second_to_tell_which_question_is_open() {
    const INPUT: State = State::Waiting(Wait::Input);
    let bare = facts(&[(0, PROMPT)]);
    assert_eq!([1999, 2000].map(|now| told(&bare, INPUT, 1000, now).0), [Status::Working, Status::NeedsInput]);
    let named = facts(&[(0, PROMPT), (900, tool("Bash", false))]);
    assert_eq!(told(&named, INPUT, 1000, 1100).0, Status::NeedsInput, "a tool is told");
}

#[test]
fn what_works_beside_its_log_is_silent_since_its_last_line() {
    let sub_agent = Body::SubAgentStart { call: None };
    let stuck = |facts: &Facts, now| told(facts, State::Busy, 2000, now).0 == Status::Stuck;
    let limit = Limits::default().tool_stuck.0;
    let done = facts(&[(0, PROMPT), (1000, answer(false))]);
    assert_eq!([2000 + limit - 1, 2000 + limit].map(|now| stuck(&done, now)), [false, true]);
    let wrote = facts(&[(0, PROMPT), (1000, answer(false)), (50_000, sub_agent)]);
    assert_eq!([50_000 + limit - 1, 50_000 + limit].map(|now| stuck(&wrote, now)), [false, true]);
}

#[test]
fn whatever_brings_a_turn_on_or_ends_it_ends_the_tries() {
    let ask = Body::ModelAsked { request: Text(b"one") };
    let tried = [(0, PROMPT), (100, ask.clone()), (5000, ask), (6000, Body::ModelFailed)];
    assert_eq!(facts(&tried).tries, 2);
    for end in [Body::Abort, Body::Shutdown, Body::Error { kind: None, message: None, status: None }, PROMPT] {
        assert_eq!(facts(&[&tried[..], &[(7000, end.clone())]].concat()).tries, 0, "{end:?}");
    }
}

#[test]
fn only_what_was_at_work_is_a_crash() {
    let gone = Owner::Gone { pid: 7, at: Some(at(5000).wall) };
    let open = facts(&[(0, PROMPT), (900, tool("Bash", false))]);
    let done = facts(&[(0, PROMPT), (1000, answer(false))]);
    for (facts, state, status) in [
        (&open, State::Busy, Status::Crashed),
        (&open, IDLE, Status::Ended),
        (&done, State::Busy, Status::Crashed),
        (&done, IDLE, Status::Ended),
        (&open, PERMISSION, Status::Crashed),
        (&open, State::Ended, Status::Ended),
    ] {
        assert_eq!(told_by(facts, state, 1000, None, &gone, 6000).0, status, "{state:?}");
    }
    let (_, because) = told_by(&open, State::Ended, 5000, None, &gone, 6000);
    assert_eq!(because, "no process runs it any more; unfinished: Bash");
}

#[test]
fn tries_are_counted_and_heard() {
    let ask = Body::ModelAsked { request: Text(b"one") };
    let tries = facts(&[(0, PROMPT), (100, ask.clone()), (5000, ask.clone()), (280_000, ask.clone())]);
    assert_eq!((tries.tries, tries.progress), (2, Some(at(100))), "a try brings the turn no further");
    let (status, because) = told(&tries, State::Busy, 0, 290_000);
    assert_eq!((status, &*because), (Status::Working, "no answer from its model: asked again 2 times"));
    let answered = facts(&[(0, PROMPT), (100, ask.clone()), (5000, ask.clone()), (6000, answer(false)), (7000, ask)]);
    assert_eq!(answered.tries, 0);
}

#[test]
fn a_session_is_not_stuck_before_its_agent_asks_again() {
    let mut session = Session::default();
    assert_eq!(session.limits(&Limits::default()), Limits::default());
    session.observed.asks_again_after = Some(Span::seconds(300));
    let limits = session.limits(&Limits::default());
    assert_eq!((limits.fresh_quiet, limits.fresh_stuck), (Span::seconds(60), Span::seconds(300)));
    assert_eq!(limits.thinking_stuck, Span::seconds(600));
}

#[test]
fn idle_counts_from_its_very_moment() {
    // Its log was written two seconds before, which is not just before.
    let done = facts(&[(0, PROMPT), (1000, answer(false))]);
    assert_eq!([2999, 3000].map(|since| told(&done, IDLE, since, since + 100).0), [Status::Finishing, Status::Idle]);
    // A prompt of that moment is the one that is over.
    let silent = facts(&[(0, PROMPT)]);
    assert_eq!([-1, 0].map(|since| told(&silent, IDLE, since, 4000).0), [Status::Working, Status::Idle]);
}

#[test]
fn a_turn_that_failed_in_the_log_has_failed_at_once() {
    let error = Body::Error { kind: None, message: None, status: None };
    assert_eq!(told(&facts(&[(0, PROMPT), (1000, error)]), IDLE, 1100, 1200).0, Status::Failed);
}

#[test]
fn what_ended_at_rest_left_no_turn_open() {
    let done = facts(&[(0, PROMPT), (1000, answer(false))]);
    assert_eq!(told(&done, State::Ended, 1100, 2000), (Status::Ended, "no process runs it any more".into()));
    let open = told(&facts(&[(0, PROMPT)]), State::Ended, 1100, 2000).1;
    assert_eq!(open, "no process runs it any more; in the middle of a turn");
}

#[test]
fn a_session_at_rest_says_what_nobody_could_be_asked() {
    let result = ToolResult::Unasked;
    let denied = Body::ToolDone { call: Text(b"t"), result, by_user: false, shell: None, ended: None };
    let facts = facts(&[(0, PROMPT), (100, tool("bash", false)), (200, denied), (1000, answer(false))]);
    let (status, because) = told(&facts, IDLE, 1100, 9000);
    assert_eq!(
        (status, &*because),
        (Status::Idle, "done, your turn; 1 of its last 1 tools denied: nobody could be asked")
    );
}
