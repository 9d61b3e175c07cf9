//! Copilot servers: where they are, how they are talked to, and how a session is put right through them.
//!
//! - [`servers`] finds the endpoints of a process that owns sessions, and whose token may be sent to which of them.
//! - [`client`] is one connection: deadlines, and every failure in a person's words ([`fault`]).
//! - [`recover`] is what is done over it without attaching: answering requests ([`request`]), stopping a turn; and sending a
//!   prompt again.
//! - [`attached`] is one more client of a session, for as long as it is kept; [`hosted`] the same in a server of our own, for
//!   which [`program`](super::program) finds Copilot.
//! - [`look`] asks what sessions do, without attaching; `asking` is what a session that we are attached to asks its user,
//!   [`replying`] answers that.
//! - [`warned`] sees to it that a server that fails is named once, not once for each of its sessions.
//!
//! Nothing here decides *whether* something may be done: that is [`core::action`](crate::core::action), asked by the
//! [`engine`](crate::engine) right before. No connection is opened but for an action or a setting of the user's, and for one look
//! at a session before it is called stuck.

pub(crate) mod asking;
pub mod attached;
pub mod client;
mod envelope;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod fake;
pub mod fault;
mod frame;
pub mod hosted;
pub mod look;
mod peers;
pub mod recover;
pub mod replying;
pub mod request;
pub mod servers;
mod sieve;
pub mod warned;
