//! Session folders: which there are, and what a look into one tells.

mod glimpse;
mod locks;
mod owner;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

pub(crate) use glimpse::{Glimpse, Root};
pub(crate) use locks::numbers_in_use;
pub(crate) use owner::owner_now;

use super::opened::Openings;
use super::owner::Lock;
use super::tail::{Found, Look, Tail};
use super::workspace;
use crate::core::fleet::{About, Session};
use crate::core::owner::Owner;
use crate::core::time::{Span, Time};
use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, UNIX_EPOCH};

/// The folder of a home that holds the session folders.
pub(crate) const SESSIONS: &str = "session-state";
/// A session's log.
pub(crate) const LOG: &str = "events.jsonl";
/// A session's description.
pub(crate) const WORKSPACE: &str = "workspace.yaml";

/// A folder that was not written for so long shows its next change in its time.
const SETTLES: Span = Span::seconds(2);

/// The names of the session folders in `sessions`. Folders that begin with a dot, links and files are not sessions.
///
/// # Errors
/// Where the folder cannot be listed.
pub(crate) fn session_ids(sessions: &Path) -> io::Result<SessionIds> {
    fs::read_dir(sessions).map(SessionIds)
}

/// The names of session folders, as they are listed.
#[derive(Debug)]
pub(crate) struct SessionIds(fs::ReadDir);

impl Iterator for SessionIds {
    type Item = Arc<str>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Ok(entry) = self.0.next()? else { continue };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if let Ok(name) = entry.file_name().into_string()
                && is_folder
                && !name.starts_with('.')
            {
                return Some(name.into());
            }
        }
    }
}

/// Whether this says that there is nothing, and not merely that it could not be read just now: out of file descriptors,
/// or refused.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The process id in `inuse.<pid>.lock`.
pub fn lock_pid(file_name: &str) -> Option<u32> {
    let digits = file_name.strip_prefix("inuse.")?.strip_suffix(".lock")?;
    (digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}

/// Said of a log that ends in a line longer than anything that is read.
const ENDLESS: &str = "its log ends in a line of more than 64 MB, which is not read: what it does is unknown";

/// How sessions are read: the same for all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// Both clocks, the limits, and when a look is broken off.
    pub look: Look<'a>,
    /// Names of further programs that count as Copilot.
    pub owner_names: &'a [String],
    /// Processes that are Copilot's, and whose end will be told.
    pub known: &'a HashSet<u32>,
    /// The sessions that processes have open without a lock.
    pub openings: &'a Openings,
    /// Read even the logs that are too old to matter.
    pub all: bool,
}

impl Reading<'_> {
    /// Whether a log that was last written then is too old for a session that nobody owns to be anything but ended.
    fn is_past(&self, touched: Time) -> bool {
        self.look.now.wall - touched > self.look.limits.ownerless
    }
}

/// How far a look came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// All that is there was seen.
    Whole,
    /// There is more to read in the log.
    More,
}

/// One session's folder, and what was read of it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    tail: Tail,
    workspace: Option<Time>,
    locks: Vec<Lock>,
    /// There may be further locks: nobody looks through that many files.
    more_locks: bool,
    /// When the folder was last written, as of the listing that `locks` come from; kept only where that was over for good.
    listed: Option<Time>,
    /// Locks whose process was seen to end.
    ended: Vec<(Lock, Time)>,
    /// The locks are being listed, and the folder was last written then.
    listing: Option<(Box<locks::Listing>, Time)>,
    /// They were listed whole at least once.
    was_listed: bool,
    /// Processes that have just made their lock, and do not hold the session yet.
    newcomers: Vec<u32>,
    /// When, by the awake clock, a lock tells more of who holds the session, and no event does.
    tells_at: Option<Time>,
    /// What was found out about the lock of the owner, where that stands for good, and when, by the awake clock.
    claimed: Option<(Lock, Time)>,
    /// The process that has it open without a lock.
    opened: Option<u32>,
    /// The owner that was seen to end last, and when.
    departed: Option<(u32, Time)>,
    /// When, by the awake clock, the logs of processes were searched for its owner, what they tell, and the last sign of life of the
    /// session that this is true for.
    former: Option<(Time, Option<u32>, Time)>,
    /// What was observed.
    pub session: Session,
}

