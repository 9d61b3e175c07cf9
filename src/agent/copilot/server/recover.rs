//! What is done for a session over its server: requests answered, a turn stopped, a prompt sent again.
//!
//! Answering and stopping attach to nothing: see [`client`](super::client). Each function here reports its steps on the way,
//! in words that hold nothing of what the session says, and ends with what was achieved or with the step that failed.

mod answer;
mod failure;
mod site;
#[cfg(test)]
mod tests;

pub(super) use answer::answer_over;
pub(crate) use answer::choose;
pub use answer::{RequestAnswer, answer};
pub use failure::Failure;
pub use site::{Permit, Sight, Site};

use super::attached::Attached;
use super::client::{Activity, Link};
use crate::core::attempts::Mark;
use crate::core::order::Step;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// How long an effect may take that is to be seen on disk or at the server.
pub(crate) const SEEN_WITHIN: Duration = Duration::from_secs(5);
/// How long the log is waited for where the server does not say whether it did what it was sent. One that was frozen and goes on
/// takes a second, and on a busy machine more.
pub(super) const TOLD_WITHIN: Duration = if cfg!(test) { Duration::from_secs(1) } else { Duration::from_secs(3) };
/// How often a server is asked meanwhile. What is on disk is told to us.
const LOOK: Duration = Duration::from_millis(250);
/// How long a log may stand still after a prompt was sent, before the turn is aborted and the prompt sent once more.
pub(crate) const GROWN_WITHIN: Duration = Duration::from_secs(30);

/// Takes the steps.
pub type Steps<'a> = &'a (dyn Fn(Step, String) + Send + Sync);
/// Takes what is about to be answered, whole.
pub(crate) type Show<'a> = &'a (dyn Fn(String) + Send + Sync);

