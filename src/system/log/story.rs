//! The log, read again: what was said of a session, when, and why.
//!
//! Every change of a status is one line, and so are our own start and end and a change of how much is logged, so that silence
//! can be told from absence.

use super::capped::{full, text};
use crate::core::text::is_uuid;
use crate::core::time::Time;
use std::path::Path;

/// The target of what is written at every level: the lines of a run, without which the others say nothing.
pub(crate) const TARGET: &str = "pilotlight_run";
/// The tag of a line that tells a change of status.
pub(crate) const STATUS: &str = "status";
/// The tag of the line with which a run begins.
pub(crate) const START: &str = "start";
/// The tag of the line with which a run ends. A run that was killed has none.
pub(crate) const END: &str = "end";
/// The tag of the line with which the level changes.
pub(crate) const LEVEL: &str = "level";
/// What stands as the status of a session that is not there: before it was seen, and after it was removed.
pub(crate) const NONE: &str = "none";

/// One thing that the log tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A run of the tray began, at this level.
    Started(String),
    /// From then on it logged at this level.
    Level(String),
    /// A run ended.
    Ended,
    /// A session's status changed.
    Changed(Change),
}

/// A change of status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The session's id.
    pub id: String,
    /// The status before.
    pub was: String,
    /// The status from then on.
    pub is: String,
    /// Why.
    pub because: String,
}

/// What the log holds, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Story {
    lines: Vec<(Time, Line)>,
    /// When the first line of all was written.
    begins: Option<Time>,
}

/// What the log says of a session at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Its status, since when it was told so.
    Was(Time, Change),
    /// Nothing: there is no log.
    NoLog,
    /// Nothing: the log does not reach back so far, but to this time.
    NotSoFar(Time),
    /// Nothing: the log begins then, in the middle of a run, and did not tell of it since.
    NotSince(Time),
    /// Nothing: no tray ran, the last one having ended then.
    NoTray(Time),
    /// Nothing: at this level no status is logged.
    NotLogged(String),
    /// Nothing that is sure: the run's last line was written at this time, and its end was not. What it said last.
    BreaksOff(Time, Option<Change>),
    /// The tray ran, and had not seen this session.
    NotSeen,
}

/// A run, as far as a story was followed.
#[derive(Default)]
struct Run {
    /// Whether its beginning was read.
    whole: bool,
    ended: Option<Time>,
    /// The level, where no status is logged at it.
    silent: Option<String>,
    /// What was last said of the session.
    last: Option<(Time, Change)>,
}

impl Run {
    fn take(&mut self, at: Time, line: &Line, id: &str) {
        match line {
            Line::Started(level) => *self = Self { whole: true, silent: silent(level), ..Self::default() },
            Line::Ended => *self = Self { ended: Some(at), ..Self::default() },
            // What was so before a silence need not be so after it; whatever is so is told then.
            Line::Level(level) if self.silent.is_some() => {
                *self = Self { whole: true, silent: silent(level), ..Self::default() };
            }
            Line::Level(level) => self.silent = silent(level),
            Line::Changed(change) if change.id == id => self.last = Some((at, change.clone())),
            Line::Changed(_) => {}
        }
    }
}

fn silent(level: &str) -> Option<String> {
    matches!(level, "error" | "warn").then(|| level.to_owned())
}

impl Story {
    /// Reads the log at `path`, and the one that was set aside before it.
    pub(crate) fn read(path: &Path) -> Self {
        Self::of(&(text(&full(path)) + &text(path)))
    }

    fn of(text: &str) -> Self {
        let mut story = Self::default();
        for line in text.lines() {
            let Some((at, rest)) = line.split_once(' ') else { continue };
            let Some(at) = Time::parse(at.as_bytes()) else { continue };
            story.begins.get_or_insert(at);
            story.lines.extend(parse(rest).map(|line| (at, line)));
        }
        story
    }

