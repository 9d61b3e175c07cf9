//! Sessions of the other agents on the [stage](crate::stage), the *guests*: their homes, their processes, and what they do
//! when it is due. `cast` is the table of who does what when; `claude_code`, `codex` and `reported` are what each agent gives
//! for it, a `guest`'s `Part`. [`owner`] is a process that runs one of them.
//!
//! A guest takes no orders, so nothing is asked of it here. If its player ends, the user has ended it: it stays as it is
//! until the table repeats.

pub(crate) mod cast;
mod claude_code;
mod codex;
mod guest;
pub mod owner;
mod reported;

use crate::programs::{Programs, named, stand_in};
use cast::{GUESTS, PARTS, beat, post};
use guest::{Act, Guest};
use pilotlight_agents::runners::DISCOVER;
use pilotlight_system::clock::Clock;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Instant;

/// Called with the pid of a player.
type Ended = Arc<dyn Fn(u32) + Send + Sync>;

/// All of them.
pub(crate) struct Guests {
    folder: PathBuf,
    speed: u32,
    clock: Clock,
    ended: Ended,
    players: Vec<Player>,
    start: Instant,
    /// How many lines of the table were played.
    played: usize,
}

struct Player {
    index: usize,
    guest: Box<dyn Guest>,
    /// The program that runs it.
    program: PathBuf,
    child: Option<Child>,
}

impl Guests {
    /// None yet, in the stage's folder. `ended` is called when the player with this pid has ended, or is about to.
    pub(crate) fn new(folder: &Path, speed: u32, ended: impl Fn(u32) + Send + Sync + 'static) -> Self {
        let (clock, start) = (Clock::start(), Instant::now());
        Self { folder: folder.to_owned(), speed, clock, ended: Arc::new(ended), players: Vec::new(), start, played: 0 }
    }

    /// Makes them, with their homes and programs.
    ///
    /// # Errors
    /// If something cannot be written.
    pub(crate) fn make(&mut self, programs: &dyn Programs) -> anyhow::Result<()> {
        let folder = &self.folder;
        for part in PARTS {
            (part.make_home)(&folder.join(part.home), self.clock.now().wall)?;
            let name = part.adapter.profile().program;
            let program = if name.is_empty() { std::env::current_exe()? } else { named(folder, name)? };
            if part.resumes_with.is_some() {
                programs.write_stand_in(&stand_in(folder, name), folder, Some(&program))?;
            }
            for index in (0..GUESTS.len()).filter(|index| GUESTS[*index].part.adapter == part.adapter) {
                let post = post(folder, index);
                fs::create_dir_all(&post.work)?;
                let guest = (part.guest)(post);
                self.players.push(Player { index, guest, program: program.clone(), child: None });
            }
        }
        self.players.sort_by_key(|player| player.index);
        Ok(())
    }

    /// Their time begins.
    pub(crate) fn begin(&mut self, start: Instant) {
        self.start = start;
    }

    /// When the next act is due.
    pub(crate) fn due(&self) -> Instant {
        self.start + beat(self.played, self.speed).0.to_std()
    }

    /// Plays the next act.
    ///
    /// # Errors
    /// If a player cannot be started, or a file cannot be written.
    pub(crate) fn play(&mut self, programs: &dyn Programs) -> anyhow::Result<()> {
        let (_, (_, who, act)) = beat(self.played, self.speed);
        self.played += 1;
        self.perform(who, act, programs)
    }

    fn perform(&mut self, who: usize, act: Act, programs: &dyn Programs) -> anyhow::Result<()> {
        self.reap();
        let now = self.clock.now().wall;
        let player = &mut self.players[who];
        match act {
            Act::Enter if player.child.is_some() || player.guest.is_taken(now) => Ok(()),
            Act::Enter => self.enter(who, programs),
            // The user has ended it: it starts again when the table repeats.
            _ if player.child.is_none() => Ok(()),
            _ => player.guest.act(act, now),
        }
    }

    /// Starts a guest's player, and waits until it holds the session.
    fn enter(&mut self, who: usize, programs: &dyn Programs) -> anyhow::Result<()> {
        let post = post(&self.folder, who);
        let start = |program: &Path| {
            let mut command = programs.guest(program, &self.folder, &post.id);
            // By this its process shows whose sessions it runs.
            let variable = GUESTS[who].part.adapter.profile().home_variable;
            command.envs((!variable.is_empty()).then_some((variable, post.home.folder()))).env(DISCOVER, "false");
            command.current_dir(&post.work).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
        };
        let player = &mut self.players[who];
        // No program may be allowed to run in the stage's folder.
        let child = start(&player.program).or_else(|_| start(&std::env::current_exe()?))?;
        let child = player.child.insert(child);
        let Some(mut output) = child.stdout.take().map(BufReader::new) else { return Ok(()) };
        if output.read_line(&mut String::new())? == 0 {
            self.reap(); // somebody else holds it
            return Ok(());
        }
        let pid = child.id();
        player.guest.enter(pid, self.clock.now().wall)?;
        let ended = Arc::clone(&self.ended);
        std::thread::Builder::new().name("guest".into()).spawn(move || {
            let _ = io::copy(&mut output, &mut io::sink()); // an error is an end, too
            ended(pid);
        })?;
        Ok(())
    }

    /// Waits for the player with this pid.
    pub(crate) fn ended(&mut self, pid: u32) {
        for player in &mut self.players {
            if let Some(mut child) = player.child.take_if(|child| child.id() == pid) {
                let _ = child.wait(); // fails only if it was waited for
            }
        }
    }

    /// Notes the players that have ended.
    fn reap(&mut self) {
        for player in &mut self.players {
            if player.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None))) {
                player.child = None;
            }
        }
    }
}

impl Guests {
    /// Kills all players.
    pub(crate) fn kill(&mut self) {
        for mut child in self.players.iter_mut().filter_map(|player| player.child.take()) {
            let _ = child.kill(); // fails only if it has ended
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests;
