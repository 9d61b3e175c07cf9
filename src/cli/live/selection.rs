//! The selected session in the live table: its details below the table, and the command for each key.

use super::super::keyboard::Key;
use super::super::table::Style;
use super::NAME_WIDTH;
use pilotlight_core::action::Action;
use pilotlight_core::fleet::Row;
use pilotlight_core::session::Kind;
use pilotlight_core::text::{fit, plain, wrap};
use pilotlight_core::time::Time;
use pilotlight_core::verdict::Status;
use pilotlight_core::words::refusal::Refusal;
use unicode_width::UnicodeWidthStr;

/// Maximum number of lines of details.
const LINES: usize = 5;

/// The selected session: the first row when the table is drawn first, then that session, wherever its row is. What the
/// user presses a key for is what was drawn as selected.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Its id and its machine.
    id: Option<(Box<str>, Option<Box<str>>)>,
    /// Its last index. If it is removed, the row that is there then is selected.
    at: usize,
}

impl Selection {
    /// The index of the selected row, to draw it. If that session is gone, the one in its place is selected.
    pub(super) fn index_in(&mut self, rows: &[Row]) -> Option<usize> {
        let last = rows.len().checked_sub(1)?;
        self.at = self.index_of_drawn(rows).unwrap_or(self.at.min(last));
        self.id = Some(of(&rows[self.at]));
        Some(self.at)
    }

    /// The row of the session that was last drawn as selected; `None` if it is gone.
    pub(super) fn drawn<'a>(&self, rows: &'a [Row]) -> Option<&'a Row> {
        self.index_of_drawn(rows).map(|at| &rows[at])
    }

    fn index_of_drawn(&self, rows: &[Row]) -> Option<usize> {
        let id = self.id.as_ref()?;
        rows.iter().position(|row| of(row) == *id)
    }

    /// Selects the row above or below.
    pub(super) fn step(&mut self, rows: &[Row], down: bool) {
        let Some(at) = self.index_in(rows) else { return };
        let to = if down { (at + 1).min(rows.len() - 1) } else { at.saturating_sub(1) };
        (self.id, self.at) = (Some(of(&rows[to])), to);
    }
}

/// What names a session among all.
fn of(row: &Row) -> (Box<str>, Option<Box<str>>) {
    (row.id.clone(), row.host.clone())
}

/// What a key does.
pub(super) struct Command {
    /// In a hint.
    hint: &'static str,
    /// The command line, without the session's id.
    pub(super) arguments: &'static [&'static str],
}

/// Says why a session does not offer the action that the user pressed a key for.
pub(super) fn refusal(action: Action, row: &Row, why: Option<Refusal>) -> String {
    // The row may be older than the session.
    let why = why.map_or_else(|| "try again".to_owned(), |why| why.to_string());
    format!("\"{}\": {} refused: {why}", row.label.cut(NAME_WIDTH), action.name())
}

/// What a key does to a session; `None` if it never does anything to one. `bridged`: the agents whose bridge the tray may
/// answer by, which this table does not hear of. Then the command finds out.
///
/// # Errors
/// The action, if the session does not offer it now.
pub(super) fn command(key: Key, row: &Row, bridged: &[&str]) -> Result<Option<Command>, Action> {
    let asks = match key {
        Key::Approve | Key::Deny => row.status == Status::NeedsPermission,
        Key::Answer => row.status == Status::NeedsInput,
        _ => false,
    };
    let is_trays = asks && row.host.is_none() && bridged.contains(&row.agent.name());
    let can = |action| is_trays || row.actions.contains(&action);
    let runs = |hint, arguments| Ok(Some(Command { hint, arguments }));
    match key {
        Key::Approve if can(Action::Approve) => runs("approve", &["approve", "--ask"]),
        Key::Approve => Err(Action::Approve),
        Key::Deny if can(Action::Deny) => runs("deny", &["deny", "--ask"]),
        Key::Deny => Err(Action::Deny),
        Key::Reconnect if can(Action::Continue) => {
            let hint = if can(Action::Reconnect) { "reconnect and continue" } else { "continue" };
            runs(hint, &["reconnect", "--continue"])
        }
        // To reconnect a terminal session that has no owner means to resume it.
        Key::Reconnect if can(Action::Resume) && row.kind != Kind::Sdk => runs("resume", &["resume"]),
        Key::Reconnect if can(Action::Reconnect) => runs("reconnect", &["reconnect"]),
        Key::Reconnect if can(Action::Resume) => runs("resume", &["resume"]),
        Key::Reconnect if row.status.is_over() => Err(Action::Resume),
        Key::Reconnect => Err(Action::Reconnect),
        Key::Stop if can(Action::Stop) => runs("stop", &["stop"]),
        // It asks first. `stop` alone would not end a session that the bridge reaches.
        Key::Stop if can(Action::End) => runs("end", &["stop", "--end"]),
        Key::Stop => Err(Action::Stop),
        Key::Answer if can(Action::Answer) => runs("answer", &["answer"]),
        Key::Answer => Err(Action::Answer),
        Key::Show if can(Action::ShowTerminal) => runs("show", &["show"]),
        Key::Show => Err(Action::ShowTerminal),
        Key::Quit | Key::Back | Key::Up | Key::Down | Key::Explain | Key::More | Key::Help | Key::Retry => Ok(None),
    }
}

