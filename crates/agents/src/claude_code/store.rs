//! Where a home keeps its sessions: `projects/<the folder it works in>/<id>.jsonl`, and which there are.

use super::head;
use super::pid_file;
use super::running::may_run;
use super::strays;
use super::sub_agents;
use crate::claude_code::ClaudeCode;
use crate::listing::QuickScan;
use crate::listing_cache::ListingCache;
use crate::reading::{LogPaths, PastSession, Reading};
use crate::runners::Runner;
use crate::walk;
use pilotlight_core::time::Time;
use pilotlight_system::file_times::modified;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The folder of a home that holds its sessions.
pub(super) const PROJECTS: &str = "projects";
/// How many folders lie between that folder and a log: the project's.
pub(super) const DEPTH: usize = 1;
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
        // Folders among them, whose names tell nothing.
        [_, AGENTS, below @ ..] => below.len() <= sub_agents::DEPTH_MAX + 1,
        _ => false,
    };
    is_read.then_some(*id)
}

/// The ids of all sessions of a home: those with a log, and those that a process runs without one yet. And where the logs
/// are, and what was read, as far as `cache` notes it.
///
/// # Errors
/// Where the folder of the logs cannot be listed.
pub(crate) fn list(
    home: &Path,
    root: &Path,
    mut cache: ListingCache,
) -> io::Result<(Vec<Arc<str>>, LogPaths, ListingCache)> {
    cache.note(&home.join(pid_file::FOLDER));
    let mut ids = HashSet::<Arc<str>>::new();
    for pid in pid_file::pids(home).unwrap_or_default() {
        // What it says is changed in place.
        cache.note(&pid_file::path(home, pid));
        ids.extend(pid_file::read(home, pid).map(|file| file.session.into()));
    }
    let logs = match logs(root, &mut cache) {
        Ok(logs) => logs,
        // It is made with the first prompt.
        Err(error) if error.kind() == io::ErrorKind::NotFound && home.join(pid_file::FOLDER).is_dir() => HashMap::new(),
        Err(error) => return Err(error),
    };
    ids.extend(logs.keys().cloned());
    Ok((ids.into_iter().collect(), logs.into(), cache))
}

/// The logs in the folders of a home, by the ids of their sessions. Notes the folders.
fn logs(root: &Path, cache: &mut ListingCache) -> io::Result<HashMap<Arc<str>, PathBuf>> {
    let mut logs = HashMap::new();
    walk::files(root, DEPTH, session_of, &mut |folder| cache.note(folder), &mut |id, log| {
        match logs.entry(id.into()) {
            Entry::Vacant(place) => drop(place.insert(log)),
            Entry::Occupied(mut other) => {
                let last = last_written([other.get().clone(), log]);
                last.into_iter().for_each(|last| drop(other.insert(last)));
            }
        }
        true
    })?;
    Ok(logs)
}

/// Where a session's log is, if there is one. Asks each project's folder: for many sessions, list them instead.
pub(super) fn find_log(root: &Path, id: &str) -> Option<PathBuf> {
    let folders = fs::read_dir(root).into_iter().flatten().flatten();
    last_written(folders.map(|folder| folder.path().join(format!("{id}.jsonl"))))
}

/// The log of a session among these. Two folders may have one, as a session may be moved: the one written last counts.
fn last_written(logs: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    let found = logs.into_iter().filter_map(|log| fs::symlink_metadata(&log).ok().map(|meta| (modified(&meta), log)));
    found.max_by_key(|(written, _)| *written).map(|(_, log)| log)
}

/// What the folder with the logs of a folder's sessions is called.
pub(super) fn project_of(folder: &str) -> String {
    folder.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect()
}

/// Whether a log is among those of the sessions that work in this folder.
pub(super) fn is_of(log: &Path, folder: &Path) -> bool {
    let project = log.parent().and_then(Path::file_name);
    let is_project = || project.is_some_and(|project| project == &*project_of(&folder.to_string_lossy()));
    is_project() || head::read(log).and_then(|head| head.cwd).is_some_and(|cwd| Path::new(&*cwd) == folder)
}

/// Where a session's log is, or would be.
pub(crate) fn path(home: &Path, root: &Path, id: &str) -> PathBuf {
    let made = || {
        let cwd = pid_file::all(home).into_iter().find(|file| *file.session == *id).and_then(|file| file.cwd);
        root.join(project_of(cwd.as_deref().unwrap_or_default())).join(format!("{id}.jsonl"))
    };
    find_log(root, id).unwrap_or_else(made)
}

