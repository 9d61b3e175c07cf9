//! How many menu entries fit the display on GNOME, which cuts off the rest and scrolls only submenus. Its rows are
//! taller than those of other desktops. Mutter reports the display's size, on X11 and Wayland alike.

use std::collections::HashMap;
use std::time::Duration;
use tokio::time::timeout;
use zbus::Connection;
use zbus::zvariant::OwnedValue;

/// Height of the shell's panel, the menu's edges and its three separators: in pixels, measured on GNOME 43, with a
/// little to spare.
const OVERHEAD: f64 = 100.0;
/// Height of a menu row.
const ROW: f64 = 36.0;
/// How long the window manager may take to answer.
const TIMEOUT: Duration = Duration::from_secs(1);

type Name = (String, String, String, String);
type Properties = HashMap<String, OwnedValue>;
/// Id, width, height, refresh rate, preferred scale, supported scales.
type Mode = (String, i32, i32, f64, f64, Vec<f64>, Properties);
type Monitor = (Name, Vec<Mode>, Properties);
/// A logical monitor: position, scale, transform, whether it is the primary one (which has the panel), its monitors.
type LogicalMonitor = (i32, i32, f64, u32, bool, Vec<Name>, Properties);
type State = (u32, Vec<Monitor>, Vec<LogicalMonitor>, Properties);

/// The number of entries that fit the display with the panel; `None` on other desktops, or if it is unknown.
pub(super) async fn menu_capacity(connection: &Connection) -> Option<usize> {
    let desktops = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
    if !desktops.split(':').any(|desktop| desktop == "GNOME") {
        return None;
    }
    let manager = "org.gnome.Mutter.DisplayConfig";
    let path = "/org/gnome/Mutter/DisplayConfig";
    let call = connection.call_method(Some(manager), path, Some(manager), "GetCurrentState", &());
    let reply = timeout(TIMEOUT, call).await.ok()?.ok()?;
    let (_, monitors, logical, _) = reply.body().deserialize::<State>().ok()?;
    height(&monitors, &logical).map(entries)
}

/// The height of the display with the panel, in logical pixels.
fn height(monitors: &[Monitor], logical: &[LogicalMonitor]) -> Option<f64> {
    let (_, _, scale, transform, _, names, _) = logical.iter().find(|monitor| monitor.4)?;
    let (_, modes, _) = monitors.iter().find(|monitor| names.contains(&monitor.0))?;
    let is_current = |mode: &&Mode| mode.6.get("is-current").is_some_and(|is| bool::try_from(is).unwrap_or(false));
    let mode = modes.iter().find(is_current)?;
    // An odd transform is a rotation by 90 or 270 degrees, which swaps width and height.
    let pixels = if transform % 2 == 1 { mode.1 } else { mode.2 };
    (*scale > 0.0).then(|| f64::from(pixels) / scale)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few dozen")]
fn entries(height: f64) -> usize {
    ((height - OVERHEAD) / ROW).max(0.0) as usize
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
    fn the_capacity_is_that_of_the_display_with_the_panel() {
        let monitors: [Monitor; 2] = [
            (name("HDMI-1"), vec![mode(1920, 1080, true)], Properties::new()),
            (name("eDP-1"), vec![mode(1024, 600, false), mode(1366, 768, true)], Properties::new()),
        ];
        let logical = |connector: &str, scale, transform, primary| {
            (0, 0, scale, transform, primary, vec![name(connector)], Properties::new())
        };
        let fits = |all: &[LogicalMonitor]| height(&monitors, all).map(entries);
        assert_eq!(fits(&[logical("HDMI-1", 1.0, 0, false), logical("eDP-1", 1.0, 0, true)]), Some(18));
        assert_eq!(fits(&[logical("HDMI-1", 2.0, 0, true), logical("eDP-1", 1.0, 0, false)]), Some(12));
        assert_eq!(fits(&[logical("eDP-1", 1.0, 1, true)]), Some(35));
        assert_eq!(fits(&[logical("eDP-1", 1.0, 0, false)]), None);
        assert_eq!((entries(600.0), entries(800.0), entries(40.0)), (13, 19, 0));
    }
}
