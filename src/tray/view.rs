//! The menu as a value, independent of any desktop.
//!
//! A [`MenuView`] is built on the engine's thread, compared with the last one, and sent to the thread that owns the
//! tray only if it differs. It is plain data. An age in it is a point in time, which is worded when the menu is about
//! to be shown: views do not differ just because time has passed. Two views have the same *shape* if they have the same
//! items in the same order; then only texts change, and an open menu stays open.

mod id;

use super::autostart::StartLine;
use super::icon::Icon;
use super::mute::Mute;
pub use id::{ItemId, Kind};
use pilotlight_core::fleet::Row;
use pilotlight_core::order::Order;
use pilotlight_core::session::Key;
use pilotlight_core::short_reason::ShortReason;
use pilotlight_core::text::{fit, isolated};
use pilotlight_core::time::{Moment, Time};
use pilotlight_core::verdict::Status;
use pilotlight_engine::LastProgress;
use pilotlight_engine::config::Tray;
use pilotlight_system::clock::Clock;
use std::path::PathBuf;
use std::sync::Arc;
use unicode_width::UnicodeWidthStr;

/// Maximum width of an entry, in columns: its submenu must open next to it, never under the pointer.
pub(crate) const COLUMNS: usize = 48;
/// Maximum number of entries in a submenu.
pub(crate) const ROWS: usize = 10;
/// The marker in front of the name of an unseen session.
const UNSEEN: &str = "● ";
const SEPARATOR: &str = " — ";
/// With fewer columns than this for its title, a row shows none of it: ` · Title`.
const TITLE_MIN: usize = 8;

/// Everything that the tray shows.
#[derive(Clone, Debug, PartialEq)]
pub struct MenuView {
    pub icon: Icon,
    /// The settings of the icon.
    pub icon_settings: Tray,
    pub demo: bool,
    /// The tooltip of the icon.
    pub tooltip: String,
    /// The menu, from the top down.
    pub items: Vec<Item>,
    /// The clock for ages.
    pub clock: Clock,
}

/// The text of an item, which may end with an age.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// What comes before the text of a row.
    lead: Option<Lead>,
    head: Arc<str>,
    /// This many bytes of the head may stand without the rest; 0 if it is needed to tell sessions apart.
    alone: usize,
    /// The columns that the head must have.
    least: usize,
    /// What follows the head where there is room.
    mark: Box<str>,
    short_reason: Option<ShortReason>,
    /// What it ends with, however long the rest is.
    end: &'static str,
    /// When something last happened, if the age says that: read when the text is shown.
    last: Option<LastProgress>,
}

/// What comes before the name in the row of a session: the mark of its status, and whether it is unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lead {
    pub status: Status,
    /// Whether the user has not looked at it since.
    pub unseen: bool,
}

/// A text as a panel shows it.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Worded {
    /// All of it.
    pub text: String,
    /// How many bytes of it come before its own words.
    pub words_at: usize,
}

/// The name of a session, as far as its row has room for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowName {
    /// The whole name.
    pub whole: String,
    /// This many bytes of it may stand without the rest; 0 if it is needed to tell sessions apart.
    pub alone: usize,
    /// The columns of it that are always shown, if it is that wide and may not stand without the rest.
    pub least: usize,
    /// What follows it where there is room: ` (Claude)`.
    pub mark: String,
}

/// One entry of the menu.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Text that cannot be clicked.
    Text(Text),
    /// A separator between groups.
    Separator,
    /// An entry to click.
    Action {
        id: ItemId,
        text: Text,
        /// The effect of a click.
        effect: Effect,
    },
    /// An entry with a check mark, which a click toggles.
    Check {
        id: ItemId,
        text: Text,
        /// Whether it can be clicked now.
        enabled: bool,
        checked: bool,
        /// The effect of a click.
        effect: Effect,
    },
    Submenu {
        id: ItemId,
        text: Text,
        /// The status whose picture is shown next to it.
        picture: Option<Status>,
        items: Vec<Self>,
    },
}

/// What is shown in full in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reviewed {
    /// A permission request.
    Permission,
    /// The same, to be denied with a note.
    Denial,
    /// A question.
    Question,
}

