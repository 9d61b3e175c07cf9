//! Work outside the root's turn: sub-agents, in the foreground and the background, background shells, and compactions.

use super::story::Story;
use pilotlight_core::verdict::Status::{Finishing, Idle, Quiet, Stuck, Working};
use serde_json::json;

/// A turn that starts a background agent at 1 and ends at 2.
fn with_sub_agent() -> Story {
    let story =
        Story::prompted().requests(1, &["task"]).tool(1, "t1", "task").sub_agent_started(1, "a1", "t1", "background");
    story.done(1.01, "t1").round_end(1.01).round(1.02).answers(2, "It looks around.")
}

/// A turn that starts a background shell at 1 and ends at 2.
fn with_shell() -> Story {
    let arguments = json!({ "command": "sleep 20; echo done", "description": "bg", "mode": "async" });
    let result = json!({ "content": "<command started in background with shellId: 0>" });
    Story::prompted()
        .requests(1, &["bash"])
        .event(1, "tool.execution_start", json!({ "toolCallId": "t1", "toolName": "bash", "arguments": arguments }))
        .event(1.01, "tool.execution_complete", json!({ "toolCallId": "t1", "success": true, "result": result }))
        .round_end(1.01)
        .round(1.02)
        .answers(2, "Started.")
}

#[test]
fn case_49_sub_agents_that_write_for_25_min_are_working() {
    let mut story = Story::prompted().tool(1, "t1", "task").sub_agent_started(1, "a1", "t1", "sync");
    let mut background = with_sub_agent();
    for at in (50..=1500).step_by(50) {
        story = story.by("a1").sign(at);
        background = background.by("a1").sign(at);
    }
    for at in [600, 700, 1200, 1500, 1549] {
        story.is(at, Working);
        background.is(at, Working);
    }
    story.turns(2100, Working, Quiet);
}

#[test]
fn case_54_a_background_agent_keeps_a_session_working() {
    let story = with_sub_agent().by("a1").sign(10).sub_agent_done(30, "a1", "t1");
    story.says(2, Working, "1 background agent").is(29.999, Working).is(30, Idle).is(5000, Idle);
    let failed = with_sub_agent().by("a1").event(30, "subagent.failed", json!({ "toolCallId": "t1", "error": "no" }));
    failed.is(29, Working).is(30, Idle);
    let two = with_sub_agent()
        .sub_agent_started(3, "a2", "t2", "background")
        .sub_agent_done(30, "a1", "t1")
        .sub_agent_done(40, "a2", "t2");
    two.says(3, Working, "2 background agents").says(30, Working, "1 background agent").is(40, Idle);
}

/// Not since the end of its turn.
#[test]
fn case_54_a_session_is_idle_since_its_last_agent_ended() {
    let story = with_sub_agent().by("a1").sign(10).sub_agent_done(30, "a1", "t1");
    assert_eq!(story.verdict(40).since, story.moment(30).wall);
}

#[test]
fn case_54_events_of_an_agent_after_its_end_do_not_revive_it() {
    let story =
        with_sub_agent().sub_agent_done(30, "a1", "t1").by("a1").event(30.001, "hook.end", json!({ "success": true }));
    story.is(31, Idle).is(1000, Idle);
}

/// The agent's end is logged as a notification, and Copilot continues by itself.
#[test]
fn case_54_the_turn_after_an_agents_end_needs_no_prompt() {
    let story = with_sub_agent()
        .sub_agent_done(30, "a1", "t1")
        .event(
            30.02,
            "system.notification",
            json!({ "content": "x", "kind": { "type": "agent_idle", "agentId": "a1" } }),
        )
        .requests(30.03, &["read_agent"])
        .tool(30.04, "t2", "read_agent")
        .done(30.05, "t2")
        .round(30.06)
        .answers(31, "Noted.");
    assert_eq!(story.statuses(), [Idle, Working, Finishing, Working, Idle, Working, Finishing, Idle]);
}

