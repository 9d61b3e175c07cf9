//! Sessions that a live Copilot has open without a lock.
//!
//! A terminal or server that resumes a session makes no lock and writes no line before the first prompt. Resuming such
//! a session a second time would make two processes write one log. So the processes themselves are inspected;
//! docs/owners.md says how each of these sources was found:
//!
//! - **The process's own log** (`process-<time>-<pid>.log`) has a line for each session that the process loads or
//!   closes, whether it was named on the command line, chosen from a list or loaded for a client of a server. Each scan
//!   reads on from where the last one ended.
//! - **The command line**: `--resume=<id>` in its forms. It is available before the log, and where no log is written.
//! - **`open-sessions-state.json`** of the home, where neither of the two gives an answer: the sessions opened there
//!   since the process started. The file outlives its process, so an entry alone means nothing.
//!
//! A scan takes a few milliseconds on a machine with some hundred processes, and runs only when it matters: before an
//! order that could create a second owner, when a process ended, when `open-sessions-state.json` changed, and with the
//! rescan. Unless an order waits for it, it runs in steps: there may be hundreds of Copilots, and their logs are of any
//! length.

mod arguments;
mod former;
mod log;
#[cfg(test)]
mod tests;

use super::running::{Program, Search};
use crate::core::owner::Owner;
use crate::core::time::{Span, Time};
use crate::system::mounts::Mounts;
use crate::system::plain_file::{self, Links};
use crate::system::process::SLACK;
use log::Log;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(super) use former::former_owner;
pub(crate) use log::{LOGS, log_pid};

/// The file of a home in which Copilot's terminals record the sessions they have open.
pub(crate) const OPEN_SESSIONS: &str = "open-sessions-state.json";
/// How much of [`OPEN_SESSIONS`] is read, in bytes.
const OPEN_SESSIONS_MAX: u64 = 1 << 20;
/// How long after its start a Copilot that was asked to resume an unnamed session may be about to open any session. It
/// logs which one within a second; a busy machine takes longer.
const STARTING: Span = Span::seconds(15);

/// A session that a live process has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenSession {
    pub pid: u32,
    /// The folder that holds the session folders.
    root: PathBuf,
    id: Opened,
    started: Option<Time>,
    /// Whether only the command line identifies the process as a Copilot.
    hidden: bool,
}

/// What a process has open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Opened {
    /// One session, but it is not known yet which.
    Some,
    /// Maybe sessions, of which it leaves no trace. It works in this folder; `None` if that cannot be read.
    Untold(Option<PathBuf>),
    /// The session with this id.
    Session(Box<str>),
}

impl Opened {
    fn id(&self) -> Option<&str> {
        match self {
            Self::Session(id) => Some(id),
            Self::Some | Self::Untold(_) => None,
        }
    }
}

/// The result of a scan, sorted by session id.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenSessions(Vec<OpenSession>);

/// Scans processes, and remembers how far it has read their logs.
#[derive(Debug, Default)]
pub(crate) struct OpenScanner {
    /// By process id and start token, which tells apart processes with the same id.
    known: HashMap<(u32, u64), KnownProcess>,
    /// Processes that write logs but are not visible here: those of a container.
    unseen: HashSet<u32>,
}

/// A scan of all processes in progress: there may be hundreds of Copilots, each with a log of megabytes.
#[derive(Debug)]
pub(crate) struct OpenScan {
    search: Search,
    /// Programs that were found and are still to be inspected; `None` until the search is complete.
    found: Option<VecDeque<Program>>,
    openings: Vec<OpenSession>,
}

/// What is remembered of a process.
#[derive(Debug, Default)]
struct KnownProcess {
    log: Log,
    /// Its start time, to the second, as first computed: counted back from now, the result varies.
    started: Option<Time>,
}

impl OpenSession {
    /// The owner of the session, by this evidence.
    pub(crate) fn owner(&self) -> Owner {
        let (pid, started) = (self.pid, self.started);
        if self.hidden { Owner::Unknown { pid } } else { Owner::Opened { pid, started } }
    }
}

impl OpenSessions {
    #[cfg(test)]
    pub(crate) const NONE: &'static Self = &Self(Vec::new());

    fn new(mut found: Vec<OpenSession>) -> Self {
        found.sort_by(|one, other| one.id.cmp(&other.id));
        Self(found)
    }

    #[cfg(test)]
    pub(crate) fn all(&self) -> &[OpenSession] {
        &self.0
    }

