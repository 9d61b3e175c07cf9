//! What is asked of a channel.

/// Who answers the permission requests of an attached session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The user, one by one.
    Ask,
    /// Pilotlight allows each, because the user's settings say so, except where the organisation requires a person.
    ApproveAll,
    /// The user. Open requests and a silent turn are left alone.
    Observe,
}

/// What became of a silent turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilentTurn {
    /// It was aborted, or there was none.
    Over,
    /// It waits for its user, or a tool is open, which may work or wait: it was left alone.
    Asks,
    /// It is receiving an answer, and was left alone.
    Receives,
}

/// The prompt that continues a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// The user's own last prompt, once more. Only if no tool has run since, because it might run twice.
    Repeat(String),
    /// A short prompt of ours that asks the agent to continue.
    Continue(String),
}

impl Prompt {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Repeat(text) | Self::Continue(text) => text,
        }
    }
}
