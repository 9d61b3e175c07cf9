//! What is the same about answering permission requests over every channel: which of the open ones are meant, that each is
//! shown whole before it is answered, and that nothing is approved that the log has in other words.

use super::action_context::{ActionContext, LogView};
use super::failure::Failure;
use super::request::Request;
use pilotlight_core::order::{LOG_DIFFERS, ShownRequest, Step, Which};
use pilotlight_core::text::counted;
use pilotlight_core::turn::Call;
use std::time::Duration;
use tokio::time::timeout;

/// How much later than its server a log may have a request.
const LOGGED_WITHIN: Duration = Duration::from_secs(2);
/// Why a request is not answered that is not what was shown, though its log and its server agree.
const ASKS_MORE: &str = "the request asks for something else than was shown: read all of it with `pilotlight approve ID`, and answer it there";

/// Waits a moment until the log has these requests: what it does not have is told.
async fn wait_logged(context: &ActionContext, requests: &[Request]) {
    let mut log_view = context.log_view.clone();
    let has = |log_view: &LogView| requests.iter().all(|request| log_view.has(Call::of(&request.id)));
    let _ = timeout(LOGGED_WITHIN, log_view.wait_for(|log_view| !log_view.shows_requests || has(log_view))).await;
}

/// A request as it is shown: in the words of its server or bridge, and in those of the log where they differ. A log that
/// does not have it yet is waited for.
pub(crate) async fn shown(context: &ActionContext, request: &Request) -> ShownRequest {
    wait_logged(context, std::slice::from_ref(request)).await;
    shown_now(context, request)
}

/// The same, by what the log has now.
fn shown_now(context: &ActionContext, request: &Request) -> ShownRequest {
    ShownRequest { in_log: in_log(&context.log_view.borrow(), request), ..request.shown() }
}

/// What the log says of a request, if that is something else.
fn in_log(log_view: &LogView, request: &Request) -> Option<String> {
    let call = Call::of(&request.id);
    match log_view.requests.iter().find(|logged| logged.id == call) {
        Some(logged) => request.differs_from(logged).then(|| logged.words()),
        None if log_view.has(call) => Some("that it was answered already".to_owned()),
        None => log_view.shows_requests.then(|| "nothing of such a request".to_owned()),
    }
}

/// Shows each request whole, and asks for the permit. Returns the past participle for the outcome: approved or denied.
pub(crate) async fn begin_answer(
    context: &ActionContext,
    chosen: &[Request],
    approve: bool,
) -> Result<&'static str, Failure> {
    let mut differs = false;
    wait_logged(context, chosen).await;
    for request in chosen {
        let shown = shown_now(context, request);
        differs |= shown.in_log.is_some();
        context.show_request(shown);
    }
    if approve && differs {
        return Err(Failure::refusal(Step::Answer, LOG_DIFFERS));
    }
    if approve && chosen.iter().any(|request| request.too_large) {
        let why = "it is too large to be read here: read it where it asks, and answer it there, or deny it here";
        return Err(Failure::refusal(Step::Answer, why));
    }
    context.may_send(Step::Answer).await?;
    let (does, done) = if approve { ("approves", "approved") } else { ("denies", "denied") };
    context.step(Step::Answer, format!("{does} {}", counted(chosen.len(), "request")));
    Ok(done)
}

/// Selects the requests to answer from the open ones. A request that differs from what the user was shown is shown
/// again, and the order refused.
pub(crate) fn choose(context: &ActionContext, open: Vec<Request>, which: &Which) -> Result<Vec<Request>, Failure> {
    match which {
        Which::These(ids) if ids.is_empty() => {
            Err(Failure::refusal(Step::Answer, "no permission request was open when this was asked for"))
        }
        Which::These(ids) => {
            let chosen: Vec<_> = open.into_iter().filter(|request| ids.iter().any(|id| *request.id == **id)).collect();
            if chosen.is_empty() { Err(Failure::no_longer_open()) } else { Ok(chosen) }
        }
        Which::Shown { id, text } => {
            let request = open.into_iter().find(|request| *request.id == **id).ok_or_else(Failure::no_longer_open)?;
            if request.decisive().as_deref() != Some(text) && request.shown().text != *text {
                // The user sees what is open now.
                let shown = shown_now(context, &request);
                let why = if shown.in_log.is_some() { LOG_DIFFERS } else { ASKS_MORE };
                context.show_request(shown);
                return Err(Failure::refusal(Step::Answer, why));
            }
            Ok(vec![request])
        }
    }
}
