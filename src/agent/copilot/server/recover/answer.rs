//! Permission requests, answered by their ids.

use super::{Failure, LOOK, SEEN_WITHIN, Show, Sight, Site, Steps, find};
use crate::agent::copilot::server::client::{Decision, Link};
use crate::agent::copilot::server::fault::Fault;
use crate::agent::copilot::server::request::Request;
use crate::core::order::{Step, Which};
use crate::core::text::counted;
use crate::core::turn::Call;
use tokio::time::{sleep, timeout};

/// How open permission requests are to be answered. Each is shown whole before it is answered by its id.
#[derive(Clone, Copy)]
pub struct RequestAnswer<'a> {
    /// Of which session.
    pub site: &'a Site,
    /// Which of them.
    pub which: &'a Which,
    /// Allowed once, or refused.
    pub approve: bool,
    /// Is shown each.
    pub show: Show<'a>,
    /// Takes the steps.
    pub steps: Steps<'a>,
}

/// Answers them without attaching.
pub async fn answer(answer: RequestAnswer<'_>) -> Result<String, Failure> {
    let (link, _) = find(answer.site, answer.steps).await?;
    answer_over(&link, answer).await
}

/// The same over a connection that is there.
pub(in crate::agent::copilot::server) async fn answer_over(
    link: &Link,
    answer: RequestAnswer<'_>,
) -> Result<String, Failure> {
    let RequestAnswer { site, which, approve, show, steps } = answer;
    let (id, failed) = (&site.id, |fault| Failure::of(Step::TakeOver, fault));
    let chosen = choose(link.pending(id).await.map_err(failed)?, which, show)?;
    let done = answer.begin(&chosen).await?;
    let decision = if approve { Decision::Approve } else { Decision::Deny };
    let (mut answered, mut fault) = (Vec::new(), None);
    for request in &chosen {
        match link.answer(id, &request.id, decision).await {
            Ok(true) => answered.push(&request.id),
            Ok(false) => {}
            Err(error) => {
                fault = Some((&request.id, error));
                break;
            }
        }
    }
    if let Some((request, fault)) = fault {
        let so_far = format!("{done} {} of {}, then ", answered.len(), chosen.len());
        let so_far = if chosen.len() == 1 { "" } else { &so_far };
        if !fault.leaves_open() {
            return Err(Failure { why: format!("{so_far}{fault}"), ..failed(fault) });
        }
        let call = Call::of(request);
        let in_log = |sight: &Sight| sight.answered.iter().rev().find(|(other, _)| *other == call).map(|it| it.1);
        if !site.is_told(|sight| in_log(sight) == Some(approve)).await {
            let log = match in_log(&site.sight.borrow()) {
                Some(_) => "its log has another answer",
                None => "its log has no answer yet",
            };
            return Err(Failure { why: format!("{so_far}{fault}; {log}"), ..failed(fault) }.unconfirmed());
        }
        steps(Step::Verify, "its server did not say so, but its log does".to_owned());
        if request == &chosen[chosen.len() - 1].id {
            answered.push(request);
            return Ok(told(done, answered.len(), chosen.len()));
        }
        return Err(Failure {
            why: format!("{done} {} of {}, then {fault}", answered.len() + 1, chosen.len()),
            ..failed(fault)
        });
    }
    if answered.is_empty() {
        return Err(gone());
    }
    let closed = async {
        loop {
            let open = link.pending(id).await?;
            if !open.iter().any(|request| answered.contains(&&request.id)) {
                return Ok(());
            }
            sleep(LOOK).await;
        }
    };
    match timeout(SEEN_WITHIN, closed).await {
        Ok(Ok(())) => steps(Step::Verify, "no longer open".to_owned()),
        // A session that ends with its last answer has nothing open any more.
        Ok(Err(Fault::NotLoaded(_))) => steps(Step::Verify, "the session has ended".to_owned()),
        // The server took the answer: what is left to know stands in the log.
        Ok(Err(fault)) => {
            let calls: Vec<_> = answered.iter().map(|id| Call::of(id)).collect();
            let has = |sight: &Sight, call| sight.answered.iter().any(|(other, _)| *other == call);
            if !site.is_told(|sight| calls.iter().all(|call| has(sight, *call))).await {
                return Err(Failure::of(Step::Verify, fault).unconfirmed());
            }
            steps(Step::Verify, "its log says so".to_owned());
        }
        Err(_) => {
            let why = "the answer was taken, but the request is still open";
            return Err(Failure::because(Step::Verify, why, "answer it in the session's own client").unconfirmed());
        }
    }
    Ok(told(done, answered.len(), chosen.len()))
}

impl RequestAnswer<'_> {
    /// Shows each request whole, and asks whether they are still to be answered. The word for what is then done.
    pub(crate) async fn begin(&self, chosen: &[Request]) -> Result<&'static str, Failure> {
        chosen.iter().for_each(|request| (self.show)(request.shown()));
        self.site.may_send(Step::TakeOver).await?;
        let (does, done) = if self.approve { ("approves", "approved") } else { ("denies", "denied") };
        (self.steps)(Step::TakeOver, format!("{does} {}", counted(chosen.len(), "request")));
        Ok(done)
    }
}

/// How many requests were answered of those that were meant.
fn told(done: &str, answered: usize, meant: usize) -> String {
    let told = format!("{done} {}", counted(answered, "request"));
    match meant - answered {
        0 => told,
        n => format!("{told}; {} meanwhile answered by somebody else", counted(n, "request")),
    }
}

fn gone() -> Failure {
    Failure::refusal(Step::TakeOver, "the request is no longer open: somebody else answered it, or its turn has ended")
}

/// Those of the open requests that are meant. One that is not what the user was shown is shown, and refused.
pub(crate) fn choose(open: Vec<Request>, which: &Which, show: Show<'_>) -> Result<Vec<Request>, Failure> {
    match which {
        Which::These(ids) if ids.is_empty() => {
            Err(Failure::refusal(Step::TakeOver, "no permission request was open when this was asked for"))
        }
        Which::These(ids) => {
            let meant: Vec<_> = open.into_iter().filter(|request| ids.iter().any(|id| *request.id == **id)).collect();
            if meant.is_empty() { Err(gone()) } else { Ok(meant) }
        }
        Which::Shown { id, text } => {
            let request = open.into_iter().find(|request| *request.id == **id).ok_or_else(gone)?;
            if request.decisive() != Some(text) && request.shown() != *text {
                // So that whoever asked sees what there is instead.
                show(request.shown());
                let why = "the request asks for more, or for something else, than was shown; look at it in Details and answer it there";
                return Err(Failure::refusal(Step::TakeOver, why));
            }
            Ok(vec![request])
        }
    }
}
