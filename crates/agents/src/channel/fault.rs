//! Faults of a connection, in a person's words: what failed, where, and what to do.

use std::fmt;
use std::net::SocketAddr;

/// A server, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The server that listens at this address.
    At(SocketAddr),
    /// A server that we started ourselves.
    Own,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => write!(f, "the Copilot server at {address}"),
            Self::Own => f.write_str("the Copilot server that Pilotlight started"),
        }
    }
}

/// Why a connection or a call failed. Its text contains no token, no prompt and no command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The address is not on this machine.
    #[error(
        "{0} is not an address of this machine's loopback, and Pilotlight connects to no other; correct the server's address in the settings"
    )]
    NotLocal(SocketAddr),
    /// Nothing listens at the address.
    #[error(
        "nothing listens at {0}: the Copilot server has ended or moved; if its session still runs, start the server again or correct its address in the settings"
    )]
    Refused(SocketAddr),
    /// The connection could not be made for another reason.
    #[error("no connection to {0}: {1}")]
    Unreachable(Place, Box<str>),
    /// The server requires a different token.
    #[error("{0} does not accept the token that Pilotlight has for it; correct the server's token in the settings")]
    WrongToken(Place),
    /// The server requires a token, and we have none.
    #[error("{0} requires a token, and Pilotlight has none for it; name the server with its token in the settings")]
    TokenNeeded(Place),
    /// The server was started without a token.
    #[error("{0} was started without a token, but was sent one; remove the server's token from the settings")]
    TokenUnexpected(Place),
    /// What listens there is no Copilot server.
    #[error("{0} does not speak Copilot's protocol; correct the server's address in the settings")]
    NotCopilot(Place),
    /// The server speaks another version of the protocol.
    #[error("{0} speaks version {1} of the protocol, and Pilotlight speaks {ours}; update the older of the two", ours = github_copilot_sdk::SDK_PROTOCOL_VERSION)]
    Protocol(Place, i64),
    /// The server does not know the method.
    #[error("{0} does not know the call {1}: it is too old for this, or too new; do it in the session's own client")]
    Unknown(Place, &'static str),
    /// The session is not loaded in that server.
    #[error("the session is not loaded in {0}: it has ended there, or runs in another process; check its status")]
    NotLoaded(Place),
    /// Another process resumed the session while we had it, before anything was sent.
    #[error(
        "another process has resumed the session, and a prompt sent now would corrupt its history; continue there, or end that process and reconnect"
    )]
    Taken(Place),
    /// No response arrived in time.
    #[error("{place} did not answer within {seconds} s: it hangs or is overloaded; try again, or end its process")]
    Silent {
        /// The server.
        place: Place,
        /// How long we waited.
        seconds: u64,
    },
    /// The connection ended before the response.
    #[error("{0} ended the connection: it has crashed, was stopped or is shutting down; check the session's status")]
    Gone(Place),
    /// The server sent more than we accept.
    #[error("{0} sent more than Pilotlight takes at once (1 MB); try again, or use the session's own client")]
    TooLong(Place),
    /// The server returned an error.
    #[error("{0} refused: {1}")]
    Rejected(Place, Box<str>),
    /// The server's response was not as expected.
    #[error(
        "{0} answered the call {1} in a way that Pilotlight does not understand; do it in the session's own client"
    )]
    Misunderstood(Place, &'static str),
    /// A server of our own could not be started.
    #[error("{0}")]
    NotStarted(Box<str>),
}

impl Fault {
    /// Whether the call may have succeeded anyway: the server received it and did not refuse.
    pub(crate) const fn may_have_succeeded(&self) -> bool {
        matches!(
            self,
            Self::Silent { .. } | Self::Gone(_) | Self::TooLong(_) | Self::NotCopilot(_) | Self::Misunderstood(..)
        )
    }

    /// Whether the server will refuse us until it, or we, change.
    pub const fn refuses_us(&self) -> bool {
        matches!(
            self,
            Self::WrongToken(_)
                | Self::TokenNeeded(_)
                | Self::TokenUnexpected(_)
                | Self::NotCopilot(_)
                | Self::Protocol(..)
                | Self::Taken(_)
        )
    }

    /// The server concerned, `None` if it was never started.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::NotLocal(address) | Self::Refused(address) => Some(Place::At(*address)),
            Self::NotStarted(_) => None,
            Self::Unreachable(place, _)
            | Self::WrongToken(place)
            | Self::TokenNeeded(place)
            | Self::TokenUnexpected(place)
            | Self::NotCopilot(place)
            | Self::Protocol(place, _)
            | Self::Unknown(place, _)
            | Self::NotLoaded(place)
            | Self::Taken(place)
            | Self::Silent { place, .. }
            | Self::Gone(place)
            | Self::TooLong(place)
            | Self::Rejected(place, _)
            | Self::Misunderstood(place, _) => Some(*place),
        }
    }

    /// Whether the fault is the server's and not the call's. It then affects all of its sessions, so one warning is
    /// enough.
    pub fn affects_whole_server(&self) -> bool {
        !matches!(self, Self::NotLoaded(_) | Self::Taken(_) | Self::Rejected(..) | Self::NotStarted(_))
    }
}
