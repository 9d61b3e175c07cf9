use super::*;
use crate::event::{Body, Event};
use crate::scan::Text;
use crate::stream_probe::ProbeResult;
use crate::turn::SubAgent;
use crate::turn::{OpenTool, Request, TurnPhase};

const ALIVE: Owner = Owner::Alive { pid: 7, started: None };

fn at(seconds: i64) -> Moment {
    Moment::of(Time(1_763_700_000_000 + seconds * 1000))
}

/// The facts of a session with a turn that was opened at second 0.
fn open(change: impl FnOnce(&mut Facts, &mut Turn)) -> Facts {
    let (mut facts, mut turn) = (Facts::default(), Turn::new(at(0), true, true));
    facts.progress = Some(at(0));
    change(&mut facts, &mut turn);
    facts.turn = Some(turn);
    facts
}

fn tool() -> OpenTool {
    OpenTool::running("t", at(0))
}

fn request(kind: &str, is_probable: bool) -> Request {
    Request { is_probable, ..Request::of_kind(kind, kind, at(0)) }
}

fn told(facts: &Facts, owner: &Owner, liveness: &Liveness, now: Moment) -> (Status, String) {
    let verdict = judge(Observations::by_log(facts), owner, liveness, None, now, &Limits::default());
    (verdict.status, verdict.because.to_string())
}

#[test]
fn an_answer_is_no_end_while_a_tool_is_open() {
    let status = |tools: Vec<OpenTool>| {
        let facts = open(|_, turn| (turn.phase, turn.tools) = (TurnPhase::Answered(at(0)), tools));
        told(&facts, &ALIVE, &Liveness::default(), at(1)).0
    };
    assert_eq!((status(Vec::new()), status(vec![tool()])), (Status::Finishing, Status::Working));
}

#[test]
fn a_silence_says_what_is_open() {
    let silent = |facts: &Facts| told(facts, &ALIVE, &Liveness::default(), at(0).plus(Limits::default().tool_quiet));
    let (status, because) = silent(&open(|facts, _| facts.compaction = Some(at(0))));
    assert!(status == Status::Quiet && because.contains("compacting its history"), "{because}");
    for asks_unseen in [true, false] {
        let (status, because) = silent(&open(|facts, turn| {
            turn.tools.push(tool());
            facts.asks_unseen = asks_unseen;
        }));
        assert!(status == Status::Quiet && because.contains("running bash"), "{because}");
        assert_eq!(because.ends_with("it may be busy, or waiting for you"), asks_unseen, "{because}");
    }
}

#[test]
fn a_tool_is_busy_by_a_sample_from_after_the_last_event() {
    let stuck = at(0).plus(Limits::default().tool_stuck);
    for (seconds, status) in [(0, Status::Stuck), (1, Status::Quiet)] {
        let facts = open(|_, turn| turn.tools.push(tool()));
        let liveness = Liveness { busy: Some(Sample { busy: true, at: at(seconds) }), ..Liveness::default() };
        assert_eq!(told(&facts, &ALIVE, &liveness, stuck).0, status, "sampled at {seconds} s");
    }
}

#[test]
fn who_knows_what_is_open_says_whether_a_probable_request_is() {
    let asks = |is_probable: bool, known: Option<usize>| {
        let facts = open(|facts, turn| {
            turn.tools.push(tool());
            facts.requests.push(request("shell", is_probable));
        });
        let answer = known.map(|requests| Answer { progress: at(0).wall, active: true, requests });
        told(&facts, &ALIVE, &Liveness { answer, ..Liveness::default() }, at(1))
    };
    let asked = (Status::NeedsPermission, "asks for permission: shell".to_owned());
    assert_eq!(asks(true, None), (Status::NeedsPermission, "probably asks in its terminal".into()));
    assert_eq!(asks(true, Some(0)).0, Status::Working);
    assert_eq!([asks(true, Some(1)), asks(false, None), asks(false, Some(0))], [asked.clone(), asked.clone(), asked]);
}

#[test]
fn what_can_be_answered_from_here_is_asked_first() {
    let consent = || request("extension-permission-access", false);
    let asks = |requests: Vec<Request>| {
        let facts = open(|facts, _| facts.requests = requests);
        told(&facts, &ALIVE, &Liveness::default(), at(1)).1
    };
    assert_eq!(asks(vec![consent(), request("shell", false)]), "asks for permission: shell; 2 requests are open");
    assert!(asks(vec![consent()]).starts_with("Copilot asks in its terminal"));
}

#[test]
fn how_many_questions_are_open_is_said_of_several() {
    let asks = |open_now: usize| {
        let asking =
            || Asking { question: Question::told(None, "Which?", &[]), since: at(0).wall, form: Err("".into()) };
        let liveness = Liveness { questions: (0..open_now).map(|_| asking()).collect(), ..Liveness::default() };
        told(&open(|_, _| ()), &ALIVE, &liveness, at(1))
    };
    let asked = |words: &str| (Status::NeedsInput, format!("asks: \"Which?\"{words}"));
    assert_eq!((asks(1), asks(2)), (asked(""), asked("; 2 questions are open")));
}

