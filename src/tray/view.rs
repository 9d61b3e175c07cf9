//! The menu as a value: what the tray shows, before any desktop is involved.
//!
//! A [`MenuView`] is made on the engine's thread, compared with the last one, and sent to the thread that owns the tray only
//! when it differs. It holds words and effects, nothing that is alive. An age in it is a point in time, and worded when the menu
//! is about to be shown: no view differs from another because time has passed. Two views have the same *shape* when the same
//! things stand in the same places: then only words change, and a menu that is open stays open.

mod id;

use super::icon::Icon;
use super::mute::Mute;
use crate::core::fleet::TOLD_APART;
use crate::core::gist::Gist;
use crate::core::order::Order;
use crate::core::text::fit;
use crate::core::time::Moment;
use crate::core::verdict::Status;
use crate::engine::Key;
use crate::system::clock::Clock;
pub use id::{ItemId, Kind};
use std::path::PathBuf;
use std::sync::Arc;
use unicode_width::UnicodeWidthStr;

/// How what the icon says begins, where the sessions play themselves.
pub(crate) const DEMO: &str = "demo: ";
/// No row is wider, in columns: a submenu opens beside it, and never under the pointer.
pub(crate) const COLUMNS: usize = 48;
/// No submenu has more entries.
pub(crate) const ROWS: usize = 10;
/// Stands in a row before the name of a session that has news.
pub(crate) const NEWS: &str = "● ";
const JOINT: &str = " — ";

/// Everything that the tray shows.
#[derive(Clone, Debug, PartialEq)]
pub struct MenuView {
    /// The icon.
    pub icon: Icon,
    /// What the icon says when it is pointed at.
    pub tooltip: String,
    /// The menu, from the top down.
    pub items: Vec<Item>,
    /// What ages are counted by.
    pub clock: Clock,
}

/// The words of an item, which may end in an age.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    head: Arc<str>,
    gist: Option<Gist>,
}

/// A session in the words of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Its mark, status and name.
    pub title: String,
    /// Why, and where.
    pub body: String,
}

/// One entry of the menu.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Words that nothing happens on.
    Text(Text),
    /// A line between groups.
    Separator,
    /// Something to click.
    Action {
        /// Which one.
        id: ItemId,
        /// Its words.
        text: Text,
        /// What a click does.
        effect: Effect,
    },
    /// Something that is so or not, and is changed by a click.
    Check {
        /// Which one.
        id: ItemId,
        /// Its words.
        text: Text,
        /// Whether it can be clicked now.
        enabled: bool,
        /// Whether it is so.
        checked: bool,
        /// What a click does.
        effect: Effect,
    },
    /// A menu in the menu.
    Submenu {
        /// Which one.
        id: ItemId,
        /// Its words.
        text: Text,
        /// The status whose picture stands beside it.
        picture: Option<Status>,
        /// What is in it.
        items: Vec<Self>,
    },
}

/// What a click does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// This session was looked at.
    Seen,
    /// All sessions were looked at.
    SeenAll,
    /// Everything is looked at now.
    Refresh,
    /// Something is done with a session.
    Act(Box<Order>),
    /// A permission request is shown whole, and answered, in a terminal.
    Details {
        /// The session's id.
        id: Box<str>,
        /// The request's.
        request: Box<str>,
    },
    /// A question is shown whole, and answered, in a terminal.
    Answer {
        /// The session's id.
        id: Box<str>,
        /// The question's.
        request: Box<str>,
    },
    /// These sessions are resumed.
    Reopen(Vec<Order>),
    /// A folder is opened in the file manager.
    OpenFolder(PathBuf),
    /// A log is opened in whatever shows text.
    OpenLog(PathBuf),
    /// The user wants to hear less, or more.
    Mute(Mute),
    /// A notification is sent, to see whether any are shown.
    TestNote,
    /// The desktop starts this program from now on, or no longer.
    StartAtLogin(bool),
    /// In a terminal, the bridge to terminals is switched on, or off: what that takes is shown there, and asked.
    Bridge(bool),
    /// What lies on our disk of the bridge becomes this version's.
    RenewBridge,
    /// Our own log is opened.
    OwnLog,
    /// The settings are opened in an editor.
    OpenSettings,
    /// What a bug report needs is gathered, and shown.
    ShowDiagnostics,
    /// What was shown of it goes into the clipboard.
    CopyDiagnostics,
    /// Text goes into the clipboard.
    Copy(String),
    /// The program ends.
    Quit,
}

impl From<String> for Text {
    fn from(head: String) -> Self {
        Self { head: head.into(), gist: None }
    }
}

impl From<&str> for Text {
    fn from(head: &str) -> Self {
        Self::from(head.to_owned())
    }
}

impl Text {
    /// What it is, and why: `▶ ml-train · Train again — 40 s`.
    pub(crate) fn row(head: String, gist: Gist) -> Self {
        Self { head: head.into(), gist: Some(gist) }
    }

    /// Words that are an age, or end in one.
    pub(crate) fn age(gist: Gist) -> Self {
        Self::row(String::new(), gist)
    }

    /// As they are true now, within [`COLUMNS`].
    pub(crate) fn at(&self, now: Moment) -> String {
        let Some(gist) = &self.gist else { return fit(&self.head, COLUMNS) };
        let words = gist.words(now);
        if self.head.is_empty() || words.is_empty() {
            return fit(&format!("{}{words}", self.head), COLUMNS);
        }
        let room = COLUMNS - JOINT.width();
        // Which session it is, is told however long the reason: by its mark, and by what tells its name from others.
        let mark = 2 + if self.head.contains(NEWS) { NEWS.width() } else { 0 };
        let head = fit(&self.head, (mark + TOLD_APART).max(room.saturating_sub(words.width())));
        format!("{head}{JOINT}{}", fit(&words, room - head.width()))
    }

