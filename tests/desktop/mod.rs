//! The tray on a private session bus, with the test as its panel and its notification server. `tests/visible.sh` covers
//! real panels.

mod alerts;
mod autostart;
mod bus;
mod clicks;
mod figures;
mod idle;
mod life;
mod menu;
mod on_change;
mod places;
mod popups;
mod settings;

use crate::desk::bus::Bus;
use crate::desk::panel::Panel;
use crate::desk::sessions::{Session, Sessions};
use crate::desk::tray::{TrayProcess, User};

/// The ids of the menu's entries, from top to bottom.
fn ids(panel: &Panel) -> Vec<i32> {
    panel.menu().iter().map(|entry| entry.id).collect()
}

/// A bus with a panel, and a tray whose menu shows one idle session.
fn one_idle_session() -> (Bus, Sessions, User, Panel, Session, TrayProcess) {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    let tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    (bus, sessions, user, panel, session, tray)
}
