//! What `explain` prints: lines of a name and a value, in two columns.

use crate::cli::report::LINE_MAX;
use pilotlight_core::action::Action;
use pilotlight_core::text::plain;
use std::fmt;

/// The width of the names, in columns.
pub(in crate::cli) const NAME_WIDTH: usize = 16;

#[derive(Default)]
pub(in crate::cli) struct Page(pub(in crate::cli) Vec<Line>);

/// A line of a page.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Line {
    pub(in crate::cli) name: &'static str,
    pub(in crate::cli) value: Box<str>,
    /// What it tells, if it may be left out where a page does not fit.
    pub(in crate::cli) lesser: Option<Lesser>,
}

/// What is left out where a page does not fit, the first of these first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum Lesser {
    Log,
    Context,
    Branch,
    Model,
    ForceQuit,
    LetAnswer,
    Detach,
    Changes,
    Limits,
}

impl Lesser {
    /// An action that is less important.
    pub(super) const fn of(action: Action) -> Option<Self> {
        match action {
            Action::ForceQuit => Some(Self::ForceQuit),
            Action::LetAnswer => Some(Self::LetAnswer),
            Action::Detach => Some(Self::Detach),
            _ => None,
        }
    }
}

impl Page {
    pub(super) fn line(&mut self, name: &'static str, value: impl AsRef<str>) {
        self.line_of(None, name, value);
    }

    /// Says something else on the line of this name, if there is one.
    pub(super) fn reword(&mut self, name: &str, value: &str) {
        if let Some(line) = self.0.iter_mut().find(|line| line.name == name) {
            line.value = plain(value, LINE_MAX);
        }
    }

    pub(super) fn lesser(&mut self, lesser: Lesser, name: &'static str, value: impl AsRef<str>) {
        self.line_of(Some(lesser), name, value);
    }

    pub(super) fn line_of(&mut self, lesser: Option<Lesser>, name: &'static str, value: impl AsRef<str>) {
        self.0.push(Line { name, value: plain(value.as_ref(), LINE_MAX), lesser });
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Line { name, value, .. }| writeln!(f, "{name:<NAME_WIDTH$}{value}"))
    }
}