impl Folder {
    /// A folder that has not been looked into.
    pub(crate) fn new(sessions: &Path, id: &str) -> Self {
        let session = Session { id: id.into(), ..Session::default() };
        Self {
            path: sessions.join(id),
            tail: Tail::default(),
            workspace: None,
            locks: Vec::new(),
            more_locks: false,
            listed: None,
            ended: Vec::new(),
            listing: None,
            was_listed: false,
            newcomers: Vec::new(),
            tells_at: None,
            claimed: None,
            opened: None,
            departed: None,
            former: None,
            session,
        }
    }

    /// Looks into the folder: its locks and their owners, its description, and what is new in its log.
    ///
    /// Where nothing can be open any more and the log is old, its end alone decides: the log is left unread.
    ///
    /// # Errors
    /// Where the folder is gone.
    pub(crate) fn look(&mut self, reading: &Reading<'_>, buffer: &mut Vec<u8>) -> io::Result<Looked> {
        let is_new = !self.was_listed && self.listing.is_none() && self.session.facts.progress.is_none();
        if is_new && let Some(past) = self.path.parent().and_then(|root| Root::at(root).past(&self.session.id, reading))
        {
            self.is_past(past);
            return Ok(Looked::Whole);
        }
        let log_path = self.path.join(LOG);
        let folder = match fs::symlink_metadata(&self.path) {
            Ok(folder) if folder.is_dir() => folder,
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) => return self.unreadable(error),
        };
        let written = modified(&folder);
        let all_listed = match self.locks_in_folder(written, reading) {
            Ok(all_listed) => all_listed,
            Err(error) => {
                self.session.touched = written;
                return self.unreadable(error);
            }
        };
        let log = fs::symlink_metadata(&log_path).ok();
        self.session.touched = log.as_ref().map_or_else(|| modified(&folder), modified);
        self.session.has_log = log.is_some();
        let (owner, progress) = (self.session.owner.clone(), self.session.facts.progress);
        self.find_owner(reading);
        self.session.unread = self.is_history(reading);
        if self.session.unread {
            return Ok(Looked::Whole);
        }
        self.read_workspace();
        let looked = self.read_log(reading, buffer);
        self.find_former_owner(reading);
        self.witness(&owner, progress);
        Ok(if all_listed { looked } else { Looked::More })
    }

    /// A glimpse told that nobody has it open, and that its log is too old to matter.
    pub(crate) const fn is_past(&mut self, glimpse: Glimpse) {
        (self.session.touched, self.session.has_log, self.session.unread) = (glimpse.touched, glimpse.has_log, true);
    }

    /// A folder that cannot be read is not gone: who had it open a moment ago has it still, as far as can be told.
    fn unreadable(&mut self, error: io::Error) -> io::Result<Looked> {
        if is_absence(&error) {
            return Err(error);
        }
        self.session.problem = Some(format!("its folder cannot be read: {error}").into());
        // Before it can be read again no lock tells more: who waits for that would look at it all the time.
        self.tells_at = None;
        Ok(Looked::Whole)
    }

    /// Lists the locks, unless the folder is as it was: on Linux every listing is a file event, which would wake us again for
    /// each session whenever everything is looked at. A folder of thousands of files is listed in slices; until it is listed
    /// whole, the locks of before stand. Whether it is.
    fn locks_in_folder(&mut self, written: Time, reading: &Reading<'_>) -> io::Result<bool> {
        let is_as_it_was = || self.listed == Some(written) && self.locks.iter().all(|lock| self.stands(lock));
        if cfg!(target_os = "linux") && self.listing.is_none() && is_as_it_was() {
            return Ok(true);
        }
        let (mut listing, written) = match self.listing.take() {
            Some(begun) => begun,
            None => (Box::new(locks::Listing::of(&self.path)?), written),
        };
        // Half of the time is the log's.
        let until = reading.look.until.map(|until| {
            let now = Instant::now();
            now + until.saturating_duration_since(now) / 2
        });
        if !listing.go_on(until) {
            self.listing = Some((listing, written));
            // Of a folder that was never listed whole, who owns it is not known.
            self.more_locks |= !self.was_listed;
            return Ok(false);
        }
        let listed = listing.end(&self.path);
        (self.locks, self.more_locks, self.was_listed) = (listed.locks, listed.cut, true);
        // File times are coarse: what was written just now may be written again without a trace.
        self.listed = (written + SETTLES < reading.look.now.wall).then_some(written);
        // Who came to hold it, or let go of it, wrote to it.
        self.claimed = None;
        Ok(true)
    }

    /// Whether a lock is the one that was read: a process may rewrite one of its own number.
    fn stands(&self, lock: &Lock) -> bool {
        let path = self.path.join(format!("inuse.{}.lock", lock.pid));
        fs::symlink_metadata(path).is_ok_and(|meta| modified(&meta) == lock.made)
    }

    /// Whether nothing that the log could say would make the session anything but ended.
    fn is_history(&self, reading: &Reading<'_>) -> bool {
        if self.session.facts.progress.is_some() || reading.all && self.session.has_log {
            return false;
        }
        if !self.session.has_log {
            return matches!(self.session.owner, Owner::Never | Owner::Gone { .. });
        }
        let touched = self.session.touched;
        match self.session.owner {
            Owner::Never => reading.is_past(touched),
            Owner::Gone { .. } => reading.look.now.wall - touched > reading.look.limits.crashed,
            Owner::Alive { .. } | Owner::Opened { .. } | Owner::Unheld { .. } | Owner::Unknown { .. } => false,
        }
    }

    /// Reads what was left unread, for saying how an old session ended.
    pub(crate) fn read_history(&mut self, reading: &Reading<'_>, buffer: &mut Vec<u8>) -> Looked {
        self.session.unread = false;
        self.read_workspace();
        self.read_log(reading, buffer)
    }

    /// Gives back what only another look at the log would need, which would read it anew: of tens of thousands of logs that are
    /// read whole it is most of what is kept.
    pub(crate) fn forget_log(&mut self) {
        self.tail = Tail::default();
    }

    /// What `workspace.yaml` says, without keeping anything of an old session.
    pub(crate) fn about(&self) -> About {
        let path = self.path.join(WORKSPACE);
        fs::symlink_metadata(&path).and_then(|meta| read_workspace(&path, &meta)).unwrap_or_default()
    }

    fn read_workspace(&mut self) {
        let path = self.path.join(WORKSPACE);
        let meta = fs::symlink_metadata(&path).ok();
        let stamp = meta.as_ref().map(modified);
        if stamp.is_none() || stamp != self.workspace {
            self.session.about = meta.and_then(|meta| read_workspace(&path, &meta).ok()).unwrap_or_default();
            self.workspace = stamp;
        }
    }

    /// Reads what is new in the log.
    pub(crate) fn read_log(&mut self, reading: &Reading<'_>, buffer: &mut Vec<u8>) -> Looked {
        let (path, session) = (self.path.join(LOG), &mut self.session);
        let result = self.tail.read(&path, &mut session.facts, reading.look, buffer);
        session.problem = match &result {
            Ok(Found::More) if session.facts.events == 0 => Some("its log is long, and still being read".into()),
            Ok(_) if self.tail.is_inside_line() => Some(ENDLESS.into()),
            Ok(_) => None,
            Err(error) => Some(error.to_string().into()),
        };
        if let Some(progress) = session.facts.progress {
            session.touched = session.touched.max(progress.wall);
        }
        if let Ok(Found::More) = result { Looked::More } else { Looked::Whole }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn read_workspace(path: &Path, meta: &Metadata) -> io::Result<About> {
    if !meta.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // With room for the whole file and a little more, it is read at one go, and found to be over at the next.
    let mut text = Vec::with_capacity(512 + usize::try_from(meta.len().min(workspace::LENGTH_MAX)).unwrap_or_default());
    fs::File::open(path)?.take(workspace::LENGTH_MAX).read_to_end(&mut text)?;
    Ok(workspace::parse(&text))
}

/// When a file was last written, by the wall clock.
fn modified(meta: &Metadata) -> Time {
    let Ok(modified) = meta.modified() else { return Time::default() };
    let span = |age: std::time::Duration| Span(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    let at = match modified.duration_since(UNIX_EPOCH) {
        Ok(age) => Time::default() + span(age),
        Err(before) => Time::default() - span(before.duration()),
    };
    told(at)
}

/// The same, from the numbers that the system gives: seconds since 1970, and nanoseconds.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn at(seconds: i64, nanoseconds: i64) -> Time {
    told(Time(seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)))
}

/// Years 0001 to 9999, as far as times can be told: a file may claim any.
fn told(at: Time) -> Time {
    const EARLIEST: Time = Time(-62_135_596_800_000);
    const LATEST: Time = Time(253_402_207_200_000);
    at.clamp(EARLIEST, LATEST)
}
