//! What is the same about all homes of Codex.

use super::lock::{LOCKS, session_of_lock};
use super::store::{DEPTH, SESSIONS, session_of};
use crate::fingerprint::Fingerprint;
use crate::profile::Profile;
use pilotlight_core::agent::Names;
use pilotlight_system::watcher::{Layout, Locks, WatchPlan};
use std::fs;
use std::path::Path;

/// What is the same about all its homes.
pub(crate) const PROFILE: Profile = Profile {
    names: Names {
        name: "codex",
        word: "Codex",
        mark: "Codex",
        no_owner: "no process holds its lock",
        left_behind: "its lock was left behind",
        contested: "its lock",
    },
    program: "codex",
    // Observed: 0.169.0.
    fingerprint: Some(Fingerprint {
        program: "codex",
        releases: None,
        package: "@openai/codex",
        marks: &["CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID"],
        content: None,
    }),
    installed: &[".local/bin", ".npm-global/bin", ".bun/bin"],
    tried: "0.171.0",
    gaps: Some("outside of its daemon nothing says for certain that it asks"),
    home: ".codex",
    home_variable: "CODEX_HOME",
    is_home,
    sessions: SESSIONS,
    watch_plan: WatchPlan {
        layout: Layout::Files { depth: DEPTH, session_of, beside: None },
        logs: None,
        notes: None,
        locks: Some(Locks { folder: LOCKS, session_of: session_of_lock }),
    },
};

/// Whether a folder is one of its homes: it has the folder of the locks or, from an older release, a folder of a year.
fn is_home(home: &Path) -> bool {
    let is_year = |name: &str| name.len() == 4 && name.bytes().all(|digit| digit.is_ascii_digit());
    let years = || fs::read_dir(home.join(SESSIONS)).into_iter().flatten().flatten();
    home.join(LOCKS).is_dir() || years().any(|entry| entry.file_name().to_str().is_some_and(is_year))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::of_home;

    #[test]
    fn a_home_is_told_by_its_locks_or_its_years() {
        for (folder, name) in [
            (LOCKS, "codex"),
            ("sessions/2026/11/21", "codex"),
            ("sessions/20261", "claude-code"),
            ("sessions", "claude-code"),
            ("projects", "claude-code"),
            ("session-state", "copilot"),
        ] {
            let home = tempfile::tempdir().unwrap();
            fs::create_dir_all(home.path().join(folder)).unwrap();
            fs::create_dir_all(home.path().join(SESSIONS)).unwrap();
            assert_eq!(of_home(home.path()).name(), name, "{folder}");
        }
    }
}
