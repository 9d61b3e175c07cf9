//! Stories made up at random: every type of event that the judgement knows and some that it does not, by the root and by
//! sub-agents, with gaps that fall on, before and behind every limit. Few of them could happen; the rules hold for all.

use super::story::{PID, START, Story};
use pilotlight::core::owner::Owner;
use pilotlight::core::time::{Span, Time};
use pilotlight::core::verdict::{Answer, Live, Sample};
use proptest::prelude::*;
use serde_json::json;

/// One thing that happens: how long after the last one, what, with which id, and by whom.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) gap: i64,
    pub(crate) what: What,
    pub(crate) id: u8,
    pub(crate) agent: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Abort,
    AgentDone,
    AgentStart,
    Answer,
    Approved,
    Asks,
    Autopilot,
    Broken,
    Compacted,
    Compacts,
    Continues,
    Denied,
    Done,
    Error,
    ForeignDone,
    Forked,
    Hooked,
    Interactive,
    Metric,
    Part,
    Permission,
    Prompt,
    Question,
    Repeated,
    Requests,
    Resume,
    ResumePending,
    Round,
    RoundEnd,
    Shell,
    ShellDone,
    Shutdown,
    Sign,
    Start,
    Steers,
    Task,
    TaskComplete,
    Tool,
    Unasked,
    Unknown,
    UserTool,
}

const ALL: [What; 41] = {
    use What::{
        Abort, AgentDone, AgentStart, Answer, Approved, Asks, Autopilot, Broken, Compacted, Compacts, Continues,
        Denied, Done, Error, ForeignDone, Forked, Hooked, Interactive, Metric, Part, Permission, Prompt, Question,
        Repeated, Requests, Resume, ResumePending, Round, RoundEnd, Shell, ShellDone, Shutdown, Sign, Start, Steers,
        Task, TaskComplete, Tool, Unasked, Unknown, UserTool,
    };
    [
        Abort,
        AgentDone,
        AgentStart,
        Answer,
        Approved,
        Asks,
        Autopilot,
        Broken,
        Compacted,
        Compacts,
        Continues,
        Denied,
        Done,
        Error,
        ForeignDone,
        Forked,
        Hooked,
        Interactive,
        Metric,
        Part,
        Permission,
        Prompt,
        Question,
        Repeated,
        Requests,
        Resume,
        ResumePending,
        Round,
        RoundEnd,
        Shell,
        ShellDone,
        Shutdown,
        Sign,
        Start,
        Steers,
        Task,
        TaskComplete,
        Tool,
        Unasked,
        Unknown,
        UserTool,
    ]
};

/// Gaps, in milliseconds: around every limit, and none.
pub(crate) fn gap() -> impl Strategy<Value = i64> {
    let near = prop::sample::select(vec![0, 4, 30, 60, 120, 300, 600, 660, 1200, 3600, 86_400]);
    prop_oneof![
        4 => 0..50i64,
        4 => 0..70_000i64,
        2 => (near, -1..2i64).prop_map(|(limit, by)| (limit * 1000 + by).max(0)),
        1 => 0..4_000_000i64,
    ]
}

/// A number of steps.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let agent = prop_oneof![4 => Just(None), 1 => (0..2u8).prop_map(Some)];
    let step = (gap(), prop::sample::select(ALL.to_vec()), 0..3u8, agent).prop_map(|(gap, what, id, agent)| Step {
        gap,
        what,
        id,
        agent,
    });
    prop::collection::vec(step, 0..most)
}

/// What may be known beside a log that ends at `end`, given four numbers.
pub(crate) fn beside(story: Story, end: Span, owner: u8, live: u8, when: i64) -> Story {
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
    let live = Live {
        busy: [None, sample(true), sample(false)][usize::from(live % 3)],
        has_active_work: [None, None, Some(true), Some(false)][usize::from(live / 3 % 4)],
        attached: (live > 60).then_some(at),
        stopped: None,
        answer: live.is_multiple_of(5).then_some(Answer { progress: at, active: live.is_multiple_of(2), requests: 0 }),
        asking: live.is_multiple_of(7),
        questions: Vec::new(),
        left_undone: (live > 200).then_some(at),
    };
    let seen: Option<Time> = (when % 3 == 0).then_some(at);
    let mut story = story.owned(owner).with_live(live);
    story.seen = seen;
    story
}

