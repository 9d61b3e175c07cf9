//! What a rule of the verdict finds: a status with its reason.

use super::status::Status;
use super::words::asks_words;
use crate::core::gist::Gist;
use crate::core::question::Question;
use crate::core::time::Time;

/// A status with its reason, before the rest of the verdict is known.
pub(super) struct Found {
    pub(super) status: Status,
    pub(super) since: Time,
    pub(super) because: String,
    pub(super) gist: Gist,
    pub(super) by_message: bool,
    pub(super) question: Option<Question>,
    pub(super) ended_denied: bool,
}

pub(super) fn found(status: Status, since: Time, because: impl Into<String>) -> Found {
    let because = because.into();
    let gist = match status {
        Status::PermissionLost => Gist::of("permissions lost"),
        Status::Crashed => Gist::rested("died", since),
        _ => Gist::of(&because),
    };
    Found { status, since, because, gist, by_message: false, question: None, ended_denied: false }
}

/// `idle` or `ended`, with the reason and what is added to it where there is room.
pub(super) fn rests(status: Status, since: Time, why: &str, more: &str) -> Found {
    Found { gist: Gist::rested(why, since), ..found(status, since, format!("{why}{more}")) }
}

/// `needs-input`, in the question's own words.
pub(super) fn question_found(question: &Question, since: Time, open: usize) -> Found {
    let asks = found(Status::NeedsInput, since, asks_words(question, open));
    Found { question: Some(question.clone()), gist: Gist::of(&format!("“{}”", question.text)), ..asks }
}
