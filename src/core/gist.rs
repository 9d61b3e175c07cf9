//! Why a session has its status, in the fewest words: the text after its name in a row of the menu.
//!
//! Ages are stored as points in time and worded on display, so nothing has to wake up to keep them current.

use super::text::{COMMAND_MAX, counted, plain};
use super::time::{Moment, Span, Time};
use super::turn::Turn;
use serde::Serialize;

/// A short reason whose age is worded on display.
#[derive(Clone, Debug, PartialEq)]
pub enum Gist {
    /// Words that do not depend on time.
    Words(Box<str>),
    /// Nothing has been written for a while: `silent 12 min`.
    Silent {
        /// The last progress.
        since: Moment,
        /// What was going on: `bash is open`.
        what: Box<str>,
        /// The open tool's process is busy: slow, but not stuck.
        runs_long: bool,
    },
    /// A turn is open: `12 min, 8 tools`.
    Turn(TurnView),
    /// Something that happened at a time: `done, 5 min ago`.
    Ago(Box<str>, Time),
}

impl Default for Gist {
    fn default() -> Self {
        Self::Words("".into())
    }
}

impl Gist {
    /// Text from a session, made safe to display on one line.
    pub(crate) fn of(words: &str) -> Self {
        Self::Words(plain(words, COMMAND_MAX))
    }

    /// Why it is at rest, and since when. Drops `, your turn`, which goes without saying.
    pub(super) fn rested(because: &str, since: Time) -> Self {
        let words = because.split(';').next().unwrap_or(because).replacen(", your turn", "", 1);
        if words.contains(" ago") { Self::of(&words) } else { Self::Ago(plain(&words, COMMAND_MAX), since) }
    }

    /// Its words as of now.
    pub(crate) fn words(&self, now: Moment) -> String {
        match self {
            Self::Words(words) => words.to_string(),
            Self::Silent { since, runs_long: true, .. } => format!("running long, {}", age(now.since(*since))),
            Self::Silent { since, .. } => format!("silent {}", age(now.since(*since))),
            Self::Turn(turn) => turn.full_words(now.wall),
            Self::Ago(words, at) => match age(now.wall - *at) {
                age if age == NOW => format!("{words}, just now"),
                age => format!("{words}, {age} ago"),
            },
        }
    }

    /// Whether its words depend on time.
    pub(crate) const fn has_age(&self) -> bool {
        !matches!(self, Self::Words(_))
    }

    /// Leaves out reasons that change with mere progress.
    pub(super) fn without_progress(&self) -> Option<&Self> {
        (!matches!(self, Self::Silent { .. } | Self::Turn(_))).then_some(self)
    }
}

/// How [`age`] words less than its first step.
const NOW: &str = "0 s";

/// Words an age in steps: of 5 s below a minute, of a minute from there on.
fn age(age: Span) -> String {
    if age < Span::minutes(1) { Span(age.0.max(0) / 5000 * 5000).to_string() } else { age.in_minutes() }
}

/// An open turn as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TurnView {
    /// When it was opened.
    pub since: Time,
    /// Number of tools used.
    pub tools: u32,
    /// It may be older, because its beginning was not read.
    #[serde(skip)]
    pub older: bool,
}

impl TurnView {
    /// The view of a turn.
    pub(super) const fn of(turn: &Turn) -> Self {
        Self { since: turn.opened.wall, tools: turn.used, older: !turn.start_known }
    }

    /// "12 min, 8 tools".
    fn full_words(self, now: Time) -> String {
        let at_least = if self.older { "at least " } else { "" };
        let tools = match self.tools {
            0 => String::new(),
            n => format!(", {}", counted(n as usize, "tool")),
        };
        match age(now - self.since) {
            age if age == NOW => format!("just begun{tools}"),
            age => format!("{at_least}{age}{tools}"),
        }
    }

    /// "12 min, 8 tools". `None` in its first minute, when a table shows nothing.
    pub fn words(self, now: Time) -> Option<String> {
        (now - self.since >= Span::minutes(1)).then(|| self.full_words(now))
    }

    /// When its words change next even if nothing happens.
    pub(super) fn next_words(self, now: Time) -> Time {
        let minute = Span::minutes(1);
        let minutes = (now - self.since).max(Span::ZERO).0 / minute.0;
        self.since + Span((minutes + 1) * minute.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_worded_in_steps() {
        let begun = Moment::of(Time(1_700_000_000_000));
        let silent = Gist::Silent { since: begun, what: "bash is open".into(), runs_long: false };
        let turn = Gist::Turn(TurnView { since: begun.wall, tools: 8, older: false });
        let done = Gist::rested("done, your turn", begun.wall);
        let at = |gist: &Gist, seconds| gist.words(begun.plus(Span::seconds(seconds)));
        for (seconds, age) in [(7, "5 s"), (49, "45 s"), (60, "1 min"), (749, "12 min"), (4560, "1 h 16 min")] {
            assert_eq!(at(&silent, seconds), format!("silent {age}"));
            assert_eq!(at(&turn, seconds), format!("{age}, 8 tools"));
            assert_eq!(at(&done, seconds), format!("done, {age} ago"));
        }
        assert_eq!((at(&turn, 4), at(&done, 4)), ("just begun, 8 tools".into(), "done, just now".into()));
        // No negative age if the clock was set back.
        assert_eq!(at(&done, -90), "done, just now");
    }
}
