//! A file system that does not answer.

use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A file system that does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoAnswer {
    /// What it is, in a word for the user.
    pub file_system: Cow<'static, str>,
    /// When it was first asked in vain.
    pub since: Moment,
    /// It could not even be asked: all of them are asked in turn, and one before it does not answer.
    pub is_behind: bool,
}
