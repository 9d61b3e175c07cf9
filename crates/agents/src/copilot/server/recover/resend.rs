//! Sends a prompt that continues a session, over an attachment.

use super::stop::abort;
use crate::channel::action_context::{ActionContext, EFFECT_TIMEOUT, LogView};
use crate::channel::failure::Failure;
use crate::channel::order::Prompt;
use crate::copilot::server::attached::{Attached, Rest};
use pilotlight_core::attempts::Mark;
use pilotlight_core::order::Step;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How long a log may not grow after a prompt was sent, before the turn is aborted and the prompt sent once more.
pub(crate) const LOG_GROWTH_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the server is asked whether the session rests.
const REST_POLL: Duration = Duration::from_millis(50);
/// The refusal if somebody else was first.
const PROMPTED: &str = "nothing was done: another prompt was sent meanwhile, and this was meant for the turn before it";

/// Waits until the session rests: what its log says of a turn's end may be ahead of its server. `is_prompted` says
/// whether its log has another prompt by now.
async fn wait_for_rest(
    attached: &Attached,
    log_end: Option<&str>,
    is_prompted: impl Fn() -> bool,
) -> Result<(), Failure> {
    let until = Instant::now() + EFFECT_TIMEOUT;
    loop {
        if is_prompted() {
            return Err(Failure::refusal(Step::Resend, PROMPTED));
        }
        match attached.rests_since(log_end).await.map_err(|fault| Failure::of(Step::Resend, fault))? {
            Rest::Rests => return Ok(()),
            Rest::Prompted => return Err(Failure::refusal(Step::Resend, PROMPTED)),
            Rest::Works if Instant::now() >= until => {
                return Err(Failure::refusal(Step::Resend, "its server says that it works; nothing was sent"));
            }
            Rest::Works => sleep(REST_POLL).await,
        }
    }
}

/// Takes back a prompt that waits behind another one: that came in the moment between our last question and our prompt.
async fn take_back(attached: &Attached, message: &str, prompt: &Prompt, context: &ActionContext) -> Failure {
    match attached.withdraw(message, prompt.text()).await {
        Ok(true) => {
            context.step(Step::Verify, "another prompt came first; this one was taken back");
            Failure::refusal(Step::Resend, PROMPTED)
        }
        Ok(false) | Err(_) => {
            let why = "another prompt came first, and this one, which follows it, could not be taken back";
            Failure::because(Step::Resend, why, "look at the session, and stop it if it repeats itself").unconfirmed()
        }
    }
}

/// Refuses a prompt that no longer fits the session's log: another one came first, or a tool would run twice.
fn check_may_repeat(prompt: &Prompt, last: Option<Mark>, context: &ActionContext) -> Result<(), Failure> {
    let log_view = context.log_view.borrow();
    if log_view.prompt != last {
        return Err(Failure::refusal(Step::Resend, PROMPTED));
    }
    if matches!(prompt, Prompt::Repeat(_)) && log_view.ran > 0 {
        let why = "a tool has run since that prompt, or may have: its work would be done twice; write a prompt that continues from there";
        return Err(Failure::refusal(Step::Resend, why));
    }
    Ok(())
}

/// How a prompt has reached the server.
enum Delivery {
    /// It accepted it, and may have named the message.
    Accepted(Option<String>),
    /// It did not reply, but the session's log has the prompt.
    Logged,
}

/// Sends the prompt once. `before` is the last prompt that the log had by then.
async fn deliver(
    attached: &Attached,
    prompt: &Prompt,
    before: Option<Mark>,
    context: &ActionContext,
) -> Result<Delivery, Failure> {
    match attached.send(prompt.text()).await {
        Ok(message) => Ok(Delivery::Accepted(message)),
        Err(fault) if !fault.may_have_succeeded() => Err(Failure::of(Step::Resend, fault)),
        // Sending again could deliver the prompt twice.
        Err(fault) if !context.log_shows(|log_view| log_view.prompt != before).await => {
            Err(Failure::of(Step::Resend, fault).unconfirmed())
        }
        Err(_) => {
            context.step(Step::Verify, "its server did not reply, but its log has the prompt");
            Ok(Delivery::Logged)
        }
    }
}

/// What became of a prompt that was sent: the log has grown, or something explains why it has not. `None` if the session
/// ignores the prompt.
fn effect(attached: &Attached, has_grown: bool, context: &ActionContext) -> Option<&'static str> {
    let (verified, outcome) = if has_grown {
        ("the session works on it", "sent")
    } else if context.log_view.borrow().tools_open > 0 {
        ("a tool is still open", "sent, and waits for a tool that is still open")
    } else if attached.asks() {
        ("it asks you something", "sent, and waits for your answer to what it asks")
    } else {
        return None;
    };
    context.step(Step::Verify, verified);
    Some(outcome)
}

/// Sends a prompt to an attached session. It is sent only while the session rests and its last prompt is still the same,
/// by its server's own word: the user's own next prompt may have come in between. If that came in the last moment, ours
/// is taken back. If the log does not grow within `span`, no tool is open and no question is
/// known, the turn is aborted and the prompt sent a second and last time. The user's own prompt is refused if a tool
/// has run since, or may have, because it would run twice. Any prompt is refused if another one was sent in between:
/// `last` is [`LogView::prompt`] as of the decision.
pub async fn resend(
    attached: &Attached,
    prompt: &Prompt,
    last: Option<Mark>,
    context: &ActionContext,
    span: Duration,
) -> Result<String, Failure> {
    check_may_repeat(prompt, last, context)?;
    let mut log_view = context.log_view.clone();
    let failed = |fault| Failure::of(Step::Resend, fault);
    // The log on disk lags behind the server.
    let mut log_end = attached.log_end().await.map_err(failed)?;
    for attempt in 1..=2 {
        wait_for_rest(attached, log_end.as_deref(), || attempt == 1 && context.log_view.borrow().prompt != last)
            .await?;
        context.may_send(Step::Resend).await?;
        if attached.rests_since(log_end.as_deref()).await.map_err(failed)? != Rest::Rests {
            return Err(Failure::refusal(Step::Resend, PROMPTED));
        }
        // From now on it has a prompt of ours.
        let since = log_end.take();
        let (before, prompt_before) = {
            let log_view = log_view.borrow_and_update();
            (log_view.events, log_view.prompt)
        };
        context.step(Step::Resend, format!("sends the prompt, attempt {attempt}"));
        let Delivery::Accepted(message) = deliver(attached, prompt, prompt_before, context).await? else {
            return Ok("sent".to_owned());
        };
        let until = Instant::now() + span;
        if let (Some(since), Some(message)) = (since, message)
            && attached.is_behind(&since, &message, until).await.unwrap_or(false)
        {
            return Err(take_back(attached, &message, prompt, context).await);
        }
        let has_grown = |log_view: &LogView| log_view.events != before;
        let has_grown = timeout_at(until, log_view.wait_for(has_grown)).await.is_ok_and(|seen| seen.is_ok());
        if let Some(outcome) = effect(attached, has_grown, context) {
            return Ok(outcome.to_owned());
        }
        if attempt == 1 {
            abort(&attached.link, context).await?;
            if log_view.borrow().prompt != prompt_before {
                context.step(Step::Verify, "the prompt was logged late");
                return Ok("the prompt was sent again, and its turn stopped".to_owned());
            }
        }
    }
    let why = format!("sent twice, and nothing was logged within {} s", span.as_secs());
    Err(Failure::because(Step::Resend, &why, "stop the session, or resume it in a terminal").unconfirmed())
}
