//! What a session asks its user, answered over the connection that heard it.
//!
//! The first answer wins, whoever gives it, and its server tells everybody who is attached what that was. So an answer counts as
//! given when that is told, and is the one that was sent.

use super::asking::Questions;
use super::client::Link;
use super::recover::{Failure, SEEN_WITHIN, Site, Steps, TOLD_WITHIN};
use crate::core::form::{Form, Kind, is_answer};
use crate::core::order::{Reply, Step};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Takes a question, whole.
pub(crate) type Pose<'a> = &'a (dyn Fn(Form) + Send + Sync);

/// What was told of the end of a question.
enum Told {
    /// The answer that was sent.
    Ours,
    /// Another one.
    Another,
    /// Nothing.
    Nothing,
}

/// How an open question is to be answered, or that it is to be shown.
#[derive(Clone, Copy)]
pub(crate) struct QuestionAnswer<'a> {
    /// Of which session.
    pub(crate) site: &'a Site,
    /// The answer.
    pub(crate) reply: &'a Reply,
    /// Is shown the question.
    pub(crate) pose: Pose<'a>,
    /// Takes the steps.
    pub(crate) steps: Steps<'a>,
}

/// Answers an open question, or shows it.
pub(super) async fn reply(
    link: &Link,
    questions: &watch::Sender<Questions>,
    answer: QuestionAnswer<'_>,
) -> Result<String, Failure> {
    let refusal = |why: &str| Failure::refusal(Step::TakeOver, why);
    let QuestionAnswer { site, steps, .. } = answer;
    let ready = answer.ready(|request| form_of(&questions.borrow(), request)).await?;
    let Some(Ready { request, kind, result }) = ready else {
        return Ok(LOOKED.to_owned());
    };
    match link.reply(&site.id, &kind, request, result.clone()).await {
        Ok(true) => match told(link, questions, site, request, &result, SEEN_WITHIN).await {
            Told::Ours => steps(Step::Verify, "its server tells everybody so".to_owned()),
            Told::Another => {
                let why = "its server took the answer, but tells of another one";
                return Err(Failure::refusal(Step::Verify, why).unconfirmed());
            }
            Told::Nothing => {
                let why = "its server took the answer, and has not told that the question is over";
                return Err(Failure::because(Step::Verify, why, "look at what it does").unconfirmed());
            }
        },
        Ok(false) => return Err(gone()),
        Err(fault) if !fault.leaves_open() => return Err(Failure::of(Step::TakeOver, fault)),
        Err(fault) => match told(link, questions, site, request, &result, TOLD_WITHIN).await {
            Told::Ours => steps(Step::Verify, "its server did not say so, but tells everybody".to_owned()),
            Told::Another => return Err(refusal("somebody else answered it first")),
            Told::Nothing => return Err(Failure::of(Step::Verify, fault).unconfirmed()),
        },
    }
    Ok("answered".to_owned())
}

/// What comes of a look at a question.
pub(crate) const LOOKED: &str = "it is still open";

/// An answer that may be sent.
pub(crate) struct Ready<'a> {
    /// The question's id.
    pub(crate) request: &'a str,
    /// What kind of question it is.
    pub(crate) kind: Kind,
    /// The answer, in Copilot's form.
    pub(crate) result: Value,
}

impl<'a> QuestionAnswer<'a> {
    /// Everything before an answer is sent, whichever way: the question is the one that the user was shown, before and after the
    /// permit was asked for. `None`: the question was only to be shown, and was.
    pub(crate) async fn ready(
        &self,
        find: impl Fn(Option<&str>) -> Result<Form, Failure>,
    ) -> Result<Option<Ready<'a>>, Failure> {
        let (request, shown, with) = match self.reply {
            Reply::Look(request) => {
                (self.pose)(find(request.as_deref())?);
                return Ok(None);
            }
            Reply::Give { request, shown, with } => (request, *shown, with),
        };
        shown_is(&find(Some(request))?, shown)?;
        self.site.may_send(Step::TakeOver).await?;
        // What came meanwhile was heard of by now.
        let form = find(Some(request))?;
        shown_is(&form, shown)?;
        let result = form.result(with).map_err(|why| Failure::refusal(Step::TakeOver, why))?;
        (self.steps)(Step::TakeOver, "answers its question".to_owned());
        Ok(Some(Ready { request, kind: form.kind, result }))
    }
}

/// The open question of this id, else the oldest that can be answered.
pub(crate) fn form_of(questions: &Questions, request: Option<&str>) -> Result<Form, Failure> {
    let form = questions.find(request).ok_or_else(gone)?.form.clone();
    form.map_err(|why| Failure::refusal(Step::TakeOver, &format!("answer it where it asks: {why}")))
}

/// Whether a question is the one that the user was shown.
fn shown_is(form: &Form, mark: u64) -> Result<(), Failure> {
    if form.mark() == mark {
        Ok(())
    } else {
        Err(Failure::refusal(Step::TakeOver, "it asks something else than was shown"))
    }
}

/// Waits until the end of a question is told; where it is not, its server's log of events is looked at: an event may be lost.
async fn told(
    link: &Link,
    questions: &watch::Sender<Questions>,
    site: &Site,
    request: &str,
    sent: &Value,
    within: Duration,
) -> Told {
    let judge = |questions: &Questions| match questions.ended(request) {
        Some(told) if is_answer(told, sent) => Told::Ours,
        Some(_) => Told::Another,
        None => Told::Nothing,
    };
    let mut heard = questions.subscribe();
    let ended = heard.wait_for(|questions| questions.ended(request).is_some());
    if let Ok(Ok(questions)) = timeout(within, ended).await {
        return judge(&questions);
    }
    match timeout(TOLD_WITHIN, link.questions(&site.id)).await {
        Ok(Ok(questions)) => judge(&questions),
        Ok(Err(_)) | Err(_) => Told::Nothing,
    }
}

fn gone() -> Failure {
    Failure::refusal(Step::TakeOver, "the question is no longer open: somebody else answered it, or its turn has ended")
}
