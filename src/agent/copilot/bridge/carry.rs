//! What is done in a terminal over its bridge. Each deed is permitted right before it is sent, and counts as done when the log says so.

use super::known::Known;
use super::socket::Bridge;
use super::wire::Order;
use crate::agent::copilot::server::recover::{Failure, Prompt, RequestAnswer, SEEN_WITHIN, Sight, Site, Steps, choose};
use crate::agent::copilot::server::replying::{LOOKED, QuestionAnswer, Ready, form_of};
use crate::agent::copilot::server::request::Request;
use crate::core::form::Kind;
use crate::core::order::{Step, Which};
use crate::core::text::{counted, plain};
use crate::core::turn::Call;
use std::future::pending;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The way to a terminal, and what is known over it.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// Takes orders.
    pub bridge: Bridge,
    /// What it told.
    pub known: watch::Receiver<Known>,
}

/// How long Copilot may take to ask in its terminal, or to know that it need not.
const ASKED_WITHIN: Duration = Duration::from_secs(10);
/// The bridge may tell of a request so much later than its log.
const TOLD_WITHIN: Duration = Duration::from_secs(2);
/// A consent that is remembered comes within this.
const REMEMBERED_WITHIN: Duration = Duration::from_millis(700);
/// What a session is told that is to go on, where its last prompt must not be sent again.
const GO_ON: &str = "Go on from where you stopped; before you repeat a step, check whether it was done.";
/// What an extension says of its own is shown up to this length, in characters.
const WORDS_MAX: usize = 120;

/// The bridge did not do it.
fn refused(step: Step, error: Option<&str>) -> Failure {
    Failure::refusal(step, &words(error.unwrap_or("unknown")))
}

/// Why an order was not carried out, in words for the user.
fn words(error: &str) -> String {
    match error {
        "not-elevated" => "the bridge may not answer permission requests there",
        "gone" => "it is no longer open: somebody else answered it, or its turn has ended",
        "changed" => "it is another one by now than was shown, or another turn",
        "managed" => "your organisation wants a person to answer it in the terminal",
        "refused" => "the bridge refuses it",
        "busy" => "the session works, or asks something",
        "consenting" => "Copilot asks in its terminal whether Pilotlight may answer: answer that first",
        "late" => "its terminal was held up for too long: nothing was done",
        "unsupported" => "this version of Copilot does not have what it takes",
        other => return plain(other, WORDS_MAX).into(),
    }
    .into()
}

impl Way {
    /// Orders. Where nothing was done for sure, that is the outer error; the inner one may have happened.
    async fn order(&self, step: Step, order: Order) -> Result<Result<(), Failure>, Failure> {
        let gone = "the bridge has gone: see to it in its terminal";
        match timeout(SEEN_WITHIN, self.bridge.order(order)).await {
            Ok(Ok(result)) if result.ok => Ok(Ok(())),
            Ok(Ok(result)) => Err(refused(step, result.error.as_deref())),
            Ok(Err(_)) => Ok(Err(Failure::refusal(step, gone).unconfirmed())),
            Err(_) => Ok(Err(Failure::refusal(step, "the bridge does not answer").unconfirmed())),
        }
    }

    /// Waits until the log tells something.
    async fn seen(&self, site: &Site, what: impl Fn(&Sight) -> bool) -> bool {
        let mut sight = site.sight.clone();
        timeout(SEEN_WITHIN, sight.wait_for(|sight| what(sight))).await.is_ok_and(|seen| seen.is_ok())
    }

    /// Stops the turn that runs.
    ///
    /// # Errors
    /// Why it was not, or what is not confirmed.
    pub(crate) async fn stop(&self, site: &Site, steps: Steps<'_>) -> Result<String, Failure> {
        site.may_send(Step::Abort).await?;
        let before = site.sight.borrow().clone();
        let Some(after) = before.root.clone() else {
            return Err(Failure::refusal(Step::Abort, "the turn that runs cannot be named: press Esc in its terminal"));
        };
        steps(Step::Abort, "tells it to stop".to_owned());
        let ordered = self.order(Step::Abort, Order::Stop { after }).await?;
        let has_ended = |sight: &Sight| sight.aborted != before.aborted || before.turn_open && !sight.turn_open;
        if self.seen(site, has_ended).await {
            steps(Step::Verify, "the turn has ended".to_owned());
            return Ok("stopped".to_owned());
        }
        ordered?;
        let why = format!("told to stop, the session still works after {} s", SEEN_WITHIN.as_secs());
        Err(Failure::because(Step::Verify, &why, "press Esc in its terminal").unconfirmed())
    }