/// Whether a home has a session of this id.
pub(crate) fn has(home: &Path, root: &Path, id: &str) -> bool {
    find_log(root, id).is_some() || pid_file::all(home).iter().any(|file| *file.session == *id)
}

/// The sessions that the processes of a home say that they run.
pub(crate) fn claimed(home: &Path) -> Vec<Arc<str>> {
    pid_file::all(home).into_iter().map(|file| file.session.into()).collect()
}

/// The session that a process of a home says that it runs.
pub(crate) fn named_by(home: &Path, pid: u32) -> Option<Arc<str>> {
    pid_file::read(home, pid).map(|file| file.session.into())
}

/// Tells at once whether sessions are history: what is asked of all of them is read once.
#[derive(Debug)]
pub(crate) struct SessionScan {
    /// The sessions that its processes name. `None`: their files cannot be listed, and any may be run.
    run: Option<HashSet<Box<str>>>,
    /// Processes whose file cannot be read, and when the first of them started that may run any session written since.
    unreadable: Vec<u32>,
    may_run_since: OnceLock<Option<Time>>,
    /// The sessions that processes of other homes name.
    run_elsewhere: OnceLock<HashSet<Box<str>>>,
    /// Where the logs are. `None`: few are asked about, and each is looked for.
    logs: Option<LogPaths>,
    home: PathBuf,
    root: PathBuf,
}

impl SessionScan {
    pub(crate) fn new(home: &Path, root: &Path, listed: Option<&LogPaths>) -> Self {
        let (run, unreadable) = match pid_file::list(home) {
            Ok(said) => (Some(said.files.into_iter().map(|file| file.session).collect()), said.unreadable),
            Err(_) => (None, Vec::new()),
        };
        Self {
            run,
            unreadable,
            may_run_since: OnceLock::new(),
            run_elsewhere: OnceLock::new(),
            logs: listed.cloned(),
            home: home.to_owned(),
            root: root.to_owned(),
        }
    }
}

impl QuickScan for SessionScan {
    fn past(&self, id: &str, reading: &Reading<'_>) -> Option<PastSession> {
        let elsewhere = || {
            let others = reading.openings.homes(&ClaudeCode).filter(|other| **other != *self.home);
            others.flat_map(pid_file::all).map(|file| file.session).collect()
        };
        if reading.all
            || self.run.as_ref().is_none_or(|run| run.contains(id))
            || self.run_elsewhere.get_or_init(elsewhere).contains(id)
        {
            return None;
        }
        let log = match &self.logs {
            Some(logs) => logs.get(id).cloned(),
            None => find_log(&self.root, id),
        };
        let log = log?;
        let touched = modified(&fs::symlink_metadata(&log).ok()?);
        let may_run_it = |runner: &Runner| runner.mentions(id) || strays::may_have_written(runner, touched, &log);
        if reading.openings.runners(&ClaudeCode).any(may_run_it) {
            return None;
        }
        let since = || may_run(&self.home, &self.unreadable, reading.context.now.wall).map(|may| may.since).min();
        let may_be_run = self.may_run_since.get_or_init(since).is_some_and(|since| since <= touched);
        (!may_be_run && reading.is_past(touched)).then_some(PastSession { touched, has_log: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    /// A session that is resumed in another folder has a log there, too.
    #[test]
    fn case_319_of_two_logs_of_a_session_the_one_written_last_is_found_by_a_listing_and_alone() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join(PROJECTS);
        for last in ["-a", "-b"] {
            for project in ["-a", "-b"] {
                fs::create_dir_all(root.join(project)).unwrap();
                let log = fs::File::create(root.join(project).join("one.jsonl")).unwrap();
                log.set_modified(UNIX_EPOCH + Duration::from_secs(u64::from(project == last))).unwrap();
            }
            let log = root.join(last).join("one.jsonl");
            let (ids, logs, _) = list(home.path(), &root, ListingCache::default()).unwrap();
            assert_eq!(
                (&*ids, logs.get("one"), find_log(&root, "one")),
                (&["one".into()][..], Some(&log), Some(log.clone()))
            );
        }
    }
}
