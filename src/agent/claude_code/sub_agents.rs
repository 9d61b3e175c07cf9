//! The logs of a session's sub-agents. Each has one of its own, in a folder beside that of the session.

use super::dialect::DIALECT;
use super::store::AGENTS;
use crate::agent::reading::Reading;
use crate::agent::tail::{ReadOutcome, Tail};
use crate::core::facts::{Facts, SubAgentLog};
use crate::core::stated::Asks;
use crate::system::plain_file::{self, Links};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most sub-agents of a session that are followed.
const MOST: usize = 256;
/// The longest description of one that is read, in bytes; they have 300.
const META_MAX: u64 = 64 << 10;

/// The sub-agents of a session.
#[derive(Debug, Default)]
pub(super) struct SubAgents(BTreeMap<Box<str>, Followed>);

#[derive(Debug, Default)]
struct Followed {
    tail: Tail,
    facts: Facts,
    /// It has ended, by its description.
    is_done: bool,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    finished: bool,
}

/// The folders that change with a session's sub-agents. None of them needs to be there.
pub(super) fn folders(log: &Path) -> [PathBuf; 2] {
    let own = log.with_extension("");
    [own.clone(), own.join(AGENTS)]
}

impl SubAgents {
    /// Reads what is new. Returns whether there is more to read.
    pub(super) fn refresh(&mut self, log: &Path, reading: &Reading<'_>, buffer: &mut Vec<u8>) -> bool {
        let [_, folder] = folders(log);
        let mut is_cut = false;
        let files = fs::read_dir(&folder).into_iter().flatten().flatten();
        for file in files.map(|file| file.path()) {
            let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
            let Some(id) = name.strip_prefix("agent-").and_then(|name| name.strip_suffix(".jsonl")) else { continue };
            if !self.0.contains_key(id) && self.0.len() >= MOST {
                continue;
            }
            let followed = self.0.entry(id.into()).or_default();
            let outcome = followed.tail.read(&DIALECT, &file, &mut followed.facts, reading.context, buffer);
            is_cut |= matches!(outcome, Ok(ReadOutcome::More));
            if matches!(outcome, Ok(ReadOutcome::Grown)) || !followed.is_done {
                followed.is_done = is_finished(&folder.join(format!("agent-{id}.meta.json")));
            }
        }
        is_cut
    }

    /// Those that have been read, for the facts of their session.
    pub(super) fn known(&self) -> impl Iterator<Item = SubAgentLog<'_>> {
        self.0.iter().map(|(id, followed)| SubAgentLog { id, facts: &followed.facts, is_done: followed.is_done })
    }

    /// The tool that the sub-agent has open that wrote last.
    pub(super) fn asks(&self) -> Option<Asks> {
        let open = self.0.values().filter(|it| !it.is_done).filter_map(|it| it.facts.turn.as_ref()?.tools.last());
        let tool = open.max_by_key(|tool| tool.at.awake)?;
        Some(Asks { tool: tool.name.clone(), text: tool.command.clone() })
    }
}

/// Whether a sub-agent's description says that it has ended.
fn is_finished(path: &Path) -> bool {
    let read = || {
        let (file, _) = plain_file::open(path, Links::Refused).ok()?;
        let mut text = Vec::new();
        file.take(META_MAX).read_to_end(&mut text).ok()?;
        serde_json::from_slice::<Meta>(&text).ok()
    };
    read().is_some_and(|meta| meta.finished)
}
