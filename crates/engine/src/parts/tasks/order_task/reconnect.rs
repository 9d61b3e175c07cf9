//! Orders that bring a session back under control, and continue it.

use super::{Continuation, Done, FollowUp, OrderResult, OrderTask, done, on_thread};
use crate::config::Permissions;
use crate::parts::tasks::TaskMessage;
use pilotlight_agents::channel::action_context::RECEIVES;
use pilotlight_agents::channel::failure::{Failure, FailureKind};
use pilotlight_agents::channel::order::{Policy, Prompt, SilentTurn};
use pilotlight_agents::channel::{Connection, Keep};
use pilotlight_core::attempts::Mark;
use pilotlight_core::fleet::Kind;
use pilotlight_core::order::Risk;
use pilotlight_core::verdict::Status;
use pilotlight_core::words::offer::without_program;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The prompt that has a session continue where its last prompt must not be sent again, if the settings name no other.
const GO_ON: &str = "Go on from where you stopped; before you repeat a step, check whether it was done.";
/// What comes before it where we have just become the one who is asked.
const PERMISSIONS_ARE_BACK: &str = "Permissions can be given again in this session.";

/// What has come of bringing a session back under control.
enum Regained {
    /// We have a connection; the words say how.
    Control(Arc<dyn Connection>, &'static str),
    /// Its model is answering, and nothing is sent behind the answer. The words say so.
    Receives(String),
}

impl OrderTask {
    /// Brings the session back under control, and continues it if the order asks for that.
    pub(super) async fn reconnect(&self, follow_up: Option<FollowUp>) -> OrderResult {
        let before = self.context.log_view.borrow().prompt;
        // Read before anything is done: an unreadable prompt must not stop us halfway.
        let prompt = match follow_up {
            Some(follow_up) => Some(self.prompt(follow_up).await?),
            None => None,
        };
        if let (Some(bridge), Some((prompt, without))) = (self.reach.only_bridge(), &prompt) {
            bridge.send_on(&self.context, prompt).await?;
            return Ok(Done { words: sent_words(prompt, without), continuation: Continuation::Sent });
        }
        let regained = match (&self.reach.connection, &self.owner, self.kind) {
            (Some(connection), ..) => self.use_again(connection).await?,
            (None, owner, _) if owner.live().is_some() => self.attach().await?,
            (None, _, Kind::Sdk) => self.host(prompt.is_some()).await?,
            (None, ..) => return self.resume().await,
        };
        let (connection, words) = match regained {
            Regained::Control(connection, words) => (connection, words),
            Regained::Receives(words) => return done(words),
        };
        let is_new = self.kept.get().is_some();
        let lacks = connection.has_instructions().filter(|_| is_new).map(without_program);
        let Some((prompt, without)) = prompt else {
            let lacks = lacks.map_or(String::new(), |lacks| format!(", {lacks}"));
            return done(format!("{words}{lacks}"));
        };
        if let Some(lacks) = lacks.filter(|_| !self.pending.order.agreed.contains(&Risk::WithoutProgram)) {
            return done(format!(
                "nothing was sent: it is resumed in a server of Pilotlight's own, {lacks}; tell it to continue once more if you want that"
            ));
        }
        if follow_up == Some(FollowUp::Continue) && self.has_to_wait(&*connection).await {
            let words = "attached; it continues when its turn is over".to_owned();
            return Ok(Done { words, continuation: Continuation::Waiting });
        }
        self.send_on(&*connection, &prompt, before, words).await?;
        let words = format!("{words}; {}", sent_words(&prompt, without));
        Ok(Done { words, continuation: Continuation::Sent })
    }

    /// Uses the connection that there is. A silent turn is stopped, unless its model is answering.
    async fn use_again(&self, connection: &Arc<dyn Connection>) -> Result<Regained, Failure> {
        if self.status == Status::Stuck && connection.abort_silent(&self.context).await? == SilentTurn::Receives {
            self.report_receiving();
            return Ok(Regained::Receives(RECEIVES.to_owned()));
        }
        Ok(Regained::Control(Arc::clone(connection), "attached as before"))
    }

    /// Attaches to the server of the session's owner.
    async fn attach(&self) -> Result<Regained, Failure> {
        let servers = self.reach.servers.as_ref().ok_or_else(Failure::no_server)?;
        let (connection, silent) = servers.attach(&self.context, self.keep()).await?;
        match silent {
            // The turn may still run and ask for something, so somebody must stay attached.
            Err(failure) => {
                if failure.kind == FailureKind::Unconfirmed {
                    self.kept.get_or_init(|| connection);
                }
                Err(failure)
            }
            // Nothing is sent behind the answer either.
            Ok(SilentTurn::Receives) => {
                self.kept.get_or_init(|| connection);
                self.report_receiving();
                Ok(Regained::Receives(format!("attached to its server; {RECEIVES}")))
            }
            Ok(SilentTurn::Over | SilentTurn::Asks) => {
                let connection = self.kept.get_or_init(|| connection);
                let words = "attached to its server: its requests come here from now on";
                Ok(Regained::Control(Arc::clone(connection), words))
            }
        }
    }

