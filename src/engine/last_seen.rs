//! When the user last saw each session, when we last attached to it, and when a command last had a request of it
//! approved, kept across restarts in the state folder.
//!
//! A broken file counts as empty: its contents are a convenience, and it does no harm if a session is shown as unseen
//! once too often.

use crate::core::fleet::Session;
use crate::core::hash::hash;
use crate::core::time::Time;
use crate::system::mounts::Mounts;
use crate::system::state_file;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file's name in the state folder.
pub(crate) const FILE: &str = "seen.json";
/// The marks of at most this many sessions are kept, the latest.
const REMEMBERED: usize = 1000;

/// A home, by its real path: the same under all its names and in all our processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HomeHash(u64);

impl HomeHash {
    /// The home in this folder now.
    pub(crate) fn of(home: &Path) -> Self {
        Self(hash(Mounts::read().real(home).as_os_str().as_encoded_bytes()))
    }
}

/// What is remembered of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Marks {
    /// When the user last saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Time>,
    /// When we last attached to it with somebody to ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<Time>,
    /// When we last reconnected it without continuing what it had been told to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_undone: Option<Time>,
    /// When a command last had a request of it approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<Time>,
    /// When the user was told of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Time>,
}

impl Marks {
    fn each(&mut self) -> [&mut Option<Time>; 5] {
        let Self { seen, attached, left_undone, approved, told } = self;
        [seen, attached, left_undone, approved, told]
    }

    /// Takes over what is later there. Returns whether anything was.
    fn join(&mut self, mut other: Self) -> bool {
        let mut is_newer = false;
        for (known, there) in self.each().into_iter().zip(other.each()) {
            is_newer |= *there > *known;
            *known = (*there).max(*known);
        }
        is_newer
    }

    fn latest(mut self) -> Option<Time> {
        self.each().into_iter().flatten().max().copied()
    }
}

/// What is remembered of all sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    path: Option<PathBuf>,
    /// By id and home.
    marks: BTreeMap<Box<str>, Marks>,
}

impl Seen {
    /// Reads the file at `path`. Without a path, nothing is remembered beyond this run.
    pub(crate) fn load(path: Option<PathBuf>) -> Self {
        let text = path.as_deref().map(state_file::read).unwrap_or_default();
        let saved: BTreeMap<Box<str>, serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
        // An entry of another form takes no other with it.
        let marks = saved.into_iter().filter_map(|(name, marks)| Some((name, serde_json::from_value(marks).ok()?)));
        Self { path, marks: marks.collect() }
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Reads the file again, which another process may have written. The later of both times wins. Returns whether
    /// anything was new.
    pub(crate) fn reload(&mut self) -> bool {
        let mut is_newer = false;
        for (name, marks) in Self::load(self.path.clone()).marks {
            is_newer |= self.marks.entry(name).or_default().join(marks);
        }
        is_newer
    }

    /// What is remembered of the session of this home with this id.
    pub(crate) fn of(&self, home: HomeHash, id: &str) -> Marks {
        self.marks.get(&*name(home, id)).copied().unwrap_or_default()
    }

    /// Notes something of the session of this home with this id.
    pub(crate) fn note(&mut self, home: HomeHash, id: &str, marks: Marks) {
        self.marks.entry(name(home, id)).or_default().join(marks);
    }

    /// Fills in what is remembered of a session of this home.
    pub(crate) fn recall(&self, home: HomeHash, session: &mut Session) {
        let Marks { seen, attached, left_undone, approved, told } = self.of(home, &session.id);
        session.seen = seen;
        session.control.approved_by_command = approved.filter(|_| told < approved);
        session.vitals.attached = attached;
        session.vitals.left_undone = left_undone;
    }

    /// Writes the file, merged with what other processes have written.
    ///
    /// # Errors
    /// If the state folder cannot be written. The old file then remains.
    pub(crate) fn save(&mut self) -> anyhow::Result<()> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        self.reload();
        if self.marks.len() > REMEMBERED {
            let mut times: Vec<_> = self.marks.values().map(|marks| marks.latest()).collect();
            times.sort_unstable();
            let oldest = times[times.len() - REMEMBERED];
            self.marks.retain(|_, marks| marks.latest() >= oldest);
        }
        let failed = || format!("what you have seen cannot be saved in {}", path.display());
        let text = serde_json::to_vec_pretty(&self.marks).with_context(failed)?;
        // A click first marks the session as seen. Its order must not wait for the disk, so the file is not synced.
        state_file::replace_without_sync(&path, &text).with_context(failed)
    }
}

