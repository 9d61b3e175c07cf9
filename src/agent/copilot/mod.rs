//! GitHub Copilot: its sessions as they stand on disk, the processes that their locks name, its servers, and the bridge into
//! its terminals.
//!
//! - [`store`], [`tail`], [`workspace`], [`opened`], [`prompt`] and [`user_settings`] read what is in its home; [`watcher`] tells
//!   when to.
//! - [`process`] says who the process of a lock is, and whether it holds the session.
//! - [`program`] finds Copilot itself, [`server`] talks to its servers, [`bridge`] reaches sessions in plain terminals.
//!
//! Of the files: reading only. Nothing is written into Copilot's folders, nothing is locked, no process is signalled. Whatever a look
//! finds ends up in a [`Session`](crate::core::fleet::Session) of the core; nothing here judges.

pub mod bridge;
pub mod opened;
pub mod process;
pub mod program;
pub mod prompt;
pub mod server;
pub mod store;
pub mod tail;
pub mod user_settings;
pub mod watcher;
pub mod workspace;
