//! Random stories: every type of event that the rules know and some that they do not, by the root and by sub-agents,
//! with gaps at, before and after every limit. Few of these stories could happen, but the rules hold for all.

use super::story::{PID, START, Story};
use pilotlight_core::owner::Owner;
use pilotlight_core::stream_probe::{Blind, ProbeResult, WINDOW};
use pilotlight_core::time::{Span, Time};
use pilotlight_core::verdict::{Answer, Liveness, Sample, StreamProbe};
use proptest::prelude::*;
use serde_json::json;

/// One event: its gap to the previous one, its kind, an id, and the sub-agent that writes it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) gap: i64,
    pub(crate) kind: Kind,
    pub(crate) id: u8,
    pub(crate) agent: Option<u8>,
}

/// Defines [`Kind`] together with the list of all kinds, so that none can be missing there.
macro_rules! kinds {
    ($($kind:ident),*) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Kind {
            $($kind),*
        }

        const ALL: &[Kind] = &[$(Kind::$kind),*];
    };
}

kinds! {
    Abort, AgentDone, AgentStart, Answer, Approved, Asks, Autopilot, Broken, Compacted, Compacts, Continues,
    Denied, Done, Error, ForeignDone, Forked, HookReport, Interactive, Metric, Part, Permission, Prompt, Question,
    Repeated, Requests, Resume, ResumePending, Round, RoundEnd, Shell, ShellDone, Shutdown, Sign, Start,
    Steers, Task, TaskComplete, Tool, Unasked, Unknown, UserTool
}

/// Gaps in milliseconds: none, small, large, and around every limit.
pub(crate) fn gap() -> impl Strategy<Value = i64> {
    let near = prop::sample::select(vec![0, 4, 30, 60, 120, 300, 600, 660, 1200, 3600, 86_400]);
    prop_oneof![
        4 => 0..50i64,
        4 => 0..70_000i64,
        2 => (near, -1..2i64).prop_map(|(limit, by)| (limit * 1000 + by).max(0)),
        1 => 0..4_000_000i64,
    ]
}

/// Fewer than `max` random steps.
pub(crate) fn steps(max: usize) -> impl Strategy<Value = Vec<Step>> {
    let agent = prop_oneof![4 => Just(None), 1 => (0..2u8).prop_map(Some)];
    let step = (gap(), prop::sample::select(ALL), 0..3u8, agent).prop_map(|(gap, kind, id, agent)| Step {
        gap,
        kind,
        id,
        agent,
    });
    prop::collection::vec(step, 0..max)
}

/// Adds an owner, liveness and a seen mark to a story that ends at `end`, derived from three numbers.
pub(crate) fn with_context(story: Story, end: Span, owner: u8, liveness: u8, when: i64) -> Story {
    let at = START + Span(when.min(end.0));
    let owner = match owner % 8 {
        0 => Owner::Never,
        1 => Owner::Unknown { pid: PID },
        2 => Owner::Gone { pid: PID, at: None },
        3 => Owner::Gone { pid: PID, at: Some(START + end) },
        4 | 5 => Owner::Alive { pid: PID, started: Some(at) },
        6 => Owner::Alive { pid: PID, started: Some(START + end) },
        _ => Owner::Alive { pid: PID, started: None },
    };
    let sample = |busy| Some(Sample { busy, at: story.moment(Span(when.min(end.0))) });
    // Of the last progress, or of an earlier one, which does not count.
    let progress = if liveness.is_multiple_of(2) { story.facts(end).progress.map_or(at, |at| at.wall) } else { at };
    let probe_results = [
        ProbeResult::Receiving { bytes: Some(2_280), within: WINDOW },
        ProbeResult::Kept,
        ProbeResult::Silent { may_not_stream: liveness > 90 },
        ProbeResult::Unanswered,
        ProbeResult::NoConnection,
        ProbeResult::Unread,
        ProbeResult::Unknown(Blind::Shared),
    ];
    let stream_probe = probe_results.get(usize::from(liveness % 11)).map(|&probe_result| StreamProbe {
        progress,
        at: story.moment(end),
        probe_result,
        last: liveness.is_multiple_of(3).then(|| story.moment(Span(when.min(end.0)))),
    });
    let liveness = Liveness {
        approves_all: None,
        busy: [None, sample(true), sample(false)][usize::from(liveness % 3)],
        has_active_work: [None, None, Some(true), Some(false)][usize::from(liveness / 3 % 4)],
        attached: (liveness > 60).then_some(at),
        stopped: None,
        answer: liveness.is_multiple_of(5).then_some(Answer {
            progress: at,
            active: liveness.is_multiple_of(2),
            requests: 0,
        }),
        querying_server: liveness.is_multiple_of(7),
        stream_probe,
        probing_stream: liveness.is_multiple_of(13),
        streams: false,
        questions: Vec::new(),
        left_undone: liveness.is_multiple_of(11).then_some(at),
    };
    let seen: Option<Time> = (when % 3 == 0).then_some(at);
    let mut story = story.owned(owner).with_liveness(liveness);
    story.seen = seen;
    story
}

