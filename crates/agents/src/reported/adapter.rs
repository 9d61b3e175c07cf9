//! Any other agent, by its own hook's reports, as an [`Adapter`].

use super::{PROFILE, Told, places};
use crate::adapter::Adapter;
use crate::listing::Listing;
use crate::profile::Profile;
use crate::reader::Reader;
use crate::source::Source;
use crate::stamps::Stamps;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Any other agent, by its own hook's reports.
pub struct Reported;

impl Adapter for Reported {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn list(&self, home: &Source, _stamps: Stamps) -> io::Result<Listing> {
        places::list(home.root()).map(Listing::of)
    }

    fn path(&self, home: &Source, id: &str) -> PathBuf {
        places::path(home.root(), id)
    }

    fn open(&self, home: &Source, id: &str, _log: Option<PathBuf>) -> Reader {
        Box::new(Told::new(self.path(home, id), home.only()))
    }

    fn resume(&self, _program: &Path, _id: &str) -> Result<Vec<OsString>, &'static str> {
        Err("only its hook is known")
    }

    fn is_by_reports(&self) -> bool {
        true
    }
}
