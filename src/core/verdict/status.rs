//! The statuses, and how they are written.

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
    /// Its tools are refused because nobody can be asked.
    PermissionLost,
    /// It waits for an answer.
    NeedsInput,
    /// A turn is open, and silence passed its limit.
    Stuck,
    /// A turn is open and silent for long, but not beyond doubt.
    Quiet,
    /// The turn is about to end.
    Finishing,
    /// A turn is open, or something works in the background.
    Working,
    /// Nothing is going on: the user's turn.
    Idle,
}

impl Status {
    /// Every status, in the order in which they are tried.
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

    /// The status as it is written everywhere: in JSON, in the table, in the menu.
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
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
