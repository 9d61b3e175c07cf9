//! GitHub Copilot: its sessions on disk, the processes named by their locks, its servers, and the bridge into its
//! terminals.
//!
//! - [`Copilot`] is the adapter, with what is the same about all homes ([`PROFILE`]), and how a session is resumed.
//! - [`store`], [`workspace`], [`opened`], [`prompt`] and [`user_settings`] read a home, in its [`log_format`].
//! - [`identity`] decides which processes are Copilot, [`owner`] which one owns a session; [`target`] signals an owner,
//!   and [`running`] finds every Copilot on the machine.
//! - [`program`] finds the Copilot CLI, [`server`] talks to its servers, [`bridge`] reaches sessions in plain terminals.
//!
//! Copilot's files are only read: nothing is written into its folders, and nothing is locked. What is observed goes into a
//! [`Session`](pilotlight_core::fleet::Session); the verdict is left to the core.

mod adapter;
pub mod bridge;
pub mod identity;
pub mod log_format;
pub mod opened;
pub mod owner;
pub mod program;
pub mod prompt;
pub mod running;
pub mod server;
pub mod store;
pub mod target;
pub mod user_settings;
pub mod workspace;

pub use adapter::{Copilot, PROFILE};

use super::home::{Home, homes_of};
use std::path::PathBuf;

/// Its homes.
pub fn homes<'a>(sources: impl IntoIterator<Item = &'a Home>) -> Vec<PathBuf> {
    homes_of(&Copilot, sources)
}
