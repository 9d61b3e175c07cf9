use super::*;
use crate::form::Form;
use crate::owner::Doubt;
use crate::question::Question;
use crate::time::Moment;
use crate::turn::{Request, SubAgent, Turn};
use crate::verdict::hook_report::HookActivity;
use crate::verdict::reported_state::{State, Wait};
use crate::verdict::{Asking, Sample, StreamProbe};

const AT: Moment = Moment::of(Time(1_763_700_000_000));

fn with(change: impl FnOnce(&mut Session)) -> Session {
    let mut session = Session::default();
    change(&mut session);
    session
}

#[test]
fn a_session_is_listed_if_it_was_used_or_may_be_open() {
    assert!(!Session::default().is_listed());
    assert!(with(|session| session.observed.facts.progress = Some(AT)).is_listed());
    assert!(with(|session| session.observed.problem = Some("its log cannot be read".into())).is_listed());
    assert!(with(|session| session.observed.owner = Owner::Unheld { pid: 7 }).is_listed());
    // Unread, it may have been used, if there is a log.
    for has_log in [true, false] {
        let unread = with(|session| (session.observed.unread, session.observed.has_log) = (true, has_log));
        assert_eq!(unread.is_listed(), has_log);
    }
    assert!(!with(|session| session.observed.has_log = true).is_listed());
}

#[test]
fn everything_is_approved_if_one_of_those_who_know_says_so() {
    let reported = |bridge: Option<bool>, server: Option<(bool, i64)>, changed: Option<i64>| {
        let session = with(|session| {
            session.control.approves_all = bridge;
            session.liveness.approves_all = server.map(|(all, at)| (all, Time(at)));
            session.observed.facts.approvals_at = changed.map(Time);
        });
        session.reported_approvals()
    };
    assert_eq!(reported(None, None, None), None);
    assert_eq!(
        [(true, false), (false, true), (false, false)].map(|(bridge, server)| reported(
            Some(bridge),
            Some((server, 5)),
            None
        )),
        [Some(true), Some(true), Some(false)]
    );
    // The log tells of a change since the server was asked.
    assert_eq!([5, 6].map(|changed| reported(None, Some((true, 5)), Some(changed))), [Some(true), None]);
}

#[test]
fn its_model_is_asked_while_its_turn_or_a_sub_agent_may_wait() {
    let asked = |change: fn(&mut Session)| {
        let mut session = with(|session| session.observed.facts.asked = Some(AT));
        change(&mut session);
        session.asked_model()
    };
    assert_eq!(asked(|_| ()), None, "no turn is open");
    assert_eq!(asked(|session| session.observed.facts.turn = Some(Turn::new(AT, true, true))), Some(AT.wall));
    let works = |session: &mut Session| {
        let sub_agent = SubAgent::new("a".into(), AT);
        session.observed.facts.sub_agents.push(sub_agent);
    };
    assert_eq!(asked(works), Some(AT.wall));
}

#[test]
fn only_of_a_program_it_is_unknown_whether_answers_are_streamed() {
    let streams = |kind, server| {
        with(|session| (session.observed.about.kind, session.liveness.streams) = (kind, server)).streams()
    };
    assert!(streams(Kind::Terminal, false) && streams(Kind::Sdk, true) && !streams(Kind::Sdk, false));
}

#[test]
fn an_agent_that_asks_again_late_is_stuck_later() {
    let limits = Limits::default();
    let late = limits.thinking_stuck + Span::seconds(1);
    let session = with(|session| session.observed.asks_again_after = Some(late));
    assert_eq!(session.limits(&limits), Limits { fresh_stuck: late, thinking_stuck: late, ..limits });
}

#[test]
fn a_session_known_by_its_hook_alone_is_listed_until_its_process_is_gone() {
    let told = HookReport { said: HookActivity::Idle, reason: None, since: AT.wall, at: AT, has_worked: true };
    for (owner, listed) in [(Owner::Never, true), (Owner::Gone { pid: 7, at: None }, false)] {
        let session = with(|session| {
            (session.observed.hook_report, session.observed.owner) = (Some(told.clone()), owner);
        });
        assert_eq!(session.is_listed(), listed);
    }
}

