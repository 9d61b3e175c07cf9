//! How the engine identifies a session.

use std::sync::Arc;

/// A session: the index of its home, and its id.
pub type Key = (usize, Arc<str>);
