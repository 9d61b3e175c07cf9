//! A home: a folder in which an agent keeps its sessions.

use super::adapter::{Adapter, FIRST, of_home};
use super::channel::Service;
use super::control::Control;
use super::copilot::prompt::LastPrompt;
use super::listing::{Listing, QuickScan};
use super::listing_cache::ListingCache;
use super::openings::Noted;
use super::reader::{Reader, SessionReader};
use super::reading::LogPaths;
use super::reported;
use super::runners::shares;
use super::starting;
use pilotlight_core::agent::Agent;
use pilotlight_core::owner::Owner;
use pilotlight_core::session::{Observed, Session};
use pilotlight_core::time::Time;
use pilotlight_system::paths::user_home;
use pilotlight_system::watcher::WatchPlan;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder in which an agent keeps its sessions.
#[derive(Clone, Debug)]
pub struct Home {
    adapter: &'static dyn Adapter,
    known_by: KnownBy,
    folder: PathBuf,
    /// The folder of the home that holds its sessions.
    root: PathBuf,
    /// The names of the agents whose reports are read, if only theirs are.
    only: Option<Arc<[Box<str>]>>,
    /// The program that is started in place of the agent's.
    stand_in: Option<Arc<Path>>,
}

/// How it is known which agent a home is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownBy {
    /// It is where that agent has its home.
    Place,
    /// What is in it: something else may be later.
    Content,
    /// Nothing yet: it was not touched.
    Nothing,
}

impl PartialEq for Home {
    fn eq(&self, other: &Self) -> bool {
        self.adapter == other.adapter && self.folder == other.folder
    }
}

impl Eq for Home {}

impl Home {
    /// This home, of whichever agent it is by what is in it.
    pub fn at(folder: &Path) -> Self {
        Self::known(KnownBy::Content, of_home(folder), folder.to_owned())
    }

    /// The home of this agent, whatever is in it.
    pub fn of(adapter: &'static dyn Adapter, folder: PathBuf) -> Self {
        Self::known(KnownBy::Place, adapter, folder)
    }

    /// A home that cannot be touched now: the first agent's until [`recognized_anew`](Self::recognized_anew).
    pub(crate) fn unread(folder: PathBuf) -> Self {
        Self::known(KnownBy::Nothing, FIRST, folder)
    }

    fn known(known_by: KnownBy, adapter: &'static dyn Adapter, folder: PathBuf) -> Self {
        Self { adapter, known_by, root: folder.join(adapter.profile().sessions), folder, only: None, stand_in: None }
    }

    /// The same, where only the reports of agents with these names are read.
    #[must_use]
    pub fn limited_to(self, names: &[Box<str>]) -> Self {
        Self { only: Some(names.into()), ..self }
    }

    /// The names of the agents whose reports are read, if only theirs are.
    pub(crate) fn only(&self) -> Option<Arc<[Box<str>]>> {
        self.only.clone()
    }

    /// The same, where this program is started in place of the agent's.
    #[must_use]
    pub fn with_stand_in(self, program: &Path) -> Self {
        Self { stand_in: Some(program.into()), ..self }
    }

    /// The same home, if what is in it now is another agent's.
    pub fn recognized_anew(&self) -> Option<Self> {
        let now = (self.known_by != KnownBy::Place).then(|| Self::at(&self.folder))?;
        (now != *self).then_some(now)
    }

    /// Whether this is the home that `wanted` leads to.
    pub fn is(&self, wanted: &Self) -> bool {
        self == wanted || wanted.known_by == KnownBy::Nothing && self.folder == wanted.folder
    }

