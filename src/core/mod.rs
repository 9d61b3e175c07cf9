//! The judgement: pure functions of what was observed. No I/O, no clock, no threads, no async, so that every
//! rule can be tested by writing down its inputs.
//!
//! May import: nothing.

pub mod action;
pub mod alert;
pub mod asked;
pub mod attempts;
pub mod event;
pub mod fleet;
pub mod form;
pub mod gist;
pub mod limits;
pub mod misread;
pub mod order;
pub mod owner;
pub mod packed;
mod question;
pub mod redact;
pub mod replay;
pub mod scan;
pub mod session;
pub mod text;
pub mod time;
pub mod turn;
pub mod verdict;