/// The session's label, reason and folder.
pub(super) fn details(row: &Row, now: Time, style: Style) -> Vec<String> {
    let width = style.width.unwrap_or(80).max(1);
    let mut lines = vec![plain(&row.label.to_string(), 2 * width).into_string()];
    lines.extend(wrap(&plain(&row.reason(now), 1000), width));
    lines.truncate(LINES - 1);
    if let Some(cwd) = row.cwd.as_deref() {
        let branch = row.branch.as_deref().map(|branch| format!(" ({branch})")).unwrap_or_default();
        lines.push(plain(&format!("Folder: {cwd}{branch}"), 1000).into());
    }
    lines.into_iter().map(|line| fit(&line, width)).collect()
}

/// The keys that act, each with what it does at most, in the order of the hints.
pub(super) const ACTING: [(Key, &str, &str); 6] = [
    (Key::Approve, "a", "show its request and ask you whether to approve it"),
    (Key::Deny, "d", "show its request and ask you whether to deny it"),
    (Key::Answer, "n", "show its question and ask you for the answer"),
    (Key::Reconnect, "r", "reconnect it and let it continue, or resume it"),
    (Key::Stop, "s", "stop its turn, or ask you whether to end it"),
    (Key::Show, "o", "show its terminal"),
];

/// The hints for the keys that would do something to the selected session now.
pub(super) fn offered(row: &Row, bridged: &[&str]) -> impl Iterator<Item = String> {
    let hint = |(key, letter, _)| Some(format!("{letter} {}", command(key, row, bridged).ok()??.hint));
    ACTING.into_iter().filter_map(hint)
}

/// Packs hints into as few lines as possible.
pub(super) fn packed(hints: impl IntoIterator<Item = String>, style: Style) -> Vec<String> {
    const GAP: &str = "   ";
    let mut lines: Vec<String> = Vec::new();
    for hint in hints {
        let width = hint.width() + GAP.len();
        match lines.last_mut().filter(|line| style.width.is_none_or(|most| line.width() + width <= most)) {
            Some(line) => *line += &(GAP.to_owned() + &hint),
            None => lines.push(hint),
        }
    }
    lines
}

