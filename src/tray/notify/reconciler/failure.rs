//! Why a popup could not be shown.

use std::fmt;

pub(super) const SERVER_GONE: &str = "the notification server went away";

/// Why a popup could not be shown.
pub(super) enum Failure {
    /// The server refused it.
    Refused(zbus::Error),
    /// The call timed out; with the reason.
    NoReply(&'static str),
    /// The server or the bus is gone.
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
            Self::NoReply(reason) => out.write_str(reason),
            Self::Gone(error) => write!(out, "{error:#}"),
        }
    }
}
