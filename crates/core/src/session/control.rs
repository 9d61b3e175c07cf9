//! Our own relation to a session: how we reach it, and what we did or are doing with it.

use crate::action::spec::Action;
use crate::attempts::{Attempts, RecoveryMarks};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// The state of a session's server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerState {
    /// Unknown: no live owner, or not checked yet.
    #[default]
    Unknown,
    /// Its owner listens on no port: it talks to a single program, or is a plain terminal.
    NotListening,
    /// Its owner listens on loopback; no connection was tried yet.
    Listening,
    /// A connection attempt failed, and why.
    Refused(Box<str>),
    /// We are attached to it.
    Attached,
    /// It runs in a server of our own, with this process id. Copilot writes no lock, nor anything else, before the
    /// first prompt.
    Hosted(u32),
}

impl ServerState {
    /// Whether we are attached, no matter whose server it is.
    pub const fn is_attached(&self) -> bool {
        matches!(self, Self::Attached | Self::Hosted(_))
    }
}

/// Our own relation to a session: how we reach it, and what we did or are doing with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Control {
    pub server: ServerState,
    /// The bridge to its terminal, if there is one.
    pub bridge: Option<Bridge>,
    /// Whether terminals have one at all.
    pub bridge_setup: BridgeSetup,
    /// The Copilot release that the bridge reports running in.
    pub release: Option<Box<str>>,
    /// The bridge's version differs from ours, and will until the session is restarted.
    pub old_bridge: bool,
    /// Number of other sessions its owner runs, or may run.
    pub other_sessions: usize,
    /// The action in progress.
    pub under_way: Option<Action>,
    /// The recoveries tried so far.
    pub attempts: Attempts,
    /// When a Pilotlight process resumed it (wall clock), until its new owner shows up.
    pub resumed: Option<Time>,
    /// Set when it is to continue as soon as the denied turn is over: the marks at the time of that order.
    pub pending_continue: Option<RecoveryMarks>,
    /// When the last action ended, and its outcome.
    pub outcome: Option<(Time, Box<str>)>,
    /// The request that a command wanted to approve, if a person cannot be told to have given that command.
    #[serde(rename = "wanted")]
    pub approval_requested: Option<Box<str>>,
    /// Whether its bridge reports that everything is approved without asking. `None`: it has not told.
    pub approves_all: Option<bool>,
    /// The turn in which what its bridge reported was last answered in its terminal, by the event that opened the turn.
    #[serde(default)]
    pub answered_there: Option<Box<str>>,
    /// When a command last had a request approved (wall clock), and not a click.
    pub approved_by_command: Option<Time>,
    /// When a command last sent an approval of which nothing confirms that it took effect (wall clock).
    #[serde(default)]
    pub approval_unconfirmed: Option<Time>,
    /// Why what its hook asked last was left to its terminal, if it was.
    #[serde(default)]
    pub let_go: Option<LetGo>,
}

/// Why what a hook asks is left to its terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LetGo {
    /// Another hook asked in the name of the same session at the same time: which is its own is not known.
    TwoAsk,
    /// What waits already takes as much memory as it may.
    Full,
    /// It has more parts than are read.
    TooMuch,
}

/// Whether the bridge is installed, and whether this process knows which sessions one reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BridgeSetup {
    /// The user has not installed it.
    #[default]
    NotInstalled,
    /// It is installed, and this process knows which sessions have one: it listens, or asked a tray that does.
    Installed,
    /// It is installed, but nobody listens for bridges: which sessions have one is not known.
    Unheard,
}

/// What a terminal session's bridge may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bridge {
    /// Report only: it was not tried with this Copilot release.
    Watches,
    /// Stop the turn, and answer questions.
    Joined,
    /// Same as [`Joined`](Self::Joined); its user refused more.
    Declined,
    /// Its user is being asked in the terminal whether it may answer permission requests.
    Asking,
    /// Answer permission requests as well.
    Elevated,
}

impl Bridge {
    /// Whether it carries out orders.
    pub const fn accepts_orders(self) -> bool {
        !matches!(self, Self::Watches)
    }

    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Elevated => "elevated",
            Self::Watches | Self::Joined | Self::Declined | Self::Asking => "joined",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_bridge_is_elevated_only_if_it_may_answer() {
        let all = [Bridge::Watches, Bridge::Joined, Bridge::Declined, Bridge::Asking, Bridge::Elevated];
        assert_eq!(all.map(Bridge::name), ["joined", "joined", "joined", "joined", "elevated"]);
    }
}
