//! The icon and its menu on a Linux desktop: a StatusNotifierItem and a dbusmenu on the session bus. Decides nothing:
//! it shows a [`MenuView`].
//!
//! All of it runs on the thread that owns the tray, in its runtime, so that panels are answered however busy the engine
//! is. When only labels change, a new view is one message on the bus.
//!
//! This is written directly over `zbus` because a click must do what its entry said. The existing libraries number
//! entries by position, so that a click in flight while the menu changes hits whatever took that position (`layout`); and
//! they do not report when the menu is open (`presence`).

mod fit;
mod item;
mod layout;
mod menu;
mod pictures;
mod presence;
mod property;
mod readers;
mod sent_types;
mod stale;

use super::icon::Icon;
use super::messages::{EventSender, MainEvent};
use super::view::MenuView;
use anyhow::Context;
use item::{Item, ItemState, render};
use menu::{ITEM_PATH, Menu, MenuState, PATH as MENU_PATH, Update, lock};
use pictures::Pictures;
use pilotlight_engine::terminal::{self, OpenMenu};
use pilotlight_system::log::{self, cause};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use zbus::Connection;
use zbus::fdo::DBusProxy;
use zbus::names::BusName;
use zbus::object_server::SignalEmitter;

/// The bus name where items are registered.
const WATCHER: &str = "org.kde.StatusNotifierWatcher";
/// How long to wait before the icon is shown again on a bus that closed its connection.
const RETURN_AFTER: Duration = Duration::from_secs(1);
/// How long a panel may take to accept the icon: as long as the bus waits for any answer.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(25);
/// How long closing the connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long it may take to find out whether the menu is still on the screen: less than how long it is still held then.
const FIND_TIMEOUT: Duration = Duration::from_millis(800);

/// There is no panel to show the icon in.
#[derive(Debug, thiserror::Error)]
#[error("no panel with a system tray is on the bus")]
pub(crate) struct NoPanel;

/// The icon with its menu. Dropping it removes both from the panel.
pub(crate) struct Tray {
    connection: Connection,
    item: Arc<Mutex<ItemState>>,
    menu: Arc<Mutex<MenuState>>,
    /// The icon that is rendered.
    icon: Icon,
    pictures: Pictures,
    runtime: Rc<Runtime>,
    /// Notified when the deadline of the menu may have changed.
    wake: Arc<Notify>,
    /// Does what is due at that deadline.
    timer: JoinHandle<()>,
}

impl Tray {
    /// Shows the icon, and writes its pictures into `state_folder` for panels that need a file. Calls the panel and
    /// waits for its answer, for at most [`REGISTER_TIMEOUT`].
    ///
    /// # Errors
    /// Where the desktop has no place for it: no session bus, one that refuses, or no panel.
    pub(crate) fn new(
        view: &MenuView,
        runtime: Rc<Runtime>,
        send: EventSender,
        state_folder: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let pictures = Pictures::new(state_folder, view.icon_settings);
        let item = ItemState::of(view, render(view.icon, &pictures)?, pictures.folder());
        let item = Arc::new(Mutex::new(item));
        let menu = Arc::new(Mutex::new(MenuState::new(view, Instant::now())));
        let wake = Arc::<Notify>::default();
        let served = Menu { state: Arc::clone(&menu), send: Arc::clone(&send), wake: Arc::clone(&wake) };
        let icon = Item { state: Arc::clone(&item), menu: Arc::clone(&menu), send: Arc::clone(&send) };
        let connection = runtime.block_on(register(icon, served))?;
        let timer = runtime.spawn(keep_deadlines(connection.clone(), Arc::clone(&menu), Arc::clone(&wake), send));
        Ok(Self { connection, item, menu, icon: view.icon, pictures, runtime, wake, timer })
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
        let update = lock(&self.menu).show(view, Instant::now());
        self.wake.notify_one();
        let emitted = async {
            let item = SignalEmitter::new(&self.connection, ITEM_PATH)?;
            if icon_changed {
                Item::new_icon(&item).await?;
            }
            // MATE's indicators read the accessible description, which contains the tooltip, only with the title.
            if title_changed || tooltip_changed {
                Item::new_title(&item).await?;
            }
            if tooltip_changed {
                menu::new_tool_tip(&self.connection).await?;
            }
            emit(&self.connection, update).await
        };
        if let Err(error) = self.runtime.block_on(emitted) {
            log::debug!("the panel cannot be notified: {}", cause(&error)); // the bus is gone, which its monitor reports
        }
        Ok(())
    }
}

