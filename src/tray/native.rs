//! The icon and its menu on macOS and Windows. Nothing is decided here: a [`MenuView`] comes in and is made to stand there.
//!
//! Where only words changed they are set in place, so that an open menu stays open. Another shape is a new menu. On Linux it is
//! `sni` that does this.

use super::icon::Icon;
use super::view::{Item, MenuView};
use crate::core::time::Moment;
use anyhow::Context;
use std::time::{Duration, Instant};
use tray_icon::menu::{CheckMenuItem, IsMenuItem, Menu, MenuItem, PredefinedMenuItem, Submenu};
use tray_icon::{TrayIcon, TrayIconBuilder};

/// Our name among the icons.
pub(crate) const ID: &str = "pilotlight";

/// For so long after another menu was put up, a click may have been meant for what stood there before.
const SETTLES: Duration = Duration::from_millis(1200);

/// The icon, its menu, and what they show.
pub(crate) struct Tray {
    icon: TrayIcon,
    /// When this menu was put up.
    laid_out: Instant,
    shown: MenuView,
    /// The entries that have words, in the order of [`MenuView`], depth first.
    entries: Vec<Entry>,
}

/// An entry, and its words as they were last set.
struct Entry {
    widget: Widget,
    says: String,
}

enum Widget {
    Item(MenuItem),
    Check(CheckMenuItem),
    Submenu(Submenu),
}

impl Tray {
    /// Puts the icon up.
    ///
    /// # Errors
    /// Where the desktop has no place for it.
    pub(crate) fn new(view: &MenuView) -> anyhow::Result<Self> {
        let (menu, entries) = build(&view.items, view.clock.now())?;
        let builder = TrayIconBuilder::new().with_id(ID).with_tooltip(&view.tooltip).with_menu(Box::new(menu));
        #[cfg(target_os = "macos")]
        let builder = builder.with_icon_templated(picture(view.icon)?);
        #[cfg(not(target_os = "macos"))]
        let builder = builder.with_icon(picture(view.icon)?);
        Ok(Self {
            icon: builder.build().context("the icon cannot be shown")?,
            laid_out: Instant::now(),
            shown: view.clone(),
            entries,
        })
    }

    /// Whether the menu has stood as it is for as long as a click wants.
    pub(crate) fn has_rested(&self) -> bool {
        self.laid_out.elapsed() >= SETTLES
    }

    /// Shows another view; what is equal is left alone.
    ///
    /// # Errors
    /// Where the desktop refuses; what it shows then is not known.
    pub(crate) fn show(&mut self, view: &MenuView) -> anyhow::Result<()> {
        let now = view.clock.now();
        if view.has_shape_of(&self.shown) {
            for (entry, item) in self.entries.iter_mut().zip(flat(&view.items)) {
                entry.update(item, now);
            }
        } else {
            let (menu, entries) = build(&view.items, now)?;
            self.icon.set_menu(Some(Box::new(menu)));
            self.entries = entries;
            self.laid_out = Instant::now();
        }
        if view.icon != self.shown.icon {
            let picture = Some(picture(view.icon)?);
            #[cfg(target_os = "macos")]
            self.icon.set_icon_templated(picture)?;
            #[cfg(not(target_os = "macos"))]
            self.icon.set_icon(picture)?;
        }
        if view.tooltip != self.shown.tooltip {
            self.icon.set_tooltip(Some(&view.tooltip))?;
        }
        self.shown = view.clone();
        Ok(())
    }
}

impl Entry {
    fn update(&mut self, item: &Item, now: Moment) {
        let says = label(item, now);
        let other = says != self.says;
        match &self.widget {
            Widget::Item(entry) if other => entry.set_text(&says),
            Widget::Submenu(entry) if other => entry.set_text(&says),
            Widget::Item(_) | Widget::Submenu(_) => {}
            Widget::Check(entry) => {
                if other {
                    entry.set_text(&says);
                }
                entry.set_enabled(item.is_enabled());
                // A click changes the mark before anything was done: what counts is not what we showed last.
                if entry.is_checked() != is_checked(item) {
                    entry.set_checked(is_checked(item));
                }
            }
        }
        self.says = says;
    }
}

/// The words of an entry as they are true now, as menus read them.
fn label(item: &Item, now: Moment) -> String {
    item.words().map(|text| escaped(&text.at(now))).unwrap_or_default()
}

const fn is_checked(item: &Item) -> bool {
    matches!(item, Item::Check { checked: true, .. })
}

/// The entries that have words, depth first.
fn flat(items: &[Item]) -> Vec<&Item> {
    let mut out = Vec::new();
    for item in items.iter().filter(|item| !matches!(item, Item::Separator)) {
        out.push(item);
        out.extend(flat(item.children()));
    }
    out
}

fn build(items: &[Item], now: Moment) -> anyhow::Result<(Menu, Vec<Entry>)> {
    let (menu, mut entries) = (Menu::new(), Vec::new());
    fill(items, now, &mut entries, &mut |item| menu.append(item))?;
    Ok((menu, entries))
}

fn fill(
    items: &[Item],
    now: Moment,
    entries: &mut Vec<Entry>,
    append: &mut dyn FnMut(&dyn IsMenuItem) -> tray_icon::menu::Result<()>,
) -> anyhow::Result<()> {
    for item in items {
        let (says, enabled) = (label(item, now), item.is_enabled());
        let name = item.id().map(ToString::to_string);
        match item {
            Item::Separator => append(&PredefinedMenuItem::separator())?,
            Item::Text(_) | Item::Action { .. } => {
                let entry = match name {
                    Some(name) => MenuItem::with_id(name, &says, enabled, None),
                    None => MenuItem::new(&says, enabled, None),
                };
                append(&entry)?;
                entries.push(Entry { widget: Widget::Item(entry), says });
            }
            Item::Check { .. } => {
                let name = name.unwrap_or_default();
                let entry = CheckMenuItem::with_id(name, &says, enabled, is_checked(item), None);
                append(&entry)?;
                entries.push(Entry { widget: Widget::Check(entry), says });
            }
            Item::Submenu { items, .. } => {
                let menu = Submenu::with_id(name.unwrap_or_default(), &says, enabled);
                entries.push(Entry { widget: Widget::Submenu(menu.clone()), says });
                fill(items, now, entries, &mut |item| menu.append(item))?;
                append(&menu)?;
            }
        }
    }
    Ok(())
}

/// An ampersand marks the letter behind it as a key of the menu; two of them are one.
fn escaped(text: &str) -> String {
    text.replace('&', "&&")
}

fn picture(icon: Icon) -> anyhow::Result<tray_icon::Icon> {
    let picture = icon.picture()?;
    Ok(tray_icon::Icon::from_rgba(picture.rgba, picture.width, picture.height)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ampersand_is_no_key() {
        assert_eq!(escaped("a & b && c"), "a && b &&&& c");
    }
}
