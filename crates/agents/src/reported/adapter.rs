//! Any other agent, by its own hook's reports, as an [`Adapter`].

use super::{PROFILE, ReportReader, places};
use crate::adapter::Adapter;
use crate::home::Home;
use crate::listing::Listing;
use crate::listing_cache::ListingCache;
use crate::profile::Profile;
use crate::reader::Reader;
use async_trait::async_trait;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Why it is neither started nor resumed.
const UNKNOWN: &str = "only its hook is known";

/// Any other agent, by its own hook's reports.
pub struct Reported;

#[async_trait]
impl Adapter for Reported {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn list(&self, home: &Home, _cache: ListingCache) -> io::Result<Listing> {
        places::list(home.root()).map(Listing::of)
    }

    fn path(&self, home: &Home, id: &str) -> PathBuf {
        places::path(home.root(), id)
    }

    fn lists_logs(&self) -> bool {
        false
    }

    fn open(&self, home: &Home, _id: &str, path: PathBuf) -> Reader {
        Box::new(ReportReader::new(path, home.only()))
    }

    async fn program(&self, _named: Option<&Path>) -> Result<PathBuf, String> {
        Err(UNKNOWN.to_owned())
    }

    fn resume(&self, _program: &Path, _id: &str) -> Result<Vec<OsString>, &'static str> {
        Err(UNKNOWN)
    }

    fn is_by_reports(&self) -> bool {
        true
    }
}
