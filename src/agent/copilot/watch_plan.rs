//! What there is to watch in a home of Copilot's.

use super::opened::{LOGS, OPEN_SESSIONS, log_pid};
use super::store::{LOG, WORKSPACE, lock_pid};
use crate::system::watcher::{Layout, WatchPlan};

/// What to watch in a home of Copilot's.
pub(crate) const WATCH_PLAN: WatchPlan = WatchPlan {
    layout: Layout::Folders { is_session_file: |file| file == LOG || file == WORKSPACE || lock_pid(file).is_some() },
    logs: LOGS,
    log_pid,
    notes: Some(OPEN_SESSIONS),
};