/// Writes the steps down behind what a story has; says when the last one was.
pub(crate) fn told(mut story: Story, steps: &[Step]) -> (Story, Span) {
    let mut at = Span(0);
    for step in steps {
        at = at + Span(step.gap);
        story = happens(story, at, step);
    }
    (story, at)
}

fn happens(story: Story, at: Span, step: &Step) -> Story {
    let (call, request, shell) = (format!("t{}", step.id), format!("r{}", step.id), format!("{}", step.id));
    let agent = format!("agent-{}", step.agent.unwrap_or(step.id));
    let story = match (step.agent, step.what) {
        (Some(_), What::Part | What::Broken | What::Repeated) | (None, _) => story,
        (Some(_), _) => story.by(&agent),
    };
    let unasked = "denied-no-approval-rule-and-could-not-request-from-user";
    match step.what {
        What::Abort => story.abort(at),
        What::AgentDone => story.agent_done(at, &agent, &call),
        What::AgentStart => story.agent_started(at, &agent, &call, "background"),
        What::Answer => story.answer(at, "Done."),
        What::Approved => story.permission_done(at, &request, &call, "approved"),
        What::Asks => story.answer(at, "Shall I?"),
        What::Autopilot => story.mode(at, "autopilot"),
        What::Broken => story.raw(at, r#"{"type":"abort","data":"#),
        What::Compacted => story.event(at, "session.compaction_complete", json!({ "success": true })),
        What::Compacts => story.compacts(at),
        What::Continues => story.continues(at),
        What::Denied => story.fails(at, &call, "denied", "could not request permission from user"),
        What::Done => story.done(at, &call),
        What::Error => story.error(at),
        What::ForeignDone => {
            let data = json!({ "toolCallId": "u1", "success": true, "isUserRequested": true });
            story.event(at, "tool.execution_complete", data)
        }
        What::Forked => story.forked(0).sign(at),
        What::Hooked => {
            let data =
                json!({ "requestId": request, "permissionRequest": { "kind": "shell" }, "resolvedByHook": true });
            story.event(at, "permission.requested", data)
        }
        What::Interactive => story.mode(at, "interactive"),
        What::Metric => story.metric(at),
        What::Part => story.part(at),
        What::Permission => story.permission(at, &request, &call),
        What::Prompt => story.prompt(at),
        What::Question => story.tool(at, &call, "ask_user"),
        What::Repeated => match story.lines().last().map(<[u8]>::to_vec) {
            Some(last) => story.raw(at, last),
            None => story,
        },
        What::Requests => story.requests(at, &["bash"]),
        What::Resume => story.resume(at),
        What::ResumePending => story.resume_pending(at),
        What::Round => story.round(at),
        What::RoundEnd => story.round_end(at),
        What::Shell => {
            let data =
                json!({ "toolCallId": call, "toolName": "bash", "arguments": { "mode": "async", "command": "x" } });
            story.event(at, "tool.execution_start", data)
        }
        What::ShellDone => {
            let kind = json!({ "type": "shell_completed", "shellId": shell });
            story.event(at, "system.notification", json!({ "content": "x", "kind": kind }))
        }
        What::Shutdown => story.shutdown(at),
        What::Sign => story.sign(at),
        What::Start => story.event(at, "session.start", json!({ "context": { "cwd": "/" } })),
        What::Steers => story.steers(at),
        What::Task => story.tool(at, &call, "task"),
        What::TaskComplete => story.event(at, "session.task_complete", json!({ "success": true })),
        What::Tool => story.tool(at, &call, "bash"),
        What::Unasked => story.permission_done(at, &request, &call, unasked),
        What::Unknown => story.event(at, "assistant.daydream", json!({ "of": "sheep" })),
        What::UserTool => story.event(at, "tool.user_requested", json!({ "toolCallId": "u1", "toolName": "bash" })),
    }
}
