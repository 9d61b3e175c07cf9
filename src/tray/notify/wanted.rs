//! The wanted set: the popups that should be on the screen, and which of them are.

use pilotlight_core::alert::{Popup, PopupId};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The popups that should be on the screen.
pub(super) type Wanted = BTreeMap<PopupId, (Popup, State)>;

/// The state of a wanted popup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not sent to the server yet.
    New,
    Sent,
    /// Could not be shown, or was lost with its server. It is retried.
    Lost,
}

/// Ignores poisoning: the set is valid after a panic.
pub(super) fn lock(wanted: &Mutex<Wanted>) -> MutexGuard<'_, Wanted> {
    wanted.lock().unwrap_or_else(PoisonError::into_inner)
}
