//! Copilot as an [`Adapter`].

use super::bridge::Files;
use super::identity::FINGERPRINT;
use super::log_format;
use super::opened::{LOGS, OPEN_SESSIONS, OpenScan, OpenScanner, log_pid, noted};
use super::program::{VERSION_TIMEOUT_LONG, find_program};
use super::prompt::{self, LastPrompt};
use super::server::connection::Kept;
use super::server::hosted::{host, is_of_our_server};
use super::server::servers::endpoints;
use super::store::{self, Folder, LOG, Root, SESSIONS, WORKSPACE, lock_pid};
use crate::adapter::{Adapter, SessionScanner};
use crate::bridge::Installer;
use crate::channel::action_context::ActionContext;
use crate::channel::failure::Failure;
use crate::channel::{Connection, Keep, Servers};
use crate::control::{Control, KnownServers};
use crate::home::Home;
use crate::listing::{Listing, QuickScan};
use crate::listing_cache::ListingCache;
use crate::openings::{Noted, OpenSession};
use crate::profile::Profile;
use crate::reader::Reader;
use crate::reading::LogPaths;
use crate::tail::LogFormat;
use async_trait::async_trait;
use pilotlight_core::agent::Names;
use pilotlight_core::owner::Owner;
use pilotlight_core::text::is_uuid;
use pilotlight_core::time::Time;
use pilotlight_system::paths::{Folders, user_home};
use pilotlight_system::watcher::{Layout, Logs, WatchPlan};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What is the same about all its homes.
pub const PROFILE: Profile = Profile {
    names: Names {
        name: "copilot",
        word: "Copilot",
        mark: "Copilot",
        no_owner: "no process has locked it",
        left_behind: "its lock was left behind",
        contested: "two live processes have a lock on it",
    },
    program: "copilot",
    fingerprint: Some(FINGERPRINT),
    installed: &[],
    tried: "1.0.102",
    gaps: None,
    home: ".copilot",
    home_variable: "COPILOT_HOME",
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

/// GitHub Copilot.
pub struct Copilot;

#[async_trait]
impl Adapter for Copilot {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn list(&self, home: &Home, _cache: ListingCache) -> io::Result<Listing> {
        store::session_ids(home.root()).map(Listing::of)
    }

    fn path(&self, home: &Home, id: &str) -> PathBuf {
        home.root().join(id)
    }

    fn open(&self, home: &Home, id: &str, _path: PathBuf) -> Reader {
        Box::new(Folder::new(home.root(), id))
    }

    fn log(&self, home: &Home, id: &str) -> PathBuf {
        self.path(home, id).join(LOG)
    }

    fn log_format(&self) -> Option<&'static LogFormat> {
        Some(&log_format::LOG_FORMAT)
    }

    fn quick_scan<'a>(&self, home: &'a Home, listed: Option<&LogPaths>) -> Box<dyn QuickScan + 'a> {
        Box::new(if listed.is_some() { Root::open(home.root()) } else { Root::at(home.root()) })
    }

    fn scanner(&self) -> Option<Box<dyn SessionScanner>> {
        Some(Box::new(Scanner { known: OpenScanner::default(), scan: OpenScan::begin() }))
    }

    fn noted(&self, home: &Home) -> Noted {
        noted(home.folder())
    }

    fn process_in_use(&self, home: &Home, id: &str) -> Option<u32> {
        store::lock_pids_in_use(&self.path(home, id)).first().copied()
    }

    fn owner_now(&self, home: &Home, id: &str, names: &[String], now: Time) -> Owner {
        store::owner_now(home.root(), id, names, now)
    }

    async fn program(&self, named: Option<&Path>) -> Result<PathBuf, String> {
        find_program(named, VERSION_TIMEOUT_LONG).await
    }

    fn installer(&self, project: &Folders) -> Option<Box<dyn Installer>> {
        Some(Box::new(Files::new(project)))
    }

    fn resume(&self, program: &Path, id: &str) -> Result<Vec<OsString>, &'static str> {
        resume_command(program, id).ok_or("its id is not a valid Copilot id")
    }

    fn last_prompt(&self, home: &Home, id: &str) -> io::Result<LastPrompt> {
        prompt::last_prompt(&self.log(home, id))
    }

    fn has_instructions(&self, home: &Home, id: &str) -> bool {
        prompt::system_message(&self.log(home, id)).is_ok()
    }

    fn control(&self) -> Option<&dyn Control> {
        Some(self)
    }
}

/// Its servers take orders, and one of our own can host a session.
#[async_trait]
impl Control for Copilot {
    fn servers(&self, pid: u32, known: &KnownServers<'_>) -> Option<Arc<dyn Servers>> {
        let KnownServers { homes, settings, is_trusted } = *known;
        let endpoints = endpoints(pid, is_trusted, homes, settings, user_home().as_deref());
        (!endpoints.all().is_empty()).then(|| Arc::new(endpoints) as _)
    }

    async fn host(
        &self,
        program: &Path,
        home: &Path,
        context: &ActionContext,
        keep: Keep,
    ) -> Result<Arc<dyn Connection>, Failure> {
        let hosted = host(program, home, context, keep).await?;
        Ok(Arc::new(Kept::Hosted(hosted)))
    }

    fn is_of_our_server(&self, pid: u32) -> bool {
        is_of_our_server(pid)
    }
}

/// Scans for the sessions that Copilot's processes have open.
#[derive(Debug)]
struct Scanner {
    known: OpenScanner,
    scan: OpenScan,
}

impl SessionScanner for Scanner {
    fn begin(&mut self) {
        self.scan = OpenScan::begin();
    }

    fn advance(
        &mut self,
        homes: &[&Home],
        names: &[String],
        now: Time,
        until: Option<Instant>,
    ) -> Option<Vec<OpenSession>> {
        let roots: Vec<_> = homes.iter().map(|home| home.root().to_owned()).collect();
        self.known.advance(&mut self.scan, &roots, names, now, until)
    }

    fn forget(&mut self, pid: u32) {
        self.scan.forget(pid);
    }

    fn may_differ(&mut self, written: &[u32], until: Option<Instant>) -> bool {
        self.known.may_differ(written.iter().copied(), until)
    }

    fn forget_unseen(&mut self) {
        self.known.forget_unseen();
    }
}

/// The command that resumes a session in a terminal. `None` if the id is not a UUID, as Copilot's are: nothing else may
/// reach a command line.
fn resume_command(program: &Path, id: &str) -> Option<Vec<OsString>> {
    is_uuid(id).then(|| vec![program.into(), format!("--resume={id}").into()])
}

/// The same for the user to type.
pub(super) fn resume_line(id: &str) -> Option<String> {
    is_uuid(id).then(|| format!("copilot --resume={id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";

    #[test]
    fn only_an_id_of_copilots_form_reaches_a_command_line() {
        for id in ["", "36535f61", "--yolo", &format!("{ID} --yolo"), &format!("{ID}\n"), &format!("{ID};id"), "$(id)"]
        {
            assert_eq!(resume_command(Path::new("/bin/copilot"), id), None, "{id:?}");
        }
        let resumed = resume_command(Path::new("/bin/copilot"), ID).unwrap();
        assert_eq!(resumed, ["/bin/copilot".into(), OsString::from(format!("--resume={ID}"))]);
    }
}
