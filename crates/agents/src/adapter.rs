//! An agent, as everything else knows it: the trait that each implements, and the list of them.

use super::bridge::Installer;
use super::control::Control;
use super::copilot::prompt::LastPrompt;
use super::home::Home;
use super::listing::{Listing, QuickScan, ReadEach};
use super::listing_cache::ListingCache;
use super::openings::{Noted, OpenSession};
use super::profile::Profile;
use super::reader::Reader;
use super::reading::LogPaths;
use super::runners::RoleOf;
#[cfg(target_os = "linux")]
use super::runners::Runner;
use super::tail::LogFormat;
use super::{starting, walk};
use async_trait::async_trait;
use pilotlight_core::agent::Agent;
use pilotlight_core::owner::Owner;
use pilotlight_core::time::Time;
use pilotlight_system::paths::{Folders, user_home};
use pilotlight_system::watcher::Layout;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The agents. The first is the fallback for a home, a log or a name that tells nothing else.
pub static ADAPTERS: &[&dyn Adapter] =
    &[&crate::copilot::Copilot, &crate::claude_code::ClaudeCode, &crate::codex::Codex, &crate::reported::Reported];

/// The fallback for an unrecognised home.
pub static FIRST: &dyn Adapter = &crate::copilot::Copilot;

/// How the [`FIRST`] agent writes its logs.
pub use super::copilot::log_format::LOG_FORMAT as FIRST_LOG_FORMAT;

/// An agent: where its sessions are, how they are read, and what may be done with them.
///
/// An agent that is only shown implements [`profile`](Self::profile) and [`open`](Self::open); the other methods have the
/// answers that are right for it. One that can be acted on has a [`control`](Self::control), too. The [essay](crate) of this
/// crate says how to add one.
#[async_trait]
pub trait Adapter: Send + Sync {
    /// What is the same about all its homes: names, where they are, what to watch in one.
    fn profile(&self) -> &'static Profile;

    /// Lists the sessions of a home, by the layout of its watch plan. What is read may be noted in `cache`, to spare the next listing.
    ///
    /// # Errors
    /// Where the home cannot be listed.
    fn list(&self, home: &Home, cache: ListingCache) -> io::Result<Listing> {
        walk::list(home.root(), &self.profile().watch_plan.layout, cache)
    }

    /// Where a session is: its folder, or its file.
    fn path(&self, home: &Home, id: &str) -> PathBuf {
        walk::path(home.root(), &self.profile().watch_plan.layout, id)
    }

    /// A reader for a session, which has read nothing yet. `path`: where the session is.
    fn open(&self, home: &Home, id: &str, path: PathBuf) -> Reader;

    /// Whether a home has a session of this id.
    fn has(&self, home: &Home, id: &str) -> bool {
        match self.profile().watch_plan.layout {
            Layout::Files { .. } => self.path(home, id).is_file(),
            Layout::Folders { .. } => self.path(home, id).is_dir(),
        }
    }

    /// The log of a session.
    fn log(&self, home: &Home, id: &str) -> PathBuf {
        self.path(home, id)
    }

