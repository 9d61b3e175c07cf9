//! What is asked of a channel.

use super::site::{Show, Site, Steps};
use crate::core::form::Form;
use crate::core::order::{Reply, Which};

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
    pub(in crate::agent) fn text(&self) -> &str {
        match self {
            Self::Repeat(text) | Self::Continue(text) => text,
        }
    }
}

/// Shows a whole question.
pub(crate) type ShowQuestion<'a> = &'a (dyn Fn(Form) + Send + Sync);

/// An order to answer or show an open question.
#[derive(Clone, Copy)]
pub(crate) struct QuestionAnswer<'a> {
    /// The session.
    pub(crate) site: &'a Site,
    /// The answer.
    pub(crate) reply: &'a Reply,
    /// Shows the question.
    pub(crate) show: ShowQuestion<'a>,
    /// Receives each step.
    pub(crate) steps: Steps<'a>,
}

/// An order to answer open permission requests. Each is shown whole before it is answered.
#[derive(Clone, Copy)]
pub struct RequestAnswer<'a> {
    /// The session.
    pub site: &'a Site,
    /// The requests.
    pub which: &'a Which,
    /// Whether to allow them once, or to refuse them.
    pub approve: bool,
    /// Shows each request.
    pub show: Show<'a>,
    /// Receives each step.
    pub steps: Steps<'a>,
}