    /// Whether time changes them.
    pub(crate) fn has_age(&self) -> bool {
        self.gist.as_ref().is_some_and(Gist::has_age)
    }
}

impl Item {
    /// Words that nothing happens on.
    pub(crate) fn text(text: impl Into<Text>) -> Self {
        Self::Text(text.into())
    }

    /// Something to click.
    pub(crate) fn action(id: ItemId, text: impl Into<Text>, effect: Effect) -> Self {
        Self::Action { id, text: text.into(), effect }
    }

    /// A menu in the menu.
    pub(crate) fn submenu(id: ItemId, text: impl Into<Text>, items: Vec<Self>) -> Self {
        Self::Submenu { id, text: text.into(), picture: None, items }
    }

    /// What is in it.
    pub fn children(&self) -> &[Self] {
        match self {
            Self::Submenu { items, .. } => items,
            _ => &[],
        }
    }

    /// Its name, where it has one.
    pub const fn id(&self) -> Option<&ItemId> {
        match self {
            Self::Action { id, .. } | Self::Check { id, .. } | Self::Submenu { id, .. } => Some(id),
            Self::Text(_) | Self::Separator => None,
        }
    }

    /// Its words, where it has any.
    pub(crate) const fn words(&self) -> Option<&Text> {
        match self {
            Self::Text(text) | Self::Action { text, .. } | Self::Check { text, .. } | Self::Submenu { text, .. } => {
                Some(text)
            }
            Self::Separator => None,
        }
    }

    /// Whether it can be used. Words alone cannot.
    pub(crate) const fn is_enabled(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Check { enabled, .. } => *enabled,
            Self::Separator | Self::Action { .. } | Self::Submenu { .. } => true,
        }
    }

    fn has_shape_of(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.id() == other.id()
            && same_shape(self.children(), other.children())
    }
}

/// Whether the same things stand in the same places.
pub(crate) fn same_shape(one: &[Item], other: &[Item]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.has_shape_of(b))
}

/// At most so many entries: those that do not fit stand in a submenu at the end, and so on. `number` is the list's own, and
/// those of the submenus count on from it.
pub(crate) fn fold(mut items: Vec<Item>, most: usize, session: Option<&Key>, number: u8) -> Vec<Item> {
    if items.len() > most {
        let rest = items.split_off(most - 1);
        let more = format!("{} more", rest.len());
        let id = ItemId { session: session.cloned(), kind: Kind::Fold(number) };
        items.push(Item::submenu(id, more, fold(rest, ROWS, session, number.wrapping_add(1))));
    }
    items
}

impl MenuView {
    /// The effect of the item with this name, if it is shown and can be clicked now.
    pub(crate) fn effect_of(&self, id: &ItemId) -> Option<&Effect> {
        find(&self.items, id)
    }

    /// Whether the same things stand in the same places.
    pub fn has_shape_of(&self, other: &Self) -> bool {
        same_shape(&self.items, &other.items)
    }

    /// Whether its sessions play themselves.
    pub(crate) fn is_demo(&self) -> bool {
        self.tooltip.starts_with(DEMO)
    }
}

fn find<'a>(items: &'a [Item], wanted: &ItemId) -> Option<&'a Effect> {
    items.iter().find_map(|item| match item {
        Item::Action { id, effect, .. } | Item::Check { id, enabled: true, effect, .. } => {
            (id == wanted).then_some(effect)
        }
        Item::Submenu { items, .. } => find(items, wanted),
        Item::Check { .. } | Item::Text(_) | Item::Separator => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Time;

    #[test]
    fn what_stands_in_a_place_belongs_to_the_shape_its_words_do_not() {
        let row =
            |id: &str, text: &str| Item::submenu(ItemId::of(&(0, id.into()), Kind::Row), text, vec![Item::text("x")]);
        let one = [row("a", "1"), row("b", "2")];
        assert!(same_shape(&one, &[row("a", "other"), row("b", "words")]));
        assert!(!same_shape(&one, &[row("b", "2"), row("a", "1")]), "another order is another shape");
        assert!(!same_shape(&one, &one[..1]));
    }

    #[test]
    fn a_row_keeps_to_its_columns_and_its_name_and_reason_are_both_there() {
        let begun = Moment::of(Time(0));
        let row = |head: &str, gist: &str| Text::row(head.into(), Gist::of(gist)).at(begun);
        assert_eq!(row("▶ a", "40 s"), "▶ a — 40 s");
        assert_eq!(
            row("⚑ billing-api · Write the migration of invoices", "rm -rf build"),
            "⚑ billing-api · Write the migrat… — rm -rf build"
        );
        assert_eq!(row(&"n".repeat(99), &"r".repeat(99)), format!("{}… — {}…", "n".repeat(25), "r".repeat(18)));
        assert_eq!(row("⚑ a", &"r".repeat(99)).width(), COLUMNS);
        for wide in [row(&"日".repeat(40), "ls"), row("? a", &"本".repeat(40)), row(&"日".repeat(40), &"本".repeat(40))]
        {
            assert!((COLUMNS - 2..=COLUMNS).contains(&wide.width()), "{wide}");
        }
    }
}
