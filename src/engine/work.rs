//! One order, being carried out, as a task beside the loop: nothing here waits where the loop would.

mod process;

use super::acting::{Connection, Happening, Over, Sequel, Task};
use crate::agent::copilot::bridge::carry::Way;
use crate::agent::copilot::owner::Lock;
use crate::agent::copilot::program::{SAID_LATE, find_program};
use crate::agent::copilot::prompt::last_prompt;
use crate::agent::copilot::server::attached::{self, Policy};
use crate::agent::copilot::server::fault::{Fault, Place};
use crate::agent::copilot::server::hosted;
use crate::agent::copilot::server::recover::{self, Failure, GROWN_WITHIN, Permit, Prompt, RequestAnswer, Site};
use crate::agent::copilot::server::replying::QuestionAnswer;
use crate::config::{Actions, Permissions};
use crate::core::fleet::Kind;
use crate::core::form::Form;
use crate::core::order::{Ask, Outcome, Reply, Step, Which};
use crate::core::owner::Owner;
use crate::core::time::Time;
use crate::core::verdict::Status;
use crate::system::paths::{expand, user_home};
use crate::system::process::Force;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// One order, being carried out.
pub(super) struct Work {
    pub(super) tell: mpsc::UnboundedSender<Happening>,
    pub(super) site: Site,
    pub(super) ask: Ask,
    pub(super) status: Status,
    pub(super) task: Task,
    pub(super) held: Option<Arc<Connection>>,
    /// The bridge to its terminal.
    pub(super) way: Option<Way>,
    pub(super) home: PathBuf,
    pub(super) log: PathBuf,
    pub(super) kind: Kind,
    pub(super) owner: Owner,
    pub(super) lock: Option<Lock>,
    /// The session's folder.
    pub(super) folder: PathBuf,
    pub(super) names: Vec<String>,
    pub(super) actions: Actions,
    /// The wall clock when it was begun, and the clock that measures how long ago that was.
    pub(super) now: Time,
    pub(super) begun: Instant,
    /// That it goes on was asked before, and waited for the end of its turn.
    pub(super) waited: bool,
}

/// What came of it, before it is worded as an [`Outcome`].
type Done = Result<(String, Option<Arc<Connection>>, Sequel), Undone>;

/// Why it was not done.
struct Undone {
    outcome: Outcome,
    faults: Vec<Fault>,
    /// What was reached before is kept.
    connection: Option<Arc<Connection>>,
}

impl Undone {
    fn failed(why: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed(why.into()), faults: Vec::new(), connection: None }
    }

    fn refused(why: impl Into<String>) -> Self {
        Self { outcome: Outcome::Refused(why.into()), faults: Vec::new(), connection: None }
    }
}

impl From<Failure> for Undone {
    fn from(failure: Failure) -> Self {
        let words = failure.to_string();
        let refused = failure.refused || failure.faults.iter().any(refuses);
        let outcome = match failure.sent {
            true => Outcome::Unconfirmed(words),
            false if refused => Outcome::Refused(words),
            false => Outcome::Failed(words),
        };
        Self { outcome, faults: failure.faults, connection: None }
    }
}

/// Whether a server will not have us as it and we are.
const fn refuses(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::WrongToken(_)
            | Fault::TokenNeeded(_)
            | Fault::TokenUnexpected(_)
            | Fault::NotCopilot(_)
            | Fault::Protocol(..)
            | Fault::Taken(_)
    )
}

impl Work {
    /// Carries it out, and tells how it ended.
    pub(super) async fn run(mut self) {
        self.site.permit = self.permit();
        let (tell, task) = (self.tell.clone(), self.task);
        let asks_server =
            matches!(self.ask, Ask::Approve(_) | Ask::Deny(_) | Ask::Reconnect { .. } | Ask::Continue | Ask::Stop);
        let asked = self.site.endpoints.iter().filter(|_| asks_server).map(|endpoint| Place::At(endpoint.address));
        let asked: Vec<_> = asked.collect();
        let (outcome, connection, sequel, faults) = match self.work().await {
            Ok((words, connection, sequel)) => (Outcome::Done(words), connection, sequel, Vec::new()),
            Err(undone) => (undone.outcome, undone.connection, Sequel::None, undone.faults),
        };
        let well = if matches!(outcome, Outcome::Done(_)) { asked } else { Vec::new() };
        let refused = faults.iter().find(|fault| refuses(fault)).map(|fault| fault.to_string().into());
        let over = Over { outcome, connection, sequel, faults, well, refused };
        let _ = tell.send(Happening::Over(task, over)); // the engine may have ended
    }

