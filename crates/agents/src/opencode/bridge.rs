//! The bridge into opencode: a plugin that reports what its sessions do, and that starts our program as its hook when
//! opencode asks its user something.
//!
//! The hook and the dialog in the terminal are a race: whichever answers first decides. The plugin passes an answer on over
//! the client that opencode gives it, and tells the hook what came of it. When it was answered in the terminal, the plugin
//! lets the hook go. A hook that ends without a word changes nothing. So everything that is in doubt ends the hook.
//!
//! - `plugin.js` is the plugin. [`files`] puts it into opencode's config folder, and takes it out.
//! - `hook` is the process that the plugin starts; what is the same of every agent's is in [`hooks`](crate::hooks).
//! - `asked` is what it was asked, as a request or a question.
//! - [`Bridges`] keeps the hooks that ask now. `carry` answers them.

#[cfg(unix)]
mod asked;
#[cfg(unix)]
mod bridges;
#[cfg(unix)]
mod carry;
pub mod files;
#[cfg(unix)]
pub mod hook;

#[cfg(unix)]
pub use bridges::Bridges;

/// The version of what the plugin hands to its hook.
const VERSION: u32 = 1;
/// The file name of the socket that hooks connect to.
#[cfg(unix)]
pub const SOCKET: &str = "opencode.sock";
