//! Who had a session open that has no lock any more.
//!
//! A Copilot that was killed leaves its lock, and another Copilot may clean that away. Then nothing in the folder tells that the
//! session's process is gone; but its log stays in the home, and names the process and what it had open.

use super::log::Log;
use super::{LOGS, SLACK, log_lock};
use crate::agent::copilot::owner::owner_of;
use crate::core::owner::Owner;
use crate::core::time::Time;
use crate::system::process::is_inside_container;
use std::cmp::Reverse;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// So many logs are read, those that were written last.
const LOGS_MAX: usize = 32;
/// And so much of them in all, in bytes: other sessions wait meanwhile, some 20 ms. Real ones have less.
const BYTES_MAX: u64 = 16 << 20;

/// The process that had a session open when its last event was written, at `last`, if it is gone. `None` where that is not known: where
/// no log names the session, where the log says that the process closed it, where any process that had it open may live, and
/// where there is too much to read.
///
/// What is known is as good as a lock: a process in a container is known by an id of its own there. Where such a process shows
/// here, it counts as one that may live.
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
