//! Other machines: one child process a host, `ssh` or a command of the user's, that runs `pilotlight serve --stdio` there.
//!
//! [`command`] builds the command line, [`link`] keeps the child, [`incoming`] reads its output, and [`why`] words its failures.
//! A [`Link`] sends [`HostEvent`]s and takes [`ToLink`]s. [`remote_shell`] inspects a machine and copies the program for
//! `host add`, [`copied`] remembers these copies, and [`suggest`] looks for machines to add.
//!
//! What a host says is hostile: each line is bounded in size, all of them in rate and in the long run ([`rate_limiter`]), and
//! what they say reaches the rest of the program only as the [`lines`](crate::control::pipe::lines) of the pipe, with the
//! name that the settings give the host. A link that is lost is tried again after a while, ever later.

pub mod command;
pub mod copied;
mod incoming;
pub(crate) mod link;
mod orders;
mod rate_limiter;
pub mod remote_shell;
mod stderr;
pub mod suggest;
mod why;

pub use link::{HostEvent, HostEventKind, Link, Purpose, ToLink};