    /// The agent.
    pub fn adapter(&self) -> &'static dyn Adapter {
        self.adapter
    }

    /// The agent, as the core knows it.
    pub fn agent(&self) -> Agent {
        self.adapter.agent()
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether nothing is where the home would be. `false` where that cannot be found out.
    pub fn is_absent(&self) -> bool {
        self.folder.try_exists().is_ok_and(|exists| !exists)
    }

    /// The folder of the home that holds its sessions.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where one of its sessions is: its folder, or its file.
    pub fn path(&self, id: &str) -> PathBuf {
        self.adapter.path(self, id)
    }

    /// Whether its sessions are known by their own hook's reports alone.
    pub fn is_by_reports(&self) -> bool {
        self.adapter.is_by_reports()
    }

    /// Whether its session of this id is one that another of these sources reads itself.
    pub fn is_read_by<'a>(&self, id: &str, mut others: impl Iterator<Item = &'a Self>) -> bool {
        self.is_by_reports() && others.any(|other| !other.is_by_reports() && other.has(reported::given_id(id)))
    }

    /// Whether another home of its agent has the log of this session, too, by a link or a mount: they are one session. `log`:
    /// where it is, if that is known.
    pub fn shares(&self, other: &Self, id: &str, log: Option<&Path>) -> bool {
        let has_log = |log: &Path| shares(&other.root, &self.root, log);
        self.adapter == other.adapter
            && !self.is_by_reports()
            && log.map_or_else(|| self.shares_all(other) || has_log(&self.log(id)), has_log)
    }

    /// Whether the logs of another home of its agent are in the same folder.
    pub fn shares_all(&self, other: &Self) -> bool {
        self.adapter == other.adapter && !self.is_by_reports() && shares(&other.root, &self.root, &self.root)
    }

    /// The sessions that the files of processes in this home name, whether they have a log or not.
    pub fn claimed(&self) -> Vec<Arc<str>> {
        self.adapter.claimed(self)
    }

    /// Whether it has a session of this id.
    pub fn has(&self, id: &str) -> bool {
        self.adapter.has(self, id)
    }

    /// The session that this one is a part of: a sub-agent has a log of its own, but is no session.
    pub fn whole(&self, id: &str) -> Option<Arc<str>> {
        self.adapter.whole(self, id)
    }

    /// The log of one of its sessions.
    pub fn log(&self, id: &str) -> PathBuf {
        self.adapter.log(self, id)
    }

    /// What there is to watch in it.
    pub fn watch_plan(&self) -> &'static WatchPlan {
        &self.adapter.profile().watch_plan
    }

    /// Lists the ids of its sessions.
    ///
    /// # Errors
    /// Where the folder cannot be listed.
    pub fn list(&self) -> io::Result<Listing> {
        self.adapter.list(self, ListingCache::default())
    }

    /// The same for whoever lists it again and again: what is read is noted, where that can spare the next listing.
    ///
    /// # Errors
    /// Where the folder cannot be listed.
    pub fn list_for_good(&self) -> io::Result<Listing> {
        self.adapter.list(self, ListingCache::kept())
    }

    /// Whether it lists what is behind links among its folders.
    pub fn follows_links(&self) -> bool {
        self.adapter.follows_links()
    }

    /// Where the logs of its sessions are, as far as their ids do not tell.
    pub fn logs(&self) -> LogPaths {
        // What cannot be listed is looked for one by one.
        let listed = self.adapter.lists_logs().then(|| self.list());
        listed.and_then(Result::ok).map(|listing| listing.logs()).unwrap_or_default()
    }

    /// Tells fast which of its sessions are history: of many that a listing found, with where it found their logs, or of few.
    pub fn quick_scan(&self, listed: Option<&LogPaths>) -> Box<dyn QuickScan + '_> {
        self.adapter.quick_scan(self, listed)
    }

    /// A reader for one of its sessions, which has read nothing yet.
    pub fn reader(&self, id: &str) -> Reader {
        self.adapter.open(self, id, self.path(id))
    }

    /// A reader for one of its sessions, which has read nothing yet, where a listing found these logs.
    pub fn reader_among(&self, id: &str, logs: &LogPaths) -> Reader {
        self.adapter.open(self, id, logs.get(id).cloned().unwrap_or_else(|| self.path(id)))
    }

    /// One of its sessions, of which nothing else is known yet.
    pub fn session(&self, id: &str) -> Session {
        Session::new(self.agent(), id)
    }

    /// How its sessions are acted on, if its agent can be told something.
    pub fn control(&self) -> Option<&'static dyn Control> {
        self.adapter.control()
    }

    /// The service that runs one of its sessions, if its owner is one that takes orders.
    pub fn service(&self, id: &str, reader: &dyn SessionReader, observed: &Observed) -> Option<Arc<dyn Service>> {
        self.control()?.service(reader.owner_home().unwrap_or(&self.folder), id, observed)
    }

    /// The sessions that its terminals note as open.
    pub fn noted(&self) -> Noted {
        self.adapter.noted(self)
    }

    /// The last prompt of one of its sessions that the agent did not give itself.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn last_prompt(&self, id: &str) -> io::Result<LastPrompt> {
        self.adapter.last_prompt(self, id)
    }

    /// Whether the instructions that a session's own program gave it are known, for a server of our own.
    pub fn has_instructions(&self, id: &str) -> bool {
        self.adapter.has_instructions(self, id)
    }

    /// The agent's program: the one that the settings name, or else the one that is found.
    ///
    /// # Errors
    /// What was tried, and what to do.
    pub async fn program(&self, named: Option<&Path>) -> Result<PathBuf, String> {
        if let Some(program) = &self.stand_in {
            return Ok(program.to_path_buf());
        }
        self.adapter.program(named).await
    }

    /// The session that this process says that it runs, in a file of its own. `None` if it says nothing, or its agent's
    /// processes do not.
    pub fn named_by(&self, pid: u32) -> Option<Arc<str>> {
        self.adapter.named_by(self, pid)
    }

    /// What a terminal runs to resume one of its sessions with this program.
    ///
    /// # Errors
    /// Why the session cannot be named on a command line.
    pub fn resume(&self, program: &Path, id: &str) -> Result<Resume, &'static str> {
        let command = self.adapter.resume(program, id)?;
        let (profile, user_home) = (self.adapter.profile(), user_home());
        let inherited = std::env::var_os(profile.home_variable);
        let env = starting::env(profile, &self.folder, user_home.as_deref(), inherited.as_deref());
        Ok(Resume { command, env })
    }

    /// The process for whose sake the agent takes one of its sessions for one in use, whether it owns it or not.
    pub fn process_in_use(&self, id: &str) -> Option<u32> {
        self.adapter.process_in_use(self, id)
    }

    /// The owner of one of its sessions now, determined from scratch. A process that does not hold the session yet does
    /// not count as its owner; a missing session has none.
    pub fn owner_now(&self, id: &str, names: &[String], now: Time) -> Owner {
        self.adapter.owner_now(self, id, names, now)
    }
}

