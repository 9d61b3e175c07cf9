//! The icon and its menu on a Linux desktop: a StatusNotifierItem on the session bus. Nothing is decided here: a [`MenuView`]
//! comes in and is made to stand there.
//!
//! All of it lives on the thread that owns the tray, in its runtime: what a panel asks is answered there, whatever the engine
//! is busy with, and a new view is one message on the bus for everything whose words changed.
//!
//! It is written over `zbus` by ourselves, because a click must do what its entry said: the libraries for it number the entries
//! by their places, so that after a change of places a click that is on its way hits whatever stands there now, and they do not
//! tell when the menu is open (`layout`).

mod forms;
mod item;
mod layout;
mod menu;
mod pictures;

use super::controller::Told;
use super::icon::Icon;
use super::view::MenuView;
use anyhow::Context;
use item::{Face, Item, PATH, drawn};
use menu::{Menu, PATH as MENU_PATH, Said, Shown, lock};
use pictures::Pictures;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use zbus::Connection;
use zbus::object_server::SignalEmitter;

/// Where icons are registered.
const WATCHER: &str = "org.kde.StatusNotifierWatcher";
/// How long the bus may take to let go of us.
const FAREWELL: Duration = Duration::from_millis(500);

/// Tells the main thread's loop what was clicked.
pub(crate) type Tell = Arc<dyn Fn(Told) + Send + Sync>;

/// The icon with its menu, for as long as it stands in the panel.
pub(crate) struct Tray {
    connection: Connection,
    face: Arc<Mutex<Face>>,
    shown: Arc<Mutex<Shown>>,
    /// The icon that is drawn.
    icon: Icon,
    pictures: Pictures,
    runtime: Rc<Runtime>,
}

impl Tray {
    /// Puts the icon up, and its picture into `state_folder` for panels that want a file. This talks to the panel, and waits
    /// for it for as long as it takes to answer.
    ///
    /// # Errors
    /// Where the desktop has no place for it: no session bus, one that refuses, or no panel.
    pub(crate) fn new(
        view: &MenuView,
        runtime: Rc<Runtime>,
        tell: Tell,
        state_folder: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let pictures = Pictures::below(state_folder);
        let face = Face::of(view, drawn(view.icon, &pictures)?, pictures.folder());
        let face = Arc::new(Mutex::new(face));
        let shown = Arc::new(Mutex::new(Shown::new(view, Instant::now())));
        let item = Item(Arc::clone(&face));
        let menu = Menu { shown: Arc::clone(&shown), tell };
        let connection = runtime.block_on(register(item, menu))?;
        Ok(Self { connection, face, shown, icon: view.icon, pictures, runtime })
    }

    /// Shows another view; what is equal is left alone.
    ///
    /// # Errors
    /// Where there is no picture of the icon; what was shown before stays.
    pub(crate) fn show(&mut self, view: &MenuView) -> anyhow::Result<()> {
        let (redrawn, retold) = {
            let mut face = self.face.lock().unwrap_or_else(PoisonError::into_inner);
            let redrawn = view.icon != self.icon;
            let drawn = if redrawn { drawn(view.icon, &self.pictures)? } else { face.drawn.clone() };
            let next = Face::of(view, drawn, self.pictures.folder());
            let retold = (face.title != next.title, face.tooltip != next.tooltip);
            *face = next;
            (redrawn, retold)
        };
        self.icon = view.icon;
        let (said, waits) = {
            let mut shown = lock(&self.shown);
            (shown.show(view, Instant::now()), shown.waits_until())
        };
        let told = async {
            let item = SignalEmitter::new(&self.connection, PATH)?;
            if redrawn {
                Item::new_icon(&item).await?;
            }
            // MATE's indicators read with the title what a screen reader says of the picture.
            if retold.0 || retold.1 {
                Item::new_title(&item).await?;
            }
            if retold.1 {
                Item::new_tool_tip(&item).await?;
            }
            say(&self.connection, said).await
        };
        if let Err(error) = self.runtime.block_on(told) {
            tracing::debug!("the panel could not be told: {error}"); // the bus is gone: noticed by who follows it
        }
        if let Some(at) = waits {
            self.runtime.spawn(wait_no_longer(self.connection.clone(), Arc::clone(&self.shown), at));
        }
        Ok(())
    }
}

impl Drop for Tray {
    fn drop(&mut self) {
        let close = self.connection.clone().close();
        // Where the bus does not answer it is gone with the program.
        let _ = self.runtime.block_on(async { tokio::time::timeout(FAREWELL, close).await });
    }
}

/// Puts both on the bus, under no name but the connection's own: GNOME's extension loses one in three icons that take another.
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

/// Says what changed.
async fn say(connection: &Connection, said: Said) -> zbus::Result<()> {
    let emitter = SignalEmitter::new(connection, MENU_PATH)?;
    if !said.changes.is_empty() {
        Menu::items_properties_updated(&emitter, said.changes.set, said.changes.unset).await?;
    }
    match said.laid_out {
        Some(revision) => Menu::layout_updated(&emitter, revision, layout::ROOT).await,
        None => Ok(()),
    }
}

/// Lays out what waits for a menu to be closed, where a panel does not say that it was.
async fn wait_no_longer(connection: Connection, shown: Arc<Mutex<Shown>>, at: Instant) {
    tokio::time::sleep_until(at.into()).await;
    let said = lock(&shown).wait_no_longer(Instant::now());
    if let Some(said) = said {
        let _ = say(&connection, said).await; // fails only with the bus
    }
}