#[test]
fn what_was_found_out_of_an_answer_counts_while_it_is_waited_for() {
    let probe_result = |progress: Moment, turn: Option<Turn>| {
        let session = with(|session| {
            (session.observed.facts.progress, session.observed.facts.turn) = (Some(progress), turn);
            session.liveness.stream_probe = Some(StreamProbe::new(ProbeResult::Kept.into(), AT.wall, AT));
        });
        session.probe_result()
    };
    let turn = || Some(Turn::new(AT, true, true));
    assert_eq!(probe_result(AT, turn()), Some(ProbeResult::Kept));
    assert_eq!(probe_result(AT, None), None);
    assert_eq!(probe_result(AT.plus(Span::seconds(1)), turn()), None, "something has happened since");
}

#[test]
fn only_the_oldest_request_that_can_be_answered_is_wanted() {
    let request = |id: &str, kind: &str| Request::of_kind(id, kind, AT);
    let wanted = |id: Option<&str>| {
        let requests = vec![request("a", "extension-permission-access"), request("b", "shell"), request("c", "shell")];
        let session = with(|session| {
            (session.observed.facts.requests, session.control.approval_requested) = (requests, id.map(Into::into));
        });
        session.is_approval_requested()
    };
    assert_eq!([None, Some("a"), Some("b"), Some("c")].map(wanted), [false, false, true, false]);
}

#[test]
fn a_kind_is_known_by_its_name() {
    for (name, kind) in [("terminal", Kind::Terminal), ("sdk", Kind::Sdk), ("unknown", Kind::Unknown)] {
        assert_eq!((kind.name(), Kind::named(name)), (name, kind));
    }
    assert_eq!(Kind::named("robot"), Kind::Unknown);
}

/// A command is told of a session by the tray as the tray holds it.
#[test]
fn case_730_a_session_is_the_same_to_whoever_is_told_of_it() {
    let data = serde_json::json!({"requestId": "r", "question": "Which?", "choices": ["red", "blue"]});
    let form = Form::read("user_input.requested", &data).map_err(Into::into);
    let question = Question { id: Some("r".into()), text: "Which?".into(), choices: vec!["red".into(), "blue".into()] };
    let asking = |form| Asking { question: question.clone(), since: AT.wall, form };
    let reported_state =
        ReportedState { state: State::Waiting(Wait::Dialog), since: AT, by: "its pid file".into(), waiting_tool: None };
    let probe_result = ProbeResult::Receiving { bytes: Some(2280), within: Span::seconds(10) };
    let no_answer = NoAnswer { file_system: "NFS".into(), since: AT, is_behind: true };
    let changes: [fn(&mut Session); 12] = [
        |it| it.observed.owner = Owner::Alive { pid: 7, started: Some(AT.wall) },
        |it| it.observed.owner = Owner::Doubtful { pid: 7, why: Doubt::Growing },
        |it| it.observed.held = HoldProof::Verified,
        |it| it.observed.allows = Allows::Process,
        |it| it.observed.allows = Allows::Only { actions: [Action::End].as_slice().into(), why: "it is old".into() },
        |it| it.observed.about.kind = Kind::Terminal,
        |it| it.observed.supervised = Some(Supervised { attach: "attach".into(), stop: "stop".into() }),
        |it| it.control.server = ServerState::Hosted(4711),
        |it| it.control.bridge = Some(Bridge::Elevated),
        |it| it.control.outcome = Some((AT.wall, "reconnected".into())),
        |it| it.no_file_events = Some(NoFileEvents::FileSystem("FUSE".into())),
        |it| it.terminal = Some((7, Some("it has none".into()))),
    ];
    let told = Session {
        no_answer: Some(no_answer),
        observed: Observed { reported_state: Some(reported_state), ..Observed::default() },
        liveness: Liveness {
            questions: vec![asking(form), asking(Err("it is made up".into()))],
            stream_probe: Some(StreamProbe { progress: AT.wall, at: AT, probe_result, last: Some(AT) }),
            busy: Some(Sample { busy: true, at: AT }),
            answer: Some(Answer { progress: AT.wall, active: true, requests: 2 }),
            ..Liveness::default()
        },
        ..Session::default()
    };
    for session in changes.map(with).into_iter().chain([told]) {
        assert_ne!(session, Session::default());
        let told = serde_json::to_string(&session).unwrap();
        assert_eq!(serde_json::from_str::<Session>(&told).unwrap(), session, "{told}");
    }
}
