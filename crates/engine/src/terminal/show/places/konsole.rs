//! Konsole, over the session bus.

use super::{Place, ProcessInTerminal, Selector, TerminalVariables, text};
use crate::terminal::show::asked::TIMEOUT;
use pilotlight_system::deadline::run_within;
use std::path::Path;
use tokio::runtime::Builder;
use zbus::Connection;
use zbus::zvariant::{DynamicType, Type};

/// The unique name of its process on the bus.
pub(super) const SERVICE: &str = "KONSOLE_DBUS_SERVICE";
/// The object of the tab.
pub(super) const SESSION: &str = "KONSOLE_DBUS_SESSION";
/// How the objects of tabs and windows begin, followed by a number.
const SESSIONS: &str = "/Sessions/";
const WINDOWS: &str = "/Windows/";
/// The most windows of a process that are looked through.
const WINDOWS_MAX: u32 = 32;

pub(super) fn find(
    told: &TerminalVariables,
    _: Option<&Path>,
    process: &ProcessInTerminal<'_>,
) -> Result<Option<Place>, String> {
    let number = text(told, SESSION).and_then(|path| path.strip_prefix(SESSIONS)?.parse::<u16>().ok());
    // Another name might start a program.
    let service = text(told, SERVICE).filter(|service| service.starts_with(':'));
    let (Some(number), Some(service)) = (number, service) else { return Ok(None) };
    let (service, chain) = (service.to_owned(), process.chain.to_vec());
    within(async move {
        let bus = Bus { connection: Connection::session().await?, service };
        let pid: i32 = bus.call(&format!("{SESSIONS}{number}"), "Session", "processId", &()).await?;
        if !chain.iter().any(|it| i32::try_from(*it) == Ok(pid)) {
            return Ok(None);
        }
        bus.place(number.into()).await
    })
}

/// Has a window show one of its tabs.
pub(super) fn select(service: &str, window: &str, session: i32) -> Result<(), String> {
    let (service, window) = (service.to_owned(), window.to_owned());
    within(async move {
        let bus = Bus { connection: Connection::session().await?, service };
        bus.call(&window, "Window", "setCurrentSession", &session).await
    })
}

/// A process of Konsole's on the bus.
struct Bus {
    connection: Connection,
    service: String,
}

impl Bus {
    async fn call<R>(
        &self,
        object: &str,
        kind: &str,
        method: &str,
        body: &(impl serde::Serialize + DynamicType),
    ) -> zbus::Result<R>
    where
        R: serde::de::DeserializeOwned + Type,
    {
        let interface = format!("org.kde.konsole.{kind}");
        let call = self.connection.call_method(Some(&*self.service), object, Some(&*interface), method, body);
        call.await?.body().deserialize()
    }

    /// The window that has this tab: it may have been moved.
    async fn place(&self, session: i32) -> zbus::Result<Option<Place>> {
        for number in 1..=WINDOWS_MAX {
            let window = format!("{WINDOWS}{number}");
            // A window that was closed leaves a gap.
            let Ok(sessions) = self.call::<Vec<String>>(&window, "Window", "sessionList", &()).await else { continue };
            if sessions.contains(&session.to_string()) {
                let current: i32 = self.call(&window, "Window", "currentSession", &()).await?;
                return Ok(Some(Place {
                    name: "its tab in Konsole",
                    is_shown: Some(current == session),
                    window: None,
                    client: None,
                    how: Selector::Konsole { service: self.service.clone(), window, session },
                }));
            }
        }
        Ok(None)
    }
}

/// Carries out calls, with a limit of time.
fn within<T: Send + 'static>(calls: impl Future<Output = zbus::Result<T>> + Send + 'static) -> Result<T, String> {
    let work = move || {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        runtime.block_on(calls).map_err(|error| format!("Konsole refuses: {error}"))
    };
    let answer = run_within("konsole", TIMEOUT, work).map_err(|error| error.to_string())?;
    answer.ok_or_else(|| format!("Konsole did not answer within {} s", TIMEOUT.as_secs()))?
}
