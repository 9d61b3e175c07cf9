//! What is done over the daemon's socket: approvals are answered, turns stopped.

use super::client::Client;
use super::daemon_socket::{ANSWER_TIMEOUT, DaemonSocket, TAKES_NO_ANSWERS};
use super::request::{self, Asked};
use crate::channel::action_context::{ActionContext, EFFECT_TIMEOUT, LogView};
use crate::channel::answering::{begin_answer, choose};
use crate::channel::failure::Failure;
use crate::channel::request::Request;
use crate::channel::{Channel, open_request};
use async_trait::async_trait;
use pilotlight_core::order::{Decision, Reply, Step, Which};
use pilotlight_core::text::counted;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long the requests of a thread may take to arrive after it was joined. They come at once.
const ARRIVES_WITHIN: Duration = Duration::from_secs(2);
/// How long further ones are waited for.
const SETTLES: Duration = Duration::from_millis(100);
/// How long the daemon may take, after a request is closed, to say what became of it.
const TOLD_WITHIN: Duration = Duration::from_millis(300);

/// A connection that is subscribed to the threads that ask, and what they ask.
struct Subscription<'a> {
    client: Client,
    threads: Vec<&'a str>,
    open: Vec<Asked>,
}

impl<'a> Subscription<'a> {
    /// Joins those of the threads that wait for an approval.
    async fn new(socket: &'a DaemonSocket, context: &ActionContext) -> Result<Self, Failure> {
        let mut subscription =
            Subscription { client: Client::open(socket).await?, threads: Vec::new(), open: Vec::new() };
        context.step(Step::Attach, "connected to Codex's daemon");
        let result = subscription.join(socket, context).await;
        match result {
            Ok(()) => Ok(subscription),
            Err(failure) => {
                subscription.leave().await;
                Err(failure)
            }
        }
    }

    async fn join(&mut self, socket: &'a DaemonSocket, context: &ActionContext) -> Result<(), Failure> {
        for thread in &socket.threads {
            // A thread that is not loaded would be loaded by joining it.
            if !waits_for_approval(&status(&mut self.client, thread).await?) {
                continue;
            }
            self.threads.push(thread);
            let params = json!({"threadId": thread, "excludeTurns": true});
            self.client.call(Step::Attach, "thread/resume", &params).await?;
            let is_of = |message: &Value| request::is_of(message, thread).then_some(());
            self.client.wait_for(Instant::now() + ARRIVES_WITHIN, is_of).await?;
            self.client.wait_for(Instant::now() + SETTLES, |_| None::<()>).await?;
        }
        let cwd = context.cwd.as_deref();
        let threads = &self.threads;
        let asked =
            self.client.heard.iter().filter(|message| threads.iter().any(|thread| request::is_of(message, thread)));
        self.open = asked.filter_map(|message| Asked::read(message, cwd)).collect();
        self.open.retain(|asked| !request::is_closed(&self.client.heard, &asked.id));
        Ok(())
    }

    async fn leave(self) {
        self.client.leave(&self.threads).await;
    }
}

/// The status of a thread, as the daemon has it.
pub(super) async fn status(client: &mut Client, thread: &str) -> Result<Value, Failure> {
    let read = client.call(Step::Attach, "thread/read", &json!({"threadId": thread})).await?;
    Ok(read.pointer("/thread/status").cloned().unwrap_or_default())
}

pub(super) fn waits_for_approval(status: &Value) -> bool {
    let flags = status.get("activeFlags").and_then(Value::as_array);
    flags.is_some_and(|flags| flags.iter().any(|flag| flag == "waitingOnApproval"))
}

/// What is done over the connection to the daemon, for one of its threads.
impl DaemonSocket {
    /// The open requests of a session.
    async fn requests(&self, context: &ActionContext) -> Result<Vec<Request>, Failure> {
        let subscription = Subscription::new(self, context).await?;
        let open = subscription.open.iter().map(|asked| asked.request.clone()).collect();
        subscription.leave().await;
        Ok(open)
    }
}

#[async_trait]
impl Channel for DaemonSocket {
    async fn request(&self, context: &ActionContext, id: &str) -> Result<Request, Failure> {
        let open = self.requests(context).await?;
        let other = open.first().map(|other| other.id.clone());
        let request = open_request(open, id);
        request.map_err(|gone| other.map_or(gone, |other| Failure::open_instead(&other)))
    }

    async fn answer(&self, context: &ActionContext, which: &Which, decision: &Decision) -> Result<String, Failure> {
        let approve = decision.approves();
        let mut subscription = Subscription::new(self, context).await?;
        let result = answer_over(&mut subscription, context, which, approve).await;
        subscription.leave().await;
        result
    }

