//! Why an order failed, and whether it may have taken effect anyway: the one error of an order, wherever it comes from.

use crate::channel::fault::Fault;
use pilotlight_core::order::{Outcome, Step};
use pilotlight_core::text::{NAME_MAX, plain};
use std::fmt;

/// Why an order failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step that failed, if it is one of those that are reported.
    pub step: Option<Step>,
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
    /// It failed, but not at a step that is reported, or after others had taken effect.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { step: None, why: why.into(), next: None, kind: FailureKind::Failed, faults: Vec::new() }
    }

    /// It was refused before any step.
    pub fn refused(why: impl Into<String>) -> Self {
        Self { kind: FailureKind::Refused, ..Self::failed(why) }
    }

    pub(crate) fn of(step: Step, fault: Fault) -> Self {
        Self { step: Some(step), why: fault.to_string(), next: None, kind: FailureKind::Failed, faults: vec![fault] }
    }

    pub(crate) fn because(step: Step, why: &str, next: &str) -> Self {
        Self { step: Some(step), next: Some(next.to_owned()), ..Self::failed(why) }
    }

    pub(crate) fn refusal(step: Step, why: &str) -> Self {
        Self { step: Some(step), ..Self::refused(why) }
    }

    /// No server can have the session.
    pub fn no_server() -> Self {
        Self::refusal(Step::Attach, "no known server could have this session")
    }

    /// Nobody hears the question that is to be answered.
    pub(crate) fn not_attached() -> Self {
        let why = "Pilotlight is not attached to it any more: reconnect first, or answer it where it asks";
        Self::refusal(Step::Answer, why)
    }

    /// The request that an order is about is not open.
    pub(crate) fn no_longer_open() -> Self {
        let why = "the request is no longer open: somebody else answered it, or its turn has ended";
        Self::refusal(Step::Answer, why)
    }

    /// The same, if the session's service knows of another request: a log may not show that the first of several was
    /// answered.
    pub(crate) fn open_instead(other: &str) -> Self {
        let other = plain(other, NAME_MAX);
        let why = format!("the request is no longer open, but another is: answer that one with `--request {other}`");
        Self::refusal(Step::Answer, &why)
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
            FailureKind::Failed => {
                if let Some(step) = self.step {
                    write!(f, "{} failed: ", step.doing())?;
                }
            }
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

/// What the user is told of it. A step that fails because its server refuses us did nothing.
impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Self {
        let words = failure.to_string();
        match failure.kind {
            FailureKind::Unconfirmed => Self::Unconfirmed(words),
            FailureKind::Refused => Self::Refused(words),
            FailureKind::Failed if failure.step.is_some() && failure.faults.iter().any(Fault::refuses_us) => {
                Self::Refused(words)
            }
            FailureKind::Failed => Self::Failed(words),
        }
    }
}