/// The lines of keys, those that act on the selected session first.
pub(super) fn keys(row: Option<&Row>, bridged: &[&str], has_unreached: bool, style: Style) -> Vec<String> {
    let arrows = if style.unicode { "↑↓ choose" } else { "j/k choose" };
    let always = row.map(|_| ["Enter explain".to_owned(), arrows.to_owned()]).into_iter().flatten();
    let retry = has_unreached.then(|| "t try again".to_owned());
    let always = always.chain(retry).chain(["? help".to_owned(), "q quit".to_owned()]);
    packed(row.into_iter().flat_map(|row| offered(row, bridged)).chain(always), style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::fleet::Session;
    use pilotlight_core::time::Moment;

    fn row(id: &str, actions: &[Action]) -> Row {
        let row = Session { id: id.into(), ..Session::default() }.row(Moment::default(), &Default::default()).0;
        Row { actions: actions.into(), ..row }
    }

    fn runs(key: Key, row: &Row) -> Result<&'static [&'static str], Action> {
        command(key, row, &[]).map(|command| command.unwrap().arguments)
    }

    #[test]
    fn a_session_stays_selected_and_its_neighbour_replaces_it() {
        let rows = |ids: &[&str]| ids.iter().map(|id| row(id, &[])).collect::<Vec<_>>();
        let mut selection = Selection::default();
        assert_eq!(selection.index_in(&[]), None);
        assert_eq!(selection.index_in(&rows(&["a", "b", "c"])), Some(0));
        selection.step(&rows(&["a", "b", "c"]), true);
        assert_eq!(selection.index_in(&rows(&["x", "a", "b", "c"])), Some(2), "it was b");
        assert_eq!(selection.index_in(&rows(&["x", "a", "c"])), Some(2), "c is there now");
        assert_eq!(selection.index_in(&rows(&["x"])), Some(0));
        selection.step(&rows(&["x"]), true);
        selection.step(&rows(&["x"]), false);
        assert_eq!(selection.index_in(&rows(&["x"])), Some(0));
    }

    /// Between the drawing and the key, rows come, go and change places.
    #[test]
    fn case_175_a_key_is_for_the_session_that_was_drawn_as_selected() {
        let rows = |ids: &[&str]| ids.iter().map(|id| row(id, &[])).collect::<Vec<_>>();
        let mut selection = Selection::default();
        assert!(selection.drawn(&rows(&["a"])).is_none(), "nothing was drawn");
        assert_eq!(selection.index_in(&rows(&["a", "b"])), Some(0));
        let now = rows(&["x", "b", "a"]);
        assert_eq!(selection.drawn(&now).map(|row| &*row.id), Some("a"));
        assert!(selection.drawn(&rows(&["x", "b"])).is_none(), "not the one in its place");
        assert_eq!(selection.index_in(&now), Some(2));
    }

    #[test]
    fn case_230_the_key_for_a_terminal_that_cannot_be_shown_is_not_offered() {
        let style = Style { width: None, height: None, colour: false, unicode: true };
        assert_eq!(
            keys(Some(&row("a", &[Action::ShowTerminal])), &[], false, style)[0].split("   ").next(),
            Some("o show")
        );
        assert!(!keys(Some(&row("a", &[Action::Stop])), &[], false, style).concat().contains("show"));
    }

    /// The menu, popups and keys name what is done by one word.
    #[test]
    fn case_558_a_terminal_session_without_an_owner_is_resumed_and_not_reconnected() {
        let both = [Action::Reconnect, Action::Resume];
        let ended = |kind| Row { kind, ..row("a", &both) };
        let style = Style { width: Some(80), height: None, colour: false, unicode: true };
        assert_eq!(runs(Key::Reconnect, &ended(Kind::Terminal)), Ok(&["resume"][..]));
        assert!(keys(Some(&ended(Kind::Terminal)), &[], false, style)[0].starts_with("r resume   Enter"));
        assert_eq!(runs(Key::Reconnect, &ended(Kind::Sdk)), Ok(&["reconnect"][..]));
    }

    /// A table beside the tray does not hear of bridges.
    #[test]
    fn what_a_session_with_a_bridge_asks_is_answered_by_the_tray() {
        let row = row("a", &[]);
        let asks = Row { status: Status::NeedsPermission, ..row.clone() };
        let bridged = [row.agent.name()];
        let offers = |row: &Row, bridged: &[&str]| offered(row, bridged).collect::<Vec<_>>();
        assert_eq!(offers(&asks, &bridged), ["a approve", "d deny"]);
        assert_eq!(offers(&Row { status: Status::NeedsInput, ..row.clone() }, &bridged), ["n answer"]);
        assert_eq!(offers(&asks, &[]), [""; 0]);
        assert_eq!(offers(&asks, &["another"]), [""; 0]);
        assert_eq!(offers(&Row { host: Some("box".into()), ..asks }, &bridged), [""; 0], "that machine knows");
        assert_eq!(offers(&Row { status: Status::Working, ..row.clone() }, &bridged), [""; 0]);
    }

    #[test]
    fn a_key_runs_its_command_if_the_action_is_offered() {
        let asks = row("a", &[Action::Approve, Action::Deny, Action::Stop]);
        assert_eq!(runs(Key::Approve, &asks), Ok(&["approve", "--ask"][..]));
        assert_eq!(runs(Key::Reconnect, &asks), Err(Action::Reconnect));
        let style = Style { width: Some(80), height: None, colour: false, unicode: true };
        assert_eq!(
            keys(Some(&asks), &[], false, style),
            ["a approve   d deny   s stop   Enter explain   ↑↓ choose   ? help   q quit"]
        );
        let narrow = Style { width: Some(24), ..style };
        let wrapped = ["a approve   d deny", "s stop   Enter explain", "↑↓ choose   ? help", "q quit"];
        assert_eq!(keys(Some(&asks), &[], false, narrow), wrapped, "at words, and whole");
        let lost = row("a", &[Action::Continue, Action::Reconnect]);
        assert_eq!(runs(Key::Reconnect, &lost), Ok(&["reconnect", "--continue"][..]));
        assert!(keys(Some(&lost), &[], false, style)[0].starts_with("r reconnect and continue   Enter"));
        assert_eq!(runs(Key::Answer, &row("a", &[Action::Answer])), Ok(&["answer"][..]));
        assert_eq!(runs(Key::Show, &row("a", &[Action::ShowTerminal])), Ok(&["show"][..]));
        assert_eq!(
            (runs(Key::Answer, &asks), runs(Key::Show, &asks)),
            (Err(Action::Answer), Err(Action::ShowTerminal))
        );
        assert_eq!(runs(Key::Reconnect, &row("a", &[Action::Resume])), Ok(&["resume"][..]));
        let idle = row("a", &[Action::End]);
        assert_eq!(runs(Key::Stop, &idle), Ok(&["stop", "--end"][..]));
        assert!(keys(Some(&idle), &[], false, style)[0].starts_with("s end   Enter"));
        assert_eq!(keys(None, &[], false, style), ["? help   q quit"]);
    }
}
