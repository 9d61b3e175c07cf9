//! The coding agents whose sessions are watched: GitHub Copilot, Claude Code, Codex, and any other by its own hook.
//!
//! An agent is an [`adapter::Adapter`]: where its sessions are, how one is read, who runs it, and how it is resumed. Nothing
//! outside of an agent's folder knows it; all that is known of an agent is in [`adapter::ADAPTERS`]. The five main types:
//!
//! - [`adapter::Adapter`]: an agent. Those that are only shown need four of its methods.
//! - [`source::Source`]: one home of an agent. It lists the sessions in it, and makes their readers.
//! - [`reader::SessionReader`]: reads one session, and writes what it observes into a
//!   [`pilotlight_core::session::Observed`]. The verdict is left to the core.
//! - [`channel::Channel`]: what an order is carried out over: a server, a bridge into a terminal, a daemon.
//! - [`evidence::Evidence`]: what shows whose process may be signalled.
//!
//! Shared by the agents:
//!
//! - [`homes`] finds their homes, [`scanner`] the sessions that processes have open ([`openings`]), `runners` the live
//!   processes of agents with what each shows of its home.
//! - [`tail`] follows a growing log in any [`tail::Dialect`]. [`listing`] is what a list of sessions found, [`stamps`] whether
//!   another would find the same, `walk` finds sessions that are files in shared folders.
//! - [`bridges`] keeps the bridges to plain terminals. [`callers`] knows which agent started a process, by the `fingerprint`
//!   of each, so that no tool of an agent answers for the user.
//!
//! Files of agents are only read: nothing is written into their homes, and none of their locks is taken.
//!
//! Begin with `adapter.rs`, then `codex/`, the smallest whole agent; `sundial.rs` is a made-up one in a file. To add an
//! agent, write its adapter and name it in `ADAPTERS`.

// Dead code is only reported on Linux, where the tests run. The other systems do not use all that is compiled for them.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]
// What tests write is their own.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod adapter;
mod asked;
pub mod bridges;
pub mod callers;
pub mod channel;
pub mod claude_code;
pub mod codex;
#[cfg(target_os = "linux")]
pub mod containers;
pub mod copilot;
pub mod evidence;
mod fingerprint;
pub mod homes;
pub mod listing;
pub mod openings;
mod profile;
mod program_file;
pub mod program_version;
pub mod reader;
pub mod reading;
pub mod reported;
pub mod runners;
pub mod scanner;
pub mod source;
pub mod stamps;
mod starting;
#[cfg(any(test, feature = "testing"))]
pub mod sundial;
pub mod tail;
mod walk;
