//! How many entries the menu has room for on GNOME, which cuts off what does not fit its display, and scrolls nothing but submenus.
//! Its rows are taller than those of other desktops. Its window manager tells of the display, under X11 as under Wayland.

use std::collections::HashMap;
use std::time::Duration;
use tokio::time::timeout;
use zbus::Connection;
use zbus::zvariant::OwnedValue;

/// The shell's own panel, the edges of the menu and its three lines, in pixels of GNOME 43, with a little to spare.
const AROUND: f64 = 100.0;
/// A row of it.
const ROW: f64 = 36.0;
/// A window manager that has not answered after this does not.
const PATIENCE: Duration = Duration::from_secs(1);

type Name = (String, String, String, String);
type Properties = HashMap<String, OwnedValue>;
/// Its id, width, height, rate, preferred scale, scales.
type Mode = (String, i32, i32, f64, f64, Vec<f64>, Properties);
type Monitor = (Name, Vec<Mode>, Properties);
/// Its place, scale, turn, whether the panel is there, its monitors.
type Place = (i32, i32, f64, u32, bool, Vec<Name>, Properties);
type State = (u32, Vec<Monitor>, Vec<Place>, Properties);

/// What fits the display with the panel; `None` on other desktops, or where that is not told.
pub(super) async fn of_menu(connection: &Connection) -> Option<usize> {
    let desktops = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
    if !desktops.split(':').any(|desktop| desktop == "GNOME") {
        return None;
    }
    let manager = "org.gnome.Mutter.DisplayConfig";
    let path = "/org/gnome/Mutter/DisplayConfig";
    let asked = connection.call_method(Some(manager), path, Some(manager), "GetCurrentState", &());
    let told = timeout(PATIENCE, asked).await.ok()?.ok()?;
    let (_, monitors, places, _) = told.body().deserialize::<State>().ok()?;
    height(&monitors, &places).map(entries)
}

/// The height of the display with the panel, in pixels as programs count them.
fn height(monitors: &[Monitor], places: &[Place]) -> Option<f64> {
    let (_, _, scale, turn, _, names, _) = places.iter().find(|place| place.4)?;
    let (_, modes, _) = monitors.iter().find(|monitor| names.contains(&monitor.0))?;
    let is_current = |mode: &&Mode| mode.6.get("is-current").is_some_and(|is| bool::try_from(is).unwrap_or(false));
    let mode = modes.iter().find(is_current)?;
    // Turned by a quarter, its width is its height.
    let pixels = if turn % 2 == 1 { mode.1 } else { mode.2 };
    (*scale > 0.0).then(|| f64::from(pixels) / scale)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few dozen")]
fn entries(height: f64) -> usize {
    ((height - AROUND) / ROW).max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(connector: &str) -> Name {
        (connector.into(), "vendor".into(), "product".into(), "serial".into())
    }

    fn mode(width: i32, height: i32, is_current: bool) -> Mode {
        let properties = if is_current { [("is-current".to_owned(), true.into())].into() } else { Properties::new() };
        ("mode".into(), width, height, 60.0, 1.0, vec![1.0, 2.0], properties)
    }

    #[test]
    fn what_fits_is_told_by_the_display_with_the_panel() {
        let monitors: [Monitor; 2] = [
            (name("HDMI-1"), vec![mode(1920, 1080, true)], Properties::new()),
            (name("eDP-1"), vec![mode(1024, 600, false), mode(1366, 768, true)], Properties::new()),
        ];
        let place =
            |connector: &str, scale, turn, panel| (0, 0, scale, turn, panel, vec![name(connector)], Properties::new());
        let fits = |places: &[Place]| height(&monitors, places).map(entries);
        assert_eq!(fits(&[place("HDMI-1", 1.0, 0, false), place("eDP-1", 1.0, 0, true)]), Some(18));
        assert_eq!(fits(&[place("HDMI-1", 2.0, 0, true), place("eDP-1", 1.0, 0, false)]), Some(12));
        assert_eq!(fits(&[place("eDP-1", 1.0, 1, true)]), Some(35));
        assert_eq!(fits(&[place("eDP-1", 1.0, 0, false)]), None);
        assert_eq!((entries(600.0), entries(800.0), entries(40.0)), (13, 19, 0));
    }
}
