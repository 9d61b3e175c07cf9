//! The reason in the fewest words: what the menu shows after a session's name.

use super::story::{At, Story};
use pilotlight_core::owner::Owner;
use pilotlight_core::short_reason::ShortReason;
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status::{
    self, Failed, Finishing, Idle, NeedsInput, NeedsPermission, PermissionLost, Quiet, Stuck, Working,
};
use pilotlight_core::verdict::{Answer, Sample, age_step};
use serde_json::json;
use std::collections::HashSet;

fn words(story: &Story, at: impl Into<At>) -> String {
    match story.verdict(at).short_reason {
        ShortReason::Words(words) => words.into(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_at_work_shows_its_turn() {
    let story = Story::prompted().tool(1, "t1", "bash").done(2, "t1").answer(3, "Done.");
    for (at, status) in [(0, Working), (1, Working), (3, Finishing)] {
        let verdict = story.verdict(at);
        let short_reason = ShortReason::Turn(verdict.turn.unwrap(), story.moment(at).wall);
        assert_eq!((verdict.status, verdict.short_reason), (status, short_reason), "at {at} s");
    }
}

#[test]
fn work_without_a_turn_shows_when_it_was_last_heard_of() {
    let agent = Story::after_a_tool(1).by("a1").event(2, "subagent.started", json!({"toolCallId": "t9"}));
    let background = agent.answers(3, "Done.").by("a1").round(40);
    background.says(100, Working, "1 background agent");
    assert_eq!(
        background.verdict(100).short_reason,
        ShortReason::Work("1 background agent".into(), background.moment(40).wall)
    );
}

#[test]
fn a_silent_session_shows_its_silence_instead_of_its_turn() {
    let silent = |story: &Story, at: i32, status: Status, what: &str, runs_long: bool| {
        let verdict = story.verdict(at);
        let short_reason = ShortReason::Silent { since: story.moment(1), what: what.into(), runs_long };
        assert_eq!(
            (verdict.status, verdict.short_reason, verdict.turn.is_some()),
            (status, short_reason, true),
            "at {at} s"
        );
    };
    let model = Story::prompted().sign(1);
    silent(&model, 70, Quiet, "no tool used in this turn", false);
    silent(&model, 130, Stuck, "no tool used in this turn", false);
    let tool = Story::prompted().tool(1, "t1", "bash");
    silent(&tool, 610, Quiet, "running bash", false);
    silent(&tool, 670, Stuck, "running bash", false);
    let mut busy = tool;
    busy.liveness.busy = Some(Sample { busy: true, at: busy.moment(660) });
    silent(&busy, 670, Quiet, "running long: bash, its process is busy", true);
}

#[test]
fn a_session_that_asks_shows_what_it_asks() {
    let tool = |arguments: serde_json::Value| {
        let data = json!({"toolCallId": "t1", "toolName": "ask_user", "arguments": arguments});
        Story::prompted().event(1, "tool.execution_start", data)
    };
    let known = tool(json!({"question": "Which color?", "choices": ["red", "blue"]}));
    known.says(2, NeedsInput, "asks: \"Which color?\" red or blue");
    assert_eq!(words(&known, 2), "“Which color?”");
    let unknown = tool(json!({"what": 7}));
    unknown.says(2, NeedsInput, "asks a question, by ask_user");
    assert_eq!(words(&unknown, 2), "asks a question");
    let by_message = Story::prompted().answers(1, "Shall I go on?");
    by_message.is(2, NeedsInput);
    assert_eq!(words(&by_message, 2), "asks a question");
    let request = Story::prompted().tool(1, "t1", "bash").permission(2, "r1", "t1");
    request.is(2, NeedsPermission);
    assert_eq!(words(&request, 2), "sleep 60");
    let asked = json!({"requestId": "r1", "permissionRequest": {"kind": "write", "toolCallId": "t1"}});
    let write = Story::prompted().tool(1, "t1", "edit").event(2, "permission.requested", asked);
    assert_eq!(words(&write, 2), "asks for write");
    let mut by_server = Story::prompted().tool(1, "t1", "bash");
    by_server.liveness.answer = Some(Answer { progress: by_server.moment(1).wall, active: true, requests: 2 });
    by_server.says(2, NeedsPermission, "its server says that 2 permission requests are open");
    assert_eq!(words(&by_server, 2), "asks for permission");
}

#[test]
fn a_session_in_trouble_shows_it_in_a_few_words() {
    let failed = |data: serde_json::Value| {
        let story = Story::prompted().event(1, "session.error", data);
        story.is(1, Failed);
        words(&story, 1)
    };
    assert_eq!(
        failed(json!({"errorType": "rate_limit", "message": "Slow down", "statusCode": 429})),
        "rate limit (429)"
    );
    assert_eq!(failed(json!({"errorType": "query", "message": "No answer", "statusCode": 500})), "No answer");
    for no_message in [json!(null), json!(""), json!(7)] {
        let error = json!({"errorType": "query", "message": no_message, "statusCode": 500});
        assert_eq!(failed(error), "error (500)");
    }
    assert_eq!(failed(json!({})), "error");
    let lost = Story::prompted().denied(1, "t1").denied(2, "t2").denied(3, "t3");
    lost.is(3, PermissionLost);
    assert_eq!(words(&lost, 3), "permissions lost");
}

#[test]
fn a_session_at_rest_shows_since_when() {
    let short_reason = |story: &Story, at: i32| match story.verdict(at).short_reason {
        ShortReason::Ago(words, since) => (words.to_string(), since),
        other => panic!("{other:?}"),
    };
    let done = Story::prompted().answers(10, "Done.");
    done.says(100, Idle, "done, your turn");
    assert_eq!(short_reason(&done, 100), ("done".to_owned(), done.moment(10).wall));
    let open = Story::prompted().tool(1, "t1", "bash");
    let crashed = open.clone().owned(Owner::Gone { pid: 7, at: Some(open.moment(1).wall) });
    assert_eq!(short_reason(&crashed, 100), ("died".to_owned(), crashed.moment(1).wall));
    let unseen = open.owner_gone().verdict(61);
    assert!(
        matches!(unseen.short_reason, ShortReason::Work(words, last) if *words == *"died" && last == crashed.moment(1).wall),
        "nobody saw when"
    );
    let ended = Story::prompted().answers(10, "Done.").shutdown(20);
    assert_eq!(short_reason(&ended, 100), ("shut down".to_owned(), ended.moment(20).wall));
}

/// A step never exceeds the age, so that no reason exaggerates, and the next step follows it.
#[test]
fn ages_of_any_length_are_rounded_down() {
    let step = |age: Span| age_step(age).0;
    for hours in [4, 23, 24, 47, 48, 99 * 24, 100 * 24, 150 * 24, 199 * 24, 200 * 24, 100_000] {
        let age = Span::hours(hours);
        let (before, next) = age_step(age + Span::minutes(59));
        assert!(before <= age && age < next, "{hours} h: {before} to {next}");
        assert_eq!((step(next - Span(1)), step(next)), (before, next), "{hours} h");
    }
    assert_eq!(step(Span::hours(47)), Span::hours(42));
    assert_eq!(step(Span::hours(24 * 99 + 1)), Span::hours(24 * 99));
    assert_eq!(step(Span::hours(24 * 149)), Span::hours(24 * 125), "in 25 days from then on");
    assert_eq!(step(Span::minutes(59)), Span::minutes(59));
    assert_eq!(step(Span::seconds(59)), Span::seconds(55));
}

/// So that a status does not depend on its colour.
#[test]
fn every_status_has_a_symbol_of_its_own() {
    let symbols: HashSet<_> = Status::ALL.into_iter().map(|status| status.mark().0).collect();
    assert_eq!(symbols.len(), Status::ALL.len());
    for status in Status::ALL {
        let (symbol, ascii) = status.mark();
        assert_eq!((symbol.chars().count(), ascii.len(), ascii.is_ascii()), (1, 1, true), "{status}");
    }
    let ascii: HashSet<_> = Status::ALL.into_iter().map(|status| status.mark().1).collect();
    assert_eq!(ascii.len(), Status::ALL.len() - 1);
    assert_eq!(Working.mark().1, Finishing.mark().1, "nearly the same to the user");
}
