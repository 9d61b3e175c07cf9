//! What is known of a session on another machine, a host, besides what every session has: it is judged there, and here it
//! is only shown.

use crate::action::spec::Action;
use crate::short_reason::{ShortReason, TurnView};
use crate::time::Time;
use crate::verdict::Status;
use crate::words::reason::{Background, Because};
use std::fmt;

/// How a host is reached, as far as that says what can be done with its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name in the settings.
    pub name: Box<str>,
    /// Whether a terminal of this machine can run a command there.
    pub has_terminal: bool,
}

/// What its host says of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// Where it is.
    pub host: Host,
    /// Its name, for scripts.
    pub name: Box<str>,
    /// Its folder's name.
    pub who: Box<str>,
    pub title: Option<Box<str>>,
    pub status: Status,
    pub since: Time,
    pub last_progress: Option<Time>,
    pub because: Because,
    pub short_reason: ShortReason,
    pub turn: Option<TurnView>,
    pub background: Background,
    pub owner: Option<RemoteOwner>,
    pub unseen: bool,
    pub is_seen: bool,
    /// What may be done with it.
    pub offers: Vec<RemoteOffer>,
    /// A stop is offered although it may only wait for its user.
    pub stops_if_waiting: bool,
    /// To reconnect to it means to resume it.
    pub is_resumed_only: bool,
    /// Orders go over the bridge to its terminal.
    pub is_bridged: bool,
    /// A tool is open.
    pub has_open_tool: bool,
    /// Why a click is not enough to end it.
    pub not_ended_unasked: Option<Box<str>>,
    /// When its last turn was completed, if it was.
    pub completed: Option<Time>,
    /// Its machine is not reached: all else is as that machine told it last.
    pub unreached: Option<Unreached>,
}

/// That a machine is not reached, in words for the user, as times of day are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// Since when: `14:05`.
    pub since: Box<str>,
    /// When it is tried again, if that is known.
    pub again: Option<Box<str>>,
}

/// `not reached since 14:05, tried again at 14:10`.
impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not reached since {}", self.since)?;
        self.again.iter().try_for_each(|again| write!(f, ", tried again at {again}"))
    }
}

/// Who runs it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteOwner {
    pub pid: u32,
    pub state: &'static str,
    pub attachable: Option<bool>,
    pub bridge: Option<&'static str>,
}

/// Whether an action is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteOffer {
    pub action: Action,
    pub is_possible: bool,
    /// What it does, or why it is not possible.
    pub words: Box<str>,
}
