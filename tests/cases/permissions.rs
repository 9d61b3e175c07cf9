//! Open permission requests, and permissions that are lost because nobody can be asked.

use super::actions::Case;
use super::story::{At, Story};
use pilotlight_core::action::Action;
use pilotlight_core::fleet::{Kind, Session};
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::Owner;
use pilotlight_core::session::Observed;
use pilotlight_core::verdict::Status::{
    Crashed, Ended, Failed, Idle, NeedsPermission, PermissionLost, Quiet, Stuck, Working,
};
use pilotlight_core::words::reason::Reason;
use serde_json::json;

/// Its last tools were denied, and then it ended.
const DENIED: Reason = Reason::EndedDenied { denied: 4, of: 5 };

/// A turn whose tools are denied (`D`) or succeed (`o`), one a second.
fn results(pattern: &str) -> Story {
    pattern.chars().zip(1..).fold(Story::prompted(), |story, (result, at)| match result {
        'D' => story.denied(at, &format!("t{at}")),
        _ => story.ran(at, &format!("t{at}")),
    })
}

/// Three tools that fail in the same way.
fn thrice(fails: impl Fn(Story, At, &str) -> Story) -> Story {
    (1..4).fold(Story::prompted(), |story, at| fails(story, at.into(), &format!("t{at}")))
}

#[test]
fn case_29_three_denials_are_permission_lost() {
    let story = results("DDD");
    story.is(2, Working).says(3, PermissionLost, "3 of the last 3").says(3, PermissionLost, "nobody could be asked");
    assert_eq!(story.verdict(3).since, story.moment(3).wall);
}

#[test]
fn case_30_three_of_five_denied_are_permission_lost() {
    results("DoDoD").is(4, Working).says(5, PermissionLost, "3 of the last 5");
    results("DDoD").is(3, Working).is(4, PermissionLost);
    results("ooooDDD").is(6, Working).is(7, PermissionLost);
}

#[test]
fn case_31_later_results_push_denials_out() {
    results("DDoooD").is(6, Working);
    results("DDDoo").is(5, PermissionLost);
    results("DDDooo").is(5, PermissionLost).is(6, Working);
}

#[test]
fn case_32_further_denials_are_no_new_loss() {
    let story = results("DDDDDDDD");
    for at in 4..9 {
        let verdict = story.verdict(at);
        assert_eq!((verdict.status, verdict.since), (PermissionLost, story.moment(3).wall), "at {at} s");
    }
}

#[test]
fn case_33_a_result_that_contains_the_words_does_not_count() {
    let words = "Permission denied and could not request permission from user; denied-no-approval-rule";
    let story = thrice(|story, at, call| {
        let data = json!({ "toolCallId": call, "success": true, "result": { "content": words, "kind": words } });
        story.tool(at, call, "bash").event(at, "tool.execution_complete", data)
    });
    story.is(3, Working);
    let failed = thrice(|story, at, call| {
        let error = json!({ "code": "failure", "message": "cat: Permission denied" });
        let result = json!({ "content": words });
        let data = json!({ "toolCallId": call, "success": false, "error": error, "result": result });
        story.tool(at, call, "bash").event(at, "tool.execution_complete", data)
    });
    failed.is(3, Working);
}

#[test]
fn case_34_a_shells_eacces_is_a_failed_command() {
    let story = thrice(|story, at, call| {
        let content = "bash: /etc/shadow: Permission denied\n<exited with exit code 1>";
        let shell = json!({ "exitCode": 1 });
        let data =
            json!({ "toolCallId": call, "success": true, "result": { "content": content }, "shellExecution": shell });
        story.tool(at, call, "bash").event(at, "tool.execution_complete", data)
    });
    story.is(3, Working);
    thrice(|story, at, call| story.tool(at, call, "view").fails(at, call, "failure", "EACCES: permission denied"))
        .is(3, Working);
}

const COULD_NOT: &str = "denied-no-approval-rule-and-could-not-request-from-user";

