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
//!   since the process started. The file outlives its process and names none, so an entry is only a guess: it counts for
//!   terminals that log nothing, and nowhere against what is known (`store::folder::owner`). Servers, prompts that run once,
//!   commands (`copilot update`) and what a Copilot starts for itself record nothing there.
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

use super::PROFILE;
use super::running::{Program, Search};
use crate::openings::{Noted, OpenSession, OpenSessions, Opened};
use crate::runners::shares;
use arguments::Role;
use log::Log;
use pilotlight_core::time::{Span, Time};
use pilotlight_system::mounts::Mounts;
use pilotlight_system::plain_file::{self, Links};
use pilotlight_system::process::SLACK;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(super) use former::{former_owner, left_open};
pub(crate) use log::{LOGS, log_pid};

/// The file of a home in which Copilot's terminals record the sessions they have open.
pub(crate) const OPEN_SESSIONS: &str = "open-sessions-state.json";
/// How much of [`OPEN_SESSIONS`] is read, in bytes.
const OPEN_SESSIONS_MAX: u64 = 1 << 20;
/// How long after its start a Copilot that was asked to resume an unnamed session may be about to open any session. It
/// logs which one within a second; a busy machine takes longer.
const STARTING: Span = Span::seconds(15);
/// How long after the beginning of the second in which it started a process counts as having opened its session, if it does not
/// log when. A prompt of the process before it came earlier, its own first one comes later.
const OPENING: Span = Span::seconds(1);

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

/// A session that a process shows to have open, or may have.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    opened: Opened,
    /// When it opened it, if it says that.
    since: Option<Time>,
    /// Of one that is only guessed, when it was recorded.
    guessed: Option<Time>,
    /// Whether it may have closed it without a word.
    may_be_closed: bool,
}

impl Shown {
    const fn of(opened: Opened) -> Self {
        Self { opened, since: None, guessed: None, may_be_closed: false }
    }
}

/// What is remembered of a process.
#[derive(Debug, Default)]
struct KnownProcess {
    log: Log,
    /// The second in which it started, as first computed: counted back from now, the result varies.
    started: Option<Time>,
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
    /// Scans all processes.
    pub(crate) fn scan(&mut self, roots: &[PathBuf], names: &[String], now: Time) -> OpenSessions {
        let mut scan = OpenScan::begin();
        loop {
            if let Some(found) = self.advance(&mut scan, roots, names, now, None) {
                return OpenSessions::new(found);
            }
        }
    }

    /// Continues a scan of all processes until the deadline `until`. `roots` are the folders that hold the session
    /// folders, `names` further programs that count as Copilot, `now` is the wall clock. Returns the result once it is
    /// complete.
    pub(crate) fn advance(
        &mut self,
        scan: &mut OpenScan,
        roots: &[PathBuf],
        names: &[String],
        now: Time,
        until: Option<Instant>,
    ) -> Option<Vec<OpenSession>> {
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
            // A home may have its sessions in another one's.
            let is_shared = |root: &Path| theirs.iter().any(|home| shares(&home.join(PROFILE.sessions), root, root));
            let of_program: Vec<&PathBuf> =
                homes.iter().filter(|(root, home)| is_theirs(home) || is_shared(root)).map(|(root, _)| *root).collect();
            if !of_program.is_empty() {
                if !known.log.follow(program, &theirs, until) {
                    return None;
                }
                for Shown { opened, since, guessed, may_be_closed } in known.sessions_of(program, &theirs, now) {
                    scan.openings.extend(of_program.iter().map(|root| OpenSession {
                        pid: program.pid,
                        inside: program.inside,
                        root: (*root).clone(),
                        opened: opened.clone(),
                        since: since.or(guessed).or(program.started.map(|_| started + OPENING)),
                        is_uncertain: program.hidden,
                        guessed,
                        may_be_closed,
                    }));
                }
            }
            found.pop_front();
            if until.is_some_and(|until| until <= Instant::now()) && !found.is_empty() {
                return None;
            }
        }
        Some(std::mem::take(&mut scan.openings))
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
    /// The sessions that a process has open, by its log as read so far.
    fn sessions_of(&self, program: &Program, homes: &[PathBuf], now: Time) -> Vec<Shown> {
        let log = &self.log;
        let session = |id: &str| Opened::Session(id.into());
        let arguments = arguments::parse(&program.arguments, program.is_script);
        let named = arguments.id.filter(|id| !log.closed(id) && !log.open().any(|(open, _)| *open == **id));
        let may_be_closed = log.is_for_editors();
        let of_log = |(id, since)| Shown { since, may_be_closed, ..Shown::of(session(id)) };
        let mut shown: Vec<_> = log.open().map(of_log).collect();
        shown.extend(named.map(|id| Shown::of(session(&id))));
        // The others record nothing, and what their home records is not theirs.
        let is_terminal = arguments.role == Role::Terminal;
        if log.has_entries() || program.hidden || arguments.role == Role::Helper {
            return shown;
        }
        let starts = program.started.is_none_or(|started| now - started < STARTING);
        let recorded: Vec<_> =
            homes.iter().filter(|_| is_terminal).flat_map(|home| opened_since(home, program.started)).collect();
        // While it starts, its log has no entries yet, and sessions opened since then may be another process's.
        if starts && log.exists() && !arguments.unlogged {
            let is_unknown = shown.is_empty() && (arguments.some || !recorded.is_empty());
            shown.extend(is_unknown.then_some(Shown::of(Opened::Some)));
            return shown;
        }
        let is_recorded = !recorded.is_empty();
        // One whose log has lines of that level would have logged them.
        let recorded = recorded.into_iter().filter(|_| !log.informs());
        let guessed = recorded.map(|(id, at)| Shown { guessed: Some(at), ..Shown::of(session(&id)) });
        let guessed: Vec<_> = guessed.filter(|guess| !shown.iter().any(|known| known.opened == guess.opened)).collect();
        shown.extend(guessed);
        if shown.is_empty() && arguments.some && starts {
            return vec![Shown::of(Opened::Some)];
        }
        // A server records nothing, and a terminal always has a session.
        let is_silent = is_terminal && !is_recorded && arguments.unlogged;
        let is_untold = match arguments.role {
            // Its lines are not about what it opens, and warnings that name that may be missing.
            Role::Editors => true,
            Role::Server => !log.informs(),
            Role::Terminal | Role::Prompt | Role::Helper => !log.informs() && is_silent,
        };
        if is_untold {
            shown.push(Shown::of(Opened::Untold { folder: program.folder.clone(), may_answer: !arguments.private }));
        }
        shown
    }
}

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

/// The sessions that were opened in a home since a process started, and when.
fn opened_since(home: &Path, started: Option<Time>) -> Vec<(Box<str>, Time)> {
    let since = |at: &str| {
        let at = Time::parse(at.as_bytes())?;
        started.filter(|started| at + SLACK >= *started).map(|_| at)
    };
    noted(home).into_iter().filter_map(|(id, at)| Some((id, since(&at)?))).collect()
}
