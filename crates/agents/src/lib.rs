//! The agents whose sessions are watched, and the seam between them and everything else. Each has a wing with everything
//! specific to it: files, names, processes, protocol and wording.
//!
//! - [`wing`] is the one table that lists them, `profile` what is the same about all homes of one, `starting` how its program is
//!   found and told its home.
//! - [`homes`] finds their homes. [`source`] is an agent and one of its homes: it lists sessions, and makes their readers. [`reader`] reads one session,
//!   [`listing`] is what a list found, [`stamps`] whether another would find the same, `walk` finds sessions that are files in shared folders, [`scanner`] finds those that processes have open ([`openings`]). [`tail`] follows a growing log in any dialect.
//! - `runners` are the live processes of agents, with what each shows of its home and its sessions.
//! - [`channel`] is what an order is carried out over, [`evidence`] what shows whose process may be signalled, [`bridges`]
//!   keeps the bridges to plain terminals.
//! - [`demo`] has the sessions that play in a demo beside those of its stage, which is in a wing.
//! - [`fingerprint`] is what shows that a process is an agent's.
//! - [`callers`] knows which agent started a process, whichever it is, and `containers` which run in a container of this machine.
//!
//! The core judges common facts, and no identifier or import outside of this folder names an agent.
//!
//! May import: core, system.

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
pub mod demo;
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
