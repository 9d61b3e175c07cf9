//! When the user last saw each session, when we last attached to it, and when a command last had a request of it
//! approved, kept across restarts in the state folder.
//!
//! A broken file counts as empty: its contents are a convenience, and it does no harm if a session is shown as unseen
//! once too often.

use crate::core::fleet::Session;
use crate::core::time::Time;
use crate::system::state_file;
use anyhow::Context;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file's name in the state folder.
pub(crate) const FILE: &str = "seen.json";
/// At most this many times are kept, the latest.
const REMEMBERED: usize = 1000;

/// When the user last saw each session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    path: Option<PathBuf>,
    at: BTreeMap<Box<str>, Time>,
}

impl Seen {
    /// Reads the file at `path`. Without a path, nothing is remembered beyond this run.
    pub(crate) fn load(path: Option<PathBuf>) -> Self {
        let text = path.as_deref().map(state_file::read).unwrap_or_default();
        let saved: BTreeMap<Box<str>, String> = serde_json::from_str(&text).unwrap_or_default();
        let at = saved.into_iter().filter_map(|(id, at)| Some((id, Time::parse(at.as_bytes())?))).collect();
        Self { path, at }
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Reads the file again, which another process may have written. The later of both times wins. Returns whether
    /// anything was new.
    pub(crate) fn reload(&mut self) -> bool {
        let saved = Self::load(self.path.clone()).at;
        let mut is_newer = false;
        for (id, at) in saved {
            let known = self.at.entry(id).or_default();
            is_newer |= at > *known;
            *known = at.max(*known);
        }
        is_newer
    }

    /// When the user last saw a session.
    pub(crate) fn at(&self, id: &str) -> Option<Time> {
        self.at.get(id).copied()
    }

    /// Notes that the user has seen a session.
    pub(crate) fn mark(&mut self, id: &str, at: Time) {
        self.at.insert(id.into(), at);
    }

    /// When we last attached to a session with somebody to ask.
    pub(crate) fn attached(&self, id: &str) -> Option<Time> {
        self.at.get(&*attached_key(id)).copied()
    }

    /// Notes that we have attached to a session.
    pub(crate) fn mark_attached(&mut self, id: &str, at: Time) {
        self.at.insert(attached_key(id), at);
    }

    /// When we last reconnected a session without continuing what it had been told to do.
    pub(crate) fn left_undone(&self, id: &str) -> Option<Time> {
        self.at.get(&*undone_key(id)).copied()
    }

    /// Notes that we have reconnected a session without continuing what it had been told to do.
    pub(crate) fn mark_left_undone(&mut self, id: &str, at: Time) {
        self.at.insert(undone_key(id), at);
    }

    /// When a command last had a request of this session approved, unless the user was told of that.
    pub(crate) fn approved(&self, id: &str) -> Option<Time> {
        let told = self.at.get(&*told_key(id));
        self.at.get(&*approved_key(id)).copied().filter(|approved| told.is_none_or(|told| told < approved))
    }

    /// Notes that a command had a request of this session approved.
    pub(crate) fn mark_approved(&mut self, id: &str, at: Time) {
        self.at.insert(approved_key(id), at);
    }

    /// Notes that the user was told of that.
    pub(crate) fn mark_told(&mut self, id: &str, at: Time) {
        self.at.insert(told_key(id), at);
    }

    /// Fills in what is remembered of a session.
    pub(crate) fn recall(&self, session: &mut Session) {
        session.seen = self.at(&session.id);
        session.control.approved_by_command = self.approved(&session.id);
        session.live.attached = self.attached(&session.id);
        session.live.left_undone = self.left_undone(&session.id);
    }

    /// Writes the file, merged with what other processes have written.
    ///
    /// # Errors
    /// If the state folder cannot be written. The old file then remains.
    pub(crate) fn save(&mut self) -> anyhow::Result<()> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        self.reload();
        if self.at.len() > REMEMBERED {
            let mut times: Vec<_> = self.at.values().copied().collect();
            times.sort_unstable();
            let oldest = times[times.len() - REMEMBERED];
            self.at.retain(|_, at| *at >= oldest);
        }
        let failed = || format!("what you have seen cannot be saved in {}", path.display());
        let text = serde_json::to_vec_pretty(&self.at).with_context(failed)?;
        // A click first marks the session as seen. Its order must not wait for the disk, so the file is not synced.
        state_file::replace_without_sync(&path, &text).with_context(failed)
    }
}

/// The key for the time of attaching, next to that of the last look. No folder's name contains a slash.
fn attached_key(id: &str) -> Box<str> {
    format!("attached/{id}").into()
}

/// The key for the time of a reconnection that left something undone.
fn undone_key(id: &str) -> Box<str> {
    format!("undone/{id}").into()
}

/// The key for the time of an approval by a command.
fn approved_key(id: &str) -> Box<str> {
    format!("approved/{id}").into()
}

/// The key for the time when the user was told of it.
fn told_key(id: &str) -> Box<str> {
    format!("told/{id}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn case_203_an_approval_by_a_command_is_remembered_until_the_user_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let mut seen = Seen::load(Some(path.clone()));
        seen.mark_approved("a", Time(7));
        seen.save().unwrap();
        let mut later = Seen::load(Some(path));
        let mut session = Session { id: "a".into(), ..Session::default() };
        later.recall(&mut session);
        assert_eq!(session.control.approved_by_command, Some(Time(7)));
        later.mark_told("a", Time(8));
        later.save().unwrap();
        assert!(seen.reload() && seen.approved("a").is_none(), "other processes learn of it");
        seen.mark_approved("a", Time(9));
        assert_eq!(seen.approved("a"), Some(Time(9)), "another one is told anew");
    }

    #[test]
    fn seen_times_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join(FILE);
        let mut seen = Seen::load(Some(path.clone()));
        seen.mark("a", Time(1_700_000_000_123));
        seen.save().unwrap();
        assert_eq!(Seen::load(Some(path.clone())).at("a"), Some(Time(1_700_000_000_123)));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no other file is left");
    }

    #[test]
    fn times_written_by_another_process_are_merged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let (mut ours, mut theirs) = (Seen::load(Some(path.clone())), Seen::load(Some(path)));
        ours.mark("b", Time(5));
        theirs.mark("a", Time(1));
        theirs.mark("b", Time(4));
        theirs.save().unwrap();
        assert!(ours.reload());
        assert_eq!((ours.at("a"), ours.at("b")), (Some(Time(1)), Some(Time(5))));
        assert!(!ours.reload(), "nothing new");
    }

    #[test]
    fn a_broken_file_counts_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        for broken in ["", "[]", "{\"a\": 1}", "\0\0", "{\"a\": \"yesterday\"}"] {
            fs::write(&path, broken).unwrap();
            assert_eq!(Seen::load(Some(path.clone())).at("a"), None);
        }
    }

    #[test]
    fn only_the_latest_times_are_kept() {
        let mut seen = Seen { path: Some(tempfile::tempdir().unwrap().path().join(FILE)), ..Seen::default() };
        for n in 0..1500 {
            seen.mark(&n.to_string(), Time(n));
        }
        seen.save().unwrap();
        assert_eq!((seen.at("499"), seen.at("500")), (None, Some(Time(500))));
    }
}
