//! The stage: a process that makes a home of its own, plays the script in it, and leaves nothing behind.
//!
//! It is told to end by its standard input: when that closes, whoever held the other end is done, or dead. The players are
//! told in the same way. A player that ends otherwise was ended by the user, from the menu: then its session is shut down,
//! as Copilot does when it is interrupted, and comes back when the play begins again.

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

/// The start of the name of the stage's folder.
const FOLDER: &str = "pilotlight-demo";

/// Plays until standard input closes. `player` makes the command that starts a player: it must end when its standard input
/// does. The first line of standard output is the stage's folder.
///
/// # Errors
/// Where the folder cannot be made or written, or a player cannot be started. What was made is taken away again.
pub(crate) fn run(speed: u32, player: impl Fn() -> io::Result<Command>) -> anyhow::Result<()> {
    let (cue, cues) = channel();
    let curtain = cue.clone();
    apart(move || {
        wait_for_end(&mut io::stdin());
        let _ = curtain.send(Cue::Curtain); // fails only when the play is over
    })?;
    let mut stage = Stage::build(cue)?;
    stage.play(speed, &player, &cues).with_context(|| format!("the demo cannot go on in {}", stage.folder.display()))
}

/// Does something on a thread of its own.
fn apart(work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    std::thread::Builder::new().name("stage".into()).spawn(work).context("the system refuses a thread")?;
    Ok(())
}

/// Reads to the end, whatever comes.
pub(crate) fn wait_for_end(input: &mut impl Read) {
    let _ = io::copy(input, &mut io::sink()); // a broken pipe is an end as well
}

enum Cue {
    /// The demo is over.
    Curtain,
    /// A player is gone: whose, and its process id.
    Left(Who, u32),
}

struct Stage {
    folder: PathBuf,
    clock: Clock,
    cue: Sender<Cue>,
    sessions: Vec<Session>,
}

struct Session {
    id: String,
    path: PathBuf,
    log: Log,
    player: Option<Child>,
}

impl Stage {
    /// Makes the folder, which did not exist before.
    fn build(cue: Sender<Cue>) -> anyhow::Result<Self> {
        let folder = new_folder(&std::env::temp_dir())?;
        let stage = Self { folder, clock: Clock::start(), cue, sessions: Vec::new() };
        for inside in [&format!("{HOME}/{SESSIONS}"), STATE, "work"] {
            fs::create_dir_all(stage.folder.join(inside))?;
        }
        Ok(stage)
    }

    fn play(
        &mut self,
        speed: u32,
        player: &impl Fn() -> io::Result<Command>,
        cues: &Receiver<Cue>,
    ) -> anyhow::Result<()> {
        for (index, role) in CAST.iter().enumerate() {
            // Of the form of Copilot's ids, short to type, the same at every start, and no real session's.
            let id = format!("de{:02}0000-0000-4000-8000-{0:012}", index + 1);
            fs::create_dir_all(self.folder.join("work").join(role.folder))?;
            let path = self.folder.join(HOME).join(SESSIONS).join(&id);
            self.sessions.push(Session { id, path, log: Log::default(), player: None });
        }
        writeln!(io::stdout(), "{}", self.folder.display())?;
        let begun = Instant::now();
        for (at, beat) in beats(speed) {
            let due = begun + at.to_std();
            loop {
                match cues.recv_timeout(due.saturating_duration_since(Instant::now())) {
                    Ok(Cue::Curtain) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    Ok(Cue::Left(who, pid)) => self.left(who, pid)?,
                    Err(RecvTimeoutError::Timeout) => break,
                }
            }
            self.perform(beat, player)?;
        }
        Ok(())
    }

