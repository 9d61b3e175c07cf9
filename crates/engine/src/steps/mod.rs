//! What concerns the disk, the connections and the loop alike: the rest of `impl Engine`, one kind of work per file. The
//! loop calls these methods, so the engine imports nothing from here.

mod hosts;
mod orders;
mod settings;
mod shutdown;
mod task_messages;
mod timers;
mod wakeups;
