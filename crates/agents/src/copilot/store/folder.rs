//! A session's folder: reads its locks, its description and its log.

pub(super) mod owner;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use super::locks;
use super::quick_scan::Root;
use super::{LOG, WORKSPACE};
use crate::copilot::adapter::resume_line;
use crate::copilot::log_format::LOG_FORMAT;
use crate::copilot::owner::Lock;
use crate::copilot::{target, user_settings, workspace};
use crate::evidence::Evidence;
use crate::listing::QuickScan;
use crate::reader::SessionReader;
use crate::reading::{ReadStatus, Reading};
use crate::tail::{LogError, ReadOutcome, Tail};
use pilotlight_core::owner::Owner;
use pilotlight_core::session::{About, Observed};
use pilotlight_core::time::{Span, Time};
use pilotlight_system::file_times::{created, modified};
use pilotlight_system::plain_file::{self, Links, is_absence};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// How old a folder's last write must be for its next change to show in its time.
const SETTLES: Span = Span::seconds(2);

/// A session's folder and what was read from it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    tail: Tail,
    workspace: Option<Time>,
    locks: Vec<Lock>,
    /// Whether there may be further locks, because the folder has too many files to list.
    more_locks: bool,
    /// The folder's modification time when `locks` were listed; `None` if it was too recent for the next change to show
    /// in it.
    listed: Option<Time>,
    /// Locks whose process has exited, and when.
    ended: Vec<(Lock, Time)>,
    /// A listing in progress, and the folder's modification time when it began.
    listing: Option<(Box<locks::Listing>, Time)>,
    /// Whether the folder was listed completely at least once.
    was_listed: bool,
    /// Processes that have just made their lock and do not hold the session yet.
    newcomers: Vec<u32>,
    /// When to check again, by the awake clock, who holds the session: a new lock's process begins to hold it without
    /// an event.
    owner_recheck_at: Option<Time>,
    /// Since when, by the awake clock, its log is gone, while its folder is there and stays as it is; and when that was last
    /// changed.
    log_gone: Option<(Time, Time)>,
    /// The owner's lock, if it is too old for its claim to change soon, and when the claim was checked, by the awake
    /// clock.
    claimed: Option<(Lock, Time)>,
    /// The process that has the session open without a lock.
    opened: Option<u32>,
    /// The last owner that exited, and when.
    departed: Option<(u32, Time)>,
    /// When the last process exited that had the session open without a lock.
    released: Option<Time>,
    /// The last search of process logs for a former owner: when, by the awake clock, the pid that was found, and the
    /// session's last progress, for which the result is valid.
    former: Option<(Time, Option<u32>, Time)>,
}

/// How long the deletion of a session's folder may take after its log is gone, and after each other file.
const DELETED_WITHIN: Span = Span::seconds(2);

