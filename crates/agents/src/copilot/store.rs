//! Session folders: lists them, and reads a session's state from its folder.

mod folder;
mod glimpse;
mod layout;
mod locks;

pub use folder::Folder;
pub(crate) use folder::owner::owner_now;
pub(crate) use glimpse::Root;
pub use layout::lock_pid;
pub use layout::{LOG, SESSIONS, SessionIds, WORKSPACE, session_ids};
pub(crate) use locks::lock_pids_in_use;
