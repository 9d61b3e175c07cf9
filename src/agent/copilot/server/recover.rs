//! What is done for a session over its server: requests answered, a turn stopped, a prompt sent again.
//!
//! Answering and stopping attach to nothing: see [`client`](super::client). Each function here reports its steps on the way,
//! in words that hold nothing of what the session says, and ends with what was achieved or with the step that failed.

use super::attached::Attached;
use super::client::{Activity, Decision, Link};
use super::fault::Fault;
use super::request::Request;
use super::servers::Endpoint;
use crate::core::attempts::Mark;
use crate::core::order::{Step, Which};
use crate::core::text::counted;
use crate::core::time::Time;
use crate::core::turn::Call;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// How long an effect may take that is to be seen on disk or at the server.
pub(crate) const SEEN_WITHIN: Duration = Duration::from_secs(5);
/// How long the log is waited for where the server does not say whether it did what it was sent. One that was frozen and goes on
/// takes a second, and on a busy machine more.
pub(super) const TOLD_WITHIN: Duration = if cfg!(test) { Duration::from_secs(1) } else { Duration::from_secs(3) };
/// Long enough to hear of everything that has happened already.
const MOMENT: Duration = Duration::from_millis(1);
/// How often a server is asked meanwhile. What is on disk is told to us.
const LOOK: Duration = Duration::from_millis(250);
/// How long a log may stand still after a prompt was sent, before the turn is aborted and the prompt sent once more.
pub const GROWN_WITHIN: Duration = Duration::from_secs(30);

/// Takes the steps.
pub type Steps<'a> = &'a (dyn Fn(Step, String) + Send + Sync);
/// Takes what is about to be answered, whole.
pub type Show<'a> = &'a (dyn Fn(String) + Send + Sync);

/// What is seen of a session on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// A turn is open.
    pub turn_open: bool,
    /// How many tools are open.
    pub tools_open: usize,
    /// How many tools ran since the last prompt, or may have: all but those that were denied before they ran.
    pub ran: u32,
    /// The last prompt in the log that was not Copilot's own.
    pub prompt: Option<Mark>,
    /// How many events the log has; or anything else that changes when it grows.
    pub events: u64,
    /// The event that opened the last turn, as in [`Facts`](crate::core::session::Facts).
    pub root: Option<Box<str>>,
    /// Tools were denied lately because nobody could be asked.
    pub denied: bool,
    /// The requests that were answered last, and whether they were allowed.
    pub answered: Vec<(Call, bool)>,
    /// The requests that are open, and what they ask for where one text says it all.
    pub requests: Vec<(Call, Option<Box<str>>)>,
    /// When the last turn was aborted that was.
    pub aborted: Option<Time>,
    /// The session was silent for longer than it may.
    pub silent: bool,
    /// The log of a process that is gone has tools that started and never ended.
    pub unmatched_tools: bool,
}

/// A session, and where it may be reached.
#[derive(Clone, Debug)]
pub struct Site {
    /// The session's whole id.
    pub id: Box<str>,
    /// The folder it works in.
    pub cwd: Option<PathBuf>,
    /// Where to look for it, in this order.
    pub endpoints: Vec<Endpoint>,
    /// Whether these endpoints are of the process that provably holds the session: only then a server is asked to join a session
    /// that it does not itself say to have. See [`Link::reach`].
    pub owned: bool,
    /// What is seen of it on disk, kept up to date.
    pub sight: watch::Receiver<Sight>,
    /// Asked right before anything is sent.
    pub permit: Permit,
}

/// Whether what was asked for is still to be done: whoever asked may have left, and the turn that it was for may be over.
#[derive(Clone, Debug, Default)]
pub struct Permit(Option<mpsc::UnboundedSender<oneshot::Sender<Result<(), String>>>>);

impl Permit {
    /// Asks over this channel.
    pub const fn from(ask: mpsc::UnboundedSender<oneshot::Sender<Result<(), String>>>) -> Self {
        Self(Some(ask))
    }

