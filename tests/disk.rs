//! The real program on made-up sessions: dead locks, broken files, vanished folders, and the exit codes and forms that
//! scripts rely on.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

mod made_up;

mod disk {
    mod commands;
    mod files;
    mod former;
    mod homes;
    mod owners;
    mod shown;
}
