//! The clocks of two machines.

use crate::time::{Moment, Span, Time};

/// The host's clock counts as right if it differs from ours by less: this includes how long a line was on its way.
const CLOCKS_AGREE: Span = Span::seconds(2);

/// The clocks of this machine as a line of a host arrives, and how far the host's wall clock is behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocks {
    pub now: Moment,
    pub behind: Span,
}

impl Clocks {
    /// How far a clock is behind that said this.
    pub fn behind(now: Moment, there: Time) -> Span {
        let behind = now.wall - there;
        if behind.0.saturating_abs() > CLOCKS_AGREE.0 { behind } else { Span::ZERO }
    }

    /// A time of the host's clock, by ours.
    pub fn here(&self, there: Time) -> Time {
        there + self.behind
    }

    /// A time of ours, by the host's clock.
    pub(super) fn there(&self, here: Time) -> Time {
        here - self.behind
    }
}
