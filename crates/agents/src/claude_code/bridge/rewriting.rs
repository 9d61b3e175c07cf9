//! What Claude Code changes in a `settings.json` when its commands write it anew: it keeps the values, and neither their
//! form nor what its JSON cannot hold. Seen with 2.1.332.

use serde_json::Value;

/// What a rewriting loses of this text beyond its form: nothing, as a rule.
pub(super) fn losses(text: &str) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let outside = outside_strings(text);
    let repeated =
        (outside.matches(':').count() > keys(&value)).then(|| "of duplicate keys, only the last is kept".to_owned());
    let numbers = outside.split(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c));
    let rounded = numbers.filter(|number| number.parse::<f64>().is_ok_and(|value| digits(number) != shown(value)));
    repeated.into_iter().chain(rounded.map(|number| format!("the number {number} is rounded"))).collect()
}

/// A text without its strings.
fn outside_strings(text: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let outside = |c: char| {
        let was_in_string = in_string;
        match c {
            '"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = was_in_string && c == '\\' && !escaped;
        if was_in_string || in_string { ' ' } else { c }
    };
    text.chars().map(outside).collect()
}

fn keys(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.len() + map.values().map(keys).sum::<usize>(),
        Value::Array(items) => items.iter().map(keys).sum(),
        _ => 0,
    }
}

/// The significant digits of a number as Claude Code writes it.
fn shown(value: f64) -> String {
    digits(&format!("{value:e}"))
}

/// The significant digits of a number.
fn digits(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_known_before_it_is() {
        let nothing: [&str; 6] = [
            "{}",
            "",
            "{ // a comment: Claude Code refuses it",
            r#"{"a": 1.50, "b": 1e3, "c": [0, -0.10, 9007199254740991], "d": "12345678901234567890:\":\\", "e": null}"#,
            r#"{"//": "a comment by another tool: twice", "a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}"#,
            r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#,
        ];
        for text in nothing {
            assert_eq!(losses(text), Vec::<String>::new(), "{text}");
        }
        let twice = "of duplicate keys, only the last is kept";
        assert_eq!(losses(r#"{"a": 1, "b": {"c": 1, "c": 2}}"#), [twice]);
        assert_eq!(losses(r#"{"a": 12345678901234567890}"#), ["the number 12345678901234567890 is rounded"]);
    }
}
