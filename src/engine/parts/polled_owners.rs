//! Owners whose exit the system does not report, because file descriptors are short. They are polled every two seconds
//! instead, so that the status of their sessions stays true.

use crate::core::time::{Span, Time};
use std::collections::BTreeSet;
use std::io;

/// How often they are polled.
const POLL_INTERVAL: Span = Span::seconds(2);

/// The polled owners, and when they are polled next.
#[derive(Default)]
pub(crate) struct PolledOwners {
    owners: BTreeSet<u32>,
    poll_at: Option<Time>,
    warned: bool,
}

impl PolledOwners {
    /// Adds a process whose exit will not be reported. Warns the first time.
    pub(crate) fn add(&mut self, pid: u32, error: &io::Error, now: Time) {
        self.owners.insert(pid);
        self.poll_at.get_or_insert(now + POLL_INTERVAL);
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                "the end of some owners cannot be waited for ({error}), so they are checked every {POLL_INTERVAL} instead; \
                 allow more open files to end this: `ulimit -n`, or LimitNOFILE= of a service"
            );
        }
    }

    /// When they are polled next.
    pub(crate) fn poll_at(&self) -> Option<Time> {
        self.poll_at
    }

    /// Takes the owners that are due. One that still cannot be waited for is added again.
    pub(crate) fn take_due(&mut self, now: Time) -> BTreeSet<u32> {
        if self.poll_at.is_none_or(|at| at > now) {
            return BTreeSet::new();
        }
        self.poll_at = None;
        std::mem::take(&mut self.owners)
    }
}
