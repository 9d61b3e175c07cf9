//! One session in the menu: its row, and its submenu of at most ten entries.

use crate::agent::copilot::store::LOG;
use crate::core::fleet::{TOLD_APART, mark};
use crate::core::text::is_uuid;
use crate::tray::actions;
use crate::tray::details::{self, Source, Words};
use crate::tray::view::{COLUMNS, Effect, Item, ItemId, Kind, NEWS, ROWS, Text, fold};
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// The numbers of lines, and of lists that are folded, in a session's submenu: each in one place alone.
const WHY: u8 = 10;
const REFUSED: u8 = 60;

/// The row of a session with its submenu: `⚑ billing-api · Write the migr… — rm -rf build`.
pub(super) fn row(source: &Source<'_>, words: &Words<'_>) -> Item {
    let row = source.row;
    let unseen = if row.unseen { NEWS } else { "" };
    let head = format!("{} {unseen}{}", mark(row.status).0, row.label.cut(COLUMNS));
    Item::Submenu {
        id: ItemId::of(source.key, Kind::Row),
        text: Text::row(head, row.gist.clone()),
        picture: Some(row.status),
        items: submenu(source, words),
    }
}

/// What is asked, or else why it has its status; what can be done, the best first; the rest a level below.
fn submenu(source: &Source<'_>, words: &Words<'_>) -> Vec<Item> {
    let id = |kind| ItemId::of(source.key, kind);
    let (mut items, mut actions) = match actions::asked(source) {
        Some(asked) => (asked.lines, asked.answers),
        None => (numbered(source, summary(source), 0), Vec::new()),
    };
    actions.extend(actions::actions(source));
    items.push(Item::Separator);
    let room = ROWS - items.len() - 2;
    let rest = actions.split_off(room.min(actions.len()));
    items.extend(actions);
    items.push(Item::submenu(id(Kind::Why), "Why", why(source, words)));
    items.push(Item::submenu(id(Kind::More), "More", more(source, words, rest)));
    items
}

/// Its whole name, where the row may have cut it, and why it has its status.
fn summary(source: &Source<'_>) -> Vec<Text> {
    let name = Some(source.row.label.cut(COLUMNS)).filter(|name| name.width() > TOLD_APART).map(Text::from);
    let most = actions::LINES - usize::from(name.is_some());
    name.into_iter().chain(details::reason(source.row, false, most)).collect()
}

/// Lines that whoever clicks one has looked at.
fn numbered(source: &Source<'_>, texts: Vec<Text>, from: u8) -> Vec<Item> {
    let line = |(n, text)| Item::action(ItemId::of(source.key, Kind::Fact(n)), text, Effect::Seen);
    (from..=u8::MAX).zip(texts).map(line).collect()
}

fn why(source: &Source<'_>, words: &Words<'_>) -> Vec<Item> {
    let facts = numbered(source, details::why(source, words), WHY);
    let mut items = fold(facts, ROWS - 1, Some(source.key), WHY);
    let refused = actions::listed(source, &actions::refused(source), REFUSED, REFUSED);
    items.push(Item::submenu(ItemId::of(source.key, Kind::Refused), "What cannot be done now", refused));
    items
}

/// What is rarely wanted.
fn more(source: &Source<'_>, words: &Words<'_>, rest: Vec<Item>) -> Vec<Item> {
    let Source { key, row, session, path } = *source;
    let id = |kind| ItemId::of(key, kind);
    let mut items = rest;
    if let Some(folder) = row.cwd.as_deref().map(Path::new).filter(|cwd| cwd.is_absolute()) {
        items.push(Item::action(id(Kind::OpenFolder), "Open folder", Effect::OpenFolder(folder.into())));
    }
    if session.has_log {
        items.push(Item::action(id(Kind::OpenLog), "Open log", Effect::OpenLog(path.join(LOG))));
    }
    // Only what has the form of an id reaches a command line or the clipboard: what else a folder may be called is not Copilot's.
    if is_uuid(&row.id) {
        let resume = format!("copilot --resume={}", row.id);
        items.push(Item::action(id(Kind::CopyId), "Copy id", Effect::Copy(row.id.to_string())));
        items.push(Item::action(id(Kind::CopyResume), "Copy resume command", Effect::Copy(resume)));
    }
    items.extend(words.notices.of_session(key, row));
    // What was seen to fail no longer colours the icon.
    if row.unseen || row.needs_you() && row.is_put_aside_when_seen() {
        items.push(Item::action(id(Kind::Seen), "Mark as seen", Effect::Seen));
    }
    fold(items, ROWS, Some(key), 0)
}
