//! Where a home keeps its sessions: `projects/<the folder it works in>/<id>.jsonl`, and which there are.

use super::pid_file;
use crate::agent::reading::{Glimpse, Reading};
use crate::system::file_times::modified;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a home that holds its sessions.
pub(super) const PROJECTS: &str = "projects";
/// The folder of a session, beside its log, with the logs of its sub-agents.
pub(super) const AGENTS: &str = "subagents";

/// The session whose log has this name.
pub(super) fn session_of(file: &str) -> Option<&str> {
    file.strip_suffix(".jsonl").filter(|id| pid_file::is_id(id))
}

/// The session that a path below a project's folder belongs to, other than its log: its folder, and what is ever read
/// in that.
pub(super) fn subject_inside<'a>(parts: &[&'a str]) -> Option<&'a str> {
    let id = parts.first().filter(|id| pid_file::is_id(id))?;
    let is_read = match parts {
        [_] => true,
        [_, AGENTS] => true,
        [_, AGENTS, file] => file.ends_with(".jsonl") || file.ends_with(".meta.json"),
        _ => false,
    };
    is_read.then_some(*id)
}

/// The ids of all sessions of a home: those with a log, and those that a process runs without one yet.
///
/// # Errors
/// Where the folder of the logs cannot be listed.
pub(crate) fn list(home: &Path, root: &Path) -> io::Result<Vec<Arc<str>>> {
    let mut ids: HashSet<Arc<str>> = pid_file::all(home).into_iter().map(|file| file.session.into()).collect();
    match logs(root) {
        Ok(logs) => ids.extend(logs.map(|(id, _)| id)),
        // It is made with the first prompt.
        Err(error) if error.kind() == io::ErrorKind::NotFound && home.join(pid_file::FOLDER).is_dir() => {}
        Err(error) => return Err(error),
    }
    Ok(ids.into_iter().collect())
}

/// The logs in the folders of a home, with the ids of their sessions.
fn logs(root: &Path) -> io::Result<impl Iterator<Item = (Arc<str>, PathBuf)>> {
    let folders = fs::read_dir(root)?.flatten().map(|entry| entry.path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    Ok(files.filter_map(|file| Some((session_of(file.file_name().to_str()?)?.into(), file.path()))))
}

/// Where a session's log is, if there is one. Two folders may have a log of one session, as it may be moved: the one
/// written last counts.
pub(super) fn find_log(root: &Path, id: &str) -> Option<PathBuf> {
    let folders = fs::read_dir(root).into_iter().flatten().flatten();
    let logs = folders.map(|folder| folder.path().join(format!("{id}.jsonl")));
    let found = logs.filter_map(|log| fs::symlink_metadata(&log).ok().map(|meta| (modified(&meta), log)));
    found.max_by_key(|(written, _)| *written).map(|(_, log)| log)
}

/// Where a session's log is, or would be.
pub(crate) fn path(home: &Path, root: &Path, id: &str) -> PathBuf {
    let made = || {
        let cwd = pid_file::all(home).into_iter().find(|file| *file.session == *id).and_then(|file| file.cwd);
        let letter = |it: char| if it.is_ascii_alphanumeric() { it } else { '-' };
        root.join(cwd.as_deref().unwrap_or_default().chars().map(letter).collect::<String>())
            .join(format!("{id}.jsonl"))
    };
    find_log(root, id).unwrap_or_else(made)
}

/// Whether a home has a session of this id.
pub(crate) fn has(home: &Path, root: &Path, id: &str) -> bool {
    find_log(root, id).is_some() || pid_file::all(home).iter().any(|file| *file.session == *id)
}

/// The session that a process of a home says that it runs.
pub(crate) fn named_by(home: &Path, pid: u32) -> Option<Arc<str>> {
    pid_file::read(home, pid).map(|file| file.session.into())
}

/// Tells at once whether sessions are history: what is asked of all of them is read once.
#[derive(Debug)]
pub(crate) struct Glimpses {
    run: HashSet<Box<str>>,
    /// Where the logs are. `None`: few are asked about, and each is looked for.
    logs: Option<HashMap<Arc<str>, PathBuf>>,
    root: PathBuf,
}

impl Glimpses {
    pub(crate) fn new(home: &Path, root: &Path, many: bool) -> Self {
        let run = pid_file::all(home).into_iter().map(|file| file.session).collect();
        let logs = many.then(|| logs(root).map(Iterator::collect).unwrap_or_default());
        Self { run, logs, root: root.to_owned() }
    }

    /// A glimpse of a session that no process runs, and whose log is too old to matter.
    pub(crate) fn past(&self, id: &str, reading: &Reading<'_>) -> Option<Glimpse> {
        if reading.all || self.run.contains(id) {
            return None;
        }
        let log = match &self.logs {
            Some(logs) => logs.get(id).cloned(),
            None => find_log(&self.root, id),
        };
        let touched = modified(&fs::symlink_metadata(log?).ok()?);
        reading.is_past(touched).then_some(Glimpse { touched, has_log: true })
    }
}
