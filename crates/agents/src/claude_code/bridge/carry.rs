//! What became of an answer. The session's log says that a hook decided, but only along with the result of the tool.

use super::asked::Asked;
use crate::channel::action_context::{ActionContext, EFFECT_TIMEOUT, LogView};
use crate::channel::failure::Failure;
use crate::hooks::carry::{OpenHook, TERMINAL_FIRST};
use crate::hooks::listener::Lost;
use crate::hooks::wire::FromHook;
use pilotlight_core::order::Step;
use pilotlight_core::turn::Call;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// How much later than its process says that it goes on, the log of a session has the result of a call that runs no tool,
/// or a quick one. Seen: 0.1 s.
const LOGGED_WITHIN: Duration = Duration::from_millis(1500);

/// Has the hook print this, and finds out whether that decided.
pub(super) async fn answer(open: &OpenHook<Asked>, context: &ActionContext, output: Value) -> Result<(), Failure> {
    let before = context.log_view.borrow().clone();
    let allows = output.pointer("/hookSpecificOutput/decision/behavior").is_some_and(|behavior| behavior == "allow");
    match open.hook.handle.answer(output).await {
        Ok(FromHook::Printed) => {}
        Err(Lost::Before) => return Err(Failure::refusal(Step::Answer, TERMINAL_FIRST)),
        // It may still print it.
        Ok(_) | Err(Lost::After) => {
            return Err(unconfirmed("the bridge took the answer, but did not report the result"));
        }
    }
    // A sub-agent's terminal shows no dialog: nobody else can have answered.
    if open.hook.asked.sub_agent.is_some() {
        context.step(Step::Verify, "the bridge has passed it on");
        return Ok(());
    }
    match outcome(context, &before).await {
        Outcome::Ours => {
            context.step(Step::Verify, "the session's log confirms it");
            Ok(())
        }
        // It waited until the answer was printed, and its tool runs since.
        Outcome::Runs if allows => {
            context.step(Step::Verify, "its tool runs");
            Ok(())
        }
        Outcome::Terminals => Err(Failure::refusal(Step::Verify, TERMINAL_FIRST)),
        Outcome::Runs | Outcome::Unknown => {
            Err(unconfirmed("the bridge took the answer, but the session's log does not show it"))
        }
    }
}

fn unconfirmed(why: &str) -> Failure {
    Failure::because(Step::Verify, why, "look at its terminal").unconfirmed()
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// A hook.
    Ours,
    /// Its user, in the terminal.
    Terminals,
    /// It waits no longer, and nothing has a result yet.
    Runs,
    Unknown,
}

/// Waits until the session's log or its process says who decided.
async fn outcome(context: &ActionContext, before: &LogView) -> Outcome {
    let mut log_view = context.log_view.clone();
    let known = |call: Call| before.answered.iter().any(|(known, _)| *known == call);
    let is_decided =
        |now: &LogView| now.answered.iter().any(|(call, _)| !known(*call)) || now.aborted != before.aborted;
    // Which of several calls has a result is not known.
    let is_over = |now: &LogView| before.tools_open > 0 && now.tools_open == 0 || !now.turn_open;
    let has_result = |now: &LogView| is_decided(now) || is_over(now);
    let goes_on = |now: &LogView| is_decided(now) || !now.waits;
    match timeout(EFFECT_TIMEOUT, log_view.wait_for(goes_on)).await {
        Ok(Ok(now)) if is_decided(&now) => return Outcome::Ours,
        Ok(Ok(_)) => {}
        _ => return Outcome::Unknown,
    }
    match timeout(LOGGED_WITHIN, log_view.wait_for(has_result)).await {
        Ok(Ok(now)) if is_decided(&now) => return Outcome::Ours,
        Ok(Ok(_)) => {}
        Ok(Err(_)) => return Outcome::Unknown,
        Err(_) => return Outcome::Runs,
    }
    // The two lines are written one after the other.
    match timeout(LOGGED_WITHIN, log_view.wait_for(is_decided)).await {
        Ok(Ok(_)) => Outcome::Ours,
        _ => Outcome::Terminals,
    }
}

#[cfg(test)]
mod tests;
