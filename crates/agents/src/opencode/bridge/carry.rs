//! What became of an answer: it counts once opencode has confirmed it to its plugin.

use super::asked::Asked;
use crate::channel::action_context::ActionContext;
use crate::channel::failure::Failure;
use crate::hooks::carry::{OpenHook, TERMINAL_FIRST};
use crate::hooks::listener::Lost;
use crate::hooks::wire::FromHook;
use pilotlight_core::order::Step;
use serde_json::Value;
use std::sync::atomic::Ordering;

/// The status of a reply to what is not open any more.
const NOT_FOUND: u16 = 404;

/// Has the hook pass this on, and finds out what became of it.
pub(super) async fn answer(open: &OpenHook<Asked>, context: &ActionContext, output: Value) -> Result<(), Failure> {
    // What is gone soon is gone by us, unless opencode says otherwise.
    open.is_answered.store(true, Ordering::Relaxed);
    let said = open.hook.handle.answer(output).await;
    let is_terminals =
        matches!(said, Err(Lost::Before) | Ok(FromHook::LetGo | FromHook::Answered { status: NOT_FOUND }));
    open.is_answered.store(!is_terminals, Ordering::Relaxed);
    if is_terminals {
        return Err(Failure::refusal(Step::Answer, TERMINAL_FIRST));
    }
    match said {
        Ok(FromHook::Answered { status: 200..300 }) => {
            context.step(Step::Verify, "opencode confirms it");
            Ok(())
        }
        Ok(FromHook::Answered { status: status @ 400.. }) => {
            let why = format!("opencode did not take the answer (status {status})");
            Err(Failure::because(Step::Verify, &why, "answer it in its terminal"))
        }
        Ok(_) | Err(_) => {
            let why = "the bridge took the answer, but did not report the result";
            Err(Failure::because(Step::Verify, why, "look at its terminal").unconfirmed())
        }
    }
}

#[cfg(test)]
mod tests;
