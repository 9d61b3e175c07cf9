//! Text for the user: durations, reasons, and text written by a session.

use super::story::Story;
use pilotlight_core::fleet::{About, Row, Session, distinguish};
use pilotlight_core::session::Observed;
use pilotlight_core::text::{NAME_MAX, counted, listed, plain};
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status::{self, Quiet, Stuck};
use serde_json::json;

#[test]
fn case_107a_durations_are_worded_in_the_unit_that_fits() {
    let worded = |seconds| Span::seconds(seconds).to_string();
    assert_eq!([30, 59, 60, 120, 600].map(worded), ["30 s", "59 s", "1 min", "2 min", "10 min"]);
    assert_eq!([0, 1, 61, 119, 3599].map(worded), ["0 s", "1 s", "61 s", "119 s", "59 min"]);
    assert_eq!(Span(-5).to_string(), "0 s");
}

/// In the unit that fits.
#[test]
fn case_107a_reasons_name_limits_of_any_length() {
    for (seconds, words) in [(30, "30 s"), (59, "59 s"), (60, "1 min"), (120, "2 min"), (600, "10 min")] {
        let mut story = Story::prompted();
        story.limits.fresh_quiet = Span::seconds(seconds);
        story.limits.fresh_stuck = Span::seconds(seconds * 100);
        story.says(i32::try_from(seconds).unwrap(), Quiet, &format!("silent {words},"));
        story.limits.fresh_stuck = story.limits.fresh_quiet;
        story.says(i32::try_from(seconds).unwrap(), Stuck, &format!("silent {words},"));
    }
}

/// A reason never claims more silence than there was, and never says "0 min".
#[test]
fn case_107a_reasons_never_exaggerate() {
    let story = Story::after_a_tool(0).round_end(0);
    for at in (1..20_000).step_by(7) {
        let because = story.verdict(at).because.to_string();
        assert!(!because.contains(" 0 min"), "{because}");
        if let Some(silent) = because.strip_prefix("silent ") {
            let (n, rest) = silent.split_once(' ').unwrap();
            let unit = match rest.split(',').next().unwrap() {
                "s" => 1,
                "min" => 60,
                "h" => 3600,
                other => panic!("unit {other}: {because}"),
            };
            assert!(n.parse::<i32>().unwrap() * unit <= at, "after {at} s: {because}");
        }
    }
}

#[test]
fn every_verdict_gives_a_reason() {
    let stories = [
        Story::new(),
        Story::cut(),
        Story::prompted(),
        Story::after_a_tool(1),
        Story::prompted().abort(1),
        Story::prompted().error(1),
        Story::prompted().event(1, "session.error", json!({})),
        Story::prompted().shutdown(1),
        Story::prompted().resume(1),
        Story::prompted().round_end(1),
        Story::prompted().answers(1, "Done."),
        Story::prompted().answer(1, "Done."),
        Story::prompted().compacts(1),
        Story::prompted().owner_gone(),
    ];
    for story in stories {
        for at in [0, 1, 3, 6, 70, 130, 700, 100_000, 1_000_000] {
            let verdict = story.verdict(at);
            assert!(!verdict.because.to_string().trim().is_empty(), "{}", verdict.status);
        }
    }
    for status in Status::ALL {
        assert_eq!(json!(status), json!(status.name()), "one name everywhere");
    }
}

#[test]
fn case_103_text_is_shown_as_one_bounded_plain_line() {
    assert_eq!(&*plain("<b>Fish</b> & chips", NAME_MAX), "<b>Fish</b> & chips");
    assert_eq!(&*plain("one\ntwo\r\n\tthree", NAME_MAX), "one two three");
    assert_eq!(&*plain("\n\n one \n", NAME_MAX), "one");
    let escape = plain("a\u{1b}[2J\u{1b}]0;owned\u{7}b\u{9b}31m", NAME_MAX);
    assert!(!escape.chars().any(char::is_control), "{escape:?}");
    let turned = plain("abc\u{202e}fed\u{202c}\u{200f}\u{2066}x\u{2069}\u{61c}", NAME_MAX);
    assert_eq!(&*turned, "abcfedx");
    assert!(
        !plain("a\u{2028}b\u{2029}c\u{85}d\0e\u{7f}f", NAME_MAX).chars().any(|c| c.is_control() || c == '\u{2028}')
    );
    assert_eq!(&*plain("Grüße 👩‍💻 مرحبا 日本語", NAME_MAX), "Grüße 👩‍💻 مرحبا 日本語");
}

