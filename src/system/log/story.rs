//! The lines of the log that are read back: which status a session had at a time, and why. They are written and read here
//! alone: the value in fields of its own, beside words that are never taken apart.
//!
//! Every change of status is one line. So are our own start and end and each change of the log's level, so that a
//! status that was not logged is distinguishable from one that did not change.

use super::capped::{rotated, text};
use crate::core::text::is_uuid;
use crate::core::time::Time;
use crate::core::verdict::Status;
use crate::system::clock::Zone;
use std::path::Path;
use tracing::Level;

/// The target of lines that are written at every level: those about a run, without which the others cannot be
/// interpreted.
pub(crate) const TARGET: &str = "pilotlight_run";
/// The tag of a change of status.
const STATUS: &str = "status";
/// The tag of a run's first line.
const START: &str = "start";
/// The tag of a run's last line.
const END: &str = "end";
/// The tag of a change of the level.
const LEVEL: &str = "level";
/// Stands for a status that a session has not, because it is not there.
const NONE: &str = "none";

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A run of the tray started, at this level.
    Started(Level),
    /// The level changed to this.
    Level(Level),
    /// A run ended. One that was killed has no such line.
    Ended,
    /// A session's status changed.
    Changed(Change),
}

/// A change of status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The session's id.
    pub id: String,
    /// The status before; `None` if the session was not seen before.
    pub was: Option<Status>,
    /// The status from then on; `None` if the session was removed.
    pub is: Option<Status>,
    /// Why.
    pub because: String,
}

impl Line {
    /// Writes it to the log.
    pub(crate) fn write(&self) {
        match self {
            Self::Started(level) => {
                let (version, level) = (env!("CARGO_PKG_VERSION"), level_name(*level));
                tracing::info!(target: TARGET, tag = START, version, level, "Pilotlight starts watching");
            }
            Self::Level(level) => {
                tracing::info!(target: TARGET, tag = LEVEL, level = level_name(*level), "the log's level was changed");
            }
            Self::Ended => tracing::info!(target: TARGET, tag = END, "Pilotlight stops watching"),
            Self::Changed(Change { id, was, is, because }) => {
                tracing::info!(tag = STATUS, session = %id, was = status_name(*was), is = status_name(*is), "{because}");
            }
        }
    }
}

/// The name of a status, or `none`.
pub(crate) fn status_name(status: Option<Status>) -> &'static str {
    status.map_or(NONE, Status::name)
}

fn level_name(level: Level) -> String {
    level.as_str().to_lowercase()
}

/// The content of the log, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Story {
    lines: Vec<(Time, Line)>,
    /// The time of the first line of any kind.
    begins: Option<Time>,
}

/// The state of a run after some of its lines.
#[derive(Default)]
struct Run<'a> {
    /// Whether its start was read.
    whole: bool,
    ended: Option<Time>,
    /// The level, if statuses are not logged at it.
    silent: Option<Level>,
    /// The last change of the session.
    last: Option<(Time, &'a Change)>,
}

impl<'a> Run<'a> {
    fn read(&mut self, at: Time, line: &'a Line, id: &str) {
        match line {
            Line::Started(level) => *self = Self { whole: true, silent: silent(*level), ..Self::default() },
            Line::Ended => *self = Self { ended: Some(at), ..Self::default() },
            // A status from before a silence may be outdated. The current ones are logged again at its end.
            Line::Level(level) if self.silent.is_some() => {
                *self = Self { whole: true, silent: silent(*level), ..Self::default() };
            }
            Line::Level(level) => self.silent = silent(*level),
            Line::Changed(change) if change.id == id => self.last = Some((at, change)),
            Line::Changed(_) => {}
        }
    }
}

fn silent(level: Level) -> Option<Level> {
    (level < Level::INFO).then_some(level)
}

