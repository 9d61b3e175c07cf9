//! What is known besides the log: a server's report of whether it has work, and samples of a tool's CPU use.

use super::story::Story;
use pilotlight_core::question::Question;
use pilotlight_core::verdict::Status::{Failed, Finishing, Idle, NeedsInput, NeedsPermission, Quiet, Stuck, Working};
use pilotlight_core::verdict::{Answer, Asking, Liveness, SAMPLE_DURATION, Sample};
use serde_json::json;

/// `has_active_work` true: a turn that only a guess ended is working.
#[test]
fn a_server_with_work_overrules_a_guess_that_the_turn_is_over() {
    let story = Story::prompted().round_end(10);
    story.is(20, Idle);
    story.server_says(true).is(12, Finishing).is(14, Working).is(20, Working);

    let answered = Story::prompted().ran(1, "t1").answer(10, "Done.");
    answered.is(310, Idle);
    answered.server_says(true).is(310, Quiet); // a model silent for that long is not working either

    let resumed = Story::after_a_tool(1).round_end(1).resume_pending(100);
    resumed.is(140, Idle);
    resumed.server_says(true).is(140, Working);

    let former = Story::prompted().tool(1, "t1", "bash").new_owner(50);
    former.is(100, Idle);
    former.server_says(true).is(100, Working);
}

/// The verdict still says when the guess would be made.
#[test]
fn a_server_with_work_does_not_hide_the_end_of_finishing() {
    let story = Story::prompted().round_end(10).server_says(true);
    assert_eq!(story.verdict(11).recheck_at, Some(story.moment(14).awake));
}

/// A turn's end guessed before the last line was read is still only a guess.
#[test]
fn a_server_with_work_overrules_an_earlier_guess() {
    Story::prompted().round_end(10).sign(20).server_says(true).is(21, Working);
    Story::prompted().answer(10, "Shall I?").sign(400).server_says(true).is(401, Working);
}

/// `has_active_work` true: an open tool counts as busy.
#[test]
fn a_server_with_work_makes_an_open_tool_busy() {
    let story = Story::prompted().tool(0, "t1", "bash").server_says(true);
    story.turns(600, Working, Quiet).is(660, Quiet).turns(3600, Quiet, Stuck).says(3600, Stuck, "running long");
    assert_eq!(story.verdict(1).sample_at, None, "no CPU sample is needed");
}

/// `has_active_work` true: a silent model is still stuck at its limit.
#[test]
fn a_server_with_work_does_not_excuse_a_silent_model() {
    Story::prompted().server_says(true).turns(60, Working, Quiet).turns(120, Quiet, Stuck);
    Story::after_a_tool(0).round_end(0).server_says(true).turns(120, Working, Quiet).turns(600, Quiet, Stuck);
}

/// `has_active_work` false: an open turn is over, with everything open in it.
#[test]
fn a_server_without_work_ends_an_open_turn() {
    Story::prompted().server_says(false).is(1, Idle).is(1000, Idle);
    Story::after_a_tool(1).round_end(1).server_says(false).is(2, Idle).is(1000, Idle);
    Story::prompted().tool(1, "t1", "bash").server_says(false).is(2, Idle).is(1000, Idle);
    Story::prompted().tool(1, "t1", "bash").permission(2, "r1", "t1").server_says(false).is(3, Idle);
    Story::prompted().tool(1, "t1", "ask_user").server_says(false).is(3, Idle);
    Story::prompted().round_end(1).error(1).server_says(false).is(2, Failed);
    Story::prompted().answers(1, "Shall I?").server_says(false).is(2, NeedsInput);
    Story::prompted().answer(1, "Shall I?").server_says(false).is(2, NeedsInput);
}

/// Not attached: the log decides.
#[test]
fn without_a_server_the_log_decides() {
    let story = Story::prompted().tool(1, "t1", "bash").permission(2, "r1", "t1");
    assert_eq!(story.liveness, Liveness::default());
    story.is(1, Working).is(2, NeedsPermission);
}

fn sampled(story: &Story, busy: bool, at: i32) -> Story {
    let at = story.moment(at);
    story.clone().with_liveness(Liveness { busy: Some(Sample { busy, at }), ..Liveness::default() })
}

/// A CPU sample older than the last sign of life says nothing about the present silence.
#[test]
fn a_sample_from_before_the_last_progress_does_not_count() {
    let story = Story::prompted().tool(0, "t1", "bash").sign(1000);
    sampled(&story, true, 655).turns(1660, Quiet, Stuck);
    sampled(&story, true, 1655).turns(1660, Quiet, Quiet).turns(4600, Quiet, Stuck);
    assert!(sampled(&story, true, 655).verdict(1001).sample_at > Some(story.moment(1600).awake), "a new one is due");
}

