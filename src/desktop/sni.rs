//! The icon and its menu on a Linux desktop: a StatusNotifierItem on the session bus. Nothing is decided here: a [`MenuView`]
//! comes in and is made to stand there.
//!
//! All of it lives on the thread that owns the tray, in its runtime: what a panel asks is answered there, whatever the engine
//! is busy with, and a new view is one message on the bus for everything whose words changed, sent without another thread.
//! That is why `ksni` is used as it is, and not by way of `tray-icon`: there each change goes through two more threads.
//!
//! Where only words changed they are changed in place, so that an open menu stays open and every entry keeps its id on the bus.
//! Another shape is a new layout, with new ids. A panel names an entry by its place in the layout, and ids go on as long as the
//! layout has equally many entries everywhere: two rows that change places would leave a click on the one to run the other,
//! with no way to notice. Such a menu is therefore put up by way of a different one, which makes every id that is still on its
//! way invalid.

use super::icon::Icon;
use super::lamp::Told;
use super::view::{Item, ItemId, MenuView, same_places};
use anyhow::Context;
use ksni::menu::{CheckmarkItem, MenuItem, StandardItem, SubMenu};
use ksni::{ToolTip, TrayMethods};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Runtime;

/// Our name on the bus.
pub const ID: &str = "pilotlight";
/// Our name for people.
const TITLE: &str = "Pilotlight";

/// Tells the main thread's loop what was clicked.
pub type Tell = Arc<dyn Fn(Told) + Send + Sync>;

/// The icon with its menu, for as long as it stands in the panel.
pub struct Tray {
    handle: ksni::Handle<Notifier>,
    shown: Arc<MenuView>,
    runtime: Rc<Runtime>,
}

impl Tray {
    /// Puts the icon up. This talks to the panel, and waits for it for as long as it takes to answer.
    ///
    /// # Errors
    /// Where the desktop has no place for it: no session bus, one that refuses, or no panel.
    pub fn new(view: MenuView, runtime: Rc<Runtime>, tell: Tell) -> anyhow::Result<Self> {
        let shown = Arc::new(view);
        let alone = Arc::new(AtomicBool::new(false));
        let item =
            Notifier { view: Arc::clone(&shown), picture: picture(shown.icon)?, tell, alone: Arc::clone(&alone) };
        // Whether there is a panel is for it to say, by the answer to our registration and not by a property that some lack.
        // In a box the bus lets nobody take a name.
        let item = item.assume_sni_available(true).disable_dbus_name(is_boxed());
        let handle = runtime.block_on(item.spawn()).context("the icon cannot be put up")?;
        anyhow::ensure!(!alone.load(Ordering::Acquire), "no panel with a tray is on the bus");
        Ok(Self { handle, shown, runtime })
    }

    /// Shows another view; what is equal is left alone.
    ///
    /// # Errors
    /// Where there is no picture of the icon; what was shown before stays.
    pub fn show(&mut self, view: MenuView) -> anyhow::Result<()> {
        let next = (view.icon != self.shown.icon).then(|| picture(view.icon)).transpose()?;
        if !view.has_shape_of(&self.shown) && same_places(&view.items, &self.shown.items) {
            let mut other = view.clone();
            other.items.push(Item::Separator);
            let other = Arc::new(other);
            self.runtime.block_on(self.handle.update(|item| item.view = other));
        }
        let view = Arc::new(view);
        self.shown = Arc::clone(&view);
        self.runtime.block_on(self.handle.update(|item| {
            item.view = view;
            if let Some(next) = next {
                item.picture = next;
            }
        }));
        Ok(())
    }
}

impl Drop for Tray {
    fn drop(&mut self) {
        self.runtime.block_on(self.handle.shutdown());
    }
}

/// What a panel sees.
struct Notifier {
    view: Arc<MenuView>,
    picture: ksni::Icon,
    tell: Tell,
    /// No panel is there, or it went.
    alone: Arc<AtomicBool>,
}

