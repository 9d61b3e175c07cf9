//! What a report says, as its file has it. Any process of the user may write one, so whatever is read is bounded, and made
//! safe to show.

use pilotlight_core::text::{COMMAND_MAX, NAME_MAX, legible};
use pilotlight_core::time::{Span, Time};
use pilotlight_core::verdict::hook_report::HookActivity;
use pilotlight_system::plain_file::{self, Links};
use pilotlight_system::process::{birth_of, is_gone};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;

/// The version of a record's format. One of another version is no record.
const VERSION: u32 = 1;
/// The longest record that is read, in bytes: the longest that is written has a quarter of it.
const LENGTH_MAX: u64 = 16 << 10;
/// The longest id of a session, in bytes. With the name of an agent it must make a file's name (255 bytes).
const ID_MAX: usize = 128;
/// The longest name of an agent, in bytes.
const AGENT_MAX: usize = 32;
/// The most processes that are noted beside the one that runs a session.
const RIVALS_MAX: usize = 8;
/// A session of no process that lives on is forgotten after this time without a word.
const FORGOTTEN: Span = Span::hours(1);
/// Nanoseconds in a millisecond.
const MILLISECOND: i64 = 1_000_000;

/// What a session does, as `--state` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It works
    Working,
    /// It waits for you: a permission, an answer
    Blocked,
    /// Nothing is going on: it is your turn
    Idle,
    /// It is over
    Ended,
}

impl State {
    /// The same of a session that is not over.
    pub(super) const fn said(self) -> Option<HookActivity> {
        match self {
            Self::Working => Some(HookActivity::Working),
            Self::Blocked => Some(HookActivity::Blocked),
            Self::Idle => Some(HookActivity::Idle),
            Self::Ended => None,
        }
    }
}

/// A process that will not be taken for another one that gets its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub(super) pid: u32,
    /// When it started, in the system's unit.
    pub(super) born: u64,
}

impl Process {
    /// The process with this id now. `None` if there is none.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, born: birth_of(pid)? })
    }

    /// Whether it is there, ended or not.
    pub(crate) fn is_there(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    pub(super) fn lives(self, now: Time) -> bool {
        self.is_there() && !is_gone(self.pid, now)
    }
}

/// A report, as its caller gives it.
#[derive(Clone, Debug)]
pub struct Report {
    pub agent: Box<str>,
    pub session: Box<str>,
    pub state: State,
    pub reason: Option<Box<str>>,
    pub title: Option<Box<str>>,
    /// The folder that it works in, if the caller says.
    pub cwd: Option<Box<str>>,
    /// The folder that the caller runs in.
    pub here: Option<Box<str>>,
    /// When it was given, in nanoseconds since 1970: hooks may run within a millisecond of each other.
    pub at: i64,
    pub process: Option<Process>,
}

impl Report {
    /// What it says of the session's state, and no word of its own.
    fn state_alone(&self) -> Self {
        Self { reason: None, title: None, cwd: None, here: None, ..self.clone() }
    }
}

/// A session's latest report, and what is left of those before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    pub(super) agent: Box<str>,
    pub(super) session: Box<str>,
    pub(super) state: State,
    pub(super) reason: Option<Box<str>>,
    pub(super) title: Option<Box<str>>,
    pub(super) cwd: Option<Box<str>>,
    /// When it was given, in nanoseconds since 1970.
    pub(super) at: i64,
    /// Since when it has its state, likewise.
    pub(super) since: i64,
    /// It has worked.
    pub(super) has_worked: bool,
    pub(super) process: Option<Process>,
    /// The other processes that report it as theirs while that one lives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rivals: Vec<Process>,
}