/// The kind of the request's answer decides, whatever the tool's error says.
#[test]
fn case_35_signature_1_a_permission_that_could_not_be_requested() {
    let story = |code: &'static str, message: &'static str| {
        thrice(move |story, at, call| {
            let story = story.tool(at, call, "bash").permission(at, call, call);
            story.permission_done(at, call, call, COULD_NOT).fails(at, call, code, message)
        })
    };
    let message = "Permission denied and could not request permission from user. Copilot needed the user's approval.";
    story("denied", message).is(2, Working).is(3, PermissionLost);
    story("other", "No.").is(2, Working).is(3, PermissionLost);
}

/// Under `-p`.
#[test]
fn case_35_signature_2_the_unattended_fallback() {
    let story = thrice(|story, at, call| {
        let result = json!({ "kind": COULD_NOT });
        let done =
            json!({ "requestId": call, "toolCallId": call, "result": result, "decisionSource": "unattended_fallback" });
        let message = "Permission denied because no interactive user response was available. Try again.";
        let story = story.tool(at, call, "bash").permission(at, call, call).event(at, "permission.completed", done);
        story.fails(at, call, "denied", message)
    });
    story.is(2, Working).is(3, PermissionLost);
}

/// No permission event at all.
#[test]
fn case_35_signature_3_a_session_without_a_permission_handler() {
    results("DDD").is(3, PermissionLost);
    let message = "Permission denied because no interactive user response was available.";
    thrice(|story, at, call| story.tool(at, call, "bash").fails(at, call, "denied", message)).is(3, PermissionLost);
}

/// Older versions wrote the kind into the error's text.
#[test]
fn case_35_the_kind_in_an_older_versions_error() {
    let message = format!("Permission denied: {COULD_NOT}");
    thrice(|story, at, call| story.tool(at, call, "bash").fails(at, call, "denied", &message)).is(3, PermissionLost);
}

#[test]
fn case_36_a_refusal_by_a_user_or_a_rule_is_no_lost_permission() {
    let user = "The user rejected this tool call. User feedback: not now";
    for kind in [
        "denied-interactively-by-user",
        "denied-by-rules",
        "denied-by-content-exclusion-policy",
        "denied-by-permission-request-hook",
    ] {
        let story = thrice(|story, at, call| {
            let story = story.tool(at, call, "bash").permission(at, call, call);
            story.permission_done(at, call, call, kind).fails(at, call, "denied", user)
        });
        story.is(3, Working);
    }
}

#[test]
fn case_29_a_prompt_or_a_resume_ends_the_loss() {
    let story = results("DDD");
    story.clone().prompt(10).is(9, PermissionLost).is(10, Working);
    story.clone().resume(10).is(9, PermissionLost).is(10, Idle);
    story.prompt(10).denied(11, "t4").denied(12, "t5").is(12, Working);
}

/// Once attached, we answer the session's permission requests.
#[test]
fn case_29_denials_before_we_attached_no_longer_count() {
    let mut story = results("DDD").denied(20, "t4").denied(21, "t5").denied(22, "t6");
    story.liveness.attached = Some(story.moment(10).wall);
    story.is(9, Working).is(21, Working).is(22, PermissionLost);
}

/// GW.
#[test]
fn case_82_many_denials_and_then_silence_are_permission_lost() {
    results("DDD").is(3, PermissionLost).is(500, PermissionLost).is(9000, PermissionLost);
    results("DDD").answers(5, "I may not.").is(5, PermissionLost).is(9000, PermissionLost);
    results("DDD").answer(5, "I may not.").is(5, PermissionLost).is(9000, PermissionLost);
}

/// `copilot -p`, or a server's session, that shuts down while its permissions are lost.
#[test]
fn case_128_a_run_that_ends_denied_has_failed_until_seen_or_for_a_day() {
    let run = results("DDoDD").answers(6, "I may not.").shutdown(7).owned(Owner::Never);
    run.is(6, PermissionLost).says(7, Failed, "ended with permissions lost: 4 of its last 5 tools denied");
    let verdict = run.verdict(7);
    assert_eq!((verdict.since, verdict.because.reason, verdict.turn), (run.moment(7).wall, DENIED, None));
    let day = 24 * 3600;
    run.turns(7 + day, Failed, Ended).says(
        8 + day,
        Ended,
        "shut down; ended with permissions lost: 4 of its last 5 tools denied",
    );
    run.clone().seen(6.9).is(8, Failed);
    run.clone().seen(7).says(8, Ended, "ended with permissions lost");
    run.clone().resume(20).is(21, Idle);
    run.clone().resume(20).prompt(21).is(22, Working);
    run.metric(20).is(21, Failed);
    results("DDD").owner_gone().shutdown(4).is(5, Failed);
}

