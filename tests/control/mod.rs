//! The commands that act, and the socket over which they send orders to the tray: the real program on made-up sessions.
//! `tests/e2e` covers the effect of orders on real sessions.

mod callers;
mod claude_hooks;
mod commands;
mod concurrent;
mod floods;
mod host_add;
mod host_leave;
pub(crate) mod hosts;
mod hosts_away;
mod hosts_bridges;
mod hosts_contained;
mod hosts_network;
mod hosts_ssh;
mod hosts_unreached;
mod keys;
mod no_terminal;
mod questions;
mod resume_waits;
mod runtime_folder;
mod socket;
pub(crate) mod trays;
