//! What the parts of the tray send each other: to the main thread, to the engine's thread and to the notifier. They are
//! defined apart from both sender and receiver, so that neither has to import the other.

use super::mute::Mute;
use super::note::Note;
use super::view::{Effect, ItemId, MenuView};
use pilotlight_core::action::Action;
use pilotlight_core::alert::{Button, PopupId};
use pilotlight_core::session::Key;
use std::sync::Arc;

/// An event for the main thread.
#[derive(Clone, Debug)]
pub(crate) enum MainEvent {
    /// A new view to show.
    View(Arc<MenuView>),
    /// The menu was clicked, as this process reports, if the bus knows which.
    #[cfg(target_os = "linux")]
    Click(Click, Option<u32>),
    /// The icon was clicked, and the panel opened no menu.
    #[cfg(target_os = "linux")]
    IconClicked,
    /// The panel opened the menu, and did not read it.
    #[cfg(target_os = "linux")]
    MenuUnread,
    /// The bus closed the connection of the icon.
    #[cfg(target_os = "linux")]
    IconClosed,
    /// It is time to show the icon again, which failed.
    #[cfg(target_os = "linux")]
    ShowIcon,
    /// The entry with this id was clicked.
    #[cfg(not(target_os = "linux"))]
    Click(tray_icon::menu::MenuId),
    /// The session bus or the panel changed.
    #[cfg(target_os = "linux")]
    Bus(BusEvent),
    /// The engine has ended.
    End,
}

/// A click in the menu.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Click {
    /// On an item that did this when it was shown.
    Item(ItemId, Effect),
    /// Just after the menu had changed: it may have been meant for another entry.
    Unaimed,
    /// On an entry that is long gone.
    #[cfg(target_os = "linux")]
    Outdated,
}

/// Sends events to the main thread's loop.
#[cfg(target_os = "linux")]
pub(crate) type EventSender = Arc<dyn Fn(MainEvent) + Send + Sync>;

/// A change of the bus or the panel.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BusEvent {
    /// The bus is connected.
    Connected {
        /// Whether a panel with a tray is running.
        panel: bool,
    },
    /// A panel appeared (true) or disappeared.
    Panel(bool),
    /// The bus cannot be used, for this reason.
    Unavailable(String),
    /// The connection to the bus was lost.
    Lost,
    /// A panel is running but does not answer.
    PanelUnresponsive,
    /// The display has room for a menu of this many entries.
    MenuCapacity(usize),
    /// The desktop session is over.
    SessionOver,
}

/// A change of the desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DesktopEvent {
    /// The panel shows the icon.
    IconShown,
    /// The icon cannot be shown; for the user: what is missing, and why.
    IconMissing(String),
    /// The display has room for a menu of this many entries.
    MenuCapacity(usize),
}

/// An event for the notifier.
#[derive(Clone, Debug)]
pub(crate) enum NotifierEvent {
    /// A popup was clicked or closed.
    Popup(PopupId, PopupEvent),
    /// The user muted, unmuted, paused or resumed notifications.
    Mute(Mute),
    /// A note about a session, to be completed with what it offers.
    Note {
        about: Key,
        note: Note,
        /// Whether it says what became of the session.
        became: bool,
        /// What did not work just now.
        failed: Option<Action>,
    },
    /// Whether the terminal of a session has the focus.
    Focus { about: Key, has_focus: bool },
}

pub(crate) type NotifierSender = Arc<dyn Fn(NotifierEvent) + Send + Sync>;

/// The end of a popup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopupEvent {
    /// The user clicked it, but not a button.
    Default,
    /// The user clicked this button.
    Action(Button),
    /// It was closed, or never shown.
    Closed {
        /// The user dismissed it, and so has seen it.
        by_user: bool,
    },
}
