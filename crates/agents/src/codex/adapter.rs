//! Codex as an [`Adapter`].

use super::daemon_socket::DaemonSocket;
use super::profile::PROFILE;
use super::store::{self, SessionScan};
use super::thread::Thread;
use super::{log_format, resume, running};
use crate::adapter::Adapter;
use crate::channel::Service;
use crate::control::Control;
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
use pilotlight_core::owner::Owner;
use pilotlight_core::session::Observed;
use pilotlight_core::time::Time;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        resume::command(program, id).ok_or("its id does not have the form of Codex's ids")
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
