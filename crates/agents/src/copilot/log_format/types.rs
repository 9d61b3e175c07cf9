//! What the type of an event alone says.
//!
//! # What is progress
//!
//! Silence is measured from the last progress (`last_progress` in JSON): a step of a turn, or something that the user has
//! it do. While a model is silent, Copilot may write any number of other events. [`Body::is_progress`] decides for events
//! with rules of their own, `is_step` here for all others. The list for Copilot 1.0.102:
//!
//! - Progress: `user.message`; `assistant.*` except `assistant.usage`; `tool.*`, `tool_search.*`, `external_tool.*`,
//!   `skill.*` and `hook.*`, as a hook may take as long as a tool; `permission.requested`, `permission.completed`,
//!   `human_response.*` and `abort`; `system.message`; `subagent.*` except `selected` and `deselected`.
//! - Of `session.*`, progress: `start`, `resume`, `shutdown`, `error`, `compaction_*`, `task_complete` and `fusion_*`, which
//!   begin, end or are work. All others, known or new, are notices, settings, plans, schedules and usage: no progress.
//! - No progress: `system.notification`, which comes when a shell or sub-agent ends (what the model does about it is
//!   progress); `mcp.*`, all other `permission.*`, and `model.*`, the records of calls that are over.
//! - Any other type, known or new, is progress: new work that is taken for silence is offered to be stopped, while new
//!   notices that are taken for work only delay that.
//! - Of a sub-agent in the background, while the turn has no tool open, only requests and answers are progress: the turn
//!   waits for its own model. An open tool may wait for the sub-agent.
//! - The bytes of a line that is still being written are progress: its type is not known yet.

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
        | b"session.schedule_created"
        | b"session.schedule_rearmed"
        | b"session.schedule_cancelled"
        | b"subagent.started"
        | b"system.notification" => return None,
        _ if kind.starts_with(b"model.") => Body::Record,
        _ if is_step(kind) => Body::Step,
        _ => Body::Aside,
    })
}

/// Whether an event without a rule of its own is a step of a turn ("What is progress" above).
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