    async fn work(self) -> Done {
        match self.ask.clone() {
            Ask::Approve(which) => self.answer(&which, true).await,
            Ask::Deny(which) => self.answer(&which, false).await,
            Ask::Answer(reply) => self.reply(&reply).await,
            Ask::Reconnect { resend: false } => self.reconnect(None).await,
            Ask::Reconnect { resend: true } => self.reconnect(Some(Goes::Again)).await,
            Ask::Continue => self.reconnect(Some(Goes::On)).await,
            Ask::Stop => self.stop().await,
            Ask::End { confirmed } => self.end(&[Force::Interrupt, Force::Terminate], confirmed).await,
            Ask::ForceQuit => self.end(&[Force::Kill], false).await,
            Ask::Resume => self.resume().await,
            Ask::ShowTerminal => self.show_terminal().await,
            Ask::LetAnswer => self.let_answer().await,
            // The loop lets go of it, when it hears of this.
            Ask::Detach | Ask::Listen | Ask::Said => done("let go of it"),
        }
    }

    fn step(&self) -> impl Fn(Step, String) + Send + Sync + use<> {
        let (tell, task) = (self.tell.clone(), self.task);
        move |step, words| {
            let _ = tell.send(Happening::Step(task, step, words)); // fails only when the engine has ended
        }
    }

    fn policy(&self) -> Policy {
        match self.actions.permissions {
            Permissions::Ask => Policy::Ask,
            Permissions::ApproveAll => Policy::ApproveAll,
            Permissions::Observe => Policy::Observe,
        }
    }

    async fn answer(self, which: &Which, approve: bool) -> Done {
        let (tell, task) = (self.tell.clone(), self.task);
        let show = move |text: String| {
            let _ = tell.send(Happening::Request(task, text)); // fails only when the engine has ended
        };
        let step = self.step();
        let answer = RequestAnswer { site: &self.site, which, approve, show: &show, steps: &step };
        let words = match (&self.held, self.over_bridge()) {
            (Some(connection), _) => connection.attached().answer(answer).await?,
            (None, Some(way)) => way.answer(answer).await?,
            (None, None) => recover::answer(answer).await?,
        };
        done(words)
    }

    /// Answers what it asks its user, or shows that.
    async fn reply(self, reply: &Reply) -> Done {
        let (tell, task) = (self.tell.clone(), self.task);
        let show = move |form: Form| {
            let _ = tell.send(Happening::Question(task, Box::new(form))); // fails only when the engine has ended
        };
        let step = self.step();
        let answer = QuestionAnswer { site: &self.site, reply, pose: &show, steps: &step };
        done(match (&self.held, &self.way) {
            (Some(connection), _) => connection.attached().reply(answer).await?,
            (None, Some(way)) => way.reply(answer).await?,
            (None, None) => {
                return Err(Undone::refused(
                    "Pilotlight is not attached to it any more: reconnect first, or answer it where it asks",
                ));
            }
        })
    }

    /// Has Copilot ask in the session's terminal whether we may answer its permission requests.
    async fn let_answer(&self) -> Done {
        let Some(way) = &self.way else { return Err(Undone::refused("the bridge to its terminal has gone")) };
        done(way.let_answer(&self.site, &self.step()).await?)
    }

    /// The bridge, where there is no server to go to.
    fn over_bridge(&self) -> Option<&Way> {
        self.way.as_ref().filter(|_| self.site.endpoints.is_empty())
    }

    /// Brings the session back under control, and has it go on, if that is asked for.
    async fn reconnect(self, goes: Option<Goes>) -> Done {
        let before = self.site.sight.borrow().prompt;
        // Read before anything is done: a prompt that cannot be had is no reason to stop halfway.
        let prompt = match goes {
            Some(goes) => Some(self.prompt(goes).await?),
            None => None,
        };
        let step = self.step();
        if let (None, Some(way), Some((prompt, without))) = (&self.held, self.over_bridge(), &prompt) {
            way.send_on(&self.site, prompt, &step).await?;
            return Ok((sent_words(prompt, without), None, Sequel::Sent));
        }
        let (connection, words) = match (&self.held, &self.owner, self.kind) {
            (Some(connection), ..) => {
                if self.status == Status::Stuck {
                    connection.attached().abort_silent(&self.site, &step).await?;
                }
                (Arc::clone(connection), "attached as before")
            }
            (None, owner, _) if owner.live().is_some() => {
                let (attached, open) =
                    attached::join(&self.site, self.policy(), self.events(), self.task, &step).await?;
                let stopped = attached.stop_silence(&self.site, open, &step).await;
                let connection = Arc::new(Connection::Attached(attached));
                if let Err(failure) = stopped {
                    // A turn that may go on may ask, and somebody must be there.
                    let connection = failure.sent.then_some(connection);
                    return Err(Undone { connection, ..failure.into() });
                }
                (connection, "attached to its server: what it asks for comes here from now on")
            }
            (None, _, Kind::Sdk) => {
                let program = self.program().await?;
                let (events, policy) = (self.events(), self.policy());
                let hosted = hosted::host(&program, &self.home, &self.site, policy, events, self.task, &step).await?;
                (Arc::new(Connection::Hosted(hosted)), "resumed in a server of our own, for as long as Pilotlight runs")
            }
            (None, ..) => return self.resume().await,
        };
        let kept = self.held.is_none().then(|| Arc::clone(&connection));
        let Some((prompt, without)) = prompt else { return Ok((words.to_owned(), kept, Sequel::None)) };
        if goes == Some(Goes::On) && self.has_to_wait(&connection).await {
            return Ok(("attached; it goes on when its turn is over".to_owned(), kept, Sequel::Waits));
        }
        let sent = recover::resend(connection.attached(), &prompt, before, &self.site, GROWN_WITHIN, &step).await;
        let (outcome, faults) = match sent {
            Ok(_) => return Ok((format!("{words}; {}", sent_words(&prompt, without)), kept, Sequel::Sent)),
            // What was reached before is kept, and the user told of both.
            Err(failure) if failure.sent => {
                let words = format!("may have happened: {words}; it was told to go on, but {}", failure.why);
                (Outcome::Unconfirmed(words), failure.faults)
            }
            Err(failure) => {
                let words = format!("{words}; but it was not told to go on: {failure}");
                (Outcome::Failed(words), failure.faults)
            }
        };
        Err(Undone { outcome, faults, connection: kept })
    }