    /// The process that has this session open. A binary search, because every folder is looked up, of which there may
    /// be tens of thousands.
    pub(crate) fn of(&self, root: &Path, id: &str) -> Option<&OpenSession> {
        let from = self.0.partition_point(|opening| opening.id.id() < Some(id));
        let mut of_id = self.0[from..].iter().take_while(|opening| opening.id.id() == Some(id));
        of_id.find(|opening| *opening.root == *root)
    }

    /// The process that has this session open, or may be about to open it.
    pub(crate) fn opener(&self, root: &Path, id: &str) -> Option<&OpenSession> {
        self.of(root, id).or_else(|| self.0.iter().find(|opening| opening.root == root && opening.id == Opened::Some))
    }

    /// The processes that may have a session open that works in this folder, and leave no trace of what they have open:
    /// those in the same folder, above or below.
    pub(crate) fn suspects(&self, root: &Path, folder: Option<&Path>) -> impl Iterator<Item = u32> {
        let is_near = move |theirs: &Option<PathBuf>| match (theirs, folder) {
            (Some(theirs), Some(ours)) if theirs.parent().is_some() => {
                theirs.starts_with(ours) || ours.starts_with(theirs)
            }
            (Some(_), Some(_)) => false,
            _ => true,
        };
        let may_have = move |opening: &&OpenSession| matches!(&opening.id, Opened::Untold(theirs) if is_near(theirs));
        self.0.iter().filter(move |opening| opening.root == root).filter(may_have).map(|opening| opening.pid)
    }

    /// Removes the sessions of a process that has ended.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.0.retain(|opening| opening.pid != pid);
    }

    /// The sessions whose entries differ between these and `others`: the folder that holds the session folders, and the
    /// session's id.
    pub(crate) fn differing<'a>(&'a self, others: &'a Self) -> HashSet<(&'a Path, &'a str)> {
        let only = |some: &'a Self, others: &'a Self| some.0.iter().filter(|opening| !others.0.contains(opening));
        let both = only(self, others).chain(only(others, self));
        both.filter_map(|opening| Some((&*opening.root, opening.id.id()?))).collect()
    }
}

impl OpenScan {
    /// Begins a scan.
    pub(crate) fn begin() -> Self {
        Self { search: Search::begin(), found: None, openings: Vec::new() }
    }

    /// Removes a process that has ended.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.openings.retain(|opening| opening.pid != pid);
        if let Some(found) = &mut self.found {
            found.retain(|program| program.pid != pid);
        }
    }
}

impl OpenScanner {
    /// Scans all processes. `roots` are the folders that hold the session folders, `names` further programs that count
    /// as Copilot, `now` is the wall clock.
    pub(crate) fn scan(&mut self, roots: &[PathBuf], names: &[String], now: Time) -> OpenSessions {
        let mut scan = OpenScan::begin();
        loop {
            if let Some(openings) = self.advance(&mut scan, roots, names, now, None) {
                return openings;
            }
        }
    }

    /// Continues a scan until the deadline `until`. Returns its result once it is complete.
    pub(crate) fn advance(
        &mut self,
        scan: &mut OpenScan,
        roots: &[PathBuf],
        names: &[String],
        now: Time,
        until: Option<Instant>,
    ) -> Option<OpenSessions> {
        let found = match &mut scan.found {
            Some(found) => found,
            none => {
                let found = scan.search.go_on(names, now, until)?;
                // A package manager's launcher script has Copilot's command line, and ends with it.
                let parents: HashSet<u32> = found.iter().map(|program| program.parent).collect();
                let is_launcher = |it: &Program| it.is_script && parents.contains(&it.pid);
                let found: VecDeque<_> = found.into_iter().filter(|it| !is_launcher(it)).collect();
                self.known.retain(|key, _| found.iter().any(|program| *key == (program.pid, program.born)));
                none.insert(found)
            }
        };
        let mounts = Mounts::read();
        let real = |path: &Path| mounts.real(path);
        let homes: Vec<_> = roots.iter().map(|root| (root, root.parent().map(real))).collect();
        while let Some(program) = found.front() {
            let known = self.known.entry((program.pid, program.born)).or_default();
            let whole = |at: Time| Time(at.0 - at.0.rem_euclid(1000));
            let started = *known.started.get_or_insert_with(|| program.started.map(whole).unwrap_or_default());
            let theirs: Vec<PathBuf> = program.homes.iter().map(|home| real(home)).collect();
            let is_theirs =
                |home: &Option<PathBuf>| theirs.is_empty() || home.as_ref().is_some_and(|home| theirs.contains(home));
            let of_program: Vec<&PathBuf> =
                homes.iter().filter(|(_, home)| is_theirs(home)).map(|(root, _)| *root).collect();
            if !of_program.is_empty() {
                if !known.log.follow(program, &theirs, until) {
                    return None;
                }
                let opening = |root: &Path, id: Opened| OpenSession {
                    pid: program.pid,
                    root: root.to_owned(),
                    id,
                    started: program.started.map(|_| started),
                    hidden: program.hidden,
                };
                for id in known.sessions_of(program, &theirs, now) {
                    scan.openings.extend(of_program.iter().map(|root| opening(root, id.clone())));
                }
            }
            found.pop_front();
            if until.is_some_and(|until| until <= Instant::now()) && !found.is_empty() {
                return None;
            }
        }
        Some(OpenSessions::new(std::mem::take(&mut scan.openings)))
    }

