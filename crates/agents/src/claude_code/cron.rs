//! How often a cron expression fires, where that is the same from one time to the next.

use pilotlight_core::scan::Text;
use pilotlight_core::time::Span;

/// The time between two of its times. `None` where they are not evenly spaced, or it is no expression.
pub(super) fn interval(Text(expression): Text<'_>) -> Option<Span> {
    let fields: Vec<&str> = std::str::from_utf8(expression).ok()?.split_whitespace().collect();
    let [minute, hour, "*", "*", weekday] = *fields.as_slice() else { return None };
    let one = |field: &str, most: u32| field.parse().is_ok_and(|n: u32| n <= most);
    let step = |field: &str, of: i64| match field {
        "*" => Some(1),
        field => field.strip_prefix("*/")?.parse().ok().filter(|n: &i64| *n > 0 && of % n == 0),
    };
    if weekday == "*" && hour == "*" && !one(minute, 59) {
        return step(minute, 60).map(Span::minutes);
    }
    match weekday {
        _ if !one(minute, 59) => None,
        "*" if one(hour, 23) => Some(Span::hours(24)),
        "*" => step(hour, 24).map(Span::hours),
        weekday if one(weekday, 7) && one(hour, 23) => Some(Span::hours(24 * 7)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_765_an_even_expression_tells_when_it_fires_again() {
        for (expression, minutes) in [
            ("* * * * *", Some(1)),
            ("*/5 * * * *", Some(5)),
            ("7 * * * *", Some(60)),
            ("7 */2 * * *", Some(120)),
            ("57 8 * * *", Some(24 * 60)),
            ("57 8 * * 1", Some(7 * 24 * 60)),
            ("*/7 * * * *", None),
            ("57 8 * * 1-5", None),
            ("57 8 1 * *", None),
            ("*/0 * * * *", None),
            ("99 * * * *", None),
            ("", None),
            ("* * * *", None),
        ] {
            assert_eq!(interval(Text(expression.as_bytes())), minutes.map(Span::minutes), "{expression}");
        }
        assert_eq!(interval(Text(b"\xff * * * *")), None);
    }
}
