//! What the live table shows in its own place: all that is known of a session, and what the keys do.

use super::super::explain::{Line, NAME_WIDTH, Refusals, Shows, page};
use super::super::table::{Style, UNSEEN, mark_of};
use super::SELECTED;
use super::selection::{ACTING, offered, packed};
use pilotlight_core::fleet::{NEARLY_FULL, Row, Session};
use pilotlight_core::limits::Limits;
use pilotlight_core::text::{counted, fit, wrap};
use pilotlight_core::time::Moment;

/// What is on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Screen {
    #[default]
    Table,
    /// All that is known of the selected session.
    Details {
        /// Whether everything is shown in full, with the reason of each refusal.
        all: bool,
        /// The number of lines scrolled past.
        from: usize,
    },
    /// What the keys do, from this line on.
    Help(usize),
}

/// The narrowest column of values that stands beside the names. Below that, values come under their names.
const VALUE_MIN: usize = 24;

/// All that is known of a session, in the lines of a terminal. Unless `all` is asked for, refusals are only named, and if
/// the page does not fit, values are cut to a line and the least important ones left out. What still does not fit can be
/// scrolled to, from `from` on. Corrects `from` if nothing is there.
pub(super) fn details(
    (session, row, bridged): (&Session, &Row, &[&str]),
    now: Moment,
    limits: &Limits,
    (all, last_message, from): (bool, bool, &mut usize),
    style: Style,
) -> Vec<String> {
    let refusals = if all { Refusals::Explained } else { Refusals::Named };
    let page = page(session, &row.label, now, limits, Shows { refusals, last_message });
    let own = [if all { "m less" } else { "m more" }, "Esc back", "j/k scroll", "? help"];
    let keys = packed(offered(row, bridged).chain(own.map(str::to_owned)), style);
    let mut lines: Vec<_> = page.0.iter().flat_map(|line| folded(line.name, &line.value, style.width)).collect();
    let room = room(&keys, style);
    if !all && lines.len() > room {
        lines = shortened(page.0, room, style.width);
    }
    scrolled(&lines, keys, from, room)
}

/// How many lines there are above the keys and an empty line.
fn room(keys: &[String], style: Style) -> usize {
    style.height.map_or(usize::MAX, |height| height.saturating_sub(keys.len() + 1)).max(1)
}

/// The most important of these lines of a name and a value, each in one line of the terminal where that has the width.
fn shortened(mut lines: Vec<Line>, room: usize, width: Option<usize>) -> Vec<String> {
    let mut lesser: Vec<_> = lines.iter().filter_map(|line| line.lesser).collect();
    lesser.sort_unstable();
    for first in lesser {
        if lines.len() > room {
            lines.retain(|line| line.lesser != Some(first));
        }
    }
    match width.filter(|width| *width >= NAME_WIDTH + VALUE_MIN) {
        Some(width) => {
            let line = |Line { name, value, .. }| fit(&format!("{name:NAME_WIDTH$}{value}"), width);
            lines.into_iter().map(line).collect()
        }
        None => lines.iter().flat_map(|line| folded(line.name, &line.value, width)).collect(),
    }
}

/// The part of these lines from `from` on that fits the room, and the keys. Corrects `from` if nothing is there.
fn scrolled(lines: &[String], keys: Vec<String>, from: &mut usize, room: usize) -> Vec<String> {
    *from = (*from).min(lines.len().saturating_sub(room.saturating_sub(1)));
    if lines.len() <= room {
        *from = 0;
    }
    let shown = if *from == 0 && lines.len() <= room { room } else { room - 1 };
    let mut out: Vec<_> = lines.iter().skip(*from).take(shown).cloned().collect();
    let hidden = lines.len().saturating_sub(*from + out.len());
    if shown < room {
        let below = if hidden > 0 { format!("... and {}", counted(hidden, "more line")) } else { "(end)".into() };
        out.push(below);
    }
    out.push(String::new());
    out.extend(keys);
    out
}

/// A line of a name and a value, wrapped at words.
fn folded(name: &str, value: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return vec![format!("{name:NAME_WIDTH$}{value}")] };
    if width < NAME_WIDTH + VALUE_MIN {
        let value = wrap(value, width.saturating_sub(2).max(1)).into_iter().map(|line| format!("  {line}"));
        return std::iter::once(fit(name, width)).chain(value).collect();
    }
    let values = wrap(value, width - NAME_WIDTH).into_iter().enumerate();
    values.map(|(at, value)| format!("{:NAME_WIDTH$}{value}", if at == 0 { name } else { "" })).collect()
}

