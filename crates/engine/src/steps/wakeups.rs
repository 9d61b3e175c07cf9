//! What wakes the loop: where that comes from, and which step handles it.
//!
//! The loop wakes for a file event (a terminal that opens a session causes one), the start of an agent's program on Linux
//! (`parts/starts.rs`), an order and its results, the exit of an owner, the earliest limit or sample, a change of the
//! settings file (200 ms after its last write), a command, a signal, and a rescan each minute while there is something to
//! watch. Retries and postponed work have times of their own: `steps/timers.rs` and `disk/timers.rs` list them.
//!
//! Wakeups are shared. A limit is reported up to a second late, together with everything else that is due in that second
//! (100 ms if the end of a turn is pending). A CPU sample may start up to 20 s early, a repeated one 30 s, if something else
//! wakes the program. A changed age wakes nobody: it is worded anew at the next wakeup, at the latest at the rescan. Reading
//! the sessions' files wakes nobody either: on Linux, only changes are watched.

use crate::connections::next_news;
use crate::control::Command;
use crate::hosts::HostEvent;
use crate::parts::tasks::TaskMessage;
use crate::{Engine, View};
use pilotlight_agents::control::BridgeNews;
use pilotlight_system::signals::{Signal, Signals, suspend};
use pilotlight_system::timer::Alarm;
use pilotlight_system::watcher::Hints;
use std::future::pending;
use std::ops::ControlFlow;

/// What the loop wakes for.
pub(crate) enum Wakeup {
    /// A signal to exit, stop or redraw.
    Signal(Signal),
    /// A message from a task or a kept connection.
    Task(TaskMessage),
    /// Another machine has told something.
    HostEvent(HostEvent),
    /// A bridge has connected, reported something, or disconnected.
    Bridge(BridgeNews),
    /// Files or folders changed.
    Disk(Hints),
    /// A file system has answered at last.
    FileSystem,
    /// A command from the user or another part of the program.
    Command(Command),
    /// The process with this id has exited.
    Exit(u32),
    /// A timer has fired, or work remains and nothing else arrived.
    Timer,
}

/// The sources of wakeups that the engine does not own itself.
pub(crate) struct WakeupSources {
    pub(crate) signals: SignalSource,
    pub(crate) alarm: Alarm,
    /// Files change faster than they are read.
    pub(crate) event_storm: bool,
}

impl WakeupSources {
    pub(crate) fn new(signals: SignalSource) -> Self {
        Self { signals, alarm: Alarm::default(), event_storm: false }
    }
}

/// The signals to the program, if it handles them: else they have their default effects, and never arrive here.
pub(crate) struct SignalSource(pub(crate) Option<Signals>);

impl SignalSource {
    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        match &mut self.0 {
            Some(signals) => signals.next().await,
            None => pending().await,
        }
    }

    /// Waits for a signal to exit.
    pub(crate) async fn end(&mut self) {
        match &mut self.0 {
            Some(signals) => signals.end().await,
            None => pending().await,
        }
    }
}

impl Engine {
    /// Waits for the next wakeup. Returns at once if work remains.
    pub(crate) async fn next_wakeup(&mut self, sources: &mut WakeupSources, view: &dyn View) -> Wakeup {
        let wake = self.world.clock.instant(self.wake_at(view));
        let is_busy = self.disk.is_busy();
        if !is_busy {
            self.disk.release_memory();
        }
        if is_busy || sources.event_storm {
            // Tokio polls signals and sockets only when no task is ready, and in a storm one always is.
            tokio::task::yield_now().await;
        }
        let wakeup = tokio::select! {
            biased;
            signal = sources.signals.next() => Wakeup::Signal(signal),
            // Before file events: what we are about to do must be known before its traces appear on disk.
            Some(message) = self.connections.tasks.next_message() => Wakeup::Task(message),
            news = next_news(&mut self.connections.bridges, &self.world.clock) => Wakeup::Bridge(news),
            news = self.hosts.next_news() => news.map_or(Wakeup::Timer, Wakeup::HostEvent),
            hints = self.disk.watcher.changed(is_busy) => Wakeup::Disk(hints),
            () = self.disk.file_systems.answered() => Wakeup::FileSystem,
            pid = self.disk.owners.next_exit() => Wakeup::Exit(pid),
            // After all that has happened before it was given.
            Some(command) = self.commands.recv() => Wakeup::Command(command),
            () = sources.alarm.until(wake), if !is_busy => Wakeup::Timer,
            () = std::future::ready(()), if is_busy => Wakeup::Timer,
        };
        sources.event_storm = matches!(&wakeup, Wakeup::Disk(hints) if hints.at_once);
        wakeup
    }

