//! What the service that runs sessions says of them, unasked.

/// What a service says of one of its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSays {
    /// The session.
    pub id: Box<str>,
    /// It works.
    pub active: bool,
    /// Number of requests that it is known to have open, at least.
    pub requests: usize,
}
