//! The log, read again: what was said of a session, when, and why.
//!
//! Every change of a status is one line, and so are our own start and end, so that silence can be told from absence.

use super::capped::{full, text};
use crate::core::text::is_uuid;
use crate::core::time::Time;
use std::path::Path;

/// The tag of a line that tells a change of status.
pub const STATUS: &str = "status";
/// The tag of the line with which a run begins.
pub const START: &str = "start";
/// The tag of the line with which a run ends. A run that was killed has none.
pub const END: &str = "end";
/// What stands as the status of a session that is not there: before it was seen, and after it was removed.
pub const NONE: &str = "none";

/// One thing that the log tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A run of the tray began.
    Started,
    /// A run ended.
    Ended,
    /// A session's status changed.
    Changed(Change),
}

/// A change of status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
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
pub struct Story {
    lines: Vec<(Time, Line)>,
    /// When the first line of all was written.
    begins: Option<Time>,
}

/// What the log says of a session at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Its status, since when it was told so.
    Was(Time, Change),
    /// Nothing: there is no log.
    NoLog,
    /// Nothing: the log does not reach back so far, but to this time.
    NotSoFar(Time),
    /// Nothing: no tray ran, the last one having ended then.
    NoTray(Time),
    /// The tray ran, and had not seen this session.
    NotSeen,
}

impl Story {
    /// Reads the log at `path`, and the one that was set aside before it.
    pub fn read(path: &Path) -> Self {
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
    pub fn ids(&self, beginning: &str) -> Vec<&str> {
        let mut ids: Vec<_> =
            self.changes().map(|(_, change)| &*change.id).filter(|id| id.starts_with(beginning)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn changes(&self) -> impl Iterator<Item = (Time, &Change)> {
        self.lines.iter().filter_map(|(at, line)| match line {
            Line::Changed(change) => Some((*at, change)),
            Line::Started | Line::Ended => None,
        })
    }

    /// What was said of a session at a time.
    pub fn at(&self, id: &str, time: Time) -> Said {
        let Some(begins) = self.begins else { return Said::NoLog };
        if time < begins {
            return Said::NotSoFar(begins);
        }
        let before = || self.lines.iter().rev().skip_while(|(at, _)| *at > time);
        let run = before().find(|(_, line)| !matches!(line, Line::Changed(_)));
        if let Some((ended, Line::Ended)) = run {
            return Said::NoTray(*ended);
        }
        let started = run.map(|(at, _)| *at);
        let last = before().take_while(|(at, _)| started.is_none_or(|started| *at >= started));
        let last = last.filter_map(|(at, line)| match line {
            Line::Changed(change) if change.id == id => Some((*at, change)),
            _ => None,
        });
        match last.into_iter().next() {
            Some((at, change)) if change.is != NONE => Said::Was(at, change.clone()),
            // The file was set aside in the middle of a run, and what was said before is lost.
            None if started.is_none() => Said::NotSoFar(begins),
            _ => Said::NotSeen,
        }
    }

    /// The changes of a session after one time and up to another.
    pub fn between(&self, id: &str, from: Time, to: Time) -> Vec<(Time, &Change)> {
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
        START => Some(Line::Started),
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
        format!("{}  INFO Pilotlight runs tag=\"{tag}\"\n", at(minute))
    }

    #[test]
    fn the_last_change_before_counts() {
        let log =
            run(0, START) + &told(1, NONE, "working") + "garbage\n\n" + &told(3, "working", "stuck") + &run(9, END);
        let story = Story::of(&log);
        assert!(matches!(story.at(ID, at(2)), Said::Was(since, change) if since == at(1) && change.is == "working"));
        let Said::Was(since, change) = story.at(ID, at(8)) else { panic!("{story:?}") };
        assert_eq!((since, &*change.because, &*change.was), (at(3), "because of stuck", "working"));
        assert_eq!(story.between(ID, at(1), at(3)).len(), 1);
        assert_eq!(story.ids("3653"), [ID]);
    }

    #[test]
    fn what_the_log_cannot_say_is_told_apart() {
        assert_eq!(Story::of("").at(ID, at(1)), Said::NoLog);
        let log = run(0, START) + &told(1, NONE, "idle") + &told(2, "idle", NONE) + &run(5, END) + &run(7, START);
        let story = Story::of(&log);
        assert_eq!(story.at(ID, at(-1)), Said::NotSoFar(at(0)));
        assert_eq!(story.at(ID, at(3)), Said::NotSeen, "its folder was gone");
        assert_eq!(story.at(ID, at(6)), Said::NoTray(at(5)));
        assert_eq!(story.at(ID, at(8)), Said::NotSeen, "what an earlier run said does not count in this one");
        assert_eq!(story.at("36535f61-5c7b-4f09-a70b-2f8aed970002", at(1)), Said::NotSeen);
        // The file was set aside in the middle of a run.
        let rest = Story::of(&told(4, "idle", "working"));
        assert_eq!(rest.at("36535f61-5c7b-4f09-a70b-2f8aed970002", at(5)), Said::NotSoFar(at(4)));
    }
}