    /// Handles a wakeup. Breaks if it ends the program.
    pub(crate) fn handle_wakeup(&mut self, wakeup: Wakeup, view: &mut dyn View) -> ControlFlow<()> {
        if matches!(&wakeup, Wakeup::Disk(hints) if hints.routes) {
            self.disk.file_systems.reload(&self.disk.homes);
        }
        self.disk.ask_file_systems(&mut self.world);
        match wakeup {
            Wakeup::Signal(signal) => return self.handle_signal(signal, view),
            Wakeup::Task(message) => self.handle_task_message(message),
            Wakeup::Bridge(news) => self.connections.take_bridge_news(&mut self.world, &news),
            Wakeup::HostEvent(news) => self.machines().take_host_event(news),
            Wakeup::FileSystem => {}
            Wakeup::Disk(hints) => {
                if hints.sockets || hints.all {
                    self.renew_sockets();
                }
                self.disk.handle_file_events(&mut self.world, hints);
            }
            Wakeup::Command(Command::Quit) => return ControlFlow::Break(()),
            Wakeup::Command(Command::End) => {
                self.record_ended_sessions(view);
                return ControlFlow::Break(());
            }
            Wakeup::Command(Command::Refresh) => {
                self.disk.rescan(&self.world);
                self.hosts.retry(None, false);
            }
            Wakeup::Command(Command::RetryHost(retry)) => self.machines().retry(retry),
            Wakeup::Command(Command::ReportHosts(reply)) => drop(reply.send(self.machines().reports())),
            Wakeup::Command(Command::HoldWindow(comer, reply)) => {
                self.windows.hold(comer);
                let _ = reply.send(()); // who asked may have gone
            }
            Wakeup::Command(Command::Redraw) => self.world.changes.redraw = true,
            Wakeup::Command(Command::Act(order)) => self.handle_order(order),
            Wakeup::Command(Command::ReportSessions(reply)) => self.begin_observation(reply),
            Wakeup::Command(Command::RestartBridgeListener(reply)) => {
                self.connections.restart_bridge_listener(&mut self.world);
                self.watch_sockets();
                let _ = reply.send(());
            }
            Wakeup::Command(Command::Seen(keys)) => {
                self.machines().mark_seen(&keys);
                self.disk.mark_seen(&mut self.world, &keys);
            }
            Wakeup::Command(Command::TellAll(outbox)) => {
                self.outboxes.add(&outbox, &self.world);
            }
            Wakeup::Command(Command::SeenByIds(ids)) => {
                let keys: Vec<_> = self.world.fleet.keys().filter(|key| ids.iter().any(|id| **id == *key.id)).collect();
                self.disk.mark_seen(&mut self.world, &keys);
            }
            Wakeup::Command(Command::SeenAll) => {
                let remote: Vec<_> = self.world.fleet.shown().map(|shown| shown.key.clone()).collect();
                self.machines().mark_seen(&remote);
                let keys: Vec<_> = self.world.fleet.keys().collect();
                self.disk.mark_seen(&mut self.world, &keys);
            }
            Wakeup::Exit(pid) => self.disk.owner_exited(&mut self.world, pid),
            // What is due is done in every iteration.
            Wakeup::Timer => {}
        }
        ControlFlow::Continue(())
    }

    fn handle_signal(&mut self, signal: Signal, view: &mut dyn View) -> ControlFlow<()> {
        match signal {
            Signal::Interrupt if view.leaves_interrupt() || self.warn_before_exit(view) => {}
            Signal::Interrupt => return ControlFlow::Break(()),
            Signal::End => {
                self.record_ended_sessions(view);
                return ControlFlow::Break(());
            }
            Signal::Redraw => {
                view.resume();
                self.world.changes.redraw = true;
            }
            Signal::Suspend => {
                view.suspend();
                suspend();
            }
        }
        ControlFlow::Continue(())
    }
}