/// The name of a session's marks.
fn name(home: HomeHash, id: &str) -> Box<str> {
    format!("{id}/{:016x}", home.0).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const HOME: HomeHash = HomeHash(1);

    fn seen(at: i64) -> Marks {
        Marks { seen: Some(Time(at)), ..Marks::default() }
    }

    #[test]
    fn case_203_an_approval_by_a_command_is_remembered_until_the_user_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let approved = |at| Marks { approved: Some(Time(at)), ..Marks::default() };
        let recalled = |seen: &Seen| {
            let mut session = Session::new(crate::core::agent::Agent::default(), "a");
            seen.recall(HOME, &mut session);
            session.control.approved_by_command
        };
        let mut seen = Seen::load(Some(path.clone()));
        seen.note(HOME, "a", approved(7));
        seen.save().unwrap();
        let mut later = Seen::load(Some(path));
        assert_eq!(recalled(&later), Some(Time(7)));
        later.note(HOME, "a", Marks { told: Some(Time(8)), ..Marks::default() });
        later.save().unwrap();
        assert!(seen.reload() && recalled(&seen).is_none(), "other processes learn of it");
        seen.note(HOME, "a", approved(9));
        assert_eq!(recalled(&seen), Some(Time(9)), "another one is told anew");
    }

    #[test]
    fn seen_times_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join(FILE);
        let mut ours = Seen::load(Some(path.clone()));
        ours.note(HOME, "a", seen(1_700_000_000_123));
        ours.save().unwrap();
        let later = Seen::load(Some(path.clone()));
        assert_eq!(later.of(HOME, "a"), seen(1_700_000_000_123));
        assert_eq!(later.of(HomeHash(2), "a"), Marks::default(), "one of this id in another home");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no other file is left");
    }

    #[test]
    fn times_written_by_another_process_are_merged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let (mut ours, mut theirs) = (Seen::load(Some(path.clone())), Seen::load(Some(path)));
        ours.note(HOME, "b", seen(5));
        theirs.note(HOME, "a", seen(1));
        theirs.note(HOME, "b", seen(4));
        theirs.save().unwrap();
        assert!(ours.reload());
        assert_eq!((ours.of(HOME, "a"), ours.of(HOME, "b")), (seen(1), seen(5)));
        assert!(!ours.reload(), "nothing new");
    }

    #[test]
    fn a_broken_file_counts_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        for broken in ["", "[]", "{\"a\": 1}", "\0\0", "{\"a\": \"yesterday\"}", "{\"a\": {\"seen\": 1}}"] {
            fs::write(&path, broken).unwrap();
            assert_eq!(Seen::load(Some(path.clone())).marks.len(), 0, "{broken}");
        }
        let name = name(HOME, "a");
        fs::write(&path, format!(r#"{{"b": 1, "{name}": {{"seen": "2026-11-20T18:00:00Z"}}}}"#)).unwrap();
        let read = Seen::load(Some(path));
        assert!(read.of(HOME, "a").seen.is_some() && read.marks.len() == 1, "one broken entry takes no other with it");
    }

    #[test]
    fn only_the_latest_times_are_kept() {
        let mut ours = Seen { path: Some(tempfile::tempdir().unwrap().path().join(FILE)), ..Seen::default() };
        for n in 0..1500 {
            ours.note(HOME, &n.to_string(), seen(n));
        }
        ours.save().unwrap();
        assert_eq!((ours.of(HOME, "499"), ours.of(HOME, "500")), (Marks::default(), seen(500)));
    }
}
