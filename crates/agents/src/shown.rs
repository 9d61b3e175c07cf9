//! What every agent has in common that is only shown: one file a session, and perhaps a file for each process that names
//! the session it runs. Its adapter says how these are read, and no more.

use super::adapter::SessionScanner;
use super::home::Home;
use super::openings::{OpenSession, Opened};
use super::reader::{Reader, SessionReader};
use super::reading::{ReadStatus, Reading};
use super::tail::{LogFormat, ReadOutcome, Tail};
use pilotlight_core::event::Event;
use pilotlight_core::facts::Facts;
use pilotlight_core::owner::{HoldProof, Owner};
use pilotlight_core::session::{About, Allows, Observed};
use pilotlight_core::time::{Moment, Time};
use pilotlight_system::file_times::modified;
use pilotlight_system::plain_file::{self, Links};
use pilotlight_system::process::is_gone;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The longest file that is read whole, and how much of the beginning of a log describes its session, in bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// How the file of a session is read.
#[derive(Clone, Copy, Debug)]
pub enum Contents {
    /// Written anew whenever something happens: it is read whole, up to 1 MiB.
    Whole(Parse),
    /// A log that grows: it is followed, however long it is.
    Lines {
        /// How a line is read.
        log_format: &'static LogFormat,
        /// What the log's beginning, up to 1 MiB, says about the session. A title that comes later is an event.
        about: fn(&[u8]) -> About,
    },
}

