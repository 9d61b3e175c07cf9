//! What is the same about all homes of Copilot.

use super::home;
use super::identity::FINGERPRINT;
use super::opened::{LOGS, OPEN_SESSIONS, log_pid};
use super::store::{LOG, SESSIONS, WORKSPACE, lock_pid};
use crate::profile::Profile;
use pilotlight_core::agent::Names;
use pilotlight_system::watcher::{Layout, Logs, WatchPlan};

/// What is the same about all its homes.
pub const PROFILE: Profile = Profile {
    names: Names {
        name: "copilot",
        word: "Copilot",
        mark: "Copilot",
        no_owner: "its folder has no lock",
        left_behind: "its lock was left behind",
        contested: "a lock on it",
    },
    program: "copilot",
    fingerprint: Some(FINGERPRINT),
    installed: &[],
    tried: "1.0.102",
    gaps: None,
    home: home::NAME,
    home_variable: home::VARIABLE,
    is_home: |home| home.join(SESSIONS).is_dir(),
    sessions: SESSIONS,
    watch_plan: WatchPlan {
        layout: Layout::Folders {
            is_session_file: |file| file == LOG || file == WORKSPACE || lock_pid(file).is_some(),
        },
        logs: Some(Logs { folder: LOGS, pid: log_pid, names_session: false }),
        notes: Some(OPEN_SESSIONS),
        locks: None,
    },
};