impl Folder {
    /// A folder that has not been read yet.
    pub(crate) fn new(sessions: &Path, id: &str) -> Self {
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
            owner_recheck_at: None,
            log_gone: None,
            claimed: None,
            opened: None,
            departed: None,
            released: None,
            former: None,
        }
    }

    /// The session's id: the folder's name.
    pub(crate) fn id(&self) -> &str {
        self.path.file_name().and_then(OsStr::to_str).unwrap_or_default()
    }

    /// The home that it is in.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.path.parent()?.parent()
    }

    /// Whether its log has just gone: its folder is being deleted, one file after another. What it would be without its log, an
    /// idle session without a prompt, is not true, and scripts wait for that.
    fn is_being_deleted(&mut self, observed: &Observed, folder: &fs::Metadata, reading: &Reading<'_>) -> bool {
        let is_gone = || fs::symlink_metadata(self.path.join(LOG)).is_err_and(|error| is_absence(&error));
        if !observed.has_log || !is_gone() {
            self.log_gone = None;
            return false;
        }
        let (now, changed) = (reading.context.now.awake, modified(folder));
        let (since, _) =
            *self.log_gone.insert(self.log_gone.filter(|(_, at)| *at == changed).unwrap_or((now, changed)));
        let until = since + DELETED_WITHIN;
        self.owner_recheck_at = Some(until).filter(|until| *until > now);
        until > now
    }

    /// Notes whether there is a log, and when it was last written. `folder`: what the system says of the folder.
    fn note_log(&self, observed: &mut Observed, folder: &fs::Metadata) {
        let log = fs::symlink_metadata(self.path.join(LOG)).ok();
        observed.touched = log.as_ref().map_or_else(|| modified(folder), modified);
        observed.has_log = log.is_some();
    }

    /// Handles a folder that cannot be read but is not gone: its last known owner is assumed to have it open still.
    fn unreadable(&mut self, observed: &mut Observed, error: io::Error) -> io::Result<ReadStatus> {
        if is_absence(&error) {
            return Err(error);
        }
        observed.problem = Some(format!("its folder cannot be read: {error}").into());
        // The locks cannot be rechecked until the folder is readable: a past recheck time would make the engine poll
        // it.
        self.owner_recheck_at = None;
        Ok(ReadStatus::Complete)
    }

    /// Lists the locks, unless the folder is unchanged. On Linux a listing is a file event for whoever asks for reads,
    /// and a rescan would cause one for each session. A folder of thousands of files is listed in slices; until the
    /// listing is complete, the previous locks are kept. Returns whether it is complete.
    fn list_locks(&mut self, written: Time, reading: &Reading<'_>) -> io::Result<bool> {
        let is_unchanged = || self.listed == Some(written) && self.locks.iter().all(|lock| self.is_current(lock));
        if cfg!(target_os = "linux") && self.listing.is_none() && is_unchanged() {
            return Ok(true);
        }
        let (mut listing, written) = match self.listing.take() {
            Some(listing) => listing,
            None => (Box::new(locks::Listing::of(&self.path)?), written),
        };
        // Half of the remaining time is reserved for the log.
        let until = reading.context.until.map(|until| {
            let now = Instant::now();
            now + until.saturating_duration_since(now) / 2
        });
        if !listing.advance(until) {
            self.listing = Some((listing, written));
            // Before the first complete listing, the owner is unknown.
            self.more_locks |= !self.was_listed;
            return Ok(false);
        }
        let listed = listing.finish(&self.path);
        (self.locks, self.more_locks, self.was_listed) = (listed.locks, listed.cut, true);
        // File times are coarse: a second write within the same tick does not change them.
        self.listed = (written + SETTLES < reading.context.now.wall).then_some(written);
        // A process that began or ceased to hold the session has written to the folder: check the claim again.
        self.claimed = None;
        Ok(true)
    }

    /// Whether a lock's file is still the one that was listed. Another process with the same id may have replaced it.
    fn is_current(&self, lock: &Lock) -> bool {
        let path = self.path.join(format!("inuse.{}.lock", lock.pid));
        fs::symlink_metadata(path).is_ok_and(|meta| modified(&meta) == lock.made)
    }

    fn read_workspace(&mut self, observed: &mut Observed) {
        let path = self.path.join(WORKSPACE);
        let meta = fs::symlink_metadata(&path).ok();
        let stamp = meta.as_ref().map(modified);
        if stamp.is_none() || stamp != self.workspace {
            let about = &mut observed.about;
            *about = meta.and_then(|_| read_workspace(&path).ok()).unwrap_or_default();
            // The file may be edited; the folder keeps when it was created, or copied.
            let born = fs::symlink_metadata(&self.path).ok().and_then(|meta| created(&meta));
            about.created = about.created.into_iter().chain(born).min();
            self.workspace = stamp;
        }
    }

    /// Reads what is new in the log.
    fn read_log(&mut self, reading: &Reading<'_>, observed: &mut Observed, buffer: &mut Vec<u8>) -> ReadStatus {
        let path = self.path.join(LOG);
        let result = reading.log(&mut self.tail, &LOG_FORMAT, &path, observed, buffer);
        Self::note_read(observed, &result)
    }

    /// The same, but if the log has just gone, what was read of it stays.
    fn read_log_if_there(
        &mut self,
        reading: &Reading<'_>,
        observed: &mut Observed,
        buffer: &mut Vec<u8>,
    ) -> Option<ReadStatus> {
        let path = self.path.join(LOG);
        match reading.log_if_there(&mut self.tail, &LOG_FORMAT, &path, observed, buffer) {
            Ok(ReadOutcome::Absent) => None,
            result => Some(Self::note_read(observed, &result)),
        }
    }

    fn note_read(observed: &mut Observed, result: &Result<ReadOutcome, LogError>) -> ReadStatus {
        if let Some(progress) = observed.facts.progress {
            observed.touched = observed.touched.max(progress.wall);
        }
        if let Ok(ReadOutcome::More) = result { ReadStatus::Partial } else { ReadStatus::Complete }
    }
}

