//! Session folders: lists them, and reads a session's state from its folder.

mod folder;
mod layout;
mod locks;
mod quick_scan;

pub use folder::Folder;
pub(crate) use folder::owner::owner_now;
pub use layout::lock_pid;
pub use layout::{LOG, SESSIONS, SessionIds, WORKSPACE, session_ids};
pub(crate) use locks::lock_pids_in_use;
pub(crate) use quick_scan::Root;
