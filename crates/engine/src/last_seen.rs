//! When the user last saw each session, when we last attached to it, and when a command last had a request of it
//! approved, kept across restarts in the state folder.
//!
//! A broken file counts as empty: its contents are a convenience, and it does no harm if a session is shown as unseen
//! once too often. A mark that is later than now was made while the clock was wrong. It counts as absent, and the next
//! save drops it: otherwise nothing new would ever count as unseen.

use anyhow::Context;
use pilotlight_core::fleet::Session;
use pilotlight_core::hash::hash;
use pilotlight_core::time::{Span, Time};
use pilotlight_system::mounts::Mounts;
use pilotlight_system::state_file::{self, Unusable};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file's name in the state folder.
pub const FILE: &str = "seen.json";
/// The version of the file's format. Version 0 had the sessions at the top.
const VERSION: u32 = 1;
/// How far ahead of `now` a mark may be: another process may have written it since we read the clock.
pub(crate) const AHEAD: Span = Span::seconds(60);
/// The marks of at most this many sessions are kept, the latest.
const REMEMBERED: usize = 1000;

/// A home, by its real path: the same under all its names and in all our processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeHash(u64);

impl HomeHash {
    /// The home in this folder now.
    pub fn of(home: &Path) -> Self {
        Self(hash(Mounts::read().real(home).as_os_str().as_encoded_bytes()))
    }
}

/// What is remembered of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionMarks {
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
    /// When a command last sent an approval that nothing confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<Time>,
    /// When the user was told of these two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Time>,
}

impl SessionMarks {
    fn each(&mut self) -> [&mut Option<Time>; 6] {
        let Self { seen, attached, left_undone, approved, unconfirmed, told } = self;
        [seen, attached, left_undone, approved, unconfirmed, told]
    }

