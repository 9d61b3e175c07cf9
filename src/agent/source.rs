//! A source of sessions: an agent, and one of its homes. Lists its sessions, and makes their readers.

use super::copilot::opened;
use super::copilot::store::{self, Folder, Root};
use super::openings::Noted;
use super::reader::Reader;
use super::reading::{Glimpse, Reading};
use super::wing::Wing;
use crate::core::owner::Owner;
use crate::core::time::Time;
use crate::system::watcher::WatchPlan;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An agent, and one of its homes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    wing: Wing,
    home: PathBuf,
    /// The folder of the home that holds its sessions.
    root: PathBuf,
}

impl Source {
    /// This home, of whichever agent it is.
    pub(crate) fn at(home: &Path) -> Self {
        let wing = Wing::of_home(home);
        Self { wing, home: home.to_owned(), root: home.join(wing.sessions_folder()) }
    }

    /// The agent.
    pub(crate) const fn wing(&self) -> Wing {
        self.wing
    }

    /// The home.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The folder of the home that holds its sessions.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where one of its sessions is: its folder, or its file.
    pub(crate) fn path(&self, id: &str) -> PathBuf {
        match self.wing {
            Wing::Copilot => self.root.join(id),
        }
    }

    /// What there is to watch in it.
    pub(crate) const fn watch_plan(&self) -> &'static WatchPlan {
        self.wing.watch_plan()
    }

    /// Lists the ids of its sessions.
    ///
    /// # Errors
    /// Where the folder cannot be listed.
    pub(crate) fn list(&self) -> io::Result<SessionIds> {
        match self.wing {
            Wing::Copilot => store::session_ids(&self.root).map(SessionIds::Copilot),
        }
    }

    /// Takes glimpses of its sessions. `many`: it pays to prepare for that.
    pub(crate) fn glimpses(&self, many: bool) -> Glimpses<'_> {
        match self.wing {
            Wing::Copilot if many => Glimpses::Copilot(Root::open(&self.root)),
            Wing::Copilot => Glimpses::Copilot(Root::at(&self.root)),
        }
    }

    /// A reader for one of its sessions, which has read nothing yet.
    pub(crate) fn reader(&self, id: &str) -> Reader {
        match self.wing {
            Wing::Copilot => Reader::Copilot(Folder::new(&self.root, id)),
        }
    }

    /// The sessions that its terminals note as open.
    pub(crate) fn noted(&self) -> Noted {
        match self.wing {
            Wing::Copilot => opened::noted(&self.home),
        }
    }

    /// The owner of one of its sessions now, determined from scratch. A process that does not hold the session yet does
    /// not count as its owner; a missing session has none.
    pub(crate) fn owner_now(&self, id: &str, names: &[String], now: Time) -> Owner {
        match self.wing {
            Wing::Copilot => store::owner_now(&self.root, id, names, now),
        }
    }
}

/// Lists the ids of a source's sessions.
#[derive(Debug)]
pub(crate) enum SessionIds {
    /// The names of folders.
    Copilot(store::SessionIds),
}

impl Iterator for SessionIds {
    type Item = Arc<str>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Copilot(ids) => ids.next(),
        }
    }
}

/// Checks fast, without a reader, whether sessions of a source are history.
#[derive(Debug)]
pub(crate) enum Glimpses<'a> {
    /// Relative to the folder of the sessions.
    Copilot(Root<'a>),
}

impl Glimpses<'_> {
    /// Returns a glimpse of a session if it shows that nobody has the session open and that its log is too old to
    /// matter.
    pub(crate) fn past(&self, id: &str, reading: &Reading<'_>) -> Option<Glimpse> {
        match self {
            Self::Copilot(root) => root.past(id, reading),
        }
    }
}