impl Record {
    /// What a report makes of the session's last record. A title, and what it works in, need be said only once.
    pub(super) fn of(report: Report, before: Option<Self>) -> Self {
        let Report { agent, session, state, reason, title, cwd, here, at, process } = report;
        let same = before.as_ref().filter(|before| before.state == state);
        let since = same.map_or(at, |before| before.since.min(at));
        let works = matches!(state, State::Working | State::Blocked);
        let (shorten, is_running) = (|text: Box<str>, most| legible(&text, most), |it: &Self| it.state != State::Ended);
        let before = before.filter(is_running);
        let has_worked = works || before.as_ref().is_some_and(|before| before.has_worked);
        let (former_title, former_cwd) = before.map_or((None, None), |before| (before.title, before.cwd));
        Self {
            version: VERSION,
            agent,
            session,
            state,
            reason: reason.and_then(|text| shorten(text, COMMAND_MAX)),
            title: title.and_then(|text| shorten(text, NAME_MAX)).or(former_title),
            cwd: cwd.or(former_cwd).or(here).and_then(|text| shorten(text, COMMAND_MAX)),
            at,
            since,
            has_worked,
            process,
            rivals: Vec::new(),
        }
    }

    /// What the report of another process, a rival, makes of a record whose own process lives on. It tells what the session does, and
    /// that two say so: neither a title nor a reason, nor an end.
    pub(super) fn contested(self, report: &Report, rival: Process, now: Time) -> Self {
        let mut rivals = self.living_rivals(now);
        rivals.retain(|other| *other != rival);
        let is_over = report.state == State::Ended;
        if !is_over && rivals.len() < RIVALS_MAX {
            rivals.push(rival);
        }
        let next = if is_over { self.clone() } else { Self::of(report.state_alone(), Some(self.clone())) };
        Self { process: self.process, rivals, ..next }
    }

    /// The same, with the processes of a former record that still report it as theirs.
    pub(super) fn beside(self, before: Option<&Self>, now: Time) -> Self {
        let mut rivals = before.map(|before| before.living_rivals(now)).unwrap_or_default();
        rivals.retain(|rival| self.process != Some(*rival));
        Self { rivals, ..self }
    }

    fn living_rivals(&self, now: Time) -> Vec<Process> {
        let others = self.rivals.iter().filter(|rival| self.process != Some(**rival) && rival.lives(now));
        others.take(RIVALS_MAX).copied().collect()
    }

    /// The processes that report it as theirs and live: its own first.
    pub(super) fn living(&self, now: Time) -> Vec<Process> {
        self.process.filter(|process| process.lives(now)).into_iter().chain(self.living_rivals(now)).collect()
    }

    /// Reads a record. `None` if the file is none, whatever else it is.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let (file, _) = plain_file::open(path, Links::Refused).ok()?;
        let mut text = Vec::new();
        file.take(LENGTH_MAX).read_to_end(&mut text).ok()?;
        let record: Self = serde_json::from_slice(&text).ok()?;
        let is_sound = record.version == VERSION
            && agent_name(&record.agent).is_ok()
            && session_id(&record.session).is_ok()
            && record.at >= 0;
        is_sound.then(|| Self {
            reason: record.reason.and_then(|text| legible(&text, COMMAND_MAX)),
            title: record.title.and_then(|text| legible(&text, NAME_MAX)),
            cwd: record.cwd.and_then(|text| legible(&text, COMMAND_MAX)),
            ..record
        })
    }

    /// Whether it is not over yet: its process lives, or somebody has said something not long ago. `now` is the wall clock.
    pub(super) fn is_current(&self, now: Time) -> bool {
        self.state != State::Ended
            && match self.process {
                Some(_) => !self.living(now).is_empty(),
                None => now - self.given(now) < FORGOTTEN,
            }
    }

    /// When it was given, to the millisecond; never after `now`.
    pub(super) fn given(&self, now: Time) -> Time {
        Time(self.at / MILLISECOND).min(now)
    }

    /// Since when it has its state; never after `now`.
    pub(super) fn began(&self, now: Time) -> Time {
        Time(self.since.min(self.at) / MILLISECOND).min(now)
    }
}

/// The name of an agent, if it can be one: it goes into filters, settings and rows.
pub fn agent_name(name: &str) -> Result<Box<str>, &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_good = name.len() <= AGENT_MAX
        && name.bytes().next().is_some_and(is_plain)
        && name.bytes().all(|byte| is_plain(byte) || byte == b'-');
    is_good.then(|| name.into()).ok_or("an agent's name has up to 32 lower-case letters, digits and hyphens")
}