    /// Without what is later than now.
    fn until(mut self, now: Time) -> Self {
        for mark in self.each() {
            *mark = mark.filter(|at| *at <= now + AHEAD);
        }
        self
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
pub struct LastSeen {
    path: Option<PathBuf>,
    /// By id and home.
    marks: BTreeMap<Box<str>, SessionMarks>,
}

impl LastSeen {
    /// Reads the file at `path`. Without a path, nothing is remembered beyond this run.
    pub fn load(path: Option<PathBuf>) -> Self {
        let marks = path.as_deref().and_then(|path| read(path).ok()).unwrap_or_default();
        Self { path, marks }
    }

    /// The path of the file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Reads the file again, which another process may have written. The later of both times wins. Returns whether
    /// anything was new.
    pub(crate) fn reload(&mut self, now: Time) -> bool {
        let mut is_newer = false;
        for (name, marks) in Self::load(self.path.clone()).marks {
            is_newer |= self.join(name, marks, now);
        }
        is_newer
    }

    fn join(&mut self, name: Box<str>, marks: SessionMarks, now: Time) -> bool {
        let known = self.marks.entry(name).or_default();
        *known = known.until(now);
        known.join(marks.until(now))
    }

    /// What is remembered of the session of this home with this id.
    pub(crate) fn of(&self, home: HomeHash, id: &str, now: Time) -> SessionMarks {
        self.marks.get(&*name(home, id)).copied().unwrap_or_default().until(now)
    }

    /// Notes something of the session of this home with this id.
    pub fn note(&mut self, home: HomeHash, id: &str, marks: SessionMarks, now: Time) {
        self.join(name(home, id), marks, now);
    }

    /// Fills in what is remembered of a session of this home.
    pub(crate) fn recall(&self, home: HomeHash, session: &mut Session, now: Time) {
        let SessionMarks { seen, attached, left_undone, approved, unconfirmed, told } = self.of(home, &session.id, now);
        session.seen = seen;
        session.control.approved_by_command = approved.filter(|_| told < approved);
        session.control.approval_unconfirmed = unconfirmed.filter(|_| told < unconfirmed);
        session.liveness.attached = attached;
        session.liveness.left_undone = left_undone;
    }

    /// Writes the file, merged with what other processes have written.
    ///
    /// # Errors
    /// If the state folder cannot be written, or a later version of Pilotlight wrote the file. It remains as it is then.
    pub fn save(&mut self, now: Time) -> anyhow::Result<()> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        let failed = || format!("what you have seen cannot be saved in {}", path.display());
        let saved = match read(&path) {
            Err(later @ Unusable::Later(_)) => return Err(later).with_context(failed),
            saved => saved.unwrap_or_default(),
        };
        for (name, marks) in saved {
            self.join(name, marks, now);
        }
        for marks in self.marks.values_mut() {
            *marks = marks.until(now);
        }
        self.marks.retain(|_, marks| *marks != SessionMarks::default());
        if self.marks.len() > REMEMBERED {
            let mut times: Vec<_> = self.marks.values().map(|marks| marks.latest()).collect();
            times.sort_unstable();
            let oldest = times[times.len() - REMEMBERED];
            self.marks.retain(|_, marks| marks.latest() >= oldest);
        }
        let text = state_file::text_of(VERSION, &self.marks).with_context(failed)?;
        // A click first marks the session as seen. Its order must not wait for the disk, so the file is not synced.
        state_file::replace_without_sync(&path, &text).with_context(failed)
    }
}

/// Reads the marks in a file. An entry of another form takes no other with it.
fn read(path: &Path) -> Result<BTreeMap<Box<str>, SessionMarks>, Unusable> {
    let saved: BTreeMap<Box<str>, Value> = state_file::parse(&state_file::read(path), VERSION)?;
    Ok(saved.into_iter().filter_map(|(name, marks)| Some((name, serde_json::from_value(marks).ok()?))).collect())
}

/// Whether the file at `path` cannot be used.
pub fn is_broken(path: &Path) -> bool {
    path.exists() && matches!(read(path), Err(Unusable::Broken(_)))
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
    const NOW: Time = Time(1_800_000_000_000);

    fn seen(at: i64) -> SessionMarks {
        SessionMarks { seen: Some(Time(at)), ..SessionMarks::default() }
    }

    #[test]
    fn case_203_an_approval_by_a_command_is_remembered_until_the_user_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let approved = |at| SessionMarks { approved: Some(Time(at)), ..SessionMarks::default() };
        let recalled = |seen: &LastSeen| {
            let mut session = Session::new(pilotlight_core::agent::Agent::default(), "a");
            seen.recall(HOME, &mut session, NOW);
            session.control.approved_by_command
        };
        let mut seen = LastSeen::load(Some(path.clone()));
        seen.note(HOME, "a", approved(7), NOW);
        seen.save(NOW).unwrap();
        let mut later = LastSeen::load(Some(path));
        assert_eq!(recalled(&later), Some(Time(7)));
        later.note(HOME, "a", SessionMarks { told: Some(Time(8)), ..SessionMarks::default() }, NOW);
        later.save(NOW).unwrap();
        assert!(seen.reload(NOW) && recalled(&seen).is_none(), "other processes learn of it");
        seen.note(HOME, "a", approved(9), NOW);
        assert_eq!(recalled(&seen), Some(Time(9)), "another one is told anew");
        // One that nothing confirmed is told of by itself.
        seen.note(HOME, "a", SessionMarks { unconfirmed: Some(Time(8)), ..SessionMarks::default() }, NOW);
        let mut session = Session::new(pilotlight_core::agent::Agent::default(), "a");
        seen.recall(HOME, &mut session, NOW);
        assert_eq!(session.control.approval_unconfirmed, None, "the user was told at that time");
        seen.note(HOME, "a", SessionMarks { unconfirmed: Some(Time(10)), ..SessionMarks::default() }, NOW);
        seen.recall(HOME, &mut session, NOW);
        assert_eq!(session.control.approval_unconfirmed, Some(Time(10)));
    }

