//! Answers permission requests by their ids.

use super::drawn::{LONG, drawn};
use crate::channel::action_context::{ActionContext, EFFECT_TIMEOUT, LogView, POLL_INTERVAL};
use crate::channel::answering::{begin_answer, choose};
use crate::channel::failure::Failure;
use crate::channel::fault::Fault;
use crate::channel::request::Request;
use crate::copilot::server::client::{Decision, ServerClient};
use pilotlight_core::order::{Step, Which};
use pilotlight_core::text::counted;
use pilotlight_core::turn::Call;
use tokio::time::{sleep, timeout};

/// The open requests of a session.
pub(in crate::copilot::server) async fn requests_over(
    link: &ServerClient,
    context: &ActionContext,
) -> Result<Vec<Request>, Failure> {
    let commands = context.log_view.borrow().commands.clone();
    let open = link.pending(&context.id).await.map_err(|fault| Failure::of(Step::Answer, fault))?;
    Ok(open.into_iter().map(|request| request.with_command(&commands)).collect())
}

/// Answers requests.
pub(in crate::copilot::server) async fn answer_over(
    link: &ServerClient,
    context: &ActionContext,
    which: &Which,
    approve: bool,
) -> Result<String, Failure> {
    if let Some(process) = context.drawn_by {
        let is_long = |request: &Request| request.too_large || request.text.len() > LONG;
        drawn(process, requests_over(link, context).await?.iter().any(is_long)).await?;
    }
    let chosen = choose(context, requests_over(link, context).await?, which)?;
    let done = begin_answer(context, &chosen, approve).await?;
    let (answered, stopped) = send_answers(link, &context.id, &chosen, approve).await;
    let (mut count, of) = (answered.len(), chosen.len());
    if let Some((request, fault)) = stopped {
        let so_far = if of == 1 { String::new() } else { format!("{done} {count} of {of}, then ") };
        confirm_in_log(context, request, &fault, approve, &so_far).await?;
        count += 1;
        if request != &*chosen[of - 1].id {
            let why = format!("{done} {count} of {of}, then {fault}");
            return Err(Failure { why, ..Failure::of(Step::Answer, fault) });
        }
        return Ok(summary(done, count, of));
    }
    if answered.is_empty() {
        return Err(Failure::no_longer_open());
    }
    verify_closed(link, context, &answered).await?;
    Ok(summary(done, count, of))
}

/// Sends the answers one after another. Returns the ids of the requests that were still open, and the request at which
/// a fault stopped it.
async fn send_answers<'a>(
    link: &ServerClient,
    id: &str,
    chosen: &'a [Request],
    approve: bool,
) -> (Vec<&'a str>, Option<(&'a str, Fault)>) {
    let decision = if approve { Decision::Approve } else { Decision::Deny };
    let mut answered = Vec::new();
    for request in chosen {
        match link.answer(id, &request.id, decision).await {
            Ok(true) => answered.push(&*request.id),
            Ok(false) => {}
            Err(fault) => return (answered, Some((&request.id, fault))),
        }
    }
    (answered, None)
}

/// Checks whether the answer to this request, of which the server told only a fault, has taken effect: its log would
/// have it. `so_far` says what was done before.
async fn confirm_in_log(
    context: &ActionContext,
    request: &str,
    fault: &Fault,
    approve: bool,
    so_far: &str,
) -> Result<(), Failure> {
    let failed = |why| Failure { why, ..Failure::of(Step::Answer, fault.clone()) };
    if !fault.may_have_succeeded() {
        return Err(failed(format!("{so_far}{fault}")));
    }
    let call = Call::of(request);
    let in_log = |log_view: &LogView| {
        log_view.answered.iter().rev().find(|(other, _)| *other == call).map(|(_, allowed)| *allowed)
    };
    if !context.log_shows(|log_view| in_log(log_view) == Some(approve)).await {
        let log = match in_log(&context.log_view.borrow()) {
            Some(_) => "its log has another answer",
            None => "its log has no answer yet",
        };
        return Err(failed(format!("{so_far}{fault}; {log}")).unconfirmed());
    }
    context.step(Step::Verify, "its server did not reply, but its log has the answer");
    Ok(())
}

/// Verifies that the answered requests are no longer open, by the server's word or, if that fails, by the log.
async fn verify_closed(link: &ServerClient, context: &ActionContext, answered: &[&str]) -> Result<(), Failure> {
    let closed = async {
        loop {
            let open = link.pending(&context.id).await?;
            if !open.iter().any(|request| answered.contains(&&*request.id)) {
                return Ok(());
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    match timeout(EFFECT_TIMEOUT, closed).await {
        Ok(Ok(())) => context.step(Step::Verify, "no longer open"),
        // A session that ended after its last answer has no open requests.
        Ok(Err(Fault::NotLoaded(_))) => context.step(Step::Verify, "the session has ended"),
        // The server accepted the answer. The log can confirm the rest.
        Ok(Err(fault)) => {
            let calls: Vec<_> = answered.iter().map(|id| Call::of(id)).collect();
            let has = |log_view: &LogView, call| log_view.answered.iter().any(|(other, _)| *other == call);
            if !context.log_shows(|log_view| calls.iter().all(|call| has(log_view, *call))).await {
                return Err(Failure::of(Step::Verify, fault).unconfirmed());
            }
            context.step(Step::Verify, "the session's log confirms it");
        }
        Err(_) => {
            let why = "the answer was accepted, but the request is still open";
            return Err(Failure::because(Step::Verify, why, "answer it in the session's own client").unconfirmed());
        }
    }
    Ok(())
}

/// The outcome: how many of the chosen requests were answered.
fn summary(done: &str, answered: usize, chosen: usize) -> String {
    let summary = format!("{done} {}", counted(answered, "request"));
    match chosen - answered {
        0 => summary,
        n => format!("{summary}; {} answered by somebody else first", counted(n, "request")),
    }
}
