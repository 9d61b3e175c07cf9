//! Owners whose end the system does not tell us, because descriptors are short: they are looked at every two seconds instead,
//! so that what is said of their sessions stays true.

use crate::core::time::{Span, Time};
use std::collections::BTreeSet;
use std::io;

/// How often they are looked at.
const EVERY: Span = Span::seconds(2);

/// These owners, and when they are looked at next.
#[derive(Default)]
pub(super) struct Scarce {
    owners: BTreeSet<u32>,
    look_at: Option<Time>,
    said: bool,
}

impl Scarce {
    /// The end of this process will not be told. Said once.
    pub(super) fn add(&mut self, pid: u32, error: &io::Error, now: Time) {
        self.owners.insert(pid);
        self.look_at.get_or_insert(now + EVERY);
        if !std::mem::replace(&mut self.said, true) {
            tracing::warn!(
                "the end of some owners cannot be waited for ({error}), so they are looked at every {EVERY} instead; \
                 allow more open files to end this: `ulimit -n`, or LimitNOFILE= of a service"
            );
        }
    }

    /// When they are looked at next.
    pub(super) fn look_at(&self) -> Option<Time> {
        self.look_at
    }

    /// Those that are to be looked at now; who still is not watched after that is added again.
    pub(super) fn due(&mut self, now: Time) -> BTreeSet<u32> {
        if self.look_at.is_none_or(|at| at > now) {
            return BTreeSet::new();
        }
        self.look_at = None;
        std::mem::take(&mut self.owners)
    }
}
