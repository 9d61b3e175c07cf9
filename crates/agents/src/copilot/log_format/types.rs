//! What the type of an event alone says.

use pilotlight_core::event::Body;

/// The body of a type whose data no rule needs. `None`: the data must be read.
pub(super) fn without_data(kind: &[u8]) -> Option<Body<'static>> {
    Some(match kind {
        b"assistant.turn_start" => Body::RoundStart,
        b"assistant.turn_end" => Body::RoundEnd,
        b"tool.user_requested" => Body::UserTool,
        b"abort" => Body::Abort,
        b"session.shutdown" => Body::Shutdown,
        b"session.compaction_start" => Body::CompactionStart,
        b"session.compaction_complete" => Body::CompactionDone,
        b"subagent.completed" | b"subagent.failed" => Body::SubAgentDone,
        b"user.message"
        | b"assistant.message"
        | b"tool.execution_start"
        | b"tool.execution_complete"
        | b"permission.requested"
        | b"permission.completed"
        | b"session.start"
        | b"session.resume"
        | b"session.error"
        | b"session.task_complete"
        | b"session.mode_changed"
        | b"session.permissions_changed"
        | b"session.model_change"
        | b"session.usage_record"
        | b"subagent.started"
        | b"system.notification" => return None,
        _ if kind.starts_with(b"model.") => Body::Record,
        _ if is_step(kind) => Body::Step,
        _ => Body::Aside,
    })
}

/// Whether an event without a rule of its own is a step of a turn (ARCHITECTURE.md, "What is progress").
fn is_step(kind: &[u8]) -> bool {
    match kind.split(|&byte| byte == b'.').next().unwrap_or_default() {
        // What is said about the session: notices, settings, its plan, its schedule, what it cost. None needs the model.
        // The phases of a fused model's turn are the exception.
        b"session" => kind.starts_with(b"session.fusion_"),
        // A notification comes when it comes. The message is written for the next request to the model.
        b"system" => kind == b"system.message",
        // A server of tools signs in again, whatever the turn does.
        b"mcp" => false,
        // The two with rules are steps. The others are only read, from old logs.
        b"permission" => false,
        // The user chooses another agent.
        b"subagent" => !matches!(kind, b"subagent.selected" | b"subagent.deselected"),
        b"assistant" => kind != b"assistant.usage",
        // Hooks, skills, tools, the user's answers; and whatever is new. New work that is taken for silence is offered
        // to be stopped. New notices that are taken for work only delay that.
        _ => true,
    }
}
