//! One warning about a server, however many of its sessions it fails.

use super::fault::Place;
use crate::core::time::{Span, Time};
use std::collections::HashMap;

/// A server that is back within this span was being restarted: that it failed was told, and that it fails once more is not.
const RESTART: Span = Span::seconds(30);

/// So long a server is remembered that has not failed since.
const REMEMBERED: Span = Span::hours(24);

/// The servers that were warned about.
#[derive(Debug, Default)]
pub(crate) struct Warned(HashMap<Place, Trouble>);

#[derive(Debug)]
struct Trouble {
    last: Time,
    over: bool,
}

impl Warned {
    /// A server failed, by the awake clock at `now`. Whether the user is to be warned: at the first failure, and at the
    /// first after a time in which all went well.
    pub(crate) fn failed(&mut self, place: Place, now: Time) -> bool {
        self.0.retain(|_, trouble| now - trouble.last <= REMEMBERED);
        let known = self.0.insert(place, Trouble { last: now, over: false });
        known.is_none_or(|trouble| trouble.over && now - trouble.last > RESTART)
    }

    /// Something over that server succeeded.
    pub(crate) fn succeeded(&mut self, place: Place) {
        if let Some(trouble) = self.0.get_mut(&place) {
            trouble.over = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Place {
        Place::At(([127, 0, 0, 1], port).into())
    }

    #[test]
    fn case_56_one_warning_for_two_sessions_of_a_server() {
        let mut warned = Warned::default();
        assert!(warned.failed(at(1), Time(0)));
        assert!(!warned.failed(at(1), Time(10)), "the second session");
        assert!(!warned.failed(at(1), Time(3_600_000)), "it still fails");
        assert!(warned.failed(at(2), Time(20)), "another server");
        assert!(warned.failed(at(3), Time(48 * 3_600_000)));
        assert_eq!(warned.0.len(), 1, "what failed long ago is forgotten");
    }

    #[test]
    fn case_57_no_second_warning_for_a_restart() {
        let mut warned = Warned::default();
        assert!(warned.failed(at(1), Time(0)));
        warned.succeeded(at(1));
        assert!(!warned.failed(at(1), Time(30_000)));
        warned.succeeded(at(1));
        assert!(warned.failed(at(1), Time(60_001)));
    }
}