/// Finds the server that has the session loaded, and connects to it.
pub(super) async fn find(site: &Site, steps: Steps<'_>) -> Result<(Link, Activity), Failure> {
    let cwd = site.cwd.as_deref().unwrap_or(Path::new(""));
    let mut faults = Vec::new();
    for endpoint in &site.endpoints {
        let tried = async {
            let link = Link::open(endpoint, cwd).await?;
            let activity = link.reach(&site.id, site.owned).await?;
            Ok((link, activity))
        };
        match tried.await {
            Ok((link, activity)) => {
                steps(Step::Attach, format!("connected to {}", link.place()));
                return Ok((link, activity));
            }
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() {
        return Err(Failure::refusal(Step::Attach, "no known server could have this session"));
    }
    let why = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Err(Failure { step: Step::Attach, why, next: None, refused: false, sent: false, faults })
}

/// Aborts the turn that runs, without attaching, and sees to it that it ended.
pub async fn stop(site: &Site, steps: Steps<'_>) -> Result<String, Failure> {
    let (link, _) = find(site, steps).await?;
    abort(&link, site, steps).await
}

/// The same over a connection that is there.
pub(super) async fn abort(link: &Link, site: &Site, steps: Steps<'_>) -> Result<String, Failure> {
    let next = "reconnect the session, or end its process";
    site.may_send(Step::Abort).await?;
    let mut sight = site.sight.clone();
    let before = sight.borrow_and_update().clone();
    let has_ended = |sight: &Sight| sight.aborted != before.aborted || before.turn_open && !sight.turn_open;
    let failed = |step, fault| Failure { next: Some(next.to_owned()), ..Failure::of(step, fault) };
    steps(Step::Abort, "tells it to stop".to_owned());
    let told = match link.abort(&site.id).await {
        Err(fault) if !fault.leaves_open() => return Err(failed(Step::Abort, fault)),
        told => told,
    };
    let ended = async {
        told?;
        loop {
            let on_disk = has_ended(&sight.borrow_and_update());
            if on_disk || !link.activity(&site.id).await?.has_active_work {
                return Ok(());
            }
            // Wakes early when the disk tells something; where nobody looks any more, the server alone is asked.
            if let Ok(Err(_)) = timeout(LOOK, sight.changed()).await {
                sleep(LOOK).await;
            }
        }
    };
    match timeout(SEEN_WITHIN, ended).await {
        Ok(Ok(())) => steps(Step::Verify, "the turn has ended".to_owned()),
        Ok(Err(fault)) if site.is_told(has_ended).await => {
            steps(Step::Verify, format!("its log says that the turn has ended, though {fault}"));
        }
        Ok(Err(fault)) => return Err(failed(Step::Verify, fault).unconfirmed()),
        Err(_) => {
            let why = format!("the session was told to stop, and still works after {} s", SEEN_WITHIN.as_secs());
            return Err(Failure::because(Step::Verify, &why, next).unconfirmed());
        }
    }
    Ok("stopped".to_owned())
}

/// What a session is told that is to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// The user's own last prompt, once more: only where nothing ran since that might be done twice.
    Again(String),
    /// A short one of ours, after which it goes on by itself.
    GoOn(String),
}

impl Prompt {
    fn text(&self) -> &str {
        match self {
            Self::Again(text) | Self::GoOn(text) => text,
        }
    }
}

/// Sends a prompt into a session that we are attached to. Where the log does not grow within `span`, no tool is open and nothing
/// is known to be asked, the turn is aborted and the prompt sent once more, and that is all. The user's own prompt is refused
/// where a tool ran since it was given, or may have: that would be done twice. Any is, where another came meanwhile: `last` is
/// [`Sight::prompt`] as it was when this was decided.
pub async fn resend(
    attached: &Attached,
    prompt: &Prompt,
    last: Option<Mark>,
    site: &Site,
    span: Duration,
    steps: Steps<'_>,
) -> Result<String, Failure> {
    let mut sight = site.sight.clone();
    if sight.borrow().prompt != last {
        let why = "another prompt was sent meanwhile; this was meant for the turn before it, and nothing was done";
        return Err(Failure::refusal(Step::Resend, why));
    }
    if matches!(prompt, Prompt::Again(_)) && sight.borrow().ran > 0 {
        let why = "a tool has run since that prompt, or may have, and what it did would be done twice; write a prompt that goes \
                   on from there";
        return Err(Failure::refusal(Step::Resend, why));
    }
    for attempt in 1..=2 {
        site.may_send(Step::Resend).await?;
        let (before, prompt_before) = {
            let sight = sight.borrow_and_update();
            (sight.events, sight.prompt)
        };
        steps(Step::Resend, format!("sends it, attempt {attempt}"));
        match attached.send(prompt.text()).await {
            Ok(()) => {}
            Err(fault) if !fault.leaves_open() => return Err(Failure::of(Step::Resend, fault)),
            // It is not sent once more: that would be twice.
            Err(fault) if !site.is_told(|sight| sight.prompt != prompt_before).await => {
                return Err(Failure::of(Step::Resend, fault).unconfirmed());
            }
            Err(_) => {
                steps(Step::Verify, "its server did not say so, but its log has the prompt".to_owned());
                return Ok("sent".to_owned());
            }
        }
        let until = Instant::now() + span;
        let moved = |sight: &Sight| sight.events != before;
        let grown = timeout_at(until, sight.wait_for(moved)).await.is_ok_and(|seen| seen.is_ok());
        if grown {
            steps(Step::Verify, "the session works on it".to_owned());
            return Ok("sent".to_owned());
        }
        if sight.borrow().tools_open > 0 {
            steps(Step::Verify, "a tool is still open".to_owned());
            return Ok("sent, and waits for a tool that is still open".to_owned());
        }
        if attached.asks() {
            steps(Step::Verify, "it asks you something".to_owned());
            return Ok("sent, and waits for your answer to what it asks".to_owned());
        }
        if attempt == 1 {
            abort(&attached.link, site, steps).await?;
            if sight.borrow().prompt != prompt_before {
                steps(Step::Verify, "the prompt came into the log late".to_owned());
                return Ok("the prompt was sent again, and its turn stopped".to_owned());
            }
        }
    }
    let why = format!("sent twice, and nothing came into the log within {} s", span.as_secs());
    Err(Failure::because(Step::Resend, &why, "stop the session, or resume it in a terminal").unconfirmed())
}
