//! The statuses, and one table of what is the same about each for every session.

use serde::Serialize;
use std::fmt;

/// The group in which a session is listed. Sessions that need the user come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// It needs the user.
    NeedsYou,
    /// It has been silent for long, but may still be working.
    Quiet,
    /// It works.
    Working,
    /// It failed, crashed or lost its permissions, and the user has seen that.
    Aside,
    /// It is idle.
    Idle,
    /// It is over.
    Ended,
}

/// What goes on in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No process runs it.
    Over,
    /// Its turn has ended.
    Rests,
    /// It waits for the user.
    Waits,
    /// It has been silent for long.
    Silent,
    /// It is at work.
    Works,
}

/// Whether the menu offers a remedy other than an answer, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// It does not.
    None,
    /// It does, for as long as the status lasts.
    Stands,
    /// It does, but once the user has seen it, it is set aside.
    UntilSeen,
}

/// What is the same about a status for every session.
pub struct StatusSpec {
    name: &'static str,
    mark: (&'static str, &'static str),
    /// The group of a session that is not set aside.
    pub group: Group,
    /// How urgent it is in its group; lower is more urgent.
    pub urgency: u8,
    pub phase: Phase,
    pub remedy: Remedy,
    /// What one session does, and what several do.
    pub does: [&'static str; 2],
}

/// Defines [`Status`] with the list and the table of all statuses, so that none can be missing there.
macro_rules! statuses {
    ($($(#[$doc:meta])* $status:ident: $name:literal, $mark:expr, $group:ident, $urgency:literal, $phase:ident, $remedy:ident, $does:expr;)*) => {
        /// What a session does, or what it needs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Status {
            $($(#[$doc])* $status,)*
        }

        impl Status {
            /// Every status, in the order in which they are checked.
            pub const ALL: [Self; [$(Self::$status),*].len()] = [$(Self::$status),*];

            /// Its entry in the table.
            pub const fn spec(self) -> &'static StatusSpec {
                match self {
                    $(Self::$status => &StatusSpec {
                        name: $name,
                        mark: $mark,
                        group: Group::$group,
                        urgency: $urgency,
                        phase: Phase::$phase,
                        remedy: Remedy::$remedy,
                        does: $does,
                    },)*
                }
            }
        }
    };
}

statuses! {
    /// It is over.
    Ended: "ended", ("○", "o"), Ended, 0, Over, None, ["ended", "ended"];
    /// Its owner is gone, with work still open.
    Crashed: "crashed", ("╳", "X"), NeedsYou, 4, Over, UntilSeen, ["crashed", "crashed"];
    /// Its last turn ended in an error.
    Failed: "failed", ("✗", "x"), NeedsYou, 5, Rests, UntilSeen, ["failed", "failed"];
    /// It waits for a permission.
    NeedsPermission: "needs-permission", ("⚑", "!"), NeedsYou, 0, Waits, None, ["asks", "ask"];
    /// Its tools are denied because nobody can be asked.
    PermissionLost: "permission-lost", ("⊘", "0"), NeedsYou, 2, Waits, UntilSeen, ["lost its permissions", "lost their permissions"];
    /// It waits for an answer.
    NeedsInput: "needs-input", ("?", "?"), NeedsYou, 1, Waits, None, ["asks", "ask"];
    /// A turn is open, and the silence has passed its limit.
    Stuck: "stuck", ("◷", "@"), NeedsYou, 3, Silent, Stands, ["stuck", "stuck"];
    /// A turn is open and has been silent for long, but may still be working.
    Quiet: "quiet", ("◌", "."), Quiet, 0, Silent, None, ["quiet", "quiet"];
    /// The turn is about to end.
    Finishing: "finishing", ("▷", ">"), Working, 0, Works, None, ["working", "working"];
    /// A turn is open, or there is work in the background.
    Working: "working", ("▶", ">"), Working, 0, Works, None, ["working", "working"];
    /// Nothing is going on. It is the user's turn.
    Idle: "idle", ("✓", "-"), Idle, 0, Rests, None, ["idle", "idle"];
}

impl Status {
    /// Its name, as used in JSON, in the table and in the menu.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// Its symbol, in Unicode and in ASCII, so that it does not depend on colour.
    pub const fn mark(self) -> (&'static str, &'static str) {
        self.spec().mark
    }

    /// Whether it is listed among those that are over.
    pub const fn has_ended(self) -> bool {
        matches!(self.spec().group, Group::Ended)
    }

    /// Whether no process runs the session.
    pub const fn is_over(self) -> bool {
        matches!(self.spec().phase, Phase::Over)
    }

    /// Whether it says that the session waits for the user.
    pub const fn waits(self) -> bool {
        matches!(self.spec().phase, Phase::Waits)
    }

    /// Whether it has been silent for long.
    pub const fn is_silent(self) -> bool {
        matches!(self.spec().phase, Phase::Silent)
    }

    /// Whether it says that the session is at work.
    pub const fn is_work(self) -> bool {
        matches!(self.spec().phase, Phase::Works)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
