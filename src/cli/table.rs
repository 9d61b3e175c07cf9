//! The table of sessions: the same in `status` and live.
//!
//! Status is told by word and by shape as well as by colour. Everything that a session wrote has been made fit to be shown
//! before it comes here; widths are counted in the columns that a terminal gives each character.

use super::color;
use crate::core::fleet::{Row, ShortIds, mark};
use crate::core::text::{counted, fit, plain};
use crate::core::time::Time;
use crate::core::verdict::Status;
use clap::ColorChoice;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a table is to look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Columns of the terminal; `None`: as wide as it needs.
    pub(super) width: Option<usize>,
    /// Lines of the terminal; `None`: as long as it needs.
    pub(super) height: Option<usize>,
    /// With colours.
    pub(super) colour: bool,
    /// With shapes beyond ASCII.
    pub(super) unicode: bool,
}

impl Style {
    /// What standard output can show, and the environment wants shown.
    pub(super) fn of_stdout(choice: ColorChoice) -> Self {
        use std::io::IsTerminal;
        let env = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let terminal = std::io::stdout().is_terminal();
        let size = terminal.then(crossterm::terminal::size).and_then(Result::ok).filter(|&(width, _)| width > 0);
        let locale =
            env("LC_ALL").or_else(|| env("LC_CTYPE")).or_else(|| env("LANG")).unwrap_or_default().to_lowercase();
        Self {
            width: size.map(|(width, _)| width.into()),
            height: size.map(|(_, height)| height.into()),
            colour: color::on_stdout(choice),
            unicode: cfg!(not(unix)) || !terminal || locale.contains("utf-8") || locale.contains("utf8"),
        }
    }
}

/// The colour of a status, as the parameters of an SGR sequence (ECMA-48): red, amber, blue, green, or dim.
const fn colour(status: Status) -> &'static str {
    match status {
        Status::Crashed | Status::Failed | Status::Stuck => "31",
        Status::NeedsPermission | Status::PermissionLost | Status::NeedsInput => "33",
        // Not blue, which many a dark terminal shows as good as black.
        Status::Working | Status::Finishing => "36",
        Status::Idle => "32",
        Status::Quiet | Status::Ended => "2",
    }
}

/// The names' column is at most this wide; the reason gets the rest. What tells names apart stands in front of any cut.
const NAME_WIDTH: usize = 36;
/// An id of Copilot's form is no longer; what is longer is a folder that was named by somebody else.
const ID_WIDTH: usize = 36;
/// The name's column is no narrower than this, where it is cut at all.
const NAME_LEAST: usize = 12;
/// A reason is never narrower: where the other columns leave less, it stands on a line of its own below them.
const REASON_WIDTH: usize = 30;
/// So far it is set in there.
const INDENT: &str = "    ";

