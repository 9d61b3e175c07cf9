//! The popups of [`alert`](crate::core::alert) on macOS and Windows: shown, without buttons, and left to the system.
//!
//! There is nothing to be told of them and no way to take one back, so each counts as closed as soon as it is shown. What a
//! button would do, the menu does.

use super::{Clicked, Means, Note, NoteSender};
use crate::core::alert::{Change, PopupId};
use std::sync::Arc;

/// Shows popups.
pub(crate) struct Popups {
    note_sender: NoteSender,
    means: Arc<Means>,
}

impl Popups {
    /// Nothing is shown yet.
    pub(crate) fn start(means: Means) -> Self {
        Self { note_sender: NoteSender::new(means.runtime.clone()), means: Arc::new(means) }
    }

    /// Makes a change; returns at once.
    pub(crate) fn apply(&self, change: Change) {
        let Change::Raise(popup) = change else { return };
        self.note_sender.send(&Note { title: popup.title, body: popup.body }, || ());
        self.closed(popup.id);
    }

    fn closed(&self, id: PopupId) {
        (self.means.clicked)(id, Clicked::Closed { by_user: false });
    }

    /// What is shown stays with the system.
    pub(crate) async fn end(self) {}
}