/// The server of a session that had lost its permissions was killed, without a shutdown.
#[test]
fn case_183_a_session_whose_process_is_killed_after_it_was_denied_has_failed_and_can_be_continued() {
    let killed = results("DDoDD").answers(6, "I may not.").owner_gone();
    let verdict =
        killed.clone().says(7, Failed, "ended with permissions lost: 4 of its last 5 tools denied").verdict(7);
    assert_eq!((verdict.since, verdict.because.reason, verdict.turn), (killed.moment(6).wall, DENIED, None));
    let day = 24 * 3600;
    killed.turns(6 + day, Failed, Ended).says(
        8 + day,
        Ended,
        "its process is gone; ended with permissions lost: 4 of its last 5 tools denied",
    );
    killed.clone().seen(7).says(8, Ended, "ended with permissions lost");
    // An open turn is still a crash, and an error still ends it.
    results("DDD").owner_gone().is(5, Crashed);
    results("DDD").error(5).owner_gone().is(6, Ended);
    results("DDD").answers(5, "I may not.").owned(Owner::Never).is(604, PermissionLost).is(606, Failed);
    for case in [Case::of(killed.clone(), 7, Kind::Sdk), Case::of(killed.seen(7), 8, Kind::Sdk)] {
        assert!(matches!(case.status(), Failed | Ended));
        case.says(Action::Continue, "in a server of Pilotlight's own");
    }
}

#[test]
fn case_128_a_run_with_fewer_denials_or_another_failure_has_ended() {
    results("DDo").answers(6, "Done.").shutdown(7).says(8, Ended, "shut down");
    results("DDDooo").shutdown(7).is(8, Ended);
    results("DDD").error(5).shutdown(7).says(8, Ended, "shut down after an error");
    let mut attached = results("DDD").shutdown(7);
    attached.liveness.attached = Some(attached.moment(5).wall);
    attached.is(8, Ended);
}

/// A long log is read only back to some point, which may be between the start of a tool and its result.
#[test]
fn case_148_a_denial_whose_start_was_cut_off_counts() {
    let message = "Permission denied because no interactive user response was available.";
    let result = |story: Story, at: i32| story.fails(at, &format!("t{at}"), "denied", message);
    (1..4).fold(Story::cut(), result).says(3, PermissionLost, "3 of the last 3");
    let turn = result(Story::cut().sign(0), 1).round_end(1).round(2).requests(2, &["bash"]);
    turn.denied(3, "a").denied(4, "b").is(3, Working).says(4, PermissionLost, "3 of the last 3");
    let late = result(result(Story::cut().round(0), 1), 2).denied(3, "a");
    late.says(3, PermissionLost, "3 of the last 3");
    assert_eq!(late.facts(2).turn.map(|turn| turn.used), Some(2), "a tool whose start was cut off counts as used");

    let done = Story::cut().round(0).done(1, "t1").facts(1);
    assert!(done.ran > 0, "its prompt must not be sent again");
    // A late result does not belong to a turn that was read from its start.
    let prompted = result(Story::cut().prompt(0).round(0), 1).done(2, "t2").facts(2);
    assert_eq!((prompted.denials.of(), prompted.ran), (0, 0));
    let whole = result(Story::new(), 1).facts(1);
    assert_eq!(whole.denials.of(), 0);
}

#[test]
fn case_199_approvals_that_are_switched_off_are_noted_and_end_with_the_process() {
    for on in [json!({ "allowAllPermissions": true }), json!({ "mode": "allow-all", "previousMode": "manual" })] {
        let all = |story: &Story, at: i32| story.facts(at).approves_all.is_some();
        let story = Story::prompted().event(2, "session.permissions_changed", on);
        assert!(!all(&story, 1) && all(&story, 2));
        let off = json!({ "allowAllPermissions": false, "mode": "assisted" });
        assert!(!all(&story.event(4, "session.permissions_changed", off), 4));
    }
    let on = json!({ "allowAllPermissions": true });
    let resumed = Story::prompted().event(2, "session.permissions_changed", on).event(3, "session.resume", json!({}));
    assert!(resumed.facts(3).approves_all.is_none(), "a new process asks again");
}

