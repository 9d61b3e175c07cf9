//! Codex as an [`Adapter`].

use super::daemon_socket::DaemonSocket;
use super::lock::{LOCKS, session_of_lock};
use super::store::{self, DEPTH, SESSIONS, SessionScan, session_of};
use super::thread::Thread;
use super::{log_format, running};
use crate::adapter::Adapter;
use crate::channel::Service;
use crate::control::Control;
use crate::fingerprint::Fingerprint;
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
use pilotlight_core::session::Observed;
use pilotlight_core::text::is_uuid;
use pilotlight_core::time::Time;
use pilotlight_system::watcher::{Layout, Locks, WatchPlan};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is the same about all its homes.
pub(crate) const PROFILE: Profile = Profile {
    names: Names {
        name: "codex",
        word: "Codex",
        mark: "Codex",
        no_owner: "no process holds its lock",
        left_behind: "its lock was left behind",
        contested: "two live processes have its lock",
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
    gaps: Some("without its daemon, Pilotlight can only guess when it asks you"),
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

/// Codex.
pub struct Codex;

impl Adapter for Codex {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn list(&self, home: &Home, cache: ListingCache) -> io::Result<Listing> {
        let (ids, logs, cache) = store::list(home.root(), cache)?;
        Ok(Listing::of(ids).with(logs, cache))
    }

    fn path(&self, home: &Home, id: &str) -> PathBuf {
        store::path(home.root(), id)
    }

    fn open(&self, home: &Home, id: &str, log: PathBuf) -> Reader {
        Box::new(Thread::new(home.root(), id, log))
    }

    fn log_format(&self) -> Option<&'static LogFormat> {
        Some(&log_format::LOG_FORMAT)
    }

    fn follows_links(&self) -> bool {
        true
    }

    fn quick_scan<'a>(&self, home: &'a Home, listed: Option<&LogPaths>) -> Box<dyn QuickScan + 'a> {
        Box::new(SessionScan::new(home.root(), listed))
    }

    fn whole(&self, home: &Home, id: &str) -> Option<Arc<str>> {
        store::whole(home.root(), id)
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

    fn owner_now(&self, home: &Home, id: &str, _names: &[String], now: Time) -> Owner {
        store::owner_now(home.root(), id, now)
    }

    fn control(&self) -> Option<&dyn Control> {
        Some(self)
    }

    fn resume(&self, program: &Path, id: &str) -> Result<Vec<OsString>, &'static str> {
        resume_command(program, id).ok_or("its id is not a valid Codex id")
    }
}

/// Its daemon takes orders for the threads that it runs.
impl Control for Codex {
    fn service(&self, home: &Path, id: &str, observed: &Observed) -> Option<Arc<dyn Service>> {
        let pid = observed.owner.live().filter(|_| observed.is_served)?;
        let sub_agents = observed.facts.sub_agents.iter().map(|sub_agent| sub_agent.id.clone());
        let socket = DaemonSocket::of(home, pid, [Box::from(id)].into_iter().chain(sub_agents).collect())?;
        Some(Arc::new(socket))
    }
}

/// The command that resumes a thread. `None` if its id must not reach a command line.
fn resume_command(program: &Path, id: &str) -> Option<Vec<OsString>> {
    is_uuid(id).then(|| vec![program.into(), "resume".into(), id.into()])
}

/// The same for the user to type.
pub(super) fn resume_line(id: &str) -> Option<String> {
    is_uuid(id).then(|| format!("codex resume {id}"))
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

    const ID: &str = "01a20053-8e6c-7863-a4ca-0d958e862685";

    #[test]
    fn only_a_uuid_reaches_a_command_line() {
        for id in ["", "--last", &format!("{ID} --last"), &format!("{ID}\n"), "$(id)"] {
            assert_eq!((resume_command(Path::new("/bin/codex"), id), resume_line(id)), (None, None), "{id:?}");
        }
        assert_eq!(resume_command(Path::new("/bin/codex"), ID).unwrap(), ["/bin/codex", "resume", ID]);
        assert_eq!(resume_line(ID).unwrap(), format!("codex resume {ID}"));
    }
}
