//! What `explain` prints: lines of a name and a value, in two columns.

use crate::cli::report::LINE_MAX;
use crate::core::text::plain;
use std::fmt;

/// The width of the names, in columns.
pub(in crate::cli) const NAME_WIDTH: usize = 16;

#[derive(Default)]
pub(in crate::cli) struct Page(pub(in crate::cli) Vec<(&'static str, Box<str>)>);

impl Page {
    pub(super) fn line(&mut self, name: &'static str, value: impl AsRef<str>) {
        self.0.push((name, plain(value.as_ref(), LINE_MAX)));
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, value)| writeln!(f, "{name:<NAME_WIDTH$}{value}"))
    }
}
