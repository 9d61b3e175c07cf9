//! The row of a session and its submenu of at most ten entries.

use super::names::{NAME_MIN_WIDTH, Names};
use crate::tray::actions;
use crate::tray::details::{self, DetailsContext, Source};
use crate::tray::view::{COLUMNS, Effect, Item, ItemId, Kind, Lead, ROWS, Text, fold};
use pilotlight_core::text::isolated;
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// The first numbers of lines and folded lists in the parts of a session's submenu, so that each number is used once.
const MESSAGE: u8 = 9;
pub(super) const WHY: u8 = 10;
const REFUSED: u8 = 60;

/// The row of a session with its submenu: `⚑ billing-api · Write the migr… — rm -rf build`.
pub(super) fn row(source: &Source<'_>, names: &Names<'_>, context: &DetailsContext<'_>) -> Item {
    row_with(source, names, submenu(source, context))
}

/// The row of a session with this submenu.
pub(super) fn row_with(source: &Source<'_>, names: &Names<'_>, items: Vec<Item>) -> Item {
    let (id, picture) = (ItemId::of(source.key, Kind::Row), Some(source.row.status));
    Item::Submenu { id, text: text(source, names), picture, items }
}

/// The row of a session without a submenu: a click looks at it.
pub(super) fn look(source: &Source<'_>, names: &Names<'_>) -> Item {
    let effect = actions::looking_at(source.row, source.session);
    Item::action(ItemId::of(source.key, Kind::Row), text(source, names), effect)
}

fn text(source: &Source<'_>, names: &Names<'_>) -> Text {
    let row = source.row;
    let lead = Lead { status: row.status, unseen: row.unseen };
    let text = Text::row(lead, names.in_row(&row.label), row.short_reason.clone(), source.last_progress);
    text.ending(row.end_mark().map_or("", |(mark, _)| mark))
}

/// The lines of the open request or question, or else of the reason for the status; and the answers.
pub(super) fn said_and_answers(source: &Source<'_>) -> (Vec<Item>, Vec<Item>) {
    match actions::request_items(source) {
        Some(request) => (request.lines, request.answers),
        None => (numbered(source, summary(source), 0), Vec::new()),
    }
}

/// The open request, or else the reason for the status; then the actions, the best first; the rest in submenus.
fn submenu(source: &Source<'_>, context: &DetailsContext<'_>) -> Vec<Item> {
    let id = |kind| ItemId::of(source.key, kind);
    let (mut items, mut actions) = said_and_answers(source);
    items.extend(numbered(source, details::last_message(source, context).into_iter().collect(), MESSAGE));
    actions.extend(actions::actions(source));
    items.push(Item::Separator);
    let room = ROWS - items.len() - 2;
    let rest = actions.split_off(room.min(actions.len()));
    items.extend(actions);
    items.push(Item::submenu(id(Kind::Why), "Why", why(source, context)));
    items.push(Item::submenu(id(Kind::More), "More", more(source, context, rest)));
    items
}

/// The full name, if the row may have cut it, and what is asked for or the reason for the status.
fn summary(source: &Source<'_>) -> Vec<Text> {
    let name = Some(source.row.label.cut(COLUMNS)).filter(|name| name.width() > NAME_MIN_WIDTH);
    let name = name.map(|name| Text::from(isolated(&name).into_owned()));
    let max = actions::LINES_MAX - usize::from(name.is_some());
    let told = actions::told_request(source.row, max).map(|lines| lines.into_iter().map(Text::from).collect());
    name.into_iter().chain(told.unwrap_or_else(|| details::reason(source.row, false, max))).collect()
}

/// Lines of text. A click on one marks the session as seen.
pub(super) fn numbered(source: &Source<'_>, texts: Vec<Text>, from: u8) -> Vec<Item> {
    let line = |(n, text)| Item::action(ItemId::of(source.key, Kind::Fact(n)), text, Effect::Seen);
    (from..=u8::MAX).zip(texts).map(line).collect()
}

fn why(source: &Source<'_>, context: &DetailsContext<'_>) -> Vec<Item> {
    let facts = numbered(source, details::why(source, context), WHY);
    let mut items = fold(facts, ROWS - 1, Some(source.key), WHY);
    let refused = actions::text_items(source, &actions::refused(source), REFUSED, REFUSED);
    items.push(Item::submenu(ItemId::of(source.key, Kind::Refused), "What cannot be done now", refused));
    items
}

/// The entries that did not fit, and those that are rarely used.
fn more(source: &Source<'_>, context: &DetailsContext<'_>, mut rest: Vec<Item>) -> Vec<Item> {
    rest.extend(rarely_used(source, context));
    fold(rest, ROWS, Some(source.key), 0)
}

/// The rarely used entries.
pub(super) fn rarely_used(source: &Source<'_>, context: &DetailsContext<'_>) -> Vec<Item> {
    let Source { key, row, session, reader, .. } = *source;
    let id = |kind| ItemId::of(key, kind);
    let mut items = Vec::new();
    let here = row.cwd.as_deref().filter(|_| row.host.is_none()).map(Path::new);
    if let Some(folder) = here.filter(|cwd| cwd.is_absolute()) {
        items.push(Item::action(id(Kind::OpenFolder), "Open folder", Effect::OpenFolder(folder.into())));
    }
    if let Some(reader) = reader.filter(|_| session.observed.has_log) {
        items.push(Item::action(id(Kind::OpenLog), "Open log", Effect::OpenLog(reader.log())));
    }
    // Only an id in its agent's form may reach a command line or the clipboard; a folder can have any name.
    if let Some(resume) = reader.and_then(|reader| reader.resume_line()) {
        items.push(Item::action(id(Kind::CopyId), "Copy id", Effect::Copy(row.id.to_string())));
        items.push(Item::action(id(Kind::CopyResume), "Copy resume command", Effect::Copy(resume)));
    }
    items.extend(context.notifications.session_items(key, row));
    // A failure that was seen no longer affects the icon.
    if row.unseen || row.needs_you() && row.is_set_aside_when_seen() {
        items.push(Item::action(id(Kind::Seen), "Mark as seen", Effect::Seen));
    }
    items
}
