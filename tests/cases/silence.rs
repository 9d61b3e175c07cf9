//! How long each kind of silence may last: just before, exactly at and just after every limit, on the right clock.

use super::story::Story;
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status::{Ended, Failed, Finishing, Idle, Quiet, Stuck, Working};
use pilotlight_core::verdict::{Liveness, Sample};
use serde_json::json;

#[test]
fn case_1_silence_of_119_s_without_a_tool_is_not_stuck() {
    let story = Story::new().prompt(0);
    story.is(0, Working).turns(60, Working, Quiet).is(119, Quiet).is(119.999, Quiet);
    Story::prompted().metric(0.5).turns(60, Working, Quiet).is(119, Quiet);
}

#[test]
fn case_2_silence_of_120_s_without_a_tool_is_stuck() {
    let story = Story::prompted();
    story.turns(120, Quiet, Stuck).says(120, Stuck, "no tool used").says(120, Stuck, "silent 2 min").is(36_000, Stuck);
    let verdict = story.verdict(120);
    assert_eq!(verdict.since, story.moment(120).wall, "stuck since the limit was passed");
}

#[test]
fn case_4_an_open_tool_may_be_silent_for_300_s() {
    let story = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash");
    story.says(301, Working, "bash");
}

/// A session found already running is judged as if it had been watched from its start.
#[test]
fn case_6_a_session_found_running_has_its_limits() {
    let found = Story::prompted().verdict(30);
    assert_eq!(found.status, Working);
    assert_eq!(found.recheck_at, Some(Story::new().moment(60).awake));
    Story::prompted().is(3000, Stuck);
}

#[test]
fn case_8_found_running_and_10_s_silent_is_not_stuck() {
    Story::prompted().signs(10, 6000, 50).is(6010, Working);
    Story::cut().round(0).is(10, Working);
}

#[test]
fn case_9_a_tool_done_and_130_s_between_rounds_is_not_stuck() {
    let story = Story::after_a_tool(10).round_end(10).round(140);
    story.turns(130, Working, Quiet).is(139.999, Quiet).is(140, Working);
    let thinking = Story::after_a_tool(10).round_end(10).round(10);
    thinking.turns(130, Working, Quiet).turns(610, Quiet, Stuck).says(610, Stuck, "silent 10 min");
}

/// Streaming appears as signs of life, or as a line that grows.
#[test]
fn case_18_a_model_that_streams_for_10_min_is_working() {
    Story::prompted().signs(50, 600, 50).is(600, Working).is(659, Working);
    let mut growing = Story::prompted();
    for at in (50..=600).step_by(50) {
        growing = growing.part(at);
    }
    growing.is(600, Working).turns(660, Working, Quiet);
}

#[test]
fn case_25_metrics_are_no_sign_of_life() {
    let mut story = Story::prompted();
    for at in (5..=120).step_by(5) {
        story = story
            .metric(at)
            .event(at, "session.usage_checkpoint", json!({}))
            .event(at, "assistant.usage", json!({ "inputTokens": 3 }))
            .event(at, "model.call_success", json!({}));
    }
    story.turns(60, Working, Quiet).turns(120, Quiet, Stuck);
}

#[test]
fn case_26_events_for_61_min_are_working() {
    let story = Story::prompted().signs(30, 3660, 30);
    story.is(3600, Working).is(3660, Working);
    Story::after_a_tool(1).signs(30, 3660, 30).is(3660, Working);
}

/// A long turn is allowed no longer silence than a short one.
#[test]
fn case_27_limits_of_silence_are_the_same_after_an_hour() {
    Story::prompted().signs(30, 3600, 30).turns(3720, Quiet, Stuck);
    Story::after_a_tool(1).signs(30, 3600, 30).turns(4200, Quiet, Stuck);
    let tool = Story::prompted().tool(1, "t1", "bash").signs(30, 3600, 30);
    tool.turns(4260, Quiet, Stuck);
    let at = tool.moment(4255);
    let busy = tool.with_liveness(Liveness { busy: Some(Sample { busy: true, at }), ..Liveness::default() });
    busy.turns(7200, Quiet, Stuck).says(7200, Stuck, "running long");
}