    /// Whether it is still to be done.
    ///
    /// # Errors
    /// Why not, in words for the user.
    pub async fn ask(&self) -> Result<(), String> {
        let Some(ask) = &self.0 else { return Ok(()) };
        // Where we were held up, what happened meanwhile is heard of first.
        sleep(MOMENT).await;
        let (answer, answered) = oneshot::channel();
        let ended = || "Pilotlight is ending; nothing was sent".to_owned();
        ask.send(answer).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }
}

impl Site {
    /// To be called right before something is sent.
    pub(crate) async fn may_send(&self, step: Step) -> Result<(), Failure> {
        self.permit.ask().await.map_err(|why| Failure::refusal(step, &why))
    }

    /// Whether the log comes to tell this, though the server does not.
    async fn is_told(&self, what: impl Fn(&Sight) -> bool) -> bool {
        let mut sight = self.sight.clone();
        timeout(TOLD_WITHIN, sight.wait_for(|sight| what(sight))).await.is_ok_and(|seen| seen.is_ok())
    }
}

/// Why something was not achieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step that failed.
    pub step: Step,
    /// Why.
    pub why: String,
    /// What can be done instead.
    pub next: Option<String>,
    /// Nothing was done, because it would not be what was asked for.
    pub refused: bool,
    /// Something was sent, and may have happened.
    pub sent: bool,
    /// What went wrong with which server.
    pub faults: Vec<Fault>,
}

impl Failure {
    pub(super) fn of(step: Step, fault: Fault) -> Self {
        Self { step, why: fault.to_string(), next: None, refused: false, sent: false, faults: vec![fault] }
    }

    pub(crate) fn because(step: Step, why: &str, next: &str) -> Self {
        Self { step, why: why.to_owned(), next: Some(next.to_owned()), refused: false, sent: false, faults: Vec::new() }
    }

    pub(crate) fn refusal(step: Step, why: &str) -> Self {
        Self { step, why: why.to_owned(), next: None, refused: true, sent: false, faults: Vec::new() }
    }

    /// What was sent is not confirmed.
    pub(crate) fn unconfirmed(self) -> Self {
        Self { sent: true, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sent {
            f.write_str("may have happened: ")?;
        } else if !self.refused {
            write!(f, "the step \"{}\" failed: ", self.step.tag())?;
        }
        f.write_str(&self.why)?;
        match &self.next {
            Some(next) => write!(f, "; {next}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

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

/// Answers open permission requests, without attaching. Each is shown whole before it is answered by its id.
pub async fn answer(
    site: &Site,
    which: &Which,
    approve: bool,
    show: Show<'_>,
    steps: Steps<'_>,
) -> Result<String, Failure> {
    let (link, _) = find(site, steps).await?;
    answer_over(&link, site, which, approve, show, steps).await
}

/// The same over a connection that is there.
pub(super) async fn answer_over(
    link: &Link,
    site: &Site,
    which: &Which,
    approve: bool,
    show: Show<'_>,
    steps: Steps<'_>,
) -> Result<String, Failure> {
    let (id, failed) = (&site.id, |fault| Failure::of(Step::TakeOver, fault));
    let chosen = choose(link.pending(id).await.map_err(failed)?, which, show)?;
    let done = may_answer(site, &chosen, approve, show, steps).await?;
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

/// Shows each request whole, and asks whether they are still to be answered. The word for what is then done.
pub(crate) async fn may_answer(
    site: &Site,
    chosen: &[Request],
    approve: bool,
    show: Show<'_>,
    steps: Steps<'_>,
) -> Result<&'static str, Failure> {
    chosen.iter().for_each(|request| show(request.shown()));
    site.may_send(Step::TakeOver).await?;
    let (does, done) = if approve { ("approves", "approved") } else { ("denies", "denied") };
    steps(Step::TakeOver, format!("{does} {}", counted(chosen.len(), "request")));
    Ok(done)
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

#[cfg(test)]
mod tests;
