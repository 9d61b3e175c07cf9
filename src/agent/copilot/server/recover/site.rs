//! A session as an order finds it: where it may be reached, what is seen of it on disk, and whether the order still stands.

use super::{Failure, TOLD_WITHIN};
use crate::agent::copilot::server::servers::Endpoint;
use crate::core::attempts::Mark;
use crate::core::order::Step;
use crate::core::time::Time;
use crate::core::turn::Call;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

/// Long enough to hear of everything that has happened already.
const MOMENT: Duration = Duration::from_millis(1);

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
    /// that it does not itself say to have. See [`Link::reach`](crate::agent::copilot::server::client::Link::reach).
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
    pub(crate) const fn from(ask: mpsc::UnboundedSender<oneshot::Sender<Result<(), String>>>) -> Self {
        Self(Some(ask))
    }

    /// Whether it is still to be done.
    ///
    /// # Errors
    /// Why not, in words for the user.
    pub(crate) async fn ask(&self) -> Result<(), String> {
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
    pub(super) async fn is_told(&self, what: impl Fn(&Sight) -> bool) -> bool {
        let mut sight = self.sight.clone();
        timeout(TOLD_WITHIN, sight.wait_for(|sight| what(sight))).await.is_ok_and(|seen| seen.is_ok())
    }
}
