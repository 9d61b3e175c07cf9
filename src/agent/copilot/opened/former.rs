//! The former owner of a session whose lock is gone.
//!
//! A killed Copilot leaves its lock behind, and another Copilot may remove it. Then nothing in the folder shows that
//! the session's process is gone, but the process's log stays in the home, and shows which sessions it had open.

use super::log::{LOGS, Log, log_lock};
use crate::agent::copilot::owner::owner_of;
use crate::core::owner::Owner;
use crate::core::time::Time;
use crate::system::process::{SLACK, is_inside_container};
use std::cmp::Reverse;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// The most logs that are read, the most recently written first.
const LOGS_MAX: usize = 32;
/// The most that is read of them in total, in bytes. This takes some 20 ms, during which other sessions wait. Real logs
/// are smaller.
const BYTES_MAX: u64 = 16 << 20;

/// Returns the process that had a session open at `last`, when the session's last event was written, if that process is
/// gone. `None` where this is unknown: no log names the session, the process closed it, any process that had it open
/// may still be alive, or there is too much to read.
///
/// Like a lock, a log names a process in a container by its id in that container. Where a container's process is
/// visible here under such an id, it counts as alive.
pub(crate) fn former_owner(home: &Path, id: &str, last: Time, names: &[String], now: Time) -> Option<u32> {
    let written =
        |entry: &fs::DirEntry| entry.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let entries = fs::read_dir(home.join(LOGS)).ok()?.flatten();
    let logs = entries.filter_map(|entry| Some((log_lock(entry.file_name().to_str()?)?, entry)));
    let mut logs: Vec<_> = logs.map(|(lock, entry)| (lock, written(&entry), entry.path())).collect();
    logs.sort_by_key(|(_, written, _)| Reverse(*written));
    logs.truncate(LOGS_MAX);
    let length = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
    if logs.iter().map(|(.., path)| length(path)).sum::<u64>() > BYTES_MAX {
        return None;
    }
    let has_open = |path: &Path| Log::whole(path).is_some_and(|log| log.open().any(|open| **open == *id));
    logs.retain(|(.., path)| has_open(path));
    let is_gone = |pid, lock| matches!(owner_of(lock, names, now), Owner::Gone { .. }) && !is_inside_container(pid);
    if !logs.iter().all(|(lock, ..)| is_gone(lock.pid, *lock)) {
        return None;
    }
    let ran = logs.iter().map(|(lock, ..)| lock).filter(|lock| lock.made <= last + SLACK);
    ran.max_by_key(|lock| lock.made).map(|lock| lock.pid)
}
