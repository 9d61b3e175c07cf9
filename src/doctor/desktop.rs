//! The desktop: whether there is a place for the icon, and what shows notifications.

use super::finding::Finding;
#[cfg(target_os = "linux")]
use {
    super::{check::block_on, redact},
    crate::tray::{bus, clipboard::shares_with_x11, notify},
    pilotlight_system::paths,
    std::path::Path,
    std::time::Duration,
    tokio::time::timeout,
    zbus::{Connection, Error},
};

/// How long an answer over the bus may take: that a panel does not answer is one of the possible findings.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_secs(3);

#[cfg(target_os = "linux")]
pub(super) fn desktop() -> Vec<Finding> {
    block_on("bus", async {
        let why = match timeout(PATIENCE, Connection::session()).await {
            Ok(Ok(connection)) => {
                let found = [tray(&connection).await, notifications().await];
                return found.into_iter().chain(clipboard()).collect();
            }
            Ok(Err(error)) => bus::describe_error(&error),
            Err(_) => "it does not answer".into(),
        };
        let remedy = "no icon and no notifications; `pilotlight live`, `status` and `watch` work. Start Pilotlight from your \
                      desktop session, or with `dbus-run-session`";
        let finding = Finding::problem("bus", format!("there is no session bus: {why}"), remedy);
        vec![finding.redacted("there is no session bus")]
    })
}

/// Whether what is copied from the menu arrives, where that needs a program.
#[cfg(target_os = "linux")]
fn clipboard() -> Option<Finding> {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    variable("WAYLAND_DISPLAY")?;
    let path = std::env::var_os("PATH");
    if shares_with_x11(variable("XDG_CURRENT_DESKTOP").as_deref())
        || paths::program(Path::new("wl-copy"), path.as_deref()).is_some()
    {
        return None;
    }
    let remedy = "install the package wl-clipboard";
    Some(Finding::warning(
        "clipboard",
        "`Copy id` and the like need `wl-copy` under Wayland, which is not installed",
        remedy,
    ))
}

#[cfg(target_os = "linux")]
async fn tray(connection: &Connection) -> Finding {
    const CHECK: &str = "panel";
    const WATCHER: &str = "org.kde.StatusNotifierWatcher";
    const GNOME: &str = "GNOME needs its AppIndicator extension; elsewhere add a system tray to the panel. `pilotlight live` shows the table";
    let request = async {
        let body = (WATCHER, "IsStatusNotifierHostRegistered");
        let properties = Some("org.freedesktop.DBus.Properties");
        let reply = connection.call_method(Some(WATCHER), "/StatusNotifierWatcher", properties, "Get", &body).await?;
        let value: zbus::zvariant::OwnedValue = reply.body().deserialize()?;
        Ok::<_, Error>(bool::try_from(value).unwrap_or(false))
    };
    match timeout(PATIENCE, request).await {
        Ok(Ok(true)) => Finding::ok(CHECK, "the panel has a system tray that takes icons"),
        Ok(Ok(false)) => Finding::warning(CHECK, "a system tray is announced, but nothing shows icons in it", GNOME),
        Ok(Err(Error::MethodError(name, ..))) if name.as_str().ends_with(".ServiceUnknown") => {
            Finding::problem(CHECK, "there is no panel with a system tray, so there is no icon", GNOME)
        }
        Ok(Err(Error::MethodError(..))) => {
            Finding::warning(CHECK, "a system tray is announced, but does not say whether it shows icons", GNOME)
        }
        Ok(Err(_)) => Finding::problem(CHECK, "the session bus went away", "start it from your desktop session"),
        Err(_) => Finding::problem(CHECK, "the panel does not answer", "restart the panel; the icon then appears"),
    }
}

#[cfg(target_os = "linux")]
async fn notifications() -> Finding {
    const CHECK: &str = "notifications";
    match timeout(PATIENCE, notify::server_info()).await {
        Ok(Ok(server)) => {
            let can = match (server.actions, server.body) {
                (true, _) => "buttons and clicks, where it shows them",
                (false, true) => "no buttons: the menu has all of them",
                (false, false) => "titles alone, no buttons: the menu has the rest",
            };
            Finding::ok(CHECK, format!("shown by {}: {can}", server.name))
                .redacted(format!("shown by {}: {can}", redact::server(&server.name)))
        }
        Ok(Err(error)) => {
            let remedy =
                "install or start a notification server (dunst, mako, your desktop's); the menu shows the same";
            Finding::problem(CHECK, format!("nothing shows notifications: {error:#}"), remedy)
                .redacted("nothing shows notifications")
        }
        Err(_) => {
            let remedy = "restart it; the menu shows the same";
            Finding::problem(CHECK, "the notification server does not answer", remedy)
        }
    }
}

/// What the desktop offers is always there.
#[cfg(not(target_os = "linux"))]
pub(super) fn desktop() -> Vec<Finding> {
    let text = "shown by the system, if it is allowed in its settings: `pilotlight notify-test` sends one";
    vec![Finding::ok("notifications", text)]
}
