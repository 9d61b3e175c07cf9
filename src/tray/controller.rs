//! The state of the main thread: the tray, while a panel shows it, the current view, and the handler that carries out
//! clicks.

use super::click_handler::ClickHandler;
use super::messages::{Click, DesktopEvent};
#[cfg(not(target_os = "linux"))]
use super::native::Tray;
use super::notify::Note;
#[cfg(target_os = "linux")]
use super::sni::Tray;
use super::view::{Effect, ItemId, Kind, MenuView};
use pilotlight_core::verdict::Remedy;
use pilotlight_system::log::{self, cause};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(target_os = "linux"))]
use tray_icon::menu::MenuId;

/// The tray and its current view.
pub(crate) struct TrayController {
    tray: Option<Tray>,
    view: Arc<MenuView>,
    click_handler: ClickHandler,
    report: Box<dyn Fn(DesktopEvent)>,
    has_icon: Arc<AtomicBool>,
}

impl TrayController {
    /// Creates a controller without an icon, with the view to begin with. `report` is called with whether the icon is shown, and if not, why.
    pub(crate) fn new(view: MenuView, click_handler: ClickHandler, report: Box<dyn Fn(DesktopEvent)>) -> Self {
        Self { tray: None, view: Arc::new(view), click_handler, report, has_icon: Arc::default() }
    }

    /// Whether the icon is shown, for other threads to read.
    pub(crate) fn has_icon(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_icon)
    }

    /// Shows the icon with `create`, unless it is shown already.
    ///
    /// # Errors
    /// Where the desktop has no place for it.
    pub(crate) fn show_icon(&mut self, create: impl FnOnce(&MenuView) -> anyhow::Result<Tray>) -> anyhow::Result<()> {
        if self.tray.is_none() {
            self.tray = Some(create(&self.view)?);
        }
        self.has_icon.store(true, Ordering::Release);
        Ok(())
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn view(&self) -> &MenuView {
        &self.view
    }

    #[cfg(target_os = "linux")]
    pub(crate) const fn shows_icon(&self) -> bool {
        self.tray.is_some()
    }

    /// Removes the icon, as its panel is gone.
    pub(crate) fn remove_icon(&mut self) {
        self.has_icon.store(false, Ordering::Release);
        self.tray = None;
    }

    /// Reports that the icon is shown, or why it is not.
    pub(crate) fn report(&self, event: DesktopEvent) {
        (self.report)(event);
    }

    /// Replaces the view.
    pub(crate) fn show(&mut self, view: Arc<MenuView>) {
        self.view = view;
        self.restore_menu();
    }

    /// Handles a click that this process reports.
    #[cfg(target_os = "linux")]
    pub(crate) fn click_of(&mut self, clicker: Option<u32>, click: Click) {
        self.click(match click {
            Click::Item(id, effect) => Click::Item(id, self.click_handler.as_reported_by(clicker, effect)),
            click => click,
        });
    }

    /// Handles a click. It does what its item did when it was shown, or the user is told why not.
    pub(crate) fn click(&mut self, click: Click) {
        const AGAIN: &str = "look again, and click again.";
        let refused = match click {
            Click::Item(id, effect) => match refusal(&self.view, &id, &effect) {
                None => {
                    self.click_handler.act(id.session.as_ref(), effect);
                    None
                }
                // What became of the session is said, too.
                Some(why) if id.session.is_some() => Some((id.session, format!("{why}."))),
                Some(why) => Some((None, format!("{why}: {AGAIN}"))),
            },
            Click::Unaimed => {
                Some((None, format!("The menu changed under the pointer just before your click: {AGAIN}")))
            }
            #[cfg(target_os = "linux")]
            Click::Outdated => Some((None, format!("Your panel showed an old menu: {AGAIN}"))),
        };
        if let Some((session, body)) = refused {
            log::info!("a click in the menu was not carried out");
            self.click_handler.note_about(session.as_ref(), Note::not_done("Nothing was done", body), true, None);
        }
        self.restore_menu();
    }

    /// Handles a click on the icon itself, of which the panel makes nothing: shows the table of all sessions.
    #[cfg(target_os = "linux")]
    pub(crate) fn click_icon(&mut self) {
        self.click_handler.act(None, Effect::LiveTable);
    }

    /// Handles a click on the entry with this id.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn click_entry(&mut self, id: &MenuId) {
        match self.tray.as_ref().and_then(|tray| tray.clicked(id)) {
            Some(click) => self.click(click),
            None => log::debug!("a click on something that is no longer shown"),
        }
    }

    /// Shows the current view. Needed after each click: it may have toggled a check mark in the panel although nothing
    /// changed.
    fn restore_menu(&mut self) {
        if let Some(tray) = &mut self.tray
            && let Err(error) = tray.show(&self.view)
        {
            log::warn!("the menu cannot be shown: {}", cause(&*error));
        }
    }
}

/// Why a click on an item that did this is not carried out, although the engine may accept it: what it was for has
/// changed since the item was shown.
fn refusal(view: &MenuView, id: &ItemId, effect: &Effect) -> Option<String> {
    match effect {
        // Only for sessions with a row is there anything to mark.
        Effect::Seen if view.status_of(id.session.as_ref()?).is_none() => Some("The session is gone".into()),
        Effect::Quit(told) => match view.effect_of(id) {
            Some(Effect::Quit(ends)) if ends.iter().any(|key| !told.contains(key)) => {
                Some("A session began that may end with Pilotlight".into())
            }
            _ => None,
        },
        // The order would be carried out: a turn can be stopped whether it is stuck or not.
        Effect::Act(_) if id.kind == Kind::Remedy => {
            let status = view.status_of(id.session.as_ref()?)?;
            let needs_none = status.spec().remedy == Remedy::None;
            needs_none.then(|| "The session no longer needs that".into())
        }
        _ => None,
    }
}
