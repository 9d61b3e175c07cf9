//! What `explain` prints: lines of a name and a value, in two columns.

use crate::cli::report::LINE_MAX;
use crate::core::text::plain;

/// The width of the names, in columns.
pub(in crate::cli) const NAME_WIDTH: usize = 16;

#[derive(Default)]
pub(super) struct Page(pub(super) String);

impl Page {
    pub(super) fn line(&mut self, name: &str, value: impl AsRef<str>) {
        self.0 += &format!("{name:<NAME_WIDTH$}{}\n", plain(value.as_ref(), LINE_MAX));
    }
}
