//! Notes, which are notifications without buttons, and the sender that shows them.

#[cfg(target_os = "linux")]
use super::server;
#[cfg(target_os = "linux")]
use super::server::{NO_REPLY, TIMEOUT};
use super::text::{TITLE_MAX, body};
use crate::core::action::Action;
use crate::core::order::Outcome;
use crate::core::text::plain;
use crate::tray::icon::State;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Maximum number of notes being sent at once; further ones are dropped.
const IN_FLIGHT_MAX: usize = 4;

/// A notification without buttons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// One line.
    pub title: String,
    /// A few lines.
    pub body: String,
    /// The colour of its picture.
    pub tone: State,
}

impl Note {
    /// The test notification.
    pub fn test() -> Self {
        let body = "Notifications are shown here. Sessions that need you look like this.";
        Self::new("Pilotlight: a test", body)
    }

    /// A note that all is well.
    pub(crate) fn new(title: impl Into<String>, body: impl Into<String>) -> Self {
        Self { title: title.into(), body: body.into(), tone: State::Well }
    }

    /// A note that something was not done, or that something is to be looked at.
    pub(crate) fn not_done(title: impl Into<String>, body: impl Into<String>) -> Self {
        Self { tone: State::NeedsYou, ..Self::new(title, body) }
    }

    /// A note that something failed.
    pub(crate) fn failed(title: impl Into<String>, body: impl Into<String>) -> Self {
        Self { tone: State::Trouble, ..Self::new(title, body) }
    }

    /// The outcome of an order for this action to the session called `who`.
    pub(crate) fn after(who: &str, action: Action, outcome: &Outcome) -> Self {
        let words = outcome.words();
        match outcome {
            Outcome::Done(_) => Self::new(format!("{who}: {}", action.done()), words),
            Outcome::Failed(_) => Self::failed(format!("{who}: that did not work"), words),
            Outcome::Unconfirmed(_) => Self::not_done(format!("{who}: that may have happened"), words),
            Outcome::Refused(_) | Outcome::Unknown => Self::refused(who, outcome),
        }
    }

    /// A click on the session called `who` that was not carried out.
    pub(crate) fn refused(who: &str, outcome: &Outcome) -> Self {
        Self::not_done(format!("{who}: nothing was done"), outcome.words())
    }
}

/// Sends notifications.
#[derive(Clone, Debug)]
pub struct NoteSender {
    runtime: Handle,
    in_flight: Arc<Semaphore>,
    /// It was logged that notifications cannot be shown.
    warned: Arc<AtomicBool>,
    #[cfg(target_os = "linux")]
    connection: Arc<SharedConnection>,
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
        }
    }

    /// Sends notes over the bus at this address instead of the session's.
    #[cfg(target_os = "linux")]
    pub fn on(runtime: Handle, bus: String) -> Self {
        let connection = Arc::new(SharedConnection { bus: Some(bus), ..SharedConnection::default() });
        Self { connection, ..Self::new(runtime) }
    }

    /// Sends a note without blocking. `failed` is called if it cannot be shown.
    pub fn send(&self, note: &Note, failed: impl FnOnce() + Send + 'static) {
        let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() else { return failed() };
        let note = Note { title: plain(&note.title, TITLE_MAX).into(), ..note.clone() };
        let warned = Arc::clone(&self.warned);
        #[cfg(target_os = "linux")]
        let connection = Arc::clone(&self.connection);
        let sent = async move {
            #[cfg(target_os = "linux")]
            let result = connection.show(&note).await;
            #[cfg(not(target_os = "linux"))]
            let result = show(note).await;
            drop(permit);
            if let Err(error) = result {
                if !warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!("notifications cannot be shown: {error:#}; everything else goes on");
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
    async fn show(&self, note: &Note) -> anyhow::Result<()> {
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
async fn show(note: &Note, connection: &zbus::Connection) -> zbus::Result<()> {
    let server = server::find_server(connection.clone()).await?;
    server.notify(&notification(note, server.capabilities)).await.map(drop)
}

/// A note as a notification, limited to what the server supports.
#[cfg(target_os = "linux")]
pub(super) fn notification(note: &Note, capabilities: server::Capabilities) -> server::Notification {
    server::Notification {
        replaces: 0,
        title: note.title.clone(),
        body: if capabilities.body { body(&note.body, capabilities.markup) } else { String::new() },
        actions: Vec::new(),
        icon: note.tone,
        low_urgency: false,
        persistent: false,
        category: None,
        sound: true,
        names_sound: false,
    }
}

/// Shows a note.
#[cfg(not(target_os = "linux"))]
pub(super) async fn show(note: Note) -> anyhow::Result<()> {
    let body = body(&note.body, false);
    let shown = move || {
        let mut notification = notify_rust::Notification::new();
        // Without it, Windows attributes them to PowerShell.
        #[cfg(windows)]
        notification.app_id(crate::tray::start_menu::APP_ID);
        notification.appname("Pilotlight").summary(&note.title).body(&body).show().map(drop)
    };
    Ok(tokio::task::spawn_blocking(shown).await??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_170_a_note_has_the_colour_and_the_words_of_its_outcome() {
        for (action, outcome, title, tone) in [
            (Action::Approve, Outcome::Done("x".into()), "work: approved", State::Well),
            (Action::Stop, Outcome::Done("x".into()), "work: stopped", State::Well),
            (Action::Continue, Outcome::Done("x".into()), "work: continues its work", State::Well),
            (Action::Resume, Outcome::Failed("x".into()), "work: that did not work", State::Trouble),
            (Action::Stop, Outcome::Unconfirmed("x".into()), "work: that may have happened", State::NeedsYou),
            (Action::Deny, Outcome::Refused("x".into()), "work: nothing was done", State::NeedsYou),
            (Action::Deny, Outcome::Unknown, "work: nothing was done", State::NeedsYou),
        ] {
            let note = Note::after("work", action, &outcome);
            assert_eq!((&*note.title, note.tone), (title, tone));
        }
        assert!(Action::ALL.iter().all(|action| action.done() != "done"), "a session works on after most of them");
    }
}