    async fn reply(&self, _context: &ActionContext, _reply: &Reply) -> Result<String, Failure> {
        Err(Failure::refusal(Step::Answer, TAKES_NO_ANSWERS))
    }

    async fn stop(&self, context: &ActionContext) -> Result<String, Failure> {
        let mut client = Client::open(self).await?;
        context.step(Step::Attach, "connected to Codex's daemon");
        let result = stop_over(&mut client, self, context).await;
        client.leave(&[]).await;
        result
    }
}

async fn answer_over(
    subscription: &mut Subscription<'_>,
    context: &ActionContext,
    which: &Which,
    approve: bool,
) -> Result<String, Failure> {
    let open: Vec<_> = subscription.open.iter().map(|asked| asked.request.clone()).collect();
    let other = open.first().map(|open| open.id.clone());
    let chosen = match (choose(context, open, which), which, other) {
        (Err(_), Which::These(ids), Some(other)) if !ids.is_empty() => Err(Failure::open_instead(&other)),
        (chosen, _, _) => chosen,
    }?;
    let done = begin_answer(context, &chosen, approve).await?;
    let mut answered = 0;
    for request in &chosen {
        let Some(asked) = subscription.open.iter().find(|asked| asked.request.id == request.id) else { continue };
        // Somebody else may have answered it while ours was asked for.
        subscription.client.wait_for(Instant::now(), |_| None::<()>).await?;
        if request::is_closed(&subscription.client.heard, &asked.id) {
            continue;
        }
        let decision = json!({"decision": if approve { "accept" } else { "decline" }});
        subscription.client.respond(&asked.id, &decision).await.map_err(Failure::unconfirmed)?;
        verify(&mut subscription.client, asked, approve).await?;
        context.step(Step::Verify, "no longer open");
        answered += 1;
    }
    match chosen.len() - answered {
        _ if answered == 0 => Err(Failure::no_longer_open()),
        0 => Ok(format!("{done} {}", counted(answered, "request"))),
        n => Ok(format!(
            "{done} {}; {} answered by somebody else first",
            counted(answered, "request"),
            counted(n, "request")
        )),
    }
}

/// Verifies that an answered request is closed, and by our answer.
async fn verify(client: &mut Client, asked: &Asked, approve: bool) -> Result<(), Failure> {
    let closed = |message: &Value| request::is_closed(std::slice::from_ref(message), &asked.id).then_some(());
    let until = Instant::now() + EFFECT_TIMEOUT;
    if client.wait_for(until, closed).await.map_err(Failure::unconfirmed)?.is_none() {
        let why = "the answer was sent, but the request is still open";
        return Err(Failure::because(Step::Verify, why, "answer it in the session's terminal").unconfirmed());
    }
    let told = client.wait_for(Instant::now() + TOLD_WITHIN, |message| request::outcome(message, &asked.item)).await;
    // Most commands run on for a while: then nothing is told, and nothing is wrong.
    match told {
        Ok(Some(declined)) if declined == approve => {
            let why = "somebody else answered it differently at the same moment";
            Err(Failure::because(Step::Verify, why, "look at the session in its terminal"))
        }
        _ => Ok(()),
    }
}

async fn stop_over(client: &mut Client, socket: &DaemonSocket, context: &ActionContext) -> Result<String, Failure> {
    context.may_send(Step::Abort).await?;
    let mut log_view = context.log_view.clone();
    let before = log_view.borrow_and_update().clone();
    let (Some(thread), Some(turn), true) = (socket.threads.first(), &before.turn_id, before.turn_open) else {
        let why = "its own turn is over, or its beginning is not known; sub-agents are stopped in its terminal";
        return Err(Failure::refusal(Step::Abort, why));
    };
    context.step(Step::Abort, "tells it to stop");
    let params = json!({"threadId": thread, "turnId": turn});
    client.call(Step::Abort, "turn/interrupt", &params).await.map_err(Failure::unconfirmed)?;
    let has_ended = |log_view: &LogView| {
        log_view.aborted != before.aborted || !log_view.turn_open || log_view.turn_id != before.turn_id
    };
    let ended = timeout(ANSWER_TIMEOUT, log_view.wait_for(|log_view| has_ended(log_view)));
    if !matches!(ended.await, Ok(Ok(_))) {
        let why = format!("the session was told to stop, and still works after {} s", ANSWER_TIMEOUT.as_secs());
        return Err(Failure::because(Step::Verify, &why, "stop it in its terminal").unconfirmed());
    }
    context.step(Step::Verify, "its log says that the turn has ended");
    Ok("stopped".to_owned())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