    /// Resumes a session whose program has ended in a server of our own. `sends`: a prompt is to follow.
    async fn host(&self, sends: bool) -> Result<Regained, Failure> {
        if sends {
            self.check_agreed().await?;
        }
        let program = self.program().await?;
        let control = self.home.control().ok_or_else(Failure::no_server)?;
        let hosted = control.host(&program, self.home.folder(), &self.context, self.keep()).await?;
        let hosted = self.kept.get_or_init(|| hosted);
        Ok(Regained::Control(
            Arc::clone(hosted),
            "resumed in a server of Pilotlight's own, for as long as Pilotlight runs",
        ))
    }

    /// Sends the prompt over the connection. `words` say how that was made; an error repeats them, because that much was
    /// done.
    async fn send_on(
        &self,
        connection: &dyn Connection,
        prompt: &Prompt,
        before: Option<Mark>,
        words: &str,
    ) -> Result<(), Failure> {
        let Err(failure) = connection.send_on(&self.context, prompt, before).await else { return Ok(()) };
        let why = match failure.kind {
            FailureKind::Unconfirmed => format!("{words}; it was told to continue, but {}", failure.why),
            FailureKind::Refused | FailureKind::Failed => {
                format!("{words}; but it was not told to continue: {failure}")
            }
        };
        let kind = if failure.kind == FailureKind::Refused { FailureKind::Failed } else { failure.kind };
        Err(Failure { kind, faults: failure.faults, ..Failure::failed(why) })
    }

    /// Refuses to host a session for a command that is to send a prompt and has not agreed to what it would lack: its
    /// process ended after the command was given. A click only hosts it, and another one sends the prompt.
    async fn check_agreed(&self) -> Result<(), Failure> {
        if !self.pending.is_by_command() || self.pending.order.agreed.contains(&Risk::WithoutProgram) {
            return Ok(());
        }
        let (home, id) = (self.home.clone(), self.context.id.clone());
        let lacks = on_thread(move || Ok(without_program(home.has_instructions(&id)))).await?;
        Err(Failure::refused(format!(
            "nothing was sent: its process has ended, so it would continue {lacks}; add `--yes` if you mean it"
        )))
    }

    /// Whether the session's turn still runs, so that a prompt would be queued behind the rest of it.
    async fn has_to_wait(&self, connection: &dyn Connection) -> bool {
        let turn_open = self.context.log_view.borrow().turn_open;
        // A turn that an exited process left open in the log does not run.
        !self.was_postponed && turn_open && connection.is_working().await
    }

    /// The prompt to send, and a note on what it leaves out.
    async fn prompt(&self, follow_up: FollowUp) -> Result<(Prompt, &'static str), Failure> {
        if follow_up == FollowUp::Continue && self.context.log_view.borrow().ran > 0 {
            let is_by_bridge = self.reach.only_bridge().is_some();
            // A bridge does not know whether permissions can be given.
            let ours = || if is_by_bridge { GO_ON.to_owned() } else { format!("{PERMISSIONS_ARE_BACK} {GO_ON}") };
            return Ok((Prompt::Continue(self.actions.continue_prompt.clone().unwrap_or_else(ours)), ""));
        }
        let (home, id) = (self.home.clone(), self.context.id.clone());
        let failed = |error| format!("the last prompt cannot be read from its log: {error}. Nothing was done");
        // Reading a long log takes time.
        let last = on_thread(move || home.last_prompt(&id).map_err(failed)).await?;
        let without = if last.has_attachments { ", without its attachments" } else { "" };
        Ok((Prompt::Repeat(last.text), without))
    }

    /// What makes a connection that is to be kept.
    fn keep(&self) -> Keep {
        let policy = match self.actions.permissions {
            Permissions::Ask => Policy::Ask,
            Permissions::ApproveAll => Policy::ApproveAll,
            Permissions::Observe => Policy::Observe,
        };
        let (events, mut received) = mpsc::unbounded_channel();
        let messages = self.messages.clone();
        tokio::spawn(async move {
            while let Some(event) = received.recv().await {
                if messages.send(TaskMessage::Connection(event)).is_err() {
                    return;
                }
            }
        });
        Keep { policy, events, generation: self.id }
    }
}

/// Describes the prompt that was sent; `without` notes what it leaves out.
fn sent_words(prompt: &Prompt, without: &str) -> String {
    match prompt {
        Prompt::Repeat(_) => format!("your last prompt was sent again{without}"),
        Prompt::Continue(_) => "it was told to continue, because a tool ran since your last prompt".to_owned(),
    }
}
