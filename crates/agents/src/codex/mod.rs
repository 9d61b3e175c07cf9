//! All that knows Codex.
//!
//! A session is a thread: a log `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, and while a process has it
//! loaded, a lock `thread-writer-locks/<id>.lock`. Observed with Codex 0.169.0 and 0.171.0. Terminals are clients of one daemon,
//! which runs the threads of all of them, unless they were started with `--no-daemon`; `codex exec` runs its own.
//!
//! - [`Codex`]: the adapter, with what is the same about all its homes, and how a thread is resumed. `store`: where they
//!   keep threads. `head`: the beginning of a log.
//! - `log_format`: a line of the log -> a neutral event; pure.
//! - `lock`: who holds a thread's lock. `daemon`: the daemon, told apart from whatever has its pid by now.
//! - `thread`: reads one thread, with its sub-agents (`sub_agents`), which have threads of their own, and with what it
//!   probably asks in its terminal (`asking`). `target`: an owner that is signalled, verified right before.
//! - `socket`: the daemon's socket, and `client` a connection over it; `carry` is what is done over one, with a `request`;
//!   `watch` only listens.

mod adapter;
mod asking;
#[cfg(unix)]
mod carry;
#[cfg(unix)]
mod client;
pub(super) mod daemon;
pub(super) mod daemon_socket;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod fake;
mod head;
mod lock;
pub mod log_format;
#[cfg(unix)]
mod request;
pub(super) mod running;
pub(super) mod store;
mod sub_agents;
pub(super) mod target;
pub mod thread;
#[cfg(unix)]
mod watch;

pub use adapter::Codex;
#[cfg(test)]
pub(super) use adapter::PROFILE;
