//! Why a session has its status, in the fewest words: the text after its name in a row of the menu.
//!
//! Ages are stored as points in time and worded on display, so nothing has to wake up to keep them current.

use super::text::{COMMAND_MAX, counted, plain};
use super::time::{Moment, Span, Time};
use super::turn::Turn;
use serde::Serialize;
use std::fmt::Display;

/// A short reason whose age is worded on display.
#[derive(Clone, Debug, PartialEq)]
pub enum ShortReason {
    /// Words that do not depend on time.
    Words(Box<str>),
    /// Nothing has been written for a while: `silent 12 min`.
    Silent {
        /// The last progress.
        since: Moment,
        /// What was going on: `running bash`.
        what: Box<str>,
        /// The open tool's process is busy: slow, but not stuck.
        runs_long: bool,
    },
    /// A turn is at work: `12 min, 8 tools, last seen 45 s ago`, with the time at which something last happened.
    Turn(TurnView, Time),
    /// Something else is at work, or was until it died unseen: `1 background agent, last seen 45 s ago`, with the same time.
    Work(Box<str>, Time),
    /// Something that happened at a time: `done, 5 min ago`.
    Ago(Box<str>, Time),
}

impl Default for ShortReason {
    fn default() -> Self {
        Self::Words("".into())
    }
}

impl ShortReason {
    /// Text from a session, made safe to display on one line.
    pub fn of(words: impl Display) -> Self {
        Self::Words(plain(&words.to_string(), COMMAND_MAX))
    }

    /// Why it is at rest, and since when.
    pub(super) fn rested(why: impl Display, since: Time) -> Self {
        Self::Ago(plain(&why.to_string(), COMMAND_MAX), since)
    }

    /// Its words as of now.
    pub(crate) fn words(&self, now: Moment) -> String {
        match self {
            Self::Words(words) => words.to_string(),
            Self::Silent { since, runs_long: true, .. } => format!("running long, {}", age(now.since(*since))),
            Self::Silent { since, .. } => format!("silent {}", age(now.since(*since))),
            Self::Turn(turn, last) => turn.full_words(Some(*last), now.wall),
            Self::Work(what, last) => match last_seen(*last, now.wall) {
                Some(seen) => format!("{what}, {seen}"),
                None => what.to_string(),
            },
            Self::Ago(words, at) => match now.wall - *at {
                age if age < SECONDS => format!("{words}, just now"),
                since => format!("{words}, {} ago", age(since)),
            },
        }
    }

    /// Its words as of now, in at most so many columns if it can do with fewer: of a turn, when it was last seen is
    /// the last to be left out.
    pub fn words_within(&self, columns: usize, now: Moment) -> String {
        let words = self.words(now);
        let Self::Turn(turn, last) = *self else { return words };
        let shorter = || {
            let without_tools = TurnView { tools: 0, ..turn }.full_words(Some(last), now.wall);
            [Some(without_tools), last_seen(last, now.wall)].into_iter().flatten()
        };
        if words.len() <= columns { words } else { shorter().find(|words| words.len() <= columns).unwrap_or(words) }
    }

    /// Whether its words depend on time.
    pub const fn has_age(&self) -> bool {
        !matches!(self, Self::Words(_))
    }

    /// Leaves out reasons that change with mere progress.
    pub(super) fn without_progress(&self) -> Option<&Self> {
        (!matches!(self, Self::Silent { .. } | Self::Turn(..) | Self::Work(..))).then_some(self)
    }

    /// Whether it says when something last happened.
    pub const fn has_last(&self) -> bool {
        matches!(self, Self::Turn(..) | Self::Work(..))
    }

    /// The same, where this is when something last happened.
    #[must_use]
    pub fn with_last(self, last: Time) -> Self {
        match self {
            Self::Turn(turn, _) => Self::Turn(turn, last),
            Self::Work(what, _) => Self::Work(what, last),
            Self::Ago(words, _) => Self::Ago(words, last),
            Self::Words(_) | Self::Silent { .. } => self,
        }
    }
}

/// From when on a row at work says how long ago the session was last seen. The events of a session at work are mostly
/// closer together.
const LULL: Span = Span::seconds(10);

/// Words an age, rounded down to its step.
fn age(age: Span) -> String {
    age_step(age).0.to_string()
}

/// The step that an age is rounded down to, and the next step: an exact age would change all the time. A step is at least
/// three quarters of the next one, so that no age is worded as much less than it is. Ages are rounded here alone.
pub fn age_step(age: Span) -> (Span, Span) {
    /// Up to which age each step is a multiple of what, in seconds.
    const STEPS: [(i64, i64); 9] = [
        (6, 5),
        (15, 2),
        (60, 5),
        (120, 20),
        (240, 30),
        (3600, 60),
        (4 * 3600, 900),
        (24 * 3600, 3600),
        (4 * 24 * 3600, 6 * 3600),
    ];
    const DAY: i64 = 24 * 3600;
    let seconds = age.max(Span::ZERO).0 / 1000;
    let (most, unit) = match STEPS.iter().find(|(most, _)| seconds < *most) {
        Some(step) => *step,
        None if seconds < 100 * DAY => (100 * DAY, DAY),
        None => (i64::MAX, 25 * DAY),
    };
    let whole = seconds / unit * unit;
    (Span::seconds(whole), Span::seconds(whole.saturating_add(unit).min(most)))
}

