//! What the user sets of notifications.

use super::Cause;
use crate::core::time::Span;

/// Which causes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// [`Cause::NeedsPermission`]; default on.
    pub needs_permission: bool,
    /// [`Cause::NeedsInput`]; default on.
    pub needs_input: bool,
    /// [`Cause::PermissionLost`]; default on.
    pub permission_lost: bool,
    /// [`Cause::Stuck`]; default on.
    pub stuck: bool,
    /// [`Cause::Crashed`]; default on.
    pub crashed: bool,
    /// [`Cause::Failed`]; default on.
    pub failed: bool,
    /// [`Cause::Done`]; default off.
    pub done: bool,
}

impl Default for Kinds {
    fn default() -> Self {
        Self {
            needs_permission: true,
            needs_input: true,
            permission_lost: true,
            stuck: true,
            crashed: true,
            failed: true,
            done: false,
        }
    }
}

impl Kinds {
    /// Whether a cause is told.
    pub(crate) const fn has(&self, cause: Cause) -> bool {
        match cause {
            Cause::NeedsPermission => self.needs_permission,
            Cause::NeedsInput => self.needs_input,
            Cause::PermissionLost => self.permission_lost,
            Cause::Stuck => self.stuck,
            Cause::Crashed => self.crashed,
            Cause::Failed => self.failed,
            Cause::Done => self.done,
        }
    }
}

/// How much of a session a popup shows to whoever can see the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Its name, what it does, why, and what it asks.
    #[default]
    Full,
    /// Its name and what it does.
    Title,
    /// That there is one.
    None,
}

/// What the user sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which causes are told.
    pub kinds: Kinds,
    /// Popups may make a sound. Default on.
    pub sound: bool,
    /// A turn is long if it took at least this. Default 1 min.
    pub done_min: Span,
    /// The same cause of the same session is not told twice within this. Default 5 min.
    pub cooldown: Span,
    /// What still holds this long after it was told, and was not put away, is told once more. Default 10 min.
    pub escalate_after: Option<Span>,
    /// Nothing is told from the first of these minutes of the local day until the second, which may be past midnight.
    pub quiet_hours: Option<(u16, u16)>,
    /// How long what is to be told waits for what comes together with it. Default 1 s.
    pub gather: Span,
    /// Show no popup for a permission that is given within this. Default 2 s.
    pub permission_delay: Span,
    /// Nothing is told for this long after our start. Default 30 s.
    pub start_grace: Span,
    /// No popups for this long after the machine wakes up. Default 60 s.
    pub wake_grace: Span,
    /// How much a popup shows.
    pub detail: Detail,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kinds: Kinds::default(),
            sound: true,
            done_min: Span::minutes(1),
            cooldown: Span::minutes(5),
            escalate_after: Some(Span::minutes(10)),
            quiet_hours: None,
            gather: Span::seconds(1),
            permission_delay: Span::seconds(2),
            start_grace: Span::seconds(30),
            wake_grace: Span::seconds(60),
            detail: Detail::Full,
        }
    }
}