#[test]
fn case_28_a_stuck_turn_with_an_unknown_start_says_so() {
    let cut = Story::cut().round(0);
    cut.turns(120, Quiet, Stuck).says(120, Stuck, "unknown");
    Story::cut().tool(0, "t9", "bash").says(660, Stuck, "unknown");
    let whole = Story::prompted().verdict(120).because.to_string();
    assert!(!whole.contains("unknown"), "{whole}");
    let next = Story::cut().prompt(0).verdict(120).because.to_string();
    assert!(!next.contains("unknown"), "a prompt is where a turn starts: {next}");
}

/// At most 90 s of silent retries, then the turn ends and the error follows.
#[test]
fn case_44_a_rate_limit_that_is_retried_raises_no_alarm() {
    let story = Story::prompted().round_end(90).error(90.006);
    story.is(89, Quiet).is(90, Finishing).is(90.006, Failed);
}

#[test]
fn case_45_an_open_tool_is_quiet_at_600_s_and_stuck_at_660_s() {
    let story = Story::prompted().requests(0, &["bash"]).tool(0, "t1", "bash");
    story.is(599, Working).turns(600, Working, Quiet).turns(660, Quiet, Stuck).says(660, Stuck, "bash");
    story.says(660, Stuck, "silent 11 min");
}

/// A tool whose process uses CPU may be silent for an hour.
#[test]
fn case_45_an_open_tool_whose_process_is_busy_is_stuck_at_3600_s() {
    let story = Story::prompted().requests(0, &["bash"]).tool(0, "t1", "bash");
    let sampled = |busy, at: i32| {
        let at = story.moment(at);
        story.clone().with_liveness(Liveness { busy: Some(Sample { busy, at }), ..Liveness::default() })
    };
    let busy = sampled(true, 659);
    busy.turns(600, Working, Quiet).is(660, Quiet).turns(3600, Quiet, Stuck).says(3600, Stuck, "running long");
    sampled(false, 659).turns(660, Quiet, Stuck);
    let wording = sampled(false, 659).verdict(660).because.to_string();
    assert!(!wording.contains("running long"), "{wording}");
}

/// The sample must be complete before the limit that needs it, and is not taken any earlier.
#[test]
fn case_45_cpu_is_sampled_only_before_a_limit_that_needs_it() {
    let story = Story::prompted().requests(0, &["bash"]).tool(0, "t1", "bash");
    let sample = story.verdict(1).sample_at.unwrap();
    assert!(sample <= story.moment(655).awake, "a sample takes 5 s: {sample}");
    assert!(sample > story.moment(600).awake, "not sampled before it is needed: {sample}");
    assert_eq!(Story::prompted().verdict(1).sample_at, None, "no tool is open");
    assert_eq!(story.owner_gone().verdict(1).sample_at, None, "no process is left");
}

#[test]
fn case_46_any_step_resets_the_clock() {
    let story = Story::prompted().tool(0, "t1", "bash").event(599, "some.new_type", json!({ "x": 1 }));
    story.is(600, Working).turns(1199, Working, Quiet).turns(1259, Quiet, Stuck);
    let agent = Story::prompted().tool(0, "t1", "task").sub_agent_started(0, "a1", "t1", "sync");
    agent.by("a1").sign(599).turns(1199, Working, Quiet);
    Story::prompted().steers(100).turns(160, Working, Quiet);
}

#[test]
fn case_48_silence_of_300_s_between_rounds_is_quiet() {
    Story::after_a_tool(10).round_end(10).is(310, Quiet);
    Story::after_a_tool(10).round_end(10).round(10).is(310, Quiet);
}

