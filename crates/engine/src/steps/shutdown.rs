//! Sessions that end with the program: those in servers of our own, and those whose last client we are. They are named
//! before the program exits, or, if nobody can be asked, reported at the next start.

use crate::exit_note::{self, EndedSession, ExitNote};
use crate::{Engine, View};
use pilotlight_core::session::Key;
use pilotlight_system::log::{self, cause};
use std::path::Path;

impl Engine {
    /// The sessions that would end with us.
    fn sessions_ending_with_us(&self) -> Vec<EndedSession> {
        let ended = |key: &Key| {
            let row = &self.world.fleet.get(key)?.row;
            Some(EndedSession { id: key.id.as_ref().into(), name: format!("{} ({})", row.label, row.status.name()) })
        };
        self.connections.tasks.ending_with_us().filter_map(ended).collect()
    }

    /// At the first Ctrl-C, names the sessions that would end with us. Returns false if there are none, or they were
    /// named already: then the program exits.
    pub(super) fn warn_before_exit(&mut self, view: &mut dyn View) -> bool {
        let sessions = self.sessions_ending_with_us();
        if sessions.is_empty() || std::mem::replace(&mut self.warned_of_exit, true) {
            return false;
        }
        let names: Vec<_> = sessions.iter().map(|session| session.name.as_str()).collect();
        view.show_exit_notice(&format!(
            "only Pilotlight keeps this alive: {}; press Ctrl-C again to end it",
            names.join(", ")
        ));
        true
    }

    /// Names the sessions that end with us, and records them for the next start.
    pub(super) fn record_ended_sessions(&self, view: &mut dyn View) {
        let sessions = self.sessions_ending_with_us();
        if sessions.is_empty() {
            return;
        }
        let note = ExitNote { at: self.world.now().wall, sessions };
        log::warn!(sessions = note.sessions.len(), "sessions end with Pilotlight, which was told to end");
        view.show_exit_notice(&note.words());
        if let Some(state) = self.disk.seen.path().and_then(Path::parent)
            && let Err(error) = exit_note::save(state, &note)
        {
            log::warn!("cannot save what ended for the next start: {}", cause(&*error));
        }
    }
}
