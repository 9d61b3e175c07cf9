//! Answers what hooks ask. An answer is given over the connection that the request came by, and counts once the session's
//! log says that a hook decided: its user may have answered in the terminal at the same moment, and the first one wins.

use super::asked::Asked;
use crate::asked::question;
use crate::channel::action_context::{ActionContext, EFFECT_TIMEOUT, LogView};
use crate::channel::answering::{begin_answer, choose};
use crate::channel::failure::Failure;
use crate::channel::order::Prompt;
use crate::channel::request::Request;
use crate::channel::{self, Channel, Listener, open_request};
use crate::copilot::server::reply::{Ready, STILL_OPEN, ready};
use crate::hooks::listener::Hook;
use crate::hooks::wire::FromHook;
use async_trait::async_trait;
use pilotlight_core::form::Form;
use pilotlight_core::order::{self, Decision, Step, Which};
use pilotlight_core::question::Question;
use pilotlight_core::stream_probe::Word;
use pilotlight_core::text::counted;
use pilotlight_core::time::Moment;
use pilotlight_core::turn::Call;
use pilotlight_core::verdict::Asking;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// How much later than its process says that it goes on, a session's log may say who decided. Seen: 0.1 s.
const LOGGED_WITHIN: Duration = Duration::from_millis(1500);
/// Why an answer came too late.
const TERMINAL_FIRST: &str = "it was answered in the terminal first: nothing was changed by this";
/// Why rules are not passed on.
const OTHER_RULES: &str = "its rules are no longer those that were shown: nothing was answered";
/// Shown for a question of an unknown form.
const UNREADABLE: &str = "something that Pilotlight cannot read";

/// A hook that asks.
#[derive(Clone, Debug)]
pub(super) struct OpenHook {
    /// The id to answer it by.
    pub(super) request: Box<str>,
    pub(super) hook: Hook<Asked>,
    /// When it came.
    pub(super) at: Moment,
}

impl OpenHook {
    /// The question that it asks its user, if it does.
    pub(super) fn asking(&self) -> Option<Asking> {
        let form = self.hook.asked.form(&self.request)?;
        let unreadable = || Question { id: None, text: UNREADABLE.into(), choices: Vec::new() };
        let question = question(&self.hook.asked.arguments()).unwrap_or_else(unreadable);
        let question = match &form {
            Ok(form) => question.answered_by(&form.request, form.choices.iter().map(|choice| &*choice.words)),
            Err(_) => question,
        };
        Some(Asking { question, since: self.at.wall, form: form.map_err(Into::into) })
    }

    /// Has the hook print this, and finds out whether that decided.
    async fn answer(&self, context: &ActionContext, output: Value) -> Result<(), Failure> {
        let before = context.log_view.borrow().clone();
        if self.hook.handle.answer(output).await != Ok(FromHook::Printed) {
            return Err(Failure::refusal(Step::Answer, TERMINAL_FIRST));
        }
        // A sub-agent's terminal shows no dialog: nobody else can have answered.
        if self.hook.asked.sub_agent.is_some() {
            context.step(Step::Verify, "its hook has printed it");
            return Ok(());
        }
        match outcome(context, &before).await {
            Outcome::Ours => {
                context.step(Step::Verify, "its log says so");
                Ok(())
            }
            Outcome::Terminals => Err(Failure::refusal(Step::Verify, TERMINAL_FIRST)),
            Outcome::Unknown => {
                let why = "its hook took the answer, but its log does not show it";
                Err(Failure::because(Step::Verify, why, "look at its terminal").unconfirmed())
            }
        }
    }
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// A hook.
    Ours,
    /// Its user, in the terminal.
    Terminals,
    Unknown,
}

/// Waits until the session's log or its process says who decided.
async fn outcome(context: &ActionContext, before: &LogView) -> Outcome {
    let mut log_view = context.log_view.clone();
    let known = |call: Call| before.answered.iter().any(|(known, _)| *known == call);
    let is_decided =
        |now: &LogView| now.answered.iter().any(|(call, _)| !known(*call)) || now.aborted != before.aborted;
    let goes_on = |now: &LogView| is_decided(now) || !now.waits;
    match timeout(EFFECT_TIMEOUT, log_view.wait_for(goes_on)).await {
        Ok(Ok(now)) if is_decided(&now) => return Outcome::Ours,
        Ok(Ok(_)) => {}
        _ => return Outcome::Unknown,
    }
    match timeout(LOGGED_WITHIN, log_view.wait_for(is_decided)).await {
        Ok(Ok(_)) => Outcome::Ours,
        _ => Outcome::Terminals,
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
        let mut forms: Vec<_> = its.filter_map(|open| open.hook.asked.form(&open.request)).collect();
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
        let chosen = choose(context, self.requests(), which)?;
        let output = |request: &Request| {
            let open = self.find(&request.id)?;
            let output = open.hook.asked.output(decision);
            Ok((open, output.ok_or_else(|| Failure::refusal(Step::Answer, OTHER_RULES))?))
        };
        let outputs = chosen.iter().map(output).collect::<Result<Vec<_>, Failure>>()?;
        let done = begin_answer(context, &chosen, decision.approves()).await?;
        for (open, output) in outputs {
            open.answer(context, output).await?;
        }
        let more = match decision {
            Decision::Always { rules } => format!(", and from now on: {rules}"),
            Decision::Deny(denial) if denial.stop => ", and stopped its turn".to_owned(),
            Decision::Deny(denial) if denial.note.is_some() => " with a note".to_owned(),
            Decision::Approve | Decision::Deny(_) => String::new(),
        };
        Ok(format!("{done} {}{more}", counted(chosen.len(), "request")))
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
        let asked = &open.hook.asked;
        let output = asked.question_kind().and_then(|kind| asked.reply(kind, &result));
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