impl Story {
    /// Reads the log at `path`, and the rotated one before it.
    pub(crate) fn read(path: &Path) -> Self {
        Self::of(&(text(&rotated(path)) + &text(path)))
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

    /// The ids of sessions with this prefix, each once.
    pub(crate) fn ids(&self, prefix: &str) -> Vec<&str> {
        let mut ids: Vec<_> =
            self.changes().map(|(_, change)| &*change.id).filter(|id| id.starts_with(prefix)).collect();
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

    /// The change that gave a session the status it had at a time, and when that was. `runs`: whether a tray runs now.
    ///
    /// # Errors
    /// In words for the user, with times in this zone: why the log does not say.
    pub(crate) fn at(&self, id: &str, time: Time, runs: bool, zone: &Zone) -> Result<(Time, &Change), String> {
        let Some(begins) = self.begins else { return Err("there is no log: the tray keeps one while it runs".into()) };
        if time < begins {
            return Err(format!("the log does not reach that far back: it begins at {}", zone.shown(begins)));
        }
        let count = self.lines.iter().rposition(|(at, _)| *at <= time).map_or(0, |last| last + 1);
        let (before, after) = self.lines.split_at(count);
        let mut run = Run::default();
        for (at, line) in before {
            run.read(*at, line, id);
        }
        if let Some(ended) = run.ended {
            return Err(format!("no tray ran then: the last one had ended at {}", zone.shown(ended)));
        }
        if let Some(level) = run.silent {
            return Err(format!("not logged then: the level was {:?}", level_name(level)));
        }
        let last = run.last.filter(|(_, change)| change.is.is_some());
        // A tray that was killed logged no end: what follows is the start of another run, or nothing.
        let is_cut = after.first().map_or(!runs, |(_, line)| matches!(line, Line::Started(_)));
        if let Some((end, _)) = before.last().filter(|(end, _)| is_cut && time > *end) {
            let before = last.map(|(_, change)| format!("it was {}", status_name(change.is)));
            let before = before.unwrap_or_else(|| "it did not mention this session".into());
            return Err(format!("the log of that run breaks off at {}; before that {before}", zone.shown(*end)));
        }
        last.ok_or_else(|| match run.last {
            // The log was rotated in the middle of the run, and an older one with the run's start was removed.
            None if !run.whole => {
                let begins = zone.shown(begins);
                format!("the log begins at {begins}, while a tray ran, and had not mentioned this session by then")
            }
            _ => "the tray ran, and had not seen this session, or its folder was gone".into(),
        })
    }

    /// The changes of a session after one time and up to another.
    pub(crate) fn between(&self, id: &str, from: Time, to: Time) -> impl Iterator<Item = (Time, &Change)> {
        self.changes().filter(move |(at, change)| change.id == id && *at > from && *at <= to)
    }
}

/// Parses a line after its time: `INFO silent 2 min, ... tag="status" session=<id> was="quiet" is="stuck"`.
fn parse(rest: &str) -> Option<Line> {
    let (_, rest) = rest.trim_start().split_once(' ')?;
    let (message, fields) = rest.rsplit_once(" tag=\"").or_else(|| Some(("", rest.strip_prefix("tag=\"")?)))?;
    let (tag, fields) = fields.split_once('"')?;
    let field = |key: &str| {
        fields
            .split(' ')
            .find_map(|field| Some(field.strip_prefix(key)?.strip_prefix('=')?.trim_matches('"').to_owned()))
    };
    let level = || field("level")?.parse().ok();
    let status = |key| match field(key)? {
        name if name == NONE => Some(None),
        name => Status::ALL.into_iter().find(|status| status.name() == name).map(Some),
    };
    match tag {
        START => Some(Line::Started(level()?)),
        LEVEL => Some(Line::Level(level()?)),
        END => Some(Line::Ended),
        STATUS => {
            let id = field("session").filter(|id| is_uuid(id))?;
            Some(Line::Changed(Change { id, was: status("was")?, is: status("is")?, because: message.to_owned() }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Span;
    use crate::system::log::Utc;
    use std::sync::Mutex;
    use tracing_subscriber::{fmt, prelude::*};

    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";
    const NOT_SEEN: &str = "the tray ran, and had not seen this session, or its folder was gone";

    fn at(minute: i64) -> Time {
        Time::parse(b"2026-11-20T12:00:00.000Z").unwrap() + Span::minutes(minute)
    }

    fn change(minute: i64, was: &str, is: &str) -> String {
        format!("{}  INFO because of {is} tag=\"status\" session={ID} was=\"{was}\" is=\"{is}\"\n", at(minute))
    }

    fn run(minute: i64, tag: &str) -> String {
        run_at_level(minute, tag, "info")
    }

    fn run_at_level(minute: i64, tag: &str, level: &str) -> String {
        format!("{}  INFO Pilotlight runs tag=\"{tag}\" level=\"{level}\"\n", at(minute))
    }

    fn utc() -> Zone {
        Zone::asked_in("2026-11-20T12:00:00Z")
    }

    /// Asserts that the log does not say which status the session had.
    #[track_caller]
    fn assert_unknown(story: &Story, id: &str, minute: i64, runs: bool, why: impl AsRef<str>) {
        assert_eq!(story.at(id, at(minute), runs, &utc()).unwrap_err(), why.as_ref());
    }

    /// Asserts that the session had a status, since this minute.
    #[track_caller]
    fn assert_was(story: &Story, minute: i64, runs: bool, status: &str, since: i64) {
        let (time, change) = story.at(ID, at(minute), runs, &utc()).unwrap();
        assert_eq!((status_name(change.is), time), (status, at(since)));
    }

    #[test]
    fn what_is_written_is_read() {
        let id = ID.to_owned();
        let because = "silent 2 min, is=\"idle\" tag=\"end\"; no tool".to_owned();
        let changed = Line::Changed(Change { id, was: None, is: Some(Status::Stuck), because });
        let mut lines = vec![Line::Ended, changed];
        for level in [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE] {
            lines.extend([Line::Started(level), Line::Level(level)]);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let writer = Mutex::new(file.reopen().unwrap());
        let to_file = fmt::layer().with_writer(writer).with_timer(Utc).with_target(false).with_ansi(false);
        let subscriber = tracing_subscriber::registry().with(to_file);
        tracing::subscriber::with_default(subscriber, || lines.iter().for_each(Line::write));
        let story = Story::of(&text(file.path()));
        assert_eq!(story.lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn the_last_change_before_a_time_counts() {
        let log =
            run(0, START) + &change(1, NONE, "working") + "garbage\n\n" + &change(3, "working", "stuck") + &run(9, END);
        let story = Story::of(&log);
        assert_was(&story, 2, false, "working", 1);
        assert_was(&story, 8, false, "stuck", 3);
        let (_, change) = story.at(ID, at(8), false, &utc()).unwrap();
        assert_eq!((&*change.because, change.was), ("because of stuck", Some(Status::Working)));
        assert_eq!(story.between(ID, at(1), at(3)).count(), 1);
        assert_eq!(story.ids("3653"), [ID]);
    }

    #[test]
    fn an_unknown_status_is_explained() {
        let other = "36535f61-5c7b-4f09-a70b-2f8aed970002";
        assert_unknown(&Story::of(""), ID, 1, true, "there is no log: the tray keeps one while it runs");
        let log = run(0, START) + &change(1, NONE, "idle") + &change(2, "idle", NONE) + &run(5, END) + &run(7, START);
        let story = Story::of(&log);
        let too_early = format!("the log does not reach that far back: it begins at {}", at(0));
        assert_unknown(&story, ID, -1, true, too_early);
        for minute in [-1, 6] {
            let why = story.at(ID, at(minute), true, &Zone::asked_in("2026-11-20T12:00:00+05:30")).unwrap_err();
            assert!(why.ends_with("+05:30"), "{why}");
        }
        assert_unknown(&story, ID, 3, true, NOT_SEEN); // its folder was gone
        assert_unknown(&story, ID, 6, true, format!("no tray ran then: the last one had ended at {}", at(5)));
        assert_unknown(&story, ID, 8, true, NOT_SEEN); // an earlier run does not count
        assert_unknown(&story, other, 1, true, NOT_SEEN);
        // The log was rotated in the middle of a run.
        let rest = Story::of(&change(4, "idle", "working"));
        let cut = format!("the log begins at {}, while a tray ran, and had not mentioned this session by then", at(4));
        assert_unknown(&rest, other, 5, true, cut);
    }

    #[test]
    fn after_the_last_line_of_a_killed_run_nothing_is_certain() {
        let killed = run(0, START) + &change(1, NONE, "working");
        let breaks_off = format!("the log of that run breaks off at {}; before that it was working", at(1));
        assert_unknown(&Story::of(&killed), ID, 5, false, &breaks_off);
        assert_was(&Story::of(&killed), 5, true, "working", 1); // it is still running
        let story = Story::of(&(killed + &run(9, START)));
        assert_unknown(&story, ID, 5, true, &breaks_off);
        assert_was(&story, 1, true, "working", 1);
        assert_unknown(&story, ID, 9, true, NOT_SEEN);
        let silent =
            format!("the log of that run breaks off at {}; before that it did not mention this session", at(0));
        assert_unknown(&Story::of(&run(0, START)), ID, 5, false, silent);
    }

    #[test]
    fn a_status_that_was_not_logged_is_unknown() {
        let low = run(0, START)
            + &change(1, NONE, "idle")
            + &run_at_level(3, LEVEL, "debug")
            + &run_at_level(5, LEVEL, "warn")
            + &run_at_level(7, LEVEL, "error")
            + &run_at_level(8, LEVEL, "info");
        let not_logged = |level| format!("not logged then: the level was {level:?}");
        let story = Story::of(&low);
        assert_was(&story, 4, true, "idle", 1);
        assert_unknown(&story, ID, 6, true, not_logged("warn"));
        assert_unknown(&story, ID, 7, true, not_logged("error"));
        assert_unknown(&story, ID, 9, true, NOT_SEEN); // it was not logged again
        let log = low + &change(8, "idle", "stuck") + &run(10, END) + &run_at_level(12, START, "warn");
        let story = Story::of(&log);
        assert_was(&story, 9, true, "stuck", 8);
        assert_unknown(&story, ID, 11, true, format!("no tray ran then: the last one had ended at {}", at(10)));
        assert_unknown(&story, ID, 14, true, not_logged("warn"));
    }
}
