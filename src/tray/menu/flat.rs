//! The menu for GNOME, where submenus open below their rows, in the same box. Pure.
//!
//! The box is as high as the display at most, and what does not fit is cut off: a submenu for which no room was left is a
//! slit. So there are few rows, at most ten, and room is left for the largest submenu below them. A submenu has no other one in
//! it, except *Why* on a display that is high enough for all three. What has no room is in the table of all sessions, in a
//! terminal, which the last entry of each list opens.
//!
//! The shell adds a new row only once it is idle, on the screen, where it pushes those below down. So what
//! depends on the sessions is in submenus, whose rows stay as they are: there is no remedy below a row (its submenu begins with
//! it), and the headline always opens the table.

use super::session::{self, WHY};
use super::{Sorted, names::Names};
use crate::tray::actions;
use crate::tray::details::{self, DetailsContext, Source};
use crate::tray::view::{COLUMNS, Effect, Item, ItemId, Kind, ROWS};
use pilotlight_core::fleet::folded;

/// Maximum number of rows, besides separators.
const ROOT_MAX: usize = 10;
/// Minimum number of rows: the headline, the entries at the end, a session, and one for the other sessions.
const ROOT_MIN: usize = 6;
/// The number of entries in a submenu from which on more room is given to *Why*: three lines of a request, two answers, and the
/// last two.
const ENOUGH: usize = 7;
/// The least number of rows for sessions.
const SESSIONS_MIN: usize = 2;
/// The least number of lines for which *Why* is a submenu.
const WHY_MIN: usize = 3;
/// What can go, in this order, if a submenu of settings has too many entries.
const EXPENDABLE: [Kind; 4] = [Kind::OwnLog, Kind::CopyDiagnostics, Kind::Refresh, Kind::AddHost];

/// How many entries fit, besides separators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flat {
    /// In the menu itself.
    pub(super) root: usize,
    /// In a submenu.
    pub(super) submenu: usize,
    /// In *Why*, inside a submenu; 0 if there is no room for it.
    pub(super) why: usize,
    /// In all of these at once.
    rows: usize,
}

impl Flat {
    /// For a display on which this many rows fit.
    pub(super) fn of(rows: usize) -> Self {
        Self::with_root((rows * 2).div_ceil(5).clamp(ROOT_MIN, ROOT_MAX), rows)
    }

    /// The same for a menu that has so many rows besides those of the sessions.
    pub(super) fn beside(self, others: usize) -> Self {
        Self::with_root(self.root.max(others + SESSIONS_MIN), self.rows)
    }

    fn with_root(root: usize, rows: usize) -> Self {
        let rest = rows.saturating_sub(root);
        let why = Some(rest.saturating_sub(ENOUGH)).filter(|why| *why >= WHY_MIN).unwrap_or(0).min(ROWS);
        Self { root, submenu: (rest - why).clamp(WHY_MIN, ROWS - 1), why, rows }
    }

    /// The rows of the sessions, in at most `max` entries.
    pub(super) fn rows(
        self,
        sorted: &Sorted<'_>,
        max: usize,
        names: &Names<'_>,
        context: &DetailsContext<'_>,
    ) -> Vec<Item> {
        let all: Vec<_> = sorted.all().collect();
        let is_folded = all.len() > max || sorted.left_out > 0;
        let shown = if is_folded { max.saturating_sub(1) } else { max }.min(all.len());
        let row = |source: &&Source<'_>| session::row_with(source, names, self.session(source, context));
        let mut items: Vec<_> = all[..shown].iter().map(row).collect();
        if is_folded {
            let text = match sorted.left_out {
                0 => folded(all[shown..].iter().map(|source| source.row), COLUMNS),
                left_out => format!("{} more", all.len() - shown + left_out),
            };
            items.push(Item::submenu(
                ItemId::own(Kind::Fold(0)),
                text,
                self.rest(&all[shown..], sorted.left_out, names),
            ));
        }
        items
    }

    /// Sessions without a row of their own. A click looks at one.
    fn rest(self, rest: &[&Source<'_>], left_out: usize, names: &Names<'_>) -> Vec<Item> {
        let is_cut = left_out > 0 || rest.len() > self.submenu;
        let shown = if is_cut { self.submenu - 1 } else { rest.len() }.min(rest.len());
        let mut items: Vec<_> = rest[..shown].iter().map(|source| session::look(source, names)).collect();
        if is_cut {
            let text = format!("{} more: show all in a terminal", rest.len() - shown + left_out);
            items.push(Item::action(ItemId::own(Kind::LiveTable), text, Effect::LiveTable));
        }
        items
    }

    /// The submenu of a session: what it asks or the reason for its status, the answers, the actions, the best first.
    fn session(self, source: &Source<'_>, context: &DetailsContext<'_>) -> Vec<Item> {
        let id = |kind| ItemId::of(source.key, kind);
        let (lines, answers) = session::said_and_answers(source);
        let mut all: Vec<_> = answers.into_iter().chain(actions::actions(source)).flat_map(inlined).collect();
        if self.why > 0 {
            let mut why = session::numbered(source, details::why(source, context), WHY);
            why.truncate(self.why - 1);
            why.push(Item::action(id(Kind::Refused), "All of it, in a terminal…", Effect::LiveTable));
            let at = all.len().min(self.submenu.saturating_sub(lines.len() + 2));
            all.insert(at, Item::submenu(id(Kind::Why), "Why", why));
        }
        all.extend(session::rarely_used(source, context));
        let last = if self.why > 0 { "More, in a terminal…" } else { "Why and more, in a terminal…" };
        all.truncate(self.submenu.saturating_sub(lines.len() + 1));
        let last = Item::action(id(Kind::LiveTable), last, Effect::LiveTable);
        lines.into_iter().chain([Item::Separator]).chain(all).chain([last]).collect()
    }

    /// An entry whose submenu has none in it, and fits. Text goes first.
    pub(super) fn fit(self, item: Item) -> Item {
        let Item::Submenu { id, text, picture, items } = item else { return item };
        let mut items: Vec<_> = items.into_iter().flat_map(inlined).collect();
        let is_text = |item: &Item| matches!(item, Item::Text(_));
        let is_expendable = |item: &Item, kind| item.id().is_some_and(|id| id.kind == kind);
        let excess = |items: &[Item]| items.iter().filter(|item| **item != Item::Separator).count() > self.submenu;
        while excess(&items)
            && let Some(at) = items
                .iter()
                .rposition(is_text)
                .or_else(|| EXPENDABLE.iter().find_map(|kind| items.iter().position(|item| is_expendable(item, *kind))))
        {
            items.remove(at);
        }
        items.truncate(if excess(&items) { self.submenu } else { items.len() });
        Item::Submenu { id, text, picture, items }
    }
}

/// The entries of a submenu in its place, without its text; of a list of text, the first line. None of a submenu that only
/// asks for a second click.
fn inlined(item: Item) -> Vec<Item> {
    match item {
        Item::Submenu { id, .. } if id.kind == Kind::Ending => Vec::new(),
        Item::Submenu { items, .. } => {
            let does = items.iter().any(|item| !matches!(item, Item::Text(_)));
            let entries = items.into_iter().flat_map(inlined).filter(|item| !does || !matches!(item, Item::Text(_)));
            entries.take(if does { usize::MAX } else { 1 }).collect()
        }
        item => vec![item],
    }
}