#[test]
fn case_55_a_background_shell_leaves_a_session_idle() {
    let story = with_shell();
    story.says(2, Idle, "1 background shell").says(9000, Idle, "1 background shell");
    let kind = json!({ "type": "shell_completed", "shellId": "0", "exitCode": 0 });
    let over = story.event(22, "system.notification", json!({ "content": "x", "kind": kind }));
    over.is(22, Idle);
    let because = over.verdict(22).because.to_string();
    assert!(!because.contains("shell"), "{because}");
    let open = Story::prompted().tool(1, "t1", "bash").answers(2, "Done.").verdict(2).because.to_string();
    assert!(!open.contains("shell"), "a foreground shell that was cut off does not count: {open}");
}

#[test]
fn case_77_a_background_agent_silent_for_20_min_no_longer_counts() {
    let story = with_sub_agent().by("a1").sign(10);
    story.turns(10 + 1200, Working, Idle).is(9000, Idle);
    assert_eq!(story.verdict(20).recheck_at, Some(story.moment(1210).awake));
    let because = story.verdict(1210).because.to_string();
    assert!(!because.contains("agent"), "{because}");
}

/// An event of one agent, or of the root, is no progress of another.
#[test]
fn case_77_the_silence_of_each_agent_is_measured_separately() {
    let story = with_sub_agent().sub_agent_started(3, "a2", "t2", "background").by("a2").sign(600).sign(1100);
    story
        .says(1200, Working, "2 background agents")
        .says(1201, Working, "1 background agent")
        .turns(1800, Working, Idle);
}

/// A verdict that mentions an agent must be rechecked when the agent no longer counts.
#[test]
fn case_77_an_agent_is_mentioned_exactly_as_long_as_it_counts() {
    let tool = with_sub_agent().prompt(1000).tool(1000, "t2", "bash");
    let compacting = with_sub_agent().compacts(1000);
    for story in [tool, compacting] {
        story.says(1200, Working, "1 background agent");
        let recheck = story.verdict(1200).recheck_at;
        assert!(recheck.is_some_and(|at| at <= story.moment(1201).awake), "rechecked at {recheck:?}");
        let because = story.verdict(1201).because.to_string();
        assert!(!because.contains("agent"), "{because}");
    }
}

/// UP, sub-agents.
#[test]
fn case_93_a_sub_agents_rounds_leave_the_roots_turn_open() {
    let story = Story::prompted()
        .requests(1, &["task"])
        .tool(1, "t1", "task")
        .sub_agent_started(1, "a1", "t1", "sync")
        .by("a1")
        .prompt(1)
        .by("a1")
        .round(2)
        .by("a1")
        .requests(3, &["view"])
        .by("a1")
        .tool(3, "s1", "view")
        .by("a1")
        .done(4, "s1")
        .by("a1")
        .round_end(4)
        .by("a1")
        .answer(5, "Shall I?")
        .by("a1")
        .round_end(5)
        .sub_agent_done(6, "a1", "t1");
    story.says(6, Working, "task").turns(606, Working, Quiet).turns(666, Quiet, Stuck);
    assert_eq!(story.statuses(), [Idle, Working], "no finishing, no idle, no question");
    let facts = story.facts(6);
    assert_eq!(facts.turn.unwrap().tools.len(), 1, "only the root's tool");
}

/// UP, sub-agents.
#[test]
fn case_93_a_sub_agent_neither_opens_nor_closes_the_roots_turn() {
    let agent = |story: Story| story.by("a1").prompt(10).by("a1").round(10).by("a1").tool(10, "s1", "bash");
    assert!(agent(Story::new()).facts(10).turn.is_none());
    let story =
        agent(Story::prompted()).by("a1").abort(11).by("a1").error(12).by("a1").shutdown(13).by("a1").resume(14);
    assert_eq!(story.facts(14).turn.unwrap().opened, story.moment(0));
    story.is(14, Working);
}

