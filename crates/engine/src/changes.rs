//! What one iteration of the loop has changed.

use pilotlight_core::session::Key;

/// What changed in one iteration of the loop.
#[derive(Default)]
pub(crate) struct Changes {
    /// Sessions whose row may differ.
    pub(crate) updated: Vec<Key>,
    /// Sessions that were judged.
    pub(crate) judged: Vec<Key>,
    /// Sessions that are gone.
    pub(crate) removed: Vec<Key>,
    /// The view must be called even if no row differs.
    pub(crate) redraw: bool,
    /// A session at work went on after it had been silent for so long that its row says so.
    pub(crate) ended_lull: bool,
}
