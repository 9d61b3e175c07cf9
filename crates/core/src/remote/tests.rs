use super::super::form;
use super::*;
use crate::action::offer;
use crate::fleet::Row;
use crate::limits::Limits;
use crate::owner::Owner;
use crate::remote::Unreached;
use crate::session::ServerState;
use crate::turn::{Closed, Ending, OpenTool, Turn};
use crate::words::offer::Does;
use crate::words::refusal::Refusal;
use serde_json::{Value, json};

const NOW: Moment = Moment { wall: Time(1_700_000_000_000), awake: Time(50_000) };

fn host(has_terminal: bool) -> RemoteHost {
    RemoteHost { name: "devbox".into(), has_terminal }
}

fn session() -> Session {
    let mut session = Session { id: "a-1".into(), ..Session::default() };
    session.observed.about = About { name: Some("Migrate".into()), cwd: Some("/code/api".into()), ..About::default() };
    session.observed.owner = Owner::Alive { pid: 7, started: None };
    session.observed.about.kind = Kind::Terminal;
    session
}

fn report(session: &Session) -> Value {
    let row = session.row(NOW, &Limits::default()).0;
    serde_json::to_value(SessionReport::of(session, &row, (&row.name, &row.label), NOW)).unwrap()
}

fn read_as(report: &Value, has_terminal: bool) -> Result<Session, &'static str> {
    let report = serde_json::from_value(report.clone()).unwrap();
    let clocks = Clocks { now: NOW, behind: Span::ZERO };
    read(&host(has_terminal), report, &clocks, Agent::reported)
}

fn row_of(session: &Session) -> Row {
    session.row(NOW, &Limits::default()).0
}

#[test]
fn a_session_arrives_as_it_is_with_its_machine() {
    let here = row_of(&session());
    let there = read_as(&report(&session()), true).unwrap();
    let row = row_of(&there);
    assert_eq!(row.label.to_string(), "api @devbox · Migrate");
    assert_eq!(row.host.as_deref(), Some("devbox"));
    let same = |row: &Row| {
        let Row { id, cwd, status, since, owner, turn, .. } = row.clone();
        (id, cwd, status, since, owner, turn, row.because.to_string(), row.kind)
    };
    assert_eq!(same(&row), same(&here));
    // Nothing here can take its process for one of this machine.
    assert_eq!((there.runner(), there.observed.owner.pid()), (Owner::Never, None));
}

/// Neither what it was told to ask, nor what it was told to do, may be so now.
#[test]
fn case_612_a_session_whose_machine_is_not_reached_is_as_it_was_told_and_nothing_is_done_with_it() {
    let mut here = session();
    let asks = json!({"id": "r", "kind": "shell", "text": "make", "paths": [], "is-probable": false});
    here.observed.facts.requests.extend(request(serde_json::from_value(asks).unwrap(), Time::default()));
    let mut there = read_as(&report(&here), true).unwrap();
    let before = row_of(&there);
    let unreached = Unreached { since: "14:05".into(), again: Some("14:10".into()) };
    there.remote.as_mut().unwrap().unreached = Some(unreached.clone());
    let row = row_of(&there);
    assert_eq!((row.status, row.reached, row.since), (Status::Quiet, false, before.since));
    let words =
        format!("not reached since 14:05, next try at 14:10; before that: {}, {}", before.status, before.because);
    assert_eq!(row.because.to_string(), words);
    assert!(row.actions.is_empty() && row.request.is_none() && row.turn.is_none(), "{row:?}");
    let why = offer(Action::Approve, &there, row.status).unwrap_err().to_string();
    assert_eq!(why, "devbox is not reached since 14:05, next try at 14:10");
    assert!(row.differs_from(&before));
    // That it was tried again is no change of the session.
    there.remote.as_mut().unwrap().unreached = Some(Unreached { again: Some("14:15".into()), ..unreached });
    assert!(!row_of(&there).differs_from(&row));
}

