//! Times of day, as their user tells them.

use crate::time::{Span, Time};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// How far away a day is at most that is told without its year.
const SAME_YEAR: Span = Span::hours(24 * 300);

/// A time as people say it: `22:17` on the day that it is said, else `30 Nov 22:17`, or `30 Nov 2027 22:17` where it could be
/// taken for another year's. `offset`: how far their clock is ahead of UTC.
pub(crate) fn clock(at: Time, now: Time, offset: Span) -> String {
    let (local, today) = ((at + offset).to_string(), (now + offset).to_string());
    let parts = || {
        let (date, rest) = local.split_once('T')?;
        let (year, month_and_day) = date.split_once('-')?;
        let (month, day) = month_and_day.split_once('-')?;
        let month = MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
        let time = rest.get(..5)?;
        let time = time.strip_prefix('0').unwrap_or(time);
        let (day, is_far) = (day.trim_start_matches('0'), (at - now).max(now - at) > SAME_YEAR);
        Some(match today.starts_with(date) {
            true => time.to_owned(),
            false if is_far => format!("{day} {month} {year} {time}"),
            false => format!("{day} {month} {time}"),
        })
    };
    parts().unwrap_or_else(|| local.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_by_its_users_clock_and_with_its_day_if_that_is_another() {
        let time = |text: &str| Time::parse(text.as_bytes()).unwrap();
        let (at, now) = (time("2026-11-30T22:17:30.000Z"), time("2026-11-30T09:00:00.000Z"));
        assert_eq!(clock(at, now, Span::ZERO), "22:17");
        assert_eq!(clock(at, now, Span::hours(2)), "1 Dec 0:17");
        assert_eq!(clock(at, now, Span::hours(-14)), "30 Nov 8:17", "it is the day before");
        assert_eq!(clock(now, at, Span::ZERO), "9:00");
        assert_eq!(clock(now + Span::hours(24 * 366), now, Span::ZERO), "1 Dec 2027 9:00");
        assert_eq!(clock(now - Span::hours(24 * 366), now, Span::ZERO), "29 Nov 2025 9:00");
        assert_eq!(clock(now + Span::hours(24 * 40), now, Span::ZERO), "9 Jan 9:00");
        assert_eq!(clock(Time(i64::MAX), now, Span::ZERO), Time(i64::MAX).to_string());
    }
}
