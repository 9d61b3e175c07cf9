//! The session bus on Linux: whether it is there, whether a panel with a tray is on it, and when either comes or goes.
//!
//! The tray itself tells none of this. This is one more connection, which sleeps until the
//! bus says something. A bus that is gone is tried again, soon at first and then with every rescan; unless the display is
//! gone with it, which is how a desktop session ends that nobody sends a signal for.

mod room;

use crate::core::text::plain;
use crate::system::timer::Alarm;
use std::future::poll_fn;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};
use zbus::export::futures_core::Stream;
use zbus::fdo::DBusProxy;
use zbus::names::BusName;

/// Where panels with a tray announce themselves.
const WATCHER: &str = "org.kde.StatusNotifierWatcher";
/// A bus that has not answered after this does not; nor does a panel.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long to wait before each further try, in milliseconds; the last one counts from then on.
const TRIES: [u64; 9] = [100, 200, 400, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// What became of the bus or the panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bus {
    /// The bus is there; with a panel, or not yet.
    There {
        /// A panel with a tray is on it.
        panel: bool,
    },
    /// A panel came or went.
    Panel(bool),
    /// The bus cannot be used, for this reason.
    Missing(String),
    /// It was there, and went.
    Lost,
    /// A panel is there, and does not answer.
    Deaf,
    /// A panel is there, and has room for a menu of so many entries.
    Room(usize),
    /// The desktop session is over.
    SessionOver,
}

/// Tells what becomes of the bus for as long as the program runs. `has_icon` says whether the icon is up, `had_display` whether
/// there was a display when the program started: a session may be over before its bus was reached.
pub(crate) async fn follow(report: impl Fn(Bus), has_icon: impl Fn() -> bool, had_display: bool) {
    let mut tries = 0;
    let mut alarm = Alarm::default();
    let mut was_there = false;
    loop {
        let mut was_of_use = false;
        let reason = match timeout(PATIENCE, zbus::Connection::session()).await {
            Err(_) => "it does not answer".to_owned(),
            Ok(Err(error)) => in_words(&error),
            Ok(Ok(connection)) => {
                let ended = listen(&connection, &report, &has_icon, &mut was_of_use).await;
                ended.map_or_else(|error| in_words(&error), |()| "it went away".to_owned())
            }
        };
        // The icon may have been up before we were.
        if was_of_use || has_icon() {
            report(Bus::Lost);
            (tries, was_there) = (0, true);
        }
        if (was_there || had_display) && has_display() == Some(false) {
            return report(Bus::SessionOver);
        }
        if tries == 0 && !was_there {
            report(Bus::Missing(reason));
        }
        alarm.until(Instant::now() + Duration::from_millis(TRIES[tries])).await;
        tries = (tries + 1).min(TRIES.len() - 1);
    }
}

async fn listen(
    connection: &zbus::Connection,
    report: &impl Fn(Bus),
    has_icon: &impl Fn() -> bool,
    was_of_use: &mut bool,
) -> zbus::Result<()> {
    let bus = DBusProxy::new(connection).await?;
    let silent = |_| zbus::Error::Failure("it does not answer".into());
    let owners = bus.receive_name_owner_changed_with_args(&[(0, WATCHER)]);
    let mut owners = timeout(PATIENCE, owners).await.map_err(silent)??;
    // Where this fails, the bus may have gone just before we listened: nobody would tell us of that any more.
    let panel = timeout(PATIENCE, bus.name_has_owner(BusName::try_from(WATCHER)?)).await.map_err(silent)??;
    *was_of_use = true;
    report(Bus::There { panel });
    let room = async || {
        if let Some(most) = room::of_menu(connection).await {
            report(Bus::Room(most));
        }
    };
    if panel {
        room().await;
    }
    let mut answers = pin!(sleep(PATIENCE));
    let mut waits = panel;
    loop {
        tokio::select! {
            change = poll_fn(|context| pin!(&mut owners).poll_next(context)) => match change {
                Some(change) => {
                    waits = change.args()?.new_owner().is_some();
                    answers.as_mut().reset(tokio::time::Instant::now() + PATIENCE);
                    report(Bus::Panel(waits));
                    if waits {
                        room().await;
                    }
                }
                None => return Ok(()),
            },
            () = &mut answers, if waits => {
                waits = false;
                if !has_icon() {
                    report(Bus::Deaf);
                }
            }
        }
    }
}

/// Why the bus, or a program on it, cannot be used: a few words for the user.
pub(crate) fn in_words(error: &zbus::Error) -> String {
    let named = std::env::var("DBUS_SESSION_BUS_ADDRESS").unwrap_or_default();
    match error {
        zbus::Error::Connection(_, place) if named.is_empty() => {
            format!("DBUS_SESSION_BUS_ADDRESS is not set, and nothing answers at {place}")
        }
        zbus::Error::Connection(_, place) => format!("nothing answers at {place}"),
        zbus::Error::InputOutput(error) => format!("nothing answers there: {error}"),
        zbus::Error::Handshake(why) => format!("it refuses us: {why}"),
        zbus::Error::Address(_) => format!("DBUS_SESSION_BUS_ADDRESS is not an address: {}", plain(&named, 100)),
        zbus::Error::MethodError(name, ..) if name.as_str().ends_with(".ServiceUnknown") => "there is none".into(),
        zbus::Error::MethodError(_, Some(why), _) => plain(why, 200).into(),
        other => other.to_string(),
    }
}

/// Whether the display that this program was started on is there: known only where it is one of this machine's.
pub(crate) fn has_display() -> Option<bool> {
    display_by(|name| std::env::var(name).ok())
}

fn display_by(env: impl Fn(&str) -> Option<String>) -> Option<bool> {
    let x11 = env("DISPLAY").and_then(|display| x11_socket(&display));
    let wayland = env("WAYLAND_DISPLAY").filter(|name| !name.is_empty()).and_then(|name| {
        let name = PathBuf::from(name);
        Some(if name.is_absolute() { name } else { PathBuf::from(env("XDG_RUNTIME_DIR")?).join(name) })
    });
    let sockets: Vec<_> = x11.into_iter().chain(wayland).collect();
    let is_there = || sockets.iter().any(|socket| UnixStream::connect(socket).is_ok());
    (!sockets.is_empty()).then(is_there)
}

/// Where the X server of `:1` or `:1.0` listens; none for one on another machine.
fn x11_socket(display: &str) -> Option<PathBuf> {
    let number = display.strip_prefix(':')?.split('.').next()?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Path::new("/tmp/.X11-unix").join(format!("X{number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_is_gone_only_where_one_was_known() {
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
        assert_eq!(display_by(env(None, None)), None, "none was known");
        assert_eq!(display_by(env(None, Some("elsewhere:0"))), None, "one of another machine");
        assert_eq!(display_by(env(Some("wayland-0"), None)), Some(false));
        let listener = std::os::unix::net::UnixListener::bind(scratch.path().join("wayland-0")).unwrap();
        assert_eq!(display_by(env(Some("wayland-0"), Some(":4095"))), Some(true), "one of two is there");
        drop(listener);
        assert_eq!(display_by(env(Some("wayland-0"), Some(":4095.0"))), Some(false));
    }
}
