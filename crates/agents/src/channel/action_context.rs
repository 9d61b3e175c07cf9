//! The session that an order is for: where it can be reached, what its log shows, and whether the order is still valid.

use super::failure::Failure;
use pilotlight_core::attempts::Mark;
use pilotlight_core::form::Form;
use pilotlight_core::order::{OrderReport, ShownRequest, Step};
use pilotlight_core::stream_probe::ProbeResult;
use pilotlight_core::time::Time;
use pilotlight_core::turn::{Call, Request, request_verb};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

/// How long an effect may take to show on disk or at the server.
pub(crate) const EFFECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for the log to confirm a call that the server did not answer. A server that was frozen takes a
/// second after it continues, and longer on a busy machine.
pub(crate) const CONFIRM_TIMEOUT: Duration = if cfg!(test) { Duration::from_secs(1) } else { Duration::from_secs(3) };
/// The interval at which the server is polled for an effect. Changes on disk notify us.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Long enough for events that have already happened to be processed.
const SETTLE: Duration = Duration::from_millis(1);

/// Receives the reports on an order: its steps, and what is shown before it is answered.
#[derive(Clone)]
pub struct ReportSink(Arc<dyn Fn(OrderReport) + Send + Sync>);

impl ReportSink {
    /// Reports that are given to this.
    pub fn to(receiver: impl Fn(OrderReport) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receiver))
    }
}

impl fmt::Debug for ReportSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReportSink")
    }
}

/// The state of a session as its log shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogView {
    pub turn_open: bool,
    /// How many tools are open.
    pub tools_open: usize,
    /// How many tools have run since the last prompt, or may have: all but those that were denied before they ran.
    pub ran: u32,
    /// The last prompt in the log that was not Copilot's own.
    pub prompt: Option<Mark>,
    /// The number of events in the log, or any other value that changes when it grows.
    pub events: u64,
    /// The event that opened the last turn, as in [`Facts`](pilotlight_core::facts::Facts).
    pub turn_id: Option<Box<str>>,
    /// Whether tools were recently denied because nobody could be asked.
    pub denied: bool,
    /// The last answered requests, and whether they were allowed.
    pub answered: Vec<(Call, bool)>,
    /// The open requests.
    pub requests: Vec<LoggedRequest>,
    /// Whether the log has every request: that of some agents has none.
    pub shows_requests: bool,
    /// The commands that need access to the paths that open requests ask for.
    pub commands: Vec<(Call, Box<str>)>,
    /// When a turn was last aborted.
    pub aborted: Option<Time>,
    /// Whether its process says that it waits for its user.
    pub waits: bool,
    /// Whether the session has been silent for longer than the limit.
    pub silent: bool,
}

impl LogView {
    /// Whether the log has the request with this id, open or answered.
    pub(crate) fn has(&self, id: Call) -> bool {
        self.requests.iter().any(|logged| logged.id == id) || self.answered.iter().any(|(answered, _)| *answered == id)
    }
}

/// An open permission request, as the log has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Its id.
    pub id: Call,
    /// The kind of permission. `None` if the log does not show requests, and this one is a guess.
    pub kind: Option<Box<str>>,
    /// The one text that represents it, if there is one.
    pub asks: Option<Box<str>>,
    /// The paths that it asks for, if they are known.
    pub paths: Vec<Box<str>>,
    /// The beginning of the command that is to be run, as one line, if the request is a guess.
    pub command: Option<Box<str>>,
}

impl LoggedRequest {
    /// The same, of this session's facts.
    pub fn of(request: &Request) -> Self {
        let Request { id, kind, asks, paths, command, is_probable, .. } = request.clone();
        let command = command.filter(|_| is_probable).map(|command| command.trim_end_matches('…').into());
        Self { id, kind: (!is_probable).then_some(kind), asks, paths, command }
    }

    /// All that it says, in words.
    pub(crate) fn words(&self) -> String {
        let what = match (self.asks.as_deref().or(self.command.as_deref()), &*self.paths) {
            (Some(what), _) => what.to_owned(),
            (None, []) => "it does not say what".to_owned(),
            (None, paths) => paths.join("\n"),
        };
        let kind = self.kind.as_deref().unwrap_or("commands");
        format!("{}: {what}", request_verb(kind).unwrap_or(kind))
    }
}

