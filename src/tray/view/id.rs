//! The ids of menu items, as clicks carry them from the panel back to us.

use crate::core::action::Action;
use crate::core::session::{Key, SourceId};
use crate::core::turn::Call;
use std::fmt;
use std::str::FromStr;

/// The id of an item, which stays the same for as long as its session exists. It is looked up when a click arrives; if
/// the item is no longer in the menu, nothing happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ItemId {
    /// The session that the item belongs to, if any.
    pub session: Option<Key>,
    /// The kind of item.
    pub kind: Kind,
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The row of a session.
    Row,
    /// A line of text, by its number. A click marks the session as seen.
    Fact(u8),
    /// The headline.
    Headline,
    /// Shows the table of all sessions.
    Live,
    /// The remedy below a row.
    Remedy,
    /// The submenu that explains the status.
    Why,
    /// The submenu of what cannot be done now.
    Refused,
    /// The submenu of rarely used entries.
    More,
    /// The entries that did not fit a list, by the number of the list.
    Fold(u8),
    /// A line of the text of a permission request or question, by its number.
    Asks(Call, u8),
    /// The submenu of answers to a question.
    Answers(Call),
    /// Approves a request once.
    Approve(Call),
    /// Denies a request.
    Deny(Call),
    /// Shows a request in full in a terminal, to be answered there.
    Details(Call),
    /// Answers a question with the choice of this number.
    Choice(Call, u8),
    /// Declines to answer a question.
    Decline(Call),
    /// Answers a question in a terminal.
    Answer(Call),
    /// Another action on the session.
    Act(Action),
    /// The submenu of ways to end the session.
    Ending,
    /// Opens the folder of the session.
    OpenFolder,
    /// Copies the id of the session.
    CopyId,
    /// Copies the command that resumes the session.
    CopyResume,
    /// Opens the log of the session.
    OpenLog,
    /// Marks the session as seen.
    Seen,
    /// Marks all sessions as seen.
    SeenAll,
    /// Rescans everything now.
    Refresh,
    /// Mutes or unmutes the session.
    MuteSession,
    /// Mutes or unmutes the folder of the session.
    MuteFolder,
    /// The submenu of notifications.
    Notifications,
    /// Pauses notifications for an hour.
    PauseHour,
    /// Pauses notifications until tomorrow.
    PauseTomorrow,
    /// Pauses notifications until the user resumes them.
    PauseOn,
    /// Resumes notifications.
    Unpause,
    /// Unmutes all sessions and folders.
    UnmuteAll,
    /// Sends a test notification.
    TestNote,
    /// Turns the start at login on or off.
    StartAtLogin,
    /// Installs or removes the bridge to terminals.
    Bridge,
    /// Offers to install the bridge to terminals.
    OfferBridge,
    /// Updates the bridge to this version.
    RenewBridge,
    /// Opens our own log.
    OwnLog,
    /// The submenu of settings.
    Settings,
    /// Opens the settings.
    EditSettings,
    /// Opens the settings because of an error in them.
    WrongSettings,
    /// The submenu of diagnostics.
    Diagnostics,
    /// Shows the diagnostics.
    ShowDiagnostics,
    /// Copies the diagnostics that were shown.
    CopyDiagnostics,
    /// The submenu about this program.
    About,
    /// Resumes the sessions that were left open.
    Reopen,
    /// The submenu that asks for confirmation because sessions may end with the program.
    Quitting,
    /// Ends the program.
    Quit,
}

const FACT: &str = "fact-";
const FOLD: &str = "fold-";
/// Creates the kind of an item for a request.
type OfRequest = fn(Call) -> Kind;
/// Creates the kind of a numbered item for a request.
type OneOfRequest = fn(Call, u8) -> Kind;
/// The kinds that carry a request, and the prefixes of their names.
const REQUESTS: [(OfRequest, &str); 6] = [
    (Kind::Answers, "answers-"),
    (Kind::Approve, "approve-"),
    (Kind::Deny, "deny-"),
    (Kind::Details, "details-"),
    (Kind::Decline, "decline-"),
    (Kind::Answer, "answer-"),
];
/// The kinds that carry a request and a number.
const NUMBERED: [(OneOfRequest, &str); 2] = [(Kind::Asks, "asks-"), (Kind::Choice, "choice-")];
const KINDS: [(Kind, &str); 39] = [
    (Kind::Headline, "headline"),
    (Kind::Live, "live"),
    (Kind::Row, "row"),
    (Kind::Remedy, "remedy"),
    (Kind::Why, "why"),
    (Kind::Refused, "refused"),
    (Kind::More, "more"),
    (Kind::Ending, "ending"),
    (Kind::OpenFolder, "open-folder"),
    (Kind::CopyId, "copy-id"),
    (Kind::CopyResume, "copy-resume"),
    (Kind::OpenLog, "open-log"),
    (Kind::Seen, "seen"),
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
    (Kind::Bridge, "bridge"),
    (Kind::OfferBridge, "offer-bridge"),
    (Kind::RenewBridge, "renew-bridge"),
    (Kind::OwnLog, "own-log"),
    (Kind::Settings, "settings"),
    (Kind::EditSettings, "edit-settings"),
    (Kind::WrongSettings, "wrong-settings"),
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
    pub(crate) fn of(key: &Key, kind: Kind) -> Self {
        Self { session: Some(key.clone()), kind }
    }

    /// An item that belongs to no session.
    pub(crate) const fn own(kind: Kind) -> Self {
        Self { session: None, kind }
    }
}

