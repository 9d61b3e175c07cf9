use super::*;
use crate::core::action::offer;
use crate::core::fleet::Row;
use crate::core::limits::Limits;
use crate::core::owner::Owner;
use serde_json::{Value, json};

const NOW: Moment = Moment { wall: Time(1_700_000_000_000), awake: Time(50_000) };

fn host(has_terminal: bool) -> Host {
    Host { name: "devbox".into(), has_terminal }
}

fn session() -> Session {
    let mut session = Session { id: "a-1".into(), ..Session::default() };
    session.observed.about = About { name: Some("Migrate".into()), cwd: Some("/code/api".into()), ..About::default() };
    session.observed.owner = Owner::Alive { pid: 7, started: None };
    session.observed.about.kind = Kind::Terminal;
    session
}

fn account(session: &Session) -> Value {
    let row = session.row(NOW, &Limits::default()).0;
    serde_json::to_value(Account::of(session, &row, (&row.name, &row.label), NOW)).unwrap()
}

fn read_as(account: &Value, has_terminal: bool) -> Result<Session, &'static str> {
    let account = serde_json::from_value(account.clone()).unwrap();
    let clocks = Clocks { now: NOW, behind: Span::ZERO };
    read(&host(has_terminal), account, &clocks, Agent::reported)
}

fn row_of(session: &Session) -> Row {
    session.row(NOW, &Limits::default()).0
}

#[test]
fn a_session_arrives_as_it_is_with_its_machine() {
    let here = row_of(&session());
    let there = read_as(&account(&session()), true).unwrap();
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

#[test]
fn case_406_what_needs_a_screen_there_is_not_offered() {
    let over = |has_terminal| {
        let mut told = account(&session());
        let offers = ["resume", "show-terminal", "stop", "end"];
        told["offers"] =
            offers.map(|action| json!({"action": action, "is-possible": true, "words": "x"})).to_vec().into();
        read_as(&told, has_terminal).unwrap()
    };
    let can = |session: &Session| row_of(session).actions;
    assert_eq!(can(&over(true)), [Action::Stop, Action::End, Action::Resume]);
    assert_eq!(can(&over(false)), [Action::Stop, Action::End], "what runs a command there opens no terminal");
    let why = offer(Action::Approve, &over(true), Status::Idle).unwrap_err().to_string();
    assert_eq!(why, "devbox does not say whether it can be done there");
}

#[test]
fn case_407_whatever_a_host_says_is_bounded_and_safe_to_show() {
    let mut told = account(&session());
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
    told["gist"] = json!({"words": hostile});
    told["owner"] = json!({"pid": 1, "state": "root", "attachable": null, "bridge": null});
    let request =
        |text: &str| json!({"id": "r", "kind": "shell", "text": text, "paths": [hostile], "is-probable": false});
    told["requests"] = json!(vec![request(&"z".repeat(TEXT_MAX + 1)); 1000]);
    told["question"] = json!({"id": "q", "text": hostile, "choices": vec![&hostile; 1000]});
    told["offers"] = json!(vec![json!({"action": "stop", "is-possible": true, "words": hostile}); 1000]);
    told["turn"] = json!({"since": "9999-01-01T00:00:00Z", "tools": 4_294_967_295_u32, "older": true});
    let session = read_as(&told, true).unwrap();
    let row = row_of(&session);
    let shown =
        [row.name.clone(), row.label.to_string(), row.because.to_string(), row.gist.words(NOW), row.agent.to_string()];
    for text in shown {
        assert!(text.len() < 4 * REASON_MAX && !text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
    }
    assert_eq!((&row.cwd, &row.branch, &row.owner), (&None, &None, &None));
    assert_eq!((session.observed.facts.root, session.control.wanted), (None, None));
    let requests = &session.observed.facts.requests;
    assert_eq!(requests.len(), account::REQUESTS_MAX);
    assert!(requests.iter().all(|request| request.asks.is_none() && request.paths.is_empty()));
    assert!(session.live.questions[0].question.choices.len() <= 100);
    told["status"] = json!("root");
    assert!(read_as(&told, true).is_err());
}

#[test]
fn case_408_times_are_by_the_clock_of_this_machine() {
    let hour = Span::hours(1);
    assert_eq!(Clocks::behind(NOW, NOW.wall - hour), hour);
    assert_eq!(Clocks::behind(NOW, NOW.wall - Span(1500)), Span::ZERO, "that is the way of a line");
    let mut told = account(&session());
    told["since"] = json!((NOW.wall - hour).to_string());
    told["gist"] = json!({"silent": {"for_ms": 120_000, "what": "bash is open", "runs_long": false}});
    let account = serde_json::from_value(told).unwrap();
    let session = read(&host(true), account, &Clocks { now: NOW, behind: hour }, Agent::reported).unwrap();
    let row = row_of(&session);
    assert_eq!((row.since, row.gist.words(NOW)), (NOW.wall, "silent 2 min".into()));
}

#[test]
fn case_407_what_is_told_arrives_up_to_its_limits() {
    let mut told = account(&session());
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
    assert_eq!((observed.facts.root.as_deref(), session.control.wanted.as_deref()), (Some(&*id), Some(&*id)));
    assert_eq!(session.live.questions[0].question.text.as_ref(), "Which?");
    let [request] = &observed.facts.requests[..] else { panic!("{:?}", observed.facts.requests) };
    assert_eq!((&*request.request, &*request.kind), (&*id, &*id));
    assert_eq!((request.asks.as_deref(), &*request.paths[0]), (Some(&*text), &*path));
}
