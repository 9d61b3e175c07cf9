//! What concerns the disk, the connections and the loop alike: the rest of `impl Engine`, one kind of work per file.

mod hosts;
pub(super) mod orders;
mod settings;
mod shutdown;
mod task_messages;
mod timers;
pub(super) mod wakeups;
