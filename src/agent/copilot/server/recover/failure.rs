//! Why something was not achieved, and whether it may have happened all the same.

use crate::agent::copilot::server::fault::Fault;
use crate::core::order::Step;
use std::fmt;

/// Why something was not achieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step that failed.
    pub step: Step,
    /// Why.
    pub why: String,
    /// What can be done instead.
    pub next: Option<String>,
    /// Nothing was done, because it would not be what was asked for.
    pub refused: bool,
    /// Something was sent, and may have happened.
    pub sent: bool,
    /// What went wrong with which server.
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

    /// What was sent is not confirmed.
    pub(crate) fn unconfirmed(self) -> Self {
        Self { sent: true, ..self }
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
