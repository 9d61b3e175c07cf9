//! Monitors the session bus on Linux: whether it can be reached, whether a StatusNotifierItem host is on it, and when
//! either appears or disappears.
//!
//! The tray's own connection reports none of this, so this is a second one, which sleeps until the bus sends something.
//! A lost bus is retried with growing delays, up to a minute. If the display is gone too, the desktop session is over:
//! sessions may end without sending us a signal.

mod menu_capacity;

pub(crate) use menu_capacity::least_capacity;

use super::messages::BusEvent;
use pilotlight_core::text::plain;
use pilotlight_system::timer::Alarm;
use std::future::poll_fn;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};
use zbus::export::futures_core::Stream;
use zbus::fdo::DBusProxy;
use zbus::names::BusName;

/// The bus name that exists while a panel with a tray is running.
const WATCHER: &str = "org.kde.StatusNotifierWatcher";
/// How long the bus, and then a panel, may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Delays before the retries, in milliseconds; the last one repeats.
const RETRY_DELAYS: [u64; 9] = [100, 200, 400, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// Reports changes of the bus for as long as the program runs. `has_icon` returns whether the icon is shown.
/// `had_display` is whether there was a display when the program started: a session may end before its bus was reached.
pub(crate) async fn monitor(report: impl Fn(BusEvent), has_icon: impl Fn() -> bool, had_display: bool) {
    let mut retries = 0;
    let mut alarm = Alarm::default();
    let mut was_connected = false;
    loop {
        let mut was_usable = false;
        let reason = match timeout(TIMEOUT, zbus::Connection::session()).await {
            Err(_) => "it does not answer".to_owned(),
            Ok(Err(error)) => describe_error(&error),
            Ok(Ok(connection)) => {
                let ended = listen(&connection, &report, &has_icon, &mut was_usable).await;
                ended.map_or_else(|error| describe_error(&error), |()| "it went away".to_owned())
            }
        };
        // The icon, on its own connection, may have been shown before this one was usable.
        if was_usable || has_icon() {
            report(BusEvent::Lost);
            (retries, was_connected) = (0, true);
        }
        if (was_connected || had_display) && has_display() == Some(false) {
            return report(BusEvent::SessionOver);
        }
        if retries == 0 && !was_connected {
            report(BusEvent::Unavailable(reason));
        }
        alarm.until(Instant::now() + Duration::from_millis(RETRY_DELAYS[retries])).await;
        retries = (retries + 1).min(RETRY_DELAYS.len() - 1);
    }
}

async fn listen(
    connection: &zbus::Connection,
    report: &impl Fn(BusEvent),
    has_icon: &impl Fn() -> bool,
    was_usable: &mut bool,
) -> zbus::Result<()> {
    let bus = DBusProxy::new(connection).await?;
    let silent = |_| zbus::Error::Failure("it does not answer".into());
    let owners = bus.receive_name_owner_changed_with_args(&[(0, WATCHER)]);
    let mut owners = timeout(TIMEOUT, owners).await.map_err(silent)??;
    // If this fails, the bus may have gone just before we subscribed, which no signal would report any more.
    let panel = timeout(TIMEOUT, bus.name_has_owner(BusName::try_from(WATCHER)?)).await.map_err(silent)??;
    *was_usable = true;
    report(BusEvent::Connected { panel });
    let report_capacity = async || {
        if let Some(entries) = menu_capacity::menu_capacity(connection).await {
            report(BusEvent::MenuCapacity(entries));
        }
    };
    if panel {
        report_capacity().await;
    }
    let mut deadline = pin!(sleep(TIMEOUT));
    let mut awaits_panel = panel;
    loop {
        tokio::select! {
            change = poll_fn(|context| pin!(&mut owners).poll_next(context)) => match change {
                Some(change) => {
                    awaits_panel = change.args()?.new_owner().is_some();
                    deadline.as_mut().reset(tokio::time::Instant::now() + TIMEOUT);
                    report(BusEvent::Panel(awaits_panel));
                    if awaits_panel {
                        report_capacity().await;
                    }
                }
                None => return Ok(()),
            },
            () = &mut deadline, if awaits_panel => {
                awaits_panel = false;
                if !has_icon() {
                    report(BusEvent::PanelUnresponsive);
                }
            }
        }
    }
}

/// Describes for the user why the bus, or a program on it, cannot be used.
pub(crate) fn describe_error(error: &zbus::Error) -> String {
    let named = std::env::var("DBUS_SESSION_BUS_ADDRESS").unwrap_or_default();
    match error {
        zbus::Error::Connection(_, place) if named.is_empty() => {
            format!("DBUS_SESSION_BUS_ADDRESS is not set, and nothing answers at {place}")
        }
        zbus::Error::Connection(_, place) => format!("nothing answers at {place}"),
        zbus::Error::InputOutput(error) => format!("nothing answers there: {error}"),
        zbus::Error::Handshake(why) => format!("it refuses Pilotlight: {why}"),
        zbus::Error::Address(_) => format!("DBUS_SESSION_BUS_ADDRESS is not an address: {}", plain(&named, 100)),
        zbus::Error::MethodError(name, ..) if name.as_str().ends_with(".ServiceUnknown") => "there is none".into(),
        zbus::Error::MethodError(_, Some(why), _) => plain(why, 200).into(),
        other => other.to_string(),
    }
}

/// Whether the display that this program was started on still exists. `None` if it is not a local one.
pub(crate) fn has_display() -> Option<bool> {
    display_from(|name| std::env::var(name).ok())
}

fn display_from(env: impl Fn(&str) -> Option<String>) -> Option<bool> {
    let x11 = env("DISPLAY").and_then(|display| x11_socket(&display));
    let wayland = env("WAYLAND_DISPLAY").filter(|name| !name.is_empty()).and_then(|name| {
        let name = PathBuf::from(name);
        Some(if name.is_absolute() { name } else { PathBuf::from(env("XDG_RUNTIME_DIR")?).join(name) })
    });
    let sockets: Vec<_> = x11.into_iter().chain(wayland).collect();
    let is_there = || sockets.iter().any(|socket| UnixStream::connect(socket).is_ok());
    (!sockets.is_empty()).then(is_there)
}

/// The socket of the X server of `:1` or `:1.0`; `None` for one on another machine.
fn x11_socket(display: &str) -> Option<PathBuf> {
    let number = display.strip_prefix(':')?.split('.').next()?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Path::new("/tmp/.X11-unix").join(format!("X{number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_is_gone_only_if_a_local_one_was_known() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().to_str().unwrap().to_owned();
        let env = |wayland: Option<&str>, display: Option<&str>| {
            let (wayland, display) = (wayland.map(str::to_owned), display.map(str::to_owned));
            let folder = folder.clone();
            move |name: &str| match name {
                "WAYLAND_DISPLAY" => wayland.clone(),
                "DISPLAY" => display.clone(),
                _ => Some(folder.clone()),
            }
        };
        assert_eq!(display_from(env(None, None)), None, "none was known");
        assert_eq!(display_from(env(None, Some("elsewhere:0"))), None, "on another machine");
        assert_eq!(display_from(env(Some("wayland-0"), None)), Some(false));
        let listener = std::os::unix::net::UnixListener::bind(scratch.path().join("wayland-0")).unwrap();
        assert_eq!(display_from(env(Some("wayland-0"), Some(":4095"))), Some(true), "one of two exists");
        drop(listener);
        assert_eq!(display_from(env(Some("wayland-0"), Some(":4095.0"))), Some(false));
    }
}
