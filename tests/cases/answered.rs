//! Answers whose turn was never closed, and sessions that ask their user something.

use super::story::Story;
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status::{self, Finishing, Idle, NeedsInput, NeedsPermission, Quiet, Stuck, Working};
use serde_json::json;

/// GW.
#[test]
fn case_78_an_answer_that_never_closes_its_turn_is_idle_after_5_min() {
    let story = Story::prompted().answer(10, "Done.");
    story.is(10, Finishing).turns(310, Finishing, Idle).says(310, Idle, "answered, but never ended its turn");
    story.is(9000, Idle);
    assert_eq!(story.verdict(11).recheck_at, Some(story.moment(310).awake));
    let verdict = story.verdict(9000);
    assert_eq!(verdict.since, story.moment(310).wall);
    Story::after_a_tool(1).round_end(1).round(1).answer(10, "Done.").turns(310, Finishing, Idle);
}

/// GW.
#[test]
fn case_78_an_answer_that_asks_and_never_closes_needs_input_after_5_min() {
    Story::prompted().answer(10, "Shall I go on?").turns(310, Finishing, NeedsInput);
}

/// GW.
#[test]
fn case_78_events_after_the_5_min_do_not_reopen_the_turn() {
    let story = Story::prompted().answer(10, "Done.");
    story.clone().sign(320).is(319, Idle).is(320, Idle).is(700, Idle);
    story.clone().part(320).is(319, Idle).is(320, Idle);
    story.round_end(320).is(320, Idle);
}

/// GW.
#[test]
fn case_79_without_an_answer_the_rule_never_applies() {
    Story::prompted().is(300, Stuck).is(400, Stuck);
    Story::prompted().requests(1, &["bash"]).is(301, Stuck).is(400, Stuck);
    Story::after_a_tool(1).round_end(1).round(1).is(301, Quiet).is(400, Quiet);
    Story::prompted().by("a1").answer(1, "Done.").is(302, Stuck); // not the root's answer
}

/// GW.
#[test]
fn case_80_metrics_do_not_stop_the_clock() {
    let mut story = Story::prompted().answer(10, "Done.");
    for at in (20..=600).step_by(20) {
        story = story.metric(at).event(at, "session.usage_checkpoint", json!({}));
    }
    story.turns(310, Finishing, Idle);
}

/// Only messages, tools and requests of the turn keep it `finishing`.
#[test]
fn case_147_unrelated_records_do_not_keep_a_turn_open() {
    let mut story = Story::prompted().answer(10, "Done.");
    for at in (60..=600).step_by(60) {
        story = story.event(at, "session.info", json!({ "message": "still here" }));
    }
    story.turns(310, Finishing, Idle).says(310, Idle, "answered, but never ended its turn").is(610, Idle);
    Story::prompted().answer(10, "Done.").answer(100, "And more.").is(310, Finishing).turns(400, Finishing, Idle);
    let tool = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").answer(10, "Done.").done(200, "t1");
    tool.is(310, Finishing).turns(500, Finishing, Idle);
    Story::prompted().answer(10, "Done.").steers(100).is(310, Finishing).turns(400, Finishing, Idle);
}

/// GW: whatever is written after it.
#[test]
fn case_80_finishing_begins_at_the_answer() {
    let story = Story::prompted().answer(10, "Done.").sign(100);
    assert_eq!(story.verdict(101).since, story.moment(10).wall);
}

/// GW.
#[test]
fn case_81_an_open_request_or_question_is_never_finishing() {
    let request = Story::prompted().answer(1, "Done.").permission(2, "r1", "t1");
    request.is(2, NeedsPermission).is(60, NeedsPermission);
    Story::prompted().tool(1, "t1", "ask_user").answer(2, "Done.").is(3, NeedsInput).is(9000, NeedsInput);
}

/// GW: the 5 min rule, which ends `finishing`, does not close a request.
#[test]
fn case_81_an_open_request_outlasts_the_5_min() {
    let request = Story::prompted().answer(1, "Done.").permission(2, "r1", "t1");
    request.is(302, NeedsPermission).is(9000, NeedsPermission);
}

