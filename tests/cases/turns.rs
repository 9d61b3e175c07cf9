//! Where a turn begins and ends: rounds, answers, autopilot, steering, and events that neither begin nor end one.

use super::story::Story;
use pilotlight_core::verdict::Status::{
    Crashed, Failed, Finishing, Idle, NeedsInput, NeedsPermission, Quiet, Stuck, Working,
};
use serde_json::json;

#[test]
fn case_5_a_completion_of_the_previous_turn_is_ignored() {
    let story = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").prompt(10).round(10).done(11, "t1");
    let turn = story.facts(11).turn.unwrap();
    assert_eq!((turn.used, turn.succeeded, turn.tools.len()), (0, 0, 0), "no tool of this turn");
    story.turns(71, Working, Quiet).turns(131, Quiet, Stuck);
    let denied =
        Story::prompted().tool(1, "t1", "bash").prompt(10).fails(11, "t1", "denied", "could not request permission");
    assert!(denied.facts(11).denials.of() == 0, "no result of this turn");
}

#[test]
fn case_19_the_end_of_an_answers_round_is_idle_at_once() {
    let story = Story::after_a_tool(1).round_end(1).round(1).answer(2, "Done.").round_end(2.004);
    story.turns(2, Working, Finishing).turns(2.004, Finishing, Idle);
    assert_eq!(story.statuses(), [Idle, Working, Finishing, Idle]);
    assert_eq!(story.verdict(500).since, story.moment(2.004).wall);
}

#[test]
fn case_20_a_slow_next_round_is_working_throughout() {
    let story = Story::after_a_tool(1).round_end(1).round(6.2).answers(7, "Done.");
    assert_eq!(story.statuses(), [Idle, Working, Finishing, Idle]);
    story.is(5, Working).is(6.199, Working).is(6.2, Working);
}

#[test]
fn case_20a_autopilot_is_never_idle_between_turns() {
    let story = Story::new().mode(0, "autopilot").prompt(1).round(1).answers(2, "On I go.").continues(2.7).round(2.7);
    story.is(2, Finishing).says(2.5, Finishing, "autopilot").is(2.7, Working);
    assert!(!story.statuses()[1..].contains(&Idle), "{:?}", story.statuses());

    let by_prompt = json!({ "content": "Paint", "delivery": "idle", "agentMode": "autopilot" });
    let story = Story::new().event(1, "user.message", by_prompt).round(1).answers(2, "On I go.").continues(2.7);
    story.is(2.5, Finishing).is(2.7, Working);
}

/// Without a continuation the turn ends after 4 s.
#[test]
fn case_20a_autopilot_that_does_not_continue_is_idle_after_4_s() {
    let story = Story::new().mode(0, "autopilot").prompt(1).round(1).answers(2, "Done.");
    story.turns(6, Finishing, Idle);
    let left = Story::new().mode(0, "autopilot").mode(1, "interactive").prompt(1).round(1).answers(2, "Done.");
    left.is(2, Idle);
}

#[test]
fn case_20b_a_completed_task_closes_the_turn_despite_tool_requests() {
    let story = Story::new()
        .mode(0, "autopilot")
        .prompt(1)
        .round(1)
        .requests(2, &["task_complete"])
        .tool(2, "t1", "task_complete")
        .done(2.001, "t1")
        .event(2.002, "session.task_complete", json!({ "summary": "Painted", "success": true }))
        .round_end(2.003);
    story.is(2.002, Working).is(2.003, Idle).is(10, Idle);
    let next = story.prompt(20).round(20).answers(21, "Done.");
    next.is(21, Idle); // a completed task ends autopilot
}

#[test]
fn case_20c_a_steering_message_joins_the_turn() {
    let story = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").permission(1, "r1", "t1");
    let story = story.permission_done(2, "r1", "t1", "approved").steers(3);
    story.says(3, Working, "bash").turns(603, Working, Quiet);
    assert_eq!(story.facts(3).turn.map(|turn| turn.opened), Some(story.moment(0)), "the same turn");
    Story::new().steers(1).is(1, Working);
}

#[test]
fn case_20d_silence_after_a_round_with_requests_becomes_quiet_then_stuck() {
    let story = Story::after_a_tool(1).round_end(1.01);
    story.is(1.01, Working).turns(121.01, Working, Quiet).turns(601.01, Quiet, Stuck);
}

#[test]
fn case_20f_a_lone_round_end_or_system_message_opens_no_turn() {
    Story::new().round_end(1).is(1, Idle).is(200, Idle);
    Story::cut().round_end(1).is(1, Idle).is(200, Idle);
    Story::new()
        .event(1, "system.message", json!({ "role": "system", "content": "You are" }))
        .is(1, Idle)
        .is(200, Idle);
    Story::prompted().answers(1, "Done.").round_end(2).is(2, Idle).is(200, Idle);
}

