//! Muted sessions and folders, and a pause of all notifications. All of it survives a restart, so it is expressed in
//! names and wall-clock times.

use crate::time::{Span, Time};
use serde::{Deserialize, Deserializer, Serialize};
use std::path::Path;

/// Maximum number of muted sessions, and of muted folders. The oldest are dropped first, so that the file does not grow
/// forever.
const MUTED_MAX: usize = 500;

/// No pause lasts longer: the longest that can be chosen ends the next morning.
const PAUSE_MAX: Span = Span::hours(30);

/// What is muted, and whether notifications are paused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Quiet {
    paused: Option<Pause>,
    sessions: Vec<Box<str>>,
    folders: Vec<Box<str>>,
}

/// How long notifications are paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pause {
    /// Until this wall-clock time.
    Until(#[serde(deserialize_with = "time")] Time),
    /// Until the user resumes them.
    UntilResumed,
}

impl Quiet {
    /// Pauses all notifications.
    pub const fn pause(&mut self, pause: Pause) {
        self.paused = Some(pause);
    }

    /// Ends the pause.
    pub const fn resume(&mut self) {
        self.paused = None;
    }

    /// The current pause. An expired pause lasts until the next update.
    pub const fn paused(&self) -> Option<Pause> {
        self.paused
    }

    pub fn mute_session(&mut self, id: &str) {
        mute(&mut self.sessions, id);
    }

    pub fn unmute_session(&mut self, id: &str) {
        self.sessions.retain(|muted| &**muted != id);
    }

    /// Mutes all sessions that work in a folder or below it.
    pub fn mute_folder(&mut self, folder: &str) {
        mute(&mut self.folders, folder);
    }

    pub fn unmute_folder(&mut self, folder: &str) {
        self.folders.retain(|muted| !is_same_path(muted, folder));
    }

    /// Unmutes all sessions and folders.
    pub fn unmute_all(&mut self) {
        self.sessions.clear();
        self.folders.clear();
    }

    pub fn is_session_muted(&self, id: &str) -> bool {
        self.sessions.iter().any(|muted| &**muted == id)
    }

    /// The muted folder that covers `cwd`.
    pub fn muted_folder(&self, cwd: &str) -> Option<&str> {
        let is_in = |muted: &&str| !muted.is_empty() && Path::new(cwd).starts_with(muted);
        self.folders.iter().map(|muted| &**muted).find(is_in)
    }

    /// Whether a session is muted, by its id or by its working folder.
    pub fn is_muted(&self, id: &str, cwd: Option<&str>) -> bool {
        self.is_session_muted(id) || cwd.is_some_and(|cwd| self.muted_folder(cwd).is_some())
    }

    /// Number of muted sessions, and of muted folders.
    pub fn muted(&self) -> (usize, usize) {
        (self.sessions.len(), self.folders.len())
    }

    /// Ends a pause that has expired, or that was set while the clock was wrong.
    pub(super) fn settle(&mut self, wall: Time) {
        if let Some(Pause::Until(until)) = self.paused
            && (until <= wall || until > wall + PAUSE_MAX)
        {
            self.paused = None;
        }
    }
}

fn mute(muted: &mut Vec<Box<str>>, what: &str) {
    muted.retain(|one| !is_same_path(one, what));
    muted.push(what.into());
    // A file edited by hand may exceed the maximum by more than one.
    muted.drain(..muted.len().saturating_sub(MUTED_MAX));
}

/// Whether two paths are the same, ignoring trailing slashes and the like. A session id counts as a path of one part.
fn is_same_path(a: &str, b: &str) -> bool {
    Path::new(a) == Path::new(b)
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
    let text = String::deserialize(from)?;
    Time::parse(text.as_bytes()).ok_or_else(|| serde::de::Error::custom("a time in RFC 3339 is wanted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutes_and_pauses_survive_a_restart() {
        let mut quiet = Quiet::default();
        quiet.mute_session("a");
        quiet.mute_folder("/code/one");
        for pause in [Pause::Until(Time(1_800_000_000_123)), Pause::UntilResumed] {
            quiet.pause(pause);
            let text = serde_json::to_string(&quiet).unwrap();
            assert_eq!(serde_json::from_str::<Quiet>(&text).unwrap(), quiet, "{text}");
        }
        assert_eq!(serde_json::from_str::<Quiet>("{}").unwrap(), Quiet::default());
        for broken in [r#"{"paused":{"until":"yesterday"}}"#, r#"{"paused":{"until":7}}"#, "[1]"] {
            assert!(serde_json::from_str::<Quiet>(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_muted_folder_covers_its_subfolders() {
        let mut quiet = Quiet::default();
        quiet.mute_folder("/code/one/");
        for (cwd, muted) in [("/code/one", true), ("/code/one/deep", true), ("/code/oneness", false), ("/code", false)]
        {
            assert_eq!(quiet.is_muted("a", Some(cwd)), muted, "{cwd}");
        }
        assert!(!quiet.is_muted("a", None));
        quiet.unmute_folder("/code/one");
        assert_eq!(quiet, Quiet::default());
        for id in ["a", "b"] {
            quiet.mute_session(id);
        }
        quiet.unmute_session("a");
        assert_eq!(["a", "b"].map(|id| quiet.is_session_muted(id)), [false, true]);
        quiet.unmute_session("b");
        quiet.mute_folder("");
        assert!(!quiet.is_muted("a", Some("/code")), "an empty path does not match every folder");
    }

    #[test]
    fn a_pause_ends_by_the_wall_clock() {
        let mut quiet = Quiet::default();
        quiet.pause(Pause::Until(Time(10)));
        quiet.settle(Time(9));
        assert_eq!(quiet.paused(), Some(Pause::Until(Time(10))));
        quiet.settle(Time(10));
        assert_eq!(quiet.paused(), None);
        quiet.pause(Pause::UntilResumed);
        quiet.settle(Time(1 << 60));
        assert_eq!(quiet.paused(), Some(Pause::UntilResumed));
    }

    #[test]
    fn case_625_a_pause_that_was_set_by_a_wrong_clock_ends() {
        let mut quiet = Quiet::default();
        quiet.pause(Pause::Until(Time(10) + PAUSE_MAX));
        quiet.settle(Time(10));
        assert!(quiet.paused().is_some());
        quiet.settle(Time(9));
        assert_eq!(quiet.paused(), None);
    }

    #[test]
    fn the_oldest_mutes_are_dropped() {
        let mut quiet = Quiet::default();
        for n in 0..MUTED_MAX + 10 {
            quiet.mute_session(&n.to_string());
            quiet.mute_session("always");
        }
        assert_eq!(quiet.muted(), (MUTED_MAX, 0));
        assert!(quiet.is_session_muted("always") && !quiet.is_session_muted("0"));
    }
}