#[test]
fn a_turn_waits_for_a_model_unless_something_else_is_open() {
    let waits = |story: &Story, at: i32| story.facts(at).waits_for_model();
    assert!(!waits(&Story::new(), 0));
    let story = Story::prompted().tool(1, "t1", "bash").done(2, "t1").answers(3, "Done.");
    assert_eq!([0, 1, 2, 3].map(|at| waits(&story, at)), [true, false, true, false]);
    let asks = Story::prompted().permission(1, "r1", "t1").permission_done(2, "r1", "t1", "approved");
    assert_eq!([0, 1, 2].map(|at| waits(&asks, at)), [true, false, true]);
    // A sub-agent in the foreground: as its own rounds.
    let foreground = Story::prompted().tool(1, "t1", "task").sub_agent_started(2, "a1", "t1", "sync");
    let story = foreground.clone().by("a1").tool(3, "s1", "bash").by("a1").permission(4, "r1", "s1");
    let story =
        story.by("a1").permission_done(5, "r1", "s1", "approved").by("a1").done(6, "s1").sub_agent_done(7, "a1", "t1");
    let story = story.done(8, "t1");
    let expected = [true, false, true, false, false, false, true, false, true];
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 8].map(|at| waits(&story, at)), expected);
    // Each of them must wait, and nothing else may be open.
    let two = foreground
        .clone()
        .tool(3, "t2", "task")
        .sub_agent_started(4, "a2", "t2", "sync")
        .by("a2")
        .tool(5, "s2", "view");
    let two = two.by("a2").done(6, "s2").tool(7, "t3", "bash");
    assert_eq!([2, 3, 4, 5, 6, 7].map(|at| waits(&two, at)), [true, false, true, false, true, false]);
    // A sub-agent's own sub-agent.
    let nested = foreground
        .by("a1")
        .tool(3, "s1", "task")
        .sub_agent_started(4, "a2", "s1", "sync")
        .by("a2")
        .tool(5, "s2", "view");
    assert_eq!([2, 3, 4, 5].map(|at| waits(&nested, at)), [true, false, true, false]);
    assert!(waits(&nested.by("a2").done(6, "s2"), 6));
    // One in the background is none of the turn's business, and a new prompt of it clears what it left open.
    let background = with_sub_agent().by("a1").tool(3, "s1", "bash").by("a1").permission(3, "r1", "s1");
    assert!(!waits(&background, 3));
    let background = background.prompt(4).round(4).by("a1").prompt(5);
    assert_eq!([4, 5].map(|at| waits(&background, at)), [true, true]);
    assert_eq!(background.facts(4).sub_agents[0].tools.len(), 1);
    assert!(background.facts(5).sub_agents[0].tools.is_empty());
}

#[test]
fn the_model_was_last_asked_at_the_start_of_the_last_round() {
    let story = Story::prompted().by("a1").round(5).answers(6, "Done.").prompt(7).round(8);
    let asked = |at: i32| story.facts(at).asked.map(|asked| asked.wall);
    assert_eq!([0, 4, 5, 6, 7, 8].map(asked), [0, 0, 5, 5, 5, 8].map(|at| Some(story.moment(at).wall)));
    assert_eq!(Story::new().facts(1).asked, None);
}

#[test]
fn a_compaction_is_working_with_the_limits_of_a_tool() {
    let story = Story::prompted().answers(1, "Done.").compacts(10);
    story.says(10, Working, "compact").turns(610, Working, Quiet).turns(670, Quiet, Stuck);
    let over = story.event(20, "session.compaction_complete", json!({ "success": true }));
    over.is(19, Working).is(20, Idle).is(5000, Idle);
    let in_turn = Story::prompted().compacts(10);
    in_turn.turns(610, Working, Quiet).turns(670, Quiet, Stuck);
    let over = in_turn.event(20, "session.compaction_complete", json!({ "success": true }));
    over.turns(80, Working, Quiet).turns(140, Quiet, Stuck);
}
