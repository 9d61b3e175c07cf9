//! Other machines: one child process a host, `ssh` or a command of the user's, that runs `pilotlight serve --stdio` there.
//!
//! [`command`] is what is run, [`link`] keeps the child and speaks with it, [`incoming`] reads what it says, [`why`] words
//! what keeps it from working. Whoever uses a [`Link`] gets [`HostEvent`] from it, and gives it [`ToLink`]s. [`there`] is what
//! `host add` finds on a machine and copies there, [`copied`] remembers that, [`suggest`] looks for machines to add.
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
