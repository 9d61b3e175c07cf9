//! The statuses and their names.

use serde::Serialize;
use std::fmt;

/// What a session does, or what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It is over.
    Ended,
    /// Its owner is gone, with work still open.
    Crashed,
    /// Its last turn ended in an error.
    Failed,
    /// It waits for a permission.
    NeedsPermission,
    /// Its tools are denied because nobody can be asked.
    PermissionLost,
    /// It waits for an answer.
    NeedsInput,
    /// A turn is open, and the silence has passed its limit.
    Stuck,
    /// A turn is open and has been silent for long, but may still be working.
    Quiet,
    /// The turn is about to end.
    Finishing,
    /// A turn is open, or there is work in the background.
    Working,
    /// Nothing is going on. It is the user's turn.
    Idle,
}

impl Status {
    /// Every status, in the order in which they are checked.
    pub const ALL: [Self; 11] = [
        Self::Ended,
        Self::Crashed,
        Self::Failed,
        Self::NeedsPermission,
        Self::PermissionLost,
        Self::NeedsInput,
        Self::Stuck,
        Self::Quiet,
        Self::Finishing,
        Self::Working,
        Self::Idle,
    ];

    /// Its name, as used in JSON, in the table and in the menu.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Crashed => "crashed",
            Self::Failed => "failed",
            Self::NeedsPermission => "needs-permission",
            Self::PermissionLost => "permission-lost",
            Self::NeedsInput => "needs-input",
            Self::Stuck => "stuck",
            Self::Quiet => "quiet",
            Self::Finishing => "finishing",
            Self::Working => "working",
            Self::Idle => "idle",
        }
    }

    /// Whether it says that the session is at work.
    pub(crate) const fn is_work(self) -> bool {
        matches!(self, Self::Working | Self::Finishing)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