#[test]
fn case_20g_the_users_own_command_is_no_turn() {
    let command = |story: Story| {
        let done =
            json!({ "toolCallId": "u1", "success": true, "isUserRequested": true, "result": { "content": "ok" } });
        story
            .event(
                5,
                "tool.user_requested",
                json!({ "toolCallId": "u1", "toolName": "bash", "arguments": { "command": "ls" } }),
            )
            .event(65, "tool.execution_complete", done)
    };
    let story = command(Story::new());
    story.is(5, Idle).is(64, Idle).is(65, Idle).is(800, Idle);
    assert!(story.facts(65).denials.of() == 0, "no result for the denials");

    let in_turn = command(Story::prompted());
    assert_eq!(in_turn.facts(65).turn.unwrap().used, 0, "no tool used");
    in_turn.turns(125, Working, Quiet).turns(185, Quiet, Stuck);
}

#[test]
fn case_21_a_round_without_a_message_is_finishing_for_4_s() {
    let story = Story::prompted().round_end(10);
    story.turns(14, Finishing, Idle);
    assert_eq!(story.verdict(10).recheck_at, Some(story.moment(14).awake));
    Story::after_a_tool(1).round_end(1).round(2).round_end(3).turns(7, Finishing, Idle);
}

/// While a tool or a request is open, the end of a round closes nothing: the model still has to respond to the result.
#[test]
fn case_146_a_round_without_a_message_closes_no_open_tool_or_request() {
    let tool = Story::prompted().tool(1, "t1", "bash").round_end(3);
    tool.is(3, Working).is(7, Working).says(100, Working, "running bash").turns(603, Working, Quiet);
    let done = tool.done(50, "t1");
    done.is(50, Working).is(60, Working).turns(170, Working, Quiet);
    done.round(51).answers(52, "Done.").is(52, Idle);

    let asks = Story::prompted().permission(2, "r1", "t1").round_end(3);
    asks.is(3, NeedsPermission).is(7, NeedsPermission).is(9000, NeedsPermission);
    let asked_late = Story::prompted().round_end(2).permission(3, "r1", "t1");
    asked_late.is(2, Finishing).is(3, NeedsPermission).is(7, NeedsPermission).is(9000, NeedsPermission);
    // A background sub-agent's request does not keep the turn open.
    let background =
        Story::prompted().tool(1, "t1", "task").sub_agent_started(1, "a1", "t1", "background").done(1, "t1");
    let background = background.by("a1").permission(2, "r1", "t2").round_end(3);
    assert!(background.verdict(7).turn.is_none());
}

/// The same for an answer: its turn ends when nothing is open any more.
#[test]
fn case_146_an_answer_ends_its_turn_once_nothing_is_open() {
    let tool = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").answers(10, "Done.");
    tool.is(10, Working).is(400, Working).turns(610, Working, Quiet);
    let done = tool.clone().done(30, "t1");
    done.is(29, Working).is(30, Idle);
    assert_eq!(done.verdict(40).since, done.moment(30).wall);
    tool.clone().requests(20, &["view"]).tool(20, "t2", "view").done(30, "t1").is(30, Working);
    tool.clone().owner_gone().says(20, Crashed, "unfinished: bash");
    tool.abort(20).is(20, Idle);
    let asks = Story::prompted().permission(2, "r1", "t1").answers(3, "Shall I?");
    asks.is(3, NeedsPermission).is(500, NeedsPermission);
    asks.permission_done(600, "r1", "t1", "approved").is(600, NeedsInput);
    let complete = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash");
    let complete = complete.event(2, "session.task_complete", json!({})).round_end(3);
    complete.is(100, Working);
    complete.done(101, "t1").is(101, Idle);
}

/// However many events it has.
#[test]
fn case_149_a_turn_shows_its_duration_and_its_tools() {
    let mut story = Story::prompted();
    for minute in 1..=75 {
        story = story.sign(minute * 60);
        if minute % 10 == 5 {
            story = story.ran(minute * 60, &format!("t{minute}"));
        }
    }
    let turn = story.verdict(75 * 60).turn.unwrap();
    assert_eq!((turn.since, turn.tools), (story.moment(0).wall, 8));
    assert_eq!(turn.words(None, story.moment(75 * 60).wall).as_deref(), Some("turn: 75 min, 8 tools"));
    assert_eq!(turn.words(None, story.moment(12 * 60).wall).as_deref(), Some("turn: 12 min, 8 tools"));
    assert_eq!(turn.words(None, story.moment(59).wall), None);
    assert_eq!(Story::prompted().ran(1, "t1").verdict(1).turn.map(|turn| turn.tools), Some(1));

    let cut = Story::cut().ran(1, "t1").signs(2, 130, 20);
    let words = cut.verdict(130).turn.unwrap().words(None, cut.moment(130).wall);
    assert_eq!(words.as_deref(), Some("turn: at least 2 min, 1 tool"));
    let open = |story: &Story, at: i32| story.verdict(at).turn.is_some();
    assert!(!open(&story.clone().answers(4600, "Done."), 4601), "it is over");
    assert!(!open(&story.clone().owner_gone(), 4600), "its owner is gone");
    assert!(!open(&Story::prompted().answer(1, "Done."), 302), "time closed it");
}

