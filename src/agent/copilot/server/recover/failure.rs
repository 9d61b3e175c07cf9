//! Why an order failed, and whether it may have taken effect anyway.

use crate::agent::copilot::server::fault::Fault;
use crate::core::order::Step;
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
    /// Whether it was refused, with nothing done, because it would not be what was asked for.
    pub refused: bool,
    /// Whether something was sent that may have taken effect.
    pub sent: bool,
    /// The fault of each server that was tried.
    pub faults: Vec<Fault>,
}

impl Failure {
    pub(in crate::agent::copilot::server) fn of(step: Step, fault: Fault) -> Self {
        Self { step, why: fault.to_string(), next: None, refused: false, sent: false, faults: vec![fault] }
    }

    pub(crate) fn because(step: Step, why: &str, next: &str) -> Self {
        Self { step, why: why.to_owned(), next: Some(next.to_owned()), refused: false, sent: false, faults: Vec::new() }
    }

    pub(crate) fn refusal(step: Step, why: &str) -> Self {
        Self { step, why: why.to_owned(), next: None, refused: true, sent: false, faults: Vec::new() }
    }

    /// Marks it as sent but not confirmed.
    pub(crate) fn unconfirmed(self) -> Self {
        let next = self.next.or_else(|| Some("look at the session where it runs".to_owned()));
        Self { sent: true, next, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sent {
            f.write_str("may have happened: ")?;
        } else if !self.refused {
            write!(f, "the step \"{}\" failed: ", self.step.tag())?;
        }
        f.write_str(&self.why)?;
        match &self.next {
            Some(next) => write!(f, "; {next}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}
