//! Orders that act on a session's process or its terminal.

use super::{OrderResult, OrderTask, done, on_thread};
use crate::terminal::{Terminals, show};
use pilotlight_agents::channel::ACTIVITY_TIMEOUT;
use pilotlight_agents::channel::failure::Failure;
use pilotlight_agents::home::Resume;
use pilotlight_core::order::{Operation, Step};
use pilotlight_core::owner::may_have_it_open;
use pilotlight_core::text::{NAME_MAX, plain};
use pilotlight_core::time::Span;
use pilotlight_core::words::refusal::Refusal;
use pilotlight_system::paths::is_local_folder;
use pilotlight_system::process::{Force, ancestors, is_gone, is_stopped, terminal_of};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a process may take to exit after a signal before the next one. Copilot takes half a second.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(5);
/// How often to check whether it has exited.
const EXIT_POLL: Duration = Duration::from_millis(50);

/// How long a zombie may take to be reaped. A terminal does that at once.
const REAPED_WITHIN: Duration = Duration::from_secs(2);
/// How long to wait for the new owner of a session that was resumed in a terminal. Copilot's lock appears half a second
/// after its start, a few seconds later on a busy machine.
const OWNED_WITHIN: Duration = Duration::from_secs(5);
/// How often to check for the new owner.
const OWNER_POLL: Duration = Duration::from_millis(150);

impl OrderTask {
    /// Sends these signals in order, each only if the one before had no effect in time.
    pub(super) async fn end(&self, forces: &[Force], confirmed: bool) -> OrderResult {
        let Some(evidence) = &self.evidence else {
            return Err(Failure::refused("it is no longer known who runs it"));
        };
        let pid = evidence.pid();
        let target = evidence.open(&self.names, self.now, confirmed).map_err(Failure::refused)?;
        let forces: Vec<_> = forces.iter().copied().filter(|force| evidence.ends_by(*force)).collect();
        for &force in &forces {
            self.context.permit.ask().await.map_err(Failure::refused)?;
            self.context.step(Step::Abort, format!("{} process {pid}", verb(force)));
            target.signal(force).map_err(Failure::failed)?;
            let ended = async {
                while !target.has_ended() {
                    tokio::time::sleep(EXIT_POLL).await;
                }
            };
            if tokio::time::timeout(SIGNAL_PATIENCE, ended).await.is_ok() {
                return done(format!("process {pid} has ended; the session can be resumed"));
            }
        }
        let is_killable = !forces.contains(&Force::Kill) && evidence.ends_by(Force::Kill);
        let next = left_to_do(is_stopped(pid), is_killable);
        Err(Failure::failed(format!("process {pid} does not end: {next}")))
    }

    pub(super) async fn resume(&self) -> OrderResult {
        let program = self.program().await?;
        let folder = self.folder_to_resume_in().await?;
        let resume = self.home.resume(&program, &self.context.id).map_err(Failure::refused)?;
        let asks = self.lock_warning().await;
        self.context.permit.ask().await.map_err(Failure::refused)?;
        if let Some(here) = &self.resumes_here {
            self.context.step(Step::Resume, "in this terminal");
            let _ = here.send(resume); // fails only when the command was interrupted
            return done(format!("resumed here{}", asks.unwrap_or_default()));
        }
        self.context.step(Step::Resume, "in a new terminal");
        let Resume { command, env } = resume;
        let setting = self.actions.terminal.clone();
        let opened = move || {
            Terminals::new(Some(setting)).open(&command, folder.as_deref(), &env).map(|opened| opened.to_string())
        };
        let words = on_thread(opened).await?;
        self.wait_for_owner().await;
        done(words + &asks.unwrap_or_default())
    }

    /// The folder to resume the session in. `None` if it is unknown.
    ///
    /// # Errors
    /// A refusal if it is gone: what the agent does there would be done elsewhere.
    async fn folder_to_resume_in(&self) -> Result<Option<PathBuf>, Failure> {
        let chosen = self.pending.order.folder.as_deref().map(PathBuf::from);
        let is_chosen = chosen.is_some();
        let Some(folder) = chosen.or_else(|| self.context.cwd.clone()) else { return Ok(None) };
        let looked_at = folder.clone();
        if on_thread(move || Ok(is_local_folder(&looked_at))).await? {
            return Ok(Some(folder));
        }
        let folder: Box<str> = folder.display().to_string().into();
        Err(Failure::refused(match is_chosen {
            true => format!("there is no folder {} here; nothing was done", plain(&folder, NAME_MAX)),
            false => Refusal::FolderGone { folder, id: (*self.context.id).into() }.to_string(),
        }))
    }