    fn perform(&mut self, beat: Beat, player: &impl Fn() -> io::Result<Command>) -> anyhow::Result<()> {
        if beat.act == Act::Enter {
            return self.enter(beat.who, player);
        }
        let at = self.clock.now().wall;
        let Some(session) = self.sessions.get_mut(beat.who as usize) else { return Ok(()) };
        if session.player.is_none() {
            return Ok(()); // the user ended it: it comes back when the play begins again
        }
        let lines = session.log.lines(&session.id, &CAST[beat.who as usize], beat.act, at);
        session.write(&lines)?;
        match beat.act {
            Act::ShutDown => session.dismiss()?,
            Act::Crash => session.kill(),
            _ => {}
        }
        Ok(())
    }

    /// Sees that the session has a process.
    fn enter(&mut self, who: Who, player: &impl Fn() -> io::Result<Command>) -> anyhow::Result<()> {
        let (role, work) = (&CAST[who as usize], self.folder.join("work"));
        let Some(session) = self.sessions.get_mut(who as usize) else { return Ok(()) };
        if session.player.is_some() {
            return Ok(());
        }
        // A new session appears whole, under its name.
        let beside = session.path.with_file_name(format!(".{}", session.id));
        let is_new = !session.path.exists();
        let folder = if is_new { &beside } else { &session.path };
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
        let mut child = player()?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pid = child.id();
        if let Some(mut output) = child.stdout.take() {
            let cue = self.cue.clone();
            apart(move || {
                wait_for_end(&mut output);
                let _ = cue.send(Cue::Left(who, pid)); // fails only when the play is over
            })?;
        }
        session.player = Some(child);
        // The lock of a player that crashed is taken over, as Copilot does.
        session.unlock(folder);
        fs::write(folder.join(format!("inuse.{pid}.lock")), format!("{pid}\n"))?;
        session.log.change_hands();
        if is_new {
            fs::rename(&beside, &session.path)?;
        }
        Ok(())
    }

    /// A player is gone. Where the script did not say so, the user ended it.
    fn left(&mut self, who: Who, pid: u32) -> anyhow::Result<()> {
        let at = self.clock.now().wall;
        let Some(session) = self.sessions.get_mut(who as usize) else { return Ok(()) };
        if session.player.as_ref().is_none_or(|player| player.id() != pid) {
            return Ok(());
        }
        if !session.log.is_empty() {
            let lines = session.log.lines(&session.id, &CAST[who as usize], Act::ShutDown, at);
            session.write(&lines)?;
        }
        session.dismiss()
    }
}

impl Drop for Stage {
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

    /// Lets the player go, and its lock with it.
    fn dismiss(&mut self) -> anyhow::Result<()> {
        self.unlock(&self.path);
        if let Some(mut player) = self.player.take() {
            drop(player.stdin.take());
            player.wait()?;
        }
        Ok(())
    }

    /// Ends the player without a word.
    fn kill(&mut self) {
        if let Some(mut player) = self.player.take() {
            let _ = player.kill(); // fails only where it has ended
            let _ = player.wait();
        }
    }

    fn unlock(&self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("inuse.") {
                let _ = fs::remove_file(entry.path()); // a lock that is gone is what is wanted
            }
        }
    }
}

/// A folder that nobody else had before, and nobody else may look into.
fn new_folder(within: &Path) -> anyhow::Result<PathBuf> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(false);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let pid = std::process::id();
    for suffix in 0..100 {
        let folder = within.join(format!("{FOLDER}-{pid}-{suffix}"));
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let tried =
                    format!("the demo cannot make its folder {}; set TMPDIR to one that it may use", folder.display());
                return Err(error).context(tried);
            }
        }
    }
    anyhow::bail!("the demo finds no free name for its folder in {}; remove old ones", within.display())
}

/// Removes the stage's folder. The demo may write into it as it ends: then it is looked at again.
pub(crate) fn remove(folder: &Path) {
    for _ in 0..50 {
        match fs::remove_dir_all(folder) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => std::thread::park_timeout(Duration::from_millis(20)),
        }
    }
}

/// A path as YAML takes it, whatever is in it.
fn quoted(path: &Path) -> String {
    serde_json::to_string(&path.to_string_lossy()).unwrap_or_default()
}
