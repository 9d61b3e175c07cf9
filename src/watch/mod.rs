//! What is on disk: session folders, their logs, and the processes that their locks name.
//!
//! Reading only. Nothing is written into Copilot's folders, nothing is locked, no process is signalled. Whatever a look
//! finds ends up in a [`Session`](crate::core::fleet::Session) of the core; nothing here judges.

pub mod identity;
pub mod opened;
pub mod process;
pub mod prompt;
pub mod settings;
pub mod store;
pub mod tail;
pub mod watcher;
pub mod workspace;
