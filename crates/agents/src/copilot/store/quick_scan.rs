//! A fast check whether a session is history, in as few system calls as possible.
//!
//! Of tens of thousands of folders, nearly all have no lock and a log that was last written long ago. For these,
//! listing the folder and reading the log's modification time is enough: five system calls on Linux. Locks, processes and
//! logs are read only for the others.

#[cfg(target_os = "linux")]
mod linux;

use crate::listing::QuickScan;
use crate::reading::{PastSession, Reading};
use std::path::Path;

/// The folder that holds the session folders.
#[derive(Debug)]
pub(crate) struct Root<'a> {
    path: &'a Path,
    #[cfg(target_os = "linux")]
    folder: Option<rustix::fd::OwnedFd>,
}

impl<'a> Root<'a> {
    /// Resolves session folders by their whole paths.
    pub(crate) const fn at(path: &'a Path) -> Self {
        #[cfg(target_os = "linux")]
        return Self { path, folder: None };
        #[cfg(not(target_os = "linux"))]
        Self { path }
    }

    /// Resolves session folders relative to an open descriptor. Faster for many folders.
    pub(crate) fn open(path: &'a Path) -> Self {
        #[cfg(target_os = "linux")]
        return Self { path, folder: linux::open_root(path) };
        #[cfg(not(target_os = "linux"))]
        Self::at(path)
    }

    #[cfg(target_os = "linux")]
    fn scan(&self, id: &str) -> Option<PastSession> {
        match &self.folder {
            Some(folder) => linux::scan(folder, Path::new(id)),
            None => linux::scan(rustix::fs::CWD, &self.path.join(id)),
        }
    }

    /// Not implemented here: every folder is read in full.
    #[cfg(not(target_os = "linux"))]
    const fn scan(&self, _: &str) -> Option<PastSession> {
        None
    }
}

impl QuickScan for Root<'_> {
    fn past(&self, id: &str, reading: &Reading<'_>) -> Option<PastSession> {
        if reading.all || reading.openings.has(self.path, id) {
            return None;
        }
        self.scan(id).filter(|scan| !scan.has_log || reading.is_past(scan.touched))
    }
}
