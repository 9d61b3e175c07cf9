//! The names of the menu's items: what a click carries, on its way from the panel and back to us.

use crate::core::action::Action;
use crate::core::turn::Call;
use crate::engine::Key;
use std::fmt;
use std::str::FromStr;

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
    /// A line of words, by its number: whoever clicks it has looked.
    Fact(u8),
    /// What puts it right, right below its row.
    Remedy,
    /// Why it has its status.
    Why,
    /// What cannot be done with it now.
    Refused,
    /// What is rarely wanted.
    More,
    /// What did not fit the list that it stands in, by the number of that list.
    Fold(u8),
    /// A line of what a permission request, or a question, asks for, by its number.
    Asks(Call, u8),
    /// The ways to answer a question.
    Answers(Call),
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
    /// Something is done with it.
    Act(Action),
    /// The ways to end its process.
    Ending,
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
    /// Whether sessions in terminals can be answered.
    Bridge,
    /// The bridge becomes this version's.
    RenewBridge,
    /// Shows our own log.
    OwnLog,
    /// What is set, and what this program is.
    Settings,
    /// Opens the settings.
    EditSettings,
    /// The same, where they are wrong.
    WrongSettings,
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

const FACT: &str = "fact-";
const FOLD: &str = "fold-";
/// Makes the kind of an item of a request's.
type OfRequest = fn(Call) -> Kind;
/// The same of one of several.
type OneOfRequest = fn(Call, u8) -> Kind;
/// The kinds that carry a request.
const REQUESTS: [(OfRequest, &str); 6] = [
    (Kind::Answers, "answers-"),
    (Kind::Approve, "approve-"),
    (Kind::Deny, "deny-"),
    (Kind::Details, "details-"),
    (Kind::Decline, "decline-"),
    (Kind::Answer, "answer-"),
];
/// Those that carry a number, too.
const NUMBERED: [(OneOfRequest, &str); 2] = [(Kind::Asks, "asks-"), (Kind::Choice, "choice-")];
const KINDS: [(Kind, &str); 36] = [
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

    /// An item of no session.
    pub(crate) const fn own(kind: Kind) -> Self {
        Self { session: None, kind }
    }
}

/// `open-folder:0:<id>`, `quit`.
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
            (Some(home), Some(id)) => Some((home.parse().map_err(drop)?, id.into())),
            (None, _) => None,
            (Some(_), None) => return Err(()),
        };
        Ok(Self { session, kind })
    }
}

/// The kind of an item that carries a request and a number.
fn numbered_kind(name: &str) -> Option<Kind> {
    NUMBERED.iter().find_map(|(kind, prefix)| {
        let (n, call) = name.strip_prefix(prefix)?.split_once('-')?;
        Some(kind(Call::of_number(u64::from_str_radix(call, 16).ok()?), n.parse().ok()?))
    })
}

/// The kind of an item that carries a request.
fn request_kind(name: &str) -> Option<Kind> {
    REQUESTS.iter().find_map(|(kind, prefix)| {
        let number = u64::from_str_radix(name.strip_prefix(prefix)?, 16).ok()?;
        Some(kind(Call::of_number(number)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_items_name_is_read_back_as_it_was_written() {
        let requests = REQUESTS.map(|(kind, _)| kind(Call::of_number(u64::MAX)));
        let numbered = NUMBERED.map(|(kind, _)| kind(Call::of_number(u64::MAX), 255));
        let facts = [Kind::Fact(0), Kind::Fact(255), Kind::Fold(0), Kind::Fold(255)];
        let actions = Action::ALL.map(Kind::Act);
        for kind in KINDS.map(|(kind, _)| kind).into_iter().chain(actions).chain(facts).chain(requests).chain(numbered)
        {
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
}
