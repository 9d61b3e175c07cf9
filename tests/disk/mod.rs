//! The real program on synthetic sessions: dead locks, broken files, vanished folders, and the exit codes and output
//! formats that scripts rely on.

mod agents;
mod commands;
mod discovered;
mod files;
mod former;
mod homes;
mod locks;
mod shown;
mod silences;
mod silent;
mod without_events;
