//! Why an order failed, and whether it may have taken effect anyway.

use crate::channel::fault::Fault;
use pilotlight_core::order::Step;
use pilotlight_core::text::{NAME_MAX, plain};
use std::fmt;

/// Why an order failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step that failed.
    pub step: Step,
    /// The reason.
    pub why: String,
    /// What the user can do instead.
    pub next: Option<String>,
    /// What had been done by then.
    pub kind: FailureKind,
    /// The fault of each server that was tried.
    pub faults: Vec<Fault>,
}

/// What had been done when an order failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Nothing: it was refused, because it would not be what was asked for.
    Refused,
    /// Nothing that takes effect: a step failed.
    Failed,
    /// Something was sent that may have taken effect.
    Unconfirmed,
}

impl Failure {
    pub(crate) fn of(step: Step, fault: Fault) -> Self {
        Self { step, why: fault.to_string(), next: None, kind: FailureKind::Failed, faults: vec![fault] }
    }

    pub(crate) fn because(step: Step, why: &str, next: &str) -> Self {
        let next = Some(next.to_owned());
        Self { step, why: why.to_owned(), next, kind: FailureKind::Failed, faults: Vec::new() }
    }

    pub(crate) fn refusal(step: Step, why: &str) -> Self {
        Self { step, why: why.to_owned(), next: None, kind: FailureKind::Refused, faults: Vec::new() }
    }

    /// No server can have the session.
    pub fn no_server() -> Self {
        Self::refusal(Step::Attach, "no known server could have this session")
    }

    /// Nobody hears the question that is to be answered.
    pub(crate) fn not_attached() -> Self {
        let why = "Pilotlight is not attached to it any more: reconnect first, or answer it where it asks";
        Self::refusal(Step::TakeOver, why)
    }

    /// The request that an order is about is not open.
    pub(crate) fn no_longer_open() -> Self {
        let why = "the request is no longer open: somebody else answered it, or its turn has ended";
        Self::refusal(Step::TakeOver, why)
    }

    /// The same, if the session's service knows of another request: a log may not show that the first of several was
    /// answered.
    pub(crate) fn open_instead(other: &str) -> Self {
        let other = plain(other, NAME_MAX);
        let why = format!("the request is no longer open, but another is: answer that one with `--request {other}`");
        Self::refusal(Step::TakeOver, &why)
    }

    /// Marks it as sent but not confirmed.
    pub(crate) fn unconfirmed(self) -> Self {
        let next = self.next.or_else(|| Some("look at the session where it runs".to_owned()));
        Self { kind: FailureKind::Unconfirmed, next, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FailureKind::Unconfirmed => f.write_str("may have happened: ")?,
            FailureKind::Failed => write!(f, "the step \"{}\" failed: ", self.step.tag())?,
            FailureKind::Refused => {}
        }
        f.write_str(&self.why)?;
        match &self.next {
            Some(next) => write!(f, "; {next}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}