/// The effect of a click.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Marks the session as seen.
    Seen,
    /// Marks all sessions as seen.
    SeenAll,
    /// Rescans everything now.
    Refresh,
    /// Gives an order to a session.
    Act(Box<Order>),
    /// Shows the table of all sessions in a terminal.
    LiveTable,
    /// Shows what a session asks in full in a terminal, to be answered there.
    Review {
        what: Reviewed,
        /// The session's id.
        id: Box<str>,
        /// The machine that it is on, if it is another one.
        host: Option<Box<str>>,
        /// The id of the request or question.
        request: Box<str>,
    },
    /// Tries to reach a machine again now.
    RetryHost(Box<str>),
    /// Resumes these sessions.
    Reopen(Vec<Order>),
    /// Opens a folder in the file manager.
    OpenFolder(PathBuf),
    /// Opens a log in the default text viewer.
    OpenLog(PathBuf),
    /// Mutes, unmutes, pauses or resumes notifications.
    Mute(Mute),
    /// Sends a test notification.
    TestNote,
    /// Turns the start at login on or off.
    StartAtLogin(bool),
    /// Installs or removes the bridge of this agent, in a terminal that shows what this changes and asks for confirmation.
    Bridge(&'static str, bool),
    /// Replaces the files of this agent's bridge with those of this version.
    RenewBridge(&'static str),
    /// Adds another machine, in a terminal that shows what could be added and asks.
    AddHost,
    /// Opens our own log.
    OwnLog,
    /// Opens the settings in an editor.
    OpenSettings,
    /// Collects the diagnostics for a bug report and shows them.
    ShowDiagnostics,
    /// Copies the diagnostics that were shown.
    CopyDiagnostics,
    /// Copies text.
    Copy(String),
    /// Copies the line that starts this program at login, and says where it belongs.
    CopyStartLine(Box<StartLine>),
    /// Ends the program, and perhaps these sessions, which the user was told of.
    Quit(Vec<Key>),
}

impl Effect {
    /// Shows the request or question with this id of a session.
    pub(crate) fn review(what: Reviewed, row: &Row, request: &str) -> Self {
        Self::Review { what, id: row.id.clone(), host: row.host.clone(), request: request.into() }
    }

    /// Whether the user would say that both do the same.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Act(one), Self::Act(other)) => one.is_same_as(other),
            (Self::Reopen(one), Self::Reopen(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_same_as(other))
            }
            (one, other) => one == other,
        }
    }
}

impl From<String> for Text {
    fn from(head: String) -> Self {
        Self {
            lead: None,
            head: head.into(),
            alone: 0,
            least: 0,
            mark: "".into(),
            short_reason: None,
            end: "",
            last: None,
        }
    }
}

impl From<&str> for Text {
    fn from(head: &str) -> Self {
        Self::from(head.to_owned())
    }
}

impl Text {
    /// The name and the reason for the status: `▶ ml-train · Train again — 2 min, 8 tools, last seen 45 s ago`.
    pub(crate) fn row(lead: Lead, name: RowName, short_reason: ShortReason, last: &LastProgress) -> Self {
        // Views must not differ by a time that is read later.
        let (short_reason, last) = if short_reason.has_last() {
            (short_reason.with_last(Time(0)), Some(last.clone()))
        } else {
            (short_reason, None)
        };
        let RowName { whole, alone, least, mark } = name;
        Self {
            lead: Some(lead),
            head: whole.into(),
            alone,
            least,
            mark: mark.into(),
            short_reason: Some(short_reason),
            end: "",
            last,
        }
    }

    /// The same, with this at its end.
    pub(crate) fn ending(self, end: &'static str) -> Self {
        Self { end, ..self }
    }

    /// A text that is an age, or ends with one.
    pub(crate) fn age(short_reason: ShortReason) -> Self {
        Self { short_reason: Some(short_reason), ..Self::from("") }
    }

    /// Words with the time since something last happened: `Last activity, 45 s ago`.
    pub(crate) fn since_last(words: &str, last: &LastProgress) -> Self {
        Self { last: Some(last.clone()), ..Self::age(ShortReason::Ago(words.into(), Time(0))) }
    }

    /// The text with its age as of now, within [`COLUMNS`]. Of a row that is too long the agent is left out first, then the
    /// title is cut, then the reason; the distinctive part of the name is always shown.
    #[cfg(any(test, not(target_os = "linux")))]
    pub(crate) fn at(&self, now: Moment) -> String {
        self.after(&self.lead.map(Lead::mark).unwrap_or_default(), now)
    }

    /// The same, and where in it its own words begin. Next to a picture that says what its mark says: without the mark.
    #[cfg(target_os = "linux")]
    pub(crate) fn label(&self, beside_picture: bool, now: Moment) -> Worded {
        let lead = self.lead.map(if beside_picture { Lead::unseen } else { Lead::mark }).unwrap_or_default();
        Worded { text: self.after(&lead, now), words_at: lead.len() }
    }

    /// What comes before the text of a row.
    #[cfg(target_os = "linux")]
    pub(crate) const fn lead(&self) -> Option<Lead> {
        self.lead
    }

    fn after(&self, lead: &str, now: Moment) -> String {
        if self.end.is_empty() {
            return self.within(COLUMNS, lead, now);
        }
        let end = format!(" {}", self.end);
        self.within(COLUMNS - end.width(), lead, now) + &end
    }

