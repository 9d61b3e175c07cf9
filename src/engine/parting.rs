//! What ends with the program: sessions in servers of our own, and those whose last client we are. It is named before, and where
//! nobody can be asked, told by the next start.

use super::{Engine, View};
use crate::engine::ended::{self, Ended, One};
use std::path::Path;

impl Engine {
    /// The sessions that would end with us.
    fn ends_with_us(&self) -> Vec<One> {
        let one = |key: &super::Key| {
            let row = &self.fleet.get(key)?.row;
            Some(One { id: key.1.as_ref().into(), name: format!("{} ({})", row.label, row.status.name()) })
        };
        self.acting.last_held().filter_map(one).collect()
    }

    /// Whether a first Ctrl-C ends nothing yet, but names what would end.
    pub(super) fn parts_later(&mut self, view: &mut dyn View) -> bool {
        let ends = self.ends_with_us();
        if ends.is_empty() || std::mem::replace(&mut self.parting, true) {
            return false;
        }
        let names: Vec<_> = ends.iter().map(|one| one.name.as_str()).collect();
        view.part(&format!("only this keeps it alive: {}; press Ctrl-C again to end it", names.join(", ")));
        true
    }

    /// Says what ends with us, and keeps it for the next start.
    pub(super) fn keep_what_ends(&self, view: &mut dyn View) {
        let sessions = self.ends_with_us();
        if sessions.is_empty() {
            return;
        }
        let ended = Ended { at: self.clock.now().wall, sessions };
        tracing::warn!(sessions = ended.sessions.len(), "sessions end with Pilotlight, which was told to end");
        view.part(&ended.words());
        if let Some(state) = self.seen.path().and_then(Path::parent)
            && let Err(error) = ended::keep(state, &ended)
        {
            tracing::warn!("what ended cannot be told by the next start: {error:#}");
        }
    }
}
