//! Which programs were copied to other machines by `host add`, so that `host remove` takes away those, and no others.

use super::command::Way;
use anyhow::anyhow;
use pilotlight_system::log::{self, cause};
use pilotlight_system::plain_file::{self, Links, OpenError};
use pilotlight_system::state_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The file in the state folder.
const FILE: &str = "copied.json";
/// The version of the format of both files. Version 0 had no version.
const VERSION: u32 = 1;
/// The most bytes that are read. In one that is longer, an end is missing.
const LENGTH_MAX: u64 = 1 << 20;

/// A program that was copied to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// How the machine was reached.
    pub way: Way,
    /// What `cksum` says of the program there.
    pub sum: String,
    /// The folders that were made for it, as `there.sh` names them.
    #[serde(default)]
    pub made: Vec<Box<str>>,
}

/// What was changed in the settings to add a machine, besides its entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Added {
    /// What was put between the entry and the text before it.
    joint: String,
    /// There were no settings before.
    is_first: bool,
}

/// The same of each machine, by its name.
#[derive(Debug, Default)]
pub struct Additions {
    path: PathBuf,
    additions: BTreeMap<String, Added>,
}

/// The file for these in the state folder.
const ADDED: &str = "added.json";

impl Additions {
    /// Reads them. What cannot be read is not known: then a machine's entry alone is taken out of the settings.
    pub fn read(state_folder: &Path) -> Self {
        let path = state_folder.join(ADDED);
        let additions = state_file::parse(&state_file::read(&path), VERSION).unwrap_or_default();
        Self { path, additions }
    }

    /// Notes how a machine was added: its entry came to the end of a text, which was made for it if `is_first`.
    pub fn note(&mut self, host: &str, before: &str, after: &str, entry: &str, is_first: bool) {
        let joint = after.strip_suffix(entry).and_then(|text| text.strip_prefix(before));
        let Some(joint) = joint.map(str::to_owned) else { return };
        self.additions.insert(host.to_owned(), Added { joint, is_first });
        self.save();
    }

    /// The settings as they were before a machine was added, if nothing else was changed at their end; else `kept`, which is
    /// the text without its entry. `None`: there were none, and `pristine` is what was made of that.
    pub fn undo(&mut self, host: &str, text: &str, entry: &str, kept: String, pristine: &str) -> Option<String> {
        let Some(Added { joint, is_first }) = self.additions.remove(host) else { return Some(kept) };
        self.save();
        let before = text.strip_suffix(entry).and_then(|text| text.strip_suffix(&*joint)).map_or(kept, str::to_owned);
        (!is_first || before != pristine).then_some(before)
    }

    /// What is not noted costs a blank line.
    fn save(&self) {
        let written =
            state_file::text_of(VERSION, &self.additions).and_then(|text| state_file::replace(&self.path, &text));
        if let Err(error) = written {
            log::debug!("what was added to the settings is not noted: {}", cause(&*error));
        }
    }
}

/// All of them, by the names of the hosts.
#[derive(Debug, Default)]
pub struct Copies {
    path: PathBuf,
    copies: BTreeMap<String, Copied>,
}

impl Copies {
    /// Reads them.
    ///
    /// # Errors
    /// If there is a file, and it cannot be read: it is kept as it is then.
    pub fn read(state_folder: &Path) -> anyhow::Result<Self> {
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
            Ok(_) => {
                let text = String::from_utf8_lossy(&text);
                state_file::parse(&text, VERSION).map_err(|error| unknown(&error))?
            }
        };
        Ok(Self { path, copies })
    }

    pub fn of(&self, host: &str) -> Option<&Copied> {
        self.copies.get(host)
    }

    /// Notes a program that was copied; `None`: it is no longer there.
    ///
    /// # Errors
    /// If the note cannot be written.
    pub fn note(&mut self, host: &str, copied: Option<Copied>) -> anyhow::Result<()> {
        match copied {
            Some(copied) => _ = self.copies.insert(host.to_owned(), copied),
            None => _ = self.copies.remove(host),
        }
        let written = state_file::replace(&self.path, &state_file::text_of(VERSION, &self.copies)?);
        written.map_err(|error| {
            anyhow!("what was copied cannot be noted in {}: {}", self.path.display(), error.root_cause())
        })
    }
}
