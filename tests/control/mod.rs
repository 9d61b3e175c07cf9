//! The commands that act, and the socket over which they hand it to the tray: the real program on made-up sessions. What an
//! order then does to a real session is for `tests/e2e`.

mod beside;
mod callers;
mod commands;
mod floods;
mod keys;
mod places;
mod questions;
mod resumed;
mod socket;
mod trays;