#[test]
fn case_22_a_round_within_3_s_continues_the_turn() {
    let story = Story::prompted().round_end(10).round(13);
    story.is(12.999, Finishing).is(13, Working).is(20, Working);
    assert_eq!(story.statuses(), [Idle, Working, Finishing, Working]);
}

#[test]
fn case_23_an_error_right_after_a_round_fails_without_idle_first() {
    let story = Story::prompted().round_end(15).error(15.006);
    story.is(15, Finishing).is(15.006, Failed).is(9000, Failed);
    assert_eq!(story.statuses(), [Idle, Working, Finishing, Failed]);
    let reversed = Story::prompted().error(15).round_end(15.006);
    assert_eq!(reversed.statuses(), [Idle, Working, Failed]);
}

/// The terminal writes the round's end first, the SDK the abort.
#[test]
fn case_24_an_abort_and_a_round_end_are_idle_in_either_order() {
    let tool = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash");
    for story in [tool.clone().round_end(3).abort(3.002), tool.abort(3).round_end(3.002)] {
        story.is(3.002, Idle).is(10, Idle).is(1000, Idle);
        assert!(story.facts(4).turn.is_none() && story.facts(4).requests.is_empty());
    }
    let thinking = Story::prompted();
    for story in [thinking.clone().round_end(3).abort(3.002), thinking.abort(3).round_end(3.002)] {
        story.is(3.002, Idle).is(10, Idle).is(1000, Idle);
    }
}

#[test]
fn case_43_after_an_error_the_next_prompt_works() {
    let story = Story::prompted().round_end(15).error(15.006).prompt(60).round(60);
    story.says(20, Failed, "500").is(59.999, Failed).is(60, Working).turns(120, Working, Quiet);
}

#[test]
fn case_52_a_round_6_s_after_a_turn_works_again() {
    let story = Story::prompted().answers(1, "Done.").round(7);
    story.is(1, Idle).is(6.999, Idle).is(7, Working);
    assert_eq!(story.statuses(), [Idle, Working, Finishing, Idle, Working]);
}

#[test]
fn case_59_tools_are_paired_by_id_never_counted() {
    let story = Story::prompted()
        .requests(1, &["bash", "view"])
        .tool(1, "t1", "bash")
        .tool(1, "t2", "view")
        .done(2, "t2")
        .done(3, "t2") // t2 again: does not close t1
        .done(4, "t1")
        .done(5, "t9"); // an unknown tool
    assert_eq!(story.facts(3).turn.unwrap().tools.len(), 1, "t1 is still open");
    assert_eq!(story.facts(5).turn.unwrap().tools.len(), 0);
    story.says(3, Working, "bash").turns(125, Working, Quiet);
}

#[test]
fn case_63_of_parallel_tools_the_one_without_completion_is_open() {
    let story = Story::prompted().tool(1, "t1", "bash").tool(1, "t2", "view").tool(1, "t3", "grep");
    let story = story.done(2, "t3").done(2, "t1");
    let turn = story.facts(2).turn.unwrap();
    assert_eq!(turn.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["view"]);
    assert_eq!((turn.used, turn.succeeded), (3, 2));
    story.says(2, Working, "view").turns(602, Working, Quiet);
}

/// A tool that continues after a resume starts again under the same id.
#[test]
fn case_63_a_tool_that_starts_again_is_the_same_tool() {
    let story = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").permission(1, "r1", "t1");
    let story = story.resume_pending(20).permission_done(21, "r1", "t1", "approved").tool(21, "t1", "bash");
    let turn = story.facts(21).turn.unwrap();
    assert_eq!((turn.tools.len(), turn.used), (1, 1));
    let story = story.done(22, "t1");
    assert!(story.facts(22).turn.unwrap().tools.is_empty());
    story.turns(142, Working, Quiet);
}

/// A turn also opens without a prompt, at a round or at the start of a tool: for example when a background shell ends.
#[test]
fn case_52_a_tool_that_starts_opens_a_turn() {
    let story = Story::prompted().answers(1, "Done.").requests(20, &["read_bash"]).tool(20.001, "t2", "read_bash");
    story.is(20, Idle).is(20.001, Working);
}
