//! A session of an agent whose sessions take no orders here: what that agent gives for the demo.

#![allow(clippy::disallowed_methods, reason = "a scratch folder of its own")]

use pilotlight_agents::adapter::Adapter;
use pilotlight_agents::home::Home;
use pilotlight_core::time::Time;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Its process starts, unless somebody runs the session already.
    Enter,
    /// The user prompts: a turn opens.
    Prompt(&'static str),
    /// A tool runs this.
    Runs(&'static str),
    /// A tool would run this, and the user is asked whether it may.
    Asks(&'static str),
    /// The open tool is done; if the user was asked, after a yes.
    Done,
    /// The last message of a turn.
    Says(&'static str),
}

/// Where a session is, and what it is called.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    /// The home of its agent.
    pub home: Home,
    /// The folder that it works in.
    pub work: PathBuf,
    pub id: Box<str>,
    pub title: &'static str,
}

/// A session, as the stage plays it.
pub(crate) trait Guest {
    /// Whether the user runs it in a terminal.
    fn is_taken(&self, now: Time) -> bool;

    /// Writes what its process leaves as it starts.
    ///
    /// # Errors
    /// It cannot be written.
    fn enter(&mut self, pid: u32, now: Time) -> anyhow::Result<()>;

    /// Writes what an act leaves.
    ///
    /// # Errors
    /// It cannot be written.
    fn act(&mut self, act: Act, now: Time) -> anyhow::Result<()>;
}

/// What a process holds that runs a session. It gives it up when it ends cleanly.
pub(crate) type Hold = Box<dyn FnOnce()>;

/// What an agent gives.
pub(crate) struct Part {
    pub adapter: &'static dyn Adapter,
    /// The home of the agent, in the stage's folder.
    pub home: &'static str,
    /// Makes a home.
    pub make_home: fn(home: &Path, now: Time) -> io::Result<()>,
    /// Puts a session on the stage.
    pub guest: fn(Post) -> Box<dyn Guest>,
    /// Has this process run a session as the agent's program does; the user has resumed it, or the stage plays it.
    pub hold: fn(&Post, resumed: bool) -> anyhow::Result<Hold>,
    /// Whether the program ends cleanly by a signal.
    pub ends_by_signals: bool,
    /// What stands before the id where a session is resumed. `None`: it cannot be.
    pub resumes_with: Option<&'static str>,
}

impl Post {
    /// Whether a process runs the session.
    pub(crate) fn is_run(&self, now: Time) -> bool {
        self.home.owner_now(&self.id, &[], now).live().is_some()
    }

    /// Adds lines to a log of the session.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn append(log: &Path, lines: &str) -> io::Result<()> {
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::File::options().create(true).append(true).open(log)?.write_all(lines.as_bytes())
    }
}
