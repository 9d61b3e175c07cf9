//! The bridge into Claude Code: a plugin whose one hook Claude Code starts when it asks its user something.
//!
//! For a session in a terminal, the hook and the dialog are a race: the dialog is there and usable as long as the hook
//! waits, and whichever answers first decides. A hook that ends without a word changes nothing. So everything that is in
//! doubt ends the hook.
//!
//! - `hook` is the process that Claude Code starts; what is the same of every agent's is in [`hooks`](crate::hooks).
//! - `asked` is what it was asked, as a request or a question (`forms`), with the rules that may be added (`rules`).
//! - [`Bridges`] keeps the hooks that ask now, and lets them go when their session was answered in its terminal. `carry`
//!   answers them.
//! - [`files`] writes the plugin, in a marketplace of ours. [`plugin`] has Claude Code install and remove it, and reads whether
//!   it is enabled. `settings` reads Claude Code's files for that, `rewriting` says what is lost when Claude Code writes them
//!   anew, `others` which programs answer, too.

#[cfg(unix)]
mod asked;
#[cfg(unix)]
mod bridges;
#[cfg(unix)]
mod carry;
pub mod files;
#[cfg(unix)]
mod forms;
#[cfg(unix)]
pub mod hook;
mod others;
pub mod plugin;
mod rewriting;
#[cfg(unix)]
mod rules;
mod settings;

#[cfg(unix)]
pub use bridges::Bridges;

/// What our program is told by which it is called as its hook.
pub const AGENT: &str = "claude-code";
/// The file name of the socket that hooks connect to.
#[cfg(unix)]
pub const SOCKET: &str = "hooks.sock";

/// The name of the plugin and of its marketplace.
const NAME: &str = "pilotlight";
/// Claude Code's id for the plugin.
const PLUGIN: &str = "pilotlight@pilotlight";
/// The event that the hook is called for.
const EVENT: &str = "PermissionRequest";
/// How long Claude Code lets the hook wait, in seconds: a day.
const TIMEOUT: u64 = 86400;
