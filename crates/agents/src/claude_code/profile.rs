//! What is the same about all homes of Claude Code.

use super::pid_file;
use super::running::{FINGERPRINT, HOME, HOME_VARIABLE, WORD};
use super::store::{DEPTH, PROJECTS, session_of, subject_inside};
use crate::profile::Profile;
use pilotlight_core::agent::Names;
use pilotlight_system::watcher::{Layout, Logs, WatchPlan};

/// What is the same about all its homes.
pub(crate) const PROFILE: Profile = Profile {
    names: Names {
        name: "claude-code",
        word: WORD,
        mark: "Claude",
        no_owner: "no process names it",
        left_behind: "it left its file behind",
        contested: "it open",
    },
    program: "claude",
    fingerprint: Some(FINGERPRINT),
    installed: &[".local/bin", ".claude/local", ".npm-global/bin"],
    tried: "2.1.332",
    gaps: Some("what it asks is answered in its terminal; while a model answers, nothing is written"),
    home: HOME,
    home_variable: HOME_VARIABLE,
    is_home: |home| {
        home.join(PROJECTS).is_dir() || home.join(pid_file::FOLDER).is_dir() && !home.join("session-state").exists()
    },
    sessions: PROJECTS,
    watch_plan: WatchPlan {
        layout: Layout::Files { depth: DEPTH, session_of, beside: Some(subject_inside) },
        logs: Some(Logs { folder: pid_file::FOLDER, pid: pid_file::pid_of, names_session: true }),
        notes: None,
        locks: None,
    },
};
