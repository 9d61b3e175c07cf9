//! The notification settings.

use super::cause::Cause;
use crate::time::Span;

/// Which causes are notified.
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
    /// Whether a cause is notified.
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

/// How much a popup reveals to anybody who can see the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The session's name, what it does, why, and what it asks.
    #[default]
    Full,
    /// The session's name and what it does.
    Title,
    /// Only that a session needs attention.
    None,
}

/// The notification settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which causes are notified.
    pub kinds: Kinds,
    /// Popups may make a sound. Default on.
    pub sound: bool,
    /// A complete turn is notified if it took at least this long. Default 1 min.
    pub done_min: Span,
    /// Minimum interval between two notifications of the same cause of a session. Default 5 min.
    pub cooldown: Span,
    /// How long after its popup an episode is notified again, if it still holds and was not dismissed. Default 10 min.
    pub escalate_after: Option<Span>,
    /// Quiet hours, as minutes of the local day: from the first until the second, which may be past midnight.
    pub quiet_hours: Option<(u16, u16)>,
    /// How long a due episode waits for others to join it. Default 1 s.
    pub gather: Span,
    /// No popup is shown for a permission request that is answered within this span. Default 2 s.
    pub permission_delay: Span,
    /// While its terminal has the focus, a session's popup waits this long. Default 10 s: enough to read and answer what
    /// one is looking at.
    pub focus_delay: Option<Span>,
    /// How long after our start no popups are shown for what began before it. Default 30 s.
    pub start_grace: Span,
    /// How long after the machine wakes up no popups are shown. Default 60 s.
    pub wake_grace: Span,
    /// How much a popup reveals.
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
            focus_delay: Some(Span::seconds(10)),
            start_grace: Span::seconds(30),
            wake_grace: Span::seconds(60),
            detail: Detail::Full,
        }
    }
}
