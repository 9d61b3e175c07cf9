//! What the parts of the tray send each other: to the main thread, to the engine's thread and to the notifier. They are
//! defined apart from both sender and receiver, so that neither has to import the other.

use super::mute::Mute;
use super::view::MenuView;
use crate::core::alert::{Button, PopupId};
use std::sync::Arc;

/// An event for the main thread.
#[derive(Clone, Debug)]
pub(crate) enum MainEvent {
    /// A new view to show.
    View(Arc<MenuView>),
    /// An item was clicked.
    Click {
        /// The item's id, as text.
        item: String,
        /// Whether the menu had been unchanged long enough for the click to be meant for this item.
        aimed: bool,
    },
    /// The session bus or the panel changed.
    #[cfg(target_os = "linux")]
    Bus(BusEvent),
    /// The engine has ended.
    End,
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
    /// The icon cannot be shown; for the user: what is missing, and what still works.
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
}

/// Sends events to the notifier.
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
