//! Carries out orders in a terminal over its bridge. Each action is checked once more right before it is sent, and
//! counts as done when the session's log confirms it.

use super::known::BridgeState;
use super::socket::{Bridge, Reply};
use super::wire::Order;
use crate::channel::action_context::{ActionContext, EFFECT_TIMEOUT, LogView};
use crate::channel::answering::{begin_answer, choose};
use crate::channel::failure::{Failure, FailureKind};
use crate::channel::order::Prompt;
use crate::channel::request::Request;
use crate::channel::{self, Channel, Listener, open_request};
use crate::copilot::server::listening::listen;
use crate::copilot::server::recover::drawn::{DRAWN_WITHIN, still_drawing};
use crate::copilot::server::reply::{Ready, STILL_OPEN, form_of, ready};
use async_trait::async_trait;
use pilotlight_core::form::Kind;
use pilotlight_core::order::{self, LOG_DIFFERS, Step, Which};
use pilotlight_core::stream_probe::Word;
use pilotlight_core::text::{counted, plain};
use pilotlight_core::turn::Call;
use std::future::pending;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// A connected bridge and the state that it reports.
#[derive(Clone, Debug)]
pub(crate) struct BridgeHandle {
    pub bridge: Bridge,
    pub known: watch::Receiver<BridgeState>,
}

/// How long the bridge may be silent about an order, or Copilot may take to ask in its terminal.
const ANSWERS_WITHIN: Duration = EFFECT_TIMEOUT;
/// How much later than the log the bridge may report a request.
const LISTED_WITHIN: Duration = Duration::from_secs(2);
/// How long Copilot takes to grant a remembered consent.
const REMEMBERED_WITHIN: Duration = Duration::from_millis(700);
/// Where the question is.
const ASKS_THERE: &str = "Copilot now asks in its terminal: 1 allows it for this session, 2 for this folder from now on. If that terminal \
    shows another session (after /new), a \"!\" in its sidebar is the only sign: switch to this one there";
/// The longest part of an extension's own error message that is shown, in characters.
const WORDS_MAX: usize = 120;

/// The failure for an order that the bridge has not answered in time. `released`: it may have carried it out.
fn no_answer(step: Step, released: bool) -> Failure {
    if released {
        return Failure::refusal(step, "the bridge does not answer").unconfirmed();
    }
    Failure::because(step, "the bridge does not answer, so nothing was done", "use its terminal instead")
}

/// The failure for an order that the bridge did not carry out.
fn refused(step: Step, error: Option<&str>) -> Failure {
    Failure::refusal(step, &words(error.unwrap_or("unknown")))
}

/// Why an order was not carried out, in words for the user.
fn words(error: &str) -> String {
    match error {
        "not-elevated" => "the bridge may not answer permission requests there",
        "elsewhere" => "the bridge was allowed to answer in another folder only: answer it in its terminal",
        "stranger" => {
            "this Pilotlight started after the session's first tool, so it needs your consent again, but Copilot does not ask twice: answer it in its terminal, or restart the session"
        }
        "gone" => "it is no longer open: somebody else answered it, or its turn has ended",
        "changed" => "it is no longer the one that was shown, or another turn has begun",
        "managed" => "your organisation's policy requires a person: answer it in its terminal",
        "refused" => "the bridge refuses it",
        "busy" => "the session is working, or asks something",
        "consenting" => "Copilot asks in its terminal whether Pilotlight may answer: answer that first",
        "withdrawn" => "the program that asked for this has gone: nothing was done",
        "large" => "its dialog is too long to check from here: answer it in its terminal",
        "late" => "its terminal was busy for too long: nothing was done",
        "unsupported" => "this version of Copilot does not support it",
        other => return plain(other, WORDS_MAX).into(),
    }
    .into()
}

impl BridgeHandle {
    /// Gives an order, and lets the bridge carry it out. The outer error means that nothing was done; after the inner
    /// one, the order may have been carried out.
    async fn order(&self, context: &ActionContext, step: Step, order: Order) -> Result<Result<(), Failure>, Failure> {
        let mut released = false;
        let carried_out = match timeout(DRAWN_WITHIN, self.follow(context, step, order, &mut released)).await {
            Ok(carried_out) => carried_out,
            Err(_) if released => Err(no_answer(step, true)),
            Err(_) => Err(still_drawing(step)),
        };
        match carried_out {
            Err(failure) if failure.kind != FailureKind::Unconfirmed => Err(failure),
            carried_out => Ok(carried_out),
        }
    }