/// The id of a session, if it can be one: it goes into commands, and names a file.
pub fn session_id(id: &str) -> Result<Box<str>, &'static str> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+=~,".contains(&byte) && (!cfg!(windows) || byte != b':');
    let is_good = (1..=ID_MAX).contains(&id.len()) && !id.starts_with(['.', '-']) && id.bytes().all(is_plain);
    is_good.then(|| id.into()).ok_or(
        "a session's id has 1 to 128 characters: letters, digits and any of `-_.:+=~,`, but neither `-` nor `.` first",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(state: State, at: i64) -> Report {
        let (agent, session) = ("aider".into(), "s1".into());
        Report { agent, session, state, reason: None, title: None, cwd: None, here: None, at, process: None }
    }

    #[test]
    fn case_271_names_and_ids_are_what_can_be_typed_and_filed() {
        for good in ["aider", "x", "a-1", "0", &"a".repeat(32)] {
            assert_eq!(agent_name(good).as_deref(), Ok(good));
        }
        for bad in ["", "-a", "Aider", "a b", "a/b", "ä", "a\u{1b}", "a@b", &"a".repeat(33)] {
            assert!(agent_name(bad).is_err(), "{bad:?}");
        }
        let uuid = "0c6b5ed9-8b2e-4c5d-9a11-1f2e3d4c5b6a";
        for good in [uuid, "ses_7f3", "20251125_1", "T-1", "a.b+c=d~e,f", &"a".repeat(128)] {
            assert_eq!(session_id(good).as_deref(), Ok(good));
        }
        for bad in ["", "-", "-x", ".x", "..", "a/b", "a\\b", "a b", "a@b", "a\nb", "é", "a\u{202e}b", &"a".repeat(129)]
        {
            assert!(session_id(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn case_271_what_a_report_says_is_bounded_and_safe_to_show() {
        let hostile: Box<str> = format!("a\u{1b}[2J\n\u{202e}{}", "x".repeat(1 << 20)).into();
        let said = Some(hostile);
        let record = Record::of(
            Report { reason: said.clone(), title: said.clone(), cwd: said, ..report(State::Working, 5) },
            None,
        );
        for text in [&record.reason, &record.title, &record.cwd] {
            let text = text.as_deref().unwrap();
            assert!(text.chars().count() <= COMMAND_MAX && !text.contains(['\u{1b}', '\n', '\u{202e}']), "{text:?}");
        }
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("s1.json");
        std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
        assert_eq!(Record::read(&path), Some(record.clone()));
        // Who writes the file itself is believed no more.
        let forged = Record { title: Some("b\u{1b}]0;x\u{7}".into()), ..record.clone() };
        std::fs::write(&path, serde_json::to_vec(&forged).unwrap()).unwrap();
        assert_eq!(Record::read(&path).unwrap().title.as_deref(), Some("b ]0;x"));
        for bad in [
            Record { agent: "A\u{1b}".into(), ..record.clone() },
            Record { session: "../x".into(), ..record.clone() },
            Record { version: 2, ..record.clone() },
            Record { at: -1, ..record.clone() },
            Record { title: Some("x".repeat(1 << 20).into()), ..record },
        ] {
            std::fs::write(&path, serde_json::to_vec(&bad).unwrap()).unwrap();
            assert_eq!(Record::read(&path), None);
        }
        for text in ["", "{", "[]", "null", "{\"version\":1}"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Record::read(&path), None);
        }
    }

    #[test]
    fn a_record_keeps_what_need_not_be_said_again() {
        let first = Report { title: Some("Fix it".into()), cwd: Some("/srv".into()), ..report(State::Working, 10) };
        let first = Record::of(Report { reason: Some("thinks".into()), ..first }, None);
        let next = Record::of(report(State::Working, 20), Some(first.clone()));
        assert_eq!((next.at, next.since, next.reason.as_deref()), (20, 10, None));
        assert_eq!((next.title.as_deref(), next.cwd.as_deref()), (Some("Fix it"), Some("/srv")));
        let idle = Record::of(report(State::Idle, 30), Some(next));
        assert_eq!((idle.since, idle.has_worked), (30, true));
        let over = Record::of(report(State::Ended, 40), Some(idle));
        // What comes after its end is another run of it.
        let again = Record::of(report(State::Idle, 50), Some(over));
        assert_eq!((again.has_worked, again.title), (false, None));
    }
}
