//! The judgement: pure functions of what was observed. No I/O, no clock, no threads, no async; it imports nothing of the
//! rest of the house, so that every rule can be tested by writing down its inputs.

pub mod action;
pub mod alert;
pub mod asked;
pub mod attempts;
pub mod discreet;
pub mod event;
pub mod fleet;
pub mod form;
pub mod gist;
pub mod limits;
pub mod misread;
pub mod owner;
pub mod packed;
mod question;
pub mod replay;
pub mod scan;
pub mod session;
pub mod text;
pub mod time;
pub mod turn;
pub mod verdict;
