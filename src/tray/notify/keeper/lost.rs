//! What could not be shown, why, and when it is tried again.

use super::{Keeper, LATER, SOON};
use crate::core::alert::PopupId;
use crate::tray::notify::popups::{State, lock};
use std::fmt;
use tokio::time::Instant;

impl Keeper {
    /// What is lost is tried again after a while.
    pub(super) fn wait_for_another_try(&mut self) {
        if self.again_at.is_none() {
            self.again_at = Some(Instant::now() + self.wait);
            self.wait = (self.wait * 2).min(LATER);
        }
    }

    /// Another server is there: what is lost is tried at once, but a server that goes with what it is shown is not driven on.
    pub(super) fn try_soon(&mut self) {
        if self.again_at.is_some() {
            let now = Instant::now();
            self.again_at = Some(self.tried.map_or(now, |tried| now.max(tried + SOON)));
        }
    }

    /// Tries once more what is lost, where it is time.
    pub(super) fn try_again(&mut self) {
        let now = Instant::now();
        if self.again_at.is_some_and(|at| at <= now) {
            (self.again_at, self.tried) = (None, Some(now));
            for (_, state) in lock(&self.wanted).values_mut().filter(|(_, state)| *state == State::Lost) {
                *state = State::New;
            }
        }
    }

    /// A popup could not be shown; unless that is its own fault, nor can those be that wait behind it.
    pub(super) fn failed(&mut self, id: PopupId, why: &Failure) {
        let is_its_own = matches!(why, Failure::Refused(_));
        if matches!(why, Failure::Gone(_)) {
            self.all_gone(); // it may have been gone before we met it
        }
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!("notifications cannot be shown: {why}; they are tried again, and everything else goes on");
        }
        for (popup, state) in lock(&self.wanted).values_mut() {
            if popup.id == id || *state == State::New && !is_its_own {
                *state = State::Lost;
            }
        }
        self.wait_for_another_try();
    }
}

/// Why a popup is not shown.
pub(super) enum Failure {
    /// The server does not show this one.
    Refused(zbus::Error),
    /// Nobody answers, for this reason.
    Silent(&'static str),
    /// There is no server, or no bus.
    Gone(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Gone(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(out, "{error}"),
            Self::Silent(why) => out.write_str(why),
            Self::Gone(error) => write!(out, "{error:#}"),
        }
    }
}

pub(super) const WENT_AWAY: &str = "the notification server went away";
