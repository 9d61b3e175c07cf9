//! The words for tool calls: a session may have many open, and several of one tool.

use crate::text::{counted, listed};
use std::fmt;

/// The most tools that are named.
const KINDS_MAX: usize = 3;

/// Tool calls, as they are said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls(Vec<(Box<str>, usize)>);

impl Calls {
    /// The calls of tools with these names.
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut kinds = Vec::<(Box<str>, usize)>::new();
        for name in names {
            if let Some((_, calls)) = kinds.iter_mut().find(|(kind, _)| **kind == *name) {
                *calls += 1;
            } else if kinds.len() < KINDS_MAX {
                kinds.push((name.into(), 1));
            }
        }
        Self(kinds)
    }

    /// Whether there is none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// `Bash`, `2 Bash calls`, `2 Bash calls and Edit`.
impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |(name, calls): &(Box<str>, usize)| match calls {
            1 => name.to_string(),
            calls => counted(*calls, &format!("{name} call")),
        };
        f.write_str(&listed(&self.0.iter().map(words).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 356.
    #[test]
    fn case_356_several_calls_of_one_tool_are_counted() {
        for (names, words) in [
            (&["Bash"][..], "Bash"),
            (&["Bash", "Bash"], "2 Bash calls"),
            (&["Bash", "Edit", "Bash"], "2 Bash calls and Edit"),
            (&["a", "b", "c", "d", "a"], "2 a calls, b and c"),
        ] {
            let calls = Calls::of(names.iter().copied());
            assert_eq!(calls.to_string(), words);
        }
        assert!(Calls::of([]).is_empty());
    }
}
