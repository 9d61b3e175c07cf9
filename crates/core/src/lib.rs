//! The decisions of Pilotlight: what a session of a coding agent does, by what was observed of it, and what may be done
//! about that.
//!
//! Everything here is a pure function of its arguments. There is no I/O, no clock, no thread and no async, so a rule is
//! tested by writing down its inputs, and a recorded log is judged in its own time. Nothing that this crate depends on opens
//! a file for it, and its `clippy.toml` forbids it what the standard library could.
//!
//! Data runs one way, and these types are the stations:
//!
//! 1. [`event::Event`]: a line of a log, whoever wrote it, as a neutral event.
//! 2. [`facts::Facts`]: the events of a session so far, folded into what is still open and when something last happened.
//! 3. [`session::Observed`]: the facts, with who owns the session and what its folder says of it. An adapter of an agent
//!    writes it; [`fleet::Session`] adds our own relation to the session.
//! 4. [`verdict::Verdict`]: the status, its reason, and when it must be judged again without another event.
//! 5. [`fleet::Row`]: what a row of a menu, a table or JSON shows.
//!
//! Beside them: [`action`] decides what may be done with a session and why not, [`order`] is what is asked of one,
//! [`alert`] which popups are shown, and [`words`] holds every sentence about all of that. [`limits::Limits`] are the
//! user's times.
//!
//! Begin with `verdict.rs`, which reads like the list of rules that it is, and with the tests beside it. A new status is a
//! row of the table in `verdict/status.rs`; the compiler names every place that must say what it does with it.

// Dead code is only reported on Linux, where the tests run. The other systems do not use all that is compiled for them.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

pub mod action;
pub mod agent;
pub mod alert;
pub mod attempts;
pub mod closing_question;
pub mod confusable;
pub mod event;
pub mod facts;
pub mod fleet;
pub mod form;
pub mod hash;
pub mod limits;
pub mod order;
pub mod owner;
pub mod question;
pub mod remote;
pub mod replay;
pub mod scan;
pub mod session;
pub mod short_reason;
pub mod stream_probe;
pub mod text;
pub mod time;
pub mod turn;
pub mod verdict;
pub mod words;
