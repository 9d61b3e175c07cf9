//! Rows in scripts and lists: their JSON and order, what a short list leaves out, the summary, and what the user has
//! not seen yet.

use super::story::{PID, START, Story};
use pilotlight_core::fleet::{About, Kind, Row, Session, State, Summary, limit_ended, sort};
use pilotlight_core::owner::Owner;
use pilotlight_core::session::Observed;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::verdict::Status::{self, Ended, Idle, NeedsInput, Working};
use serde_json::{Value, json};

const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed97280f";

fn session(story: &Story, at: f64) -> Session {
    Session {
        id: ID.into(),
        liveness: story.liveness.clone(),
        seen: story.seen,
        observed: Observed {
            facts: story.facts(at),
            owner: story.owner.clone(),
            touched: START,
            ..Observed::default()
        },
        ..Session::default()
    }
}

fn row(story: &Story, at: f64) -> Row {
    session(story, at).row(story.moment(at), &story.limits).0
}

/// A row with a status, for lists.
fn plain(id: &str, status: Status, since: i64) -> Row {
    Row { id: id.into(), name: id.to_owned(), status, since: START + Span::seconds(since), ..row(&Story::new(), 0.0) }
}

fn keys(value: &Value) -> Vec<&str> {
    sorted(value.as_object().unwrap().keys().map(String::as_str).collect())
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

/// docs/json.md: scripts rely on this.
#[test]
fn a_row_has_the_promised_fields_and_no_others() {
    let json = json!(row(&Story::prompted(), 1.0));
    let promised = vec![
        "id",
        "name",
        "cwd",
        "branch",
        "kind",
        "status",
        "since",
        "last_progress",
        "because",
        "unseen",
        "owner",
        "background",
        "actions",
        "label",
        "turn",
        "request",
        "question",
        "agent",
        "host",
        "reached",
        "wakes_at",
        "limit_until",
        "context",
    ];
    assert_eq!(keys(&json), sorted(promised));
    assert_eq!(keys(&json["owner"]), ["attachable", "bridge", "pid", "state"]);
    assert_eq!(keys(&json["background"]), ["agents", "list", "shells"]);
    assert_eq!(keys(&json["turn"]), ["since", "tools"]);
}

/// docs/json.md.
#[test]
fn the_values_of_a_row_have_the_promised_forms() {
    let mut session = session(&Story::prompted().tool(1, "t1", "bash"), 2.0);
    session.observed.about = About {
        name: Some("Paint the fence".into()),
        cwd: Some("/home/dev/project".into()),
        branch: Some("main".into()),
        kind: Kind::Terminal,
        created: Some(START),
    };
    let mut json = json!(session.row(Story::new().moment(2.0), &Story::new().limits).0);
    let because = json["because"].take();
    assert!(because.as_str().unwrap().contains("bash"), "{because}");
    assert!(json["actions"].take().is_array());
    let expected = json!({
        "id": ID,
        "name": "Paint the fence",
        "cwd": "/home/dev/project",
        "branch": "main",
        "kind": "terminal",
        "status": "working",
        "since": "2026-11-20T18:00:00.000Z",
        "last_progress": "2026-11-20T18:00:01.000Z",
        "because": null,
        "unseen": false,
        "owner": { "pid": PID, "state": "alive", "attachable": null, "bridge": null },
        "background": { "agents": 0, "shells": 0, "list": [] },
        "actions": null,
        "label": "project · Paint the fence",
        "turn": { "since": "2026-11-20T18:00:00.000Z", "tools": 1 },
        "request": null,
        "question": null,
        "agent": "agent",
        "host": null,
        "reached": true,
        "wakes_at": null,
        "limit_until": null,
        "context": null,
    });
    assert_eq!(json, expected);
}

/// docs/json.md: what is asked for, as a script has to know it to decide, and to answer just that.
#[test]
fn a_request_is_told_with_its_id_its_text_and_its_paths() {
    let request = |permission: Value, dialog: Value| {
        let data = json!({ "requestId": "r", "permissionRequest": permission, "promptRequest": dialog });
        let story = Story::prompted().tool(1, "t1", "bash").event(2, "permission.requested", data);
        json!(row(&story, 3.0))["request"].take()
    };
    let shell = |command: &str| request(json!({ "kind": "shell", "fullCommandText": command }), Value::Null);
    let view = |kind: &str, text: Value, paths: &[&str], reads_plain: bool| json!({ "id": "r", "kind": kind, "text": text, "paths": paths, "reads_plain": reads_plain, "by": null });
    let two_lines = "cargo fmt\ncargo test";
    assert_eq!(shell(two_lines), view("shell", json!(two_lines), &[], true));
    assert_eq!(shell("rm -rf /tмp"), view("shell", json!("rm -rf /tмp"), &[], false), "a Cyrillic letter");
    assert_eq!(
        shell("ls\u{200b}"),
        view("shell", json!("ls\u{200b}"), &[], false),
        "unaltered, invisible character and all"
    );
    assert_eq!(shell(&"x".repeat(2001)), view("shell", Value::Null, &[], false), "too long");
    let read = request(json!({ "kind": "read", "path": "/etc/hosts" }), json!({ "kind": "read" }));
    assert_eq!(read, view("read", json!("/etc/hosts"), &["/etc/hosts"], true));
    let write = request(json!({ "kind": "write", "fileName": "/x/new.rs", "diff": "+1" }), json!({ "kind": "write" }));
    assert_eq!(write, view("write", Value::Null, &["/x/new.rs"], false));
    let path = |paths: Value| {
        let dialog = json!({ "kind": "path", "paths": paths, "accessKind": "read" });
        request(json!({ "kind": "read", "path": "/etc/hosts" }), dialog)
    };
    assert_eq!(path(json!(["/etc/hosts"])), view("path", json!("/etc/hosts, to read"), &["/etc/hosts"], true));
    assert_eq!(path(json!(["/a", "/b"])), view("path", Value::Null, &["/a", "/b"], false), "no single text says both");
    for malformed in [json!([]), json!("/a"), json!(["/a", 7]), json!(vec!["/a"; 21]), json!(["x".repeat(2001), "/a"])]
    {
        assert_eq!(path(malformed.clone()), view("path", Value::Null, &[], false), "{malformed}");
    }
    let answered =
        Story::prompted().tool(1, "t1", "bash").permission(2, "r", "t1").permission_done(3, "r", "t1", "approved");
    assert_eq!(json!(row(&answered, 4.0))["request"], Value::Null);
    let consent = json!({ "kind": "extension-permission-access", "extensionName": "plugin:pilotlight:pilotlight" });
    assert_eq!(request(consent, Value::Null), Value::Null, "only its user may answer that, there");
}

/// docs/json.md.
#[test]
fn unknown_values_are_null() {
    let json =
        json!(Session { id: ID.into(), ..Session::default() }.row(Story::new().moment(0), &Story::new().limits).0);
    for field in ["cwd", "branch", "last_progress", "owner", "turn", "request", "question"] {
        assert_eq!(json[field], Value::Null, "{field}");
    }
    assert_eq!((&json["kind"], &json["name"]), (&json!("unknown"), &json!("36535f61")));
}

/// docs/json.md.
#[test]
fn every_kind_status_and_owner_state_has_its_promised_name() {
    assert_eq!(json!([Kind::Terminal, Kind::Sdk, Kind::Unknown]), json!(["terminal", "sdk", "unknown"]));
    let promised = json!([
        "ended",
        "crashed",
        "failed",
        "needs-permission",
        "permission-lost",
        "needs-input",
        "stuck",
        "quiet",
        "finishing",
        "working",
        "idle"
    ]);
    assert_eq!(json!(Status::ALL), promised);
    let state = |owner| json!(row(&Story::new().owned(owner), 0.0).owner)["state"].take();
    assert_eq!(state(Owner::Alive { pid: 1, started: None }), "alive");
    assert_eq!(state(Owner::Gone { pid: 1, at: None }), "gone");
    assert_eq!(state(Owner::Unknown { pid: 1 }), "unknown");
}

#[test]
fn background_work_is_counted() {
    let story = Story::prompted().tool(1, "t1", "task").sub_agent_started(1, "a1", "t1", "background").done(1, "t1");
    assert_eq!(json!(row(&story, 2.0).background.counts()), json!({ "agents": 1, "shells": 0 }));
    let foreground = Story::prompted().tool(1, "t1", "task").sub_agent_started(1, "a1", "t1", "sync");
    assert_eq!(json!(row(&foreground, 2.0).background.counts()), json!({ "agents": 0, "shells": 0 }));
    assert_eq!(json!(row(&foreground.abort(3), 4.0).background.counts()), json!({ "agents": 0, "shells": 0 }));
}

/// docs/cli.md, `watch`: it prints nothing for progress alone.
#[test]
fn progress_alone_is_no_difference() {
    let same = |story: &Story, from: f64, to: f64| !row(story, to).differs_from(&row(story, from));
    assert!(same(&Story::prompted().sign(10).sign(20), 10.0, 20.0));
    assert!(same(&Story::prompted().tool(1, "t1", "bash").sign(10).part(20), 1.0, 20.0));
    assert!(same(&Story::prompted().answer(1, "Done.").sign(10), 1.0, 10.0), "finishing");
    assert!(same(&Story::prompted().ran(1, "t1").ran(2, "t2"), 1.0, 2.0), "one more tool");
    assert!(same(&Story::prompted().error(1).metric(10), 1.0, 10.0), "failed");
    assert!(!same(&Story::prompted().tool(1, "t1", "bash"), 0.0, 1.0), "the reason changed");
    assert!(!same(&Story::prompted().abort(1), 0.0, 1.0), "the status changed");
    let gone = Story::prompted().answers(1, "Done.");
    assert!(row(&gone.clone().owner_gone(), 2.0).differs_from(&row(&gone, 2.0)), "the owner changed");
}

/// Rows that need the user come first, longest waiting first. Then come the others, latest first, and ended ones last.
#[test]
fn rows_are_sorted_by_need_and_then_by_time() {
    let mut rows: Vec<_> =
        Status::ALL.iter().rev().flat_map(|&status| [plain("old", status, 1), plain("new", status, 2)]).collect();
    sort(&mut rows);
    let needs: Vec<_> = rows.iter().map(Row::needs_you).collect();
    assert!(needs.is_sorted_by(|a, b| a >= b), "rows that need the user first: {needs:?}");
    assert!(rows[rows.len() - 2..].iter().all(|row| row.status == Ended), "ended rows last");
    assert!(rows[rows.len() - 4..rows.len() - 2].iter().all(|row| row.status == Idle), "idle rows before them");
    for pair in rows.windows(2).filter(|pair| pair[0].status == pair[1].status) {
        let in_order =
            if pair[0].needs_you() { pair[0].since <= pair[1].since } else { pair[0].since >= pair[1].since };
        assert!(in_order, "longest waiting first, or else latest first: {pair:#?}");
    }
    let again = {
        let mut again = rows.clone();
        again.reverse();
        sort(&mut again);
        again
    };
    assert_eq!(
        rows.iter().map(|row| row.since).collect::<Vec<_>>(),
        again.iter().map(|row| row.since).collect::<Vec<_>>()
    );
}

/// docs/config.md, `[list]`: it keeps at most 10 sessions that ended in the last 24 h, and all that have not ended.
#[test]
fn a_short_list_leaves_out_sessions_that_ended_long_ago() {
    let now = START + Span::hours(48);
    let earliest = now - Span::hours(24);
    let at = |time: Time, id: &str| Row { since: time, ..plain(id, Ended, 0) };
    let mut rows = vec![
        at(earliest - Span(1), "too old"),
        at(earliest, "just not"),
        at(now, "now"),
        plain("idle for days", Idle, -900_000),
        plain("working for days", Working, -900_000),
    ];
    limit_ended(&mut rows, earliest, 10);
    let mut left: Vec<_> = rows.iter().map(|row| &*row.id).collect();
    left.sort_unstable();
    assert_eq!(left, ["idle for days", "just not", "now", "working for days"]);

    let mut many: Vec<_> = (0..25).map(|n| at(now - Span::minutes(n), &format!("{n:02}"))).collect();
    many.extend((0..12).map(|n| plain(&format!("idle {n}"), Idle, n)));
    limit_ended(&mut many, earliest, 10);
    let ended: Vec<_> = many.iter().filter(|row| row.status == Ended).map(|row| &*row.id).collect();
    assert_eq!(ended, ["00", "01", "02", "03", "04", "05", "06", "07", "08", "09"], "the latest ten");
    assert_eq!(many.len(), 22);
}

#[test]
fn the_summary_counts_sessions_that_need_the_user_work_and_are_idle() {
    let summary = |statuses: &[Status]| {
        let rows: Vec<_> = statuses.iter().map(|&status| plain("x", status, 0)).collect();
        Summary::of(rows.iter()).to_string()
    };
    assert_eq!(
        summary(&[NeedsInput, Status::Stuck, Working, Status::Finishing, Working, Status::Quiet, Idle]),
        "2 need you · 1 quiet · 3 working · 1 idle"
    );
    assert_eq!(summary(&[Status::Crashed, Ended]), "1 needs you");
    assert_eq!(summary(&[Working]), "1 working");
    assert_eq!((summary(&[]), summary(&[Ended])), ("no session is open".into(), "no session is open".into()));
}

#[test]
fn the_session_that_needs_the_user_most_colours_the_icon() {
    let state = |statuses: &[Status], is_seen| {
        let row = |&status| Row { is_seen, ..plain("x", status, 0) };
        let rows: Vec<_> = statuses.iter().map(row).collect();
        Summary::of(rows.iter()).state
    };
    assert_eq!(state(&[], false), State::Well);
    assert_eq!(state(&[Idle, Ended], false), State::Well);
    assert_eq!(state(&[Idle, Status::Quiet], false), State::Working);
    assert_eq!(state(&[Working, Status::Crashed], false), State::Trouble);
    assert_eq!(state(&[Status::Stuck, NeedsInput], false), State::NeedsYou);
    for status in [Status::Failed, Status::Crashed, Status::PermissionLost] {
        assert_ne!(state(&[status], false), State::Well, "{status}");
        assert_eq!(state(&[status], true), State::Well, "{status} was seen");
    }
    for status in [Status::Stuck, Status::NeedsPermission, NeedsInput] {
        assert_ne!(state(&[status], true), State::Well, "{status} lasts");
    }
}

#[test]
fn a_session_that_became_idle_or_asked_is_unseen_until_the_user_looks() {
    let idle = Story::prompted().answers(10, "Done.");
    assert!(!row(&idle, 5.0).unseen, "it works");
    assert!(row(&idle, 10.0).unseen);
    assert!(row(&idle.clone().seen(9.999), 20.0).unseen);
    assert!(!row(&idle.clone().seen(15), 20.0).unseen);
    assert!(row(&idle.prompt(30).answers(40, "Done.").seen(15), 41.0).unseen, "it became idle again");

    let asks = Story::prompted().answers(10, "Shall I?");
    assert_eq!((row(&asks, 20.0).status, row(&asks, 20.0).unseen), (NeedsInput, true));
    let seen = asks.seen(15);
    assert_eq!((row(&seen, 20.0).status, row(&seen, 20.0).unseen), (Idle, false));

    assert!(!row(&Story::new(), 5.0).unseen, "no prompt yet");
    assert!(!row(&Story::prompted().tool(1, "t1", "ask_user"), 5.0).unseen, "an open tool asks, not a message");
    assert!(!row(&Story::prompted().error(1), 5.0).unseen);
}

#[test]
fn a_session_that_became_idle_only_by_time_is_unseen() {
    let never_closed = Story::prompted().answer(10, "Done.");
    assert_eq!((row(&never_closed, 400.0).status, row(&never_closed, 400.0).unseen), (Idle, true));
    assert!(!row(&never_closed.clone().seen(400), 500.0).unseen);
    assert!(row(&never_closed.seen(20), 400.0).unseen, "it was not idle yet when seen");
    let unanswered = Story::prompted().round_end(10);
    assert_eq!((row(&unanswered, 20.0).status, row(&unanswered, 20.0).unseen), (Idle, true));
}

/// Even if the end of its turn was seen.
#[test]
fn a_session_whose_background_agent_ended_is_unseen() {
    let story = Story::prompted().tool(1, "t1", "task").sub_agent_started(1, "a1", "t1", "background").done(1, "t1");
    let story = story.answers(2, "It looks.").sub_agent_done(30, "a1", "t1").seen(10);
    assert_eq!((row(&story, 20.0).status, row(&story, 20.0).unseen), (Working, false));
    assert_eq!((row(&story, 40.0).status, row(&story, 40.0).unseen), (Idle, true));
}

#[test]
fn a_failure_keeps_its_status_when_seen() {
    let failed = Story::prompted().error(1).seen(5);
    assert_eq!(row(&failed, 10.0).status, Status::Failed);
    let crashed = Story::prompted().owner_gone().seen(5);
    assert_eq!(row(&crashed, 10.0).status, Status::Crashed);
    let lost = Story::prompted().denied(1, "a").denied(1, "b").denied(1, "c").seen(5);
    assert_eq!(row(&lost, 10.0).status, Status::PermissionLost);
}

/// Logs of old sessions are not read; the row has the time of the last write.
#[test]
fn a_session_whose_log_was_not_read_is_ended() {
    let session = Session {
        id: ID.into(),
        observed: Observed { unread: true, has_log: true, touched: START, ..Observed::default() },
        ..Session::default()
    };
    assert!(session.is_listed());
    assert!(
        !Session { observed: Observed { has_log: false, ..session.clone().observed }, ..session.clone() }.is_listed(),
        "it was never prompted"
    );
    let (row, verdict) = session.row(Moment::of(START + Span::hours(100)), &Story::new().limits);
    assert_eq!((row.status, row.since, row.last_progress), (Ended, START, Some(START)));
    assert_eq!(verdict.recheck_at, None);
}