/// A shorter age is "just now".
const SECONDS: Span = Span::seconds(5);

/// How long ago `last` was, if that is worth saying: `45 s`. It is no silence: an answer may be on its way.
pub(super) fn lull(last: Time, now: Time) -> Option<String> {
    (now - last >= LULL).then(|| age(now - last))
}

/// When [`lull`] changes next even if nothing happens.
pub(super) fn next_lull(last: Time, now: Time) -> Time {
    last + LULL.max(age_step(now - last).1)
}

/// "last seen 45 s ago".
pub(super) fn last_seen(last: Time, now: Time) -> Option<String> {
    lull(last, now).map(|lull| seen(&lull))
}

fn seen(lull: &str) -> String {
    format!("last seen {lull} ago")
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

    /// "12 min, 8 tools, last seen 45 s ago"; "last seen 45 s ago" if that is how old it is. `last`: when something last
    /// happened, if that is to be said.
    fn full_words(self, last: Option<Time>, now: Time) -> String {
        let (lull, since) = (last.and_then(|last| lull(last, now)), now - self.since);
        if let Some(lull) = lull.as_ref().filter(|_| self.tools == 0)
            && last.is_some_and(|last| age_step(now - last) == age_step(since))
        {
            return seen(lull);
        }
        let at_least = if self.older { "at least " } else { "" };
        let tools = match self.tools {
            0 => String::new(),
            n => format!(", {}", counted(n as usize, "tool")),
        };
        let ago = lull.map(|lull| format!(", {}", seen(&lull))).unwrap_or_default();
        if since < SECONDS {
            return format!("just begun{tools}{ago}");
        }
        format!("{at_least}{}{tools}{ago}", age(since))
    }

    /// "turn: 12 min, 8 tools, last seen 45 s ago", for a table: in its first minute only "last seen 45 s ago", so that a
    /// turn full of events is not redrawn every few seconds. `last`: when something last happened, if that is to be said.
    pub fn words(self, last: Option<Time>, now: Time) -> Option<String> {
        if now - self.since >= Span::minutes(1) {
            let words = self.full_words(last, now);
            return Some(if words.starts_with("last") { words } else { format!("turn: {words}") });
        }
        last_seen(last?, now)
    }

    /// When its words change next even if nothing happens.
    pub(super) fn next_words(self, now: Time) -> Time {
        self.since + age_step(now - self.since).1.max(Span::minutes(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_worded_in_steps() {
        let begun = Moment::of(Time(1_700_000_000_000));
        let silent = ShortReason::Silent { since: begun, what: "running bash".into(), runs_long: false };
        let done = ShortReason::rested("done", begun.wall);
        let at = |short_reason: &ShortReason, seconds| short_reason.words(begun.plus(Span::seconds(seconds)));
        let view = TurnView { since: begun.wall, tools: 8, older: false };
        let turn = |seconds| at(&ShortReason::Turn(view, begun.wall + Span::seconds(seconds)), seconds);
        for (seconds, age) in [(7, "6 s"), (49, "45 s"), (60, "1 min"), (749, "12 min"), (4560, "75 min")] {
            assert_eq!(at(&silent, seconds), format!("silent {age}"));
            assert_eq!(turn(seconds), format!("{age}, 8 tools"));
            assert_eq!(at(&done, seconds), format!("done, {age} ago"));
        }
        assert_eq!((turn(4), at(&done, 4)), ("just begun, 8 tools".into(), "done, just now".into()));
        assert_eq!((turn(5), at(&done, 5)), ("5 s, 8 tools".into(), "done, 5 s ago".into()));
        // No negative age if the clock was set back.
        assert_eq!((at(&done, -90), at(&silent, -90)), ("done, just now".into(), "silent 0 s".into()));
    }

    #[test]
    fn case_162_a_session_at_work_says_when_it_was_last_seen() {
        let now = Moment::of(Time(1_700_000_000_000));
        let before = |seconds| now.wall - Span::seconds(seconds);
        let turn = |since, tools, last| {
            let view = TurnView { since: before(since), tools, older: false };
            ShortReason::Turn(view, before(last)).words(now)
        };
        for (last, words) in [
            (9, "2 min, 8 tools"),
            (10, "2 min, 8 tools, last seen 10 s ago"),
            (51, "2 min, 8 tools, last seen 50 s ago"),
            (60, "2 min, 8 tools, last seen 1 min ago"),
        ] {
            assert_eq!(turn(120, 8, last), words);
        }
        assert_eq!(
            (turn(40, 1, 30), turn(150, 0, 51)),
            ("40 s, 1 tool, last seen 30 s ago".into(), "150 s, last seen 50 s ago".into())
        );
        // Since its prompt.
        assert_eq!(
            (turn(51, 0, 51), turn(150, 0, 149)),
            ("last seen 50 s ago".into(), "150 s, last seen 2 min ago".into())
        );
        assert_eq!(turn(7, 0, 7), "6 s");
        let compacts = |last| ShortReason::Work("compacting its history".into(), before(last)).words(now);
        assert_eq!(compacts(9), "compacting its history");
        assert_eq!(compacts(51), "compacting its history, last seen 50 s ago");
    }

    #[test]
    fn a_turn_in_few_columns_keeps_the_silence() {
        let now = Moment::of(Time(1_700_000_000_000));
        let view = TurnView { since: now.wall - Span::minutes(75), tools: 12, older: true };
        let words = |columns, last| ShortReason::Turn(view, now.wall - Span::seconds(last)).words_within(columns, now);
        assert_eq!(words(50, 51), "at least 75 min, 12 tools, last seen 50 s ago");
        assert_eq!((words(45, 51), words(44, 51)), (words(50, 51), "at least 75 min, last seen 50 s ago".into()));
        assert_eq!((words(34, 51), words(0, 51)), ("last seen 50 s ago".into(), words(50, 51)));
        assert_eq!((words(24, 0), words(20, 0)), ("at least 75 min".into(), "at least 75 min".into()));
        let silent = ShortReason::Silent { since: now, what: "x".into(), runs_long: false };
        assert_eq!(silent.words_within(0, now), "silent 0 s");
    }

    #[test]
    fn case_622_an_age_is_never_worded_as_less_than_three_quarters_of_it() {
        let day = 24 * 3600;
        for (age, step, next) in [
            (0, 0, 5),
            (9, 8, 10),
            (49, 45, 50),
            (60, 60, 80),
            (119, 100, 120),
            (239, 210, 240),
            (3599, 59 * 60, 3600),
            (3600, 3600, 4500),
            (day - 1, 23 * 3600, day),
            (day, day, day + 6 * 3600),
            (100 * day - 1, 99 * day, 100 * day),
            (100 * day, 100 * day, 125 * day),
        ] {
            assert_eq!(age_step(Span::seconds(age)), (Span::seconds(step), Span::seconds(next)), "{age} s");
        }
        // Worded, too, whatever unit fits.
        let worded = |span: Span| {
            let words = span.to_string();
            let (count, unit) = words.split_once(' ').unwrap();
            let units = [("s", 1), ("min", 60), ("h", 3600), ("d", day)];
            count.parse::<i64>().unwrap() * units.iter().find(|(name, _)| *name == unit).unwrap().1
        };
        for age in (5..2 * day).chain((2 * day..300 * day).step_by(1801)) {
            let (step, next) = age_step(Span::seconds(age));
            assert!(step <= Span::seconds(age) && Span::seconds(age) < next, "{age} s");
            for words in [worded(step), worded(Span::seconds(age))] {
                assert!(words <= age && words * 4 > age * 3, "{age} s is worded as {words} s");
            }
        }
    }

    #[test]
    fn a_lull_is_worded_anew_with_each_step() {
        let last = Time(1_700_000_000_000);
        for (seconds, next) in [(0, 10), (9, 10), (10, 12), (59, 60), (60, 80), (119, 120)] {
            let next = last + Span::seconds(next);
            assert_eq!(next_lull(last, last + Span::seconds(seconds)), next, "{seconds} s");
        }
    }

    #[test]
    fn what_a_reason_says_of_time_depends_on_what_it_is() {
        let (then, now) = (Moment::of(Time(1_700_000_000_000)), Time(1_700_000_060_000));
        let turn = TurnView { since: then.wall, tools: 0, older: false };
        let silent = ShortReason::Silent { since: then, what: "x".into(), runs_long: false };
        for (short_reason, has_age, has_last, with_last) in [
            (ShortReason::of("x"), false, false, ShortReason::of("x")),
            (silent.clone(), true, false, silent),
            (ShortReason::Turn(turn, then.wall), true, true, ShortReason::Turn(turn, now)),
            (ShortReason::Work("x".into(), then.wall), true, true, ShortReason::Work("x".into(), now)),
            (ShortReason::rested("x", then.wall), true, false, ShortReason::rested("x", now)),
        ] {
            assert_eq!((short_reason.has_age(), short_reason.has_last()), (has_age, has_last), "{short_reason:?}");
            assert_eq!(short_reason.with_last(now), with_last);
        }
    }
}
