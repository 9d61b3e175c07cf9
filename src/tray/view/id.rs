//! The ids of menu items.

use pilotlight_core::action::Action;
use pilotlight_core::session::Key;
use pilotlight_core::turn::Call;

/// The id of an item, which stays the same for as long as its session exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ItemId {
    /// The session that the item belongs to, if any.
    pub session: Option<Key>,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Row,
    /// A line of text, by its number. A click marks the session as seen.
    Fact(u8),
    Headline,
    /// The row of a machine that is not reached, by its number, and of what is in its submenu.
    Host(u8),
    HostFact(u8, u8),
    RetryHost(u8),
    /// Shows the table of all sessions.
    LiveTable,
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
    /// Says why a permission request is refused.
    DenyWithNote(Call),
    /// Refuses a permission request, and stops its turn.
    DenyAndStop(Call),
    /// The rules that a permission request suggests.
    Rules(Call),
    /// Allows a permission request, and adds its rules.
    Always(Call),
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
    OpenFolder,
    /// Copies the id of the session.
    CopyId,
    /// Copies the command that resumes the session.
    CopyResume,
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
    /// Installs or removes the bridge to terminals of the agent with this number.
    Bridge(u8),
    /// Offers to install it.
    OfferBridge(u8),
    /// Updates it to this version.
    RenewBridge(u8),
    /// Adds another machine.
    AddHost,
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