/// Reads a whole file: hands on its events, in order, and returns the description. Or else says why it cannot be read.
pub type Parse = fn(text: &[u8], fold: &mut dyn FnMut(&Event<'_>)) -> Result<About, String>;

/// A reader for a session that is the file at this path. `why`: why nothing can be done with it, for people.
pub fn reader(home: &Home, id: &str, path: PathBuf, contents: Contents, why: &'static str) -> Reader {
    let (root, tail) = (home.root().to_owned(), Tail::default());
    Box::new(Shown { root, id: id.into(), path, contents, why, tail, read: None, about: About::default(), pid: None })
}

/// A scanner for processes that each write a file of their own, in the folder that the [watch plan] has as `logs`:
/// `session` finds in its text the id of the session that the process runs. The file of a process that has ended counts no
/// more.
///
/// [watch plan]: pilotlight_system::watcher::WatchPlan
pub fn scanner(session: fn(&str) -> Option<&str>) -> Option<Box<dyn SessionScanner>> {
    Some(Box::new(Scanner { session }))
}

/// A session.
#[derive(Debug)]
struct Shown {
    root: PathBuf,
    id: Box<str>,
    path: PathBuf,
    contents: Contents,
    why: &'static str,
    tail: Tail,
    /// When the file was last written, as of the last read.
    read: Option<Time>,
    /// What its beginning says, once that was read.
    about: About,
    /// The process that runs it, or did.
    pid: Option<u32>,
}

impl Shown {
    fn find_owner(&mut self, reading: &Reading<'_>, observed: &mut Observed) {
        let opening = reading.openings.of(&self.root, &self.id);
        self.pid = opening.map(|opening| opening.pid).or(self.pid);
        observed.holders = opening.map(|opening| opening.pid).into_iter().collect();
        (observed.held, observed.owner) = match (opening, self.pid) {
            (Some(OpenSession { pid, since, .. }), _) => {
                (HoldProof::Verified, Owner::Alive { pid: *pid, started: *since })
            }
            (None, Some(pid)) => (HoldProof::Unverified, Owner::Gone { pid, at: None }),
            (None, None) => (HoldProof::Unverified, Owner::Never),
        };
    }

    fn read_whole(&mut self, parse: Parse, reading: &Reading<'_>, observed: &mut Observed) {
        let now = reading.context.now;
        let mut facts = Facts::default();
        let mut fold = |event: &Event<'_>| {
            let wall = event.at.map_or(now.wall, |at| at.min(now.wall));
            facts.fold(event, Moment { wall, awake: now.awake - (now.wall - wall) }, reading.context.limits);
        };
        let parsed = beginning(&self.path).map_err(|error| error.to_string()).and_then(|text| parse(&text, &mut fold));
        match parsed {
            Ok(about) => (observed.about, observed.facts, observed.problem) = (about, facts, None),
            Err(why) => observed.problem = Some(why.into()),
        }
    }
}

impl SessionReader for Shown {
    fn refresh(
        &mut self,
        reading: &Reading<'_>,
        observed: &mut Observed,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ReadStatus> {
        let meta = fs::symlink_metadata(&self.path)?;
        (observed.touched, observed.has_log) = (modified(&meta), true);
        observed.allows = Allows::Nothing { why: self.why.into() };
        self.find_owner(reading, observed);
        observed.unread = reading.is_history(observed);
        if observed.unread { Ok(ReadStatus::Complete) } else { Ok(self.read_history(reading, observed, buffer)) }
    }

    fn read_history(&mut self, reading: &Reading<'_>, observed: &mut Observed, buffer: &mut Vec<u8>) -> ReadStatus {
        observed.unread = false;
        let is_first = self.read.is_none();
        let is_same = self.read.replace(observed.touched) == Some(observed.touched);
        match self.contents {
            Contents::Whole(_) if is_same => {}
            Contents::Whole(parse) => self.read_whole(parse, reading, observed),
            Contents::Lines { log_format, .. } => {
                if is_first || self.about == About::default() {
                    self.about = self.about();
                }
                let read = reading.log(&mut self.tail, log_format, &self.path, observed, buffer);
                let title = observed.facts.title.as_deref().map(Into::into);
                observed.about = About { name: title.or_else(|| self.about.name.clone()), ..self.about.clone() };
                if matches!(read, Ok(ReadOutcome::More)) {
                    return ReadStatus::Partial;
                }
            }
        }
        ReadStatus::Complete
    }

    fn about(&self) -> About {
        let text = beginning(&self.path).unwrap_or_default();
        match self.contents {
            Contents::Whole(parse) => parse(&text, &mut |_| ()).unwrap_or_default(),
            Contents::Lines { about, .. } => about(&text),
        }
    }

    fn forget_log(&mut self) {
        (self.tail, self.read) = (Tail::default(), None);
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn pids(&self) -> Vec<u32> {
        self.pid.into_iter().collect()
    }

    fn process_ended(&mut self, observed: &mut Observed, pid: u32, at: Time) {
        if observed.owner.pid() == Some(pid) {
            observed.owner = Owner::Gone { pid, at: Some(at) };
        }
    }
}

/// Finds the sessions that processes name.
#[derive(Debug)]
struct Scanner {
    session: fn(&str) -> Option<&str>,
}

impl SessionScanner for Scanner {
    fn begin(&mut self) {}

    fn advance(&mut self, homes: &[&Home], _: &[String], now: Time, _: Option<Instant>) -> Option<Vec<OpenSession>> {
        Some(homes.iter().flat_map(|home| self.open(home, now)).collect())
    }
}

impl Scanner {
    fn open(&self, home: &Home, now: Time) -> Vec<OpenSession> {
        let Some(logs) = home.watch_plan().logs else { return Vec::new() };
        let files = fs::read_dir(home.folder().join(logs.folder)).into_iter().flatten().flatten();
        let open = files.filter_map(|file| {
            let pid = (logs.pid)(file.file_name().to_str()?).filter(|pid| !is_gone(*pid, now))?;
            let text = String::from_utf8(beginning(&file.path()).ok()?).ok()?;
            Some(OpenSession {
                pid,
                root: home.root().to_owned(),
                opened: Opened::Session((self.session)(&text)?.into()),
                since: None,
                is_uncertain: false,
                may_be_closed: false,
                guessed: None,
                inside: None,
            })
        });
        open.collect()
    }
}

/// The beginning of a file.
fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let (file, _) = plain_file::open(path, Links::Refused)?;
    let mut text = Vec::new();
    file.take(LENGTH_MAX).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