    /// Gives an order, and follows it to its result. Right before the bridge acts, it asks whether the order still
    /// stands; `released` says whether it was told so, and may have acted. Dropping this withdraws the order.
    async fn follow(
        &self,
        context: &ActionContext,
        step: Step,
        order: Order,
        released: &mut bool,
    ) -> Result<(), Failure> {
        let gone = || Failure::refusal(step, "the bridge has gone: use its terminal instead");
        let mut replies = self.bridge.order(order).await.map_err(|_| gone())?;
        loop {
            let Ok(reply) = timeout(ANSWERS_WITHIN, replies.recv()).await else {
                return Err(no_answer(step, *released));
            };
            match reply {
                Some(Reply::Asks { ready, answer }) => {
                    *released = false; // it asks again if it could not act
                    context.may_send(step).await?;
                    *released = answer.send(true).is_ok() && ready;
                }
                Some(Reply::Result(result)) if result.ok => return Ok(()),
                Some(Reply::Result(result)) => return Err(refused(step, result.error.as_deref())),
                None if *released => return Err(gone().unconfirmed()),
                None => return Err(gone()),
            }
        }
    }

    /// Waits for the log to fulfil a condition. Returns whether it did in time.
    async fn seen(&self, context: &ActionContext, condition: impl Fn(&LogView) -> bool) -> bool {
        let mut log_view = context.log_view.clone();
        timeout(EFFECT_TIMEOUT, log_view.wait_for(|log_view| condition(log_view))).await.is_ok_and(|seen| seen.is_ok())
    }

    /// Waits for the next piece of the session's answer, for at most `wait`. Returns the size of the answer so far.
    async fn next_piece(&self, wait: Duration) -> Result<Option<u64>, ()> {
        let order = Order::Listen { wait: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) };
        let mut replies = self.bridge.order(order).await.map_err(drop)?;
        match timeout(wait + EFFECT_TIMEOUT, replies.recv()).await.map_err(drop)? {
            Some(Reply::Result(result)) if result.ok => Ok(result.bytes),
            _ => Err(()),
        }
    }

    /// The open requests that the bridge reports, once these are among them.
    pub(crate) async fn requests(&self, context: &ActionContext, ids: &[String]) -> Vec<Request> {
        let log_view = context.log_view.borrow().clone();
        wait_until_listed(&self.known, &log_view, ids).await;
        let commands = &context.log_view.borrow().commands.clone();
        self.known.borrow().requests().into_iter().map(|request| request.with_command(commands)).collect()
    }
}

#[async_trait]
impl Channel for BridgeHandle {
    async fn request(&self, context: &ActionContext, id: &str) -> Result<Request, Failure> {
        open_request(self.requests(context, &[id.to_owned()]).await, id)
    }

    /// Each is answered by its id, and only if it is the one that was shown.
    async fn answer(
        &self,
        context: &ActionContext,
        which: &Which,
        decision: &order::Decision,
    ) -> Result<String, Failure> {
        let approve = decision.approves();
        let ids = match which {
            Which::These(ids) => ids.as_slice(),
            Which::Shown { id, .. } => std::slice::from_ref(id),
        };
        let chosen = choose(context, self.requests(context, ids).await, which)?;
        let commands = &context.log_view.borrow().commands.clone();
        chosen.iter().try_for_each(|request| is_logged(&context.log_view.borrow(), request, false))?;
        let done = begin_answer(context, &chosen, approve).await?;
        for request in &chosen {
            is_logged(&context.log_view.borrow(), request, approve)?;
            let open = self.known.borrow().open(&request.id).cloned();
            let Some(open) =
                open.filter(|open| open.request().map(|open| open.with_command(commands)).as_ref() == Some(request))
            else {
                return Err(Failure::refusal(Step::Answer, &words("changed")));
            };
            let (request_id, text) = (open.request_id, open.mark);
            let tool_call_id = open.request["toolCallId"].as_str().map(Box::from);
            let order = if approve {
                Order::Approve { request_id, tool_call_id, text }
            } else {
                Order::Deny { request_id, tool_call_id, text }
            };
            let ordered = self.order(context, Step::Answer, order).await?;
            let call = Call::of(&request.id);
            let is_answered = |log_view: &LogView| log_view.answered.contains(&(call, approve));
            if !self.seen(context, is_answered).await {
                ordered?;
                let why = "the bridge took the answer, but the session's log does not show it";
                return Err(Failure::because(Step::Verify, why, "look at its terminal").unconfirmed());
            }
        }
        context.step(Step::Verify, "the session's log confirms it");
        Ok(format!("{done} {}", counted(chosen.len(), "request")))
    }

