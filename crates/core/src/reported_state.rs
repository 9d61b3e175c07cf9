//! What an authority beside a session's log states: a file, a process or a hook of its agent that says what it does now.
//!
//! Where there is one, it is right where the log is late or silent. `verdict/reported_state` brings the two together.

use super::time::Moment;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What an authority states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedState {
    /// What the session does.
    pub state: State,
    /// Since when.
    pub since: Moment,
    /// Who states it, in words for the user: "its pid file".
    pub by: Cow<'static, str>,
    /// What it waits with, where the log of the session itself does not tell: a sub-agent's tool.
    pub asks: Option<Asks>,
}

/// What a session does, as an authority states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It works.
    Busy,
    /// It is its user's turn.
    Idle {
        /// A shell runs in the background.
        shell: bool,
    },
    /// It waits for its user.
    Waiting(Wait),
    /// Its process has ended, and was not killed.
    Ended,
}

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// A permission.
    Permission,
    /// The answer to a question.
    Input,
    /// A dialog in its terminal, which its user may have opened.
    Dialog,
}

/// What a session waits with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asks {
    /// The tool's name.
    pub tool: Box<str>,
    /// What the tool works on: a command, a path.
    pub text: Option<Box<str>>,
}
