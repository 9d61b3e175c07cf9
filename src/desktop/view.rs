//! The menu as a value: what the tray shows, before any desktop is involved.
//!
//! A [`MenuView`] is made on the engine's thread, compared with the last one, and sent to the thread that owns the tray only
//! when it differs. It holds words and effects, nothing that is alive. Two views have the same *shape* when the same things
//! stand in the same places: then only words change, and a menu that is open stays open.

use super::icon::Icon;
use crate::engine::Key;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Everything that the tray shows.
#[derive(Clone, Debug, PartialEq)]
pub struct MenuView {
    /// The icon.
    pub icon: Icon,
    /// What the icon says when it is pointed at.
    pub tooltip: String,
    /// The menu, from the top down.
    pub items: Vec<Item>,
    /// The session that needs the user most, if there is any: what a click on the icon shows.
    pub most: Option<Most>,
}

/// The session that needs the user most, in the words of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Most {
    /// Which one.
    pub key: Key,
    /// Its mark, status and name.
    pub title: String,
    /// Why, and where.
    pub body: String,
}

/// One entry of the menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Words that nothing happens on.
    Text(String),
    /// A line between groups.
    Separator,
    /// Something to click.
    Action {
        /// Which one.
        id: ItemId,
        /// Its words.
        text: String,
        /// Whether it can be clicked now.
        enabled: bool,
        /// What a click does.
        effect: Effect,
    },
    /// A menu in the menu.
    Submenu {
        /// Which one.
        id: ItemId,
        /// Its words.
        text: String,
        /// Whether it can be opened now.
        enabled: bool,
        /// What is in it.
        items: Vec<Self>,
    },
}

/// Names an item for as long as its session exists. A click carries it, and it is looked up when the click arrives: where it
/// is not shown any more, nothing happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ItemId {
    /// The session that it belongs to.
    pub session: Option<Key>,
    /// What it is for.
    pub kind: Kind,
}

/// What an item is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The row of a session.
    Row,
    /// A line of its details, by its number: whoever clicks it has looked.
    Fact(u8),
    /// Why it has its status.
    Why,
    /// Shows its folder.
    OpenFolder,
    /// Its id, into the clipboard.
    CopyId,
    /// The command that resumes it, into the clipboard.
    CopyResume,
    /// Shows its log.
    OpenLog,
    /// It was looked at.
    Seen,
    /// The sessions that ended.
    Recent,
    /// All were looked at.
    SeenAll,
    /// Look at everything now.
    Refresh,
    /// Shows our own log.
    OwnLog,
    /// What this program is.
    About,
    /// The end.
    Quit,
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
    /// A folder is opened in the file manager.
    OpenFolder(PathBuf),
    /// A log is opened in whatever shows text.
    OpenLog(PathBuf),
    /// Our own log is opened.
    OwnLog,
    /// Text goes into the clipboard.
    Copy(String),
    /// The program ends.
    Quit,
}

const FACT: &str = "fact-";
const KINDS: [(Kind, &str); 13] = [
    (Kind::Row, "row"),
    (Kind::Why, "why"),
    (Kind::OpenFolder, "open-folder"),
    (Kind::CopyId, "copy-id"),
    (Kind::CopyResume, "copy-resume"),
    (Kind::OpenLog, "open-log"),
    (Kind::Seen, "seen"),
    (Kind::Recent, "recent"),
    (Kind::SeenAll, "seen-all"),
    (Kind::Refresh, "refresh"),
    (Kind::OwnLog, "own-log"),
    (Kind::About, "about"),
    (Kind::Quit, "quit"),
];

impl ItemId {
    /// An item of a session.
    pub fn of(key: &Key, kind: Kind) -> Self {
        Self { session: Some(key.clone()), kind }
    }

    /// An item of no session.
    pub const fn own(kind: Kind) -> Self {
        Self { session: None, kind }
    }
}

/// `open-folder:0:<id>`, `quit`.
impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Fact(n) => write!(f, "{FACT}{n}")?,
            kind => f.write_str(KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name))?,
        }
        match &self.session {
            Some((home, id)) => write!(f, ":{home}:{id}"),
            None => Ok(()),
        }
    }
}

impl FromStr for ItemId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, ':');
        let name = parts.next().ok_or(())?;
        let kind = match name.strip_prefix(FACT) {
            Some(n) => Kind::Fact(n.parse().map_err(drop)?),
            None => KINDS.iter().find(|(_, known)| *known == name).ok_or(())?.0,
        };
        let session = match (parts.next(), parts.next()) {
            (Some(home), Some(id)) => Some((home.parse().map_err(drop)?, id.into())),
            (None, _) => None,
            (Some(_), None) => return Err(()),
        };
        Ok(Self { session, kind })
    }
}

impl Item {
    /// Words that nothing happens on.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Something to click.
    pub fn action(id: ItemId, text: impl Into<String>, enabled: bool, effect: Effect) -> Self {
        Self::Action { id, text: text.into(), enabled, effect }
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
            Self::Action { id, .. } | Self::Submenu { id, .. } => Some(id),
            Self::Text(_) | Self::Separator => None,
        }
    }

    fn has_shape_of(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.id() == other.id()
            && same_shape(self.children(), other.children())
    }
}

/// Whether the same things stand in the same places.
pub fn same_shape(one: &[Item], other: &[Item]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.has_shape_of(b))
}

/// Whether two menus have equally many entries everywhere. A Linux panel tells the places of a menu apart by nothing else:
/// see [`super::tray`].
pub fn same_places(one: &[Item], other: &[Item]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same_places(a.children(), b.children()))
}

impl MenuView {
    /// The effect of the item with this name, if it is shown and can be clicked now.
    pub fn effect_of(&self, id: &ItemId) -> Option<&Effect> {
        find(&self.items, id)
    }
}

fn find<'a>(items: &'a [Item], wanted: &ItemId) -> Option<&'a Effect> {
    items.iter().find_map(|item| match item {
        Item::Action { id, enabled, effect, .. } => (id == wanted && *enabled).then_some(effect),
        Item::Submenu { items, .. } => find(items, wanted),
        Item::Text(_) | Item::Separator => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_items_name_is_read_back_as_it_was_written() {
        for kind in KINDS.map(|(kind, _)| kind).into_iter().chain([Kind::Fact(0), Kind::Fact(255)]) {
            for session in [None, Some((0, "36535f61".into())), Some((12, "a:b:c".into())), Some((1, "".into()))] {
                let id = ItemId { session, kind };
                assert_eq!(id.to_string().parse(), Ok(id));
            }
        }
        for broken in ["", "nothing", "seen:0", "seen:x:a", "seen:-1:a", "fact-:0:a", "fact-256:0:a"] {
            assert_eq!(broken.parse::<ItemId>(), Err(()), "{broken}");
        }
    }

    #[test]
    fn what_stands_in_a_place_belongs_to_the_shape_its_words_do_not() {
        let row = |id: &str, text: &str| Item::Submenu {
            id: ItemId::of(&(0, id.into()), Kind::Row),
            text: text.into(),
            enabled: true,
            items: vec![Item::text("x")],
        };
        let one = [row("a", "1"), row("b", "2")];
        assert!(same_shape(&one, &[row("a", "other"), row("b", "words")]));
        assert!(!same_shape(&one, &[row("b", "2"), row("a", "1")]), "another order is another shape");
        assert!(same_places(&one, &[row("b", "2"), row("a", "1")]), "that no panel can tell");
        assert!(!same_shape(&one, &one[..1]) && !same_places(&one, &one[..1]));
    }
}
