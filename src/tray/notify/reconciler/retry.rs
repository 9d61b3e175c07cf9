//! When popups that could not be shown are retried.

use super::{Failure, RETRY_MAX, RETRY_MIN, Reconciler, State, lock};
use pilotlight_core::alert::PopupId;
use pilotlight_system::log::{self, private};
use tokio::time::Instant;

impl Reconciler {
    /// Schedules a retry of the lost popups, with exponential backoff.
    pub(super) fn schedule_retry(&mut self) {
        if self.retry_at.is_none() {
            self.retry_at = Some(Instant::now() + self.backoff);
            self.backoff = (self.backoff * 2).min(RETRY_MAX);
        }
    }

    /// Retries at once, as a new server appeared; but not within [`RETRY_MIN`] of the last retry, as our popups may be
    /// what crashes the server.
    pub(super) fn retry_soon(&mut self) {
        if self.retry_at.is_some() {
            let now = Instant::now();
            self.retry_at = Some(self.last_retry.map_or(now, |last| now.max(last + RETRY_MIN)));
        }
    }

    /// Marks the lost popups as new, if their retry is due.
    pub(super) fn retry(&mut self) {
        let now = Instant::now();
        if self.retry_at.is_some_and(|at| at <= now) {
            (self.retry_at, self.last_retry) = (None, Some(now));
            for (_, state) in lock(&self.wanted).values_mut().filter(|(_, state)| *state == State::Lost) {
                *state = State::New;
            }
        }
    }

    /// Handles a popup that could not be shown. Unless the server refused only this one, the other new ones are lost
    /// too.
    pub(super) fn failed(&mut self, id: PopupId, failure: &Failure) {
        let only_this_one = matches!(failure, Failure::Refused(_));
        if matches!(failure, Failure::Gone(_)) {
            self.server_gone(); // its loss may not have been signalled, if it happened before we found it
        }
        if !std::mem::replace(&mut self.warned, true) {
            log::warn!(
                "notifications cannot be shown: {}; they are tried again, and everything else goes on",
                private(&failure)
            );
        }
        for (popup, state) in lock(&self.wanted).values_mut() {
            if popup.id == id || *state == State::New && !only_this_one {
                *state = State::Lost;
            }
        }
        self.schedule_retry();
    }
}
