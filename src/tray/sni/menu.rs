//! The menu on the bus: `com.canonical.dbusmenu`, as panels call it.
//!
//! While the menu is closed, a new view is only kept, and panels are told once that what they have is out of date
//! ([`Stale`](super::stale::Stale)). They are sent it when they open the menu, or read it. While the menu is open it stands still
//! ([`Presence`](super::presence::Presence)): words change in place, and everything else waits.

mod state;

use super::layout::LayoutReply;
use super::property::{Properties, Property, ROOT};
use crate::tray::messages::{EventSender, MainEvent};
use state::{EventOutcome, LayoutRead, Opening};
pub(super) use state::{ICON_CLICK, MenuState, Update};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::timeout;
use zbus::Connection;
use zbus::fdo::{self, DBusProxy};
use zbus::message::Header;
use zbus::names::BusName;
use zbus::object_server::SignalEmitter;
use zbus::zvariant::Value;

/// The object path of the menu.
pub(super) const PATH: &str = "/MenuBar";
/// The object path of the icon.
pub(super) const ITEM_PATH: &str = "/StatusNotifierItem";
/// How long after a menu was read its submenus are announced: the panel must know them by then.
const ANNOUNCE_AFTER: Duration = Duration::from_millis(30);
/// How long the bus may take to tell which process called.
const BUS_WITHIN: Duration = Duration::from_secs(2);

/// The menu's interface on the bus.
pub(super) struct Menu {
    pub(super) state: Arc<Mutex<MenuState>>,
    pub(super) send: EventSender,
    /// Notified when the deadline of the state may have changed.
    pub(super) wake: Arc<Notify>,
}

pub(super) fn lock(state: &Mutex<MenuState>) -> MutexGuard<'_, MenuState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A panel's event in `EventGroup`: the entry, the event, its data, a timestamp.
type PanelEvent<'a> = (i32, &'a str, Value<'a>, u32);

impl Menu {
    /// A panel is about to show the menu with this number. `None` if there is none.
    fn opening(&self, header: &Header<'_>, number: i32) -> Option<Opening> {
        let mut state = lock(&self.state);
        state.opened_by(caller(header));
        state.about_to_show(number, Instant::now())
    }

    async fn handle_event(&self, header: &Header<'_>, emitter: &SignalEmitter<'_>, number: i32, event: &str) -> bool {
        let outcome = lock(&self.state).handle_event(number, event, Instant::now());
        let Some(EventOutcome { click, update }) = outcome else { return false };
        if let Some(click) = click {
            (self.send)(MainEvent::Click(click, clicker(header, emitter.connection()).await));
        }
        self.wake.notify_one();
        let _ = Self::emit(emitter, update).await;
        true
    }

    /// Emits the signals of an update. Fails only with the bus, which its monitor reports.
    pub(super) async fn emit(emitter: &SignalEmitter<'_>, Update { changes, revision }: Update) -> zbus::Result<()> {
        if !changes.is_empty() {
            Self::items_properties_updated(emitter, changes.set, changes.unset).await?;
        }
        match revision {
            Some(revision) => Self::layout_updated(emitter, revision, ROOT).await,
            None => Ok(()),
        }
    }
}

/// Announces menus a little later: submenus so that the panel reads them before it shows them.
fn announce(emitter: &SignalEmitter<'_>, revision: u32, menus: Vec<i32>) {
    if menus.is_empty() {
        return;
    }
    let emitter = emitter.to_owned();
    tokio::spawn(async move {
        tokio::time::sleep(ANNOUNCE_AFTER).await;
        for menu in menus {
            let _ = Menu::layout_updated(&emitter, revision, menu).await; // fails only with the bus
        }
    });
}

/// Tells panels that the icon's tooltip changed, or reads differently for one of them.
pub(super) async fn new_tool_tip(connection: &Connection) -> zbus::Result<()> {
    connection.emit_signal(None::<&str>, ITEM_PATH, "org.kde.StatusNotifierItem", "NewToolTip", &()).await
}

/// The unique bus name of the caller.
fn caller<'a>(header: &'a Header<'_>) -> &'a str {
    header.sender().map_or("", |sender| sender.as_str())
}

/// The process of the caller. `None` if the bus does not tell in time.
async fn clicker(header: &Header<'_>, connection: &Connection) -> Option<u32> {
    let sender = BusName::from(header.sender()?.to_owned());
    let asked = async { DBusProxy::new(connection).await?.get_connection_unix_process_id(sender).await };
    timeout(BUS_WITHIN, asked).await.ok()?.ok()
}