/// Formats like `open-folder:0:<id>` or `quit`.
impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Fact(n) => write!(f, "{FACT}{n}")?,
            Kind::Fold(n) => write!(f, "{FOLD}{n}")?,
            Kind::Asks(call, n) | Kind::Choice(call, n) => {
                let name = NUMBERED.iter().find(|(kind, _)| kind(call, n) == self.kind).map_or("", |(_, name)| name);
                write!(f, "{name}{n}-{:x}", call.number())?;
            }
            Kind::Answers(call)
            | Kind::Approve(call)
            | Kind::Deny(call)
            | Kind::Details(call)
            | Kind::Decline(call)
            | Kind::Answer(call) => {
                let name = REQUESTS.iter().find(|(kind, _)| kind(call) == self.kind).map_or("", |(_, name)| name);
                write!(f, "{name}{:x}", call.number())?;
            }
            Kind::Act(action) => f.write_str(action.name())?,
            kind => f.write_str(KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name))?,
        }
        match &self.session {
            Some(Key { source: SourceId(home), id }) => write!(f, ":{home}:{id}"),
            None => Ok(()),
        }
    }
}

impl FromStr for ItemId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, ':');
        let name = parts.next().ok_or(())?;
        let kind = if let Some(n) = name.strip_prefix(FACT) {
            Kind::Fact(n.parse().map_err(drop)?)
        } else if let Some(n) = name.strip_prefix(FOLD) {
            Kind::Fold(n.parse().map_err(drop)?)
        } else if let Some(kind) = numbered_kind(name).or_else(|| request_kind(name)) {
            kind
        } else {
            let action = || Action::ALL.into_iter().find(|action| action.name() == name).map(Kind::Act);
            KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind).or_else(action).ok_or(())?
        };
        let session = match (parts.next(), parts.next()) {
            (Some(home), Some(id)) => Some(Key::new(SourceId(home.parse().map_err(drop)?), id)),
            (None, _) => None,
            (Some(_), None) => return Err(()),
        };
        Ok(Self { session, kind })
    }
}

/// Parses the kind of an item that carries a request and a number.
fn numbered_kind(name: &str) -> Option<Kind> {
    NUMBERED.iter().find_map(|(kind, prefix)| {
        let (n, call) = name.strip_prefix(prefix)?.split_once('-')?;
        Some(kind(Call::from_number(u64::from_str_radix(call, 16).ok()?), n.parse().ok()?))
    })
}

/// Parses the kind of an item that carries a request.
fn request_kind(name: &str) -> Option<Kind> {
    REQUESTS.iter().find_map(|(kind, prefix)| {
        let number = u64::from_str_radix(name.strip_prefix(prefix)?, 16).ok()?;
        Some(kind(Call::from_number(number)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_round_trips_through_its_text() {
        let requests = REQUESTS.map(|(kind, _)| kind(Call::from_number(u64::MAX)));
        let numbered = NUMBERED.map(|(kind, _)| kind(Call::from_number(u64::MAX), 255));
        let facts = [Kind::Fact(0), Kind::Fact(255), Kind::Fold(0), Kind::Fold(255)];
        let actions = Action::ALL.map(Kind::Act);
        for kind in KINDS.map(|(kind, _)| kind).into_iter().chain(actions).chain(facts).chain(requests).chain(numbered)
        {
            for session in [
                None,
                Some(Key::new(SourceId::default(), "36535f61")),
                Some(Key::new(SourceId(12), "a:b:c")),
                Some(Key::new(SourceId(1), "")),
            ] {
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
}
