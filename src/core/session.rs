//! What was observed of one session: its log, its folder, its owner, its server, and our own relation to it.

mod control;

pub use control::{Bridge, Control, ServerState};

use super::facts::Facts;
use super::owner::{Held, Owner};
use super::time::Time;
use super::verdict::{Answer, Live};
use serde::Serialize;
use std::sync::Arc;

/// Identifies a session among all homes: the index of its home, and its id.
pub type Key = (usize, Arc<str>);

/// What was observed of one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// Its id, the name of its folder.
    pub id: Box<str>,
    /// What its `workspace.yaml` says.
    pub about: About,
    /// The facts from its log.
    pub facts: Facts,
    /// Who runs it.
    pub owner: Owner,
    /// How well it is established that its owner has it open.
    pub held: Held,
    /// The processes that have, or may have, it open. Excludes those that created their lock just now
    /// ([`Held::Pending`]).
    pub holders: Vec<u32>,
    /// Several live processes have a lock on it.
    pub contested: bool,
    /// What is known from sources other than the log.
    pub live: Live,
    /// Our own relation to it.
    pub control: Control,
    /// Why its log cannot be read, in words for the user.
    pub problem: Option<Box<str>>,
    /// When its log was last written; its folder, if it has no log.
    pub touched: Time,
    /// A log exists, or something else under its name.
    pub has_log: bool,
    /// Its log was not read: no process has it open, and the log is too old to matter.
    pub unread: bool,
    /// When the user last looked at it.
    pub seen: Option<Time>,
}

/// What `workspace.yaml` says of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Its title.
    pub name: Option<Box<str>>,
    /// The folder it works in.
    pub cwd: Option<Box<str>>,
    /// The git branch there.
    pub branch: Option<Box<str>>,
    /// How it is used.
    pub kind: Kind,
    /// When it was created.
    pub created: Option<Time>,
}

/// How a session is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// In a terminal.
    Terminal,
    /// By a program, over the SDK.
    Sdk,
    /// Unknown.
    #[default]
    Unknown,
}

impl Session {
    /// Whether to list it. A session without a prompt is listed only while its owner may be alive.
    pub fn is_listed(&self) -> bool {
        self.facts.progress.is_some()
            || self.problem.is_some()
            || self.unread && self.has_log
            || match self.owner {
                Owner::Alive { .. } | Owner::Opened { .. } | Owner::Unheld { .. } | Owner::Unknown { .. } => true,
                Owner::Never | Owner::Gone { .. } => false,
            }
    }

    /// The process that runs it: its owner, or a server of our own that has not written a lock yet.
    pub(crate) fn runner(&self) -> Owner {
        match (&self.owner, &self.control.server) {
            (Owner::Alive { .. }, _) => self.owner.clone(),
            (_, &ServerState::Hosted(pid)) => Owner::Alive { pid, started: None },
            (owner, _) => owner.clone(),
        }
    }

    /// Whether secrets may be sent to its owner: a live one that provably holds the session, or for which that cannot
    /// be checked. Never one that has only just created its lock ([`Held::Pending`]).
    pub const fn may_be_trusted(&self) -> bool {
        matches!(self.owner, Owner::Alive { .. }) && !matches!(self.held, Held::Pending)
    }

    /// The server's answer to a query without attaching, if nothing has happened since.
    pub fn answer(&self) -> Option<&Answer> {
        self.live.answer(&self.facts)
    }

    /// The folder it works in.
    pub(crate) fn cwd(&self) -> Option<&str> {
        self.about.cwd.as_deref().or(self.facts.cwd.as_deref())
    }
}