    #[test]
    fn seen_times_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join(FILE);
        let mut ours = LastSeen::load(Some(path.clone()));
        ours.note(HOME, "a", seen(1_700_000_000_123), NOW);
        ours.save(NOW).unwrap();
        let later = LastSeen::load(Some(path.clone()));
        assert_eq!(later.of(HOME, "a", NOW), seen(1_700_000_000_123));
        assert_eq!(later.of(HomeHash(2), "a", NOW), SessionMarks::default(), "one of this id in another home");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no other file is left");
    }

    #[test]
    fn times_written_by_another_process_are_merged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let (mut ours, mut theirs) = (LastSeen::load(Some(path.clone())), LastSeen::load(Some(path)));
        ours.note(HOME, "b", seen(5), NOW);
        theirs.note(HOME, "a", seen(1), NOW);
        theirs.note(HOME, "b", seen(4), NOW);
        theirs.save(NOW).unwrap();
        assert!(ours.reload(NOW));
        assert_eq!((ours.of(HOME, "a", NOW), ours.of(HOME, "b", NOW)), (seen(1), seen(5)));
        assert!(!ours.reload(NOW), "nothing new");
    }

    #[test]
    fn a_broken_file_counts_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        for broken in ["", "[]", "{\"a\": 1}", "\0\0", "{\"a\": \"yesterday\"}", "{\"a\": {\"seen\": 1}}"] {
            fs::write(&path, broken).unwrap();
            assert_eq!(LastSeen::load(Some(path.clone())).marks.len(), 0, "{broken}");
        }
        let name = name(HOME, "a");
        fs::write(&path, format!(r#"{{"b": 1, "{name}": {{"seen": "2026-11-20T18:00:00Z"}}}}"#)).unwrap();
        let read = LastSeen::load(Some(path));
        assert!(
            read.of(HOME, "a", NOW).seen.is_some() && read.marks.len() == 1,
            "one broken entry takes no other with it"
        );
    }

    /// A clock that was wrong once must not hide everything that comes later.
    #[test]
    fn case_623_marks_of_the_future_count_as_absent_and_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let mut ours = LastSeen::load(Some(path.clone()));
        let wrong = NOW + Span::hours(24 * 365 * 70);
        let both =
            |at| SessionMarks { seen: Some(at), approved: Some(Time(5)), told: Some(at), ..SessionMarks::default() };
        ours.note(HOME, "a", both(wrong), wrong);
        ours.note(HOME, "b", seen(wrong.0), wrong);
        ours.save(wrong).unwrap();
        let mut later = LastSeen::load(Some(path.clone()));
        for seen in [&ours, &later] {
            assert_eq!(seen.of(HOME, "a", NOW), SessionMarks { approved: Some(Time(5)), ..SessionMarks::default() });
            assert_eq!(seen.of(HOME, "b", NOW), SessionMarks::default());
        }
        later.note(HOME, "a", seen(NOW.0), NOW);
        assert_eq!(later.of(HOME, "a", NOW).seen, Some(NOW), "what is seen now counts");
        later.save(NOW).unwrap();
        let mended = LastSeen::load(Some(path));
        assert_eq!(
            mended.of(HOME, "a", wrong),
            SessionMarks { seen: Some(NOW), approved: Some(Time(5)), ..SessionMarks::default() }
        );
        assert_eq!(mended.marks.len(), 1, "nothing is left of the other");
    }

    /// What each version wrote is read by all later ones; what a later one wrote stays as it is.
    #[test]
    fn case_624_marks_of_other_versions_are_read_or_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let mark = SessionMarks { seen: Time::parse(b"2026-11-20T18:00:00Z"), ..SessionMarks::default() };
        let entry = format!(r#"{{"{}": {{"seen": "2026-11-20T18:00:00.000Z"}}}}"#, name(HOME, "a"));
        for text in [entry.clone(), format!(r#"{{"version": 1, "content": {entry}}}"#)] {
            fs::write(&path, &text).unwrap();
            let mut read = LastSeen::load(Some(path.clone()));
            assert_eq!(read.of(HOME, "a", NOW), mark, "{text}");
            read.save(NOW).unwrap();
            assert_eq!(LastSeen::load(Some(path.clone())).of(HOME, "a", NOW), mark, "{text}");
        }
        let later = format!(r#"{{"version": 2, "content": {entry}}}"#);
        fs::write(&path, &later).unwrap();
        let mut read = LastSeen::load(Some(path.clone()));
        let error = format!("{:#}", read.save(NOW).unwrap_err());
        assert!(error.contains("a later version of Pilotlight wrote it"), "{error}");
        assert_eq!((fs::read_to_string(&path).unwrap(), is_broken(&path)), (later, false));
    }

    #[test]
    fn only_the_latest_times_are_kept() {
        let mut ours = LastSeen { path: Some(tempfile::tempdir().unwrap().path().join(FILE)), ..LastSeen::default() };
        for n in 0..1500 {
            ours.note(HOME, &n.to_string(), seen(n), NOW);
        }
        ours.save(NOW).unwrap();
        assert_eq!((ours.of(HOME, "499", NOW), ours.of(HOME, "500", NOW)), (SessionMarks::default(), seen(500)));
    }
}
