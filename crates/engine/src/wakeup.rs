//! What wakes the loop, and where that comes from.

use super::parts::tasks::TaskMessage;
use crate::control::Command;
use crate::hosts::HostEvent;
use pilotlight_agents::control::BridgeNews;
use pilotlight_system::signals::{Signal, Signals};
use pilotlight_system::timer::Alarm;
use pilotlight_system::watcher::Hints;
use std::future::pending;

/// What the loop wakes for.
pub(super) enum Wakeup {
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
pub(super) struct WakeupSources {
    pub(super) signals: SignalSource,
    pub(super) alarm: Alarm,
    /// Files change faster than they are read.
    pub(super) event_storm: bool,
}

impl WakeupSources {
    pub(super) fn new(signals: SignalSource) -> Self {
        Self { signals, alarm: Alarm::default(), event_storm: false }
    }
}

/// The signals to the program, if it handles them: else they have their default effects, and never arrive here.
pub(super) struct SignalSource(pub(super) Option<Signals>);

impl SignalSource {
    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> Signal {
        match &mut self.0 {
            Some(signals) => signals.next().await,
            None => pending().await,
        }
    }

    /// Waits for a signal to exit.
    pub(super) async fn end(&mut self) {
        match &mut self.0 {
            Some(signals) => signals.end().await,
            None => pending().await,
        }
    }
}
