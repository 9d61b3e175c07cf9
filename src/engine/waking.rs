//! What time alone brings: when the loop is to wake without anything having happened, and what it does then.

use super::settings::Reload;
use super::{Engine, RESCAN_EARLY, Round, View};
use crate::core::time::{Span, Time};

impl Engine {
    /// The earliest moment at which there is something to do without anything having happened.
    pub(super) fn wake_at(&self, view: &dyn View) -> Time {
        let rescan = self.needs_rescan().then_some(self.rescan_at);
        // An hour: nothing is due then, but a bound costs nothing and forgives a clock that misbehaves.
        let idle = self.clock.now().awake + Span::hours(1);
        let reload = self.reload.as_ref().and_then(Reload::due);
        let homes = self.homes.look_at().filter(|_| !self.watcher.tells_of_homes());
        let (owners, processes, resumed) = (self.owners.wake_at(), self.processes.wake_at(), self.resumes.until());
        let others = [
            rescan,
            homes,
            reload,
            view.redraw_at(),
            owners,
            processes,
            resumed,
            self.sought.again_at(),
            self.lost.due(),
        ];
        let late = self.orders.wake_at();
        self.fleet.wake_at().into_iter().chain(others.into_iter().flatten()).chain(late).fold(idle, Time::min)
    }

    fn needs_rescan(&self) -> bool {
        self.fleet.keys().next().is_some() || !self.history.is_empty() || !self.watcher.has_room()
    }

    /// Judges again what time alone may have changed.
    pub(super) fn recheck(&mut self, view: &dyn View, round: &mut Round) {
        let now = self.clock.now();
        let changed = self.fleet.pass(now);
        for pid in self.owners.due(now.awake) {
            for key in self.fleet.with_pid(pid) {
                self.agenda.urgent(key);
            }
        }
        self.processes.look_into_logs(now.awake);
        if self.resumes.until().is_some_and(|until| until <= now.awake) {
            self.note_resumed();
        }
        for key in self.sought.due(now.awake).into_iter().chain(self.owners.told_by_now(now.awake)) {
            self.agenda.urgent(key);
        }
        if self.lost.begin(now.awake) {
            self.look_at_what_was_lost(round);
        }
        self.processes.begin_wanted(now.awake);
        let early = if changed.is_empty() { Span::ZERO } else { RESCAN_EARLY };
        round.changed.extend(changed);
        if self.homes.is_due(now.awake) && !self.watcher.tells_of_homes() {
            self.look_at_homes();
        }
        if self.rescan_at <= now.awake + early {
            self.rescan();
            round.redraw = true;
        }
        round.redraw |= view.redraw_at().is_some_and(|at| at <= now.awake);
    }
}
