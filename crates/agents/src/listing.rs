//! What a listing of a source's sessions read and found, and glimpses of them.

use super::claude_code;
use super::codex::store as threads;
use super::copilot::store::{self, Root};
use super::reading::{Glimpse, LogPaths, Reading};
use super::stamps::Stamps;
use std::sync::Arc;

/// Lists the ids of a source's sessions.
#[derive(Debug)]
#[cfg_attr(windows, expect(clippy::large_enum_variant, reason = "one for each listing"))]
pub enum SessionIds {
    /// The names of folders.
    Copilot(store::SessionIds),
    /// These, where their logs are, and what was read.
    Listed(std::vec::IntoIter<Arc<str>>, LogPaths, Stamps),
}

impl SessionIds {
    /// Where the logs are, as far as the listing had to find that.
    pub fn logs(&self) -> LogPaths {
        match self {
            Self::Copilot(_) => LogPaths::default(),
            Self::Listed(_, logs, _) => Arc::clone(logs),
        }
    }

    /// Takes what was read, as far as that was noted.
    pub fn take_stamps(&mut self) -> Stamps {
        match self {
            Self::Copilot(_) => Stamps::default(),
            Self::Listed(_, _, stamps) => std::mem::take(stamps),
        }
    }
}

/// These, whose ids tell where they are.
impl From<Vec<Arc<str>>> for SessionIds {
    fn from(ids: Vec<Arc<str>>) -> Self {
        Self::from((ids, LogPaths::default(), Stamps::default()))
    }
}

impl From<(Vec<Arc<str>>, LogPaths, Stamps)> for SessionIds {
    fn from((ids, logs, stamps): (Vec<Arc<str>>, LogPaths, Stamps)) -> Self {
        Self::Listed(ids.into_iter(), logs, stamps)
    }
}

impl Iterator for SessionIds {
    type Item = Arc<str>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Copilot(ids) => ids.next(),
            Self::Listed(ids, ..) => ids.next(),
        }
    }
}

/// Checks fast, without a reader, whether sessions of a source are history.
#[derive(Debug)]
pub enum Glimpses<'a> {
    /// Relative to the folder of the sessions.
    Copilot(Root<'a>),
    /// By what all processes say of themselves.
    ClaudeCode(claude_code::store::Glimpses),
    /// By the locks, and where the logs are.
    Codex(threads::Glimpses<'a>),
    /// There are none: each session is read.
    None,
}

impl Glimpses<'_> {
    /// Returns a glimpse of a session if it shows that nobody has the session open and that its log is too old to
    /// matter.
    pub fn past(&self, id: &str, reading: &Reading<'_>) -> Option<Glimpse> {
        match self {
            Self::Copilot(root) => root.past(id, reading),
            Self::ClaudeCode(glimpses) => glimpses.past(id, reading),
            Self::Codex(glimpses) => glimpses.past(id, reading),
            Self::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::super::wing::Wing;

    #[test]
    fn case_472_whoever_lists_once_notes_no_times_of_folders() {
        for (wing, logs) in [(Wing::ClaudeCode, "projects/-a"), (Wing::Codex, "sessions/2026/11/21")] {
            let home = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(home.path().join(logs)).unwrap();
            let source = Source::of(wing, home.path().to_owned());
            assert!(!source.list().unwrap().take_stamps().stand(), "{wing:?}");
            assert!(source.list_for_good().unwrap().take_stamps().stand(), "{wing:?}");
        }
    }
}
