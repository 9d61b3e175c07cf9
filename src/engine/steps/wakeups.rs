//! Waits for what wakes the loop, and hands it to the step that handles it.

use crate::control::Command;
use crate::engine::wakeup::{Wakeup, WakeupSources};
use crate::engine::{Changes, Engine, View};
use crate::system::heap;
use crate::system::signals::{Signal, suspend};
use std::ops::ControlFlow;

impl Engine {
    /// Waits for the next wakeup. Returns at once if work remains.
    pub(in crate::engine) async fn next_wakeup(&mut self, sources: &mut WakeupSources, view: &dyn View) -> Wakeup {
        let wake = self.clock.instant(self.wake_at(view));
        let is_busy = self.agenda.is_busy()
            || self.process_scans.is_scanning()
            || self.history.has_unshown()
            || self.history.has_unwatched();
        if !is_busy && self.agenda.take_was_large() {
            self.buffer = Vec::new();
            heap::release();
        }
        if is_busy || sources.event_storm {
            // Tokio polls signals and sockets only when no task is ready, and in a storm one always is.
            tokio::task::yield_now().await;
        }
        let wakeup = tokio::select! {
            biased;
            signal = sources.signals.next() => Wakeup::Signal(signal),
            // Before file events: what we are about to do must be known before its traces appear on disk.
            Some(message) = self.tasks.next_message() => Wakeup::Task(message),
            event = self.bridges.next_event() => Wakeup::Bridge(event),
            news = self.hosts.next_news() => news.map_or(Wakeup::Timer, Wakeup::News),
            hints = self.watcher.changed(is_busy) => Wakeup::Disk(hints),
            Some(command) = self.commands.recv() => Wakeup::Command(command),
            () = self.file_systems.answered() => Wakeup::FileSystem,
            pid = self.owners.next_exit() => Wakeup::Exit(pid),
            () = sources.alarm.until(wake), if !is_busy => Wakeup::Timer,
            () = std::future::ready(()), if is_busy => Wakeup::Timer,
        };
        sources.event_storm = matches!(&wakeup, Wakeup::Disk(hints) if hints.at_once);
        wakeup
    }

    /// Handles a wakeup. Breaks if it ends the program.
    pub(in crate::engine) fn handle_wakeup(
        &mut self,
        wakeup: Wakeup,
        view: &mut dyn View,
        changes: &mut Changes,
    ) -> ControlFlow<()> {
        if matches!(&wakeup, Wakeup::Disk(hints) if hints.routes) {
            self.file_systems.reload(&self.homes);
        }
        self.ask_file_systems(changes);
        match wakeup {
            Wakeup::Signal(signal) => return self.handle_signal(signal, view, changes),
            Wakeup::Task(message) => self.handle_task_message(message, changes),
            Wakeup::Bridge(event) => self.handle_bridge_event(event, changes),
            Wakeup::News(news) => self.machines().take_news(news, changes),
            Wakeup::FileSystem => {}
            Wakeup::Disk(hints) => self.handle_file_events(hints, changes),
            Wakeup::Command(Command::Quit) => return ControlFlow::Break(()),
            Wakeup::Command(Command::End) => {
                self.record_ended_sessions(view);
                return ControlFlow::Break(());
            }
            Wakeup::Command(Command::Refresh) => {
                self.rescan();
                self.hosts.retry(None);
            }
            Wakeup::Command(Command::RetryHost(host)) => self.hosts.retry(Some(&host)),
            Wakeup::Command(Command::ReportHosts(reply)) => drop(reply.send(self.machines().reports())),
            Wakeup::Command(Command::Redraw) => changes.redraw = true,
            Wakeup::Command(Command::Act(order)) => self.handle_order(order, changes),
            // Who asked may have gone.
            Wakeup::Command(Command::ReportOverlays(reply)) => drop(reply.send(self.overlays())),
            Wakeup::Command(Command::RestartBridgeListener(reply)) => {
                self.restart_bridge_listener(changes);
                let _ = reply.send(());
            }
            Wakeup::Command(Command::Seen(keys)) => {
                self.machines().mark_seen(&keys);
                self.mark_seen(&keys, changes);
            }
            Wakeup::Command(Command::TellAll(outbox)) => self.outboxes.add(&outbox, &self.fleet, self.clock.now()),
            Wakeup::Command(Command::SeenByIds(ids)) => {
                let keys: Vec<_> = self.fleet.keys().filter(|key| ids.iter().any(|id| **id == *key.id)).collect();
                self.mark_seen(&keys, changes);
            }
            Wakeup::Command(Command::SeenAll) => {
                let far: Vec<_> = self.fleet.shown().map(|shown| shown.key.clone()).collect();
                self.machines().mark_seen(&far);
                let keys: Vec<_> = self.fleet.keys().collect();
                self.mark_seen(&keys, changes);
            }
            Wakeup::Exit(pid) => self.owner_exited(pid),
            // What is due is done in every iteration.
            Wakeup::Timer => {}
        }
        ControlFlow::Continue(())
    }

    fn handle_signal(&mut self, signal: Signal, view: &mut dyn View, changes: &mut Changes) -> ControlFlow<()> {
        match signal {
            Signal::Interrupt if view.leaves_interrupt() || self.warn_before_exit(view) => {}
            Signal::Interrupt => return ControlFlow::Break(()),
            Signal::End => {
                self.record_ended_sessions(view);
                return ControlFlow::Break(());
            }
            Signal::Redraw => {
                view.resume();
                changes.redraw = true;
            }
            Signal::Suspend => {
                view.suspend();
                suspend();
            }
        }
        ControlFlow::Continue(())
    }
}
