//! What `explain` prints: lines of a name and a value, in two columns.

use crate::cli::report::LINE_MAX;
use crate::core::text::plain;

#[derive(Default)]
pub(super) struct Page(pub(super) String);

impl Page {
    pub(super) fn line(&mut self, name: &str, value: impl AsRef<str>) {
        self.0 += &format!("{name:<16}{}\n", plain(value.as_ref(), LINE_MAX));
    }
}