    async fn reply(&self, context: &ActionContext, reply: &order::Reply) -> Result<String, Failure> {
        let find = |request: Option<&str>| form_of(&self.known.borrow().questions, request);
        let Some(Ready { request, kind, result, said }) = ready(context, reply, find).await? else {
            return Ok(STILL_OPEN.to_owned());
        };
        let request_id: Box<str> = request.into();
        let order = match kind {
            Kind::Plan => Order::Plan { request_id, response: result },
            Kind::Form(_) => Order::Answer { request_id, result },
            Kind::Input => return Err(Failure::refusal(Step::Answer, "answer it in its terminal")),
        };
        let ordered = self.order(context, Step::Answer, order).await?;
        let mut known = self.known.clone();
        let closed = known.wait_for(|known| known.questions.find(Some(request)).is_none());
        let is_closed = timeout(EFFECT_TIMEOUT, closed).await.is_ok_and(|closed| closed.is_ok());
        // Without the bridge's confirmation, somebody else may have answered first.
        if !is_closed || ordered.is_err() {
            ordered?;
            let why = "Copilot took the answer, but has not reported that the question is closed";
            return Err(Failure::because(Step::Verify, why, "look at its terminal").unconfirmed());
        }
        context.step(Step::Verify, "the question is closed");
        Ok(said)
    }

    async fn stop(&self, context: &ActionContext) -> Result<String, Failure> {
        context.may_send(Step::Abort).await?;
        let before = context.log_view.borrow().clone();
        let Some(after) = before.turn_id.clone() else {
            return Err(Failure::refusal(
                Step::Abort,
                "the running turn cannot be identified: press Esc in its terminal",
            ));
        };
        context.step(Step::Abort, "tells it to stop");
        let ordered = self.order(context, Step::Abort, Order::Stop { after }).await?;
        let has_ended =
            |log_view: &LogView| log_view.aborted != before.aborted || before.turn_open && !log_view.turn_open;
        if self.seen(context, has_ended).await {
            context.step(Step::Verify, "the turn has ended");
            return Ok("stopped".to_owned());
        }
        ordered?;
        let why = format!("the session was told to stop, and still works after {} s", EFFECT_TIMEOUT.as_secs());
        Err(Failure::because(Step::Verify, &why, "press Esc in its terminal").unconfirmed())
    }

    async fn receives(&self, context: &ActionContext) -> Result<bool, Failure> {
        let hears = |wait| async move { matches!(self.next_piece(wait).await, Ok(Some(_))) };
        Ok(context.receives(hears).await)
    }
}

#[async_trait]
impl Listener for BridgeHandle {
    async fn listen(&self, _id: &str, window: Duration) -> Option<Word> {
        listen(window, |wait| self.next_piece(wait)).await.ok()
    }
}

#[async_trait]
impl channel::Bridge for BridgeHandle {
    async fn send_on(&self, context: &ActionContext, prompt: &Prompt) -> Result<(), Failure> {
        context.may_send(Step::Resend).await?;
        let before = context.log_view.borrow().clone();
        let Some(after) = before.turn_id.clone() else {
            return Err(Failure::refusal(
                Step::Resend,
                "its last turn cannot be identified: send it a prompt in its terminal",
            ));
        };
        let (text, what) = match prompt {
            Prompt::Repeat(text) => (text.as_str(), "sends your last prompt again"),
            Prompt::Continue(text) => (text.as_str(), "tells it to continue"),
        };
        context.step(Step::Resend, what);
        let ordered = self.order(context, Step::Resend, Order::Send { after, prompt: text.into() }).await?;
        if self.seen(context, |log_view| log_view.prompt != before.prompt).await {
            context.step(Step::Verify, "its log has the prompt");
            return Ok(());
        }
        ordered?;
        let why = "Copilot took the prompt, but its log does not have it yet";
        Err(Failure::because(Step::Verify, why, "look at its terminal").unconfirmed())
    }

