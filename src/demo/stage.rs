//! The stage: a process that creates a Copilot home, plays the script in it, and removes it.
//!
//! The stage ends when its standard input closes, which happens when the demo ends for whatever reason. Players end in
//! the same way. If a player ends otherwise, the user has ended it from the menu. Its session is then shut down, as
//! Copilot does when it is interrupted, and starts again when the script repeats.

use super::events::Log;
use super::script::{Act, Beat, CAST, Who, beats};
use super::{HOME, STATE};
use crate::agent::copilot::store::SESSIONS;
use crate::system::clock::Clock;
use anyhow::Context;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The prefix of the name of the stage's folder.
const FOLDER: &str = "pilotlight-demo";

/// Plays until standard input closes. `player` returns the command that starts a player, which must end when its
/// standard input closes. The first line on standard output is the stage's folder.
///
/// # Errors
/// If the folder cannot be created or written, or a player cannot be started. Everything is removed then, too.
pub(crate) fn run(speed: u32, player: &dyn Fn() -> io::Result<Command>) -> anyhow::Result<()> {
    let (sender, events) = channel();
    let stop = sender.clone();
    spawn(move || {
        wait_for_end(&mut io::stdin());
        let _ = stop.send(Event::Stop); // fails only when the stage has ended
    })?;
    let mut stage = Stage::create(sender, player)?;
    stage.play(speed, &events).with_context(|| format!("the demo cannot continue in {}", stage.folder.display()))
}

/// Runs a function on a new thread.
fn spawn(work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    std::thread::Builder::new().name("stage".into()).spawn(work).context("the system refuses a thread")?;
    Ok(())
}

/// Waits for the end of an input, and discards what it reads.
pub(crate) fn wait_for_end(input: &mut impl Read) {
    let _ = io::copy(input, &mut io::sink()); // an error is an end, too
}

enum Event {
    /// The demo has ended.
    Stop,
    /// A session's player, with this pid, has ended.
    PlayerEnded(Who, u32),
}

struct Stage<'a> {
    folder: PathBuf,
    clock: Clock,
    events: Sender<Event>,
    /// Returns the command that starts a player.
    player: &'a dyn Fn() -> io::Result<Command>,
    /// In the order of [`CAST`].
    sessions: Vec<Session>,
}

struct Session {
    id: String,
    path: PathBuf,
    log: Log,
    player: Option<Child>,
}

impl<'a> Stage<'a> {
    /// Creates a new folder, with its subfolders.
    fn create(events: Sender<Event>, player: &'a dyn Fn() -> io::Result<Command>) -> anyhow::Result<Self> {
        let folder = new_folder(&std::env::temp_dir())?;
        let mut stage = Self { folder, clock: Clock::start(), events, player, sessions: Vec::new() };
        for subfolder in [&format!("{HOME}/{SESSIONS}"), STATE, "work"] {
            fs::create_dir_all(stage.folder.join(subfolder))?;
        }
        for (index, role) in CAST.iter().enumerate() {
            // A UUID like Copilot's ids, but easy to type, the same at every start, and never a real session's.
            let id = format!("de{:02}0000-0000-4000-8000-{0:012}", index + 1);
            fs::create_dir_all(stage.folder.join("work").join(role.folder))?;
            let path = stage.folder.join(HOME).join(SESSIONS).join(&id);
            stage.sessions.push(Session { id, path, log: Log::default(), player: None });
        }
        Ok(stage)
    }

    fn play(&mut self, speed: u32, events: &Receiver<Event>) -> anyhow::Result<()> {
        writeln!(io::stdout(), "{}", self.folder.display())?;
        let start = Instant::now();
        for (at, beat) in beats(speed) {
            let due = start + at.to_std();
            loop {
                match events.recv_timeout(due.saturating_duration_since(Instant::now())) {
                    Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    Ok(Event::PlayerEnded(who, pid)) => self.player_ended(who, pid)?,
                    Err(RecvTimeoutError::Timeout) => break,
                }
            }
            self.perform(beat)?;
        }
        Ok(())
    }

    fn perform(&mut self, beat: Beat) -> anyhow::Result<()> {
        if beat.act == Act::Enter {
            return self.enter(beat.who);
        }
        let at = self.clock.now().wall;
        let session = &mut self.sessions[beat.who as usize];
        if session.player.is_none() {
            return Ok(()); // the user ended it: it starts again when the script repeats
        }
        let lines = session.log.lines(&session.id, &CAST[beat.who as usize], beat.act, at);
        session.write(&lines)?;
        match beat.act {
            Act::ShutDown => session.release()?,
            Act::Crash => session.kill(),
            _ => {}
        }
        Ok(())
    }

