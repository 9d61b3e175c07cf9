//! Whether the user looks at a session: its terminal has the focus.
//!
//! That is asked of the desktop once for each popup, when the popup is due and waits for others to join it. So a popup
//! comes no later where the answer is no, or does not come.

use super::settings::Settings;
use crate::time::{Span, Time};

/// For how long an answer is waited for: no longer than popups wait for each other anyway.
pub const FOCUS_TIMEOUT: Span = Span::seconds(1);

/// Whether the terminal of an episode's session has the focus. Times are on the awake clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    /// Not asked for yet.
    Unknown,
    /// Asked for at this time, and not answered.
    Queried(Time),
    /// It has not, or nobody can tell.
    Elsewhere,
    /// It had when that was asked for, at this time.
    Here(Time),
}

impl Focus {
    /// When the popup is due, if it would be due at `at` otherwise.
    pub(super) fn delays(self, at: Time, on: &Settings) -> Time {
        match (self, on.focus_delay) {
            (Self::Here(since), Some(delay)) => at.max(since + delay),
            _ => at,
        }
    }

    /// Until when the answer is waited for.
    pub(super) fn awaited_until(self) -> Option<Time> {
        match self {
            Self::Queried(at) => Some(at + FOCUS_TIMEOUT),
            Self::Unknown | Self::Elsewhere | Self::Here(_) => None,
        }
    }

    /// The answer.
    pub(super) const fn answer(&mut self, has_focus: bool) {
        if let Self::Queried(at) = *self {
            *self = if has_focus { Self::Here(at) } else { Self::Elsewhere };
        }
    }
}
