//! Runs the commands of `[[on-change]]`.
//!
//! [`Triggers`] decides which are due. Each gets the session's row on its standard input, the line that
//! `pilotlight watch --json` would print, and nothing about the session in its arguments. There is no shell in between,
//! and what it prints goes nowhere. At most [`AT_ONCE`] run at once, each for at most [`LIMIT`]; then its process group
//! is killed, and so it is when the tray ends.

use pilotlight_core::alert::{Alertable, Detail, Now, Quiet, Settings, Triggers, told};
use pilotlight_core::session::Key;
use pilotlight_core::text::escaped_json;
use pilotlight_core::time::Time;
use pilotlight_engine::config::OnChange as Command;
use pilotlight_system::log::{self, cause, private};
use pilotlight_system::{descriptors, paths};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// How many commands run at once.
const AT_ONCE: usize = 4;
/// How many may run and wait. More than that is a storm, of which nobody reads the rest.
const MOST: usize = 64;
/// How long a command may run.
const LIMIT: Duration = Duration::from_secs(30);

/// The commands of the settings.
pub(crate) struct OnChange {
    triggers: Triggers,
    commands: Vec<Arc<Known>>,
    detail: Detail,
    runner: Runner,
}

/// A command, and whether it failed the last time.
struct Known {
    command: Command,
    /// In logs: the command itself may hold secrets.
    name: String,
    has_failed: AtomicBool,
}

impl OnChange {
    /// `handle` is the runtime in which the commands are waited for.
    pub(crate) fn new(commands: &[Command], rules: &Settings, handle: Handle) -> Self {
        let runner = Runner::new(handle, LIMIT);
        let mut new = Self { triggers: Triggers::default(), commands: Vec::new(), detail: Detail::default(), runner };
        new.configure(commands, rules);
        new
    }

    /// Applies new settings, from the next update on.
    pub(crate) fn configure(&mut self, commands: &[Command], rules: &Settings) {
        let is_same = self.commands.iter().map(|known| &known.command).eq(commands);
        if !is_same {
            self.commands =
                (1..).zip(commands).map(|(number, command)| Arc::new(Known::new(number, command))).collect();
        }
        let wanted = commands.iter().flat_map(|command| &command.triggers).copied();
        self.triggers.configure(wanted.collect(), rules);
        self.detail = rules.detail;
    }

    /// Runs what is due in the current state of the sessions.
    pub(crate) fn update(&mut self, sessions: &[Alertable<'_>], quiet: &Quiet, now: &Now) {
        // Without a command nothing is followed, and nothing wakes for it.
        if self.commands.is_empty() {
            self.triggers.forget();
            return;
        }
        for (key, trigger) in self.triggers.update(sessions, quiet, now) {
            let Some(session) = sessions.iter().find(|session| *session.key == key) else { continue };
            let Ok(json) = serde_json::to_string(&told(session.row, self.detail)) else { continue };
            let line: Arc<str> = (escaped_json(json) + "\n").into();
            for known in self.commands.iter().filter(|known| known.command.triggers.contains(&trigger)) {
                self.runner.start(known, Arc::clone(&line));
            }
        }
    }

    /// The sessions of which it is to be known whether their terminals have the focus.
    pub(crate) fn queries(&self) -> &[Key] {
        self.triggers.queries()
    }

    /// Records whether a session's terminal has the focus.
    pub(crate) fn focus(&mut self, key: &Key, has_focus: bool) {
        self.triggers.focus(key, has_focus);
    }

    /// When [`update`](Self::update) must be called even if nothing changed, by the awake clock.
    pub(crate) const fn wake_at(&self) -> Option<Time> {
        self.triggers.wake_at()
    }
}

impl Known {
    fn new(number: usize, command: &Command) -> Self {
        let name = format!("the on-change command {number} ({})", command.program_name());
        Self { command: command.clone(), name, has_failed: AtomicBool::new(false) }
    }

    /// Logs a failure, unless the command failed the last time, too.
    fn note(&self, ended: &io::Result<()>) {
        let failed_before = self.has_failed.swap(ended.is_err(), Ordering::Relaxed);
        if let Err(error) = ended
            && !failed_before
        {
            log::warn!("{} failed: {}; that is not said again until it works", private(&self.name), cause(error));
        }
    }
}

/// Runs commands, a bounded number at once.
struct Runner {
    handle: Handle,
    limit: Duration,
    running: Arc<Semaphore>,
    accepted: Arc<Semaphore>,
    /// The last one was dropped.
    drops: bool,
}

impl Runner {
    fn new(handle: Handle, limit: Duration) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { handle, limit, running: semaphore(AT_ONCE), accepted: semaphore(MOST), drops: false }
    }

    /// Runs a command with this line as its standard input, as soon as no more than [`AT_ONCE`] run.
    fn start(&mut self, known: &Arc<Known>, line: Arc<str>) {
        let accepted = Arc::clone(&self.accepted).try_acquire_owned();
        let dropped_before = std::mem::replace(&mut self.drops, accepted.is_err());
        let Ok(accepted) = accepted else {
            if !dropped_before {
                log::warn!("{} is not run: {} others run or wait", private(&known.name), MOST);
            }
            return;
        };
        let (known, running, limit) = (Arc::clone(known), Arc::clone(&self.running), self.limit);
        self.handle.spawn(async move {
            let _turn = running.acquire().await; // fails only for a closed semaphore, which this is not
            known.note(&run(&known.command, &line, limit).await);
            drop(accepted);
        });
    }
}

/// Runs a command to its end.
///
/// # Errors
/// If it cannot be started, fails, or takes longer than `limit`.
async fn run(command: &Command, line: &str, limit: Duration) -> io::Result<()> {
    let command = command.clone();
    let work = async {
        // On a thread of its own: starting a program waits for its file system.
        let started = tokio::task::spawn_blocking(move || spawn(&command).map(Running)).await;
        let mut running = started.map_err(io::Error::other)??;
        if let Some(mut input) = running.0.stdin.take() {
            // One that reads nothing, or ends before, may still succeed.
            let _ = input.write_all(line.as_bytes()).await;
        }
        running.0.wait().await
    };
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(io::Error::other(format!("it ended with {status}"))),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other(format!("it ran for longer than {} s, and was killed", limit.as_secs()))),
    }
}

fn spawn(command: &Command) -> io::Result<Child> {
    let not_found = || io::Error::other("there is no such program");
    let program: PathBuf = command.program().ok_or_else(not_found)?;
    let mut started = tokio::process::Command::new(program);
    started.args(command.run.iter().skip(1));
    started.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not the folder that the tray happens to be started in.
    if let Some(home) = paths::user_home() {
        started.current_dir(home);
    }
    #[cfg(unix)]
    started.process_group(0);
    #[cfg(windows)]
    {
        // CREATE_NO_WINDOW, of the Windows API's process creation flags.
        started.creation_flags(0x0800_0000);
    }
    descriptors::restore(started.as_std_mut());
    started.kill_on_drop(true).spawn()
}

/// A command that runs. Dropped before it was waited for, it is killed with everything in its process group.
struct Running(Child);

#[cfg(unix)]
impl Drop for Running {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        // Without an id it was waited for. With one, its pid and its group's number cannot be used again.
        let group = self.0.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL); // fails only if it is gone already
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