    /// Whether processes that wrote to their logs may have opened or closed a session since the last scan. Reads what
    /// is new in the logs of known processes, which takes microseconds, until the deadline `until`. An unknown process
    /// needs a scan.
    pub(crate) fn may_differ(&mut self, written: impl IntoIterator<Item = u32>, until: Option<Instant>) -> bool {
        let mut differs = false;
        for pid in written {
            let mut known = self.known.iter_mut().filter(|((known, _), _)| *known == pid).peekable();
            differs |= match known.peek() {
                Some(_) => known.fold(false, |differs, (_, known)| known.log.may_have_changed(until) | differs),
                None => self.unseen.insert(pid),
            };
        }
        differs
    }

    /// Has processes that were not visible looked for again.
    pub(crate) fn forget_unseen(&mut self) {
        self.unseen.clear();
    }
}

impl KnownProcess {
    /// The sessions that a process has loaded, by its log as read so far.
    fn sessions_of(&self, program: &Program, homes: &[PathBuf], now: Time) -> Vec<Opened> {
        let log = &self.log;
        let asked = arguments::asked(&program.arguments);
        let named = asked.id.filter(|id| !log.closed(id));
        let mut ids: Vec<Box<str>> = log.open().cloned().collect();
        ids.extend(named.filter(|id| !log.open().any(|open| open == id)));
        let sessions = |ids: Vec<Box<str>>| ids.into_iter().map(Opened::Session).collect();
        if log.has_entries() || program.hidden {
            return sessions(ids);
        }
        let starts = program.started.is_none_or(|started| now - started < STARTING);
        let noted: Vec<_> = homes.iter().flat_map(|home| opened_since(home, program.started)).collect();
        // While it starts, its log has no entries yet, and sessions opened since then may be another process's.
        if starts && log.exists() && !asked.unlogged {
            let may_be_its = ids.is_empty() && (asked.some || !noted.is_empty());
            return if may_be_its { vec![Opened::Some] } else { sessions(ids) };
        }
        let is_noted = !noted.is_empty();
        ids.extend(noted.into_iter().filter(|id| !ids.contains(id)).collect::<Vec<_>>());
        if ids.is_empty() && asked.some && starts {
            return vec![Opened::Some];
        }
        let mut opened: Vec<_> = sessions(ids);
        // A server notes nothing, and a terminal always has a session.
        if !log.informs() && (asked.serves || !is_noted && asked.unlogged) {
            opened.push(Opened::Untold(program.folder.clone()));
        }
        opened
    }
}

/// The sessions that the terminals of a home recorded as open, each with the time at which it was opened. It changes
/// when a session is opened or closed, and not with every turn.
pub(crate) type Noted = BTreeMap<Box<str>, Box<str>>;

/// Reads [`OPEN_SESSIONS`] of a home. A file that cannot be read counts as empty.
pub(crate) fn noted(home: &Path) -> Noted {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        opened_at: Box<str>,
    }
    let Ok((file, _)) = plain_file::open(&home.join(OPEN_SESSIONS), Links::Refused) else { return Noted::new() };
    let mut text = Vec::new();
    let read = file.take(OPEN_SESSIONS_MAX).read_to_end(&mut text);
    let entries: Option<BTreeMap<Box<str>, Entry>> = read.ok().and_then(|_| serde_json::from_slice(&text).ok());
    entries.into_iter().flatten().map(|(id, entry)| (id, entry.opened_at)).collect()
}

/// The sessions that were opened in a home since a process started.
fn opened_since(home: &Path, started: Option<Time>) -> Vec<Box<str>> {
    let since = |at: &str| {
        let at = Time::parse(at.as_bytes())?;
        started.filter(|started| at + SLACK >= *started)
    };
    noted(home).into_iter().filter(|(_, at)| since(at).is_some()).map(|(id, _)| id).collect()
}
