//! The table of sessions, shared by `status` and `live`.
//!
//! A status is shown by word and shape as well as by colour. Text from sessions is sanitized before it gets here.
//! Widths are in terminal columns.

use super::charset::{columns, has_unicode_stdout};
use super::color;
use clap::ColorChoice;
use pilotlight_core::fleet::{Row, ShortIds};
use pilotlight_core::text::{counted, fit, plain};
use pilotlight_core::time::Time;
use pilotlight_core::verdict::Status;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The style of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Columns of the terminal; `None` for no limit.
    pub(super) width: Option<usize>,
    /// Lines of the terminal; `None` for no limit.
    pub(super) height: Option<usize>,
    pub(super) colour: bool,
    /// Whether marks may be beyond ASCII.
    pub(super) unicode: bool,
}

impl Style {
    /// The style that suits standard output and the environment.
    pub(super) fn of_stdout(choice: ColorChoice) -> Self {
        use std::io::IsTerminal;
        let terminal = std::io::stdout().is_terminal();
        let size = terminal.then(crossterm::terminal::size).and_then(Result::ok).filter(|&(width, _)| width > 0);
        Self {
            width: size.map(|(width, _)| width.into()),
            height: size.map(|(_, height)| height.into()),
            colour: color::on_stdout(choice),
            unicode: has_unicode_stdout(),
        }
    }
}

/// The colour of a status, as the parameter of an SGR sequence (ECMA-48): red, yellow, cyan, green, or dim.
const fn colour(status: Status) -> &'static str {
    match status {
        Status::Crashed | Status::Failed | Status::Stuck => "31",
        Status::NeedsPermission | Status::PermissionLost | Status::NeedsInput => "33",
        // Not blue, which is hard to read on many dark terminals.
        Status::Working | Status::Finishing => "36",
        Status::Idle => "32",
        Status::Quiet | Status::Ended => "2",
    }
}

/// Maximum width of the name column, unless half of the room that it shares with the reason is more. Names that are cut
/// still differ before the cut.
const NAME_WIDTH: usize = 36;
/// Maximum width of the id column: the length of a UUID, the form of Copilot's ids.
const ID_WIDTH: usize = 36;
/// Minimum width of the column of ages, so that the others do not move when seconds become minutes.
const AGE_WIDTH: usize = "105 min".len();
/// Minimum width of the name column, if names are cut.
const NAME_MIN_WIDTH: usize = 12;
/// What stands before the name of a session that the user has not looked at since, and the same in ASCII.
pub(super) const UNSEEN: (&str, &str) = ("• ", "* ");
/// Indentation of a reason on a line of its own, where the other columns leave too little for it.
const INDENT: &str = "    ";

/// The heading, then the rows in the given order, each on one line or two. `ids` are all the ids that a command
/// accepts.
pub(super) fn lines(rows: &[Row], ids: &ShortIds<'_>, now: Time, style: Style) -> Vec<String> {
    let ages: Vec<_> = rows.iter().map(|row| row.age(now).unwrap_or_else(|| "-".into())).collect();
    let widest = |texts: &mut dyn Iterator<Item = usize>, least: usize| texts.fold(least, usize::max);
    let age_width = widest(&mut ages.iter().map(|age| age.width()), AGE_WIDTH);
    let status_width = widest(&mut rows.iter().map(|row| row.status.name().len()), 6) + 2;
    let ids: Vec<_> = rows.iter().map(|row| plain(ids.of(&row.id), ID_WIDTH)).collect();
    let id_width = widest(&mut ids.iter().map(|id| id.width()), 2);
    let agents = AgentColumn::of(rows);
    // What a wider terminal has more of goes to the names as well, and never takes from them.
    let room = style.width.map(|width| width.saturating_sub(status_width + id_width + agents.width + age_width + 6));
    let most = room.map_or(NAME_WIDTH, |room| room.clamp(NAME_MIN_WIDTH, NAME_WIDTH.max(room / 2)));
    let labels: Vec<_> = rows.iter().map(|row| row.label.without_agent().cut(most)).collect();
    let widths = rows.iter().zip(&labels).map(|(row, label)| label.width() + 2 * usize::from(row.unseen));
    let name_width = widest(&mut widths.into_iter(), 7).min(most);
    let beside = room.map_or(usize::MAX, |room| room.saturating_sub(name_width + 2));
    let below = style.width.map_or(usize::MAX, |width| width.saturating_sub(INDENT.len()));
    // The full reasons change every few seconds, and no line must come and go with that.
    let reasons: Vec<_> = rows.iter().map(|row| row.brief_reason(now)).collect();
    let ends: Vec<_> = rows.iter().map(|row| end(row, style.unicode)).collect();
    let are_beside = reasons.iter().zip(&ends).any(|(reason, end)| reason.width() + end.width() <= beside);
    let head = format!(
        "{}  {}  {}{}  {}{}",
        pad("STATUS", status_width),
        pad("ID", id_width),
        agents.cell("AGENT"),
        pad("SESSION", name_width),
        pad("AGE", age_width),
        if are_beside { "  REASON" } else { "" }
    );
    let mut lines = vec![paint(&fit(head.trim_end(), style.width.unwrap_or(usize::MAX)), "1", style)];
    let texts = ids.iter().zip(&labels).zip(reasons.iter().zip(&ends));
    for ((row, age), ((id, label), (reason, end))) in rows.iter().zip(&ages).zip(texts) {
        let mark = shape(row.status, style.unicode);
        let status = paint(&pad(&format!("{mark} {}", row.status), status_width), colour(row.status), style);
        let unseen = if row.unseen { mark_of(UNSEEN, style.unicode) } else { "" };
        let name = pad(&fit(&format!("{unseen}{label}"), name_width), name_width);
        let agent = agents.cell(row.agent.word());
        let before = format!("{status}  {}  {agent}{name}  {}", pad(id, id_width), pad(age, age_width));
        // What does not fit of the full reason is in the column of ages, too.
        let is_beside = reason.width() + end.width() <= beside;
        let reason_width = (if is_beside { beside } else { below }).saturating_sub(end.width());
        let full = Some(row.reason(now)).filter(|full| full.width() <= reason_width);
        let reason = full.unwrap_or_else(|| fit(reason, reason_width)) + end;
        let line = match is_beside {
            true => format!("{before}  {reason}").trim_end().to_owned(),
            false => format!("{}\n{INDENT}{reason}", before.trim_end()),
        };
        lines.push(columns(&line, style.unicode).into_owned());
    }
    lines
}