/// A session, and where it can be reached.
#[derive(Clone, Debug)]
pub struct ActionContext {
    /// The session's full id.
    pub id: Box<str>,
    /// The folder it works in.
    pub cwd: Option<PathBuf>,
    /// Whether its servers are those of the process that provably holds it. Only then may a session be joined that its server
    /// does not report as loaded.
    pub owned: bool,
    /// What its log shows, kept up to date.
    pub log_view: watch::Receiver<LogView>,
    /// What its process's connections show, if its turn waits for its model.
    pub probe_result: Option<ProbeResult>,
    /// The process whose terminal shows the session's requests.
    pub drawn_by: Option<u32>,
    /// Checked right before anything is sent.
    pub permit: Permit,
    /// Receives what is done.
    pub reports: ReportSink,
}

/// How long to wait for a piece of an answer before a turn is aborted, or called stuck by a command. At one piece a second, 92 of
/// 92 came within this; where connections can be seen, they show slower ones.
pub const PIECE_WITHIN: Duration = Duration::from_millis(1500);
/// The same where connections cannot be seen.
pub const PIECE_WITHIN_UNSEEN: Duration = Duration::from_secs(6);
/// Why nothing is aborted.
pub const RECEIVES: &str = "it is receiving an answer: not stopped";

/// Asks the engine whether an order is still valid: its sender may have left, or the turn that it was for may be over.
#[derive(Clone, Debug)]
pub struct Permit(mpsc::UnboundedSender<PermitQuestion>);

/// A question whether an order is still valid, which is to be answered here.
pub type PermitQuestion = oneshot::Sender<Result<(), String>>;

impl Permit {
    /// A permit that asks over this channel.
    pub const fn from(ask: mpsc::UnboundedSender<PermitQuestion>) -> Self {
        Self(ask)
    }

    /// Asks whether the order is still valid.
    ///
    /// # Errors
    /// The reason why not, in words for the user.
    pub async fn ask(&self) -> Result<(), String> {
        // If this process was suspended, events from that time are processed first.
        sleep(SETTLE).await;
        let (answer, answered) = oneshot::channel();
        let ended = || "Pilotlight is ending; nothing was sent".to_owned();
        self.0.send(answer).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }
}

impl ActionContext {
    /// Whether its model's answer arrives. Call this right before a turn is aborted because it is silent. `hears` waits
    /// for the next piece, for at most the given time.
    pub(crate) async fn receives<F: Future<Output = bool>>(&self, hears: impl FnOnce(Duration) -> F) -> bool {
        match self.probe_result {
            Some(ProbeResult::Receiving { .. }) => true,
            Some(ProbeResult::Unknown(_)) => hears(PIECE_WITHIN_UNSEEN).await,
            _ => hears(PIECE_WITHIN).await,
        }
    }

    /// Reports a step, in words that contain nothing of the session's content.
    pub fn step(&self, step: Step, words: impl Into<String>) {
        (self.reports.0)(OrderReport::Step(step, words.into()));
    }

    pub(crate) fn show_request(&self, request: ShownRequest) {
        (self.reports.0)(OrderReport::Request(request));
    }

    pub(crate) fn show_question(&self, form: Form) {
        (self.reports.0)(OrderReport::Question(Box::new(form)));
    }

    /// Call this right before anything is sent.
    pub(crate) async fn may_send(&self, step: Step) -> Result<(), Failure> {
        self.permit.ask().await.map_err(|why| Failure::refusal(step, &why))
    }

    /// Waits until the log shows this, when the server has not confirmed it. Returns `false` on timeout.
    pub(crate) async fn log_shows(&self, predicate: impl Fn(&LogView) -> bool) -> bool {
        let mut log_view = self.log_view.clone();
        timeout(CONFIRM_TIMEOUT, log_view.wait_for(|log_view| predicate(log_view))).await.is_ok_and(|seen| seen.is_ok())
    }
}
