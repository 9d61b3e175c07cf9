//! The icon on the bus: `org.kde.StatusNotifierItem`, as panels read it.

use super::menu::{self, ICON_CLICK, MenuState, lock};
use super::pictures::Pictures;
use crate::tray::icon::{Icon, Picture};
use crate::tray::messages::{EventSender, MainEvent};
use crate::tray::view::MenuView;
use pilotlight_core::text::escaped;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use zbus::fdo;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::zvariant::{ObjectPath, OwnedObjectPath};

/// The item's id.
const ID: &str = "pilotlight";
/// The item's title.
const TITLE: &str = "Pilotlight";

/// The current properties of the item.
pub(super) struct ItemState {
    pub(super) title: String,
    pub(super) tooltip: String,
    pub(super) icon: RenderedIcon,
    /// The folder of the icon's file.
    pub(super) folder: String,
}

/// The icon in both forms that panels read.
#[derive(Clone)]
pub(super) struct RenderedIcon {
    /// The file's name without its extension; empty if there is none.
    pub(super) name: String,
    pub(super) pixels: Pixels,
}

impl ItemState {
    pub(super) fn of(view: &MenuView, icon: RenderedIcon, folder: String) -> Self {
        let title = if view.demo { format!("{TITLE} demo") } else { TITLE.into() };
        Self { title, tooltip: view.tooltip.clone(), icon, folder }
    }
}

/// Width, height and ARGB pixels, as the specification wants them.
pub(super) type Pixels = (i32, i32, Vec<u8>);

pub(super) fn render(icon: Icon, pictures: &Pictures) -> anyhow::Result<RenderedIcon> {
    let picture = icon.picture()?;
    let name = pictures.name(&picture);
    Ok(RenderedIcon { name, pixels: pixels(picture)? })
}

fn pixels(picture: Picture) -> anyhow::Result<Pixels> {
    let mut data = picture.rgba;
    for pixel in data.chunks_exact_mut(4) {
        pixel.rotate_right(1);
    }
    Ok((picture.width.try_into()?, picture.height.try_into()?, data))
}

/// The item's interface on the bus.
pub(super) struct Item {
    pub(super) state: Arc<Mutex<ItemState>>,
    /// Knows whether the panel opens the menu.
    pub(super) menu: Arc<Mutex<MenuState>>,
    pub(super) send: EventSender,
}

impl Item {
    fn state<T>(&self, read: impl FnOnce(&ItemState) -> T) -> T {
        read(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Handles a click on the icon that the panel reports instead of opening the menu, or before it does. The answer is
    /// an error: panels that call this despite `ItemIsMenu` then open the menu, and GNOME's extension stops waiting for
    /// a second click. If the panel opens no menu, as LXQt 1.2 and MATE's notification area do on a left click, the
    /// sessions are shown in another way.
    fn clicked(&self, call: &str) -> fdo::Result<()> {
        let clicked = Instant::now();
        if lock(&self.menu).click_icon(clicked) {
            let (menu, send) = (Arc::clone(&self.menu), Arc::clone(&self.send));
            tokio::spawn(async move {
                tokio::time::sleep(ICON_CLICK).await;
                if !lock(&menu).opened_for(clicked) {
                    send(MainEvent::IconClicked);
                }
            });
        }
        Err(fdo::Error::UnknownMethod(format!("{call}: the icon is a menu")))
    }
}

#[allow(clippy::needless_pass_by_value, reason = "zbus passes arguments by value")]
#[zbus::interface(name = "org.kde.StatusNotifierItem")]
impl Item {
    /// A left click.
    async fn activate(&self, _x: i32, _y: i32) -> fdo::Result<()> {
        self.clicked("Activate")
    }

    /// A right click, from a panel that draws no menus.
    async fn context_menu(&self, _x: i32, _y: i32) -> fdo::Result<()> {
        self.clicked("ContextMenu")
    }

    /// The wheel does nothing.
    fn scroll(&self, _delta: i32, _orientation: &str) {}

    #[zbus(property)]
    fn category(&self) -> String {
        "ApplicationStatus".into()
    }

    #[zbus(property)]
    fn id(&self) -> String {
        ID.into()
    }

    #[zbus(property)]
    fn title(&self) -> String {
        self.state(|state| state.title.clone())
    }

    #[zbus(property)]
    fn status(&self) -> String {
        "Active".into()
    }

    #[zbus(property)]
    fn window_id(&self) -> i32 {
        0
    }

    #[zbus(property)]
    fn icon_name(&self) -> String {
        self.state(|state| state.icon.name.clone())
    }

    #[zbus(property)]
    fn icon_theme_path(&self) -> String {
        self.state(|state| state.folder.clone())
    }

    #[zbus(property)]
    fn icon_pixmap(&self) -> Vec<Pixels> {
        self.state(|state| vec![state.icon.pixels.clone()])
    }

    /// Read out by screen readers.
    #[zbus(property)]
    fn icon_accessible_desc(&self) -> String {
        self.state(|state| format!("{}: {}", state.title, state.tooltip))
    }

    #[zbus(property)]
    fn overlay_icon_name(&self) -> String {
        String::new()
    }

    #[zbus(property)]
    fn overlay_icon_pixmap(&self) -> Vec<Pixels> {
        Vec::new()
    }

    #[zbus(property)]
    fn attention_icon_name(&self) -> String {
        String::new()
    }

    #[zbus(property)]
    fn attention_icon_pixmap(&self) -> Vec<Pixels> {
        Vec::new()
    }

    #[zbus(property)]
    fn attention_movie_name(&self) -> String {
        String::new()
    }

    /// Icon name, pixmaps, title, text. The important part is in the title, as LXQt shows nothing else. While the menu is
    /// open it is blank: XFCE and waybar leave it over the first rows. XFCE would show other words in place of empty ones.
    #[zbus(property)]
    fn tool_tip(&self, #[zbus(header)] header: Option<Header<'_>>) -> (String, Vec<Pixels>, String, String) {
        let reader = header.as_ref().and_then(Header::sender);
        let (is_markup, covers_menu) = {
            let menu = lock(&self.menu);
            (reader.is_some_and(|reader| menu.reads_markup(reader)), menu.covered_until(Instant::now()).is_some())
        };
        self.state(|state| {
            let RenderedIcon { name, pixels } = state.icon.clone();
            if covers_menu {
                return (name, Vec::new(), "\u{200b}".into(), "\u{200b}".into());
            }
            let tooltip = if is_markup { escaped(&state.tooltip) } else { state.tooltip.clone() };
            (name, vec![pixels], tooltip, state.title.clone())
        })
    }

    #[zbus(property)]
    fn item_is_menu(&self) -> bool {
        true
    }

    #[zbus(property)]
    fn menu(&self) -> OwnedObjectPath {
        ObjectPath::from_static_str_unchecked(menu::PATH).into()
    }

    #[zbus(signal)]
    pub(super) async fn new_title(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(super) async fn new_icon(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tray::icon::State;

    #[test]
    fn pixels_are_argb() {
        let icon = Icon { unseen: true, ..Icon::of(State::Trouble) };
        let (picture, (width, height, data)) = (icon.picture().unwrap(), pixels(icon.picture().unwrap()).unwrap());
        assert_eq!((width, height), (picture.width as i32, picture.height as i32));
        for (rgba, argb) in picture.rgba.chunks(4).zip(data.chunks(4)) {
            assert_eq!([rgba[3], rgba[0], rgba[1], rgba[2]], argb);
        }
    }
}
