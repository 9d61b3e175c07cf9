//! The sender that shows notes.

#[cfg(target_os = "linux")]
use super::offers::{LATER, Listeners, OFFER, Shown};
#[cfg(target_os = "linux")]
use super::server;
#[cfg(target_os = "linux")]
use super::server::{NO_REPLY, TIMEOUT};
use super::text::{TITLE_MAX, body};
use crate::tray::note::{Note, OfferTaken};
use pilotlight_core::text::plain;
use pilotlight_system::log::{self, cause};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Maximum number of notes being sent at once; further ones are dropped.
const IN_FLIGHT_MAX: usize = 4;

/// Sends notifications.
#[derive(Clone, Debug)]
pub struct NoteSender {
    runtime: Handle,
    in_flight: Arc<Semaphore>,
    /// It was logged that notifications cannot be shown.
    warned: Arc<AtomicBool>,
    #[cfg(target_os = "linux")]
    connection: Arc<SharedConnection>,
    #[cfg(target_os = "linux")]
    listeners: Arc<Listeners>,
}

/// The connection that all notes share. It is kept open because some servers, GNOME's among them, close a program's
/// notifications as soon as its connection is gone.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
struct SharedConnection {
    /// The address of a bus to use instead of the session's.
    bus: Option<String>,
    connection: tokio::sync::Mutex<Option<zbus::Connection>>,
}

impl NoteSender {
    /// Sends notes on this runtime.
    pub(crate) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            warned: Arc::default(),
            #[cfg(target_os = "linux")]
            connection: Arc::default(),
            #[cfg(target_os = "linux")]
            listeners: Arc::default(),
        }
    }

    /// Sends notes over the bus at this address instead of the session's.
    #[cfg(target_os = "linux")]
    pub fn on(runtime: Handle, bus: String) -> Self {
        let connection = Arc::new(SharedConnection { bus: Some(bus), ..SharedConnection::default() });
        Self { connection, ..Self::new(runtime) }
    }

    /// Sends a note without blocking. `taken` is called if it is clicked, which not all systems report, and `failed` if
    /// it cannot be shown.
    pub fn send(&self, note: &Note, taken: OfferTaken, failed: impl FnOnce() + Send + 'static) {
        let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() else { return failed() };
        let note = Note { title: plain(&note.title, TITLE_MAX).into(), ..note.clone() };
        let warned = Arc::clone(&self.warned);
        #[cfg(target_os = "linux")]
        let (connection, listeners) = (Arc::clone(&self.connection), Arc::clone(&self.listeners));
        let sent = async move {
            #[cfg(target_os = "linux")]
            let result = connection.show(&note).await.map(|shown| listeners.listen(shown, note.offer, taken));
            #[cfg(not(target_os = "linux"))]
            let result = {
                drop(taken);
                show(note).await
            };
            drop(permit);
            if let Err(error) = result {
                if !warned.swap(true, Ordering::Relaxed) {
                    log::warn!("notifications cannot be shown: {}; everything else goes on", cause(&*error));
                }
                failed();
            }
        };
        self.runtime.spawn(sent);
    }
}

#[cfg(target_os = "linux")]
impl SharedConnection {
    /// Shows a note, one at a time. The timeout includes waiting for the others.
    async fn show(&self, note: &Note) -> anyhow::Result<Shown> {
        let shown = async {
            let mut open = self.connection.lock().await;
            if let Some(connection) = open.take() {
                match show(note, &connection).await {
                    // The connection may be broken and the bus reachable again: connect anew below.
                    Err(error) if !matches!(error, zbus::Error::MethodError(..)) => {}
                    result => {
                        *open = Some(connection);
                        return Ok(result?);
                    }
                }
            }
            let connection = server::connect(self.bus.as_deref()).await?;
            let result = show(note, &connection).await;
            *open = Some(connection);
            Ok(result?)
        };
        tokio::time::timeout(TIMEOUT, shown).await.map_err(|_| anyhow::anyhow!("{NO_REPLY}"))?
    }
}

#[cfg(target_os = "linux")]
async fn show(note: &Note, connection: &zbus::Connection) -> zbus::Result<Shown> {
    // Before it is shown: the click may come before the answer.
    let bus = server::Bus::on(connection.clone()).await?;
    let server = server::find_server(connection.clone()).await?;
    let number = server.notify(&notification(note, server.capabilities)).await?;
    Ok(Shown { bus, server, number })
}

/// A note as a notification, limited to what the server supports.
#[cfg(target_os = "linux")]
pub(super) fn notification(note: &Note, capabilities: server::Capabilities) -> server::Notification {
    let label = if capabilities.names_default { "Open" } else { "" };
    let default = (!capabilities.draws_default).then_some(["default", label]);
    let mut actions: Vec<_> = default.into_iter().chain([[OFFER, &*note.offer.label]]).collect();
    // Whoever types in another window while the note appears must not press a button that acts.
    if capabilities.focuses_first {
        actions.insert(0, LATER);
    }
    let actions = if capabilities.actions { actions } else { Vec::new() };
    server::Notification {
        replaces: 0,
        title: note.title.clone(),
        body: if capabilities.body {
            body(&note.body, capabilities.markup, capabilities.joins_lines)
        } else {
            String::new()
        },
        actions: actions.into_iter().flatten().map(String::from).collect(),
        icon: note.tone,
        low_urgency: false,
        persistent: false,
        category: None,
        sound: true,
        names_sound: false,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) async fn show(note: Note) -> anyhow::Result<()> {
    let body = body(&note.body, false, false);
    let shown = move || {
        let mut notification = notify_rust::Notification::new();
        // Without it, Windows attributes them to PowerShell.
        #[cfg(windows)]
        notification.app_id(crate::tray::start_menu::APP_ID);
        notification.appname("Pilotlight").summary(&note.title).body(&body).show().map(drop)
    };
    Ok(tokio::task::spawn_blocking(shown).await??)
}
