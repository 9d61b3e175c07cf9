//! The icon and its menu on a Linux desktop: a StatusNotifierItem and a dbusmenu on the session bus. Decides nothing:
//! it shows a [`MenuView`].
//!
//! All of it runs on the thread that owns the tray, in its runtime, so that panels are answered however busy the engine
//! is. When only labels change, a new view is one message on the bus.
//!
//! This is written directly over `zbus` because a click must do what its entry said. The existing libraries number
//! entries by position, so that a click in flight while the menu changes hits whatever took that position; and they do
//! not report when the menu is open (`layout`).

mod item;
mod layout;
mod menu;
mod pictures;
mod property;
mod sent_types;

use super::icon::Icon;
use super::messages::EventSender;
use super::view::MenuView;
use anyhow::Context;
use item::{Item, ItemState, PATH, render};
use menu::{Menu, MenuState, PATH as MENU_PATH, Update, lock};
use pictures::Pictures;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use zbus::Connection;
use zbus::object_server::SignalEmitter;

/// The bus name where items are registered.
const WATCHER: &str = "org.kde.StatusNotifierWatcher";
/// How long closing the connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The icon with its menu. Dropping it removes both from the panel.
pub(crate) struct Tray {
    connection: Connection,
    item: Arc<Mutex<ItemState>>,
    menu: Arc<Mutex<MenuState>>,
    /// The icon that is rendered.
    icon: Icon,
    pictures: Pictures,
    runtime: Rc<Runtime>,
}

impl Tray {
    /// Shows the icon, and writes its picture into `state_folder` for panels that need a file. Calls the panel and
    /// waits for its answer without a timeout.
    ///
    /// # Errors
    /// Where the desktop has no place for it: no session bus, one that refuses, or no panel.
    pub(crate) fn new(
        view: &MenuView,
        runtime: Rc<Runtime>,
        send: EventSender,
        state_folder: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let pictures = Pictures::new(state_folder);
        let item = ItemState::of(view, render(view.icon, &pictures)?, pictures.folder());
        let item = Arc::new(Mutex::new(item));
        let menu = Arc::new(Mutex::new(MenuState::new(view, Instant::now())));
        let registered = register(Item(Arc::clone(&item)), Menu { state: Arc::clone(&menu), send });
        let connection = runtime.block_on(registered)?;
        Ok(Self { connection, item, menu, icon: view.icon, pictures, runtime })
    }

    /// Shows another view; sends only what changed.
    ///
    /// # Errors
    /// Where the icon cannot be rendered; the previous view stays.
    pub(crate) fn show(&mut self, view: &MenuView) -> anyhow::Result<()> {
        let (icon_changed, title_changed, tooltip_changed) = {
            let mut item = self.item.lock().unwrap_or_else(PoisonError::into_inner);
            let icon_changed = view.icon != self.icon;
            let icon = if icon_changed { render(view.icon, &self.pictures)? } else { item.icon.clone() };
            let next = ItemState::of(view, icon, self.pictures.folder());
            let changed = (icon_changed, item.title != next.title, item.tooltip != next.tooltip);
            *item = next;
            changed
        };
        self.icon = view.icon;
        let (update, deadline) = {
            let mut menu = lock(&self.menu);
            (menu.show(view, Instant::now()), menu.pending_deadline())
        };
        let emitted = async {
            let item = SignalEmitter::new(&self.connection, PATH)?;
            if icon_changed {
                Item::new_icon(&item).await?;
            }
            // MATE's indicators read the accessible description, which contains the tooltip, only with the title.
            if title_changed || tooltip_changed {
                Item::new_title(&item).await?;
            }
            if tooltip_changed {
                Item::new_tool_tip(&item).await?;
            }
            emit(&self.connection, update).await
        };
        if let Err(error) = self.runtime.block_on(emitted) {
            tracing::debug!("the panel cannot be notified: {error}"); // the bus is gone, which its monitor reports
        }
        if let Some(deadline) = deadline {
            self.runtime.spawn(apply_overdue(self.connection.clone(), Arc::clone(&self.menu), deadline));
        }
        Ok(())
    }
}

impl Drop for Tray {
    fn drop(&mut self) {
        let close = self.connection.clone().close();
        // A bus that does not answer drops the connection when the program exits.
        let _ = self.runtime.block_on(async { tokio::time::timeout(CLOSE_TIMEOUT, close).await });
    }
}

/// Registers both under the connection's unique name: GNOME's extension loses one in three icons that own a well-known
/// one.
async fn register(item: Item, menu: Menu) -> anyhow::Result<Connection> {
    let built = zbus::connection::Builder::session()?.serve_at(PATH, item)?.serve_at(MENU_PATH, menu)?.build().await;
    let connection = built.context("the icon cannot be shown")?;
    let name = connection.unique_name().context("the bus gave us no name")?.to_string();
    let path = "/StatusNotifierWatcher";
    let registered =
        connection.call_method(Some(WATCHER), path, Some(WATCHER), "RegisterStatusNotifierItem", &name).await;
    match registered {
        Ok(_) => Ok(connection),
        Err(zbus::Error::MethodError(name, ..)) if name.as_str() == "org.freedesktop.DBus.Error.ServiceUnknown" => {
            anyhow::bail!("no panel with a tray is on the bus")
        }
        Err(error) => Err(error).context("the icon cannot be shown"),
    }
}

/// Emits the signals of an update.
async fn emit(connection: &Connection, update: Update) -> zbus::Result<()> {
    Menu::emit(&SignalEmitter::new(connection, MENU_PATH)?, update).await
}

/// Shows the pending menu after a deadline: the panel has not reported that the open menu was closed.
async fn apply_overdue(connection: Connection, menu: Arc<Mutex<MenuState>>, deadline: Instant) {
    tokio::time::sleep_until(deadline.into()).await;
    let update = lock(&menu).apply_overdue(Instant::now());
    if let Some(update) = update {
        let _ = emit(&connection, update).await; // fails only with the bus
    }
}
