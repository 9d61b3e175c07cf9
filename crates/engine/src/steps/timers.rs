//! What happens through time alone: when the loop must wake without an event, and what it does then.

use crate::parts::settings_file::SettingsFile;
use crate::{Engine, View};
use pilotlight_core::time::{Span, Time};

/// A rescan that is due within this is brought forward when the program is awake anyway because time changed a status.
const RESCAN_EARLY: Span = Span::seconds(20);

/// How much later to look for the home of an agent that is used for the first time, while there is nothing else to look
/// at.
const GROWTH_DELAY: Span = Span::seconds(540);

impl Engine {
    /// When the next work is due without an event.
    pub(super) fn wake_at(&self, view: &dyn View) -> Time {
        let rescan = match self.needs_rescan() {
            true => Some(self.disk.rescan_at),
            false => self.may_grow().then_some(self.disk.rescan_at + GROWTH_DELAY),
        };
        // At most an hour: nothing is due then, but a bound is cheap and tolerates a clock that misbehaves.
        let idle = self.world.now().awake + Span::hours(1);
        let timers = [
            rescan,
            self.disk.wake_at(self.world.now().awake),
            view.redraw_at(),
            self.connections.server_searches.retry_at(),
            self.connections.stream_probes.wake_at(),
            self.world.fleet.probe_at(),
            self.outboxes.wake_at(),
            self.hosts.wake_at(),
        ];
        let orders = self.postponed_until();
        self.world.fleet.wake_at().into_iter().chain(timers.into_iter().flatten()).chain(orders).fold(idle, Time::min)
    }

    fn needs_rescan(&self) -> bool {
        self.world.fleet.keys().next().is_some()
            || !self.hosts.is_empty()
            || !self.disk.history.is_empty()
            || !self.disk.watcher.has_room()
    }

    /// Whether an agent may be used for the first time.
    fn may_grow(&self) -> bool {
        self.disk.settings_file.as_ref().is_some_and(SettingsFile::may_grow)
    }

    /// Does everything that is due by now.
    pub(crate) fn run_due_timers(&mut self, view: &dyn View) {
        let now = self.world.now();
        self.machines().look_after();
        let changed = self.world.fleet.advance(now);
        for key in self.connections.server_searches.due(now.awake) {
            self.disk.agenda.push_urgent(key);
        }
        self.disk.run_due_timers(&mut self.world);
        let early = if changed.is_empty() { Span::ZERO } else { RESCAN_EARLY };
        self.world.changes.updated.extend(changed);
        if self.disk.rescan_at <= now.awake + early {
            self.disk.drop_future_marks(&mut self.world);
            self.disk.rescan(&self.world);
            self.hosts.check(&self.world.fleet, now.awake);
            self.connections.probe_silences_again(&mut self.world, &self.disk, view.asks_servers());
            self.world.changes.redraw = true;
        }
        self.world.changes.redraw |= view.redraw_at().is_some_and(|at| at <= now.awake);
    }
}