/// What comes after the reason.
fn end(row: &Row, unicode: bool) -> String {
    row.end_mark().map_or_else(String::new, |marks| format!(" {}", mark_of(marks, unicode)))
}

/// A mark, or what takes its place in ASCII.
pub(super) const fn mark_of((mark, ascii): (&'static str, &'static str), unicode: bool) -> &'static str {
    if unicode { mark } else { ascii }
}

/// The column of agents, where the rows are of several: else it has no width.
struct AgentColumn {
    /// With the gap to the next column.
    width: usize,
}

impl AgentColumn {
    fn of(rows: &[Row]) -> Self {
        let words = rows.iter().filter(|row| row.label.agent.is_some()).map(|row| row.agent.word().width());
        Self { width: words.max().map_or(0, |widest| widest.max("AGENT".len()) + 2) }
    }

    fn cell(&self, agent: &str) -> String {
        if self.width > 0 { pad(agent, self.width) } else { String::new() }
    }
}

/// The lines of as many rows as fit into a height, with the selected one among them, and the number of rows left out. A
/// row is one line or two.
pub(super) fn window(rows: &[String], selected: Option<usize>, height: Option<usize>) -> Vec<String> {
    let tall = |row: &String| row.lines().count();
    let all: usize = rows.iter().map(tall).sum();
    let split = |rows: &[String]| rows.iter().flat_map(|row| row.lines().map(str::to_owned)).collect::<Vec<_>>();
    let Some(height) = height.filter(|height| all > *height) else { return split(rows) };
    let most = (height.saturating_sub(1) / rows.iter().map(tall).max().unwrap_or(1)).max(1);
    let from = selected.map_or(0, |selected| (selected + 1).saturating_sub(most));
    let to = (from + most).min(rows.len());
    let mut shown = split(&rows[from..to]);
    shown.push(format!("... and {}", counted(rows.len() - (to - from), "more session")));
    shown
}

/// When the text of any row's age changes next.
pub(super) fn next_age(rows: &[Row], now: Time) -> Option<Time> {
    rows.iter().filter_map(|row| row.next_age(now)).min()
}

/// The mark of a status, in Unicode or ASCII.
pub(super) const fn shape(status: Status, unicode: bool) -> &'static str {
    let (mark, ascii) = status.mark();
    if unicode { mark } else { ascii }
}

pub(super) fn paint(text: &str, sgr: &str, style: Style) -> String {
    if style.colour { format!("\x1b[{sgr}m{text}\x1b[0m") } else { text.to_owned() }
}

