//! What the live table shows in its own place: all that is known of a session, and what the keys do.

use super::super::explain::{NAME_WIDTH, Refusals, page};
use super::super::table::Style;
use super::selection::{ACTING, offered, packed};
use crate::core::fleet::{Row, Session};
use crate::core::limits::Limits;
use crate::core::text::{counted, fit, wrap};
use crate::core::time::Moment;

/// What is on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Screen {
    /// The table.
    #[default]
    Table,
    /// All that is known of the selected session.
    Details {
        /// Whether each refusal is explained.
        refusals: bool,
        /// The number of lines scrolled past.
        from: usize,
    },
    /// What the keys do.
    Help,
}

/// The narrowest column of values that stands beside the names. Below that, values come under their names.
const VALUE_MIN: usize = 24;

/// All that is known of a session, in the lines of a terminal: what does not fit can be scrolled to, from `from` on.
/// Corrects `from` if nothing is there.
pub(super) fn details(
    (session, row): (&Session, &Row),
    now: Moment,
    limits: &Limits,
    (refusals, from): (bool, &mut usize),
    style: Style,
) -> Vec<String> {
    let refusals = if refusals { Refusals::Explained } else { Refusals::Named };
    let page = page(session, &row.label, now, limits, refusals);
    let lines: Vec<_> = page.lines().flat_map(|line| folded(line, style.width)).collect();
    let more = if refusals == Refusals::Named { "m why not" } else { "m less" };
    let own = [more, "Enter back", "j/k scroll", "? help", "q quit"].map(str::to_owned);
    let keys = packed(offered(row).chain(own), style);
    let room = style.height.map_or(usize::MAX, |height| height.saturating_sub(keys.len() + 1)).max(1);
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
fn folded(line: &str, width: Option<usize>) -> Vec<String> {
    let (name, value) = line.split_at_checked(NAME_WIDTH).unwrap_or((line, ""));
    let Some(width) = width else { return vec![line.to_owned()] };
    if width < NAME_WIDTH + VALUE_MIN {
        let value = wrap(value, width.saturating_sub(2).max(1)).into_iter().map(|line| format!("  {line}"));
        return std::iter::once(fit(name.trim_end(), width)).chain(value).collect();
    }
    let values = wrap(value, width - NAME_WIDTH).into_iter().enumerate();
    values.map(|(at, value)| format!("{:NAME_WIDTH$}{value}", if at == 0 { name } else { "" })).collect()
}

/// What the keys do.
pub(super) fn help(style: Style) -> Vec<String> {
    let others = [
        ("Enter", "show all that is known of the selected session; again: back"),
        ("m", "there: say why some actions are not possible"),
        ("up, down, k, j", "choose a session; there: scroll"),
        ("?", "this help; again: back"),
        ("q", "quit"),
    ];
    let acting = ACTING.map(|(_, key, does)| (key, does));
    let keys = acting
        .into_iter()
        .chain(others)
        .flat_map(|(key, does)| folded(&format!("{key:<NAME_WIDTH$}{does}"), style.width));
    let about = "A key acts on the session that is marked, if that action is possible now.";
    let about = wrap(about, style.width.unwrap_or(usize::MAX));
    ["Keys".to_owned(), String::new()].into_iter().chain(keys).chain([String::new()]).chain(about).collect()
}

#[cfg(test)]
mod tests {
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
            for refusals in [false, true] {
                let mut seen = String::new();
                let mut from = 0;
                for step in 0..100 {
                    from = step;
                    let lines = details((&session, &row), now, &limits, (refusals, &mut from), style(width, height));
                    assert!(lines.len() <= height && lines.iter().all(|line| line.width() <= width), "{lines:#?}");
                    assert!(lines.last().unwrap().contains("q quit"), "{lines:#?}");
                    seen += &lines.join("\n");
                }
                assert!(from < 100 && seen.contains("session") && seen.contains("detach"), "{seen}");
                assert_eq!(seen.contains("refused:"), refusals, "{seen}");
            }
        }
        let mut from = 7;
        let whole = details((&session, &row), now, &limits, (false, &mut from), style(80, 24));
        assert_eq!(from, 0, "nothing to scroll");
        assert!(whole.iter().any(|line| line.starts_with("not possible    approve, deny")), "{whole:#?}");
    }

    #[test]
    fn case_226_the_help_names_every_key_and_fits() {
        for (width, height) in [(80, 24), (40, 40)] {
            let lines = help(style(width, height));
            assert!(lines.len() <= height && lines.iter().all(|line| line.width() <= width), "{lines:#?}");
            for key in ["a  ", "n  ", "o  ", "q  "] {
                assert!(lines.iter().any(|line| line.starts_with(key.trim_end())), "{key}: {lines:#?}");
            }
        }
    }
}
