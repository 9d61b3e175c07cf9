//! Limits warnings to one per failing server, however many of its sessions are affected.

use super::fault::Place;
use pilotlight_core::time::{Span, Time};
use std::collections::HashMap;

/// A server that fails again within this span of its last failure is restarting, and that is not worth another warning.
const RESTART: Span = Span::seconds(30);

/// How long a server is remembered after its last failure.
const REMEMBERED: Span = Span::hours(24);

/// The servers that the user was warned about.
#[derive(Debug, Default)]
pub struct ServerWarnings(HashMap<Place, FailureRecord>);

#[derive(Debug)]
struct FailureRecord {
    last: Time,
    recovered: bool,
}

impl ServerWarnings {
    /// Records a failure at `now`, by the awake clock. Returns whether to warn the user: at the first failure, and at
    /// the first after the server has worked again, unless it is restarting.
    pub fn failed(&mut self, place: Place, now: Time) -> bool {
        self.0.retain(|_, record| now - record.last <= REMEMBERED);
        let known = self.0.insert(place, FailureRecord { last: now, recovered: false });
        known.is_none_or(|record| record.recovered && now - record.last > RESTART)
    }

    /// Records that something succeeded over that server.
    pub fn succeeded(&mut self, place: Place) {
        if let Some(record) = self.0.get_mut(&place) {
            record.recovered = true;
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
        let mut warnings = ServerWarnings::default();
        assert!(warnings.failed(at(1), Time(0)));
        assert!(!warnings.failed(at(1), Time(10)), "the second session");
        assert!(!warnings.failed(at(1), Time(3_600_000)), "it still fails");
        assert!(warnings.failed(at(2), Time(20)), "another server");
        assert!(warnings.failed(at(3), Time(48 * 3_600_000)));
        assert_eq!(warnings.0.len(), 1, "old failures are forgotten");
    }

    #[test]
    fn case_57_no_second_warning_for_a_restart() {
        let mut warnings = ServerWarnings::default();
        assert!(warnings.failed(at(1), Time(0)));
        warnings.succeeded(at(1));
        assert!(!warnings.failed(at(1), Time(30_000)));
        warnings.succeeded(at(1));
        assert!(warnings.failed(at(1), Time(60_001)));
    }
}
