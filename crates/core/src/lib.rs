//! The decision logic: pure functions of what was observed. No I/O, no clock, no threads, no async, so every rule
//! can be tested by writing down its inputs.
//!
//! May import: nothing.

pub mod action;
pub mod agent;
pub mod alert;
pub mod attempts;
pub mod closing_question;
pub mod confusable;
pub mod event;
pub mod facts;
pub mod far;
pub mod fleet;
pub mod form;
pub mod gist;
pub mod hash;
pub mod hooked;
pub mod limits;
pub mod order;
pub mod overlay;
pub mod owner;
pub mod question;
pub mod reception;
pub mod replay;
pub mod request_view;
pub mod scan;
pub mod session;
pub mod stated;
pub mod text;
pub mod time;
pub mod turn;
pub mod verdict;
pub mod words;
