//! Output for other bars: Waybar, tmux, SwiftBar and xbar, and whatever takes a line of text. docs/bars.md has their
//! settings.
//!
//! Each bar interprets markup in its input, and session names are untrusted text. Whatever a bar would interpret is
//! escaped, or replaced by a lookalike where the bar has no escape for it.

use clap::ValueEnum;
use pilotlight_core::fleet::{Group, Row, State, Summary, distinguish, sort};
use pilotlight_core::text::{NAME_MAX, capitalised, fit, plain};
use pilotlight_core::verdict::Status;
use serde::Serialize;

/// Maximum width of a label in a bar, in columns.
const LABEL_WIDTH: usize = 32;
/// Maximum width of what a session asks for in a bar, in columns.
const REQUEST_WIDTH: usize = 40;
/// Maximum number of sessions in a tooltip or menu.
const LISTED: usize = 20;

/// Beginnings of what bars that read plain text take for a button that runs a command, each with what is printed for it:
/// `%{A1:command:}` in polybar and lemonbar, `<action=command>` in xmobar, `^ca(1, command)` in dzen2.
const BUTTONS: [(&str, &str); 3] = [("%{", "% {"), ("<action", "< action"), ("^ca(", "^ ca(")];

/// The format of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// JSON for a custom module of Waybar
    Waybar,
    /// A line with tmux's colours
    Tmux,
    #[value(help = "A menu for SwiftBar or xbar")]
    Swiftbar,
    /// A line of text
    Plain,
}

/// The content of a bar.
pub(super) struct Bar {
    rows: Vec<Row>,
    state: State,
    /// What is said where there is no row.
    nothing: String,
}

impl Bar {
    /// `unreached`: the machines that are not reached.
    pub(super) fn new<'a>(rows: impl Iterator<Item = Row>, unreached: impl Iterator<Item = &'a str>) -> Self {
        let rows: Vec<_> = rows.collect();
        let summary = Summary::of(rows.iter()).and_unreached(unreached, &rows);
        let mut rows: Vec<_> = rows.into_iter().filter(|row| !row.status.has_ended()).collect();
        sort(&mut rows);
        distinguish(&mut rows);
        Self { rows, state: summary.state, nothing: summary.to_string() }
    }

    /// The text for a bar, without a line break at its end.
    pub(super) fn text(&self, format: Format) -> String {
        match format {
            Format::Waybar => self.waybar(),
            Format::Tmux => format!("#[fg={}]{}#[default]", self.colour(), self.line_with_request().replace('#', "##")),
            Format::Swiftbar => self.swiftbar(),
            Format::Plain => {
                BUTTONS.iter().fold(self.line_with_request(), |text, (tag, broken)| text.replace(tag, broken))
            }
        }
    }

    /// The text for a bar that reads a stream: with a line break, and for multi-line texts a separator before each
    /// update.
    pub(super) fn next(&self, format: Format) -> String {
        let separator = if format == Format::Swiftbar { "~~~\n" } else { "" };
        format!("{separator}{}\n", self.text(format))
    }

    /// The counts, and the label of the session that needs the user most.
    fn line(&self) -> String {
        let label = self.rows.first().filter(|row| row.needs_you()).map(|row| row.label.cut(LABEL_WIDTH));
        [self.counts()].into_iter().chain(label).collect::<Vec<_>>().join(" ")
    }

    /// The same with what that session asks for, if it asks for a permission.
    fn line_with_request(&self) -> String {
        let request = self.rows.first().and_then(Row::request_text);
        let request = request.map(|text| format!(": {}", fit(&text, REQUEST_WIDTH)));
        self.line() + &request.unwrap_or_default()
    }

    /// The number of sessions of each status, those that need the user first: `⚑1 ▶2 ✓1`.
    fn counts(&self) -> String {
        let mut counts: Vec<(Status, usize)> = Vec::new();
        for row in &self.rows {
            let status = if row.status == Status::Finishing { Status::Working } else { row.status };
            match counts.last_mut() {
                Some((before, count)) if *before == status => *count += 1,
                _ => counts.push((status, 1)),
            }
        }
        if counts.is_empty() {
            let mark = if self.state == State::Unknown { Status::Quiet } else { Status::Ended };
            return mark.mark().0.to_owned();
        }
        counts.into_iter().map(|(status, count)| format!("{}{count}", status.mark().0)).collect::<Vec<_>>().join(" ")
    }

    const fn state_name(&self) -> &'static str {
        match self.state {
            State::Well => "well",
            State::Unknown => "unknown",
            State::Working => "working",
            State::NeedsYou => "needs-you",
            State::Trouble => "trouble",
        }
    }

    const fn colour(&self) -> &'static str {
        match self.state {
            State::Well => "green",
            State::Unknown => "white",
            State::Working => "blue",
            State::NeedsYou => "yellow",
            State::Trouble => "red",
        }
    }

    /// The first rows, each with its text, and how many more there are.
    fn list(&self) -> (impl Iterator<Item = (String, &Row)>, usize) {
        let text = |row: &Row| format!("{} {} · {}", row.status.mark().0, row.label.cut(NAME_MAX), row.status);
        let more = self.rows.len().saturating_sub(LISTED);
        (self.rows.iter().take(LISTED).map(move |row| (text(row), row)), more)
    }

    fn waybar(&self) -> String {
        #[derive(Serialize)]
        struct Module {
            text: String,
            tooltip: String,
            class: Vec<&'static str>,
            alt: &'static str,
            percentage: usize,
        }
        let (list, more) = self.list();
        let mut tooltip: Vec<_> =
            list.map(|(text, row)| format!("{}\n    {}", pango(&text), pango(&row.ageless_reason()))).collect();
        if more > 0 {
            tooltip.push(format!("… and {more} more"));
        }
        if tooltip.is_empty() {
            tooltip.push(pango(&self.nothing));
        }
        let at_work = |row: &&Row| matches!(row.status.spec().group, Group::Working | Group::Quiet);
        let unseen = self.rows.iter().any(|row| row.unseen).then_some("unseen");
        let module = Module {
            text: pango(&self.line()),
            tooltip: tooltip.join("\n"),
            class: [self.state_name()].into_iter().chain(unseen).collect(),
            alt: self.state_name(),
            percentage: self.rows.iter().filter(at_work).count() * 100 / self.rows.len().max(1),
        };
        // Strings and numbers always serialize.
        serde_json::to_string(&module).unwrap_or_default()
    }

    fn swiftbar(&self) -> String {
        let as_text = "emojize=false symbolize=false";
        // SwiftBar has no escape for the `|` that ends the text.
        let item = |text: &str| format!("{} | {as_text}", text.replace('|', "¦"));
        // White is for tmux: a menu bar may be light.
        let colour = if self.state == State::Unknown { "gray" } else { self.colour() };
        let mut lines = vec![format!("{} color={colour}", item(&self.counts())), "---".to_owned()];
        let (list, more) = self.list();
        for (text, row) in list {
            lines.push(item(&text));
            lines.push(item(&format!("--{}", plain(&row.ageless_reason(), NAME_MAX * 2))));
        }
        if more > 0 {
            lines.push(item(&format!("… and {more} more")));
        }
        if self.rows.is_empty() {
            lines.push(item(&capitalised(&self.nothing)));
        }
        lines.join("\n")
    }
}