    /// Whether its turn still runs, so that what is sent would come behind whatever that still does.
    async fn has_to_wait(&self, connection: &Connection) -> bool {
        let turn_open = self.site.sight.borrow().turn_open;
        // What a process that is gone left open in the log does not run.
        let runs = async { connection.attached().activity().await.is_ok_and(|activity| activity.has_active_work) };
        !self.waited && turn_open && runs.await
    }

    /// The Copilot CLI that the settings name, or that is found.
    async fn program(&self) -> Result<PathBuf, Undone> {
        let named = self.actions.copilot.as_deref();
        let named = named.and_then(|named| expand(named, user_home().as_deref()));
        find_program(named.as_deref(), SAID_LATE).await.map_err(Undone::failed)
    }

    /// What it is told, and what is to be said of what that leaves out.
    async fn prompt(&self, goes: Goes) -> Result<(Prompt, &'static str), Undone> {
        if goes == Goes::On && self.site.sight.borrow().ran > 0 {
            return Ok((Prompt::GoOn(self.actions.continue_prompt.clone()), ""));
        }
        let log = self.log.clone();
        let failed = |error| format!("the last prompt cannot be read from its log: {error}. Nothing was done");
        // A long log takes its time.
        let last = apart(move || last_prompt(&log).map_err(failed)).await?;
        let without = if last.has_attachments { ", without its attachments" } else { "" };
        Ok((Prompt::Again(last.text), without))
    }

    /// Asks the loop, right before something is sent, whether it is still to be done.
    fn permit(&self) -> Permit {
        let (ask, mut asked) = mpsc::unbounded_channel();
        let (tell, task) = (self.tell.clone(), self.task);
        tokio::spawn(async move {
            while let Some(answer) = asked.recv().await {
                if tell.send(Happening::MaySend(task, answer)).is_err() {
                    return;
                }
            }
        });
        Permit::from(ask)
    }

    fn events(&self) -> mpsc::UnboundedSender<attached::Event> {
        let (events, mut live) = mpsc::unbounded_channel();
        let tell = self.tell.clone();
        tokio::spawn(async move {
            while let Some(event) = live.recv().await {
                if tell.send(Happening::Live(event)).is_err() {
                    return;
                }
            }
        });
        events
    }

    async fn stop(self) -> Done {
        let step = self.step();
        match (&self.held, self.over_bridge()) {
            (Some(connection), _) => connection.attached().abort(&self.site, &step).await,
            (None, Some(way)) => way.stop(&self.site, &step).await,
            (None, None) => recover::stop(&self.site, &step).await,
        }
        .map(|words| (words, None, Sequel::None))
        .map_err(Undone::from)
    }
}

/// How a session goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    /// By its last prompt, and in no other way.
    Again,
    /// By its last prompt where nothing ran since, else by being told so; not before its turn is over.
    On,
}

/// What is said of a prompt that was sent; `without`: of what it leaves out.
fn sent_words(prompt: &Prompt, without: &str) -> String {
    match prompt {
        Prompt::Again(_) => format!("your last prompt was sent again{without}"),
        Prompt::GoOn(_) => "it was told to go on, as a tool ran since your last prompt".to_owned(),
    }
}

/// It was done, and nothing is kept of it.
fn done(words: impl Into<String>) -> Done {
    Ok((words.into(), None, Sequel::None))
}

/// Runs what may wait on a thread of its own.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, Undone> {
    let (tell, told) = oneshot::channel();
    let work = move || {
        let _ = tell.send(work()); // nobody waits any more where the order was given up
    };
    let refused = |error| Undone::failed(format!("the system allows no further thread: {error}. Nothing was done"));
    std::thread::Builder::new().name("order".into()).spawn(work).map_err(refused)?;
    match told.await {
        Ok(result) => result.map_err(Undone::failed),
        Err(_) => Err(Undone::failed("it broke down")),
    }
}
