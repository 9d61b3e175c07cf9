//! A file system that does not answer.

use crate::time::Moment;

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
