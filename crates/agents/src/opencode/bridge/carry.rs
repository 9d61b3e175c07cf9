//! Answers what hooks ask. An answer is given over the connection that the request came by, and counts once opencode has
//! confirmed it to its plugin: its user may have answered in the terminal at the same moment, and the first one wins.

use super::asked::Asked;
use crate::channel::action_context::ActionContext;
use crate::channel::answering::{begin_answer, choose};
use crate::channel::failure::Failure;
use crate::channel::order::Prompt;
use crate::channel::request::Request;
use crate::channel::{self, Channel, Listener, open_request};
use crate::copilot::server::reply::{Ready, STILL_OPEN, ready};
use crate::hooks::listener::{Hook, Lost};
use crate::hooks::wire::FromHook;
use async_trait::async_trait;
use pilotlight_core::form::Form;
use pilotlight_core::order::{self, Decision, Step, Which};
use pilotlight_core::question::Question;
use pilotlight_core::stream_probe::Word;
use pilotlight_core::text::counted;
use pilotlight_core::time::Moment;
use pilotlight_core::verdict::Asking;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Why an answer came too late.
const TERMINAL_FIRST: &str = "it was answered in the terminal first: nothing was changed by this";
/// Shown for a question of an unknown form.
const UNREADABLE: &str = "something that Pilotlight cannot read";
/// The status of a reply to what is not open any more.
const NOT_FOUND: u16 = 404;

/// A hook that asks.
#[derive(Clone, Debug)]
pub(super) struct OpenHook {
    /// The id to answer it by.
    pub(super) request: Box<str>,
    pub(super) hook: Hook<Asked>,
    /// When the process that started it started itself, in the system's unit.
    pub(super) born: u64,
    /// When it came.
    pub(super) at: Moment,
    /// It was answered by us.
    pub(super) is_answered: Arc<AtomicBool>,
}

impl OpenHook {
    /// The question that it asks its user, if it does.
    pub(super) fn asking(&self) -> Option<Asking> {
        let (shown, form) = self.hook.asked.question(&self.request)?;
        let question = shown.unwrap_or_else(|| Question { id: None, text: UNREADABLE.into(), choices: Vec::new() });
        let question = match &form {
            Ok(form) => question.answered_by(&form.request, form.choices.iter().map(|choice| &*choice.words)),
            Err(_) => question,
        };
        Some(Asking { question, since: self.at.wall, form: form.map_err(Into::into) })
    }

    /// Has the hook pass this on, and finds out what became of it.
    async fn answer(&self, context: &ActionContext, output: Value) -> Result<(), Failure> {
        // What is gone soon is gone by us, unless opencode says otherwise.
        self.is_answered.store(true, Ordering::Relaxed);
        let said = self.hook.handle.answer(output).await;
        let is_terminals =
            matches!(said, Err(Lost::Before) | Ok(FromHook::LetGo | FromHook::Answered { status: NOT_FOUND }));
        self.is_answered.store(!is_terminals, Ordering::Relaxed);
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
                let why = "the plugin took the answer, but does not say what came of it";
                Err(Failure::because(Step::Verify, why, "look at its terminal").unconfirmed())
            }
        }
    }
}

/// The hooks of one session.
#[derive(Clone, Debug)]
pub(super) struct HookBridge {
    pub(super) open: Vec<OpenHook>,
}

impl HookBridge {
    fn open(&self) -> impl Iterator<Item = &OpenHook> {
        self.open.iter().filter(|open| !open.hook.handle.is_gone())
    }

    fn requests(&self) -> Vec<Request> {
        self.open().filter_map(|open| open.hook.asked.request(&open.request)).collect()
    }

    fn find(&self, request: &str) -> Result<&OpenHook, Failure> {
        let open = self.open().find(|open| *open.request == *request);
        open.ok_or_else(|| Failure::refusal(Step::Answer, TERMINAL_FIRST))
    }

    /// The form of the question with this id; without one, that of the first that can be answered.
    fn form(&self, request: Option<&str>) -> Result<Form, Failure> {
        let its = self.open().filter(|open| request.is_none_or(|request| *open.request == *request));
        let mut forms: Vec<_> = its.filter_map(|open| Some(open.hook.asked.question(&open.request)?.1)).collect();
        forms.sort_by_key(Result::is_err);
        let form = forms.into_iter().next().ok_or_else(|| Failure::refusal(Step::Answer, TERMINAL_FIRST))?;
        form.map_err(|why| Failure::refusal(Step::Answer, &format!("answer it where it asks: {why}")))
    }
}

#[async_trait]
impl Channel for HookBridge {
    async fn request(&self, _context: &ActionContext, id: &str) -> Result<Request, Failure> {
        open_request(self.requests(), id)
    }

    async fn answer(&self, context: &ActionContext, which: &Which, decision: &Decision) -> Result<String, Failure> {
        let open = self.requests().len();
        let chosen = choose(context, self.requests(), which)?;
        let output = |request: &Request| {
            let open = self.find(&request.id)?;
            let output = open.hook.asked.output(decision);
            Ok((open, output.map_err(|why| Failure::refusal(Step::Answer, why))?))
        };
        let outputs = chosen.iter().map(output).collect::<Result<Vec<_>, Failure>>()?;
        let done = begin_answer(context, &chosen, decision.approves()).await?;
        let mut is_first = true;
        for (open, output) in outputs {
            match open.answer(context, output).await {
                // opencode refuses all that a session asks with the first.
                Err(_) if !is_first && !decision.approves() => open.is_answered.store(true, Ordering::Relaxed),
                answered => answered?,
            }
            is_first = false;
        }
        let more = match decision {
            Decision::Deny(denial) if denial.stop => ", and stopped its turn",
            Decision::Deny(denial) if denial.note.is_some() => " with a note",
            Decision::Approve | Decision::Always { .. } | Decision::Deny(_) => "",
        };
        let others = match open > chosen.len() && !decision.approves() {
            true => "; opencode denies what else that session asks with it, and stops its turn",
            false => "",
        };
        Ok(format!("{done} {}{more}{others}", counted(chosen.len(), "request")))
    }

    fn takes_more(&self) -> bool {
        true
    }

    async fn reply(&self, context: &ActionContext, reply: &order::Reply) -> Result<String, Failure> {
        let Some(Ready { request, result, said, .. }) = ready(context, reply, |request| self.form(request)).await?
        else {
            return Ok(STILL_OPEN.to_owned());
        };
        let open = self.find(request)?;
        let output = open.hook.asked.reply(&result);
        let output = output.ok_or_else(|| Failure::refusal(Step::Answer, "answer it in its terminal"))?;
        open.answer(context, output).await?;
        Ok(said)
    }

    async fn stop(&self, _context: &ActionContext) -> Result<String, Failure> {
        Err(Failure::refusal(Step::Abort, "press Esc in its terminal"))
    }
}

#[async_trait]
impl Listener for HookBridge {
    async fn listen(&self, _id: &str, _window: Duration) -> Option<Word> {
        None
    }
}

#[async_trait]
impl channel::Bridge for HookBridge {
    async fn send_on(&self, _context: &ActionContext, _prompt: &Prompt) -> Result<(), Failure> {
        Err(Failure::refusal(Step::Resend, "send it a prompt in its terminal"))
    }

    async fn let_answer(&self, _context: &ActionContext) -> Result<String, Failure> {
        Err(Failure::refusal(Step::Answer, "Pilotlight may already answer there"))
    }
}

#[cfg(test)]
mod tests;
