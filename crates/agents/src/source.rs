//! A source of sessions: an agent, and one of its homes. Lists its sessions, and makes their readers.

use super::claude_code;
use super::codex::resume as codex_resume;
use super::codex::store as threads;
use super::codex::thread::Thread;
use super::copilot::opened;
use super::copilot::program::{VERSION_TIMEOUT_LONG, find_program};
use super::copilot::prompt::{self, LastPrompt};
use super::copilot::resume;
use super::copilot::store::{self, Folder, Root};
use super::listing::{Glimpses, SessionIds};
use super::openings::Noted;
use super::reader::Reader;
use super::reading::LogPaths;
use super::reported;
use super::runners::shares;
use super::stamps::Stamps;
use super::starting;
#[cfg(test)]
use super::sundial;
use super::wing::Wing;
use pilotlight_core::agent::Agent;
use pilotlight_core::owner::Owner;
use pilotlight_core::session::Session;
use pilotlight_core::time::Time;
use pilotlight_system::paths::user_home;
use pilotlight_system::watcher::WatchPlan;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An agent, and one of its homes.
#[derive(Clone, Debug)]
pub struct Source {
    wing: Wing,
    told: ToldBy,
    home: PathBuf,
    /// The folder of the home that holds its sessions.
    root: PathBuf,
    /// The names of the agents whose reports are read, if only theirs are.
    only: Option<Arc<[Box<str>]>>,
    /// The program that is started in place of the agent's.
    stand_in: Option<Arc<Path>>,
}

/// How it is known which agent a home is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToldBy {
    /// It is where that agent has its home.
    Place,
    /// What is in it: something else may be later.
    Content,
    /// Nothing yet: it was not touched.
    Nothing,
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        (self.wing, &self.home) == (other.wing, &other.home)
    }
}

impl Eq for Source {}

impl Source {
    /// This home, of whichever agent it is by what is in it.
    pub fn at(home: &Path) -> Self {
        Self::told_by(ToldBy::Content, Wing::of_home(home), home.to_owned())
    }

    /// The home of this agent, whatever is in it.
    pub fn of(wing: Wing, home: PathBuf) -> Self {
        Self::told_by(ToldBy::Place, wing, home)
    }

    /// A home that cannot be touched now: the first agent's until [`told_anew`](Self::told_anew).
    pub(crate) fn untold(home: PathBuf) -> Self {
        Self::told_by(ToldBy::Nothing, Wing::FIRST, home)
    }

    fn told_by(told: ToldBy, wing: Wing, home: PathBuf) -> Self {
        Self { wing, told, root: home.join(wing.profile().sessions), home, only: None, stand_in: None }
    }

    /// The same, where only the reports of agents with these names are read.
    #[must_use]
    pub fn limited_to(self, names: &[Box<str>]) -> Self {
        Self { only: Some(names.into()), ..self }
    }

    /// The same, where this program is started in place of the agent's.
    #[must_use]
    pub(crate) fn with_stand_in(self, program: &Path) -> Self {
        Self { stand_in: Some(program.into()), ..self }
    }

    /// The same home, if what is in it now is another agent's.
    pub fn told_anew(&self) -> Option<Self> {
        let told = (self.told != ToldBy::Place).then(|| Self::at(&self.home))?;
        (told != *self).then_some(told)
    }

    /// Whether this is the source that `wanted` leads to.
    pub fn is(&self, wanted: &Self) -> bool {
        self == wanted || wanted.told == ToldBy::Nothing && self.home == wanted.home
    }

    /// The agent.
    pub const fn wing(&self) -> Wing {
        self.wing
    }

    /// The agent, as the core knows it.
    pub const fn agent(&self) -> Agent {
        self.wing.agent()
    }

    /// The home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Whether nothing is where the home would be. `false` where that cannot be found out.
    pub fn is_absent(&self) -> bool {
        self.home.try_exists().is_ok_and(|exists| !exists)
    }

    /// The folder of the home that holds its sessions.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where one of its sessions is: its folder, or its file.
    pub fn path(&self, id: &str) -> PathBuf {
        match self.wing {
            Wing::Copilot => self.root.join(id),
            Wing::ClaudeCode => claude_code::store::path(&self.home, &self.root, id),
            Wing::Reported => reported::path(&self.root, id),
            Wing::Codex => threads::path(&self.root, id),
            #[cfg(test)]
            Wing::Sundial => sundial::path(&self.root, id),
        }
    }

