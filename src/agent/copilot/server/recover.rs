//! Acts on a session over its server: answers requests, stops a turn, sends a prompt again.
//!
//! Answering and stopping do not attach: see [`client`](super::client). Each function reports its steps, in words that
//! contain nothing of the session's content. It returns what was achieved, or the step that failed.

pub(super) mod answer;
pub(crate) mod drawn;
pub(super) mod failure;
mod resend;
pub(super) mod site;
pub(super) mod stop;
#[cfg(test)]
mod tests;

pub(crate) use answer::choose;
pub use answer::{RequestAnswer, answer, requests};
pub use failure::{Failure, FailureKind};
pub(crate) use resend::LOG_GROWTH_TIMEOUT;
pub use resend::{Prompt, resend};
pub(crate) use site::{EFFECT_TIMEOUT, PIECE_WITHIN, PIECE_WITHIN_UNSEEN, RECEIVES};
pub use site::{LogView, Permit, PermitQuestion, Site, Steps};
pub(crate) use stop::receives;
pub use stop::stop;
