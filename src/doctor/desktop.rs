//! The desktop: whether there is a place for the icon, and what shows notifications.

use super::Finding;
#[cfg(target_os = "linux")]
use crate::tray::{bus, notify};

/// What is asked over the bus has this long; a panel that does not answer is one of the things that are looked for.
#[cfg(target_os = "linux")]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);

#[cfg(target_os = "linux")]
pub(super) fn desktop() -> Vec<Finding> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return vec![
            Finding::problem("bus", "it cannot be asked: no thread can be started", "try again").told_to_all(),
        ];
    };
    runtime.block_on(async {
        let connection = match tokio::time::timeout(PATIENCE, zbus::Connection::session()).await {
            Ok(Ok(connection)) => connection,
            failed => {
                let why = match failed {
                    Ok(Err(error)) => bus::in_words(&error),
                    _ => "it does not answer".into(),
                };
                let remedy = "no icon and no notifications; `pilotlight live`, `status` and `watch` work. Start it from your desktop \
                              session, or with `dbus-run-session`";
                let finding = Finding::problem("bus", format!("there is no session bus: {why}"), remedy);
                return vec![finding.redacted("there is no session bus")];
            }
        };
        vec![tray(&connection).await, notifications().await]
    })
}

#[cfg(target_os = "linux")]
async fn tray(connection: &zbus::Connection) -> Finding {
    const CHECK: &str = "panel";
    const WATCHER: &str = "org.kde.StatusNotifierWatcher";
    const GNOME: &str =
        "GNOME needs its AppIndicator extension; elsewhere add a tray to the panel. `pilotlight live` shows the table";
    let asked = async {
        let body = (WATCHER, "IsStatusNotifierHostRegistered");
        let path = "/StatusNotifierWatcher";
        let properties = Some("org.freedesktop.DBus.Properties");
        let answer = connection.call_method(Some(WATCHER), path, properties, "Get", &body).await?;
        let value: zbus::zvariant::OwnedValue = answer.body().deserialize()?;
        Ok::<_, zbus::Error>(bool::try_from(value).unwrap_or(false))
    };
    let finding = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(true)) => Finding::ok(CHECK, "a tray is in the panel, and takes icons"),
        Ok(Ok(false)) => Finding::warning(CHECK, "a tray is announced, but nothing shows icons in it", GNOME),
        Ok(Err(zbus::Error::MethodError(name, ..))) if name.as_str().ends_with(".ServiceUnknown") => {
            Finding::problem(CHECK, "no panel with a tray is here, so there is no icon", GNOME)
        }
        Ok(Err(zbus::Error::MethodError(..))) => {
            Finding::warning(CHECK, "a tray is announced, but does not say whether it shows icons", GNOME)
        }
        Ok(Err(_)) => Finding::problem(CHECK, "the session bus went away", "start it from your desktop session"),
        Err(_) => {
            Finding::problem(CHECK, "the panel does not answer", "restart the panel; the icon comes by itself then")
        }
    };
    finding.told_to_all()
}

#[cfg(target_os = "linux")]
async fn notifications() -> Finding {
    const CHECK: &str = "notifications";
    let asked = tokio::time::timeout(PATIENCE, notify::server_about()).await;
    match asked {
        Ok(Ok(about)) => {
            let can = match (about.actions, about.body) {
                (true, _) => "buttons and clicks, where it shows them",
                (false, true) => "no buttons: the menu has all of them",
                (false, false) => "titles alone, no buttons: the menu has the rest",
            };
            Finding::ok(CHECK, format!("shown by {}: {can}", about.name))
                .redacted(format!("shown by {}: {can}", super::redact::server(&about.name)))
        }
        Ok(Err(error)) => Finding::problem(
            CHECK,
            format!("nothing shows notifications: {error:#}"),
            "install or start a notification server (dunst, mako, your desktop's); the menu shows the same",
        )
        .redacted("nothing shows notifications"),
        Err(_) => {
            Finding::problem(CHECK, "the notification server does not answer", "restart it; the menu shows the same")
                .told_to_all()
        }
    }
}

/// What the desktop offers is always there.
#[cfg(not(target_os = "linux"))]
pub(super) fn desktop() -> Vec<Finding> {
    let notifications = "shown by the system, if it is allowed in its settings: `pilotlight notify-test` sends one";
    vec![Finding::ok("notifications", notifications).told_to_all()]
}
