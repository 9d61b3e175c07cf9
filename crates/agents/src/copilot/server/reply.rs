//! Answers a session's questions over the attached connection.
//!
//! The first answer wins, whoever gives it, and the server sends it to every attached client. So an answer counts as
//! given when such an event arrives with the answer that was sent.

use super::client::ServerClient;
use super::questions::Questions;
use crate::channel::action_context::{ActionContext, CONFIRM_TIMEOUT, EFFECT_TIMEOUT};
use crate::channel::failure::Failure;
use pilotlight_core::form::{Form, Kind, is_answer};
use pilotlight_core::order::{Reply, Step};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How the server reports that a question was answered.
enum Confirmation {
    /// By the answer that was sent.
    Ours,
    /// By another answer.
    Another,
    /// It reports nothing.
    Missing,
}

/// Answers an open question, or shows it.
pub(super) async fn reply(
    link: &ServerClient,
    questions: &watch::Sender<Questions>,
    context: &ActionContext,
    reply: &Reply,
) -> Result<String, Failure> {
    let refusal = |why: &str| Failure::refusal(Step::Answer, why);
    let ready = ready(context, reply, |request| form_of(&questions.borrow(), request)).await?;
    let Some(Ready { request, kind, result, said }) = ready else {
        return Ok(STILL_OPEN.to_owned());
    };
    match link.reply(&context.id, &kind, request, result.clone()).await {
        Ok(true) => match confirmation(link, questions, context, request, &result, EFFECT_TIMEOUT).await {
            Confirmation::Ours => context.step(Step::Verify, "its server confirms the answer"),
            Confirmation::Another => {
                let why = "its server accepted the answer, but reports a different one";
                return Err(Failure::refusal(Step::Verify, why).unconfirmed());
            }
            Confirmation::Missing => {
                let why = "its server accepted the answer, but did not confirm it";
                return Err(Failure::because(Step::Verify, why, "check what the session does").unconfirmed());
            }
        },
        Ok(false) => return Err(gone()),
        Err(fault) if !fault.may_have_succeeded() => return Err(Failure::of(Step::Answer, fault)),
        Err(fault) => match confirmation(link, questions, context, request, &result, CONFIRM_TIMEOUT).await {
            Confirmation::Ours => context.step(Step::Verify, "its server did not reply, but confirms the answer"),
            Confirmation::Another => return Err(refusal("somebody else answered it first")),
            Confirmation::Missing => return Err(Failure::of(Step::Verify, fault).unconfirmed()),
        },
    }
    Ok(said)
}

/// The outcome of showing a question.
pub(crate) const STILL_OPEN: &str = "it is still open";

/// An answer that is ready to be sent.
pub(crate) struct Ready<'a> {
    /// The question's id.
    pub(crate) request: &'a str,
    /// The kind of question.
    pub(crate) kind: Kind,
    /// The answer, as Copilot expects it.
    pub(crate) result: Value,
    /// What the user did with it.
    pub(crate) said: String,
}

/// Prepares an answer, for whichever connection sends it. Checks that the question is the one that the user was shown,
/// both before and after asking for the permit. Returns `None` if the order was only to show the question.
pub(crate) async fn ready<'a>(
    context: &ActionContext,
    reply: &'a Reply,
    find: impl Fn(Option<&str>) -> Result<Form, Failure>,
) -> Result<Option<Ready<'a>>, Failure> {
    let (request, shown, with) = match reply {
        Reply::Look(request) => {
            context.show_question(find(request.as_deref())?);
            return Ok(None);
        }
        Reply::Give { request, shown, with } => (request, *shown, with),
    };
    check_shown(&find(Some(request))?, shown)?;
    context.may_send(Step::Answer).await?;
    // By now, events that arrived while waiting for the permit have been applied.
    let form = find(Some(request))?;
    check_shown(&form, shown)?;
    let result = form.result(with).map_err(|why| Failure::refusal(Step::Answer, why))?;
    context.step(Step::Answer, "answers its question");
    let said = form.said(with);
    Ok(Some(Ready { request, kind: form.kind, result, said }))
}

/// The form of the open question with this id. Without an id, that of the oldest that can be answered.
pub(crate) fn form_of(questions: &Questions, request: Option<&str>) -> Result<Form, Failure> {
    let form = questions.find(request).ok_or_else(gone)?.form.clone();
    form.map_err(|why| Failure::refusal(Step::Answer, &format!("answer it where it asks: {why}")))
}

/// Fails if the question is not the one that the user was shown.
fn check_shown(form: &Form, mark: u64) -> Result<(), Failure> {
    if form.mark() == mark {
        Ok(())
    } else {
        Err(Failure::refusal(Step::Answer, "it asks something else than was shown"))
    }
}

/// Waits for the event that a question was answered. Events may be lost, so after the timeout the server's event log is
/// read.
async fn confirmation(
    link: &ServerClient,
    questions: &watch::Sender<Questions>,
    context: &ActionContext,
    request: &str,
    sent: &Value,
    within: Duration,
) -> Confirmation {
    let judge = |questions: &Questions| match questions.answer(request) {
        Some(answer) if is_answer(answer, sent) => Confirmation::Ours,
        Some(_) => Confirmation::Another,
        None => Confirmation::Missing,
    };
    let mut updates = questions.subscribe();
    let answered = updates.wait_for(|questions| questions.answer(request).is_some());
    if let Ok(Ok(questions)) = timeout(within, answered).await {
        return judge(&questions);
    }
    match timeout(CONFIRM_TIMEOUT, link.questions(&context.id)).await {
        Ok(Ok(questions)) => judge(&questions),
        Ok(Err(_)) | Err(_) => Confirmation::Missing,
    }
}

fn gone() -> Failure {
    Failure::refusal(Step::Answer, "the question is no longer open: somebody else answered it, or its turn has ended")
}
