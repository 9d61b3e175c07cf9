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
/// Narrower than this the reason is left out.
const REASON_WIDTH: usize = 12;

/// The rows as lines, sorted as they come; the first line heads the columns. `ids` are all that a command may be given.
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
    let name_width =
        room.map_or(name_width, |room| name_width.min(room.saturating_sub(REASON_WIDTH + 2).max(room.min(12))));
    let reason_width = room.map(|room| room.saturating_sub(name_width + 2));
    let head = format!(
        "{}  {}  {}  {}  REASON",
        pad("STATUS", status_width),
        pad("ID", id_width),
        pad("SESSION", name_width),
        pad("AGE", age_width)
    );
    let mut lines = vec![paint(&fit(&head, style.width.unwrap_or(usize::MAX)), "1", style)];
    for (((row, age), id), label) in rows.iter().zip(&ages).zip(&ids).zip(&labels) {
        let mark = shape(row.status, style.unicode);
        let status = paint(&pad(&format!("{mark} {}", row.status), status_width), colour(row.status), style);
        let unseen = if !row.unseen {
            ""
        } else if style.unicode {
            "• "
        } else {
            "* "
        };
        let name = pad(&fit(&format!("{unseen}{label}"), name_width), name_width);
        let mut line = format!("{status}  {}  {name}  {}", pad(id, id_width), pad(age, age_width));
        match reason_width {
            Some(width) if width < REASON_WIDTH => {}
            width => line += &format!("  {}", fit(&row.reason(now), width.unwrap_or(usize::MAX))),
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Cuts lines to the height of the terminal, saying how many are left out.
pub(super) fn cut(lines: &mut Vec<String>, height: Option<usize>) {
    if let Some(height) = height.filter(|&height| lines.len() > height && height > 0) {
        if height == 1 {
            return lines.truncate(1);
        }
        let left_out = lines.len() - (height - 1);
        lines.truncate(height - 1);
        lines.push(format!("... and {}", counted(left_out, "more line")));
    }
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
                // Below the width of status, age and a little of the name nothing fits, and nothing is hidden either.
                assert!(line.width() <= width.max(46), "{width}: {line}");
            }
        }
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
    fn what_does_not_fit_the_height_is_counted() {
        let mut lines: Vec<_> = (0..10).map(|n| n.to_string()).collect();
        cut(&mut lines, Some(4));
        assert_eq!(lines, ["0", "1", "2", "... and 7 more lines"]);
    }
}
