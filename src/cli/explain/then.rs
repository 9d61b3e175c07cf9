//! `pilotlight explain ID --at TIME`: what was said of a session then, and why, from the log that the tray keeps.

use super::super::pick::pick;
use super::super::{Context, USAGE, say};
use super::Page;
use crate::control::{Probe, probe};
use crate::core::text::counted;
use crate::core::time::{Span, Time};
use crate::system::clock::{self, Clock};
use crate::system::log::FILE;
use crate::system::log::story::{NONE, Said, Story};
use crate::system::paths;
use std::io::{self, Write};
use std::process::ExitCode;

/// Exit code: the log cannot tell.
const CANNOT_TELL: u8 = 1;

/// A time that was asked about: `to` is the end of what was meant.
struct Asked {
    from: Time,
    to: Time,
}

pub(super) fn run(context: &Context, id: &str, time: &str) -> anyhow::Result<ExitCode> {
    let now = Clock::start().now().wall;
    let Some(asked) = asked(time, now) else {
        say(&format!("{time:?} is not a time: HH:MM means today, 2026-11-20T12:03:00Z any other day"));
        return Ok(ExitCode::from(USAGE));
    };
    if asked.from > now {
        say(&format!("{} is in the future: it is {now} now", asked.from));
        return Ok(ExitCode::from(USAGE));
    }
    let path = paths::project().map(|project| paths::state_folder(&project).join(FILE));
    let story = path.as_deref().map(Story::read).unwrap_or_default();
    // A session whose folder is gone still stands in the log.
    let id = match story.ids(id).as_slice() {
        [one] if !id.is_empty() => (*one).to_owned(),
        [] | [_] => match pick(context, id, false) {
            Ok(session) => session.id.clone().into(),
            Err(code) => return Ok(code),
        },
        several => {
            say(&format!("{} begin with {id:?} in the log", counted(several.len(), "session's id")));
            return Ok(ExitCode::from(USAGE));
        }
    };
    let said = story.at(&id, asked.from, tray_runs());
    let later = story.between(&id, asked.from, asked.to);
    let mut page = Page::default();
    page.line("session", &id);
    page.line("at", asked.from.to_string());
    let cannot = match &said {
        Said::Was(since, change) => {
            page.line("status", format!("{}, said since {since}, {} before", change.is, change.was));
            page.line("because", &change.because);
            None
        }
        Said::NoLog => Some("there is no log: the tray keeps one while it runs".into()),
        Said::NotSoFar(begins) => Some(format!("the log does not reach that far back: it begins at {begins}")),
        Said::NotSince(begins) => {
            Some(format!("the log begins at {begins}, while a tray ran, and had not mentioned this session by then"))
        }
        Said::NotLogged(level) => Some(format!("not logged then: the level was {level:?}")),
        Said::BreaksOff(end, Some(last)) => {
            Some(format!("the log of that run breaks off at {end}; before that it was {}", last.is))
        }
        Said::BreaksOff(end, None) => {
            Some(format!("the log of that run breaks off at {end}; before that it did not mention this session"))
        }
        Said::NoTray(ended) => Some(format!("no tray ran then: the last one had ended at {ended}")),
        Said::NotSeen => Some("the tray ran, and had not seen this session, or its folder was gone".into()),
    };
    for (at, change) in &later {
        let is = if change.is == NONE { "gone" } else { &change.is };
        page.line("then", format!("{is} at {at}: {}", change.because));
    }
    if let Some(cannot) = cannot.filter(|_| later.is_empty()) {
        say(&cannot);
        return Ok(ExitCode::from(CANNOT_TELL));
    }
    write!(io::stdout(), "{}", page.0)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a tray runs now, as far as it can be asked.
fn tray_runs() -> bool {
    let folders = paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default();
    folders.iter().any(|folder| matches!(probe(folder), Ok(Probe::Served)))
}

/// `12:03` is a whole minute of today; what names a day is a point in time.
fn asked(text: &str, now: Time) -> Option<Asked> {
    if let Some(at) = Time::parse(text.as_bytes()) {
        return Some(Asked { from: at, to: at });
    }
    let (hour, minute) = text.split_once(':')?;
    let two_digits = |part: &str| {
        let fits = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| part.parse::<i8>().ok())?
    };
    let from = clock::today(two_digits(hour)?, two_digits(minute)?, now)?;
    Some(Asked { from, to: (from + Span::minutes(1) - Span(1)).min(now) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_of_today_or_has_a_day() {
        let now = Clock::start().now().wall;
        let minute = asked("0:07", now).unwrap();
        assert_eq!(clock::WallClock::at(minute.from).to_string(), "0:07");
        assert!(asked("2026-11-20T12:03:00Z", now).is_some_and(|at| at.from == at.to));
        assert!(asked("2026-11-20T13:03:00+01:00", now).is_some());
        for wrong in ["", "12", "24:00", "12:60", "-1:00", "12:3:4", "noon", "+1:00"] {
            assert!(asked(wrong, now).is_none(), "{wrong}");
        }
    }
}
