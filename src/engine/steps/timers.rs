//! What happens through time alone: when the loop must wake without an event, and what it does then.

use crate::core::time::{Span, Time};
use crate::engine::parts::settings_file::SettingsFile;
use crate::engine::{Changes, Engine, View};
use std::collections::BTreeSet;

/// A rescan that is due within this is brought forward when the program is awake anyway because time changed a status.
const RESCAN_EARLY: Span = Span::seconds(20);

/// How much later to look for the home of an agent that is used for the first time, while there is nothing else to look
/// at.
const GROWTH_DELAY: Span = Span::seconds(540);

impl Engine {
    /// When the next work is due without an event.
    pub(super) fn wake_at(&self, view: &dyn View) -> Time {
        let rescan = match self.needs_rescan() {
            true => Some(self.rescan_at),
            false => self.may_grow().then_some(self.rescan_at + GROWTH_DELAY),
        };
        // At most an hour: nothing is due then, but a bound is cheap and tolerates a clock that misbehaves.
        let idle = self.clock.now().awake + Span::hours(1);
        let reload = self.settings_file.as_ref().and_then(SettingsFile::due_at);
        let homes = self.homes.check_at(self.watcher.detects_replaced_homes());
        let (owners, processes, resumed) =
            (self.owners.wake_at(), self.process_scans.wake_at(), self.recent_resumes.until());
        let timers = [
            rescan,
            homes,
            self.polled_sessions.poll_at(),
            reload,
            view.redraw_at(),
            owners,
            processes,
            resumed,
            self.server_searches.retry_at(),
            self.lost_events.due_at(),
            self.looks.wake_at(),
            self.file_systems.wake_at(self.clock.now().awake),
            self.fleet.look_at(),
            self.outboxes.wake_at(),
            self.hosts.wake_at(),
        ];
        let orders = self.orders.wake_at();
        self.fleet.wake_at().into_iter().chain(timers.into_iter().flatten()).chain(orders).fold(idle, Time::min)
    }

    fn needs_rescan(&self) -> bool {
        self.fleet.keys().next().is_some()
            || !self.hosts.is_empty()
            || !self.history.is_empty()
            || !self.watcher.has_room()
    }

    /// Whether an agent may be used for the first time.
    fn may_grow(&self) -> bool {
        self.settings_file.as_ref().is_some_and(SettingsFile::may_grow)
    }

    /// Does everything that is due by now.
    pub(in crate::engine) fn run_due_timers(&mut self, view: &dyn View, changes: &mut Changes) {
        let now = self.clock.now();
        self.machines().look_after(changes);
        let changed = self.fleet.advance(now);
        for pid in self.owners.take_due_polls(now.awake) {
            for key in self.fleet.with_pid(pid) {
                self.agenda.push_urgent(key);
            }
        }
        self.look_at_polled_sessions(now.awake);
        self.process_scans.check_written_logs(&self.homes, now.awake);
        if self.recent_resumes.until().is_some_and(|until| until <= now.awake) {
            self.refresh_recent_resumes();
        }
        for key in self.server_searches.due(now.awake).into_iter().chain(self.owners.take_due_locks(now.awake)) {
            self.agenda.push_urgent(key);
        }
        if self.lost_events.start_if_due(now.awake) {
            self.recover_lost_events(changes);
        }
        self.process_scans.start_requested(now.awake);
        let early = if changed.is_empty() { Span::ZERO } else { RESCAN_EARLY };
        changes.updated.extend(changed);
        if self.homes.is_due(self.watcher.detects_replaced_homes(), now.awake) {
            self.check_homes();
        }
        if self.rescan_at <= now.awake + early {
            self.rescan();
            self.hosts.check(&self.fleet, now.awake);
            self.look_again_at_silences(view.asks_servers(), changes);
            changes.redraw = true;
        }
        changes.redraw |= view.redraw_at().is_some_and(|at| at <= now.awake);
    }

    /// Looks at the live sessions whose files may change without an event, if that is due, and for new sessions beside
    /// them.
    fn look_at_polled_sessions(&mut self, now: Time) {
        let mut homes = BTreeSet::new();
        for key in self.polled_sessions.due(now) {
            homes.insert(key.source);
            self.agenda.push_urgent(key);
        }
        for home in homes.into_iter().filter(|home| self.homes.is_followed(*home)).collect::<Vec<_>>() {
            if self.homes.has_other_entries(home) {
                self.start_listing(&[home]);
            }
            self.process_scans.check_terminal_notes(&self.homes, home, now);
        }
    }
}
