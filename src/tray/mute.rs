//! Changes to what is muted or paused, as menu entries and popups request them.

use pilotlight_core::alert::{Pause, Quiet};
use pilotlight_core::time::{Span, Time};
use pilotlight_system::clock;

/// A pause until tomorrow ends when the wall clock next shows this hour, also for somebody who works past midnight.
pub(super) const MORNING: i8 = 6;

/// A change to what is muted or paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mute {
    /// Pauses for an hour.
    Hour,
    /// Pauses until the next morning.
    Tomorrow,
    /// Pauses until the user resumes.
    UntilResumed,
    /// Ends the pause.
    Resume,
    /// Mutes or unmutes a session, by its id.
    Session(Box<str>, MuteChange),
    /// Mutes or unmutes the sessions in a folder and below it.
    Folder(Box<str>, MuteChange),
    /// Unmutes all sessions and folders.
    UnmuteAll,
}

/// Mute or unmute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuteChange {
    /// No more popups.
    Mute,
    /// Popups again.
    Unmute,
}

impl Mute {
    /// Applies the change.
    pub(crate) fn apply(&self, quiet: &mut Quiet, now: Time) {
        match self {
            Self::Hour => quiet.pause(Pause::Until(now + Span::hours(1))),
            Self::Tomorrow => quiet.pause(Pause::Until(clock::next(MORNING, now))),
            Self::UntilResumed => quiet.pause(Pause::UntilResumed),
            Self::Resume => quiet.resume(),
            Self::Session(id, MuteChange::Mute) => quiet.mute_session(id),
            Self::Session(id, MuteChange::Unmute) => quiet.unmute_session(id),
            Self::Folder(folder, MuteChange::Mute) => quiet.mute_folder(folder),
            Self::Folder(folder, MuteChange::Unmute) => quiet.unmute_folder(folder),
            Self::UnmuteAll => quiet.unmute_all(),
        }
    }
}