/// What the keys do, from line `from` on. Corrects `from` if nothing is there.
pub(super) fn help(from: &mut usize, style: Style) -> Vec<String> {
    let others = [
        ("t", "try again to reach other machines"),
        ("Enter", "explain it: show its details; again: go back"),
        ("m", "in the details: show all, and why an action is not possible"),
        ("up, down, k, j", "select a session; in details and help: scroll"),
        ("?", "show this help; press again to go back"),
        ("q", "quit; in details and help: go back, like Esc"),
    ];
    let mark = |(mark, means)| (mark_of(mark, style.unicode).trim_end(), means);
    let selected = mark((SELECTED, "the selected session, which the keys act on"));
    let marks = [
        mark((UNSEEN, "a session that finished or asked since you last looked")),
        mark((NEARLY_FULL, "a session that has used more than 90 % of its context")),
        ("AGE", "how long ago the session last did something"),
        ("set aside", "failed or crashed, and you have looked"),
    ];
    let acting = ACTING.map(|(_, key, does)| (key, does));
    let folded = |(key, does)| folded(key, does, style.width);
    let keys = std::iter::once(selected).chain(acting).chain(others).flat_map(folded);
    let lines: Vec<_> = keys.chain([String::new()]).chain(marks.into_iter().flat_map(folded)).collect();
    let own = packed(["Esc back", "j/k scroll"].map(str::to_owned), style);
    let room = room(&own, style);
    scrolled(&lines, own, from, room)
}

#[cfg(test)]
mod tests {
    use super::super::super::explain::Lesser;
    use super::*;
    use unicode_width::UnicodeWidthStr;

    fn style(width: usize, height: usize) -> Style {
        Style { width: Some(width), height: Some(height), colour: false, unicode: true }
    }

    #[test]
    fn case_226_details_fit_the_terminal_and_can_be_scrolled() {
        let session = Session { id: "36535f61-5c7b-4f09-a70b-2f8aed97280f".into(), ..Session::default() };
        let (now, limits) = (Moment::default(), Limits::default());
        let row = session.row(now, &limits).0;
        for (width, height) in [(80, 24), (120, 40), (250, 60), (40, 12)] {
            for all in [false, true] {
                let mut seen = String::new();
                let mut from = 0;
                for step in 0..100 {
                    from = step;
                    let lines =
                        details((&session, &row, &[]), now, &limits, (all, true, &mut from), style(width, height));
                    assert!(lines.len() <= height && lines.iter().all(|line| line.width() <= width), "{lines:#?}");
                    assert!(lines.last().unwrap().contains("? help"), "{lines:#?}");
                    seen += &lines.join("\n");
                }
                assert!(from < 100 && seen.contains("session") && seen.contains("not possible") != all, "{seen}");
                assert_eq!(seen.contains("refused —") && seen.contains("detach"), all, "{seen}");
            }
        }
        let mut from = 7;
        let whole = details((&session, &row, &[]), now, &limits, (false, true, &mut from), style(80, 24));
        assert_eq!(from, 0, "nothing to scroll");
        assert!(whole.iter().any(|line| line.starts_with("not possible    approve, deny")), "{whole:#?}");
    }

    /// Every line that a page can have, and each longer than the terminal is wide.
    #[test]
    fn case_231_the_most_important_details_of_a_busy_session_fit_24_lines_without_scrolling() {
        let long = "a long value, ".repeat(20);
        let line = |(name, lesser)| Line { name, value: long.as_str().into(), lesser };
        let own = ["session", "name", "status", "because", "last seen", "owner", "bridge", "folder", "turn"];
        let more = ["open tool", "open tool", "asks permission", "background", "approve", "deny", "stop", "end"];
        let lesser = [
            ("limits", Lesser::Limits),
            ("changes", Lesser::Changes),
            ("log", Lesser::Log),
            ("context", Lesser::Context),
            ("branch", Lesser::Branch),
            ("model", Lesser::Model),
            ("force-quit", Lesser::ForceQuit),
            ("let-answer", Lesser::LetAnswer),
            ("detach", Lesser::Detach),
        ];
        let kept = own.iter().chain(&more).chain(&["not possible"]).map(|name| (*name, None));
        let page: Vec<_> = kept.chain(lesser.map(|(name, lesser)| (name, Some(lesser)))).map(line).collect();
        let lines = shortened(page.clone(), 22, Some(80));
        assert!(lines.len() <= 22 && lines.iter().all(|line| line.width() <= 80), "{lines:#?}");
        for name in own.iter().chain(&more).chain(&["not possible"]) {
            assert!(lines.iter().any(|line| line.starts_with(name)), "{name}: {lines:#?}");
        }
        assert!(lines.iter().any(|line| line.starts_with("limits")), "no more is left out than must be: {lines:#?}");
        let narrow = shortened(page, 10, Some(39));
        assert!(narrow.iter().all(|line| line.width() <= 39), "{narrow:#?}");
    }

    #[test]
    fn case_226_the_help_names_every_key_and_fits() {
        for (width, height) in [(80, 24), (40, 40), (40, 12), (30, 8)] {
            let (mut seen, mut from) = (Vec::new(), 0);
            for step in 0..100 {
                from = step;
                let lines = help(&mut from, style(width, height));
                assert!(lines.len() <= height && lines.iter().all(|line| line.width() <= width), "{lines:#?}");
                seen.extend(lines);
            }
            assert!(height < 24 || from == 0, "nothing to scroll");
            for key in ["a", "n", "o", "q", "›", "•", "◕"] {
                assert!(seen.iter().any(|line| line.starts_with(key)), "{key}: {seen:#?}");
            }
        }
    }
}