fn no_entry(number: i32) -> fdo::Error {
    fdo::Error::InvalidArgs(format!("there is no entry {number} any more"))
}

#[allow(clippy::needless_pass_by_value, reason = "zbus passes arguments by value")]
#[zbus::interface(name = "com.canonical.dbusmenu")]
impl Menu {
    async fn get_layout(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        parent_id: i32,
        recursion_depth: i32,
        property_names: Vec<String>,
    ) -> fdo::Result<(u32, LayoutReply)> {
        let scope = (parent_id, recursion_depth);
        let reading = lock(&self.state).read_layout(caller(&header), scope, property_names, Instant::now());
        let LayoutRead { changes, revision, submenus, tooltip, reply } = reading;
        self.wake.notify_one();
        announce(&emitter, revision, submenus);
        if tooltip {
            let _ = new_tool_tip(emitter.connection()).await; // fails only with the bus
        }
        // The reply has the new layout, but GNOME's extension reads only new entries from it.
        let _ = Self::emit(&emitter, Update { changes, revision: None }).await;
        reply.map(|reply| (revision, reply)).ok_or_else(|| no_entry(parent_id))
    }

    fn get_group_properties(
        &self,
        #[zbus(header)] header: Header<'_>,
        ids: Vec<i32>,
        property_names: Vec<String>,
    ) -> Vec<(i32, Properties)> {
        lock(&self.state).read_properties(caller(&header), &ids, &property_names, Instant::now())
    }

    fn get_property(&self, #[zbus(header)] header: Header<'_>, id: i32, name: String) -> fdo::Result<Property> {
        let property = lock(&self.state).read_property(caller(&header), id, &name).ok_or_else(|| no_entry(id))?;
        property.ok_or_else(|| fdo::Error::InvalidArgs(format!("entry {id} has no {name}")))
    }

    async fn event(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        id: i32,
        event_id: &str,
        _data: Value<'_>,
        _timestamp: u32,
    ) -> fdo::Result<()> {
        if self.handle_event(&header, &emitter, id, event_id).await { Ok(()) } else { Err(no_entry(id)) }
    }

    async fn event_group(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        events: Vec<PanelEvent<'_>>,
    ) -> fdo::Result<Vec<i32>> {
        let mut unknown = Vec::new();
        for (id, event, ..) in &events {
            if !self.handle_event(&header, &emitter, *id, event).await {
                unknown.push(*id);
            }
        }
        match unknown.len() == events.len() && !unknown.is_empty() {
            true => Err(no_entry(unknown[0])),
            false => Ok(unknown),
        }
    }

    /// Sends what changed before the reply, which says whether the layout must be read again.
    async fn about_to_show(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        id: i32,
    ) -> fdo::Result<bool> {
        let opening = self.opening(&header, id);
        self.wake.notify_one();
        let Opening { update, is_new, later, revision } = opening.ok_or_else(|| no_entry(id))?;
        announce(&emitter, revision, later);
        let _ = Self::emit(&emitter, update).await;
        Ok(is_new)
    }

    async fn about_to_show_group(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        ids: Vec<i32>,
    ) -> (Vec<i32>, Vec<i32>) {
        let (mut updated, mut unknown) = (Vec::new(), Vec::new());
        for id in ids {
            let opening = self.opening(&header, id);
            match opening {
                Some(Opening { update, is_new, later, revision }) => {
                    updated.extend(is_new.then_some(id));
                    announce(&emitter, revision, later);
                    let _ = Self::emit(&emitter, update).await;
                }
                None => unknown.push(id),
            }
        }
        self.wake.notify_one();
        (updated, unknown)
    }

    #[zbus(property)]
    fn version(&self) -> u32 {
        3
    }

    #[zbus(property)]
    fn text_direction(&self) -> String {
        "ltr".into()
    }

    #[zbus(property)]
    fn status(&self) -> String {
        "normal".into()
    }

    #[zbus(property)]
    fn icon_theme_path(&self) -> Vec<String> {
        Vec::new()
    }

    #[zbus(signal)]
    async fn layout_updated(emitter: &SignalEmitter<'_>, revision: u32, parent: i32) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn items_properties_updated(
        emitter: &SignalEmitter<'_>,
        updated_props: Vec<(i32, Properties)>,
        removed_props: Vec<(i32, Vec<&str>)>,
    ) -> zbus::Result<()>;
}
