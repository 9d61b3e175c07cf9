//! Claude Code as an [`Adapter`].

use super::bridge;
use super::running::{DISPLAY_NAME, FINGERPRINT, HOME, HOME_VARIABLE};
use super::session::{self, ClaudeReader};
use super::store::{self, DEPTH, PROJECTS, SessionScan, session_of, subject_inside};
use super::{log_format, pid_file, running};
use crate::adapter::Adapter;
use crate::bridge::Installer;
use crate::home::Home;
use crate::listing::{Listing, QuickScan};
use crate::listing_cache::ListingCache;
use crate::profile::Profile;
use crate::reader::Reader;
use crate::reading::LogPaths;
use crate::runners::RoleOf;
#[cfg(target_os = "linux")]
use crate::runners::Runner;
use crate::tail::LogFormat;
use pilotlight_core::agent::Names;
use pilotlight_core::owner::Owner;
use pilotlight_core::text::is_uuid;
use pilotlight_core::time::Time;
use pilotlight_system::paths::Folders;
use pilotlight_system::watcher::{Layout, Logs, WatchPlan};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is the same about all its homes.
pub(crate) const PROFILE: Profile = Profile {
    names: Names {
        name: "claude-code",
        word: DISPLAY_NAME,
        mark: "Claude",
        no_owner: "no process names it",
        left_behind: "it left its file behind",
        contested: "two live processes have it open",
    },
    program: "claude",
    fingerprint: Some(FINGERPRINT),
    installed: &[".local/bin", ".claude/local", ".npm-global/bin"],
    tried: "2.1.332",
    gaps: Some("a long answer looks silent until it is complete, because Claude Code writes nothing before"),
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

/// Claude Code.
pub struct ClaudeCode;

impl Adapter for ClaudeCode {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn list(&self, home: &Home, cache: ListingCache) -> io::Result<Listing> {
        let (ids, logs, cache) = store::list(home.folder(), home.root(), cache)?;
        Ok(Listing::of(ids).with(logs, cache))
    }

    fn path(&self, home: &Home, id: &str) -> PathBuf {
        store::path(home.folder(), home.root(), id)
    }

    fn open(&self, home: &Home, id: &str, log: PathBuf) -> Reader {
        Box::new(ClaudeReader::new(home.folder(), home.root(), id, log))
    }

    fn has(&self, home: &Home, id: &str) -> bool {
        store::has(home.folder(), home.root(), id)
    }

    fn log_format(&self) -> Option<&'static LogFormat> {
        Some(&log_format::LOG_FORMAT)
    }

    fn follows_links(&self) -> bool {
        true
    }

    fn quick_scan<'a>(&self, home: &'a Home, listed: Option<&LogPaths>) -> Box<dyn QuickScan + 'a> {
        Box::new(SessionScan::new(home.folder(), home.root(), listed))
    }

    fn role(&self) -> Option<RoleOf> {
        Some(running::role)
    }

    #[cfg(target_os = "linux")]
    fn complete(&self, runner: &mut Runner) {
        running::complete(runner);
    }

    fn claimed(&self, home: &Home) -> Vec<Arc<str>> {
        store::claimed(home.folder())
    }

    fn named_by(&self, home: &Home, pid: u32) -> Option<Arc<str>> {
        store::named_by(home.folder(), pid)
    }

    fn owner_now(&self, home: &Home, id: &str, _names: &[String], now: Time) -> Owner {
        session::owner_now(home.folder(), home.root(), id, now)
    }

    fn installer(&self, project: &Folders) -> Option<Box<dyn Installer>> {
        Some(Box::new(bridge::files::Files::new(project)))
    }

    fn resume(&self, program: &Path, id: &str) -> Result<Vec<OsString>, &'static str> {
        resume_command(program, id).ok_or("its id is not a valid Claude Code id")
    }
}

/// The command that resumes a session. `None` if the id is not a UUID: nothing else may reach a command line.
fn resume_command(program: &Path, id: &str) -> Option<Vec<OsString>> {
    is_uuid(id).then(|| vec![program.into(), "--resume".into(), id.into()])
}

/// The same for the user to type.
pub(super) fn resume_line(id: &str) -> Option<String> {
    is_uuid(id).then(|| format!("claude --resume {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";

    /// Case 250.
    #[test]
    fn case_250_only_a_uuid_reaches_a_command_line() {
        for id in ["", "36535f61", "--dangerously-skip-permissions", &format!("{ID} -p"), &format!("{ID};id"), "$(id)"]
        {
            assert_eq!((resume_command(Path::new("/bin/claude"), id), resume_line(id)), (None, None), "{id:?}");
        }
        let resumed = resume_command(Path::new("/bin/claude"), ID).unwrap();
        assert_eq!(resumed, ["/bin/claude", "--resume", ID]);
    }
}
