//! One scripted session on the stage: its folder, its log and its player.

#![allow(clippy::disallowed_methods, reason = "a scratch folder of its own")]

use crate::events::Log;
use crate::script::{Act, CAST, Who};
use pilotlight_agents::copilot::store::LOG;
use pilotlight_core::time::Time;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Child;

pub(super) struct Session {
    pub(super) who: Who,
    pub(super) id: Box<str>,
    pub(super) path: PathBuf,
    pub(super) log: Log,
    pub(super) player: Option<Child>,
    /// The user has acted on it, so it has left the script.
    pub(super) left_script: bool,
}

impl Session {
    pub(super) fn new(who: Who, id: &str, path: PathBuf) -> Self {
        Self { who, id: id.into(), path, log: Log::default(), player: None, left_script: false }
    }

    /// Writes what an act writes.
    pub(super) fn write(&mut self, act: Act, at: Time) -> io::Result<()> {
        let lines = self.log.lines(&self.id, &CAST[self.who as usize], act, at);
        self.append(&lines)
    }

    /// Writes a prompt of the user's.
    pub(super) fn prompt(&mut self, content: &str, at: Time) -> io::Result<()> {
        let lines = self.log.prompted(&self.id, &CAST[self.who as usize], content, at);
        self.append(&lines)
    }

    fn append(&self, lines: &str) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut log = fs::File::options().create(true).append(true).open(self.path.join(LOG))?;
        log.write_all(lines.as_bytes())
    }

    /// Tells its player, as one line on its standard input.
    pub(super) fn tell(&mut self, line: &str) {
        if let Some(input) = self.player.as_mut().and_then(|player| player.stdin.as_mut()) {
            let _ = writeln!(input, "{line}"); // it may have ended
        }
    }

    /// Removes the lock, and ends the player by closing its standard input.
    pub(super) fn release(&mut self) -> anyhow::Result<()> {
        self.unlock(&self.path);
        if let Some(mut player) = self.player.take() {
            drop(player.stdin.take());
            player.wait()?;
        }
        Ok(())
    }

    /// Kills the player, and leaves its lock.
    pub(super) fn kill(&mut self) {
        if let Some(mut player) = self.player.take() {
            let _ = player.kill(); // fails only if it has ended
            let _ = player.wait();
        }
    }

    pub(super) fn unlock(&self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("inuse.") {
                let _ = fs::remove_file(entry.path()); // fails only if it is gone already
            }
        }
    }

    /// The number of lines in its log, which another process may have written to.
    pub(super) fn lines(&self) -> u64 {
        fs::read_to_string(self.path.join(LOG)).map_or(0, |log| log.lines().count() as u64)
    }
}