#[test]
fn without_an_owner_it_has_ended_after_longer_than_its_limit() {
    let mut facts = open(|_, _| ());
    facts.turn = None;
    let status =
        |over| told(&facts, &Owner::Never, &Liveness::default(), at(0).plus(Limits::default().ownerless + over)).0;
    assert_eq!((status(Span::ZERO), status(Span(1))), (Status::Idle, Status::Ended));
}

#[test]
fn what_was_heard_last_is_called_by_its_type_and_by_its_tool() {
    let mut facts = Facts::default();
    let mut words = |seconds, kind: &'static [u8], body: Body<'_>| {
        let at = at(seconds);
        facts.fold(&Event { kind, ..Event::of(b"x", at.wall, body) }, at, &Limits::default());
        last_activity(&facts, &Liveness::default()).unwrap().words()
    };
    let start = || Body::ToolStart {
        call: Text(b"t"),
        name: Some(Text(b"bash")),
        command: None,
        detached: false,
        asks: false,
        question: None,
        nested: false,
        asks_unseen: false,
    };
    assert_eq!(words(0, b"tool.execution_start", start()), "the event tool.execution_start (bash) in its log");
    assert_eq!(words(0, b"another", Body::Step), "the event another in its log", "it came last of one moment");
    assert_eq!(words(1, b"tool.execution_start", Body::Step), "the event tool.execution_start in its log");
}

#[test]
fn only_who_waits_waits() {
    let waits: Vec<_> = Status::ALL.into_iter().filter(|status| status.waits()).collect();
    assert_eq!(waits.len(), 3);
    for status in [Status::NeedsPermission, Status::PermissionLost, Status::NeedsInput] {
        assert!(waits.contains(&status));
    }
}

#[test]
fn work_that_its_server_reports_overrules_only_a_guess() {
    let status = |ending, works| {
        let mut facts = open(|_, _| ());
        (facts.turn, facts.closed) = (None, Some(Closed { ending, at: at(0), asks: true }));
        told(&facts, &ALIVE, &Liveness { has_active_work: works, ..Liveness::default() }, at(1)).0
    };
    assert_eq!(status(Ending::Unanswered, Some(true)), Status::Working);
    assert_eq!(status(Ending::Unanswered, None), Status::NeedsInput);
    assert_eq!(status(Ending::Completed, Some(true)), Status::NeedsInput);
}

#[test]
fn a_silence_counts_from_what_was_heard_last() {
    let quiet = Limits::default().fresh_quiet;
    let status = |tries: u32, received: Option<i64>, from: i64| {
        let facts = open(|facts, _| (facts.asked, facts.tries) = (Some(at(10)), tries));
        let probe_result = ProbeResult::Silent { may_not_stream: false };
        let stream_probe =
            received.map(|last| StreamProbe { progress: at(0).wall, at: at(30), probe_result, last: Some(at(last)) });
        told(&facts, &ALIVE, &Liveness { stream_probe, ..Liveness::default() }, at(from).plus(quiet)).0
    };
    assert_eq!(
        (status(0, None, 5), status(1, None, 5)),
        (Status::Quiet, Status::Working),
        "another try counts as activity"
    );
    assert_eq!((status(1, None, 10), status(1, Some(20), 15)), (Status::Quiet, Status::Working));
    assert_eq!(status(1, Some(20), 20), Status::Quiet);
}

#[test]
fn what_ended_by_silence_ended_with_its_limit() {
    let limits = Limits::default();
    let since = |facts: &Facts, owner: &Owner, now| {
        judge(Observations::by_log(facts), owner, &Liveness::default(), None, now, &limits).since
    };
    let now = at(0).plus(limits.ownerless + limits.ownerless);
    assert_eq!(since(&open(|_, _| ()), &Owner::Never, now), at(0).wall + limits.ownerless);
    // A sub-agent in the background that says no more ended with its limit, too.
    let mut facts = open(|facts, _| {
        facts.sub_agents.push(SubAgent::new("a".into(), at(3)));
    });
    (facts.turn, facts.closed) = (None, Some(Closed { ending: Ending::Completed, at: at(0), asks: false }));
    let rested = at(3).plus(limits.background_agent);
    assert_eq!(since(&facts, &ALIVE, rested), rested.wall);
}

#[test]
fn only_a_process_that_started_after_the_last_event_has_left_its_turn_behind() {
    let rests = |started: i64| {
        let owner = Owner::Alive { pid: 7, started: Some(at(started).wall) };
        told(&open(|_, _| ()), &owner, &Liveness::default(), at(1).plus(Limits::default().resumed)).0 == Status::Idle
    };
    assert_eq!([0, 1].map(rests), [false, true]);
}
