//! Acts on a session over its server: answers requests, stops a turn, sends a prompt again.
//!
//! Answering and stopping do not attach: see [`client`](super::client). Each function reports its steps, in words that
//! contain nothing of the session's content. It returns what was achieved, or the step that failed.

pub(super) mod answer;
pub(crate) mod drawn;
pub(super) mod find;
mod resend;
pub(super) mod stop;
#[cfg(test)]
mod tests;

pub use answer::{answer, requests};
pub use answer::{begin_answer, choose, shown};
pub(crate) use resend::LOG_GROWTH_TIMEOUT;
pub use resend::resend;
pub(crate) use stop::receives;
pub use stop::stop;
