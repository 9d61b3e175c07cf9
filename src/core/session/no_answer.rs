//! A file system that does not answer.

use crate::core::time::Moment;
use std::fmt;

/// A file system that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAnswer {
    /// What it is, in a word for the user.
    pub file_system: &'static str,
    /// When it was first asked in vain.
    pub since: Moment,
    /// It could not even be asked: all of them are asked in turn, and one before it does not answer.
    pub is_behind: bool,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_behind { "is not read while another one does not answer" } else { "does not answer" };
        write!(f, "its file system ({}) {what}", self.file_system)
    }
}
