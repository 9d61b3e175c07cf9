//! Answers permission requests by their ids.

use super::drawn::{LONG, drawn};
use crate::channel::failure::Failure;
use crate::channel::fault::Fault;
use crate::channel::site::{EFFECT_TIMEOUT, LogView, POLL_INTERVAL, Site};
use crate::copilot::server::client::{Decision, Link};
use crate::copilot::server::recover::find::find;
use crate::copilot::server::request::Request;
use pilotlight_core::order::{LOG_DIFFERS, ShownRequest, Step, Which};
use pilotlight_core::text::counted;
use pilotlight_core::turn::Call;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How much later than its server a log may have a request.
const LOGGED_WITHIN: Duration = Duration::from_secs(2);
/// Why a request is not answered that is not what was shown, though its log and its server agree.
const ASKS_MORE: &str = "the request asks for more, or for something else, than was shown: look at all of it in a terminal (`pilotlight \
                         approve ID`), and answer it there";

/// The open requests of a session, without attaching.
pub async fn requests(site: &Site) -> Result<Vec<Request>, Failure> {
    let (link, _) = find(site).await?;
    requests_over(&link, site).await
}

/// Like [`requests`], over an existing connection.
pub(in crate::copilot::server) async fn requests_over(link: &Link, site: &Site) -> Result<Vec<Request>, Failure> {
    let commands = site.log_view.borrow().commands.clone();
    let open = link.pending(&site.id).await.map_err(|fault| Failure::of(Step::TakeOver, fault))?;
    Ok(open.into_iter().map(|request| request.with_command(&commands)).collect())
}

/// Answers requests without attaching.
pub async fn answer(site: &Site, which: &Which, approve: bool) -> Result<String, Failure> {
    let (link, _) = find(site).await?;
    answer_over(&link, site, which, approve).await
}

/// Like [`answer`], over an existing connection.
pub(in crate::copilot::server) async fn answer_over(
    link: &Link,
    site: &Site,
    which: &Which,
    approve: bool,
) -> Result<String, Failure> {
    if let Some(process) = site.drawn_by {
        let is_long = |request: &Request| request.too_large || request.text.len() > LONG;
        drawn(process, requests_over(link, site).await?.iter().any(is_long)).await?;
    }
    let chosen = choose(site, requests_over(link, site).await?, which)?;
    let done = begin_answer(site, &chosen, approve).await?;
    let (answered, stopped) = send_answers(link, &site.id, &chosen, approve).await;
    let (mut count, of) = (answered.len(), chosen.len());
    if let Some((request, fault)) = stopped {
        let so_far = if of == 1 { String::new() } else { format!("{done} {count} of {of}, then ") };
        confirm_in_log(site, request, &fault, approve, &so_far).await?;
        count += 1;
        if request != &*chosen[of - 1].id {
            let why = format!("{done} {count} of {of}, then {fault}");
            return Err(Failure { why, ..Failure::of(Step::TakeOver, fault) });
        }
        return Ok(summary(done, count, of));
    }
    if answered.is_empty() {
        return Err(Failure::no_longer_open());
    }
    verify_closed(link, site, &answered).await?;
    Ok(summary(done, count, of))
}

/// Sends the answers one after another. Returns the ids of the requests that were still open, and the request at which
/// a fault stopped it.
async fn send_answers<'a>(
    link: &Link,
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
async fn confirm_in_log(site: &Site, request: &str, fault: &Fault, approve: bool, so_far: &str) -> Result<(), Failure> {
    let failed = |why| Failure { why, ..Failure::of(Step::TakeOver, fault.clone()) };
    if !fault.may_have_succeeded() {
        return Err(failed(format!("{so_far}{fault}")));
    }
    let call = Call::of(request);
    let in_log = |log_view: &LogView| {
        log_view.answered.iter().rev().find(|(other, _)| *other == call).map(|(_, allowed)| *allowed)
    };
    if !site.log_shows(|log_view| in_log(log_view) == Some(approve)).await {
        let log = match in_log(&site.log_view.borrow()) {
            Some(_) => "its log has another answer",
            None => "its log has no answer yet",
        };
        return Err(failed(format!("{so_far}{fault}; {log}")).unconfirmed());
    }
    site.step(Step::Verify, "its server did not reply, but its log has the answer");
    Ok(())
}