/// CPU use excuses a silent tool, not a silent model.
#[test]
fn a_busy_process_excuses_only_open_tools() {
    let model = Story::after_a_tool(0).round_end(0);
    sampled(&model, true, 599).turns(600, Quiet, Stuck);
    let silent = Story::prompted();
    sampled(&silent, true, 119).turns(120, Quiet, Stuck);
}

/// Sampling begins early enough to be complete at the limit, whatever the limit.
#[test]
fn a_sample_is_due_in_time() {
    let mut story = Story::prompted().tool(0, "t1", "bash");
    for limit in [6, 30, 660, 5000] {
        story.limits.tool_stuck = pilotlight_core::time::Span::seconds(limit);
        story.limits.tool_quiet = story.limits.tool_stuck;
        let sample = story.verdict(0).sample_at.unwrap();
        assert!(sample + SAMPLE_DURATION <= story.moment(0).awake + story.limits.tool_stuck, "{limit} s: {sample}");
    }
}

/// The story with a server's answer from after its last line.
fn with_answer(story: Story, active: bool, requests: usize) -> Story {
    let progress = story.facts(100_000).progress.unwrap().wall;
    let answer = Some(Answer { progress, active, requests });
    story.with_liveness(Liveness { answer, ..Liveness::default() })
}

/// An MCP tool asks its user for twelve minutes; the server reports the question only to attached clients.
#[test]
fn case_126_a_session_that_may_be_waiting_is_never_stuck() {
    let story = Story::prompted().tool(0, "t1", "asker-ask");
    story.turns(660, Quiet, Stuck);
    let busy = with_answer(story.clone(), true, 0);
    busy.is(720, Quiet).says(720, Quiet, "it may be busy, or waiting for you").is(100_000, Quiet);
    // A process that uses CPU is not waiting for anybody, so it is sampled as without a server.
    assert_eq!(busy.verdict(650).sample_at, story.verdict(650).sample_at);
    let mut liveness = busy.liveness.clone();
    liveness.busy = Some(Sample { busy: true, at: story.moment(659) });
    let works = busy.clone().with_liveness(liveness);
    works.says(720, Quiet, "running long: asker-ask, its process is busy").is(100_000, Quiet);
    assert!(!works.verdict(720).because.to_string().contains("waiting for you"));
    // While the server's answer is pending, the session is not called stuck.
    story
        .clone()
        .with_liveness(Liveness { querying_server: true, ..Liveness::default() })
        .is(720, Quiet)
        .is(100_000, Quiet);
    // No activity closes the turn, and requests that only the server knows of count.
    with_answer(story.clone(), false, 0).is(720, Idle).says(720, Idle, "no active work");
    with_answer(story.clone(), true, 2).is(720, NeedsPermission).says(
        720,
        NeedsPermission,
        "2 permission requests are open",
    );
    // The answer is valid until the next event.
    let answered = with_answer(story, true, 0);
    answered.sign(721).turns(1381, Quiet, Stuck);
    // A silent model is not asking anybody: the server's answer does not excuse it.
    with_answer(Story::prompted(), true, 0).turns(120, Quiet, Stuck);
    // A compaction counts as an open tool.
    with_answer(Story::prompted().answers(1, "Done.").compacts(2), true, 0).is(5000, Quiet);
}

/// An attached session's question is in the reason.
#[test]
fn case_126_a_question_is_quoted_in_the_reason() {
    let asks = |story: Story| {
        let question =
            Question { id: None, text: "Which database?".into(), choices: vec!["test".into(), "prod".into()] };
        let since = story.moment(1).wall;
        let questions = vec![Asking { question, since, form: Err("it is made up".into()) }];
        story.with_liveness(Liveness { questions, has_active_work: Some(true), ..Liveness::default() })
    };
    let story = asks(Story::prompted().tool(0, "t1", "asker-ask"));
    story.is(720, NeedsInput).is(100_000, NeedsInput).says(720, NeedsInput, "asks: \"Which database?\" test or prod");
    let verdict = story.verdict(720);
    assert_eq!((verdict.since, verdict.is_by_message()), (story.moment(1).wall, false));
    assert_eq!(&*verdict.question().unwrap().text, "Which database?");
    // The end of the turn ends the question, even before the server reports it.
    let over = asks(Story::prompted().tool(0, "t1", "asker-ask").abort(5));
    over.clone().server_says(false).is(6, Idle);
    // The question of a tool that asks is in the log.
    let data = json!({"toolCallId": "t1", "toolName": "ask_user",
        "arguments": {"question": "Which color?", "choices": ["red", "blue"]}});
    let tool = Story::prompted().event(1, "tool.execution_start", data);
    tool.says(700, NeedsInput, "asks: \"Which color?\" red or blue");
    assert_eq!(tool.verdict(700).question().unwrap().choices.len(), 2);
    Story::prompted().tool(1, "t1", "ask_user").says(2, NeedsInput, "by ask_user");
}
