//! All that can happen to the engine: how it waits for that, and what each of it leads to.

use super::acting::Happening;
use super::{Command, Engine, Round, View};
use crate::agent::copilot::bridge::socket::Heard;
use crate::agent::copilot::watcher::Hints;
use crate::system::heap;
use crate::system::signals::{Signal, Signals, suspend};
use crate::system::timer::Alarm;
use std::ops::ControlFlow;

/// Something happened, or is to be gone on with.
pub(super) enum Event {
    /// Somebody wants the program to end, to rest, or to draw anew.
    Signal(Signal),
    /// A task beside the loop, or a connection that is kept, tells something.
    Task(Happening),
    /// A bridge has come, told something, or gone.
    Bridge(Heard),
    /// Files or folders changed.
    Disk(Hints),
    /// The user, or another part of the program, wants something.
    Command(Command),
    /// The process of this id has ended.
    Exit(u32),
    /// The moment has come that was waited for; or there is more to do, and nothing else came.
    Timer,
}

/// What the engine waits with.
pub(super) struct Wait {
    signals: Signals,
    alarm: Alarm,
    /// Files change faster than they are looked at.
    stormy: bool,
}

impl Wait {
    pub(super) fn new(signals: Signals) -> Self {
        Self { signals, alarm: Alarm::default(), stormy: false }
    }
}

impl Engine {
    /// Waits for the next event; not at all, where there is more to do.
    pub(super) async fn next(&mut self, wait: &mut Wait, view: &dyn View) -> Event {
        let wake = self.clock.instant(self.wake_at(view));
        let is_busy = self.agenda.is_busy()
            || self.processes.is_looking()
            || self.history.has_untold()
            || self.history.has_unwatched();
        if !is_busy && self.agenda.was_long() {
            self.buffer = Vec::new();
            heap::give_back();
        }
        if is_busy || wait.stormy {
            // The runtime hears of signals and sockets only while nothing is ready, and in a storm something always is.
            tokio::task::yield_now().await;
        }
        let event = tokio::select! {
            biased;
            signal = wait.signals.next() => Event::Signal(signal),
            // Before what is read: what we are about to do is known before its traces are.
            Some(happening) = self.acting.happens() => Event::Task(happening),
            heard = self.bridges.heard() => Event::Bridge(heard),
            hints = self.watcher.changed(is_busy) => Event::Disk(hints),
            Some(command) = self.commands.recv() => Event::Command(command),
            pid = self.owners.ended() => Event::Exit(pid),
            () = wait.alarm.until(wake), if !is_busy => Event::Timer,
            () = std::future::ready(()), if is_busy => Event::Timer,
        };
        wait.stormy = matches!(&event, Event::Disk(hints) if hints.at_once);
        event
    }

    /// What an event leads to at once. Breaks where it ends the program.
    pub(super) fn take(&mut self, event: Event, view: &mut dyn View, round: &mut Round) -> ControlFlow<()> {
        match event {
            Event::Signal(signal) => return self.obey(signal, view, round),
            Event::Task(happening) => self.happened(happening, round),
            Event::Bridge(heard) => self.heard(heard, round),
            Event::Disk(hints) => self.follow(hints, round),
            Event::Command(Command::Quit) => return ControlFlow::Break(()),
            Event::Command(Command::Refresh) => self.rescan(),
            Event::Command(Command::Redraw) => round.redraw = true,
            Event::Command(Command::Act(given)) => self.act(given, round),
            Event::Command(Command::Seen(keys)) => self.mark_seen(&keys, round),
            Event::Command(Command::SeenAll) => {
                let keys: Vec<_> = self.fleet.keys().collect();
                self.mark_seen(&keys, round);
            }
            Event::Exit(pid) => self.owner_ended(pid),
            // What is due is seen to in every turn.
            Event::Timer => {}
        }
        ControlFlow::Continue(())
    }

    fn obey(&mut self, signal: Signal, view: &mut dyn View, round: &mut Round) -> ControlFlow<()> {
        match signal {
            Signal::Interrupt if self.parts_later(view) => {}
            Signal::Interrupt => return ControlFlow::Break(()),
            Signal::End => {
                self.keep_what_ends(view);
                return ControlFlow::Break(());
            }
            Signal::Redraw => {
                view.resume();
                round.redraw = true;
            }
            Signal::Suspend => {
                view.suspend();
                suspend();
            }
        }
        ControlFlow::Continue(())
    }
}
