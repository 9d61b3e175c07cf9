//! The menu as a value: what the tray shows, before any desktop is involved.
//!
//! A [`MenuView`] is made on the engine's thread, compared with the last one, and sent to the thread that owns the tray only
//! when it differs. It holds words and effects, nothing that is alive. Two views have the same *shape* when the same things
//! stand in the same places: then only words change, and a menu that is open stays open.

use super::hush::Hush;
use super::icon::Icon;
use crate::act::Order;
use crate::core::turn::Call;
use crate::engine::Key;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// How what the icon says begins, where the sessions play themselves.
pub const DEMO: &str = "demo: ";

/// Everything that the tray shows.
#[derive(Clone, Debug, PartialEq)]
pub struct MenuView {
    /// The icon.
    pub icon: Icon,
    /// What the icon says when it is pointed at.
    pub tooltip: String,
    /// The menu, from the top down.
    pub items: Vec<Item>,
}

/// A session in the words of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
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
    /// Something that is so or not, and is changed by a click.
    Check {
        /// Which one.
        id: ItemId,
        /// Its words.
        text: String,
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
    /// What a permission request asks for.
    Asks(Call),
    /// It is allowed, once.
    Approve(Call),
    /// It is refused.
    Deny(Call),
    /// It is shown whole elsewhere, and answered there.
    Details(Call),
    /// A question is answered by its choice of this number.
    Choice(Call, u8),
    /// It is turned down.
    Decline(Call),
    /// It is answered in a terminal.
    Answer(Call),
    /// Attaches to its server, or resumes it, and has it go on.
    Continue,
    /// Attaches to its server, or resumes it.
    Reconnect,
    /// The same, and sends the last prompt again.
    Resend,
    /// Stops its turn.
    Stop,
    /// The ways to end its process.
    Ending,
    /// Ends its process.
    End,
    /// Kills its process.
    ForceQuit,
    /// Resumes it in a terminal.
    Resume,
    /// Brings its terminal to the front.
    ShowTerminal,
    /// Lets go of it.
    Detach,
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
    /// It is muted, or heard again.
    MuteSession,
    /// Its folder is.
    MuteFolder,
    /// What is told beside the menu.
    Notifications,
    /// Nothing is told for an hour.
    PauseHour,
    /// Nothing is told until tomorrow.
    PauseTomorrow,
    /// Nothing is told until the user says so.
    PauseOn,
    /// The pause is over.
    Unpause,
    /// All that is muted is heard again.
    UnmuteAll,
    /// Shows what a notification looks like.
    TestNote,
    /// Whether the desktop starts this program.
    StartAtLogin,
    /// Shows our own log.
    OwnLog,
    /// Opens the settings.
    Settings,
    /// What a bug report needs.
    Diagnostics,
    /// It is shown.
    ShowDiagnostics,
    /// What was shown goes into the clipboard.
    CopyDiagnostics,
    /// What this program is.
    About,
    /// Resumes all that was open.
    Reopen,
    /// The ways to end the program, where sessions would end with it.
    Quitting,
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
    /// Something is done with a session.
    Act(Order),
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
    Hush(Hush),
    /// A notification is sent, to see whether any are shown.
    TestNote,
    /// The desktop starts this program from now on, or no longer.
    StartAtLogin(bool),
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

const FACT: &str = "fact-";
const CHOICE: &str = "choice-";
/// Makes the kind of an item of a request's.
type OfRequest = fn(Call) -> Kind;
/// The kinds that carry a request.
const REQUESTS: [(OfRequest, &str); 6] = [
    (Kind::Asks, "asks-"),
    (Kind::Approve, "approve-"),
    (Kind::Deny, "deny-"),
    (Kind::Details, "details-"),
    (Kind::Decline, "decline-"),
    (Kind::Answer, "answer-"),
];
const KINDS: [(Kind, &str); 39] = [
    (Kind::Row, "row"),
    (Kind::Why, "why"),
    (Kind::Continue, "continue"),
    (Kind::Reconnect, "reconnect"),
    (Kind::Resend, "resend"),
    (Kind::Stop, "stop"),
    (Kind::Ending, "ending"),
    (Kind::End, "end"),
    (Kind::ForceQuit, "force-quit"),
    (Kind::Resume, "resume"),
    (Kind::ShowTerminal, "show-terminal"),
    (Kind::Detach, "detach"),
    (Kind::OpenFolder, "open-folder"),
    (Kind::CopyId, "copy-id"),
    (Kind::CopyResume, "copy-resume"),
    (Kind::OpenLog, "open-log"),
    (Kind::Seen, "seen"),
    (Kind::Recent, "recent"),
    (Kind::SeenAll, "seen-all"),
    (Kind::Refresh, "refresh"),
    (Kind::MuteSession, "mute-session"),
    (Kind::MuteFolder, "mute-folder"),
    (Kind::Notifications, "notifications"),
    (Kind::PauseHour, "pause-hour"),
    (Kind::PauseTomorrow, "pause-tomorrow"),
    (Kind::PauseOn, "pause-on"),
    (Kind::Unpause, "unpause"),
    (Kind::UnmuteAll, "unmute-all"),
    (Kind::TestNote, "test-note"),
    (Kind::StartAtLogin, "start-at-login"),
    (Kind::OwnLog, "own-log"),
    (Kind::Settings, "settings"),
    (Kind::Diagnostics, "diagnostics"),
    (Kind::ShowDiagnostics, "show-diagnostics"),
    (Kind::CopyDiagnostics, "copy-diagnostics"),
    (Kind::About, "about"),
    (Kind::Reopen, "reopen"),
    (Kind::Quitting, "quitting"),
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
            Kind::Choice(call, n) => write!(f, "{CHOICE}{n}-{:x}", call.number())?,
            Kind::Asks(call)
            | Kind::Approve(call)
            | Kind::Deny(call)
            | Kind::Details(call)
            | Kind::Decline(call)
            | Kind::Answer(call) => {
                let name = REQUESTS.iter().find(|(kind, _)| kind(call) == self.kind).map_or("", |(_, name)| name);
                write!(f, "{name}{:x}", call.number())?;
            }
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
            None => match request_kind(name) {
                _ if let Some(choice) = name.strip_prefix(CHOICE) => choice_kind(choice).ok_or(())?,
                Some((kind, call)) => kind(call),
                None => KINDS.iter().find(|(_, known)| *known == name).ok_or(())?.0,
            },
        };
        let session = match (parts.next(), parts.next()) {
            (Some(home), Some(id)) => Some((home.parse().map_err(drop)?, id.into())),
            (None, _) => None,
            (Some(_), None) => return Err(()),
        };
        Ok(Self { session, kind })
    }
}