#[test]
fn case_406_what_needs_a_screen_there_is_not_offered() {
    let over = |has_terminal| {
        let mut told = report(&session());
        let offers = ["resume", "show-terminal", "stop", "end"];
        told["offers"] =
            offers.map(|action| json!({"action": action, "is-possible": true, "words": "x"})).to_vec().into();
        read_as(&told, has_terminal).unwrap()
    };
    let can = |session: &Session| row_of(session).actions;
    assert_eq!(can(&over(true)), [Action::Stop, Action::End, Action::Resume]);
    assert_eq!(can(&over(false)), [Action::Stop, Action::End], "what runs a command there opens no terminal");
    let why = offer(Action::Approve, &over(true), Status::Idle).unwrap_err().to_string();
    assert_eq!(why, "devbox does not say whether this is possible");
}

#[test]
fn case_407_whatever_a_host_says_is_bounded_and_safe_to_show() {
    let mut told = report(&session());
    for bad in ["", "a\u{1b}[2J", &"x".repeat(ID_MAX + 1)] {
        told["id"] = json!(bad);
        assert!(read_as(&told, true).is_err(), "{bad:?}");
    }
    told["id"] = json!("a-1");
    let hostile = format!("\u{1b}[2J\u{202e}{}\nApprove", "x".repeat(100_000));
    for key in ["name", "who", "title", "because", "not-ended-unasked", "agent"] {
        told[key] = json!(hostile);
    }
    for key in ["cwd", "branch", "root", "wanted"] {
        told[key] = json!("y".repeat(PATH_MAX + 1));
    }
    told["short-reason"] = json!({"words": hostile});
    told["owner"] = json!({"pid": 1, "state": "root", "attachable": null, "bridge": null});
    let request =
        |text: &str| json!({"id": "r", "kind": "shell", "text": text, "paths": [hostile], "is-probable": false});
    told["requests"] = json!(vec![request(&"z".repeat(TEXT_MAX + 1)); 1000]);
    told["question"] = json!({"id": "q", "text": hostile, "choices": vec![&hostile; 1000]});
    told["offers"] = json!(vec![json!({"action": "stop", "is-possible": true, "words": hostile}); 1000]);
    told["turn"] = json!({"since": "9999-01-01T00:00:00Z", "tools": 4_294_967_295_u32, "older": true});
    let session = read_as(&told, true).unwrap();
    let row = row_of(&session);
    let shown = [
        row.name.clone(),
        row.label.to_string(),
        row.because.to_string(),
        row.short_reason.words(NOW),
        row.agent.to_string(),
    ];
    for text in shown {
        assert!(text.len() < 4 * REASON_MAX && !text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
    }
    assert_eq!((&row.cwd, &row.branch, &row.owner), (&None, &None, &None));
    assert_eq!((session.observed.facts.turn_id, session.control.approval_requested), (None, None));
    let requests = &session.observed.facts.requests;
    assert_eq!(requests.len(), session_report::REQUESTS_MAX);
    assert!(requests.iter().all(|request| request.asks.is_none() && request.paths.is_empty()));
    assert!(session.liveness.questions[0].question.choices.len() <= 100);
    told["status"] = json!("root");
    assert!(read_as(&told, true).is_err());
}

#[test]
fn case_408_times_are_by_the_clock_of_this_machine() {
    let hour = Span::hours(1);
    assert_eq!(Clocks::behind(NOW, NOW.wall - hour), hour);
    for millis in [1500, 2000] {
        assert_eq!(Clocks::behind(NOW, NOW.wall - Span(millis)), Span::ZERO, "that is the way of a line");
    }
    let mut told = report(&session());
    told["since"] = json!((NOW.wall - hour).to_string());
    told["short-reason"] = json!({"silent": {"for_ms": 120_000, "what": "running bash", "runs_long": false}});
    let report = serde_json::from_value(told).unwrap();
    let session = read(&host(true), report, &Clocks { now: NOW, behind: hour }, Agent::reported).unwrap();
    let row = row_of(&session);
    assert_eq!((row.since, row.short_reason.words(NOW)), (NOW.wall, "silent 2 min".into()));
}

#[test]
fn case_407_what_is_told_arrives_up_to_its_limits() {
    let mut told = report(&session());
    let (id, path, text) = ("i".repeat(ID_MAX), "p".repeat(PATH_MAX), "t".repeat(TEXT_MAX));
    for key in ["id", "root", "wanted"] {
        told[key] = json!(id);
    }
    for key in ["cwd", "branch"] {
        told[key] = json!(path);
    }
    told["agent"] = json!("Robot");
    told["opened"] = json!((NOW.wall - Span::hours(2)).to_string());
    told["question"] = json!({"id": "q", "text": "Which?", "choices": ["a", "b"]});
    let request =
        |id: &str, kind: &str| json!({"id": id, "kind": kind, "text": text, "paths": [path], "is-probable": false});
    let long = "i".repeat(ID_MAX + 1);
    told["requests"] = json!([request(&id, &id), request("", "shell"), request(&long, "shell"), request("r", &long)]);
    let session = read_as(&told, true).unwrap();
    let (observed, about) = (&session.observed, &session.observed.about);
    assert_eq!((&*session.id, observed.agent.to_string()), (&*id, "Robot".to_owned()));
    assert_eq!((about.cwd.as_deref(), about.branch.as_deref()), (Some(&*path), Some(&*path)));
    assert_eq!(about.created, Some(NOW.wall - Span::hours(2)));
    assert_eq!(
        (observed.facts.turn_id.as_deref(), session.control.approval_requested.as_deref()),
        (Some(&*id), Some(&*id))
    );
    assert_eq!(session.liveness.questions[0].question.text.as_ref(), "Which?");
    let [request] = &observed.facts.requests[..] else { panic!("{:?}", observed.facts.requests) };
    assert_eq!((&*request.request, &*request.kind), (&*id, &*id));
    assert_eq!((request.asks.as_deref(), &*request.paths[0]), (Some(&*text), &*path));
}

#[test]
fn what_resumes_a_session_there_opens_a_terminal_here() {
    let offered = |action: Action, is_resumed_only: bool, has_terminal: bool| {
        let mut told = report(&session());
        told["offers"] = json!([{"action": action.name(), "is-possible": true, "words": "does it"}]);
        told["is-resumed-only"] = json!(is_resumed_only);
        told["stops-if-waiting"] = json!(true);
        offer(action, &read_as(&told, has_terminal).unwrap(), Status::Idle)
    };
    let opens = Ok(Does::ResumesThere { host: "devbox".into() });
    let there = Ok(Does::There { what: "does it".into() });
    assert_eq!(offered(Action::Resume, false, true), opens);
    assert_eq!(offered(Action::Reconnect, true, true), opens);
    assert_eq!(offered(Action::Reconnect, true, false), Err(Refusal::ResumedThere { host: "devbox".into() }));
    assert_eq!(
        [true, false].map(|terminal| offered(Action::Reconnect, false, terminal)),
        [there.clone(), there.clone()]
    );
    assert_eq!(offered(Action::Stop, false, true), Ok(Does::Stops { even_if_waiting: true }));
    assert_eq!(offered(Action::End, false, true), there);
}

#[test]
fn case_497_what_is_refused_there_says_where_and_why() {
    let mut told = report(&session());
    let refused =
        |action: &str| json!({"action": action, "is-possible": false, "words": "run `pilotlight bridge install`"});
    told["offers"] = json!([refused("stop"), refused("resume")]);
    let session = read_as(&told, false).unwrap();
    for action in [Action::Stop, Action::Resume] {
        let why = offer(action, &session, Status::Idle).unwrap_err();
        assert_eq!(why.to_string(), "on devbox: run `pilotlight bridge install`");
    }
}

fn told(session: &Session) -> SessionReport {
    let row = row_of(session);
    SessionReport::of(session, &row, (&row.name, &row.label), NOW)
}

fn asks(id: &str, kind: &str) -> Request {
    let told = RequestReport {
        id: id.into(),
        kind: kind.into(),
        text: None,
        paths: Vec::new(),
        is_probable: false,
        over_bridge: None,
        by: None,
        since: None,
    };
    request(told, Time::default()).unwrap()
}

#[test]
fn what_only_its_user_may_answer_is_not_told() {
    let mut session = session();
    session.observed.facts.requests = vec![asks("a", "extension-permission-access"), asks("b", "shell")];
    let ids: Vec<_> = told(&session).requests.into_iter().map(|request| request.id).collect();
    assert_eq!(ids, ["b".into()]);
}

/// The names are those of its machine, and safe to show here.
#[test]
fn case_767_the_sub_agent_that_asks_is_told_by_its_name() {
    let mut session = session();
    let by = |sub_agent: Option<&str>| Request { sub_agent: sub_agent.map(Into::into), ..asks("a", "shell") };
    session.observed.facts.requests = vec![by(Some("look\u{1b}[31m around")), by(None)];
    let told = told(&session).requests;
    assert_eq!(told.iter().map(|request| request.by.is_some()).collect::<Vec<_>>(), [true, false]);
    let read: Vec<_> = told.into_iter().map(|told| request(told, Time::default()).unwrap().sub_agent).collect();
    assert!(read[0].as_deref().is_some_and(|by| by.starts_with("look") && !by.contains('\u{1b}')), "{read:?}");
    assert_eq!(read[1], None);
}

#[test]
fn a_turn_was_completed_if_it_was_answered_and_none_is_open() {
    let completed = |ending, is_open: bool| {
        let mut session = session();
        session.observed.facts.closed = Some(Closed { ending, at: NOW, asks: false });
        session.observed.facts.turn = is_open.then(|| Turn::new(NOW, true, true));
        told(&session).completed
    };
    assert_eq!(completed(Ending::Completed, false), Some(NOW.wall));
    assert_eq!(completed(Ending::Completed, true), None);
    assert_eq!(completed(Ending::Aborted, false), None);
}

#[test]
fn it_is_told_whether_to_reconnect_means_to_resume_and_to_stop_means_more() {
    let resumed_only = |owner: Owner, kind: Kind| {
        let mut session = session();
        session.id = "36535f61-5c7b-4f09-a70b-2f8aed970001".into();
        (session.observed.owner, session.observed.about.kind) = (owner, kind);
        told(&session).is_resumed_only
    };
    let gone = || Owner::Gone { pid: 7, at: None };
    assert!(resumed_only(gone(), Kind::Terminal));
    assert!(!resumed_only(gone(), Kind::Sdk), "it is hosted instead");
    assert!(!resumed_only(Owner::Alive { pid: 7, started: None }, Kind::Terminal));
    let stops_if_waiting = |silence: Span| {
        let (mut session, mut turn) = (session(), Turn::new(NOW, true, true));
        turn.tools.push(OpenTool::running("t", NOW));
        session.observed.facts.turn = Some(turn);
        session.observed.facts.progress = Some(Moment { wall: NOW.wall - silence, awake: NOW.awake - silence });
        session.control.server = ServerState::Listening;
        told(&session).stops_if_waiting
    };
    assert_eq!([Span::ZERO, Limits::default().tool_quiet].map(stops_if_waiting), [false, true]);
}

#[test]
fn a_session_that_is_only_to_be_found_again_is_told_in_brief() {
    let mut whole = told(&session());
    whole.requests = vec![RequestReport {
        id: "r".into(),
        kind: "shell".into(),
        text: None,
        paths: Vec::new(),
        is_probable: false,
        over_bridge: None,
        by: None,
        since: None,
    }];
    whole.question = Some(QuestionReport { id: None, text: "Which?".into(), choices: Vec::new() });
    whole.form = Some(form("q"));
    whole.last_message = Some("It is done.".into());
    assert!(!whole.offers.is_empty());
    let brief = whole.clone().in_brief();
    assert_eq!((brief.id(), &brief.name), ("a-1", &whole.name));
    assert!(brief.offers.is_empty() && brief.requests.is_empty() && brief.question.is_none() && brief.form.is_none());
    assert_eq!(brief.last_message, None);
}

#[test]
fn case_842_a_message_of_another_machine_is_shown_in_one_short_line_without_escapes() {
    let mut report = told(&session());
    report.last_message = Some(format!("Done\n\u{1b}[31mred\u{202e}{}", "x".repeat(100_000)).into());
    let read = read(&host(true), report, &Clocks::default(), Agent::reported).unwrap();
    let message = read.observed.facts.last_message.unwrap();
    assert!(message.starts_with("Done ") && message.chars().count() <= MESSAGE_MAX, "{message}");
    assert!(!message.contains(['\n', '\u{1b}', '\u{202e}']), "{message}");
}

#[test]
fn what_was_heard_since_is_told_by_the_clock_there() {
    let (first, hour) = (told(&session()), Span::hours(1));
    let since = Moment { wall: NOW.wall - Span::seconds(5), awake: NOW.awake - Span::seconds(5) };
    let silent = ShortReason::Silent { since, what: "running bash".into(), runs_long: false };
    let row = Row { last_progress: Some(NOW.wall), short_reason: silent, ..row_of(&session()) };
    let clocks = Clocks { now: NOW, behind: hour };
    let again = first.clone().told_again(&row, &clocks);
    assert_eq!(again.last_progress, Some(NOW.wall - hour));
    let silent = ShortReasonReport::Silent { for_ms: 5000, what: "running bash".into(), runs_long: false };
    assert_eq!(again.short_reason, silent);
    let rests = Row { short_reason: ShortReason::rested("done", NOW.wall), ..row };
    assert_eq!(
        first.clone().told_again(&rests, &clocks).short_reason,
        first.short_reason,
        "its time is by the clock there"
    );
}

fn form(request: &str) -> Form {
    let (text, choices) = ("Which?".into(), Vec::new());
    Form { request: request.into(), kind: form::Kind::Input, text, choices, takes_text: true }
}

#[test]
fn a_form_that_is_too_long_is_no_way_to_answer() {
    let can_be_answered = |form: Form| {
        let mut told = report(&session());
        told["question"] = json!({"id": "q", "text": "Which?", "choices": []});
        told["form"] = serde_json::to_value(&form).unwrap();
        read_as(&told, true).unwrap().liveness.questions[0].form.is_ok()
    };
    assert!(can_be_answered(form(&"q".repeat(ID_MAX))));
    assert!(!can_be_answered(form(&"q".repeat(ID_MAX + 1))));
    assert!(!can_be_answered(Form { text: "x".repeat(10_000_000).into(), ..form("q") }));
}

#[test]
fn who_runs_it_and_since_when_it_is_silent_arrive_as_told() {
    let mut told = report(&session());
    told["owner"] = json!({"pid": 7, "state": "alive", "attachable": true, "bridge": "elevated"});
    told["short-reason"] = json!({"silent": {"for_ms": 5000, "what": "x", "runs_long": false}});
    let remote = read_as(&told, true).unwrap().remote.unwrap();
    let owner = RemoteOwner { pid: 7, state: "alive", attachable: Some(true), bridge: Some("elevated") };
    assert_eq!(remote.owner, Some(owner));
    let since = Moment { wall: NOW.wall - Span::seconds(5), awake: NOW.awake - Span::seconds(5) };
    assert_eq!(remote.short_reason, ShortReason::Silent { since, what: "x".into(), runs_long: false });
    told["owner"]["bridge"] = json!("root");
    assert_eq!(read_as(&told, true).unwrap().remote.unwrap().owner.unwrap().bridge, None);
}

#[test]
fn a_request_is_shown_while_its_host_says_that_it_waits_for_that() {
    let shown = |status: Status| {
        let mut told = report(&session());
        told["status"] = json!(status.name());
        told["requests"] = json!([{"id": "r", "kind": "shell", "text": "make", "paths": [], "is-probable": false}]);
        row_of(&read_as(&told, true).unwrap()).request.is_some()
    };
    assert_eq!([Status::NeedsPermission, Status::Working].map(shown), [true, false]);
}
