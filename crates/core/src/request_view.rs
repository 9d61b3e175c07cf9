//! A permission request as scripts are shown it.

use super::confusable::doubt;
use super::turn::Request;
use serde::Serialize;

/// A permission request, in JSON. Its texts are unaltered: JSON escapes what a terminal must not print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestView {
    /// The id to answer it by.
    pub id: Box<str>,
    /// The kind of permission: `shell`, `read`, `write`...
    pub kind: Box<str>,
    /// All that it asks for, if one text says that: a command, a path with what needs it, an address.
    pub text: Option<Box<str>>,
    /// The paths that it asks to reach, to read or to write.
    pub paths: Vec<Box<str>>,
    /// Whether `text` says all, and cannot be mistaken for another text.
    pub reads_plain: bool,
}

impl RequestView {
    /// The view of a request.
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            id: request.request.clone(),
            kind: request.kind.clone(),
            text: request.asks.clone(),
            paths: request.paths.clone(),
            reads_plain: request.asks.as_deref().is_some_and(|asks| doubt(asks).is_none()),
        }
    }
}
