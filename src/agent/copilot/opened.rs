//! Sessions that a live Copilot has open, though nothing in their folders says so.
//!
//! A terminal that resumes a session makes no lock and writes no line before its first prompt, and neither does a server. Who
//! takes such a session for one that nobody runs, and resumes it a second time, makes two processes write one log. So the
//! processes themselves are asked. docs/owners.md says how each of these was found:
//!
//! - **The process's own log** (`process-<time>-<pid>.log`) has a line for each session that it loads, and one for each that
//!   it closes, whether it was named on the command line, chosen from a list or loaded for a client of a server. It is read
//!   from where the last look ended.
//! - **The command line**: `--resume=<id>` in its forms. It is there before the log, and where no log is written.
//! - **`open-sessions-state.json`** of the home, where neither of the two tells: a session that was opened there since the
//!   process started. It outlives its process, and so says nothing by itself.
//!
//! A look takes a few milliseconds on a machine with some hundred processes, and is taken only when it matters: before an
//! order that could make a second owner, when a process ended, when `open-sessions-state.json` changed, and with the rescan.
//! Where no order waits for it, it is taken in steps: there may be hundreds of Copilots, and what they have written is theirs.

mod arguments;
mod former;
mod log;
#[cfg(test)]
mod tests;

use super::owner::Lock;
use super::running::{Program, Search};
use crate::core::owner::Owner;
use crate::core::time::{Span, Time};
pub(super) use former::former_owner;
use log::Log;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The file in which Copilot's terminals note what they have open, in their home.
pub(crate) const OPEN_SESSIONS: &str = "open-sessions-state.json";
/// The folder in a home that its processes keep their logs in.
pub(crate) const LOGS: &str = "logs";
/// The most that is read of it, in bytes.
const OPEN_SESSIONS_MAX: u64 = 1 << 20;
/// For so long after its start, a Copilot that was told to resume some session and did not say which may be about to open
/// any. It says so within a second; a busy machine takes longer.
const STARTING: Span = Span::seconds(15);
/// How much earlier than its process a thing may seem to have happened: times are coarse, and counted back from now.
const SLACK: Span = Span::seconds(2);

/// A session that a live process has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The process.
    pub pid: u32,
    /// The folder of the session folders.
    root: PathBuf,
    /// `None`: some session, and it cannot be told yet which.
    id: Option<Box<str>>,
    started: Option<Time>,
    /// What the process is can only be told by its command line.
    hidden: bool,
}

/// What a look found, in the order of the ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Openings(Vec<Opening>);

/// Looks at processes, and keeps what it has read of their logs.
#[derive(Debug, Default)]
pub(crate) struct Openers {
    /// By process id, and what tells a process from an earlier one of that id.
    known: HashMap<(u32, u64), Known>,
    /// Processes that write logs and are not seen to run: a container's.
    strangers: HashSet<u32>,
}

/// A look at all processes that is under way: there may be hundreds of Copilots, each with a log of megabytes.
#[derive(Debug)]
pub(crate) struct Looking {
    search: Search,
    /// Those that were found, and are still to be looked into; none while others may be found.
    found: Option<VecDeque<Program>>,
    openings: Vec<Opening>,
}

/// What is kept of a process.
#[derive(Debug, Default)]
struct Known {
    log: Log,
    /// When it started, to the second: it is counted back from now, and each time a little otherwise.
    started: Option<Time>,
}

impl Opening {
    /// The owner that it makes of its process.
    pub(crate) fn owner(&self) -> Owner {
        let (pid, started) = (self.pid, self.started);
        if self.hidden { Owner::Unknown { pid } } else { Owner::Opened { pid, started } }
    }
}

impl Openings {
    /// None.
    #[cfg(test)]
    pub(crate) const NONE: &'static Self = &Self(Vec::new());

    /// What was found, in the order in which it was.
    fn new(mut found: Vec<Opening>) -> Self {
        found.sort_by(|one, other| one.id.cmp(&other.id));
        Self(found)
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn all(&self) -> &[Opening] {
        &self.0
    }

    /// The process that has this session open. Each folder is looked up here, and there may be tens of thousands of them.
    pub(crate) fn of(&self, root: &Path, id: &str) -> Option<&Opening> {
        let from = self.0.partition_point(|opening| opening.id.as_deref() < Some(id));
        let mut of_id = self.0[from..].iter().take_while(|opening| opening.id.as_deref() == Some(id));
        of_id.find(|opening| *opening.root == *root)
    }

    /// The process that has a session open, or may be about to open it.
    pub(crate) fn opener(&self, root: &Path, id: &str) -> Option<&Opening> {
        self.of(root, id).or_else(|| self.0.iter().find(|opening| opening.root == root && opening.id.is_none()))
    }

    /// The process of this id is gone.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.0.retain(|opening| opening.pid != pid);
    }

    /// The sessions whose openings these and `others` do not share: the folder of their home, and their id.
    pub(crate) fn differing<'a>(&'a self, others: &'a Self) -> HashSet<(&'a Path, &'a str)> {
        let only = |some: &'a Self, others: &'a Self| some.0.iter().filter(|opening| !others.0.contains(opening));
        let both = only(self, others).chain(only(others, self));
        both.filter_map(|opening| Some((&*opening.root, opening.id.as_deref()?))).collect()
    }
}