    /// Answers permission requests, each by its id, and only if it is what was shown.
    ///
    /// # Errors
    /// Why it was not, or what is not confirmed.
    pub(crate) async fn answer(&self, answer: RequestAnswer<'_>) -> Result<String, Failure> {
        let RequestAnswer { site, which, approve, show, steps } = answer;
        let sight = site.sight.borrow().clone();
        told_of(&self.known, &sight, which).await;
        let open = self.known.borrow().requests();
        let chosen = choose(open, which, show)?;
        chosen.iter().try_for_each(|request| is_logged(&site.sight.borrow(), request))?;
        let done = answer.begin(&chosen).await?;
        for request in &chosen {
            is_logged(&site.sight.borrow(), request)?;
            let open = self.known.borrow().open(&request.id).cloned();
            let Some(open) = open.filter(|open| Request::of(open).as_ref() == Some(request)) else {
                return Err(Failure::refusal(Step::TakeOver, &words("changed")));
            };
            let (request_id, text) = (open.request_id, open.mark);
            let tool_call_id = open.request["toolCallId"].as_str().map(Box::from);
            let order = if approve {
                Order::Approve { request_id, tool_call_id, text }
            } else {
                Order::Deny { request_id, tool_call_id, text }
            };
            let ordered = self.order(Step::TakeOver, order).await?;
            let call = Call::of(&request.id);
            let is_so = |sight: &Sight| sight.answered.contains(&(call, approve));
            if !self.seen(site, is_so).await {
                ordered?;
                let why = "the answer was taken, and its log does not say so";
                return Err(Failure::because(Step::Verify, why, "look at its terminal").unconfirmed());
            }
        }
        steps(Step::Verify, "its log says so".to_owned());
        Ok(format!("{done} {}", counted(chosen.len(), "request")))
    }

    /// Answers what it asks its user, or shows that.
    ///
    /// # Errors
    /// Why it was not, or what is not confirmed.
    pub(crate) async fn reply(&self, answer: QuestionAnswer<'_>) -> Result<String, Failure> {
        let find = |request: Option<&str>| form_of(&self.known.borrow().questions, request);
        let Some(Ready { request, kind, result }) = answer.ready(find).await? else {
            return Ok(LOOKED.to_owned());
        };
        let request_id: Box<str> = request.into();
        let order = match kind {
            Kind::Plan => Order::Plan { request_id, response: result },
            Kind::Form(_) => Order::Answer { request_id, result },
            Kind::Input => return Err(Failure::refusal(Step::TakeOver, "answer it in its terminal")),
        };
        let ordered = self.order(Step::TakeOver, order).await?;
        let mut known = self.known.clone();
        let closed = known.wait_for(|known| known.questions.find(Some(request)).is_none());
        let is_closed = timeout(SEEN_WITHIN, closed).await.is_ok_and(|closed| closed.is_ok());
        // Without its word, somebody else may have answered it first.
        if !is_closed || ordered.is_err() {
            ordered?;
            let why = "Copilot took the answer, and has not told that the question is over";
            return Err(Failure::because(Step::Verify, why, "look at its terminal").unconfirmed());
        }
        (answer.steps)(Step::Verify, "it is no longer open".to_owned());
        Ok("answered".to_owned())
    }

    /// Has Copilot ask in the terminal whether we may answer permission requests there; ends when its user has said yes or no.
    ///
    /// # Errors
    /// Why it was not asked, or that the user said no.
    pub(crate) async fn let_answer(&self, site: &Site, steps: Steps<'_>) -> Result<String, Failure> {
        site.may_send(Step::TakeOver).await?;
        let after = site.sight.borrow().root.clone().unwrap_or_default();
        steps(Step::TakeOver, "has Copilot ask in the terminal whether Pilotlight may answer there".to_owned());
        let mut known = self.known.clone();
        let result = tokio::select! {
            biased;
            result = self.bridge.order(Order::Elevate { after }) => result,
            // A consent that is remembered is given at once; a question waits for as long as its user likes.
            () = async {
                if known.wait_for(Known::is_asking).await.is_ok() {
                    sleep(REMEMBERED_WITHIN).await;
                } else {
                    pending::<()>().await;
                }
            } => {
                return Ok("Copilot asks in its terminal now: 1 for this session, 2 for this folder and for good".to_owned());
            }
            () = sleep(ASKED_WITHIN) => {
                return Err(Failure::refusal(Step::TakeOver, "the bridge does not answer").unconfirmed());
            }
        };
        match result {
            Ok(result) if result.ok => Ok("Pilotlight may answer permission requests in this terminal".to_owned()),
            Ok(result) => Err(refused(Step::TakeOver, result.error.as_deref())),
            Err(_) => Err(Failure::refusal(Step::TakeOver, "the bridge has gone").unconfirmed()),
        }
    }