    /// Whether its sessions are known by their own hook's reports alone.
    pub fn is_by_reports(&self) -> bool {
        self.wing == Wing::Reported
    }

    /// Whether its session of this id is one that another of these sources reads itself.
    pub fn is_read_by<'a>(&self, id: &str, mut others: impl Iterator<Item = &'a Self>) -> bool {
        self.is_by_reports() && others.any(|other| !other.is_by_reports() && other.has(reported::given_id(id)))
    }

    /// Whether another home of its agent has the log of this session, too, by a link or a mount: they are one session. `log`:
    /// where it is, if that is known.
    pub fn shares(&self, other: &Self, id: &str, log: Option<&Path>) -> bool {
        let has_log = |log: &Path| shares(&other.root, &self.root, log);
        self.wing == other.wing
            && !self.is_by_reports()
            && log.map_or_else(|| self.shares_all(other) || has_log(&self.log(id)), has_log)
    }

    /// Whether the logs of another home of its agent are in the same folder.
    pub fn shares_all(&self, other: &Self) -> bool {
        self.wing == other.wing && !self.is_by_reports() && shares(&other.root, &self.root, &self.root)
    }

    /// The sessions that the files of processes in this home name, whether they have a log or not.
    pub fn claimed(&self) -> Vec<Arc<str>> {
        match self.wing {
            Wing::ClaudeCode => claude_code::store::claimed(&self.home),
            Wing::Codex => threads::claimed(&self.home),
            Wing::Copilot | Wing::Reported => Vec::new(),
            #[cfg(test)]
            Wing::Sundial => Vec::new(),
        }
    }

    /// Whether it has a session of this id.
    pub fn has(&self, id: &str) -> bool {
        match self.wing {
            Wing::Copilot => self.path(id).is_dir(),
            Wing::ClaudeCode => claude_code::store::has(&self.home, &self.root, id),
            Wing::Reported | Wing::Codex => self.path(id).is_file(),
            #[cfg(test)]
            Wing::Sundial => self.path(id).is_file(),
        }
    }

    /// The session that this one is a part of: a sub-agent has a log of its own, but is no session.
    pub fn whole(&self, id: &str) -> Option<Arc<str>> {
        match self.wing {
            Wing::Copilot | Wing::ClaudeCode | Wing::Reported => None,
            Wing::Codex => threads::whole(&self.root, id),
            #[cfg(test)]
            Wing::Sundial => None,
        }
    }

    /// The log of one of its sessions.
    pub fn log(&self, id: &str) -> PathBuf {
        match self.wing {
            Wing::Copilot => self.path(id).join(store::LOG),
            Wing::ClaudeCode | Wing::Reported | Wing::Codex => self.path(id),
            #[cfg(test)]
            Wing::Sundial => self.path(id),
        }
    }

    /// What there is to watch in it.
    pub const fn watch_plan(&self) -> &'static WatchPlan {
        &self.wing.profile().watch_plan
    }

    /// Lists the ids of its sessions.
    ///
    /// # Errors
    /// Where the folder cannot be listed.
    pub fn list(&self) -> io::Result<SessionIds> {
        self.list_noting(Stamps::default())
    }

    /// The same for whoever lists it again and again: what is read is noted, where that can spare the next listing.
    ///
    /// # Errors
    /// Where the folder cannot be listed.
    pub fn list_for_good(&self) -> io::Result<SessionIds> {
        self.list_noting(Stamps::kept())
    }

    /// Whether it lists what is behind links among its folders.
    pub const fn follows_links(&self) -> bool {
        match self.wing {
            Wing::Copilot | Wing::Reported => false,
            Wing::ClaudeCode | Wing::Codex => true,
            #[cfg(test)]
            Wing::Sundial => false,
        }
    }

    fn list_noting(&self, stamps: Stamps) -> io::Result<SessionIds> {
        match self.wing {
            Wing::Copilot => store::session_ids(&self.root).map(SessionIds::Copilot),
            Wing::ClaudeCode => claude_code::store::list(&self.home, &self.root, stamps).map(SessionIds::from),
            Wing::Reported => reported::list(&self.root).map(SessionIds::from),
            Wing::Codex => threads::list(&self.root, stamps).map(SessionIds::from),
            #[cfg(test)]
            Wing::Sundial => sundial::list(&self.root).map(SessionIds::from),
        }
    }

    /// Where the logs of its sessions are, as far as their ids do not tell.
    pub fn logs(&self) -> LogPaths {
        match self.wing {
            Wing::Copilot | Wing::Reported => LogPaths::default(),
            // What cannot be listed is looked for one by one.
            Wing::ClaudeCode | Wing::Codex => self.list().map(|ids| ids.logs()).unwrap_or_default(),
            #[cfg(test)]
            Wing::Sundial => LogPaths::default(),
        }
    }

    /// Takes glimpses of its sessions: of many that a listing found, with where it found their logs, or of few.
    pub fn glimpses(&self, listed: Option<&LogPaths>) -> Glimpses<'_> {
        match self.wing {
            Wing::Copilot if listed.is_some() => Glimpses::Copilot(Root::open(&self.root)),
            Wing::Copilot => Glimpses::Copilot(Root::at(&self.root)),
            Wing::ClaudeCode => Glimpses::ClaudeCode(claude_code::store::Glimpses::new(&self.home, &self.root, listed)),
            Wing::Reported => Glimpses::None,
            Wing::Codex => Glimpses::Codex(threads::Glimpses::new(&self.root, listed)),
            #[cfg(test)]
            Wing::Sundial => Glimpses::None,
        }
    }

    /// A reader for one of its sessions, which has read nothing yet.
    pub fn reader(&self, id: &str) -> Reader {
        self.reader_at(id, || self.path(id))
    }

    /// A reader for one of its sessions, which has read nothing yet, where a listing found these logs.
    pub fn reader_among(&self, id: &str, logs: &LogPaths) -> Reader {
        self.reader_at(id, || logs.get(id).cloned().unwrap_or_else(|| self.path(id)))
    }

    fn reader_at(&self, id: &str, log: impl FnOnce() -> PathBuf) -> Reader {
        match self.wing {
            Wing::Copilot => Reader::Copilot(Box::new(Folder::new(&self.root, id))),
            Wing::ClaudeCode => {
                Reader::ClaudeCode(Box::new(claude_code::session::Session::new(&self.home, &self.root, id, log())))
            }
            Wing::Reported => Reader::Reported(reported::Told::new(self.path(id), self.only.clone())),
            Wing::Codex => Reader::Codex(Box::new(Thread::new(&self.root, id, log()))),
            #[cfg(test)]
            Wing::Sundial => Reader::Sundial(sundial::Dial::new(&self.root, id)),
        }
    }

    /// One of its sessions, of which nothing else is known yet.
    pub fn session(&self, id: &str) -> Session {
        Session::new(self.agent(), id)
    }

    /// The sessions that its terminals note as open.
    pub fn noted(&self) -> Noted {
        match self.wing {
            Wing::Copilot => opened::noted(&self.home),
            Wing::ClaudeCode | Wing::Reported | Wing::Codex => Noted::new(),
            #[cfg(test)]
            Wing::Sundial => Noted::new(),
        }
    }

    /// The last prompt of one of its sessions that the agent did not give itself.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn last_prompt(&self, id: &str) -> io::Result<LastPrompt> {
        match self.wing {
            Wing::Copilot => prompt::last_prompt(&self.log(id)),
            Wing::ClaudeCode | Wing::Reported | Wing::Codex => Err(io::ErrorKind::Unsupported.into()),
            #[cfg(test)]
            Wing::Sundial => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether the instructions that a session's own program gave it are known, for a server of our own.
    pub fn has_instructions(&self, id: &str) -> bool {
        match self.wing {
            Wing::Copilot => prompt::system_message(&self.log(id)).is_ok(),
            Wing::ClaudeCode | Wing::Reported | Wing::Codex => false,
            #[cfg(test)]
            Wing::Sundial => false,
        }
    }

    /// The agent's program: the one that the settings name, or else the one that is found.
    ///
    /// # Errors
    /// What was tried, and what to do.
    pub async fn program(&self, named: Option<&Path>) -> Result<PathBuf, String> {
        if let Some(program) = &self.stand_in {
            return Ok(program.to_path_buf());
        }
        match self.wing {
            Wing::Copilot => find_program(named, VERSION_TIMEOUT_LONG).await,
            // The settings name the first agent's.
            Wing::ClaudeCode | Wing::Codex => {
                starting::program(self.wing.profile(), std::env::var_os("PATH").as_deref(), user_home().as_deref())
            }
            Wing::Reported => Err("only its hook is known".to_owned()),
            #[cfg(test)]
            Wing::Sundial => Err("it cannot be started".to_owned()),
        }
    }

    /// The session that this process says that it runs, in a file of its own. `None` if it says nothing, or its agent's
    /// processes do not.
    pub fn named_by(&self, pid: u32) -> Option<Arc<str>> {
        match self.wing {
            Wing::ClaudeCode => claude_code::store::named_by(&self.home, pid),
            Wing::Copilot | Wing::Codex | Wing::Reported => None,
            #[cfg(test)]
            Wing::Sundial => None,
        }
    }

    /// What a terminal runs to resume one of its sessions with this program.
    ///
    /// # Errors
    /// Why the session cannot be named on a command line.
    pub fn resume(&self, program: &Path, id: &str) -> Result<Resume, &'static str> {
        let (command, not_its) = match self.wing {
            Wing::Copilot => (resume::command(program, id), "its id does not have the form of Copilot's ids"),
            Wing::ClaudeCode => {
                (claude_code::resume::command(program, id), "its id does not have the form of Claude Code's ids")
            }
            Wing::Codex => (codex_resume::command(program, id), "its id does not have the form of Codex's ids"),
            Wing::Reported => return Err("only its hook is known"),
            #[cfg(test)]
            Wing::Sundial => return Err("it cannot be resumed"),
        };
        let (profile, user_home) = (self.wing.profile(), user_home());
        let inherited = std::env::var_os(profile.home_variable);
        let env = starting::env(profile, &self.home, user_home.as_deref(), inherited.as_deref());
        Ok(Resume { command: command.ok_or(not_its)?, env })
    }

    /// The process for whose sake the agent takes one of its sessions for one in use, whether it owns it or not.
    pub fn process_in_use(&self, id: &str) -> Option<u32> {
        match self.wing {
            Wing::Copilot => store::lock_pids_in_use(&self.path(id)).first().copied(),
            Wing::ClaudeCode | Wing::Reported | Wing::Codex => None,
            #[cfg(test)]
            Wing::Sundial => None,
        }
    }

    /// The owner of one of its sessions now, determined from scratch. A process that does not hold the session yet does
    /// not count as its owner; a missing session has none.
    pub fn owner_now(&self, id: &str, names: &[String], now: Time) -> Owner {
        match self.wing {
            Wing::Copilot => store::owner_now(&self.root, id, names, now),
            Wing::ClaudeCode => claude_code::session::owner_now(&self.home, &self.root, id, now),
            Wing::Reported => Owner::Never,
            Wing::Codex => threads::owner_now(&self.root, id, now),
            #[cfg(test)]
            Wing::Sundial => Owner::Never,
        }
    }
}