/// Appends the steps to a story. Returns it with the time of the last step.
pub(crate) fn play(mut story: Story, steps: &[Step]) -> (Story, Span) {
    let mut at = Span(0);
    for step in steps {
        at = at + Span(step.gap);
        story = append(story, at, step);
    }
    (story, at)
}

fn append(story: Story, at: Span, step: &Step) -> Story {
    let (call, request, shell) = (format!("t{}", step.id), format!("r{}", step.id), format!("{}", step.id));
    let agent = format!("agent-{}", step.agent.unwrap_or(step.id));
    let story = match (step.agent, step.kind) {
        (Some(_), Kind::Part | Kind::Broken | Kind::Repeated) | (None, _) => story,
        (Some(_), _) => story.by(&agent),
    };
    let unasked = "denied-no-approval-rule-and-could-not-request-from-user";
    match step.kind {
        Kind::Abort => story.abort(at),
        Kind::AgentDone => story.sub_agent_done(at, &agent, &call),
        Kind::AgentStart => story.sub_agent_started(at, &agent, &call, "background"),
        Kind::Answer => story.answer(at, "Done."),
        Kind::Approved => story.permission_done(at, &request, &call, "approved"),
        Kind::Asks => story.answer(at, "Shall I?"),
        Kind::Autopilot => story.mode(at, "autopilot"),
        Kind::Broken => story.raw(at, r#"{"type":"abort","data":"#),
        Kind::Compacted => story.event(at, "session.compaction_complete", json!({ "success": true })),
        Kind::Compacts => story.compacts(at),
        Kind::Continues => story.continues(at),
        Kind::Denied => story.fails(at, &call, "denied", "could not request permission from user"),
        Kind::Done => story.done(at, &call),
        Kind::Error => story.error(at),
        Kind::ForeignDone => {
            let data = json!({ "toolCallId": "u1", "success": true, "isUserRequested": true });
            story.event(at, "tool.execution_complete", data)
        }
        Kind::Forked => story.forked(0).sign(at),
        Kind::HookReport => {
            let data =
                json!({ "requestId": request, "permissionRequest": { "kind": "shell" }, "resolvedByHook": true });
            story.event(at, "permission.requested", data)
        }
        Kind::Interactive => story.mode(at, "interactive"),
        Kind::Metric => story.metric(at),
        Kind::Part => story.part(at),
        Kind::Permission => story.permission(at, &request, &call),
        Kind::Prompt => story.prompt(at),
        Kind::Question => story.tool(at, &call, "ask_user"),
        Kind::Repeated => match story.lines().last().map(<[u8]>::to_vec) {
            Some(last) => story.raw(at, last),
            None => story,
        },
        Kind::Requests => story.requests(at, &["bash"]),
        Kind::Resume => story.resume(at),
        Kind::ResumePending => story.resume_pending(at),
        Kind::Round => story.round(at),
        Kind::RoundEnd => story.round_end(at),
        Kind::Shell => {
            let data =
                json!({ "toolCallId": call, "toolName": "bash", "arguments": { "mode": "async", "command": "x" } });
            story.event(at, "tool.execution_start", data)
        }
        Kind::ShellDone => {
            let kind = json!({ "type": "shell_completed", "shellId": shell });
            story.event(at, "system.notification", json!({ "content": "x", "kind": kind }))
        }
        Kind::Shutdown => story.shutdown(at),
        Kind::Sign => story.sign(at),
        Kind::Start => story.event(at, "session.start", json!({ "context": { "cwd": "/" } })),
        Kind::Steers => story.steers(at),
        Kind::Task => story.tool(at, &call, "task"),
        Kind::TaskComplete => story.event(at, "session.task_complete", json!({ "success": true })),
        Kind::Tool => story.tool(at, &call, "bash"),
        Kind::Unasked => story.permission_done(at, &request, &call, unasked),
        Kind::Unknown => story.event(at, "assistant.daydream", json!({ "of": "sheep" })),
        Kind::UserTool => story.event(at, "tool.user_requested", json!({ "toolCallId": "u1", "toolName": "bash" })),
    }
}