impl SessionReader for Folder {
    fn refresh(
        &mut self,
        reading: &Reading<'_>,
        observed: &mut Observed,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ReadStatus> {
        let is_new = !self.was_listed && self.listing.is_none() && observed.facts.progress.is_none();
        if is_new && let Some(past) = self.path.parent().and_then(|root| Root::at(root).past(self.id(), reading)) {
            past.note(observed);
            return Ok(ReadStatus::Complete);
        }
        let folder = match fs::symlink_metadata(&self.path) {
            Ok(folder) if folder.is_dir() => folder,
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) => return self.unreadable(observed, error),
        };
        if self.is_being_deleted(observed, &folder, reading) {
            return Ok(ReadStatus::Complete);
        }
        let written = modified(&folder);
        let all_listed = match self.list_locks(written, reading) {
            Ok(all_listed) => all_listed,
            Err(error) => {
                observed.touched = written;
                return self.unreadable(observed, error);
            }
        };
        let had_log = observed.has_log;
        self.note_log(observed, &folder);
        if had_log && !observed.has_log {
            // It has gone since it was looked for above.
            observed.has_log = true;
            if self.is_being_deleted(observed, &folder, reading) {
                return Ok(ReadStatus::Complete);
            }
            observed.has_log = false;
        }
        let (owner, progress) = (observed.owner.clone(), observed.facts.progress);
        self.find_owner(observed, reading);
        observed.unread = is_history(observed, reading) && self.guess(observed, reading).is_none();
        if observed.unread {
            return Ok(ReadStatus::Complete);
        }
        self.read_workspace(observed);
        let status = if observed.has_log {
            match self.read_log_if_there(reading, observed, buffer) {
                Some(status) => status,
                None if self.is_being_deleted(observed, &folder, reading) => return Ok(ReadStatus::Complete),
                None => self.read_log(reading, observed, buffer),
            }
        } else {
            self.read_log(reading, observed, buffer)
        };
        self.find_former_owner(observed, reading);
        self.find_guessed_owner(observed, reading);
        self.doubt(observed, reading);
        owner::cap_owner_start(observed, &owner, progress);
        Ok(if all_listed { status } else { ReadStatus::Partial })
    }

    fn read_history(&mut self, reading: &Reading<'_>, observed: &mut Observed, buffer: &mut Vec<u8>) -> ReadStatus {
        observed.unread = false;
        self.read_workspace(observed);
        self.read_log(reading, observed, buffer)
    }

    fn forget_log(&mut self) {
        self.tail = Tail::default();
    }

    fn about(&self) -> About {
        read_workspace(&self.path.join(WORKSPACE)).unwrap_or_default()
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    fn resume_line(&self) -> Option<String> {
        resume_line(self.id())
    }

    fn agent_notifies(&self) -> bool {
        self.home().is_some_and(user_settings::notifies)
    }

    fn pids(&self) -> Vec<u32> {
        // With the one that has the session open without a lock.
        self.locks.iter().map(|lock| lock.pid).chain(self.opened).collect()
    }

    fn newcomers(&self) -> &[u32] {
        &self.newcomers
    }

    fn owner_recheck_at(&self) -> Option<Time> {
        self.owner_recheck_at
    }

    fn evidence(&self, observed: &Observed) -> Option<Arc<dyn Evidence>> {
        let lock = self.owners_lock(observed)?;
        Some(Arc::new(target::Locked { lock, folder: self.path.clone() }))
    }

    fn process_ended(&mut self, observed: &mut Observed, pid: u32, at: Time) {
        self.note_end(observed, pid, at);
    }
}

/// Whether the session has ended, whatever its log says. Without a log there is nothing to wait for.
fn is_history(observed: &Observed, reading: &Reading<'_>) -> bool {
    if observed.has_log {
        return reading.is_history(observed);
    }
    observed.facts.progress.is_none() && matches!(observed.owner, Owner::Never | Owner::Gone { .. })
}

fn read_workspace(path: &Path) -> io::Result<About> {
    let (file, meta) = plain_file::open(path, Links::Refused)?;
    // Room for a little more than the whole file lets one read fetch all of it and the next find its end.
    let mut text = Vec::with_capacity(512 + usize::try_from(meta.len().min(workspace::LENGTH_MAX)).unwrap_or_default());
    file.take(workspace::LENGTH_MAX).read_to_end(&mut text)?;
    Ok(workspace::parse(&text))
}
