//! The icon and its menu on macOS and Windows; on Linux that is `sni`. Decides nothing: it shows a [`MenuView`].
//!
//! If only texts changed, they are set in place, so that an open menu stays open. A different shape needs a new menu.

use super::icon::Icon;
use super::messages::Click;
use super::view::{Item, MenuView};
use anyhow::Context;
use pilotlight_core::time::Moment;
use std::time::{Duration, Instant};
use tray_icon::menu::{CheckMenuItem, IsMenuItem, Menu, MenuId, MenuItem, PredefinedMenuItem, Submenu};
use tray_icon::{TrayIcon, TrayIconBuilder};

/// The id of the icon.
pub(crate) const ID: &str = "pilotlight";

/// For this long after a new menu is set, a click may have been meant for an entry of the old one.
const SETTLE_TIME: Duration = Duration::from_millis(1200);

/// How many entries that are gone are remembered, at least.
const GONE_MAX: usize = 1000;

/// The icon and its menu.
pub(crate) struct Tray {
    icon: TrayIcon,
    /// When this menu was set.
    menu_set: Instant,
    shown: MenuView,
    /// The entries that have a text, depth first in the order of [`MenuView`].
    entries: Vec<Entry>,
    /// What the entries did that are gone, in the order in which they went.
    gone: Vec<(MenuId, Click)>,
}

/// An entry, with its text and what a click on it does, as last set.
struct Entry {
    widget: Widget,
    text: String,
    /// `None` if it cannot be clicked.
    click: Option<Click>,
}

enum Widget {
    Item(MenuItem),
    Check(CheckMenuItem),
    Submenu(Submenu),
}

impl Tray {
    /// Shows the icon.
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
            menu_set: Instant::now(),
            shown: view.clone(),
            entries,
            gone: Vec::new(),
        })
    }

    /// The click on the entry with this id: on what it does, or did before it was gone.
    pub(crate) fn clicked(&self, id: &MenuId) -> Option<Click> {
        let Some(entry) = self.entries.iter().find(|entry| entry.widget.id() == id) else {
            return self.gone.iter().find(|(gone, _)| gone == id).map(|(_, click)| click.clone());
        };
        let click = entry.click.clone()?;
        Some(if self.menu_set.elapsed() >= SETTLE_TIME { click } else { Click::Unaimed })
    }

    /// Remembers what the entries did that are about to go: a menu that is open stays open.
    fn remember_gone(&mut self) {
        let before = self.gone.len();
        let clicks = self.entries.iter().filter_map(|entry| Some((entry.widget.id().clone(), entry.click.clone()?)));
        self.gone.extend(clicks);
        self.gone.drain(..before.min(self.gone.len().saturating_sub(GONE_MAX)));
    }

    /// Shows another view; changes only what differs.
    ///
    /// # Errors
    /// Where the desktop refuses; it may then show a part of the new view.
    pub(crate) fn show(&mut self, view: &MenuView) -> anyhow::Result<()> {
        let now = view.clock.now();
        if view.has_shape_of(&self.shown) {
            for (entry, item) in self.entries.iter_mut().zip(flat(&view.items)) {
                entry.update(item, now);
            }
        } else {
            let (menu, entries) = build(&view.items, now)?;
            self.remember_gone();
            self.icon.set_menu(Some(Box::new(menu)));
            self.entries = entries;
            self.menu_set = Instant::now();
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

impl Widget {
    fn id(&self) -> &MenuId {
        match self {
            Self::Item(entry) => entry.id(),
            Self::Check(entry) => entry.id(),
            Self::Submenu(entry) => entry.id(),
        }
    }
}

impl Entry {
    fn update(&mut self, item: &Item, now: Moment) {
        let text = label(item, now);
        let changed = text != self.text;
        match &self.widget {
            Widget::Item(entry) if changed => entry.set_text(&text),
            Widget::Submenu(entry) if changed => entry.set_text(&text),
            Widget::Item(_) | Widget::Submenu(_) => {}
            Widget::Check(entry) => {
                if changed {
                    entry.set_text(&text);
                }
                entry.set_enabled(item.is_enabled());
                // A click has toggled the mark already, so this compares with the widget and not with what was last
                // set.
                if entry.is_checked() != is_checked(item) {
                    entry.set_checked(is_checked(item));
                }
            }
        }
        (self.text, self.click) = (text, click_on(item));
    }
}

/// A click on an item, if it can be clicked.
fn click_on(item: &Item) -> Option<Click> {
    Some(Click::Item(item.id()?.clone(), item.effect().filter(|_| item.is_enabled())?.clone()))
}

/// The text of an entry with its age as of now, escaped for menus.
fn label(item: &Item, now: Moment) -> String {
    item.words().map(|text| escaped(&text.at(now))).unwrap_or_default()
}

const fn is_checked(item: &Item) -> bool {
    matches!(item, Item::Check { checked: true, .. })
}

/// The items that have a text, depth first.
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
        let (text, enabled, click) = (label(item, now), item.is_enabled(), click_on(item));
        match item {
            Item::Separator => append(&PredefinedMenuItem::separator())?,
            Item::Text(_) | Item::Action { .. } => {
                let entry = MenuItem::new(&text, enabled, None);
                append(&entry)?;
                entries.push(Entry { widget: Widget::Item(entry), text, click });
            }
            Item::Check { .. } => {
                let entry = CheckMenuItem::new(&text, enabled, is_checked(item), None);
                append(&entry)?;
                entries.push(Entry { widget: Widget::Check(entry), text, click });
            }
            Item::Submenu { items, .. } => {
                let menu = Submenu::new(&text, enabled);
                entries.push(Entry { widget: Widget::Submenu(menu.clone()), text, click });
                fill(items, now, entries, &mut |item| menu.append(item))?;
                append(&menu)?;
            }
        }
    }
    Ok(())
}

/// Doubles ampersands: a single one marks the next letter as a mnemonic.
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
    fn an_ampersand_is_no_mnemonic() {
        assert_eq!(escaped("a & b && c"), "a && b &&&& c");
    }
}