impl ksni::Tray for Notifier {
    fn id(&self) -> String {
        ID.into()
    }

    fn title(&self) -> String {
        if self.view.is_demo() { format!("{TITLE} demo") } else { TITLE.into() }
    }

    fn icon_pixmap(&self) -> Vec<ksni::Icon> {
        vec![self.picture.clone()]
    }

    fn tool_tip(&self) -> ToolTip {
        let (title, description) = (TITLE.into(), self.view.tooltip.clone());
        ToolTip { icon_pixmap: self.icon_pixmap(), title, description, ..ToolTip::default() }
    }

    fn menu(&self) -> Vec<MenuItem<Self>> {
        self.entries(&self.view.items)
    }

    /// Without a panel there is no icon. It is put up again for the next one by who follows the bus: `ksni` would wait for that
    /// itself, but listens only after it has looked, and misses a panel that comes just then.
    fn watcher_offline(&self, _reason: ksni::OfflineReason) -> bool {
        self.alone.store(true, Ordering::Release);
        false
    }

    fn activate(&mut self, _x: i32, _y: i32) {
        (self.tell)(Told::Icon);
    }
}

impl Notifier {
    fn entries(&self, items: &[Item]) -> Vec<MenuItem<Self>> {
        items.iter().map(|item| self.entry(item)).collect()
    }

    fn clicked(&self, id: &ItemId) -> Box<dyn Fn(&mut Self) + Send> {
        let (name, tell) = (id.to_string(), Arc::clone(&self.tell));
        Box::new(move |_| tell(Told::Item(name.clone())))
    }

    fn entry(&self, item: &Item) -> MenuItem<Self> {
        match item {
            Item::Separator => MenuItem::Separator,
            Item::Text(text) => StandardItem { label: escaped(text), enabled: false, ..StandardItem::default() }.into(),
            Item::Check { id, text, enabled, checked, .. } => {
                let (label, activate) = (escaped(text), self.clicked(id));
                CheckmarkItem { label, enabled: *enabled, checked: *checked, activate, ..CheckmarkItem::default() }
                    .into()
            }
            Item::Action { id, text, enabled, .. } => {
                let activate = self.clicked(id);
                StandardItem { label: escaped(text), enabled: *enabled, activate, ..StandardItem::default() }.into()
            }
            Item::Submenu { text, enabled, items, .. } => {
                let submenu = self.entries(items);
                SubMenu { label: escaped(text), enabled: *enabled, submenu, ..SubMenu::default() }.into()
            }
        }
    }
}

/// An underline marks the letter behind it as a key of the menu; two of them are one.
fn escaped(text: &str) -> String {
    text.replace('_', "__")
}

/// The picture as the bus wants it: each pixel with its opacity first.
fn picture(icon: Icon) -> anyhow::Result<ksni::Icon> {
    let picture = icon.picture()?;
    let mut data = picture.rgba;
    for pixel in data.chunks_exact_mut(4) {
        pixel.rotate_right(1);
    }
    Ok(ksni::Icon { width: picture.width.try_into()?, height: picture.height.try_into()?, data })
}

/// Whether this runs in a Flatpak or a Snap.
fn is_boxed() -> bool {
    Path::new("/.flatpak-info").exists() || std::env::var_os("SNAP").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desktop::icon::State;

    #[test]
    fn an_underline_is_no_key() {
        assert_eq!(escaped("a_b && c__d"), "a__b && c____d");
    }

    #[test]
    fn a_pixel_has_its_opacity_first() {
        let icon = Icon { unseen: true, ..Icon::of(State::Trouble) };
        let (drawn, sent) = (icon.picture().unwrap(), picture(icon).unwrap());
        assert_eq!((sent.width, sent.height), (drawn.width as i32, drawn.height as i32));
        for (rgba, argb) in drawn.rgba.chunks(4).zip(sent.data.chunks(4)) {
            assert_eq!([rgba[3], rgba[0], rgba[1], rgba[2]], argb);
        }
    }
}