/// Verifies that the answered requests are no longer open, by the server's word or, if that fails, by the log.
async fn verify_closed(link: &Link, site: &Site, answered: &[&str]) -> Result<(), Failure> {
    let closed = async {
        loop {
            let open = link.pending(&site.id).await?;
            if !open.iter().any(|request| answered.contains(&&*request.id)) {
                return Ok(());
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    match timeout(EFFECT_TIMEOUT, closed).await {
        Ok(Ok(())) => site.step(Step::Verify, "no longer open"),
        // A session that ended after its last answer has no open requests.
        Ok(Err(Fault::NotLoaded(_))) => site.step(Step::Verify, "the session has ended"),
        // The server accepted the answer. The log can confirm the rest.
        Ok(Err(fault)) => {
            let calls: Vec<_> = answered.iter().map(|id| Call::of(id)).collect();
            let has = |log_view: &LogView, call| log_view.answered.iter().any(|(other, _)| *other == call);
            if !site.log_shows(|log_view| calls.iter().all(|call| has(log_view, *call))).await {
                return Err(Failure::of(Step::Verify, fault).unconfirmed());
            }
            site.step(Step::Verify, "its log says so");
        }
        Err(_) => {
            let why = "the answer was accepted, but the request is still open";
            return Err(Failure::because(Step::Verify, why, "answer it in the session's own client").unconfirmed());
        }
    }
    Ok(())
}

/// Waits a moment until the log has these requests: what it does not have is told.
async fn wait_logged(site: &Site, requests: &[Request]) {
    let mut log_view = site.log_view.clone();
    let has = |log_view: &LogView| requests.iter().all(|request| log_view.has(Call::of(&request.id)));
    let _ = timeout(LOGGED_WITHIN, log_view.wait_for(|log_view| !log_view.shows_requests || has(log_view))).await;
}

/// A request as it is shown: in the words of its server or bridge, and in those of the log where they differ. A log that
/// does not have it yet is waited for.
pub async fn shown(site: &Site, request: &Request) -> ShownRequest {
    wait_logged(site, std::slice::from_ref(request)).await;
    shown_now(site, request)
}

/// The same, by what the log has now.
fn shown_now(site: &Site, request: &Request) -> ShownRequest {
    ShownRequest { in_log: in_log(&site.log_view.borrow(), request), ..request.shown() }
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
pub async fn begin_answer(site: &Site, chosen: &[Request], approve: bool) -> Result<&'static str, Failure> {
    let mut differs = false;
    wait_logged(site, chosen).await;
    for request in chosen {
        let shown = shown_now(site, request);
        differs |= shown.in_log.is_some();
        site.show_request(shown);
    }
    if approve && differs {
        return Err(Failure::refusal(Step::TakeOver, LOG_DIFFERS));
    }
    if approve && chosen.iter().any(|request| request.too_large) {
        let why = "it is too large to be read here: read it where it asks, and answer it there, or deny it here";
        return Err(Failure::refusal(Step::TakeOver, why));
    }
    site.may_send(Step::TakeOver).await?;
    let (does, done) = if approve { ("approves", "approved") } else { ("denies", "denied") };
    site.step(Step::TakeOver, format!("{does} {}", counted(chosen.len(), "request")));
    Ok(done)
}

/// The outcome: how many of the chosen requests were answered.
fn summary(done: &str, answered: usize, chosen: usize) -> String {
    let summary = format!("{done} {}", counted(answered, "request"));
    match chosen - answered {
        0 => summary,
        n => format!("{summary}; {} answered by somebody else first", counted(n, "request")),
    }
}

/// Selects the requests to answer from the open ones. A request that differs from what the user was shown is shown
/// again, and the order refused.
pub fn choose(site: &Site, open: Vec<Request>, which: &Which) -> Result<Vec<Request>, Failure> {
    match which {
        Which::These(ids) if ids.is_empty() => {
            Err(Failure::refusal(Step::TakeOver, "no permission request was open when this was asked for"))
        }
        Which::These(ids) => {
            let chosen: Vec<_> = open.into_iter().filter(|request| ids.iter().any(|id| *request.id == **id)).collect();
            if chosen.is_empty() { Err(Failure::no_longer_open()) } else { Ok(chosen) }
        }
        Which::Shown { id, text } => {
            let request = open.into_iter().find(|request| *request.id == **id).ok_or_else(Failure::no_longer_open)?;
            if request.decisive().as_deref() != Some(text) && request.shown().text != *text {
                // The user sees what is open now.
                let shown = shown_now(site, &request);
                let why = if shown.in_log.is_some() { LOG_DIFFERS } else { ASKS_MORE };
                site.show_request(shown);
                return Err(Failure::refusal(Step::TakeOver, why));
            }
            Ok(vec![request])
        }
    }
}