    /// Starts the session's player, unless it is running.
    fn enter(&mut self, who: Who) -> anyhow::Result<()> {
        let (role, work) = (&CAST[who as usize], self.folder.join("work"));
        let session = &mut self.sessions[who as usize];
        if session.player.is_some() {
            return Ok(());
        }
        // A new session is built under a temporary name, so that it appears complete.
        let temporary = session.path.with_file_name(format!(".{}", session.id));
        let is_new = !session.path.exists();
        let folder = if is_new { &temporary } else { &session.path };
        if is_new {
            fs::create_dir_all(folder)?;
            let about = format!(
                "id: {}\ncwd: {}\nbranch: {}\nclient_name: {}\nname: {:?}\ncreated_at: {}\n",
                session.id,
                quoted(&work.join(role.folder)),
                role.branch,
                role.client,
                role.title,
                self.clock.now().wall
            );
            fs::write(folder.join("workspace.yaml"), about)?;
        }
        let mut child = (self.player)()?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pid = child.id();
        if let Some(mut output) = child.stdout.take() {
            let events = self.events.clone();
            spawn(move || {
                wait_for_end(&mut output);
                let _ = events.send(Event::PlayerEnded(who, pid)); // fails only when the stage has ended
            })?;
        }
        session.player = Some(child);
        // Replaces the lock of a player that crashed, as Copilot does.
        session.unlock(folder);
        fs::write(folder.join(format!("inuse.{pid}.lock")), format!("{pid}\n"))?;
        session.log.change_owner();
        if is_new {
            fs::rename(&temporary, &session.path)?;
        }
        Ok(())
    }

    /// Handles the end of a player. If it was not scripted, the user ended it, and the session is shut down.
    fn player_ended(&mut self, who: Who, pid: u32) -> anyhow::Result<()> {
        let at = self.clock.now().wall;
        let session = &mut self.sessions[who as usize];
        if session.player.as_ref().is_none_or(|player| player.id() != pid) {
            return Ok(());
        }
        if !session.log.is_empty() {
            let lines = session.log.lines(&session.id, &CAST[who as usize], Act::ShutDown, at);
            session.write(&lines)?;
        }
        session.release()
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        for session in &mut self.sessions {
            session.kill();
        }
        remove(&self.folder);
    }
}

impl Session {
    fn write(&self, lines: &str) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut log = fs::File::options().create(true).append(true).open(self.path.join("events.jsonl"))?;
        log.write_all(lines.as_bytes())
    }

    /// Removes the lock, and ends the player by closing its standard input.
    fn release(&mut self) -> anyhow::Result<()> {
        self.unlock(&self.path);
        if let Some(mut player) = self.player.take() {
            drop(player.stdin.take());
            player.wait()?;
        }
        Ok(())
    }

    /// Kills the player, and leaves its lock.
    fn kill(&mut self) {
        if let Some(mut player) = self.player.take() {
            let _ = player.kill(); // fails only if it has ended
            let _ = player.wait();
        }
    }

    fn unlock(&self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("inuse.") {
                let _ = fs::remove_file(entry.path()); // fails only if it is gone already
            }
        }
    }
}

/// Creates a new folder that only the user can open.
fn new_folder(parent: &Path) -> anyhow::Result<PathBuf> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(false);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let pid = std::process::id();
    for suffix in 0..100 {
        let folder = parent.join(format!("{FOLDER}-{pid}-{suffix}"));
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let message =
                    format!("the demo cannot create its folder {}; set TMPDIR to a writable one", folder.display());
                return Err(error).context(message);
            }
        }
    }
    anyhow::bail!("the demo finds no free name for its folder in {}; remove old ones", parent.display())
}

/// Removes the stage's folder. Retries, because the demo may still write into it as it ends.
pub(crate) fn remove(folder: &Path) {
    for _ in 0..50 {
        match fs::remove_dir_all(folder) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => std::thread::park_timeout(Duration::from_millis(20)),
        }
    }
}

/// A path as a quoted YAML string.
fn quoted(path: &Path) -> String {
    serde_json::to_string(&path.to_string_lossy()).unwrap_or_default()
}
