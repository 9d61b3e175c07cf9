//! The popups of [`alert`](pilotlight_core::alert) on macOS and Windows: shown without buttons.
//!
//! Clicks on them are not reported and they cannot be withdrawn, so each counts as closed as soon as it is shown. The
//! menu offers what their buttons would do.

use super::PopupConfig;
use super::note::NoteSender;
use crate::tray::messages::PopupEvent;
use crate::tray::note::Note;
use pilotlight_core::alert::{Change, PopupId};
use std::sync::Arc;

/// Shows popups.
pub(crate) struct Popups {
    note_sender: NoteSender,
    config: Arc<PopupConfig>,
}

impl Popups {
    /// Starts without any popup.
    pub(crate) fn start(config: PopupConfig) -> Self {
        Self { note_sender: NoteSender::new(config.runtime.clone()), config: Arc::new(config) }
    }

    /// Applies a change without blocking.
    pub(crate) fn apply(&self, change: Change) {
        let Change::Raise(popup) = change else { return };
        self.note_sender.send(&Note::new(popup.title, popup.body), Box::new(drop), || ());
        self.closed(popup.id);
    }

    fn closed(&self, id: PopupId) {
        (self.config.clicked)(id, PopupEvent::Closed { by_user: false });
    }

    /// Does nothing: the system keeps the popups.
    pub(crate) async fn close(self) {}
}
