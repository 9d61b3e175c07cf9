//! Which programs were copied to other machines by `host add`, so that `host remove` takes away those, and no others.

use super::command::Way;
use crate::system::state_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file in the state folder.
const FILE: &str = "copied.json";

/// A program that was copied to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copied {
    /// How the machine was reached.
    pub(crate) way: Way,
    /// What `cksum` says of the program there.
    pub(crate) sum: String,
}

/// All of them, by the names of the hosts.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    path: PathBuf,
    copies: BTreeMap<String, Copied>,
}

impl Copies {
    /// Reads them. What cannot be read counts as none.
    pub(crate) fn read(state_folder: &Path) -> Self {
        let path = state_folder.join(FILE);
        let copies = serde_json::from_str(&state_file::read(&path)).unwrap_or_default();
        Self { path, copies }
    }

    pub(crate) fn of(&self, host: &str) -> Option<&Copied> {
        self.copies.get(host)
    }

    /// Notes a program that was copied; `None`: it is no longer there.
    ///
    /// # Errors
    /// If the note cannot be written.
    pub(crate) fn note(&mut self, host: &str, copied: Option<Copied>) -> anyhow::Result<()> {
        match copied {
            Some(copied) => _ = self.copies.insert(host.to_owned(), copied),
            None => _ = self.copies.remove(host),
        }
        state_file::replace(&self.path, &serde_json::to_vec(&self.copies)?)
    }
}
