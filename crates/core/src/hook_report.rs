//! What a session's own hook says of it, where nothing else is known: no log, no lock, no server.
//!
//! A hook reports changes, and may miss some: a stopped or killed agent often runs none. So its last report counts as current
//! only for a time ([`WORD`]), and no rule draws conclusions from it.

use super::time::{Moment, Span, Time};
use serde::{Deserialize, Serialize};

/// For how long a hook's word that its session works, or waits for its user, is taken for what is. A tool may take as
/// long as this; whoever says nothing for longer may have lost the word that it is over.
pub(crate) const WORD: Span = Span::minutes(20);

/// What a session does, by its hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookActivity {
    /// It works.
    Working,
    /// It waits for its user.
    Blocked,
    /// Nothing is going on.
    Idle,
}

/// What a session's own hook says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReport {
    /// What it does.
    pub said: HookActivity,
    /// Why, in the hook's words.
    pub reason: Option<Box<str>>,
    /// Since when it does that, by the wall clock.
    pub since: Time,
    /// When the hook last said so.
    pub at: Moment,
    /// It was at work before, so that being idle is news.
    pub has_worked: bool,
}
