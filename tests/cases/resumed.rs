//! Sessions that were resumed, and sessions whose owner is younger than the work open in their log.

use super::story::Story;
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status::{Failed, Idle, NeedsInput, NeedsPermission, Quiet, Stuck, Working};

/// A tool was running, then the session was resumed with its pending work.
fn resumed_with_a_tool() -> Story {
    Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").resume_pending(100)
}

/// Only a silent model was left, then the session was resumed with its pending work.
fn resumed_with_nothing() -> Story {
    Story::after_a_tool(1).round_end(1).resume_pending(100)
}

#[test]
fn case_10_an_abort_clears_the_resumed_flag() {
    let story = resumed_with_nothing().abort(105).prompt(110).round(110);
    story.is(105, Idle).is(145, Working).turns(170, Working, Quiet).turns(230, Quiet, Stuck);
}

#[test]
fn case_14_resumed_with_pending_work_and_silent_for_30_s_is_idle() {
    let story = resumed_with_nothing();
    story.is(100, Working).turns(130, Working, Idle).says(130, Idle, "resumed, nothing since").is(5000, Idle);
    assert_eq!(story.verdict(101).recheck_at, Some(story.moment(130).awake));
    let changes = story.changes(Default::default(), Span::hours(2));
    assert!(changes.iter().all(|change| change.status != Stuck), "{changes:?}");
}

#[test]
fn case_14_resumed_otherwise_is_idle_at_once() {
    let story = Story::after_a_tool(1).round_end(1).resume(100);
    story.says(100, Idle, "resumed, your turn").is(131, Idle);
    Story::prompted().tool(1, "t1", "bash").resume(100).says(100, Idle, "resumed, your turn");
}

#[test]
fn case_14_a_resume_ends_a_failure() {
    let failed = Story::prompted().round_end(15).error(15.006);
    failed.clone().resume(100).is(99, Failed).is(100, Idle);
    failed.resume_pending(100).is(99, Failed).is(131, Idle);
}

/// Nothing is open, so the 30 s apply.
#[test]
fn case_14_resumed_after_an_answer_that_never_closed_its_turn() {
    Story::prompted().answer(1, "Done.").resume_pending(100).is(131, Idle);
}

#[test]
fn case_15_an_event_at_29_s_restores_the_normal_limits() {
    let story = resumed_with_nothing().sign(129);
    story.is(131, Working).turns(249, Working, Quiet).turns(729, Quiet, Stuck);
    resumed_with_nothing().metric(129).turns(130, Working, Idle); // a metric is no sign of life
}

#[test]
fn case_16_a_session_never_resumed_never_uses_the_30_s() {
    Story::prompted().turns(60, Working, Quiet).turns(120, Quiet, Stuck);
    Story::after_a_tool(1).round_end(1).is(32, Working).turns(121, Working, Quiet);
    Story::cut().round(1).is(32, Working).turns(61, Working, Quiet);
}

#[test]
fn case_20e_resumed_with_pending_work_keeps_tools_and_requests_open() {
    resumed_with_a_tool()
        .says(100, Working, "bash")
        .is(131, Working)
        .turns(700, Working, Quiet)
        .turns(760, Quiet, Stuck);
    let request = Story::prompted().tool(1, "t1", "bash").permission(2, "r1", "t1").resume_pending(100);
    request.is(100, NeedsPermission).is(131, NeedsPermission).is(5000, NeedsPermission);
    let question = Story::prompted().tool(1, "t1", "ask_user").resume_pending(100);
    question.is(131, NeedsInput).is(5000, NeedsInput);
    let done = resumed_with_a_tool().done(110, "t1");
    done.is(141, Working).turns(230, Working, Quiet);
}

#[test]
fn case_20e_resumed_otherwise_closes_tools_and_requests() {
    let story = Story::prompted().tool(1, "t1", "bash").permission(2, "r1", "t1").resume(100);
    story.is(99, NeedsPermission).is(100, Idle).is(5000, Idle);
    let facts = story.facts(100);
    assert!(facts.turn.is_none() && facts.requests.is_empty());
    Story::prompted().tool(1, "t1", "ask_user").resume(100).is(100, Idle);
    Story::new().compacts(1).resume(100).is(99, Working).is(100, Idle);
}

#[test]
fn work_left_open_by_a_former_owner_closes_30_s_after_the_next_owners_start() {
    let tool = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").new_owner(50);
    tool.turns(80, Working, Idle).is(5000, Idle);
    assert_eq!(tool.verdict(60).recheck_at, Some(tool.moment(80).awake));
    assert_eq!(tool.verdict(5000).since, tool.moment(80).wall);
    Story::prompted().new_owner(10).turns(40, Working, Idle);
    let request = Story::prompted().tool(1, "t1", "bash").permission(2, "r1", "t1").new_owner(50);
    request.turns(80, NeedsPermission, Idle);
    Story::prompted().tool(1, "t1", "ask_user").new_owner(50).turns(80, NeedsInput, Idle);
}

#[test]
fn a_sub_agents_request_of_a_former_owner_closes_too() {
    let story = Story::prompted()
        .tool(1, "t1", "task")
        .sub_agent_started(1, "a1", "t1", "sync")
        .by("a1")
        .permission(2, "r1", "t2")
        .new_owner(50);
    story.turns(80, NeedsPermission, Idle);
}

#[test]
fn a_compaction_of_a_former_owner_closes_too() {
    let story = Story::prompted().answers(1, "Done.").compacts(2).new_owner(50);
    story.turns(80, Working, Idle).is(1000, Idle);
}

#[test]
fn a_background_agent_of_a_former_owner_closes_too() {
    let story = Story::prompted().tool(1, "t1", "task").sub_agent_started(1, "a1", "t1", "background").done(1, "t1");
    story.answers(2, "Done.").new_owner(50).turns(80, Working, Idle);
}

/// The machine slept between the two owners.
#[test]
fn a_new_owner_after_a_sleep_is_still_younger_than_the_open_work() {
    let story = Story::prompted().tool(1, "t1", "bash").wall_jumps(20, Span::hours(8)).new_owner(25);
    story.is(30, Working).turns(55, Working, Idle).is(500, Idle);
}

/// An owner older than the last event may be at work.
#[test]
fn work_of_the_present_owner_stays_open() {
    let story = Story::prompted().tool(1, "t1", "bash").sign(51).new_owner(50);
    story.is(82, Working).turns(651, Working, Quiet);
}