    /// The ids of sessions that begin so, each once.
    pub(crate) fn ids(&self, beginning: &str) -> Vec<&str> {
        let mut ids: Vec<_> =
            self.changes().map(|(_, change)| &*change.id).filter(|id| id.starts_with(beginning)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn changes(&self) -> impl Iterator<Item = (Time, &Change)> {
        self.lines.iter().filter_map(|(at, line)| match line {
            Line::Changed(change) => Some((*at, change)),
            _ => None,
        })
    }

    /// What was said of a session at a time; `runs`: whether a tray runs now.
    pub(crate) fn at(&self, id: &str, time: Time, runs: bool) -> Said {
        let Some(begins) = self.begins else { return Said::NoLog };
        if time < begins {
            return Said::NotSoFar(begins);
        }
        let told = self.lines.iter().rposition(|(at, _)| *at <= time).map_or(0, |last| last + 1);
        let (before, after) = self.lines.split_at(told);
        let mut run = Run::default();
        for (at, line) in before {
            run.take(*at, line, id);
        }
        if let Some(ended) = run.ended {
            return Said::NoTray(ended);
        }
        if let Some(level) = run.silent {
            return Said::NotLogged(level);
        }
        // Who was killed wrote no end: the next thing told is another's start, or nothing.
        let is_cut = after.first().map_or(!runs, |(_, line)| matches!(line, Line::Started(_)));
        let is_there = |change: &Change| change.is != NONE;
        match (before.last(), run.last) {
            (Some((end, _)), last) if is_cut && time > *end => {
                Said::BreaksOff(*end, last.map(|(_, change)| change).filter(is_there))
            }
            (_, Some((at, change))) if is_there(&change) => Said::Was(at, change),
            // The file was set aside in the middle of a run, and what was said before is lost.
            (_, None) if !run.whole => Said::NotSince(begins),
            _ => Said::NotSeen,
        }
    }

    /// The changes of a session after one time and up to another.
    pub(crate) fn between(&self, id: &str, from: Time, to: Time) -> Vec<(Time, &Change)> {
        self.changes().filter(|(at, change)| change.id == id && *at > from && *at <= to).collect()
    }
}

/// What a line says behind its time: `INFO silent 2 min, ... tag="status" session=<id> was="quiet" is="stuck"`.
fn parse(rest: &str) -> Option<Line> {
    let (_, rest) = rest.trim_start().split_once(' ')?;
    let (message, fields) = rest.rsplit_once(" tag=\"").or_else(|| Some(("", rest.strip_prefix("tag=\"")?)))?;
    let (tag, fields) = fields.split_once('"')?;
    let field = |key: &str| {
        fields
            .split(' ')
            .find_map(|field| Some(field.strip_prefix(key)?.strip_prefix('=')?.trim_matches('"').to_owned()))
    };
    match tag {
        START => Some(Line::Started(field("level").unwrap_or_default())),
        LEVEL => Some(Line::Level(field("level")?)),
        END => Some(Line::Ended),
        STATUS => {
            let id = field("session").filter(|id| is_uuid(id))?;
            Some(Line::Changed(Change { id, was: field("was")?, is: field("is")?, because: message.to_owned() }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";

    fn at(minute: i64) -> Time {
        Time::parse(b"2026-11-20T12:00:00.000Z").unwrap() + crate::core::time::Span::minutes(minute)
    }

    fn told(minute: i64, was: &str, is: &str) -> String {
        format!("{}  INFO because of {is} tag=\"status\" session={ID} was=\"{was}\" is=\"{is}\"\n", at(minute))
    }

    fn run(minute: i64, tag: &str) -> String {
        levelled(minute, tag, "info")
    }

    fn levelled(minute: i64, tag: &str, level: &str) -> String {
        format!("{}  INFO Pilotlight runs tag=\"{tag}\" level=\"{level}\"\n", at(minute))
    }

    #[test]
    fn the_last_change_before_counts() {
        let log =
            run(0, START) + &told(1, NONE, "working") + "garbage\n\n" + &told(3, "working", "stuck") + &run(9, END);
        let story = Story::of(&log);
        assert!(
            matches!(story.at(ID, at(2), false), Said::Was(since, change) if since == at(1) && change.is == "working")
        );
        let Said::Was(since, change) = story.at(ID, at(8), false) else { panic!("{story:?}") };
        assert_eq!((since, &*change.because, &*change.was), (at(3), "because of stuck", "working"));
        assert_eq!(story.between(ID, at(1), at(3)).len(), 1);
        assert_eq!(story.ids("3653"), [ID]);
    }

    #[test]
    fn what_the_log_cannot_say_is_told_apart() {
        let other = "36535f61-5c7b-4f09-a70b-2f8aed970002";
        assert_eq!(Story::of("").at(ID, at(1), true), Said::NoLog);
        let log = run(0, START) + &told(1, NONE, "idle") + &told(2, "idle", NONE) + &run(5, END) + &run(7, START);
        let story = Story::of(&log);
        assert_eq!(story.at(ID, at(-1), true), Said::NotSoFar(at(0)));
        assert_eq!(story.at(ID, at(3), true), Said::NotSeen, "its folder was gone");
        assert_eq!(story.at(ID, at(6), true), Said::NoTray(at(5)));
        assert_eq!(story.at(ID, at(8), true), Said::NotSeen, "what an earlier run said does not count in this one");
        assert_eq!(story.at(other, at(1), true), Said::NotSeen);
        // The file was set aside in the middle of a run.
        let rest = Story::of(&told(4, "idle", "working"));
        assert_eq!(rest.at(other, at(5), true), Said::NotSince(at(4)));
    }

    #[test]
    fn after_the_last_line_of_a_run_that_was_killed_nothing_is_sure() {
        let killed = run(0, START) + &told(1, NONE, "working");
        let is_cut = |said| matches!(said, Said::BreaksOff(end, Some(last)) if end == at(1) && last.is == "working");
        assert!(is_cut(Story::of(&killed).at(ID, at(5), false)));
        assert!(matches!(Story::of(&killed).at(ID, at(5), true), Said::Was(..)), "it runs on");
        let story = Story::of(&(killed + &run(9, START)));
        assert!(is_cut(story.at(ID, at(5), true)));
        assert!(matches!(story.at(ID, at(1), true), Said::Was(..)));
        assert_eq!(story.at(ID, at(9), true), Said::NotSeen);
    }

    #[test]
    fn what_was_not_logged_is_no_answer() {
        let low = run(0, START)
            + &told(1, NONE, "idle")
            + &levelled(3, LEVEL, "debug")
            + &levelled(5, LEVEL, "warn")
            + &levelled(7, LEVEL, "error")
            + &levelled(8, LEVEL, "info");
        let story = Story::of(&low);
        assert!(matches!(story.at(ID, at(4), true), Said::Was(..)), "{story:?}");
        assert_eq!(story.at(ID, at(6), true), Said::NotLogged("warn".into()));
        assert_eq!(story.at(ID, at(7), true), Said::NotLogged("error".into()));
        assert_eq!(story.at(ID, at(9), true), Said::NotSeen, "it was not told anew");
        let story = Story::of(&(low + &told(8, "idle", "stuck") + &run(10, END) + &levelled(12, START, "warn")));
        assert!(matches!(story.at(ID, at(9), true), Said::Was(since, _) if since == at(8)));
        assert_eq!(story.at(ID, at(11), true), Said::NoTray(at(10)));
        assert_eq!(story.at(ID, at(14), true), Said::NotLogged("warn".into()));
    }
}