    fn within(&self, columns: usize, lead: &str, now: Moment) -> String {
        let room = columns - lead.width();
        let Some(short_reason) = &self.short_reason else { return format!("{lead}{}", fit(&self.head, room)) };
        let room = room - SEPARATOR.width();
        let (who, width) = (self.head[..self.alone].width(), self.head.width());
        let whole = width + self.mark.width();
        let least = if self.alone > 0 { who } else { whole }.min(self.least);
        let words = match &self.last {
            Some(last) => short_reason.clone().with_last(last.get()).words_within(room - least, now),
            None => short_reason.words_within(room - least, now),
        };
        if self.head.is_empty() || words.is_empty() {
            let room = columns - lead.width();
            let mark = if self.head.is_empty() || whole > room { "" } else { &self.mark };
            return format!("{lead}{}", isolated(&fit(&format!("{}{mark}{words}", self.head), room)));
        }
        let words = fit(&words, room - least);
        let left = room - words.width();
        let head = match &self.head[..self.alone] {
            alone if self.alone > 0 && left < width && (who..who + TITLE_MIN).contains(&left) => alone.to_owned(),
            _ if whole <= left => format!("{}{}", self.head, self.mark),
            _ => fit(&self.head, left),
        };
        format!("{lead}{}{SEPARATOR}{}", isolated(&head), isolated(&words))
    }

    /// Whether the text contains an age.
    pub(crate) fn has_age(&self) -> bool {
        self.short_reason.as_ref().is_some_and(ShortReason::has_age)
    }
}

impl Lead {
    fn mark(self) -> String {
        format!("{} {}", self.status.mark().0, self.unseen())
    }

    fn unseen(self) -> String {
        if self.unseen { UNSEEN.into() } else { String::new() }
    }
}

impl Item {
    /// Text that cannot be clicked.
    pub(crate) fn text(text: impl Into<Text>) -> Self {
        Self::Text(text.into())
    }

    /// An entry to click.
    pub(crate) fn action(id: ItemId, text: impl Into<Text>, effect: Effect) -> Self {
        Self::Action { id, text: text.into(), effect }
    }

    /// A submenu without a picture.
    pub(crate) fn submenu(id: ItemId, text: impl Into<Text>, items: Vec<Self>) -> Self {
        Self::Submenu { id, text: text.into(), picture: None, items }
    }

    /// The entries of a submenu.
    pub fn children(&self) -> &[Self] {
        match self {
            Self::Submenu { items, .. } => items,
            _ => &[],
        }
    }

    pub const fn id(&self) -> Option<&ItemId> {
        match self {
            Self::Action { id, .. } | Self::Check { id, .. } | Self::Submenu { id, .. } => Some(id),
            Self::Text(_) | Self::Separator => None,
        }
    }

    /// The effect of a click, if it has one.
    pub(crate) const fn effect(&self) -> Option<&Effect> {
        match self {
            Self::Action { effect, .. } | Self::Check { effect, .. } => Some(effect),
            Self::Submenu { .. } | Self::Text(_) | Self::Separator => None,
        }
    }

    pub(crate) const fn words(&self) -> Option<&Text> {
        match self {
            Self::Text(text) | Self::Action { text, .. } | Self::Check { text, .. } | Self::Submenu { text, .. } => {
                Some(text)
            }
            Self::Separator => None,
        }
    }

    /// Whether it is enabled. Text is not.
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

/// Whether both have the same items in the same order.
pub(crate) fn same_shape(one: &[Item], other: &[Item]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.has_shape_of(b))
}

/// Limits a list to `max` entries: the others go into a submenu at its end, recursively. `number` identifies the list;
/// its submenus get the following numbers.
pub(crate) fn fold(mut items: Vec<Item>, max: usize, session: Option<&Key>, number: u8) -> Vec<Item> {
    if items.len() > max {
        let rest = items.split_off(max - 1);
        let more = format!("{} more", rest.len());
        let id = ItemId { session: session.cloned(), kind: Kind::Fold(number) };
        items.push(Item::submenu(id, more, fold(rest, ROWS, session, number.wrapping_add(1))));
    }
    items
}

impl MenuView {
    /// The effect of the item with this id, if it is in the menu and can be clicked.
    pub(crate) fn effect_of(&self, id: &ItemId) -> Option<&Effect> {
        find(&self.items, id)
    }

    /// The status of this session, if it has a row.
    pub(crate) fn status_of(&self, key: &Key) -> Option<Status> {
        status_of(&self.items, &ItemId::of(key, Kind::Row))
    }

    /// Whether both have the same items in the same order.
    pub fn has_shape_of(&self, other: &Self) -> bool {
        same_shape(&self.items, &other.items)
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

fn status_of(items: &[Item], row: &ItemId) -> Option<Status> {
    items.iter().find_map(|item| match item {
        Item::Submenu { id, text, .. } | Item::Action { id, text, .. } if id == row => {
            text.lead.map(|lead| lead.status)
        }
        item => status_of(item.children(), row),
    })
}

#[cfg(test)]
mod tests;
