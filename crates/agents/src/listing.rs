//! What a listing of a home's sessions read and found, and quick scans of them.

use super::listing_cache::ListingCache;
use super::reading::{LogPaths, PastSession, Reading};
use std::fmt;
use std::sync::Arc;

/// Lists the ids of a home's sessions.
pub struct Listing {
    ids: Box<dyn Iterator<Item = Arc<str>> + Send>,
    logs: LogPaths,
    cache: ListingCache,
}

impl Listing {
    /// These, whose ids tell where they are.
    pub fn of(ids: impl IntoIterator<Item = Arc<str>, IntoIter: Send + 'static>) -> Self {
        Self { ids: Box::new(ids.into_iter()), logs: LogPaths::default(), cache: ListingCache::default() }
    }

    /// The same, where their logs were found, with what was read for that.
    #[must_use]
    pub(crate) fn with(self, logs: LogPaths, cache: ListingCache) -> Self {
        Self { logs, cache, ..self }
    }

    /// Where the logs are, as far as the listing had to find that.
    pub fn logs(&self) -> LogPaths {
        Arc::clone(&self.logs)
    }

    /// Takes what was read, as far as that was noted.
    pub fn take_cache(&mut self) -> ListingCache {
        std::mem::take(&mut self.cache)
    }
}

impl Iterator for Listing {
    type Item = Arc<str>;

    fn next(&mut self) -> Option<Self::Item> {
        self.ids.next()
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").field("logs", &self.logs.len()).finish_non_exhaustive()
    }
}

/// Tells fast, without a reader, whether sessions of a home are history.
pub trait QuickScan: fmt::Debug + Sync {
    /// Returns a quick scan of a session if it shows that nobody has the session open and that its log is too old to
    /// matter.
    fn past(&self, id: &str, reading: &Reading<'_>) -> Option<PastSession>;
}

/// A quick scan that tells of none: each session is read.
#[derive(Debug)]
pub struct ReadEach;

impl QuickScan for ReadEach {
    fn past(&self, _id: &str, _reading: &Reading<'_>) -> Option<PastSession> {
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::adapter::Adapter;
    use crate::home::Home;
    use crate::{claude_code::ClaudeCode, codex::Codex};

    #[test]
    fn case_472_whoever_lists_once_notes_no_times_of_folders() {
        let homes: [(&'static dyn Adapter, &str); 2] = [(&ClaudeCode, "projects/-a"), (&Codex, "sessions/2026/11/21")];
        for (adapter, logs) in homes {
            let home = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(home.path().join(logs)).unwrap();
            let home = Home::of(adapter, home.path().to_owned());
            assert!(!home.list().unwrap().take_cache().stand(), "{adapter:?}");
            assert!(home.list_for_good().unwrap().take_cache().stand(), "{adapter:?}");
        }
    }
}