#[test]
fn case_66_a_machine_that_slept_makes_nothing_stuck() {
    for asleep in [Span::minutes(40), Span::hours(8)] {
        let story = Story::prompted().wall_jumps(30, asleep);
        story.is(30, Working).turns(60, Working, Quiet).turns(120, Quiet, Stuck);
        let tool = Story::prompted().tool(0, "t1", "bash").wall_jumps(30, asleep);
        tool.is(31, Working).turns(600, Working, Quiet).turns(660, Quiet, Stuck);
        let no_turn = Story::prompted().answers(1, "Done.").wall_jumps(30, asleep);
        no_turn.is(31, Idle);
        let answered = Story::prompted().answer(1, "Done.").wall_jumps(30, asleep);
        answered.is(31, Finishing).turns(301, Finishing, Idle);
        let agent = Story::after_a_tool(1).sub_agent_started(1, "a1", "t1", "background").answers(2, "Done.");
        agent.wall_jumps(30, asleep).says(31, Working, "1 background agent");
    }
}

/// An event after waking has a timestamp of the new wall clock, and resets the silence.
#[test]
fn case_66_events_after_waking_reset_the_silence() {
    let story = Story::prompted().wall_jumps(30, Span::hours(8)).sign(50);
    story.is(109, Working).turns(110, Working, Quiet).turns(170, Quiet, Stuck);
    assert_eq!(story.verdict(170).since, story.moment(170).wall);
}

#[test]
fn case_68_setting_the_wall_clock_changes_nothing() {
    for by in [Span::hours(1), Span::hours(-1), Span::seconds(-45)] {
        let story = Story::prompted().wall_jumps(30, by).sign(40);
        story.is(31, Working).is(41, Working).turns(100, Working, Quiet).turns(160, Quiet, Stuck);
        let tool = Story::prompted().tool(0, "t1", "bash").wall_jumps(30, by).sign(40);
        tool.turns(640, Working, Quiet).turns(700, Quiet, Stuck);
        let over = Story::prompted().answers(1, "Done.").wall_jumps(30, by).prompt(40).round_end(41).error(41.006);
        over.is(35, Idle).is(40, Working).is(41, Finishing).is(42, Failed);
    }
}

/// A replay has only the log's clock. Where that was set back, no time passes.
#[test]
fn case_68_a_replay_of_a_clock_set_back_raises_no_alarm() {
    let story = Story::prompted().wall_jumps(30, Span::hours(-1)).sign(40).sign(50).answers(55, "Done.");
    assert_eq!(story.statuses(), [Idle, Working, Finishing, Idle]);
}

#[test]
fn case_76_half_a_line_is_progress() {
    Story::prompted().part(59).turns(119, Working, Quiet).turns(179, Quiet, Stuck);
}

/// Three hours of what Copilot writes while a model is silent.
#[test]
fn case_159_notices_in_an_open_turn_are_no_progress() {
    let notified = json!({ "content": "x", "kind": { "type": "shell_completed", "shellId": "0" } });
    let asides = [
        ("session.info", json!({ "message": "still here", "infoType": "mcp" })),
        ("session.warning", json!({ "message": "slow", "warningType": "mcp" })),
        ("system.notification", notified),
        ("system.notification", json!({ "content": "x", "kind": { "type": "agent_idle", "agentId": "a1" } })),
        ("session.mode_changed", json!({ "newMode": "plan" })),
        ("session.model_change", json!({ "newModel": "other" })),
        ("session.permissions_changed", json!({})),
        ("session.new_notice", json!({})),
        ("session.usage_record", json!({ "usage": { "inputTokens": 1 } })),
        ("model.response", json!({})),
    ];
    for (kind, data) in asides {
        let every_minute = |story: Story| (1..=180).fold(story, |story, n| story.event(60 * n, kind, data.clone()));
        let asked = every_minute(Story::prompted());
        asked.turns(60, Working, Quiet).turns(120, Quiet, Stuck).is(10_800, Stuck);
        assert_eq!(asked.facts(10_800).progress, Some(asked.moment(0)), "{kind}");
        every_minute(Story::prompted().tool(0, "t1", "bash")).turns(600, Working, Quiet).turns(660, Quiet, Stuck);
        // Nor do they revive what is over.
        let over = every_minute(Story::prompted().answers(1, "Done.").shutdown(2));
        over.is(10_800, Ended);
        every_minute(Story::prompted().resume_pending(5)).turns(35, Working, Idle);
    }
}

