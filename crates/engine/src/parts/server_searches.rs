//! What is known of a session's server without connecting to it, and when to search for the server of a session that
//! waits for an answer: a search takes long, and most are in vain.

use pilotlight_core::action::ServerState;
use pilotlight_core::session::{Allows, Key, Observed};
use pilotlight_core::time::{Span, Time};
use std::collections::HashMap;

/// How long after the first request that cannot be answered the server is looked for at every event of the session.
const EAGER_FOR: Span = Span::seconds(10);
/// Minimum interval between searches after that.
const RETRY_INTERVAL: Span = Span::seconds(2);

/// A search for the server of a session that waits for an answer, so far in vain. Times are of the awake clock.
struct ServerSearch {
    first: Time,
    last: Time,
    /// An event arrived since the last search, and the next one is not due yet.
    is_postponed: bool,
}

impl ServerSearch {
    /// When to search again.
    fn retry_at(&self) -> Option<Time> {
        self.is_postponed.then(|| self.last + RETRY_INTERVAL)
    }

    /// Whether to search again now; true only once.
    fn take_retry(&mut self, now: Time) -> bool {
        let is_due = self.retry_at().is_some_and(|at| at <= now);
        self.is_postponed &= !is_due;
        is_due
    }
}

/// The searches of all sessions that wait for an answer.
#[derive(Default)]
pub(crate) struct ServerSearches(HashMap<Key, ServerSearch>);

impl ServerSearches {
    /// When the next postponed search is due.
    pub(crate) fn retry_at(&self) -> Option<Time> {
        self.0.values().filter_map(ServerSearch::retry_at).min()
    }

    /// Takes the sessions whose postponed search is due.
    pub(crate) fn due(&mut self, now: Time) -> Vec<Key> {
        self.0.iter_mut().filter_map(|(key, search)| search.take_retry(now).then(|| key.clone())).collect()
    }

    /// Whether to search for a session's server now. A search takes longer than everything else that an event requires,
    /// and a server that was missing for a while seldom appears.
    pub(crate) fn is_due(&mut self, key: &Key, now: Time) -> bool {
        let (first, last) = (now, now - RETRY_INTERVAL);
        let search = self.0.entry(key.clone()).or_insert(ServerSearch { first, last, is_postponed: false });
        let is_due = now - search.first < EAGER_FOR || now - search.last >= RETRY_INTERVAL;
        search.is_postponed = !is_due;
        if is_due {
            search.last = now;
        }
        is_due
    }

    /// Forgets a session that is gone, or that nobody runs.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

/// What is known of a session's server without connecting to one: whether it `has_service` that
/// may be asked, or whether the server of its owner, a process, `listens`.
pub(crate) fn server_state(
    observed: &Observed,
    has_service: impl FnOnce() -> bool,
    listens: impl FnOnce(u32) -> bool,
) -> ServerState {
    let is_reachable = match (&observed.allows, observed.owner.live()) {
        (Allows::Process | Allows::Nothing { .. }, _) => false,
        (Allows::Only { .. }, _) => has_service(),
        (Allows::All, Some(pid)) => listens(pid),
        (Allows::All, None) => return ServerState::Unknown,
    };
    if is_reachable { ServerState::Listening } else { ServerState::NotListening }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::session::HomeId;

    #[test]
    fn a_server_is_searched_for_at_each_event_for_ten_seconds_and_then_every_two() {
        let (mut searches, key, start) =
            (ServerSearches::default(), Key::new(HomeId::default(), "one"), Time(1_000_000));
        for millis in [0, 1, 9_999] {
            assert!(searches.is_due(&key, start + Span(millis)), "{millis}");
        }
        assert!(!searches.is_due(&key, start + Span(10_500)));
        assert_eq!(searches.retry_at(), Some(start + Span(11_999)), "a postponed search is not forgotten");
        assert!(searches.due(start + Span(11_998)).is_empty());
        assert_eq!(searches.due(start + Span(11_999)), std::slice::from_ref(&key));
        assert!(searches.due(start + Span(11_999)).is_empty() && searches.retry_at().is_none(), "it is returned once");
        assert!(searches.is_due(&key, start + Span(12_000)));
        searches.forget(&key);
        assert!(searches.is_due(&key, start + Span(12_001)), "a new owner has a new server");
    }
}