/// The head of the columns, then the rows as they come, each on one line or on two. `ids` are all that a command may be given.
pub(super) fn lines(rows: &[Row], ids: &ShortIds<'_>, now: Time, style: Style) -> Vec<String> {
    let ages: Vec<_> = rows.iter().map(|row| row.age(now)).collect();
    let widest = |texts: &mut dyn Iterator<Item = usize>, least: usize| texts.fold(least, usize::max);
    let age_width = widest(&mut ages.iter().map(|age| age.width()), 3);
    let status_width = widest(&mut rows.iter().map(|row| row.status.name().len()), 6) + 2;
    let ids: Vec<_> = rows.iter().map(|row| plain(ids.of(&row.id), ID_WIDTH)).collect();
    let id_width = widest(&mut ids.iter().map(|id| id.width()), 2);
    let room = style.width.map(|width| width.saturating_sub(status_width + id_width + age_width + 6));
    let labels: Vec<_> = rows.iter().map(|row| row.label.cut(NAME_WIDTH)).collect();
    let widths = rows.iter().zip(&labels).map(|(row, label)| label.width() + 2 * usize::from(row.unseen));
    let name_width = widest(&mut widths.into_iter(), 7).min(NAME_WIDTH);
    let reasons: Vec<_> = rows.iter().map(|row| row.reason(now)).collect();
    let least = widest(&mut reasons.iter().map(|reason| reason.width()), 6).min(REASON_WIDTH);
    let beside = room.is_none_or(|room| room >= NAME_LEAST.min(name_width) + 2 + least);
    let left = room.map(|room| if beside { room - 2 - least } else { room.max(NAME_LEAST) });
    let name_width = left.map_or(name_width, |left| name_width.min(left));
    let reason_width = match style.width {
        Some(width) if !beside => width.saturating_sub(INDENT.len()),
        _ => room.map_or(usize::MAX, |room| room.saturating_sub(name_width + 2)),
    };
    let head = format!(
        "{}  {}  {}  {}{}",
        pad("STATUS", status_width),
        pad("ID", id_width),
        pad("SESSION", name_width),
        pad("AGE", age_width),
        if beside { "  REASON" } else { "" }
    );
    let mut lines = vec![paint(&fit(head.trim_end(), style.width.unwrap_or(usize::MAX)), "1", style)];
    for ((((row, age), id), label), reason) in rows.iter().zip(&ages).zip(&ids).zip(&labels).zip(&reasons) {
        let mark = shape(row.status, style.unicode);
        let status = paint(&pad(&format!("{mark} {}", row.status), status_width), colour(row.status), style);
        let unseen = match (row.unseen, style.unicode) {
            (false, _) => "",
            (true, true) => "• ",
            (true, false) => "* ",
        };
        let name = pad(&fit(&format!("{unseen}{label}"), name_width), name_width);
        let told = format!("{status}  {}  {name}  {}", pad(id, id_width), pad(age, age_width));
        let reason = fit(reason, reason_width);
        lines.push(match beside {
            true => format!("{told}  {reason}").trim_end().to_owned(),
            false => format!("{}\n{INDENT}{reason}", told.trim_end()),
        });
    }
    lines
}

/// As many rows as a height has room for, with the one at `chosen` among them, and how many are not seen; each row as one or two
/// lines.
pub(super) fn window(rows: &[String], chosen: Option<usize>, height: Option<usize>) -> Vec<String> {
    let tall = |row: &String| row.lines().count();
    let all: usize = rows.iter().map(tall).sum();
    let split = |rows: &[String]| rows.iter().flat_map(|row| row.lines().map(str::to_owned)).collect::<Vec<_>>();
    let Some(height) = height.filter(|height| all > *height) else { return split(rows) };
    let most = (height.saturating_sub(1) / rows.iter().map(tall).max().unwrap_or(1)).max(1);
    let from = chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(most));
    let to = (from + most).min(rows.len());
    let mut shown = split(&rows[from..to]);
    shown.push(format!("... and {}", counted(rows.len() - (to - from), "more session")));
    shown
}

/// When the age of some row will be worded otherwise.
pub(super) fn next_age(rows: &[Row], now: Time) -> Option<Time> {
    rows.iter().map(|row| row.next_age(now)).min()
}

/// The mark of a status, as the output can show it.
const fn shape(status: Status, unicode: bool) -> &'static str {
    let (mark, ascii) = mark(status);
    if unicode { mark } else { ascii }
}

