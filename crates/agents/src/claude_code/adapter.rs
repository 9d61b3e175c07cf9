//! Claude Code as an [`Adapter`].

use super::profile::PROFILE;
use super::session::{self, Session};
use super::store::{self, SessionScan};
use super::{log_format, resume, running};
use crate::adapter::Adapter;
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
use pilotlight_core::time::Time;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        Box::new(Session::new(home.folder(), home.root(), id, log))
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

    fn resume(&self, program: &Path, id: &str) -> Result<Vec<OsString>, &'static str> {
        resume::command(program, id).ok_or("its id does not have the form of Claude Code's ids")
    }
}
