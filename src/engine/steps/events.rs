//! Waits for the next event, and hands each to the step that handles it.

use crate::control::Command;
use crate::engine::event::{Event, EventSources};
use crate::engine::{Changes, Engine, View};
use crate::system::heap;
use crate::system::signals::{Signal, suspend};
use std::ops::ControlFlow;

impl Engine {
    /// Waits for the next event. Returns at once if work remains.
    pub(in crate::engine) async fn next_event(&mut self, sources: &mut EventSources, view: &dyn View) -> Event {
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
        let event = tokio::select! {
            biased;
            signal = sources.signals.next() => Event::Signal(signal),
            // Before file events: what we are about to do must be known before its traces appear on disk.
            Some(message) = self.tasks.next_message() => Event::Task(message),
            event = self.bridges.next_event() => Event::Bridge(event),
            news = self.hosts.next_news() => news.map_or(Event::Timer, Event::News),
            hints = self.watcher.changed(is_busy) => Event::Disk(hints),
            Some(command) = self.commands.recv() => Event::Command(command),
            () = self.file_systems.answered() => Event::FileSystem,
            pid = self.owners.next_exit() => Event::Exit(pid),
            () = sources.alarm.until(wake), if !is_busy => Event::Timer,
            () = std::future::ready(()), if is_busy => Event::Timer,
        };
        sources.event_storm = matches!(&event, Event::Disk(hints) if hints.at_once);
        event
    }

    /// Handles an event. Breaks if it ends the program.
    pub(in crate::engine) fn handle_event(
        &mut self,
        event: Event,
        view: &mut dyn View,
        changes: &mut Changes,
    ) -> ControlFlow<()> {
        if matches!(&event, Event::Disk(hints) if hints.routes) {
            self.file_systems.reload(&self.homes);
        }
        self.ask_file_systems(changes);
        match event {
            Event::Signal(signal) => return self.handle_signal(signal, view, changes),
            Event::Task(message) => self.handle_task_message(message, changes),
            Event::Bridge(event) => self.handle_bridge_event(event, changes),
            Event::News(news) => self.handle_news(news, changes),
            Event::FileSystem => {}
            Event::Disk(hints) => self.handle_file_events(hints, changes),
            Event::Command(Command::Quit) => return ControlFlow::Break(()),
            Event::Command(Command::End) => {
                self.record_ended_sessions(view);
                return ControlFlow::Break(());
            }
            Event::Command(Command::Refresh) => {
                self.rescan();
                self.hosts.retry(None);
            }
            Event::Command(Command::RetryHost(host)) => self.hosts.retry(Some(&host)),
            Event::Command(Command::ReportHosts(reply)) => drop(reply.send(self.host_reports())),
            Event::Command(Command::Redraw) => changes.redraw = true,
            Event::Command(Command::Act(order)) => self.handle_order(order, changes),
            // Who asked may have gone.
            Event::Command(Command::ReportLiveStates(reply)) => drop(reply.send(self.live_states())),
            Event::Command(Command::RestartBridgeListener(reply)) => {
                self.restart_bridge_listener(changes);
                let _ = reply.send(());
            }
            Event::Command(Command::Seen(keys)) => {
                self.mark_seen_far(&keys);
                self.mark_seen(&keys, changes);
            }
            Event::Command(Command::TellAll(outbox)) => self.outboxes.add(&outbox, &self.fleet, self.clock.now()),
            Event::Command(Command::SeenByIds(ids)) => {
                let keys: Vec<_> = self.fleet.keys().filter(|key| ids.iter().any(|id| **id == *key.id)).collect();
                self.mark_seen(&keys, changes);
            }
            Event::Command(Command::SeenAll) => {
                let far: Vec<_> = self.fleet.shown().map(|shown| shown.key.clone()).collect();
                self.mark_seen_far(&far);
                let keys: Vec<_> = self.fleet.keys().collect();
                self.mark_seen(&keys, changes);
            }
            Event::Exit(pid) => self.owner_exited(pid),
            // What is due is done in every iteration.
            Event::Timer => {}
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
