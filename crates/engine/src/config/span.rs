//! Spans of time as the config writes them: `2m`, `600s`, `1h30m`, `500ms`, `1d`; spaces between the parts do not
//! matter.

use pilotlight_core::time::Span;

/// The units, largest first, each with its length in milliseconds.
const UNITS: [(&str, i64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// The longest span that can be set, 100 years: "never" for every purpose, and far from where sums of times overflow.
const LONGEST: Span = Span::hours(24 * 36_500);

/// Reads whole numbers, each followed by its unit, larger units first and each at most once. The result is positive and
/// at most [`LONGEST`]. `Err` says what is wrong with the text, worded to follow it: "has an unknown unit".
pub(super) fn parse(text: &str) -> Result<Span, &'static str> {
    checked(parse_or_zero(text)?)
}

/// The same for a command, to which `0s` means at once.
pub fn parse_or_zero(text: &str) -> Result<Span, &'static str> {
    let mut rest = text.trim();
    let (mut total, mut units) = (0i64, UNITS.as_slice());
    if rest.is_empty() {
        return Err("is empty");
    }
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |c| c.is_ascii_digit());
        let (unit, after) = split_while(after.trim_start(), |c| c.is_ascii_alphabetic());
        let unit = if unit == "min" { "m" } else { unit };
        if number.is_empty() {
            return Err("is not a number with a unit");
        }
        if unit.is_empty() {
            return Err("lacks a unit (ms, s, m, h or d)");
        }
        if !UNITS.iter().any(|&(name, _)| name == unit) {
            return Err("has an unknown unit (known are ms, s, m, h and d)");
        }
        let Some(at) = units.iter().position(|&(name, _)| name == unit) else {
            return Err("must have the larger unit first, and each once");
        };
        let number = number.parse::<i64>().ok().and_then(|number| number.checked_mul(units[at].1));
        total = number.and_then(|number| total.checked_add(number)).ok_or(TOO_LONG)?;
        units = &units[at + 1..];
        rest = after.trim_start();
    }
    if total == 0 { Ok(Span::ZERO) } else { checked(Span(total)) }
}

fn split_while(text: &str, belongs: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

const TOO_LONG: &str = "is longer than 36500d";

/// The span of an integer in the file, which counts seconds; `None` is one that is too large.
pub(super) fn of_seconds(seconds: Option<i64>) -> Result<Span, &'static str> {
    checked(Span(seconds.and_then(|n| n.checked_mul(1000)).ok_or(TOO_LONG)?))
}

fn checked(span: Span) -> Result<Span, &'static str> {
    match span {
        Span(..=0) => Err("is not positive"),
        span if span > LONGEST => Err(TOO_LONG),
        span => Ok(span),
    }
}

/// The text that [`parse`] reads as `span`: exact, in the largest units that fit.
pub(super) fn text(span: Span) -> String {
    let (mut rest, mut out) = (span.0, String::new());
    for (name, length) in UNITS {
        if rest >= length {
            out += &format!("{}{name}", rest / length);
            rest %= length;
        }
    }
    if out.is_empty() { "0s".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_are_read() {
        for (text, span) in [
            ("2m", Span::minutes(2)),
            ("600s", Span::seconds(600)),
            ("1h30m", Span::minutes(90)),
            ("500ms", Span(500)),
            ("1d", Span::hours(24)),
            ("1d2h3m4s5ms", Span(93_784_005)),
            ("90m", Span::minutes(90)),
            (" 60 s ", Span::seconds(60)),
            ("1h 30 m", Span::minutes(90)),
            ("36500d", LONGEST),
        ] {
            assert_eq!(parse(text), Ok(span), "{text}");
        }
        assert_eq!(of_seconds(Some(90)), Ok(Span::seconds(90)));
    }

    #[test]
    fn a_text_that_is_no_span_says_why() {
        for (text, why) in [
            ("", "is empty"),
            ("  ", "is empty"),
            ("soon", "is not a number with a unit"),
            ("-2m", "is not a number with a unit"),
            ("+2m", "is not a number with a unit"),
            ("1.5h", "lacks a unit (ms, s, m, h or d)"),
            ("90", "lacks a unit (ms, s, m, h or d)"),
            ("1h30", "lacks a unit (ms, s, m, h or d)"),
            ("2weeks", "has an unknown unit (known are ms, s, m, h and d)"),
            ("2M", "has an unknown unit (known are ms, s, m, h and d)"),
            ("30m1h", "must have the larger unit first, and each once"),
            ("1m1m", "must have the larger unit first, and each once"),
            ("1h, 30m", "is not a number with a unit"),
            ("0s", "is not positive"),
            ("0d0ms", "is not positive"),
            ("36501d", TOO_LONG),
            ("99999999999999999999s", TOO_LONG),
            ("9223372036854775807d", TOO_LONG),
            ("٣s", "is not a number with a unit"),
        ] {
            assert_eq!(parse(text), Err(why), "{text}");
            assert_eq!(parse_or_zero(text).err(), Some(why).filter(|why| *why != "is not positive"), "{text}");
        }
        assert_eq!(of_seconds(Some(0)), Err("is not positive"));
        assert_eq!(of_seconds(Some(-5)), Err("is not positive"));
        assert_eq!(of_seconds(Some(i64::MAX)), Err(TOO_LONG));
        assert_eq!(of_seconds(None), Err(TOO_LONG));
    }

    #[test]
    fn spans_are_written_in_the_largest_units() {
        let written = [60_000, 600_000, 5_400_000, 86_400_000, 90_000_000, 500, 1500, 0].map(|ms| text(Span(ms)));
        assert_eq!(written, ["1m", "10m", "1h30m", "1d", "1d1h", "500ms", "1s500ms", "0s"]);
    }

    proptest! {
        #[test]
        fn a_written_span_is_read_back(ms in 1..=LONGEST.0) {
            prop_assert_eq!(parse(&text(Span(ms))), Ok(Span(ms)));
        }

        #[test]
        fn no_text_panics(text in "[0-9dhms .\\PC]{0,40}") {
            let _ = parse(&text);
        }
    }
}