fn paint(text: &str, sgr: &str, style: Style) -> String {
    if style.colour { format!("\x1b[{sgr}m{text}\x1b[0m") } else { text.to_owned() }
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Cuts a line to so many columns, leaving the sequences that paint it whole.
pub(super) fn fit_painted(line: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return line.to_owned() };
    let (mut out, mut used, mut painting) = (String::new(), 0, false);
    for c in line.chars() {
        painting |= c == '\x1b';
        if painting {
            out.push(c);
            painting = c != 'm';
            continue;
        }
        used += c.width().unwrap_or(0);
        if used <= width {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::fleet::{Background, Kind, Label, TurnShown};

    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed97280f";

    /// The lines, the session being the only one.
    fn lines(rows: &[Row], now: Time, style: Style) -> Vec<String> {
        super::lines(rows, &ShortIds::new([ID].into_iter()), now, style)
    }

    fn row(label: &str, status: Status, because: &str) -> Row {
        Row {
            id: ID.into(),
            name: label.into(),
            label: Label { who: label.into(), title: None },
            turn: None,
            ended_denied: false,
            gist: crate::core::gist::Gist::default(),
            looked_at: false,
            cwd: None,
            branch: None,
            kind: Kind::Terminal,
            status,
            since: Time(0),
            last_progress: Some(Time(0)),
            because: because.into(),
            unseen: false,
            owner: None,
            background: Background::default(),
            actions: Vec::new(),
            question: None,
        }
    }

    fn style(width: Option<usize>) -> Style {
        Style { width, height: None, colour: false, unicode: true }
    }

    #[test]
    fn a_table_fits_the_terminal() {
        let rows = [
            row(
                "Fix the parser of the configuration file, at last",
                Status::Working,
                "bash is open, 1 background agent",
            ),
            row("ファイルを直す", Status::NeedsPermission, "asks permission: shell"),
            row("x", Status::Stuck, &"very long ".repeat(50)),
        ];
        for width in 1..200 {
            for line in lines(&rows, Time(0), style(Some(width))) {
                for line in line.lines() {
                    // Below the width of status, age and a little of the name nothing fits, and nothing is hidden either.
                    assert!(line.width() <= width.max(46), "{width}: {line}");
                }
            }
        }
        // At 80 columns all of it is read on one line, with 30 columns for the reason; where there is less, that stands below.
        for width in [80, 120] {
            let told = lines(&rows, Time(0), style(Some(width)));
            assert!(
                told.iter().all(|line| line.lines().count() == 1 && !line.ends_with("bash is open, 1…")),
                "{told:#?}"
            );
            assert!(told[1].contains("bash is open, 1 background ag"), "{told:#?}");
        }
        let narrow = lines(&rows, Time(0), style(Some(60)));
        let told: Vec<_> = narrow[1].lines().collect();
        assert_eq!(
            told,
            ["▶ working           3653  Fix the parser of the config…  now", "    bash is open, 1 background agent"]
        );
        assert_eq!(
            lines(&rows, Time(0), style(None))[1],
            "▶ working           3653  Fix the parser of the configuration…  now  bash is open, 1 background agent"
        );
    }

    /// The age of the last sign of life says nothing of how long the turn has taken.
    #[test]
    fn case_149_a_long_turn_full_of_events_shows_how_long_it_has_taken() {
        let minute = 60_000;
        let now = Time(75 * minute);
        let turn = Some(TurnShown { since: Time(0), tools: 8, older: false });
        let long = Row { turn, last_progress: Some(now), ..row("api", Status::Working, "bash is open") };
        let told = &lines(std::slice::from_ref(&long), now, style(None))[1];
        assert!(told.ends_with("api      now  bash is open; 1 h 15 min, 8 tools"), "{told}");
        assert_eq!(next_age(&[long], now), Some(Time(76 * minute)), "it is redrawn when that is worded otherwise");
    }

    #[test]
    fn an_id_is_shown_as_far_as_it_names_one_session() {
        let others = ["36535f61-5c7b-4f09-a70b-000000000000", ID, "36535f60"];
        let ids = ShortIds::new(others.into_iter());
        let told = &super::lines(&[row("a", Status::Idle, "b")], &ids, Time(0), style(None))[1];
        assert_eq!(told, "✓ idle    36535f61-5c7b-4f09-a70b-2  a        now  b");
        assert_eq!((ids.of("36535f60"), ids.of("9"), ids.of("")), ("36535f60", "9", ""));
    }

    #[test]
    fn status_is_told_without_colour() {
        for status in Status::ALL {
            let told = &lines(&[row("a", status, "b")], Time(0), style(None))[1];
            assert!(told.starts_with(shape(status, true)) && told.contains(status.name()), "{told}");
        }
        let coloured = Style { colour: true, ..style(None) };
        assert!(lines(&[row("a", Status::Idle, "b")], Time(0), coloured)[1].starts_with("\x1b[32m✓ idle"));
    }

    #[test]
    fn what_does_not_fit_the_height_is_counted_and_the_chosen_row_is_seen() {
        let rows = |lines: usize| (0..10).map(|n| vec![n.to_string(); lines].join("\n")).collect::<Vec<_>>();
        assert_eq!(window(&rows(1), None, Some(10)).len(), 10);
        assert_eq!(window(&rows(1), None, Some(4)), ["0", "1", "2", "... and 7 more sessions"]);
        assert_eq!(window(&rows(1), Some(5), Some(4)), ["3", "4", "5", "... and 7 more sessions"]);
        assert_eq!(window(&rows(2), Some(9), Some(5)), ["8", "8", "9", "9", "... and 8 more sessions"]);
        assert_eq!(window(&rows(1), Some(9), Some(0)), ["9", "... and 9 more sessions"]);
    }
}