/// Text of exactly the maximum length is not cut; a cut is marked.
#[test]
fn case_103_text_of_any_length_is_bounded() {
    for length in [NAME_MAX - 1, NAME_MAX] {
        let text = "é".repeat(length);
        assert_eq!(*plain(&text, NAME_MAX), *text);
    }
    for long in ["é".repeat(NAME_MAX + 1), "x".repeat(10_000), "é ".repeat(10_000), " ".repeat(10_000) + "x"] {
        let short = plain(&long, NAME_MAX);
        assert!(short.chars().count() <= NAME_MAX, "{short}");
        assert!(short.ends_with(['…', 'x']), "{short}");
    }
    for max in 0..6 {
        assert!(plain("a b c d e", max).chars().count() <= max.max(1), "{max}");
    }
}

const HOSTILE: &str = "\u{1b}[31mred\n\u{202e}der & <b>";

fn is_plain_line(text: &str) -> bool {
    text.chars().count() <= 4 * NAME_MAX
        && !text.chars().any(|c| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c))
}

fn row(id: &str, about: About) -> Row {
    let session = Session { id: id.into(), observed: Observed { about, ..Observed::default() }, ..Session::default() };
    session.row(Story::new().moment(0), &Story::new().limits).0
}

/// Whether the name is a title or a folder, and whatever distinguishes it.
#[test]
fn case_103_a_rows_name_is_one_bounded_plain_line() {
    let long = HOSTILE.repeat(1000);
    let titled = |text: &str| About { name: Some(text.into()), ..About::default() };
    let placed = |text: &str| About { cwd: Some(format!("/home/dev/{text}").into()), ..About::default() };
    let branched = |text: &str| About { name: Some("x".into()), branch: Some(text.into()), ..About::default() };
    for text in [HOSTILE, &long] {
        for about in [titled(text), placed(text), branched(text), About::default()] {
            let other = About { branch: Some("main".into()), cwd: Some("/".into()), ..about.clone() };
            let mut rows = [row(text, about.clone()), row("other", other)];
            for row in &rows {
                assert!(is_plain_line(&row.name), "{:?}", row.name);
            }
            distinguish(&mut rows);
            for row in &rows {
                assert!(is_plain_line(&row.name), "distinguished: {:?}", row.name);
            }
        }
    }
}

/// Whatever the log contains.
#[test]
fn case_103_a_reason_is_one_bounded_plain_line() {
    let long = HOSTILE.repeat(1000);
    for text in [HOSTILE, &long] {
        let error = json!({ "errorType": text, "message": text, "statusCode": 500 });
        let asked = json!({ "requestId": "r1", "permissionRequest": { "kind": text } });
        let stories = [
            Story::prompted().event(1, "session.error", error.clone()),
            Story::prompted().event(1, "session.error", error).owner_gone(),
            Story::prompted().event(1, "permission.requested", asked),
            Story::prompted().tool(1, "t1", text),
            Story::prompted().tool(1, "t1", text).tool(1, "t2", text).tool(1, "t3", text).owner_gone(),
            Story::prompted().tool(1, "t1", text).shutdown(1),
        ];
        for story in stories {
            let because = story.verdict(2).because.to_string();
            assert!(is_plain_line(&because), "{} characters: {because:?}", because.chars().count());
        }
    }
}

#[test]
fn lists_and_counts_are_worded() {
    assert_eq!(listed(&["bash", "view"]), "bash and view");
    assert_eq!(
        [counted(1, "background agent"), counted(2, "background agent")],
        ["1 background agent", "2 background agents"]
    );
}