/// The kind of an item that answers by a choice.
fn choice_kind(choice: &str) -> Option<Kind> {
    let (n, call) = choice.split_once('-')?;
    Some(Kind::Choice(Call::of_number(u64::from_str_radix(call, 16).ok()?), n.parse().ok()?))
}

/// The kind of an item that carries a request, and which one.
fn request_kind(name: &str) -> Option<(OfRequest, Call)> {
    REQUESTS.iter().find_map(|(kind, prefix)| {
        let number = u64::from_str_radix(name.strip_prefix(prefix)?, 16).ok()?;
        Some((*kind, Call::of_number(number)))
    })
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
            Self::Action { id, .. } | Self::Check { id, .. } | Self::Submenu { id, .. } => Some(id),
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

impl MenuView {
    /// The effect of the item with this name, if it is shown and can be clicked now.
    pub fn effect_of(&self, id: &ItemId) -> Option<&Effect> {
        find(&self.items, id)
    }
}

fn find<'a>(items: &'a [Item], wanted: &ItemId) -> Option<&'a Effect> {
    items.iter().find_map(|item| match item {
        Item::Action { id, enabled, effect, .. } | Item::Check { id, enabled, effect, .. } => {
            (id == wanted && *enabled).then_some(effect)
        }
        Item::Submenu { items, .. } => find(items, wanted),
        Item::Text(_) | Item::Separator => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_items_name_is_read_back_as_it_was_written() {
        let requests = REQUESTS.map(|(kind, _)| kind(Call::of_number(u64::MAX)));
        let choices = [0, 255].map(|n| Kind::Choice(Call::of_number(u64::MAX), n));
        let facts = [Kind::Fact(0), Kind::Fact(255)];
        for kind in KINDS.map(|(kind, _)| kind).into_iter().chain(facts).chain(requests).chain(choices) {
            for session in [None, Some((0, "36535f61".into())), Some((12, "a:b:c".into())), Some((1, "".into()))] {
                let id = ItemId { session, kind };
                assert_eq!(id.to_string().parse(), Ok(id));
            }
        }
        for broken in [
            "",
            "nothing",
            "seen:0",
            "seen:x:a",
            "seen:-1:a",
            "fact-:0:a",
            "fact-256:0:a",
            "choice-1:0:a",
            "choice-256-1:0:a",
        ] {
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
        assert!(!same_shape(&one, &one[..1]));
    }
}