    /// Makes sure that no process has the session open that does not say so.
    ///
    /// # Errors
    /// A refusal if one has it open, or if that cannot be known.
    pub(super) async fn ask_suspects(&self) -> Result<(), Failure> {
        for (pid, servers) in &self.suspects {
            let loaded = async { servers.as_ref()?.has_loaded(&self.context.id, ACTIVITY_TIMEOUT).await };
            match loaded.await {
                Some(false) => {}
                Some(true) => {
                    let words = format!("process {pid} has it open: continue there");
                    return Err(Failure::refused(words));
                }
                None => {
                    let may = may_have_it_open(*pid, &self.home.agent());
                    let verb = if self.pending.order.operation == Operation::Resume { "resume" } else { "reconnect" };
                    return Err(Failure::refused(format!(
                        "{may}: close it there, or use `pilotlight {verb} {}`, which asks first",
                        self.context.id
                    )));
                }
            }
        }
        Ok(())
    }

    /// Waits until its agent would not take the session for one in use, and returns a warning if it still would.
    ///
    /// Copilot checks only the pids in the lock files. So it takes a zombie for the session's owner until the zombie is
    /// reaped, which is waited for; and any other program that has got the pid. In that case it asks its user whether
    /// to resume anyway.
    async fn lock_warning(&self) -> Option<String> {
        let started = Instant::now();
        loop {
            let pid = self.home.process_in_use(&self.context.id)?;
            let ended = is_gone(pid, self.now);
            if !ended || started.elapsed() > REAPED_WITHIN {
                let why = if ended {
                    "the process that ran it has ended, but its parent has not noticed"
                } else {
                    "another program now has the process id of the one that ran it"
                };
                let agent = self.home.agent();
                return Some(format!(
                    "; {agent} asks there whether the session is in use: {why} (process {pid}). \"Resume anyway\" is right"
                ));
            }
            tokio::time::sleep(EXIT_POLL).await;
        }
    }

    /// Waits until the session has an owner again, so that nobody takes it for free in the meantime. The wait is
    /// limited: a terminal may be slow, or its user may have closed it at once.
    async fn wait_for_owner(&self) {
        let started = Instant::now();
        while started.elapsed() < OWNED_WITHIN {
            let (home, id, names) = (self.home.clone(), self.context.id.clone(), self.names.clone());
            let now = self.now + Span(i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX));
            let check = move || home.owner_now(&id, &names, now);
            match tokio::task::spawn_blocking(check).await {
                Ok(owner) if owner.live().is_none() => tokio::time::sleep(OWNER_POLL).await,
                _ => return,
            }
        }
    }

    pub(super) async fn show_terminal(&self) -> OrderResult {
        let Some(pid) = self.owner.live() else { return Err(Failure::refused("no process runs it")) };
        let pane = self.pane.clone();
        let shown = move || show(pid, &ancestors(pid), terminal_of(pid).as_deref(), pane.as_deref());
        done(on_thread(shown).await?)
    }
}

/// What the user can do about a process that no signal has ended.
const fn left_to_do(is_stopped: bool, is_killable: bool) -> &'static str {
    match (is_stopped, is_killable) {
        (true, _) => "it is stopped, and ends once it is continued (`fg` in its terminal)",
        (false, true) => "only force quit is left",
        (false, false) => "look at it in its terminal",
    }
}

const fn verb(force: Force) -> &'static str {
    match force {
        Force::Interrupt => "interrupts",
        Force::Terminate => "terminates",
        Force::Kill => "kills",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 329: what is named is offered.
    #[test]
    fn case_329_a_process_that_does_not_end_is_continued_killed_if_its_agent_allows_that_or_looked_at() {
        assert!(left_to_do(true, true).contains("once it is continued"));
        assert!(left_to_do(false, true).contains("force quit"));
        assert!(!left_to_do(false, false).contains("force quit"));
    }
}