/// Escapes Pango markup.
fn pango(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::fleet::{Label, RequestView, Session};
    use pilotlight_core::time::Moment;

    fn row(name: &str, status: Status) -> Row {
        let label = Label { who: name.into(), agent: None, title: None };
        let row = Session::default().row(Moment::default(), &Default::default()).0;
        Row { id: name.into(), label, status, because: "a < b".into(), unseen: status == Status::Idle, ..row }
    }

    fn bar(rows: impl IntoIterator<Item = Row>) -> Bar {
        Bar::new(rows.into_iter(), std::iter::empty())
    }

    #[test]
    fn a_line_counts_by_marks_and_names_what_needs_you() {
        use Status::{Ended, Failed, Finishing, Idle, NeedsPermission, Working};
        let some = bar([
            row("a", Working),
            row("b", Idle),
            row("c", NeedsPermission),
            row("d", Finishing),
            row("e", Ended),
            row("f", Failed),
        ]);
        assert_eq!(some.text(Format::Plain), "⚑1 ✗1 ▶2 ✓1 c");
        assert_eq!(bar([row("a", Working)]).text(Format::Plain), "▶1");
        assert_eq!(bar([row("e", Ended)]).text(Format::Plain), "○");
    }

    #[test]
    fn waybar_gets_its_fields_with_escaped_names() {
        let hostile = "</span><b>\"it's\" & more\n\u{202e}";
        let text = bar([row(hostile, Status::NeedsInput), row("w", Status::Working), row("i", Status::Idle)]);
        let module: serde_json::Value = serde_json::from_str(&text.text(Format::Waybar)).unwrap();
        let escaped = "&lt;/span&gt;&lt;b&gt;&quot;it&apos;s&quot; &amp; more";
        assert_eq!(module["text"], format!("?1 ▶1 ✓1 {escaped}"));
        let tooltip = module["tooltip"].as_str().unwrap();
        assert!(tooltip.starts_with(&format!("? {escaped} · needs-input\n    a &lt; b\n")), "{tooltip}");
        assert_eq!(module["class"], serde_json::json!(["needs-you", "unseen"]));
        assert_eq!((&module["alt"], &module["percentage"]), (&"needs-you".into(), &33.into()));
        let none: serde_json::Value = serde_json::from_str(&bar([]).text(Format::Waybar)).unwrap();
        assert_eq!((&none["alt"], &none["percentage"]), (&"well".into(), &0.into()));
    }

    #[test]
    fn names_are_escaped_for_tmux() {
        let text = bar([row("#(touch x) #{pid} #[fg=red] 50%", Status::Stuck)]).text(Format::Tmux);
        assert_eq!(text, "#[fg=red]◷1 ##(touch x) ##{pid} ##[fg=red] 50%#[default]");
    }

    /// Case 235: a title that polybar would take for a button.
    #[test]
    fn case_235_names_are_no_tags_in_polybar() {
        let text = bar([row("%{A1:touch x:}50%%{F#f00}", Status::Stuck)]).text(Format::Plain);
        assert_eq!(text, "◷1 % {A1:touch x:}50%% {F#f00}");
    }

    /// Case 240: the same in xmobar and dzen2.
    #[test]
    fn case_240_names_are_no_buttons_in_xmobar_and_dzen2() {
        let text = bar([row("<action=`x`>a ^ca(1, x)b <b>", Status::Stuck)]).text(Format::Plain);
        assert_eq!(text, "◷1 < action=`x`>a ^ ca(1, x)b <b>");
    }

    #[test]
    fn names_are_escaped_for_swiftbar() {
        let text = bar([row("a | bash=/bin/sh :fire:\n---", Status::Crashed)]);
        let lines: Vec<_> = text.text(Format::Swiftbar).lines().map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "╳1 | emojize=false symbolize=false color=red",
                "---",
                "╳ a ¦ bash=/bin/sh :fire: --- · crashed | emojize=false symbolize=false",
                "--a < b | emojize=false symbolize=false",
            ]
        );
        assert!(text.next(Format::Swiftbar).starts_with("~~~\n╳1"));
        assert!(bar([]).text(Format::Swiftbar).ends_with("No session is open | emojize=false symbolize=false"));
    }

    #[test]
    fn every_bar_shows_the_command_that_is_asked_for() {
        let asks_for = |text: Option<&str>| {
            let text = text.map(Into::into);
            let request = RequestView {
                id: "r".into(),
                kind: "shell".into(),
                text,
                paths: Vec::new(),
                reads_plain: true,
                by: None,
            };
            let because = "asks for permission: shell".into();
            Row { because, request: Some(request), ..row("shop", Status::NeedsPermission) }
        };
        let asks = |text: &str| asks_for(Some(text));
        let bars = bar([asks("rm -rf build #[fg=red] | <b>")]);
        assert_eq!(bars.text(Format::Plain), "⚑1 shop: rm -rf build #[fg=red] | <b>");
        assert!(bars.text(Format::Tmux).contains("⚑1 shop: rm -rf build ##[fg=red] | <b>#[default]"));
        let module: serde_json::Value = serde_json::from_str(&bars.text(Format::Waybar)).unwrap();
        assert_eq!(module["text"], "⚑1 shop");
        let tooltip = "⚑ shop · needs-permission\n    rm -rf build #[fg=red] | &lt;b&gt; (asks for permission: shell)";
        assert_eq!(module["tooltip"], tooltip);
        let swiftbar = bars.text(Format::Swiftbar);
        assert!(swiftbar.contains("\n--rm -rf build #[fg=red] ¦ <b> (asks for permission: shell) | "), "{swiftbar}");
        let long = bar([asks(&"x".repeat(100))]).text(Format::Plain);
        assert_eq!(long.chars().count(), "⚑1 shop: ".chars().count() + REQUEST_WIDTH);
        assert_eq!(bar([asks_for(None)]).text(Format::Plain), "⚑1 shop", "its text is not known");
    }

    #[test]
    fn a_list_is_bounded() {
        let many = bar((0..100).map(|n| row(&n.to_string(), Status::Working)));
        for format in [Format::Waybar, Format::Swiftbar] {
            assert!(many.text(format).contains("… and 80 more"));
        }
    }
}
