//! Which programs were copied to other machines by `host add`, so that `host remove` takes away those, and no others.

use super::command::Way;
use crate::system::plain_file::{self, Links, OpenError};
use crate::system::state_file;
use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The file in the state folder.
const FILE: &str = "copied.json";
/// The most bytes that are read. In one that is longer, an end is missing.
const LENGTH_MAX: u64 = 1 << 20;

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
    /// Reads them.
    ///
    /// # Errors
    /// If there is a file, and it cannot be read: it is kept as it is then.
    pub(crate) fn read(state_folder: &Path) -> anyhow::Result<Self> {
        let path = state_folder.join(FILE);
        let unknown = |why: &dyn Display| {
            anyhow!(
                "{} says which programs were copied to other machines, and cannot be read: {why}; mend it, or move it away",
                path.display()
            )
        };
        let mut text = Vec::new();
        let read = plain_file::open(&path, Links::Followed)
            .and_then(|(file, _)| file.take(LENGTH_MAX).read_to_end(&mut text).map_err(Into::into));
        let copies = match read {
            Err(OpenError::Io(error)) if plain_file::is_absence(&error) => BTreeMap::new(),
            Err(error) => return Err(unknown(&error)),
            Ok(_) => serde_json::from_slice(&text).map_err(|error| unknown(&error))?,
        };
        Ok(Self { path, copies })
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
        let written = state_file::replace(&self.path, &serde_json::to_vec(&self.copies)?);
        written.map_err(|error| {
            anyhow!("what was copied cannot be noted in {}: {}", self.path.display(), error.root_cause())
        })
    }
}
