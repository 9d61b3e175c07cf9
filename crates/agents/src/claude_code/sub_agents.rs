//! The logs of a session's sub-agents. Each has one of its own, below a folder beside the log of the session: directly in
//! it, or, of those that a workflow runs, in a folder of that run.

use super::log_format::LOG_FORMAT;
use super::store::AGENTS;
use crate::reading::Reading;
use crate::tail::{ReadOutcome, Tail};
use pilotlight_core::facts::{Facts, SubAgentLog};
use pilotlight_core::text::{NAME_MAX, plain};
use pilotlight_core::verdict::reported_state::WaitingTool;
use pilotlight_system::file_times::modified;
use pilotlight_system::plain_file::{self, Links};
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most sub-agents of a session that are followed: of more, those that wrote last. A workflow has up to some dozens.
const MOST: usize = 256;
/// The longest description of one that is read, in bytes; they have 300.
const META_MAX: u64 = 64 << 10;
/// How many folders deep the logs may be below that of the sub-agents. Those of workflows lie two deep.
pub(super) const DEPTH_MAX: usize = 5;
/// The most folders below that of the sub-agents. Each run of a workflow has one.
const FOLDERS_MAX: usize = 128;
/// The most entries of these folders that are looked at, so that none of them costs more than a moment.
const ENTRIES_MAX: usize = 8192;

/// The sub-agents of a session.
#[derive(Debug, Default)]
pub(super) struct SubAgents {
    /// By their logs.
    followed: BTreeMap<PathBuf, Followed>,
    /// The folders below that of the sub-agents, as of the last look.
    folders: Vec<PathBuf>,
}

#[derive(Debug, Default)]
struct Followed {
    tail: Tail,
    facts: Facts,
    /// It has ended, by its description.
    is_done: bool,
    /// What it is for, or its kind, by its description.
    name: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default)]
    finished: bool,
    #[serde(default)]
    description: Option<Box<str>>,
    #[serde(rename = "agentType", default)]
    kind: Option<Box<str>>,
}

impl SubAgents {
    /// The folders that change with the sub-agents of the session with this log: none of the first two needs to be there.
    pub(super) fn folders(&self, log: &Path) -> Vec<PathBuf> {
        let own = log.with_extension("");
        let agents = own.join(AGENTS);
        [own, agents].into_iter().chain(self.folders.iter().cloned()).collect()
    }

    /// Reads what is new. Returns whether there is more to read.
    pub(super) fn refresh(&mut self, log: &Path, reading: &Reading<'_>, buffer: &mut Vec<u8>) -> bool {
        let (logs, folders) = find(&log.with_extension("").join(AGENTS));
        self.folders = folders;
        self.followed.retain(|log, _| logs.contains(log));
        let mut is_cut = false;
        for log in logs {
            let meta = log.with_extension("meta.json");
            let Followed { tail, facts, is_done, name } = self.followed.entry(log.clone()).or_default();
            let outcome = tail.read(&LOG_FORMAT, &log, facts, reading.context, buffer);
            is_cut |= matches!(outcome, Ok(ReadOutcome::More));
            // One whose turn is over has ended, whatever its description says.
            if facts.turn.is_some() && (matches!(outcome, Ok(ReadOutcome::Grown)) || !*is_done) {
                let meta = read_meta(&meta).unwrap_or_default();
                *is_done = meta.finished;
                let kind = meta.kind.filter(|kind| !kind.is_empty());
                *name = meta.description.filter(|it| !it.is_empty()).or(kind).or(name.take());
            }
        }
        is_cut
    }

    /// Those that have been read, for the facts of their session.
    pub(super) fn known(&self) -> impl Iterator<Item = SubAgentLog<'_>> {
        let known = self.followed.iter().filter_map(|(log, followed)| Some((id_of(log)?, followed)));
        known.map(|(id, followed)| SubAgentLog {
            id,
            name: followed.name.as_deref(),
            facts: &followed.facts,
            is_done: followed.is_done,
        })
    }

    /// The tool that the sub-agent has open that wrote last. It is said whose it is if no other has one open.
    pub(super) fn asks(&self) -> Option<WaitingTool> {
        let works = self.followed.values().filter(|it| !it.is_done);
        let open = works.filter_map(|it| Some((it, it.facts.turn.as_ref()?.tools.last()?)));
        let open: Vec<_> = open.collect();
        let (of, tool) = open.iter().max_by_key(|(_, tool)| tool.at.awake)?;
        let by = of.name.as_deref().filter(|_| open.len() == 1).map(|name| plain(name, NAME_MAX));
        Some(WaitingTool { tool: tool.name.clone(), text: tool.command.clone(), by })
    }
}

/// The logs of sub-agents in this folder and below it, and the folders below it. Links are not followed, so there are no
/// loops.
fn find(folder: &Path) -> (BTreeSet<PathBuf>, Vec<PathBuf>) {
    let (mut logs, mut folders) = (Vec::new(), Vec::new());
    let mut unread = VecDeque::from([(folder.to_owned(), 0)]);
    let mut entries = ENTRIES_MAX;
    while let Some((folder, depth)) = unread.pop_front() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten().take(entries) {
            entries -= 1;
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_file() && id_of(&path).is_some() {
                logs.push(path);
            } else if kind.is_dir() && depth < DEPTH_MAX && folders.len() < FOLDERS_MAX {
                folders.push(path.clone());
                unread.push_back((path, depth + 1));
            }
        }
    }
    if logs.len() > MOST {
        let written = |log: &PathBuf| fs::symlink_metadata(log).ok().as_ref().map(modified);
        logs.sort_by_cached_key(|log| Reverse(written(log)));
        logs.truncate(MOST);
    }
    (logs.into_iter().collect(), folders)
}

/// The id of the sub-agent whose log has this name.
fn id_of(log: &Path) -> Option<&str> {
    log.file_name()?.to_str()?.strip_prefix("agent-")?.strip_suffix(".jsonl")
}

/// A sub-agent's description.
fn read_meta(path: &Path) -> Option<Meta> {
    let (file, _) = plain_file::open(path, Links::Refused).ok()?;
    let mut text = Vec::new();
    file.take(META_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
