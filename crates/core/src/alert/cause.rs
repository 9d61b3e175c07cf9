//! Why to notify about a session.

use crate::fleet::Row;
use crate::verdict::Status;

/// Why to notify about a session, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It waits for a permission.
    NeedsPermission,
    /// It waits for an answer.
    NeedsInput,
    /// Its tools are refused because nobody can be asked.
    PermissionLost,
    /// A turn is open, and silence passed its limit.
    Stuck,
    /// Its owner is gone, with work still open.
    Crashed,
    /// Its last turn ended in an error.
    Failed,
    /// A long turn is complete.
    Done,
}

impl Cause {
    /// Every cause, most urgent first.
    pub(crate) const ALL: [Self; 7] = [
        Self::NeedsPermission,
        Self::NeedsInput,
        Self::PermissionLost,
        Self::Stuck,
        Self::Crashed,
        Self::Failed,
        Self::Done,
    ];

    /// The cause that follows from a status alone. [`Done`](Self::Done) takes more than a status.
    pub(crate) const fn of(status: Status) -> Option<Self> {
        match status {
            Status::NeedsPermission => Some(Self::NeedsPermission),
            Status::NeedsInput => Some(Self::NeedsInput),
            Status::PermissionLost => Some(Self::PermissionLost),
            Status::Stuck => Some(Self::Stuck),
            Status::Crashed => Some(Self::Crashed),
            Status::Failed => Some(Self::Failed),
            Status::Quiet | Status::Finishing | Status::Working | Status::Idle | Status::Ended => None,
        }
    }

    /// The cause that follows from a row alone. A run that ended denied counts as lost permissions.
    pub const fn of_row(row: &Row) -> Option<Self> {
        if row.ended_denied() { Some(Self::PermissionLost) } else { Self::of(row.status) }
    }

    /// Its name: that of the status, or `done`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeedsPermission => Status::NeedsPermission.name(),
            Self::NeedsInput => Status::NeedsInput.name(),
            Self::PermissionLost => Status::PermissionLost.name(),
            Self::Stuck => Status::Stuck.name(),
            Self::Crashed => Status::Crashed.name(),
            Self::Failed => Status::Failed.name(),
            Self::Done => "done",
        }
    }

    /// Whether it is settled once the user has looked at the session, even though the status remains.
    pub(super) const fn is_settled_when_seen(self) -> bool {
        matches!(self, Self::PermissionLost | Self::Crashed | Self::Failed)
    }

    /// Whether the session waits for an answer, so that its popup stays until then.
    pub const fn awaits_answer(self) -> bool {
        matches!(self, Self::NeedsPermission | Self::NeedsInput)
    }
}