impl Looking {
    /// A look that has not found anything yet.
    pub(crate) fn begin() -> Self {
        Self { search: Search::begin(), found: None, openings: Vec::new() }
    }

    /// The process of this id is gone.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.openings.retain(|opening| opening.pid != pid);
        if let Some(found) = &mut self.found {
            found.retain(|program| program.pid != pid);
        }
    }
}

impl Openers {
    /// Looks at all processes. `roots` are the folders that hold the session folders, `names` further programs that count as
    /// Copilot, `now` is the wall clock.
    pub(crate) fn look(&mut self, roots: &[PathBuf], names: &[String], now: Time) -> Openings {
        let mut looking = Looking::begin();
        loop {
            if let Some(openings) = self.go_on(&mut looking, roots, names, now, None) {
                return openings;
            }
        }
    }

    /// The same, until then; what was found when it is over.
    pub(crate) fn go_on(
        &mut self,
        looking: &mut Looking,
        roots: &[PathBuf],
        names: &[String],
        now: Time,
        until: Option<Instant>,
    ) -> Option<Openings> {
        let found = match &mut looking.found {
            Some(found) => found,
            none => {
                let found = looking.search.go_on(names, now, until)?;
                // What starts Copilot for a package manager has its command line, and ends with it.
                let parents: HashSet<u32> = found.iter().map(|program| program.parent).collect();
                let is_starter = |it: &Program| it.is_script && parents.contains(&it.pid);
                let found: VecDeque<_> = found.into_iter().filter(|it| !is_starter(it)).collect();
                self.known.retain(|key, _| found.iter().any(|program| *key == (program.pid, program.born)));
                none.insert(found)
            }
        };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
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
                let opening = |root: &Path, id: Option<Box<str>>| Opening {
                    pid: program.pid,
                    root: root.to_owned(),
                    id,
                    started: program.started.map(|_| started),
                    hidden: program.hidden,
                };
                for id in known.sessions_of(program, &theirs, now) {
                    looking.openings.extend(of_program.iter().map(|root| opening(root, id.clone())));
                }
            }
            found.pop_front();
            if until.is_some_and(|until| until <= Instant::now()) && !found.is_empty() {
                return None;
            }
        }
        Some(Openings::new(std::mem::take(&mut looking.openings)))
    }

    /// Whether processes that wrote in their logs may have opened or closed a session since the last look. Of those that are known
    /// what is new is read, which takes microseconds, and at most until then; of another one nothing is known without a look.
    pub(crate) fn may_differ(&mut self, written: impl IntoIterator<Item = u32>, until: Option<Instant>) -> bool {
        let mut differs = false;
        for pid in written {
            let mut known = self.known.iter_mut().filter(|((known, _), _)| *known == pid).peekable();
            differs |= match known.peek() {
                Some(_) => known.fold(false, |differs, (_, known)| known.log.goes_on(until) | differs),
                None => self.strangers.insert(pid),
            };
        }
        differs
    }

    /// Who was not seen to run is looked for again.
    pub(crate) fn forget_strangers(&mut self) {
        self.strangers.clear();
    }
}

impl Known {
    /// The sessions that a process has loaded, by what was read of its log; `None` among them: one that cannot be told yet.
    fn sessions_of(&self, program: &Program, homes: &[PathBuf], now: Time) -> Vec<Option<Box<str>>> {
        let log = &self.log;
        let asked = arguments::asked(&program.arguments);
        let named = asked.id.filter(|id| !log.closed(id));
        let mut ids: Vec<Box<str>> = log.open().cloned().collect();
        ids.extend(named.filter(|id| !log.open().any(|open| open == id)));
        let starts = program.started.is_none_or(|started| now - started < STARTING);
        // While it starts, its log does not say anything yet, and what was opened meanwhile may be another's.
        let will_say = starts && log.is_there();
        if ids.is_empty() && !log.says() && !program.hidden && !will_say {
            ids = homes.iter().flat_map(|home| opened_since(home, program.started)).collect();
        }
        if ids.is_empty() && asked.some && !log.says() && starts {
            return vec![None];
        }
        ids.into_iter().map(Some).collect()
    }
}

/// The process id in `process-<milliseconds since 1970>-<pid>.log`.
pub(crate) fn log_pid(file_name: &str) -> Option<u32> {
    log_lock(file_name).map(|lock| lock.pid)
}

/// The process that a log is of by its name, as a lock would name it: by its id, and that it ran at this time.
fn log_lock(file_name: &str) -> Option<Lock> {
    let (at, pid) = file_name.strip_prefix("process-")?.strip_suffix(".log")?.split_once('-')?;
    Some(Lock { pid: pid.parse().ok()?, made: Time(at.parse().ok()?) })
}

/// What the terminals of a home noted as open, with the time at which each was opened. It differs whenever another session is
/// opened or closed, and not with every turn.
pub(crate) type Noted = BTreeMap<Box<str>, Box<str>>;

/// Reads [`OPEN_SESSIONS`] of a home. What cannot be read is nothing.
pub(crate) fn noted(home: &Path) -> Noted {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        opened_at: Box<str>,
    }
    let path = home.join(OPEN_SESSIONS);
    if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return Noted::new();
    }
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(OPEN_SESSIONS_MAX).read_to_end(&mut text));
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