pub(super) fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Cuts a line to a width, and keeps its SGR sequences.
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
    use pilotlight_core::fleet::{Label, Session, TurnView};
    use pilotlight_core::time::{Moment, Span};
    use std::collections::HashSet;

    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed97280f";

    /// The lines of a table, if there is one session with [`ID`].
    fn lines(rows: &[Row], now: Time, style: Style) -> Vec<String> {
        super::lines(rows, &ShortIds::new([ID].into_iter()), now, style)
    }

    fn row(label: &str, status: Status, because: &str) -> Row {
        let label = Label { who: label.into(), agent: None, title: None };
        let row = Session::default().row(Moment::default(), &Default::default()).0;
        Row {
            id: ID.into(),
            label,
            status,
            because: because.into(),
            last_progress: Some(Time(0)),
            unseen: false,
            ..row
        }
    }

    fn style(width: Option<usize>) -> Style {
        Style { width, height: None, colour: false, unicode: true }
    }

    #[test]
    fn case_798_a_context_that_is_nearly_full_is_marked_at_the_end_of_its_row() {
        use pilotlight_core::facts::ContextUse;
        let full = Some(ContextUse { used: 95, window: Some(100) });
        let row = Row { context: full, ..row("x", Status::Working, &"long ".repeat(40)) };
        for (width, unicode) in [(50, true), (80, false), (120, true), (4000, true)] {
            let style = Style { unicode, ..style(Some(width)) };
            let lines = lines(std::slice::from_ref(&row), Time(0), style);
            let last = lines[1].lines().last().unwrap();
            assert!(last.ends_with(if unicode { " ◕" } else { " %" }) && last.width() <= width, "{width}: {last}");
        }
        let ended = Row { status: Status::Ended, ..row.clone() };
        let unknown = Row { context: Some(ContextUse { used: 95, window: None }), ..row.clone() };
        let unreached = Row { reached: false, ..row };
        for row in [ended, unknown, unreached] {
            assert_eq!(row.end_mark(), None, "{}", row.status);
        }
    }

    #[test]
    fn a_table_fits_the_terminal() {
        let rows = [
            row(
                "Fix the parser of the configuration file, at last",
                Status::Working,
                "running bash, 1 background agent",
            ),
            row("ファイルを直す", Status::NeedsPermission, "asks for permission: shell"),
            row("x", Status::Stuck, &"very long ".repeat(50)),
        ];
        for width in 1..200 {
            for line in lines(&rows, Time(0), style(Some(width))) {
                for line in line.lines() {
                    // 46 columns is the minimum: status, id, age and some of the name are always shown.
                    assert!(line.width() <= width.max(46), "{width}: {line}");
                }
            }
        }
        let narrow = lines(&rows, Time(0), style(Some(60)));
        let row: Vec<_> = narrow[1].lines().collect();
        assert_eq!(
            row,
            ["▶ working           3653  Fix the parser of the co…  now", "    running bash, 1 background agent"]
        );
        assert_eq!(
            lines(&rows, Time(0), style(None))[1],
            "▶ working           3653  Fix the parser of the configuration…  now      running bash, 1 background agent"
        );
    }

    /// Of a name, and of a reason, a wider terminal shows at least as much.
    #[test]
    fn case_631_a_wider_terminal_shows_no_less() {
        let rows = [
            row(
                "billing-api · Fix the parser of the configuration file",
                Status::Working,
                "running bash, 1 background agent",
            ),
            row(
                "web · Write it",
                Status::NeedsPermission,
                "asks for permission: shell, and for a path outside of its folder",
            ),
            row("x", Status::Idle, "done"),
        ];
        let shown = |width| {
            let table = lines(&rows, Time(0), style(Some(width))).split_off(1);
            let common = |line: &str, text: &str| {
                (0..=text.len())
                    .rev()
                    .filter(|at| text.is_char_boundary(*at))
                    .find(|at| line.contains(&text[..*at]))
                    .unwrap()
            };
            let of =
                |(row, line): (&Row, &String)| [common(line, &row.label.who), common(line, &row.because.to_string())];
            rows.iter().zip(&table).map(of).collect::<Vec<_>>()
        };
        let mut before = shown(40);
        for width in 41..220 {
            let now = shown(width);
            assert!(
                before.iter().flatten().zip(now.iter().flatten()).all(|(before, now)| before <= now),
                "{width}: {before:?} {now:?}"
            );
            before = now;
        }
        let table = lines(&rows, Time(0), style(Some(100)));
        assert!(
            table[3].ends_with("done") && table[3].lines().count() == 1,
            "a short reason stands beside the rest: {table:#?}"
        );
        assert_eq!(table[2].lines().count(), 2, "{table:#?}");
    }

    /// The age of the last event does not show how long the turn has taken.
    #[test]
    fn case_149_a_long_turn_full_of_events_shows_how_long_it_has_taken() {
        let minute = 60_000;
        let now = Time(75 * minute);
        let turn = Some(TurnView { since: Time(0), tools: 8, older: false });
        let long = Row { turn, last_progress: Some(now), ..row("api", Status::Working, "running bash") };
        let line = &lines(std::slice::from_ref(&long), now, style(None))[1];
        assert!(line.ends_with("api      now      running bash; turn: 75 min, 8 tools"), "{line}");
        let silent = Row { last_progress: Some(now - Span::seconds(51)), ..long };
        assert_eq!(next_age(&[silent], now), Some(now + Span::seconds(4)), "it is redrawn when the silence changes");
    }

    #[test]
    fn case_162_a_silence_at_work_is_shown_and_moves_no_column() {
        let now = Time(75 * 60_000);
        let lines = |seconds, width| {
            let turn = Some(TurnView { since: Time(0), tools: 8, older: false });
            let last_progress = Some(now - Span::seconds(seconds));
            let works = Row { turn, last_progress, ..row("billing-api · Write it", Status::Working, "running bash") };
            lines(&[works, row("web", Status::Idle, "done, your turn")], now, style(width)).split_off(1)
        };
        let of = |line: String, from: &str| line.split_once(from).unwrap().1.to_owned();
        let reason = |seconds, width| of(lines(seconds, width).remove(0), "it  ");
        assert_eq!(reason(9, None), "now      running bash; turn: 75 min, 8 tools");
        assert_eq!(reason(51, None), "50 s     running bash; turn: 75 min, 8 tools, last seen 50 s ago");
        // Either whole, or only in the column of ages.
        let said: HashSet<_> = (80..160).map(|width| reason(51, Some(width)).contains(" tools, ")).collect();
        assert_eq!(said.len(), 2);
        for width in 80..160 {
            let reason = reason(51, Some(width));
            assert!(reason.ends_with(", last seen 50 s ago") || !reason.contains(" tools, "), "{reason}");
        }
        let columns = |seconds| lines(seconds, Some(80)).remove(1);
        for seconds in [10, 51, 61, 601] {
            assert_eq!(columns(seconds), columns(0), "{seconds} s");
        }
    }

    #[test]
    fn case_173_a_session_that_was_never_prompted_has_no_age() {
        let opened = Row { last_progress: None, ..row("a", Status::Idle, "no prompt yet") };
        let table = lines(std::slice::from_ref(&opened), Time(1_795_197_600_000), style(None));
        assert!(table[1].ends_with("a        -        no prompt yet"), "{table:#?}");
        assert_eq!(next_age(&[opened], Time(0)), None, "nothing is redrawn for it");
    }

    #[test]
    fn an_id_is_shortened_to_its_unique_prefix() {
        let others = ["36535f61-5c7b-4f09-a70b-000000000000", ID, "36535f60"];
        let ids = ShortIds::new(others.into_iter());
        let line = &super::lines(&[row("a", Status::Idle, "b")], &ids, Time(0), style(None))[1];
        assert_eq!(line, "✓ idle    36535f61-5c7b-4f09-a70b-2  a        <1 min   b");
        assert_eq!((ids.of("36535f60"), ids.of("9"), ids.of("")), ("36535f60", "9", ""));
    }

    #[test]
    fn a_status_is_recognizable_without_colour() {
        for status in Status::ALL {
            let line = &lines(&[row("a", status, "b")], Time(0), style(None))[1];
            assert!(line.starts_with(shape(status, true)) && line.contains(status.name()), "{line}");
        }
        let coloured = Style { colour: true, ..style(None) };
        assert!(lines(&[row("a", Status::Idle, "b")], Time(0), coloured)[1].starts_with("\x1b[32m✓ idle"));
    }

    #[test]
    fn rows_that_do_not_fit_are_counted_and_the_selected_row_is_shown() {
        let rows = |lines: usize| (0..10).map(|n| vec![n.to_string(); lines].join("\n")).collect::<Vec<_>>();
        assert_eq!(window(&rows(1), None, Some(10)).len(), 10);
        assert_eq!(window(&rows(1), None, Some(4)), ["0", "1", "2", "... and 7 more sessions"]);
        assert_eq!(window(&rows(1), Some(5), Some(4)), ["3", "4", "5", "... and 7 more sessions"]);
        assert_eq!(window(&rows(2), Some(9), Some(5)), ["8", "8", "9", "9", "... and 8 more sessions"]);
        assert_eq!(window(&rows(1), Some(9), Some(0)), ["9", "... and 9 more sessions"]);
    }
}
