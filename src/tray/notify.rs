//! Notifications: the popups of sessions, the outcome of clicks, and the welcome on the first run.
//!
//! Nothing here blocks its caller. A [`Note`] is sent by its own task, a few at a time and with a timeout; [`Popups`]
//! are shown by a task that reconciles the screen with the wanted set. If notifications cannot be shown, that is logged
//! once. Whatever a session wrote is plain text: where the body is markup, `<`, `>` and `&` are escaped.
//!
//! GNOME Shell gives the keyboard to the first button of a banner, so Return that is typed elsewhere presses it. There, and
//! on every server that is not known never to do that, the first button is "Not now", which only closes the popup. A popup
//! with Approve is closed and shown as a new one, never replaced: text must not change under a button that the pointer is
//! moving to.
//!
//! - `server` is the client of a Linux desktop's notification server.
//! - `note` sends notes, and `text` makes every text plain.
//! - `popups` changes the wanted set, `reconciler` applies it; `elsewhere` is for the other systems, which support less.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod note;
#[cfg(target_os = "linux")]
mod offers;
#[cfg(target_os = "linux")]
mod popups;
#[cfg(target_os = "linux")]
mod reconciler;
#[cfg(target_os = "linux")]
mod server;
mod text;

pub use super::messages::PopupEvent;
pub use super::note::{Note, Offer, OfferTaken};
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::Popups;
pub use note::NoteSender;
#[cfg(target_os = "linux")]
pub use popups::Popups;

#[cfg(not(target_os = "linux"))]
use note::show;
use pilotlight_core::alert::PopupId;
#[cfg(target_os = "linux")]
use pilotlight_core::text::plain;
use std::time::Instant;
use tokio::runtime::Handle;
#[cfg(target_os = "linux")]
use {
    note::notification,
    server::{NO_REPLY, TIMEOUT},
    text::LINE_MAX,
};

/// What popups need from their caller.
pub struct PopupConfig {
    /// The runtime for their task.
    pub runtime: Handle,
    /// The address of a bus to use instead of the session's. Linux only.
    pub bus: Option<String>,
    /// Whether to trust a notification server with this process id when it reports a click on Approve: an agent must
    /// not run a server that approves its own requests. Called once per popup; Linux only.
    pub may_answer: Box<dyn Fn(u32) -> bool + Send + Sync>,
    /// The time, for telling whether a click came too soon to be meant for its popup. Linux only.
    pub now: Box<dyn Fn() -> Instant + Send + Sync>,
    /// Called once for each popup that is raised and not withdrawn, when it is clicked or closed. Must not block.
    pub clicked: Box<dyn Fn(PopupId, PopupEvent) + Send + Sync>,
}

/// How long the test notification keeps its connection: some servers close a program's notifications when it
/// disconnects.
#[cfg(target_os = "linux")]
const VISIBLE_FOR: std::time::Duration = std::time::Duration::from_secs(5);

/// A test notification that was sent.
pub(crate) struct TestNotification {
    /// What this desktop supports, in lines for the user.
    pub lines: Vec<String>,
    #[cfg(target_os = "linux")]
    bus: server::Bus,
    #[cfg(target_os = "linux")]
    server: server::Server,
    #[cfg(target_os = "linux")]
    number: u32,
}

/// Sends a test notification.
///
/// # Errors
/// Why it cannot be shown.
#[cfg(target_os = "linux")]
pub(crate) async fn send_test() -> anyhow::Result<TestNotification> {
    let shown = async {
        let bus = server::Bus::connect(None).await.map_err(|error| no_bus(&error))?;
        let server = bus.find_server().await.map_err(|error| no_server(&error))?;
        let number = server.notify(&notification(&Note::test(), server.capabilities)).await?;
        let name = server.name_and_version().await?;
        anyhow::Ok((bus, server, number, name))
    };
    let shown = tokio::time::timeout(TIMEOUT, shown).await;
    let (bus, server, number, name) = shown.map_err(|_| anyhow::anyhow!("{NO_REPLY}"))??;
    let yes_no = |can| if can { "yes" } else { "no" };
    let lines = vec![
        "A test notification was sent.".to_owned(),
        format!("Shown by: {}", plain(&name, LINE_MAX)),
        format!("Text below the title: {}", yes_no(server.capabilities.body)),
        match server.capabilities.actions {
            true => "Clicks and buttons: yes, if it shows them; some servers only report a click".into(),
            false => "Clicks and buttons: no; the menu has all of them".into(),
        },
    ];
    Ok(TestNotification { lines, bus, server, number })
}

/// Sends a test notification.
///
/// # Errors
/// Why it cannot be shown.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn send_test() -> anyhow::Result<TestNotification> {
    show(Note::test()).await?;
    let lines = ["A test notification was sent.", "Clicks and buttons: no; the menu has all of them"];
    Ok(TestNotification { lines: lines.map(str::to_owned).into() })
}

impl TestNotification {
    /// Waits until the notification is closed, for at most [`VISIBLE_FOR`].
    #[cfg(target_os = "linux")]
    pub(crate) async fn keep_visible(mut self) {
        let closed = async {
            loop {
                match self.bus.next().await {
                    server::ServerEvent::Signal(message) => {
                        let signal = self.server.read(&message);
                        if matches!(signal, Some((number, server::Signal::Closed { .. })) if number == self.number) {
                            return;
                        }
                    }
                    server::ServerEvent::Owner(_) | server::ServerEvent::Lost => return,
                }
            }
        };
        let _ = tokio::time::timeout(VISIBLE_FOR, closed).await;
    }

    /// Returns at once: the system keeps the notification.
    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn keep_visible(self) {}
}

#[cfg(target_os = "linux")]
fn no_bus(error: &zbus::Error) -> anyhow::Error {
    anyhow::anyhow!("there is no session bus ({})", super::bus::describe_error(error))
}

#[cfg(target_os = "linux")]
fn no_server(error: &zbus::Error) -> anyhow::Error {
    anyhow::anyhow!("no notification server can be used ({})", super::bus::describe_error(error))
}

/// The notification server of this desktop.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug)]
pub(crate) struct ServerInfo {
    /// Its name and version.
    pub name: String,
    /// Whether it shows a body.
    pub body: bool,
    /// Whether it shows buttons, or at least reports clicks.
    pub actions: bool,
}

/// Queries the notification server without sending a notification.
///
/// # Errors
/// Why there is none, or why it cannot be used.
#[cfg(target_os = "linux")]
pub(crate) async fn server_info() -> anyhow::Result<ServerInfo> {
    let bus = server::Bus::connect(None).await.map_err(|error| no_bus(&error))?;
    let server = bus.find_server().await.map_err(|error| no_server(&error))?;
    let name = plain(&server.name_and_version().await?, LINE_MAX).into();
    Ok(ServerInfo { name, body: server.capabilities.body, actions: server.capabilities.actions })
}
