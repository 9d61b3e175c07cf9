//! The icon on the bus: `org.kde.StatusNotifierItem`, as panels read it.

use super::menu;
use super::pictures::Pictures;
use crate::tray::icon::{Icon, Picture};
use crate::tray::view::MenuView;
use std::sync::{Arc, Mutex, PoisonError};
use zbus::object_server::SignalEmitter;
use zbus::zvariant::{ObjectPath, OwnedObjectPath};

/// Where the icon is on our connection.
pub(super) const PATH: &str = "/StatusNotifierItem";
/// Our name among the icons.
const ID: &str = "pilotlight";
/// Our name for people.
const TITLE: &str = "Pilotlight";

/// What a panel sees of the icon.
pub(super) struct Face {
    pub(super) title: String,
    pub(super) tooltip: String,
    pub(super) drawn: Drawn,
    /// Where the picture's file is.
    pub(super) folder: String,
}

/// The picture, in both ways that panels want it.
#[derive(Clone)]
pub(super) struct Drawn {
    /// Its file's name, without its ending; empty where it has none.
    pub(super) name: String,
    pub(super) pixels: Pixels,
}

impl Face {
    pub(super) fn of(view: &MenuView, drawn: Drawn, folder: String) -> Self {
        let title = if view.is_demo() { format!("{TITLE} demo") } else { TITLE.into() };
        Self { title, tooltip: view.tooltip.clone(), drawn, folder }
    }
}

/// Width, height, and the pixels as the bus wants them: each with its opacity first.
pub(super) type Pixels = (i32, i32, Vec<u8>);

pub(super) fn drawn(icon: Icon, pictures: &Pictures) -> anyhow::Result<Drawn> {
    let picture = icon.picture()?;
    let name = pictures.name(&picture);
    Ok(Drawn { name, pixels: pixels(picture)? })
}

fn pixels(picture: Picture) -> anyhow::Result<Pixels> {
    let mut data = picture.rgba;
    for pixel in data.chunks_exact_mut(4) {
        pixel.rotate_right(1);
    }
    Ok((picture.width.try_into()?, picture.height.try_into()?, data))
}

/// The icon, for the bus.
pub(super) struct Item(pub(super) Arc<Mutex<Face>>);

impl Item {
    fn face<T>(&self, of: impl FnOnce(&Face) -> T) -> T {
        of(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// It has no `Activate` and no `ContextMenu`: with a panel that calls them although `ItemIsMenu` says that there is a menu and
/// nothing else, the error is what makes it open that.
#[zbus::interface(name = "org.kde.StatusNotifierItem")]
impl Item {
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
        self.face(|face| face.title.clone())
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
        self.face(|face| face.drawn.name.clone())
    }

    #[zbus(property)]
    fn icon_theme_path(&self) -> String {
        self.face(|face| face.folder.clone())
    }

    #[zbus(property)]
    fn icon_pixmap(&self) -> Vec<Pixels> {
        self.face(|face| vec![face.drawn.pixels.clone()])
    }

    /// What a screen reader says of the picture.
    #[zbus(property)]
    fn icon_accessible_desc(&self) -> String {
        self.face(|face| format!("{}: {}", face.title, face.tooltip))
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

    /// The name of a picture, pictures, a title, text. What counts is the title: LXQt shows nothing else.
    #[zbus(property)]
    fn tool_tip(&self) -> (String, Vec<Pixels>, String, String) {
        self.face(|face| {
            let Drawn { name, pixels } = face.drawn.clone();
            (name, vec![pixels], face.tooltip.clone(), face.title.clone())
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

    /// Another title.
    #[zbus(signal)]
    pub(super) async fn new_title(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;

    /// Another picture.
    #[zbus(signal)]
    pub(super) async fn new_icon(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;

    /// Another tooltip.
    #[zbus(signal)]
    pub(super) async fn new_tool_tip(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tray::icon::State;

    #[test]
    fn a_pixel_has_its_opacity_first() {
        let icon = Icon { unseen: true, ..Icon::of(State::Trouble) };
        let (drawn, (width, height, data)) = (icon.picture().unwrap(), pixels(icon.picture().unwrap()).unwrap());
        assert_eq!((width, height), (drawn.width as i32, drawn.height as i32));
        for (rgba, argb) in drawn.rgba.chunks(4).zip(data.chunks(4)) {
            assert_eq!([rgba[3], rgba[0], rgba[1], rgba[2]], argb);
        }
    }
}