    /// How it writes its logs, if they are made of lines.
    fn log_format(&self) -> Option<&'static LogFormat> {
        None
    }

    /// Whether it lists what is behind links among its folders.
    fn follows_links(&self) -> bool {
        false
    }

    /// Whether only a listing tells where the log of a session is, as its id does not.
    fn lists_logs(&self) -> bool {
        matches!(self.profile().watch_plan.layout, Layout::Files { .. })
    }

    /// Tells fast which sessions of a home are history: of many that a listing found, with where it found their logs, or of
    /// few.
    fn quick_scan<'a>(&self, _home: &'a Home, _listed: Option<&LogPaths>) -> Box<dyn QuickScan + 'a> {
        Box::new(ReadEach)
    }

    /// The session that this one is a part of: a sub-agent has a log of its own, but is no session.
    fn whole(&self, _home: &Home, _id: &str) -> Option<Arc<str>> {
        None
    }

    /// What a process of it is, by its program and its command line, where its processes show which sessions they run.
    fn role(&self) -> Option<RoleOf> {
        None
    }

    /// Completes what a process of it shows: which sessions it claims, and which logs it has open.
    #[cfg(target_os = "linux")]
    fn complete(&self, _runner: &mut Runner) {}

    /// Scans its processes for the sessions that they have open, if its sessions' own files do not tell.
    fn scanner(&self) -> Option<Box<dyn SessionScanner>> {
        None
    }

    /// The sessions that the files of processes in a home name, whether they have a log or not.
    fn claimed(&self, _home: &Home) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// The session that this process says that it runs, in a file of its own.
    fn named_by(&self, _home: &Home, _pid: u32) -> Option<Arc<str>> {
        None
    }

    /// The sessions that the terminals of a home note as open.
    fn noted(&self, _home: &Home) -> Noted {
        Noted::new()
    }

    /// The process for whose sake it takes a session for one in use, whether that owns it or not.
    fn process_in_use(&self, _home: &Home, _id: &str) -> Option<u32> {
        None
    }

    /// The owner of a session now, determined from scratch. A process that does not hold the session yet does not count as
    /// its owner; a missing session has none. `names`: further programs that count as this agent.
    fn owner_now(&self, _home: &Home, _id: &str, _names: &[String], _now: Time) -> Owner {
        Owner::Never
    }

    /// The agent's program: the one that the settings name, or else the one that is found.
    ///
    /// # Errors
    /// What was tried, and what to do.
    async fn program(&self, _named: Option<&Path>) -> Result<PathBuf, String> {
        // The settings name the first agent's.
        starting::program(self.profile(), std::env::var_os("PATH").as_deref(), user_home().as_deref())
    }

    /// What a terminal runs to resume a session with this program.
    ///
    /// # Errors
    /// Why it cannot.
    fn resume(&self, _program: &Path, _id: &str) -> Result<Vec<OsString>, &'static str> {
        Err("it cannot be resumed")
    }

    /// The last prompt of a session that the agent did not give itself.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn last_prompt(&self, _home: &Home, _id: &str) -> io::Result<LastPrompt> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether the instructions that a session's own program gave it are known, for a server of our own.
    fn has_instructions(&self, _home: &Home, _id: &str) -> bool {
        false
    }

    /// Whether its sessions are known by their own hook's reports alone.
    fn is_by_reports(&self) -> bool {
        false
    }

    /// How its sessions are acted on. `None`: nothing but their processes can be.
    fn control(&self) -> Option<&dyn Control> {
        None
    }

    /// What installs the bridge into its terminals, if there is one.
    fn installer(&self, _project: &Folders) -> Option<Box<dyn Installer>> {
        None
    }
}

/// Scans all processes for the sessions of one agent that they have open. Remembers what it has read of them.
pub trait SessionScanner: fmt::Debug + Send {
    /// Begins a scan anew.
    fn begin(&mut self);

    /// Continues the scan until the deadline `until`. Returns its result once it is complete. `names` are further programs
    /// that count as the agent, `now` is the wall clock.
    fn advance(
        &mut self,
        homes: &[&Home],
        names: &[String],
        now: Time,
        until: Option<Instant>,
    ) -> Option<Vec<OpenSession>>;

    /// Removes a process that has ended from the scan.
    fn forget(&mut self, _pid: u32) {}

    /// Whether processes that wrote to their logs may have opened or closed a session since the last scan. Reads what is new
    /// in the logs of known processes, which takes microseconds, until the deadline `until`. An unknown process needs a scan.
    fn may_differ(&mut self, _written: &[u32], _until: Option<Instant>) -> bool {
        true
    }

    /// Has processes that were not visible looked for again.
    fn forget_unseen(&mut self) {}
}

impl dyn Adapter {
    /// The agent, as the core knows it.
    pub fn agent(&self) -> Agent {
        Agent::Known(&self.profile().names)
    }

    /// Its name, as settings and JSON have it.
    pub fn name(&self) -> &'static str {
        self.profile().names.name
    }
}

impl PartialEq for dyn Adapter {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Adapter {}

impl fmt::Debug for dyn Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The agent whose home this is, by what is in it. The later ones are asked first: what tells of an earlier one may be in a
/// later one's home, too, such as a folder `sessions`.
pub(crate) fn of_home(home: &Path) -> &'static dyn Adapter {
    let recognised = ADAPTERS.iter().skip(1).rfind(|adapter| (adapter.profile().is_home)(home));
    *recognised.unwrap_or(&FIRST)
}

/// The agent of this name: a known one, or one that reports name so. `None` if nothing of the name is visible.
pub fn agent_named(name: &str) -> Option<Agent> {
    let known = ADAPTERS.iter().find(|adapter| !adapter.profile().home.is_empty() && adapter.name() == name);
    known.map(|adapter| adapter.agent()).or_else(|| Agent::reported(name))
}

/// Whose the log is that begins so, and how it is written. `None` if that does not tell. The first agent is asked first.
pub fn log_of(start: &[u8]) -> Option<(&'static dyn Adapter, &'static LogFormat)> {
    let mut log_formats = ADAPTERS.iter().filter_map(|adapter| Some((*adapter, adapter.log_format()?)));
    log_formats.find(|(_, log_format)| (log_format.is_start)(start))
}