impl Drop for Tray {
    fn drop(&mut self) {
        self.timer.abort();
        let close = self.connection.clone().close();
        // A bus that does not answer drops the connection when the program exits.
        let _ = self.runtime.block_on(async { tokio::time::timeout(CLOSE_TIMEOUT, close).await });
    }
}

/// Registers both under the connection's unique name: GNOME's extension loses one in three icons that own a well-known
/// one.
async fn register(item: Item, menu: Menu) -> anyhow::Result<Connection> {
    let built =
        zbus::connection::Builder::session()?.serve_at(ITEM_PATH, item)?.serve_at(MENU_PATH, menu)?.build().await;
    let connection = built.context("the icon cannot be shown")?;
    let name = connection.unique_name().context("the bus gave us no name")?.to_string();
    let path = "/StatusNotifierWatcher";
    let register = connection.call_method(Some(WATCHER), path, Some(WATCHER), "RegisterStatusNotifierItem", &name);
    let failed = match tokio::time::timeout(REGISTER_TIMEOUT, register).await {
        Ok(Ok(_)) => return Ok(connection),
        Ok(Err(zbus::Error::MethodError(name, ..))) if name.as_str() == "org.freedesktop.DBus.Error.ServiceUnknown" => {
            NoPanel.into()
        }
        Ok(Err(error)) => anyhow::Error::from(error).context("the icon cannot be shown"),
        Err(_) => anyhow::anyhow!("the panel does not answer"),
    };
    // The panel may have accepted it, and answered too late.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection.close()).await;
    Err(failed)
}

/// Emits the signals of an update.
async fn emit(connection: &Connection, update: Update) -> zbus::Result<()> {
    Menu::emit(&SignalEmitter::new(connection, MENU_PATH)?, update).await
}

/// The menu that the panel with this bus name has on the screen. `None` if there is none, or nobody can tell: only X11 can
/// be asked.
async fn open_menu(connection: &Connection, panel: &str) -> Option<OpenMenu> {
    let find = async {
        let bus = DBusProxy::new(connection).await.ok()?;
        let pid = bus.get_connection_unix_process_id(BusName::try_from(panel).ok()?).await.ok()?;
        tokio::task::spawn_blocking(move || terminal::open_menu(pid)).await.ok()?
    };
    tokio::time::timeout(FIND_TIMEOUT, find).await.ok()?
}

/// Resolves when a menu is closed. It is waited for on a thread of its own, which nothing waits for at the end.
async fn closed(menu: OpenMenu) {
    let (send, receive) = oneshot::channel();
    let wait = move || {
        menu.wait_until_closed();
        let _ = send.send(()); // nobody listens at the end
    };
    if std::thread::Builder::new().name("menu".into()).spawn(wait).is_ok() {
        let _ = receive.await;
    }
}

/// Does what is due at the deadlines of the menu, until the bus closes the connection: without a word, and without an end
/// of the bus that its monitor would report.
async fn keep_deadlines(connection: Connection, menu: Arc<Mutex<MenuState>>, wake: Arc<Notify>, send: EventSender) {
    // While it is known that the menu is on the screen: until it is closed.
    let mut closing: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = None;
    let mut was_covered = false;
    loop {
        let (deadlines, is_covered) = {
            let (menu, now) = (lock(&menu), Instant::now());
            let covered_until = menu.covered_until(now);
            ([menu.deadline(now), menu.doubtful_at(), covered_until], covered_until.is_some())
        };
        if is_covered != was_covered {
            was_covered = is_covered;
            let _ = menu::new_tool_tip(&connection).await; // fails only with the bus
        }
        let deadline = deadlines.into_iter().flatten().min();
        let is_due = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        let is_closed = async {
            match closing.as_mut() {
                Some(closing) => closing.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wake.notified() => {}
            () = is_closed => {
                closing = None;
                lock(&menu).was_closed(Instant::now());
            }
            () = connection.closed() => {
                tokio::time::sleep(RETURN_AFTER).await;
                return send(MainEvent::IconClosed);
            }
            () = is_due => {
                let doubted = lock(&menu).doubted(Instant::now());
                if let Some(panel) = doubted {
                    if closing.is_none() {
                        closing = open_menu(&connection, &panel).await.map(|menu| Box::pin(closed(menu)) as _);
                    }
                    lock(&menu).found(closing.is_some(), Instant::now());
                    continue;
                }
                let (update, is_unread) = lock(&menu).on_deadline(Instant::now());
                if is_unread {
                    send(MainEvent::MenuUnread);
                }
                let _ = emit(&connection, update).await; // fails only with the bus
            }
        }
    }
}
