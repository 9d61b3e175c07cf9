//! What every step works on.

use super::parts::fleet::Fleet;
use crate::config::Config;
use pilotlight_core::action::Control;
use pilotlight_core::session::Key;
use pilotlight_core::time::Moment;
use pilotlight_system::clock::Clock;

/// What every step works on: the settings in force, the sessions, the time, and what has changed since a view was last
/// shown it.
pub(super) struct World {
    pub(super) config: Config,
    pub(super) fleet: Fleet,
    pub(super) clock: Clock,
    pub(super) changes: Changes,
    pub(super) pace: Pace,
}

/// How much time the engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It runs on: what it looks into is over when a limit passes.
    Following,
    /// Somebody waits for its first complete picture.
    Once,
}

impl World {
    pub(super) fn new(config: Config, pace: Pace) -> Self {
        let (fleet, changes) = (Fleet::new(config.limits), Changes::default());
        Self { fleet, config, clock: Clock::start(), changes, pace }
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Judges a session.
    pub(super) fn judge(&mut self, key: &Key) {
        let last = self.fleet.get(key).map(|entry| entry.last_progress.get());
        if self.fleet.judge(key, self.clock.now()) {
            self.changes.updated.push(key.clone());
        }
        let entry = self.fleet.get(key).zip(last);
        self.changes.ended_lull |= entry.is_some_and(|(entry, last)| entry.row.ended_lull(last));
        self.changes.judged.push(key.clone());
    }

    /// Changes a session's control state and judges the session again.
    pub(super) fn update_control(&mut self, key: &Key, change: impl FnOnce(&mut Control)) {
        if let Some(session) = self.fleet.session(key) {
            change(&mut session.control);
        }
        self.changes.redraw = true;
        self.judge(key);
    }

    /// Notes which owners run several sessions.
    pub(super) fn count_shared_owners(&mut self) {
        self.fleet.count_shared_owners(self.clock.now(), &mut self.changes.updated);
    }
}

/// What changed in one iteration of the loop.
#[derive(Default)]
pub(crate) struct Changes {
    /// Sessions whose row may differ.
    pub(crate) updated: Vec<Key>,
    /// Sessions that were judged.
    pub(crate) judged: Vec<Key>,
    /// Sessions that are gone.
    pub(crate) removed: Vec<Key>,
    /// Other homes are followed than before that nobody named.
    pub(crate) homes: bool,
    /// The view must be called even if no row differs.
    pub(crate) redraw: bool,
    /// A session at work went on after it had been silent for so long that its row says so.
    pub(crate) ended_lull: bool,
}
