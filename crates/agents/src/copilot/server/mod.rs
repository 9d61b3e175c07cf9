//! Copilot servers: where they listen, how Pilotlight talks to them, and how it recovers a session through them.
//!
//! - [`servers`] finds the endpoints of a process that owns sessions, and the token for each.
//! - [`client`] is one connection: deadlines, and every failure in a person's words.
//! - [`recover`] acts without attaching: it answers permission requests and stops a turn. It also sends a
//!   prompt again.
//! - [`attached`] is one more client of a session, for as long as it is kept. [`hosted`] is the same in a server of our
//!   own, which [`program`](super::program) finds.
//! - [`activity`] asks what sessions do, without attaching. `questions` are what an attached session asks its user, and
//!   [`reply`] answers them.
//!
//! Nothing here decides *whether* to act: that is [`core::action`](pilotlight_core::action), which the
//! engine asks right before. A connection is opened only for an action or a setting of the user's,
//! and to ask once about a session before it is called stuck.

pub mod activity;
pub mod attached;
pub mod client;
pub(crate) mod connection;
mod envelope;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod fake;
mod frame;
mod frame_filter;
pub mod hosted;
pub(crate) mod listening;
mod peers;
pub(crate) mod questions;
pub mod recover;
pub mod reply;
pub mod servers;
mod shorten;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
