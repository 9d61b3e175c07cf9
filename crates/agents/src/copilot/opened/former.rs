//! The former owner of a session whose lock is gone.
//!
//! A killed Copilot leaves its lock behind, and another Copilot may remove it. Then nothing in the folder shows that
//! the session's process is gone, but the process's log stays in the home, and shows which sessions it had open.

use super::log::{LOGS, Log, log_lock};
use crate::copilot::owner::{Lock, owner_of};
use pilotlight_core::owner::Owner;
use pilotlight_core::time::{Span, Time};
use pilotlight_system::file_times::modified;
use pilotlight_system::process::{SLACK, is_inside_container};
use std::cmp::Reverse;
use std::fs;
use std::path::Path;

/// The most logs that are read, the most recently written first.
const LOGS_MAX: usize = 32;
/// The most that is read of them in total, in bytes. This takes some 20 ms, during which other sessions wait. Real logs
/// are smaller.
const BYTES_MAX: u64 = 16 << 20;

/// How long after it logged that it opened a session a Copilot records that in its home, on a busy machine.
const RECORDED_WITHIN: Span = Span::seconds(10);

/// Returns the process that had a session open at `last`, when the session's last event was written, if that process is
/// gone. `None` where this is unknown: no log names the session, the process closed it, any process that had it open
/// may still be alive, or there is too much to read.
///
/// Like a lock, a log names a process in a container by its id in that container. Where a container's process is
/// visible here under such an id, it counts as alive.
pub(crate) fn former_owner(home: &Path, id: &str, last: Time, names: &[String], now: Time) -> Option<u32> {
    let logs = logs_with(home, id)?;
    if !logs.iter().all(|(lock, _)| is_gone(*lock, names, now)) {
        return None;
    }
    let ran = logs.iter().map(|(lock, _)| lock).filter(|lock| lock.made <= last + SLACK);
    ran.max_by_key(|lock| lock.made).map(|lock| lock.pid)
}

/// Whether a process that is gone had a session open when its home recorded, `at` that time, that it was opened: its log
/// still names it. A Copilot logs and records within two seconds that it opened a session, so the log of one that was
/// written last before that does not explain the record.
pub(crate) fn left_open(home: &Path, id: &str, at: Time, names: &[String], now: Time) -> bool {
    let logs = logs_with(home, id).unwrap_or_default();
    logs.iter().any(|(lock, written)| *written + RECORDED_WITHIN >= at && is_gone(*lock, names, now))
}

fn is_gone(lock: Lock, names: &[String], now: Time) -> bool {
    matches!(owner_of(lock, names, now), Owner::Gone { .. }) && !is_inside_container(lock.pid)
}

/// The processes of a home in whose logs a session is open, and when they last wrote. `None` if there is too much to read.
fn logs_with(home: &Path, id: &str) -> Option<Vec<(Lock, Time)>> {
    let written = |entry: &fs::DirEntry| entry.metadata().map_or(Time(0), |meta| modified(&meta));
    let entries = fs::read_dir(home.join(LOGS)).ok()?.flatten();
    let logs = entries.filter_map(|entry| Some((log_lock(entry.file_name().to_str()?)?, entry)));
    let mut logs: Vec<_> = logs.map(|(lock, entry)| (lock, written(&entry), entry.path())).collect();
    logs.sort_by_key(|(_, written, _)| Reverse(*written));
    logs.truncate(LOGS_MAX);
    let length = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
    if logs.iter().map(|(.., path)| length(path)).sum::<u64>() > BYTES_MAX {
        return None;
    }
    let has_open = |path: &Path| Log::whole(path).is_some_and(|log| log.open().any(|(open, _)| *open == *id));
    logs.retain(|(.., path)| has_open(path));
    Some(logs.into_iter().map(|(lock, written, _)| (lock, written)).collect())
}
