//! What was last heard of a session: what a row says of a silence at work, and what `explain` says was last seen.

use super::story::{At, START, Story};
use pilotlight_core::fleet::{About, Row, Session};
use pilotlight_core::owner::Owner;
use pilotlight_core::session::Observed;
use pilotlight_core::short_reason::ShortReason;
use pilotlight_core::stream_probe::{ProbeResult, WINDOW};
use pilotlight_core::time::{Moment, Span};
use pilotlight_core::verdict::Status::{Idle, Quiet, Working};
use pilotlight_core::verdict::{StreamProbe, last_activity};
use serde_json::json;

/// What was last heard, and how many seconds after the start.
fn last_of(story: &Story, at: impl Into<At>) -> (String, i64) {
    let facts = story.facts(at);
    let last = last_activity(&facts, &story.liveness).unwrap();
    (last.words(), (last.at.wall - START).0 / 1000)
}

fn row(story: &Story, at: i32) -> Row {
    let session = Session {
        id: "a".into(),
        liveness: story.liveness.clone(),
        observed: Observed { facts: story.facts(at), owner: story.owner.clone(), ..Observed::default() },
        ..Session::default()
    };
    session.row(story.moment(at), &story.limits).0
}

fn looked(mut story: Story, at: i32, probe_result: ProbeResult, last: Option<i32>) -> Story {
    let progress = story.facts(at).progress.unwrap().wall;
    let last = last.map(|last| story.moment(last));
    story.liveness.stream_probe = Some(StreamProbe { progress, at: story.moment(at), probe_result, last });
    story
}

#[test]
fn case_162_what_was_last_seen_is_named() {
    let tool = Story::prompted().tool(1, "t1", "bash");
    assert_eq!(last_of(&tool, 52), ("the event tool.execution_start (bash) in its log".into(), 1));
    let done = tool.clone().tool(2, "t2", "view").done(3, "t1");
    assert_eq!(last_of(&done, 2).0, "the event tool.execution_start (view) in its log");
    assert_eq!(last_of(&done, 3).0, "the event tool.execution_complete in its log");
    let agent = tool.clone().by("a1").tool(4, "t3", "grep");
    assert_eq!(last_of(&agent, 4).0, "the event tool.execution_start of a sub-agent in its log");
    assert_eq!(last_of(&tool.part(5), 5), ("part of a line in its log".into(), 5));
    // A metric is not progress.
    let metric = Story::prompted().event(9, "session.usage_record", json!({}));
    assert_eq!(last_of(&metric, 9), ("the event assistant.turn_start in its log".into(), 0));
    assert!(last_activity(&Story::cut().facts(0), &Story::cut().liveness).is_none());
}

/// A type is hostile, too, and any that Copilot may come to write.
#[test]
fn the_type_of_an_event_is_bounded_and_safe_to_display() {
    for (kind, shown) in [
        ("future.event".to_owned(), "future.event"),
        ("x".repeat(99), &*"x".repeat(40)),
        ("a\u{202e}b\u{1b}[31m".to_owned(), "ab\\u001b[31m"),
        (format!("{}é", "x".repeat(39)), &*format!("{}\u{fffd}", "x".repeat(39))),
    ] {
        let story = Story::prompted().event(1, &kind, json!({}));
        assert_eq!(last_of(&story, 1).0, format!("the event {shown} in its log"), "{kind:?}");
    }
}

#[test]
fn case_162_what_arrives_from_the_model_is_heard_before_it_is_in_the_log() {
    let receiving = ProbeResult::Receiving { bytes: Some(2_280), within: WINDOW };
    let silent = ProbeResult::Silent { may_not_stream: false };
    let data = || "data on its connection to the model".to_owned();
    for (probe_result, last, expected) in [
        (receiving, Some(59), (data(), 59)),
        (receiving, None, (data(), 60)),
        (silent, Some(31), (data(), 31)),
        (silent, None, ("the event assistant.turn_start in its log".to_owned(), 0)),
        (ProbeResult::Kept, Some(59), ("the event assistant.turn_start in its log".to_owned(), 0)),
    ] {
        let story = looked(Story::prompted(), 60, probe_result, last);
        assert_eq!(last_of(&story, 60), expected, "{probe_result:?}");
        assert_eq!(row(&story, 60).last_progress, Some(START + Span::seconds(expected.1)), "{probe_result:?}");
    }
    let again = looked(Story::prompted(), 60, receiving, Some(59)).round(61);
    assert_eq!(last_of(&again, 61).0, "the event assistant.turn_start in its log");
}

/// Watchers are told of no age that grows stale: they have the time itself.
#[test]
fn case_162_a_reason_for_watchers_has_no_age_of_progress() {
    let story = Story::prompted().tool(1, "t1", "bash");
    let (early, late) = (row(&story, 2), row(&story, 52));
    assert_eq!((early.status, late.status, &early.because.to_string()), (Working, Working, &late.because.to_string()));
    assert!(!late.differs_from(&early));
    let later = row(&story.sign(50), 52);
    assert!(later.last_progress > late.last_progress && !later.differs_from(&late));
    let agent = Story::after_a_tool(1).by("a1").event(2, "subagent.started", json!({"toolCallId": "t9"}));
    let background = agent.answers(3, "Done.");
    let (before, after) = (row(&background, 4), row(&background.by("a1").round(40), 41));
    assert!(
        matches!(after.short_reason, ShortReason::Work(..))
            && after.short_reason != before.short_reason
            && !after.differs_from(&before)
    );
}

#[test]
fn case_173_a_copilot_that_was_just_opened_has_no_age() {
    let is_ageless =
        |short_reason: &ShortReason, words: &str| assert_eq!(*short_reason, ShortReason::Words(words.into()));
    let opened = |owner| Session {
        observed: Observed { owner, about: About { created: Some(START), ..About::default() }, ..Observed::default() },
        ..Session::default()
    };
    let shown = |session: Session| session.row(Moment::of(START), &Story::new().limits).0;
    let row_without_log = shown(opened(Owner::Alive { pid: 1, started: None }));
    assert_eq!((row_without_log.status, &*row_without_log.because.to_string()), (Idle, "no prompt yet"));
    is_ageless(&row_without_log.short_reason, "no prompt yet");
    is_ageless(&row(&Story::new(), 600).short_reason, "no prompt yet");
    for started in [None, Some(START)] {
        let short_reason = shown(opened(Owner::Opened { pid: 1, started })).short_reason;
        is_ageless(&short_reason, "opened, not prompted yet");
    }
    // What was done has one.
    let done = row(&Story::prompted().answers(1, "Done."), 600);
    assert_eq!(done.short_reason, ShortReason::Ago("done".into(), START + Span::seconds(1)));
    let silent = row(&Story::prompted(), 70);
    assert!(silent.status == Quiet && matches!(silent.short_reason, ShortReason::Silent { .. }));
}