    /// Returns once Copilot asks, or has decided from a remembered consent.
    async fn let_answer(&self, context: &ActionContext) -> Result<String, Failure> {
        context.may_send(Step::Answer).await?;
        let after = context.log_view.borrow().turn_id.clone().unwrap_or_default();
        context.step(Step::Answer, "has Copilot ask in the terminal whether Pilotlight may answer there");
        let mut known = self.known.clone();
        let mut released = false;
        let result = tokio::select! {
            biased;
            result = self.follow(context, Step::Answer, Order::Elevate { after }, &mut released) => result,
            // A remembered consent is granted at once; a dialog may stay open for any time.
            () = async {
                if known.wait_for(BridgeState::is_asking).await.is_ok() {
                    sleep(REMEMBERED_WITHIN).await;
                } else {
                    pending::<()>().await;
                }
            } => {
                return Ok(ASKS_THERE.to_owned());
            }
        };
        result?;
        Ok("Pilotlight may answer permission requests in this terminal".to_owned())
    }
}

/// Waits until the bridge has reported the selected requests that are open in the log, which may be a moment ahead of
/// it.
async fn wait_until_listed(known: &watch::Receiver<BridgeState>, log_view: &LogView, ids: &[String]) {
    let is_open = |id: &&String| log_view.requests.iter().any(|logged| logged.id == Call::of(id));
    let selected: Vec<_> = ids.iter().filter(is_open).collect();
    let mut known = known.clone();
    let listed = known.wait_for(|known| selected.iter().all(|id| known.open(id).is_some()));
    let _ = timeout(LISTED_WITHIN, listed).await; // the caller refuses requests that were never reported
}

/// Checks that a request reported by the bridge is open in the log as well, and, if it is to be approved, in the same words.
fn is_logged(log_view: &LogView, request: &Request, approve: bool) -> Result<(), Failure> {
    let call = Call::of(&request.id);
    match log_view.requests.iter().find(|logged| logged.id == call) {
        None => Err(Failure::refusal(Step::Answer, &words("gone"))),
        Some(logged) if approve && request.differs_from(logged) => Err(Failure::refusal(Step::Answer, LOG_DIFFERS)),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::tests::{joined, message, requested};
    use super::*;
    use crate::channel::Reach;
    use crate::channel::action_context::LoggedRequest;
    use crate::copilot::server::servers::Endpoints;
    use std::sync::Arc;
    use tokio::sync::mpsc;

    #[test]
    fn a_server_is_better_than_a_bridge_but_tells_its_questions_only_to_who_is_attached() {
        let (_state, known) = watch::channel(joined("1.0.102"));
        let bridge = BridgeHandle { bridge: Bridge::new(mpsc::channel(1).0), known };
        let alone = Reach { bridge: Some(Arc::new(bridge)), ..Reach::default() };
        let with_server = Reach { servers: Some(Arc::new(Endpoints::at(Vec::new()))), ..alone.clone() };
        let is_bridge = |channel: Result<Arc<dyn Channel>, _>| format!("{channel:?}").starts_with("Ok(BridgeHandle");
        assert!(is_bridge(alone.channel()) && alone.only_bridge().is_some());
        assert!(!is_bridge(with_server.channel()) && with_server.only_bridge().is_none());
        assert!(is_bridge(with_server.channel_for_questions()));
        let unreached = Reach { bridge: None, ..with_server };
        assert_eq!(unreached.channel_for_questions().unwrap_err(), Failure::not_attached());
        assert_eq!(Reach::default().channel().unwrap_err(), Failure::no_server());
    }

    #[tokio::test]
    async fn a_request_that_only_the_log_has_yet_is_waited_for() {
        let (state, known) = watch::channel(joined("1.0.102"));
        let log_view = LogView {
            requests: vec![LoggedRequest { id: Call::of("a"), ..LoggedRequest::default() }],
            ..LogView::default()
        };
        let of_ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let waits = async {
            wait_until_listed(&known, &log_view, &of_ids(&["a"])).await;
            assert!(known.borrow().open("a").is_some());
        };
        let reports = async {
            tokio::task::yield_now().await;
            state.send_modify(|known| assert!(known.hear(message(requested("a", "ls")))));
        };
        tokio::join!(waits, reports);
        // A request that is not open in the log is not waited for.
        timeout(Duration::ZERO, wait_until_listed(&known, &log_view, &of_ids(&["a", "b"]))).await.unwrap();
    }
}
