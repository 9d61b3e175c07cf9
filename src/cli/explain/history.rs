//! `pilotlight explain ID --at TIME`: the status that a session had at a time, and why, from the tray's log.

use super::page::Page;
use crate::cli::charset::{has_unicode_stdout, words};
use crate::cli::context::Context;
use crate::cli::pick::pick;
use crate::cli::report::{USAGE, say};
use crate::control::{Probe, probe};
use crate::core::text::counted;
use crate::core::time::{Span, Time};
use crate::core::verdict::Status;
use crate::system::clock::{self, Clock, Zone};
use crate::system::log::FILE;
use crate::system::log::story::{Story, status_name};
use crate::system::paths;
use std::io::{self, Write};
use std::process::ExitCode;

/// The time that was asked about: a point, or a whole minute.
struct Period {
    from: Time,
    to: Time,
}

pub(super) fn run(context: &Context, id: &str, time: &str) -> anyhow::Result<ExitCode> {
    let now = Clock::start().now().wall;
    let zone = Zone::asked_in(time);
    let Some(period) = parse_period(time, now) else {
        say(&format!("{time:?} is not a time: HH:MM means today, 2026-11-20T12:03:00Z any other day"));
        return Ok(ExitCode::from(USAGE));
    };
    if period.from > now {
        say(&format!("{} is in the future: it is {} now", zone.shown(period.from), zone.shown(now)));
        return Ok(ExitCode::from(USAGE));
    }
    let path = paths::project().map(|project| paths::state_folder(&project).join(FILE));
    let story = path.as_deref().map(Story::read).unwrap_or_default();
    // The log also has sessions whose folders are gone, so it is searched first.
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
    let status = story.at(&id, period.from, tray_runs(), &zone);
    let mut page = Page::default();
    page.line("session", &id);
    page.line("at", zone.shown(period.from));
    if let Ok((since, change)) = &status {
        let (is, was) = (status_name(change.is), status_name(change.was));
        page.line("status", format!("{is}, said since {}, {was} before", zone.shown(*since)));
        page.line("because", &change.because);
    }
    let mut later = story.between(&id, period.from, period.to).peekable();
    if let (Err(why), None) = (status, later.peek()) {
        say(&why);
        return Ok(ExitCode::FAILURE);
    }
    for (at, change) in later {
        let is = change.is.map_or("gone", Status::name);
        page.line("then", format!("{is} at {}: {}", zone.shown(at), change.because));
    }
    write!(io::stdout(), "{}", words(&page.to_string(), has_unicode_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a tray answers on its control socket.
fn tray_runs() -> bool {
    let folders = paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default();
    folders.iter().any(|folder| matches!(probe(folder), Ok(Probe::Served)))
}

/// Parses `12:03` as a whole minute of today, and a full timestamp as a point in time.
fn parse_period(text: &str, now: Time) -> Option<Period> {
    if let Some(at) = Time::parse(text.as_bytes()) {
        return Some(Period { from: at, to: at });
    }
    let (hour, minute) = text.split_once(':')?;
    let two_digits = |part: &str| {
        let fits = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| part.parse::<i8>().ok())?
    };
    let from = clock::today(two_digits(hour)?, two_digits(minute)?, now)?;
    Some(Period { from, to: (from + Span::minutes(1) - Span(1)).min(now) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_date_is_of_today() {
        let now = Clock::start().now().wall;
        let minute = parse_period("0:07", now).unwrap();
        assert_eq!(clock::WallClock::at(minute.from).to_string(), "0:07");
        assert!(parse_period("2026-11-20T12:03:00Z", now).is_some_and(|at| at.from == at.to));
        assert!(parse_period("2026-11-20T13:03:00+01:00", now).is_some());
        for wrong in ["", "12", "24:00", "12:60", "-1:00", "12:3:4", "noon", "+1:00"] {
            assert!(parse_period(wrong, now).is_none(), "{wrong}");
        }
    }
}
