use super::{Line, LogLevel, Piece, captured, cause, private};
use pilotlight_core::time::Span;
use proptest::prelude::*;
use std::io;

/// The public pieces of a line, with a dot for each private one.
fn public(line: &Line<'_>) -> String {
    let shown = |piece: &Piece<'_>| match piece {
        Piece::Public(text) => (*text).to_owned(),
        Piece::Private(_) => "·".to_owned(),
    };
    line.pieces.iter().map(shown).collect()
}

#[test]
fn values_are_public_by_their_type_or_marked() {
    let error = anyhow::Error::from(io::Error::from(io::ErrorKind::NotFound)).context("cannot read /home/alice");
    let log = captured(|| {
        let is_lit = true;
        super::warn!(
            tag = "menu",
            session = private(&"id"),
            lit = is_lit,
            "{} of {} for {}",
            3,
            "these",
            Span::hours(2)
        );
        super::error!("{} is not read: {}", private(&"/home/alice"), cause(error.as_ref()));
        super::info!("nothing is inserted");
    });
    let lines: Vec<_> = log.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(
        lines,
        [
            " WARN: 3 of these for 2 h tag=menu session=«id» lit=true",
            "ERROR: «/home/alice» is not read: «cannot read /home/alice: entity not found» (NotFound)",
            " INFO: nothing is inserted",
        ]
    );
    let parsed = log.lines().map(|line| Line::parse(line).unwrap());
    let shown: Vec<_> = parsed.map(|line| (line.level, public(&line))).collect();
    assert_eq!(shown[0], ("WARN", "3 of these for 2 h tag=menu session=· lit=true".into()));
    assert_eq!(shown[1], ("ERROR", "· is not read: · (NotFound)".into()));
}

#[test]
fn what_a_library_logs_is_private() {
    let log = captured(
        || tracing::event!(target: "zbus", tracing::Level::ERROR, path = "/home/alice", "the bus of alice is gone"),
    );
    assert_eq!(public(&Line::parse(log.trim_end()).unwrap()), "·", "{log}");
    assert!(log.ends_with("«zbus: the bus of alice is gone path=\"/home/alice\"»\n"), "{log}");
}

#[test]
fn a_line_that_is_not_as_we_write_it_has_no_public_pieces() {
    let at = "2026-11-20T18:07:25.003Z";
    for (line, why) in [
        (format!("{at}  WARN the menu cannot be shown: hunter2"), "an older version marked no values"),
        (format!("{at}  WARN the menu: «hunter2»"), "the same with marks"),
        (format!("{at}  WARN: the menu: «hunter2"), "its end is missing"),
        (format!("{at}  WARN: hunter2» the menu"), "its middle is missing"),
        (format!("{at}  WARN: «a «hunter2» b»"), "marks within marks"),
        (format!("{at}  WARN: «hunter2 {at}  WARN: the menu: «x»"), "half a line, and another"),
        (format!("{at}  WARN: the menu\u{202e}"), "we write no such character"),
        (format!("{at} FATAL: the menu"), "there is no such level"),
        ("hunter2  WARN: the menu".into(), "no time"),
        (format!("«{at}»  WARN: the menu"), "no time"),
        (at.into(), "nothing else"),
        (String::new(), "nothing"),
    ] {
        assert_eq!(Line::parse(&line), None, "{why}: {line}");
    }
    assert!(Line::parse(&format!("{at}  WARN: the menu cannot be shown: «»")).is_some());
}

/// What may do harm: marks, line ends, sequences for terminals, and lines that look like ours.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("«".to_owned()),
        Just("»".to_owned()),
        Just("\n".to_owned()),
        Just("\r\u{85}\u{2028}\u{2029}".to_owned()),
        Just("\u{1b}[31m".to_owned()),
        Just("\u{202e}\u{200b}".to_owned()),
        Just("2026-11-20T18:07:25.003Z  WARN: ".to_owned()),
        Just(" session=«".to_owned()),
        Just("{}".to_owned()),
        Just("\\u{bb}".to_owned()),
        any::<char>().prop_map(String::from),
        "SECRET[A-Z]{0,4}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Whether a character ends a line somewhere, or changes what a terminal or a reader sees of the others.
fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202e}' | '\u{200b}')
}

proptest! {
    #[test]
    fn no_private_value_gets_out_of_its_marks(values in prop::array::uniform3(hostile()), level in 0..LogLevel::ALL.len()) {
        let [first, second, third] = &values;
        let error = io::Error::other(third.as_str());
        let log = captured(|| match LogLevel::ALL[level] {
            LogLevel::Error => super::error!(session = private(second), "{} and {}", private(first), cause(&error)),
            LogLevel::Warn => super::warn!(session = private(second), "{} and {}", private(first), cause(&error)),
            LogLevel::Info => super::info!(session = private(second), "{} and {}", private(first), cause(&error)),
            LogLevel::Debug => super::debug!(session = private(second), "{} and {}", private(first), cause(&error)),
        });
        let written = log.strip_suffix('\n').unwrap();
        prop_assert!(!written.contains(is_harmful), "{:?}", written);
        let line = Line::parse(written).unwrap();
        prop_assert_eq!(public(&line), "· and · (Other) session=·");
        // However it is cut or joined, what is left has no more.
        for cut in log.char_indices().map(|(at, _)| at) {
            for piece in [log[..cut].to_owned(), log[cut..].to_owned(), format!("{}{log}", &log[..cut])] {
                for line in piece.lines().filter_map(Line::parse) {
                    prop_assert!(!public(&line).contains("SECRET"), "{}", piece);
                }
            }
        }
    }

    #[test]
    fn what_is_read_is_never_more_than_there_is(text in hostile()) {
        for line in text.lines().filter_map(Line::parse) {
            let length: usize = line.pieces.iter().map(|piece| piece.text().len()).sum();
            prop_assert!(length <= text.len());
        }
    }
}