    /// Types a prompt for the user: where the session waits for one, and none came meanwhile.
    ///
    /// # Errors
    /// Why it was not, or what is not confirmed.
    pub(crate) async fn send_on(&self, site: &Site, prompt: &Prompt, steps: Steps<'_>) -> Result<(), Failure> {
        site.may_send(Step::Resend).await?;
        let before = site.sight.borrow().clone();
        let Some(after) = before.root.clone() else {
            return Err(Failure::refusal(
                Step::Resend,
                "its last turn cannot be named: send it a prompt in its terminal",
            ));
        };
        let (text, what) = match prompt {
            Prompt::Again(text) => (text.as_str(), "sends your last prompt again"),
            // Whether permissions can be given is for its user to know.
            Prompt::GoOn(_) => (GO_ON, "tells it to go on"),
        };
        steps(Step::Resend, what.to_owned());
        let ordered = self.order(Step::Resend, Order::Send { after, prompt: text.into() }).await?;
        if self.seen(site, |sight| sight.prompt != before.prompt).await {
            steps(Step::Verify, "its log has the prompt".to_owned());
            return Ok(());
        }
        ordered?;
        let why = "Copilot took the prompt, and its log does not have it yet";
        Err(Failure::because(Step::Verify, why, "look at its terminal").unconfirmed())
    }
}

/// Waits until the bridge tells of the requests that are meant and that the log has open: the log may do so a moment before.
async fn told_of(known: &watch::Receiver<Known>, sight: &Sight, which: &Which) {
    let ids = match which {
        Which::These(ids) => ids.as_slice(),
        Which::Shown { id, .. } => std::slice::from_ref(id),
    };
    let is_open = |id: &&String| sight.requests.iter().any(|(call, _)| *call == Call::of(id));
    let meant: Vec<_> = ids.iter().filter(is_open).collect();
    let mut known = known.clone();
    let told = known.wait_for(|known| meant.iter().all(|id| known.open(id).is_some()));
    let _ = timeout(TOLD_WITHIN, told).await; // what it never tells of is refused by whoever answers
}

/// Whether the log has this request, too, and by the same text where it has one: what a bridge says is checked against that.
fn is_logged(sight: &Sight, request: &Request) -> Result<(), Failure> {
    let call = Call::of(&request.id);
    let logged = sight.requests.iter().find(|(open, _)| *open == call);
    match (logged, request.decisive()) {
        (None, _) => Err(Failure::refusal(Step::TakeOver, &words("gone"))),
        (Some((_, Some(asks))), Some(text)) if **asks != *text => Err(Failure::refusal(
            Step::TakeOver,
            "its log has another text than its bridge told: answer it in its terminal",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::tests::{asked, of, told};
    use super::*;

    #[tokio::test]
    async fn a_request_that_only_the_log_tells_of_yet_is_waited_for() {
        let (tell, known) = watch::channel(of("1.0.102"));
        let sight = Sight { requests: vec![(Call::of("a"), None)], ..Sight::default() };
        let of_ids = |ids: &[&str]| Which::These(ids.iter().map(|id| (*id).to_owned()).collect());
        let waits = async {
            told_of(&known, &sight, &of_ids(&["a"])).await;
            assert!(known.borrow().open("a").is_some());
        };
        let tells = async {
            tokio::task::yield_now().await;
            tell.send_modify(|known| assert!(known.hear(told(asked("a", "ls")))));
        };
        tokio::join!(waits, tells);
        // What the log does not have open is not waited for.
        timeout(Duration::ZERO, told_of(&known, &sight, &of_ids(&["a", "b"]))).await.unwrap();
    }
}
