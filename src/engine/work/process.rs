//! What is done to a session's process, and in its terminal.

use super::{Done, Undone, Work, apart, done};
use crate::agent::copilot::store::{SESSIONS, numbers_in_use, owner_now};
use crate::agent::copilot::target::Target;
use crate::core::order::Step;
use crate::core::time::Span;
use crate::system::paths::user_home;
use crate::system::process::{Force, ancestors, is_gone, terminal_of};
use crate::terminal::{Terminals, resume_command, resume_env, show};
use std::time::{Duration, Instant};

/// How long an interrupted process may take before it is terminated. Copilot takes half a second.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether it has ended, meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// How long the rest of a process that has ended may take to be cleared away. A terminal does that at once.
const CLEARED_WITHIN: Duration = Duration::from_secs(2);
/// How long the new owner of a session that was resumed in a terminal is waited for. Copilot shows it half a second after its
/// start, and on a busy machine a few seconds later.
const OWNED_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked for, meanwhile.
const LOOK_FOR_OWNER: Duration = Duration::from_millis(150);

impl Work {
    /// Sends signals one after the other, each only if the one before had no effect in time.
    pub(super) async fn end(self, forces: &[Force], confirmed: bool) -> Done {
        let Some(lock) = self.lock else {
            return Err(Undone::refused("it is no longer known who runs it"));
        };
        let target = Target::open(lock, &self.folder, &self.names, self.now, confirmed).map_err(Undone::refused)?;
        for &force in forces {
            self.site.permit.ask().await.map_err(Undone::refused)?;
            self.step()(Step::Abort, format!("{} process {}", verb(force), lock.pid));
            target.signal(force).map_err(Undone::failed)?;
            let ended = async {
                while !target.has_ended() {
                    tokio::time::sleep(LOOK).await;
                }
            };
            if tokio::time::timeout(PATIENCE, ended).await.is_ok() {
                return done(format!("process {} has ended; the session can be resumed", lock.pid));
            }
        }
        let next = if forces.contains(&Force::Kill) { "look at it in its terminal" } else { "force quit is left" };
        Err(Undone::failed(format!("process {} does not end: {next}", lock.pid)))
    }

    pub(super) async fn resume(self) -> Done {
        let program = self.program().await?;
        let command = resume_command(&program, &self.site.id)
            .ok_or_else(|| Undone::refused("its id does not have the form of Copilot's ids"))?;
        let inherited = std::env::var_os("COPILOT_HOME");
        let env = resume_env(&self.home, user_home().as_deref(), inherited.as_deref());
        let asks = self.what_copilot_takes_for_an_owner().await;
        self.site.permit.ask().await.map_err(Undone::refused)?;
        self.step()(Step::Resume, "opens a terminal".into());
        let (setting, cwd) = (self.actions.terminal.clone(), self.site.cwd.clone());
        let opened =
            move || Terminals::new(Some(setting)).open(&command, cwd.as_deref(), &env).map(|opened| opened.to_string());
        let words = apart(opened).await?;
        self.wait_for_owner().await;
        done(words + &asks.unwrap_or_default())
    }

    /// Copilot goes by the numbers in the locks alone. So it takes a process that has ended for the session's owner until whatever started
    /// it has noticed, which is waited for; and any other program that has its number now. Then it asks, and what that means is said.
    async fn what_copilot_takes_for_an_owner(&self) -> Option<String> {
        let begun = Instant::now();
        loop {
            let pid = *numbers_in_use(&self.folder).first()?;
            let ended = is_gone(pid, self.now);
            if !ended || begun.elapsed() > CLEARED_WITHIN {
                let why = if ended {
                    "the process that ran it has ended, and what started that has not noticed"
                } else {
                    "another program now has the number of the process that ran it"
                };
                return Some(format!(
                    "; Copilot asks there whether the session is in use: {why} (process {pid}). \"Resume anyway\" is right"
                ));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until the session has an owner again, so that nobody takes it for free until then. Not for ever: a terminal may
    /// be slow, or its user may have closed it at once.
    async fn wait_for_owner(&self) {
        let begun = Instant::now();
        while begun.elapsed() < OWNED_WITHIN {
            let (home, id, names) = (self.home.clone(), self.site.id.clone(), self.names.clone());
            let now = self.now + Span(i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX));
            let look = move || owner_now(&home.join(SESSIONS), &id, &names, now);
            match tokio::task::spawn_blocking(look).await {
                Ok(owner) if owner.live().is_none() => tokio::time::sleep(LOOK_FOR_OWNER).await,
                _ => return,
            }
        }
    }

    pub(super) async fn show_terminal(self) -> Done {
        let Some(pid) = self.owner.live() else { return Err(Undone::refused("no process runs it")) };
        let shown = move || show(pid, &ancestors(pid), terminal_of(pid).as_deref());
        done(apart(shown).await?)
    }
}

const fn verb(force: Force) -> &'static str {
    match force {
        Force::Interrupt => "interrupts",
        Force::Terminate => "terminates",
        Force::Kill => "kills",
    }
}
