//! The real program on made-up sessions: dead locks, broken files, vanished folders, and the exit codes and forms that
//! scripts rely on.

mod commands;
mod files;
mod former;
mod homes;
mod owners;
mod shown;