/// The word of a server counts until the log tells of a change.
#[test]
fn case_205_what_a_server_says_of_approvals_counts_until_the_log_tells_otherwise() {
    let off = json!({ "allowAllPermissions": false });
    let story = Story::prompted().event(4, "session.permissions_changed", off);
    let said = |word, at: i32| {
        let mut session =
            Session { observed: Observed { facts: story.facts(10), ..Observed::default() }, ..Session::default() };
        session.observed.owner = Owner::Alive { pid: 1, started: None };
        session.liveness.approves_all = Some((word, story.moment(at).wall));
        session.row(story.moment(10), &Limits::default()).0.because.to_string().contains("switched off")
    };
    assert!(said(true, 5) && !said(true, 3) && !said(false, 5));
}

/// UP, permissions.
#[test]
fn case_90_a_request_whose_tool_completed_is_closed() {
    let story = Story::prompted().tool(1, "t1", "bash").permission(2, "r1", "t1").done(3, "t1");
    story.says(2, NeedsPermission, "shell").is(3, Working);
    assert!(story.facts(3).requests.is_empty());
    let other = Story::prompted().tool(1, "t1", "bash").tool(1, "t2", "view").permission(2, "r1", "t1").done(3, "t2");
    other.is(3, NeedsPermission);
}

/// UP, permissions.
#[test]
fn case_91_a_request_resolved_by_a_hook_changes_nothing() {
    let asked = json!({ "kind": "shell", "toolCallId": "t1" });
    let story = Story::prompted()
        .tool(1, "t1", "bash")
        .event(1, "hook.start", json!({ "hookInvocationId": "h", "hookType": "permissionRequest" }))
        .event(1, "hook.end", json!({ "hookInvocationId": "h", "success": true }))
        .event(
            1,
            "permission.requested",
            json!({ "requestId": "r1", "permissionRequest": asked, "resolvedByHook": true }),
        )
        .event(
            2,
            "permission.completed",
            json!({ "requestId": "r1", "toolCallId": "t1", "result": { "kind": "approved" } }),
        );
    story.is(1, Working).is(2, Working);
    assert!(story.facts(1).requests.is_empty());
}

/// UP, permissions.
#[test]
fn case_92_requests_and_answers_are_paired_by_id() {
    let story = Story::prompted()
        .tool(1, "t1", "bash")
        .tool(1, "t2", "bash")
        .permission(2, "r1", "t1")
        .permission(3, "r2", "t2")
        .permission_done(4, "r9", "t9", "approved")
        .permission_done(5, "r1", "t1", "approved")
        .permission_done(6, "r2", "t2", "denied-interactively-by-user");
    story.says(3, NeedsPermission, "2 requests").is(4, NeedsPermission).is(5, NeedsPermission).is(6, Working);
    assert_eq!(story.verdict(4).since, story.moment(2).wall);
    assert_eq!(story.verdict(5).since, story.moment(3).wall);
}

/// UP, sub-agents.
#[test]
fn case_94_a_sub_agents_request_needs_permission() {
    let story = Story::prompted()
        .tool(1, "t1", "task")
        .sub_agent_started(1, "a1", "t1", "sync")
        .by("a1")
        .permission(2, "r1", "t2")
        .by("a1")
        .permission_done(4, "r1", "t2", "approved");
    story.is(2, NeedsPermission).is(4, Working);
    let background =
        Story::prompted().tool(1, "t1", "task").sub_agent_started(1, "a1", "t1", "background").done(1, "t1");
    let background = background.answers(2, "It looks.").by("a1").permission(3, "r1", "t2");
    background.is(2, Working).is(3, NeedsPermission);
}

#[test]
fn case_94_an_open_request_is_never_stuck() {
    let story = Story::prompted().tool(1, "t1", "bash").permission(2, "r1", "t1");
    for at in [60, 120, 600, 660, 3600, 90_000] {
        assert!(!matches!(story.status(at), Quiet | Stuck), "at {at} s");
        story.is(at, NeedsPermission);
    }
}