/// The homes of one agent.
pub fn homes_of<'a>(agent: &'static dyn Adapter, homes: impl IntoIterator<Item = &'a Home>) -> Vec<PathBuf> {
    homes.into_iter().filter(|home| home.adapter == agent).map(|home| home.folder.clone()).collect()
}

/// What a terminal runs to resume a session.
pub struct Resume {
    pub command: Vec<OsString>,
    /// The variables that it needs.
    pub env: Vec<(OsString, OsString)>,
}

/// The folders of what hooks report, whether they exist or not.
pub fn report_homes() -> Vec<Home> {
    reported::homes().into_iter().map(|home| Home::of(&reported::Reported, home)).collect()
}

/// Whether some hook reports a session of an agent with this name, which is not over. `now` is the wall clock.
pub fn is_reported(name: &str, now: Time) -> bool {
    reported::homes().iter().any(|home| reported::agents(home, now).any(|agent| *agent == *name))
}

/// How many sessions are reported to such a folder, and not over. `now` is the wall clock.
pub fn reported_sessions(reports: &Home, now: Time) -> usize {
    reported::agents(&reports.folder, now).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_place_of_a_session_is_none() {
        let scratch = tempfile::tempdir().unwrap();
        let home = Home::at(scratch.path());
        std::fs::create_dir_all(home.path("one")).unwrap();
        std::fs::write(home.path("two"), "").unwrap();
        assert_eq!(["one", "two", "three"].map(|id| home.has(id)), [true, false, false]);
    }
}