/// All types that Copilot 1.0.102 writes and that have no rule of their own, and some that it does not know.
#[test]
fn case_159_each_type_is_a_step_or_is_not() {
    let is_step = |kind: &str| {
        let story = Story::prompted().event(30, kind, json!({}));
        story.facts(30).progress == Some(story.moment(30))
    };
    let steps = [
        "assistant.reasoning",
        "assistant.fusion_phase_completed",
        "assistant.fusion_phase_failed",
        "session.fusion_change_checkpoint",
        "session.fusion_commit_started",
        "session.fusion_completed",
        "session.fusion_handoff",
        "session.fusion_resolved",
        "session.fusion_route_failed",
        "external_tool.requested",
        "hook.start",
        "hook.end",
        "human_response.recorded",
        "skill.context_delivered",
        "skill.context_delivered_ref",
        "skill.invoked",
        "skill.invoked_ref",
        "subagent.configured",
        "system.message",
        "tool_search.activated",
        "assistant.new",
        "tool.new",
        "subagent.new",
        "hook.new",
        "new.work",
        "new",
    ];
    let asides = [
        "mcp.oauth_recovery_completed",
        "permission.assentDetected",
        "permission.carriedForward",
        "permission.contextualAuthorization",
        "permission.messageAuthorization",
        "permission.messageAuthorizationDegraded",
        "permission.messageAuthorizationRead",
        "session.auto_mode_resolved",
        "session.autopilot_objective_changed",
        "session.binary_asset",
        "session.canvas.recorded",
        "session.canvas.removed",
        "session.completion_receipt",
        "session.context_changed",
        "session.context_cleared",
        "session.handoff",
        "session.info",
        "session.mode_notice_delivered",
        "session.model_deselected",
        "session.permission_recovery",
        "session.permissions_changed",
        "session.plan_changed",
        "session.remote_steerable_changed",
        "session.request_body_compression_disabled",
        "session.schedule_cancelled",
        "session.schedule_created",
        "session.schedule_rearmed",
        "session.session_limits_changed",
        "session.truncation",
        "session.usage_checkpoint",
        "session.warning",
        "session.workspace_file_changed",
        "subagent.deselected",
        "subagent.selected",
        "assistant.usage",
        "model.new",
        "session.new",
        "system.new",
        "mcp.new",
    ];
    let wrong: Vec<_> = steps
        .into_iter()
        .filter(|kind| !is_step(kind))
        .chain(asides.into_iter().filter(|kind| is_step(kind)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// A sub-agent in the background works on while the turn's own model is silent.
#[test]
fn case_159_the_work_of_a_background_agent_is_no_progress_of_the_turn() {
    let works = |story: Story| (1..=60).fold(story, |story, n| story.by("a1").sign(30 * n));
    let started = Story::prompted().tool(0, "t1", "task").sub_agent_started(0, "a1", "t1", "background").done(0, "t1");
    works(started.clone()).turns(120, Working, Quiet).turns(600, Quiet, Stuck);
    // A tool may wait for it, and so may its user.
    works(started.clone().tool(0, "t2", "read_agent")).is(1800, Working);
    let asked = started.by("a1").permission(100, "r1", "s1").by("a1").permission_done(200, "r1", "s1", "approved");
    asked.is(200, Working).turns(320, Working, Quiet);
    // One in the foreground is the turn's own work.
    works(Story::prompted().tool(0, "t1", "task").sub_agent_started(0, "a1", "t1", "sync")).is(1800, Working);
}