#[test]
fn case_95_an_open_tool_that_asks_needs_input() {
    for tool in ["ask_user", "exit_plan_mode"] {
        let story = Story::prompted().requests(1, &[tool]).tool(1, "t1", tool).done(4000, "t1");
        story.says(1, NeedsInput, tool).is(120, NeedsInput).is(660, NeedsInput).is(3999, NeedsInput).is(4000, Working);
        assert_eq!(story.verdict(3999).since, story.moment(1).wall);
        assert!(!story.verdict(1).is_by_message(), "the question comes from an open tool");
    }
    Story::prompted().tool(1, "t1", "bash").tool(1, "t2", "ask_user").is(2, NeedsInput);
}

/// The status after an answer.
fn after(content: &str) -> Status {
    Story::prompted().answers(1, content).status(2)
}

#[test]
fn case_96_a_last_message_that_asks_needs_input() {
    for content in [
        "Shall I go on?",
        "Done so remote.\n\nWhich of the two do you want?\n",
        "```rust\nlet x = 1;\n```\n\nIs that what you meant?",
        "It says \"no\". Shall I try again?",
        "**Shall I proceed?**",
        "Run `cargo test` first?",
        "続けますか？",
        "Which one? \u{2028}",
    ] {
        assert_eq!(after(content), NeedsInput, "{content}");
    }
}

#[test]
fn case_96_questions_in_code_or_quotes_do_not_count() {
    for content in [
        "",
        "Done.",
        "Why? Because.",
        "```\nlet x = maybe?\n```",
        "```\n// really?",
        "> Shall I go on?",
        "The prompt reads \"Continue?\"",
        "It prints `ok?`",
        "It says “really?”",
    ] {
        assert_eq!(after(content), Idle, "{content}");
    }
}

/// Whatever else is in it.
#[test]
fn case_96_a_last_paragraph_of_any_length_can_ask() {
    for length in [10, 300, 590, 600, 610, 2000] {
        let words = "word ".repeat(length / 5);
        for content in [
            format!("The file `{words}` is gone. Shall I go on?"),
            format!("He said \"{words}\" to me. Shall I go on?"),
            format!("{words}\n\nShall I go on?"),
            format!("Both `a` and `b` are gone, {words} so shall I go on?"),
        ] {
            assert_eq!(after(&content), NeedsInput, "{length}: {content}");
        }
    }
}

/// So does a new round, or anything else after it.
#[test]
fn case_96_the_next_prompt_answers_the_question() {
    let story = Story::prompted().answers(1, "Shall I?").prompt(10).round(10).answers(11, "Done.");
    story.is(9, NeedsInput).is(10, Working).is(11, Idle);
    Story::prompted().answers(1, "Shall I?").round(10).is(10, Working);
    Story::prompted().requests(1, &["bash"]).ran(1, "t1").round_end(1).is(2, Working);
    let asked_before = Story::prompted().event(
        1,
        "assistant.message",
        json!({ "content": "Shall I look?", "toolRequests": [{ "toolCallId": "t1", "name": "view" }] }),
    );
    asked_before.ran(2, "t1").round_end(2).round(2).answers(3, "Done.").is(3, Idle);
}

/// Unlike the question of a tool, which stays open.
#[test]
fn case_96_a_question_of_the_last_message_is_idle_when_seen() {
    let story = Story::prompted().answers(10, "Shall I?");
    assert!(story.verdict(20).is_by_message());
    story.clone().seen(9.999).is(20, NeedsInput);
    story.clone().seen(10).is(20, Idle);
    story.clone().seen(15).is(20, Idle);
    Story::prompted().tool(1, "t1", "ask_user").seen(15).is(20, NeedsInput);
    let again = story.prompt(30).round(30).answers(31, "Shall I now?").seen(15);
    again.is(31, NeedsInput);
}

/// A replay dates changes that only time causes exactly.
#[test]
fn case_78_a_replay_dates_the_5_min_to_the_millisecond() {
    let story = Story::prompted().answer(10, "Done.");
    let changes = story.changes(Default::default(), Span::minutes(6));
    let last = changes.last().unwrap();
    assert_eq!((last.status, last.at), (Idle, story.moment(310).wall));
}
