//! How many rows of a menu fit the display on GNOME, which opens submenus below their rows, in the same box, and cuts off what
//! is too much. Its rows are taller than those of other desktops, and with large text taller still. Mutter reports the
//! display's size, on X11 and Wayland alike; the desktop portal how large text is.

use std::collections::HashMap;
use std::time::Duration;
use tokio::time::timeout;
use zbus::Connection;
use zbus::zvariant::{OwnedValue, Value};

/// Height of the shell's panel, in pixels, for text of normal size; measured on GNOME 48, like those below.
const PANEL: f64 = 32.0;
/// Height of the edges of the menu and of two open submenus, and of the gaps around it.
const EDGES: f64 = 52.0;
/// Height of a separator, and how many there are at once: two in the menu, one in a submenu.
const SEPARATOR: f64 = 18.0;
const SEPARATORS: f64 = 3.0;
/// Height of a row: of its edges, and of its text.
const ROW_EDGES: f64 = 18.0;
const ROW_TEXT: f64 = 19.0;
/// How much larger than normal text is taken to be if nobody says: what is large is more often set than known.
const UNKNOWN_TEXT: f64 = 1.25;
/// How long the window manager and the portal may take to answer.
const TIMEOUT: Duration = Duration::from_secs(1);

type Name = (String, String, String, String);
type Properties = HashMap<String, OwnedValue>;
/// Id, width, height, refresh rate, preferred scale, supported scales.
type Mode = (String, i32, i32, f64, f64, Vec<f64>, Properties);
type Monitor = (Name, Vec<Mode>, Properties);
/// A logical monitor: position, scale, transform, whether it is the primary one (which has the panel), its monitors.
type LogicalMonitor = (i32, i32, f64, u32, bool, Vec<Name>, Properties);
type State = (u32, Vec<Monitor>, Vec<LogicalMonitor>, Properties);

/// The height of the smallest display that is common, in logical pixels.
const SMALL: f64 = 768.0;

/// The number of rows that fit a small display with large text: GNOME reads the menu before its window manager and the portal
/// have answered. `None` on other desktops.
pub(crate) fn least_capacity() -> Option<usize> {
    is_gnome().then(|| rows(SMALL, UNKNOWN_TEXT))
}

fn is_gnome() -> bool {
    let desktops = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
    desktops.split(':').any(|desktop| desktop == "GNOME")
}

/// The number of rows that fit the display with the panel; `None` on other desktops, or if it is unknown.
pub(super) async fn menu_capacity(connection: &Connection) -> Option<usize> {
    if !is_gnome() {
        return None;
    }
    let manager = "org.gnome.Mutter.DisplayConfig";
    let path = "/org/gnome/Mutter/DisplayConfig";
    let call = connection.call_method(Some(manager), path, Some(manager), "GetCurrentState", &());
    let reply = timeout(TIMEOUT, call).await.ok()?.ok()?;
    let (_, monitors, logical, _) = reply.body().deserialize::<State>().ok()?;
    let height = height(&monitors, &logical)?;
    Some(rows(height, text_size(connection).await.unwrap_or(UNKNOWN_TEXT)))
}

/// How large text is, as a multiple of the normal size.
async fn text_size(connection: &Connection) -> Option<f64> {
    let path = "/org/freedesktop/portal/desktop";
    let (portal, settings) = (Some("org.freedesktop.portal.Desktop"), Some("org.freedesktop.portal.Settings"));
    let setting = ("org.gnome.desktop.interface", "text-scaling-factor");
    // Its successor, ReadOne, is not in the portal of GNOME 43.
    let reply = timeout(TIMEOUT, connection.call_method(portal, path, settings, "Read", &setting)).await.ok()?.ok()?;
    let value: OwnedValue = reply.body().deserialize().ok()?;
    number(&value)
}

/// A number in a variant, which may be in another one.
fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Value(value) => number(value),
        Value::F64(number) => Some(*number).filter(|number| (0.5..=3.0).contains(number)),
        _ => None,
    }
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
fn rows(height: f64, text: f64) -> usize {
    let rest = height - PANEL * text - EDGES - SEPARATOR * SEPARATORS;
    (rest / (ROW_EDGES + ROW_TEXT * text)).max(0.0) as usize
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
        let fits = |all: &[LogicalMonitor]| height(&monitors, all);
        assert_eq!(fits(&[logical("HDMI-1", 1.0, 0, false), logical("eDP-1", 1.0, 0, true)]), Some(768.0));
        assert_eq!(fits(&[logical("HDMI-1", 2.0, 0, true), logical("eDP-1", 1.0, 0, false)]), Some(540.0));
        assert_eq!(fits(&[logical("eDP-1", 1.0, 1, true)]), Some(1366.0));
        assert_eq!(fits(&[logical("eDP-1", 1.0, 0, false)]), None);
    }

    #[test]
    fn case_652_fewer_rows_fit_if_text_is_large() {
        let both = |height| (rows(height, 1.0), rows(height, 1.25));
        assert_eq!((both(768.0), both(800.0), both(1080.0)), ((17, 14), (17, 15), (25, 22)));
        assert_eq!(both(40.0), (0, 0));
        let nested = Value::Value(Box::new(Value::F64(1.25)));
        assert_eq!((number(&nested), number(&Value::F64(0.0)), number(&Value::U8(1))), (Some(1.25), None, None));
    }
}
