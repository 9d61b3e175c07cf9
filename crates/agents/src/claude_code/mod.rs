//! The Claude Code adapter. It only reads: it writes nothing into the home, and sends no orders to sessions.
//!
//! - [`ClaudeCode`]: the adapter, with what is the same about all its homes, and how a session is resumed. `store` lists
//!   the sessions of a home.
//! - `pid_file`: what each of its processes says of itself, and whether that process lives: who runs a session, and what
//!   it does, by its own word.
//! - [`log_format`]: a line of a session's log -> a neutral event. Pure.
//! - `head`: the beginning of a log. `sub_agents`: the logs of a session's sub-agents.
//!   `jobs`: what its background sessions ask.
//! - `running`: which processes run it, and with which home.
//! - [`session`] reads one session. [`target`]: what shows that a process runs one, and that process, to be signalled.
//!   `strays`: processes that may run one although no file says so.
//!
//! Seen with 2.1.197, 2.1.330 and 2.1.332 on Linux.

mod adapter;
pub mod bridge;
mod cron;
mod head;
mod jobs;
pub mod log_format;
mod pid_file;
pub(super) mod running;
pub(crate) mod session;
pub(crate) mod store;
mod strays;
mod sub_agents;
pub(crate) mod target;

pub use adapter::ClaudeCode;