/// The homes of the agent whose sessions servers and bridges reach.
pub fn reached<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Vec<PathBuf> {
    let its = |source: &&Source| match source.wing {
        Wing::Copilot => true,
        Wing::ClaudeCode | Wing::Codex | Wing::Reported => false,
        #[cfg(test)]
        Wing::Sundial => false,
    };
    sources.into_iter().filter(its).map(|source| source.home.clone()).collect()
}

/// What a terminal runs to resume a session.
pub struct Resume {
    pub command: Vec<OsString>,
    /// The variables that it needs.
    pub env: Vec<(OsString, OsString)>,
}

/// The folders of what hooks report, whether they exist or not.
pub fn report_homes() -> Vec<Source> {
    reported::homes().into_iter().map(|home| Source::of(Wing::Reported, home)).collect()
}

/// Whether some hook reports a session of an agent with this name, which is not over. `now` is the wall clock.
pub fn is_reported(name: &str, now: Time) -> bool {
    reported::homes().iter().any(|home| reported::agents(home, now).any(|agent| *agent == *name))
}

/// How many sessions are reported to such a folder, and not over. `now` is the wall clock.
pub fn reported_sessions(reports: &Source, now: Time) -> usize {
    reported::agents(&reports.home, now).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_place_of_a_session_is_none() {
        let scratch = tempfile::tempdir().unwrap();
        let source = Source::at(scratch.path());
        std::fs::create_dir_all(source.path("one")).unwrap();
        std::fs::write(source.path("two"), "").unwrap();
        assert_eq!(["one", "two", "three"].map(|id| source.has(id)), [true, false, false]);
    }
}
