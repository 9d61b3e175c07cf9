//! Notifications: the popups that sessions raise, what a click on one of them shows, and the welcome on the first run.
//!
//! None of it may hold anything up. A [`Note`] is sent by a task or a thread of its own, only a few at a time and for a
//! limited time; [`Popups`] are kept by a task that is told what is wanted. Where nothing can be shown that is said once, in
//! the log. What a session wrote is text: on Linux the body may be markup, and `<`, `>` and `&` are escaped.
//!
//! - `server` speaks with the notification server of a Linux desktop.
//! - `popups` takes what is wanted on the screen, `keeper` keeps what is shown like that; `elsewhere` is what other systems
//!   can do of it.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod popups;
#[cfg(target_os = "linux")]
mod server;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::Popups;
#[cfg(target_os = "linux")]
pub use popups::Popups;

use crate::core::alert::{Button, PopupId};
use crate::core::order::Outcome;
use crate::core::text::plain;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// So many may be on their way at once; what comes on top is dropped.
const AT_ONCE: usize = 4;
/// What was sent to try it out is left to be seen for so long: some servers take away what they show of a program that goes.
#[cfg(target_os = "linux")]
const SEEN: std::time::Duration = std::time::Duration::from_secs(5);
/// A server that has not answered after this does not.
#[cfg(target_os = "linux")]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// A title is at most this long, in characters.
const TITLE: usize = 200;
/// A line of the body is.
const LINE: usize = 240;
/// So many lines of it are shown.
const LINES: usize = 12;

/// Sends notifications.
#[derive(Clone, Debug)]
pub struct NoteSender {
    runtime: Handle,
    on_their_way: Arc<Semaphore>,
    told: Arc<AtomicBool>,
    #[cfg(target_os = "linux")]
    line: Arc<Line>,
}

/// The connection that all notes go over, once there was one. Some servers, GNOME's among them, take away what a program
/// showed as soon as its connection is gone.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
struct Line {
    /// The address of the bus, instead of the session's.
    bus: Option<String>,
    connection: tokio::sync::Mutex<Option<zbus::Connection>>,
}

/// What popups need.
pub struct Means {
    /// Where the work is done.
    pub runtime: Handle,
    /// The address of the bus that the notification server is on, instead of the session's. Linux only.
    pub bus: Option<String>,
    /// Whether to believe a notification server of this process id that the user clicked Approve: an agent must not be the
    /// server that approves its own requests. Asked once a popup; Linux only.
    pub may_answer: Box<dyn Fn(u32) -> bool + Send + Sync>,
    /// The time, by which it is judged whether a click came too soon to be meant for what stands there. Linux only.
    pub now: Box<dyn Fn() -> Instant + Send + Sync>,
    /// Told what becomes of each popup that is raised and not withdrawn, once. Must return at once.
    pub clicked: Box<dyn Fn(PopupId, Clicked) + Send + Sync>,
}

/// What becomes of a popup. It is gone with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clicked {
    /// The user clicked it, beside its buttons.
    Default,
    /// The user clicked a button, which it had.
    Action(Button),
    /// It is no longer there, or never was.
    Closed {
        /// The user put it away, so it was seen.
        by_user: bool,
    },
}

/// What a notification says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// One line.
    pub title: String,
    /// A few lines.
    pub body: String,
}

impl Note {
    /// What is sent to see whether notifications are shown.
    pub fn test() -> Self {
        let body = "Notifications are shown here. Sessions that need you look like this.";
        Self { title: "Pilotlight: a test".into(), body: body.into() }
    }

    /// What came of something that was asked of this session.
    pub(crate) fn after(who: &str, outcome: &Outcome) -> Self {
        let came = match outcome {
            Outcome::Done(_) => "done",
            Outcome::Failed(_) => "that did not work",
            Outcome::Unconfirmed(_) => "that may have happened",
            Outcome::Refused(_) | Outcome::Unknown => "nothing was done",
        };
        Self { title: format!("{who}: {came}"), body: outcome.words().into() }
    }
}

impl NoteSender {
    /// Notifications that are sent on this runtime.
    pub(crate) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            on_their_way: Arc::new(Semaphore::new(AT_ONCE)),
            told: Arc::default(),
            #[cfg(target_os = "linux")]
            line: Arc::default(),
        }
    }

    /// Notifications over the bus at this address, instead of the session's.
    #[cfg(target_os = "linux")]
    pub fn on(runtime: Handle, bus: String) -> Self {
        Self { line: Arc::new(Line { bus: Some(bus), ..Line::default() }), ..Self::new(runtime) }
    }

    /// Sends one; returns at once. `failed` is called where it could not be shown.
    pub fn send(&self, note: &Note, failed: impl FnOnce() + Send + 'static) {
        let Ok(way) = Arc::clone(&self.on_their_way).try_acquire_owned() else { return failed() };
        let note = Note { title: plain(&note.title, TITLE).into(), body: note.body.clone() };
        let told = Arc::clone(&self.told);
        #[cfg(target_os = "linux")]
        let line = Arc::clone(&self.line);
        let sent = async move {
            #[cfg(target_os = "linux")]
            let result = line.show(&note).await;
            #[cfg(not(target_os = "linux"))]
            let result = show(note).await;
            drop(way);
            if let Err(error) = result {
                if !told.swap(true, Ordering::Relaxed) {
                    tracing::warn!("notifications cannot be shown: {error:#}; everything else goes on");
                }
                failed();
            }
        };
        self.runtime.spawn(sent);
    }
}

/// A notification that was sent to see whether it is shown.
pub(crate) struct Tried {
    /// What is possible here, line by line.
    pub lines: Vec<String>,
    #[cfg(target_os = "linux")]
    bus: server::Bus,
    #[cfg(target_os = "linux")]
    server: server::Server,
    #[cfg(target_os = "linux")]
    number: u32,
}

/// Sends a notification, and says what is possible here.
///
/// # Errors
/// Where it cannot be shown, and why.
#[cfg(target_os = "linux")]
pub(crate) async fn try_out() -> anyhow::Result<Tried> {
    let shown = async {
        let bus = server::Bus::connect(None).await.map_err(|error| no_bus(&error))?;
        let server = bus.meet().await.map_err(|error| no_server(&error))?;
        let number = server.notify(&plain_sheet(&Note::test(), server.can)).await?;
        let about = server.about().await?;
        anyhow::Ok((bus, server, number, about))
    };
    let shown = tokio::time::timeout(PATIENCE, shown).await;
    let (bus, server, number, about) = shown.map_err(|_| anyhow::anyhow!("{SILENT}"))??;
    let yes = |can| if can { "yes" } else { "no" };
    let lines = vec![
        "A test notification was sent.".to_owned(),
        format!("Shown by: {}", plain(&about, LINE)),
        format!("Text below the title: {}", yes(server.can.body)),
        match server.can.actions {
            true => "Clicks and buttons: yes, if it shows them; some servers only tell of a click".into(),
            false => "Clicks and buttons: no; the menu has all of them".into(),
        },
    ];
    Ok(Tried { lines, bus, server, number })
}

/// Sends a notification, and says what is possible here.
///
/// # Errors
/// Where it cannot be shown, and why.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn try_out() -> anyhow::Result<Tried> {
    show(Note::test()).await?;
    let lines = ["A test notification was sent.", "Clicks and buttons: no; the menu has all of them"];
    Ok(Tried { lines: lines.map(str::to_owned).into() })
}

impl Tried {
    /// Stays until it was put away, or could be seen for a while.
    #[cfg(target_os = "linux")]
    pub(crate) async fn be_seen(mut self) {
        let gone = async {
            loop {
                match self.bus.next().await {
                    server::Event::Signal(message) => {
                        let told = self.server.read(&message);
                        if matches!(told, Some((number, server::Signal::Closed { .. })) if number == self.number) {
                            return;
                        }
                    }
                    server::Event::Owner(_) | server::Event::Lost => return,
                }
            }
        };
        let _ = tokio::time::timeout(SEEN, gone).await;
    }

    /// The system keeps what was shown.
    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn be_seen(self) {}
}

#[cfg(target_os = "linux")]
fn no_bus(error: &zbus::Error) -> anyhow::Error {
    anyhow::anyhow!("there is no session bus ({})", super::bus::in_words(error))
}

#[cfg(target_os = "linux")]
fn no_server(error: &zbus::Error) -> anyhow::Error {
    anyhow::anyhow!("no notification server can be used ({})", super::bus::in_words(error))
}

/// What shows notifications here.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug)]
pub(crate) struct ServerAbout {
    /// Its name and version.
    pub name: String,
    /// It shows more than a title.
    pub body: bool,
    /// It shows buttons, or tells of clicks.
    pub actions: bool,
}

/// Asks what shows notifications here, and sends none.
///
/// # Errors
/// Where nothing does, and why.
#[cfg(target_os = "linux")]
pub(crate) async fn server_about() -> anyhow::Result<ServerAbout> {
    let bus = server::Bus::connect(None).await.map_err(|error| no_bus(&error))?;
    let server = bus.meet().await.map_err(|error| no_server(&error))?;
    let name = plain(&server.about().await?, LINE).into();
    Ok(ServerAbout { name, body: server.can.body, actions: server.can.actions })
}

/// Lines made fit to be shown; the breaks between them are ours.
fn body(text: &str, is_markup: bool) -> String {
    let line = |line: &str| match plain(line, LINE) {
        line if is_markup => escaped(&line),
        line => line.into(),
    };
    text.lines().take(LINES).map(line).collect::<Vec<_>>().join("\n")
}

/// The three characters that markup is made of.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Why nothing is shown by a server that is there.
#[cfg(target_os = "linux")]
const SILENT: &str = "the notification server does not answer";

#[cfg(target_os = "linux")]
impl Line {
    /// Shows a note, in its turn. Nothing waits longer than the server is given.
    async fn show(&self, note: &Note) -> anyhow::Result<()> {
        let shown = async {
            let mut kept = self.connection.lock().await;
            if let Some(connection) = kept.take() {
                match show(note, &connection).await {
                    // The bus of a connection that was kept may be gone, and another one there.
                    Err(error) if !matches!(error, zbus::Error::MethodError(..)) => {}
                    result => {
                        *kept = Some(connection);
                        return Ok(result?);
                    }
                }
            }
            let connection = server::connect(self.bus.as_deref()).await?;
            let result = show(note, &connection).await;
            *kept = Some(connection);
            Ok(result?)
        };
        tokio::time::timeout(PATIENCE, shown).await.map_err(|_| anyhow::anyhow!("{SILENT}"))?
    }
}

#[cfg(target_os = "linux")]
async fn show(note: &Note, connection: &zbus::Connection) -> zbus::Result<()> {
    let server = server::meet(connection.clone()).await?;
    server.notify(&plain_sheet(note, server.can)).await.map(drop)
}

/// A note, as far as a server can show it.
#[cfg(target_os = "linux")]
fn plain_sheet(note: &Note, can: server::Can) -> server::Sheet {
    server::Sheet {
        replaces: 0,
        title: note.title.clone(),
        body: if can.body { body(&note.body, can.markup) } else { String::new() },
        actions: Vec::new(),
        icon: super::icon::State::Well,
        is_quiet: false,
        waits: false,
        category: None,
        sound: true,
        plays: false,
    }
}

#[cfg(not(target_os = "linux"))]
async fn show(note: Note) -> anyhow::Result<()> {
    let body = body(&note.body, false);
    let shown = move || {
        let mut notification = notify_rust::Notification::new();
        // Without it Windows says that they are PowerShell's.
        #[cfg(windows)]
        notification.app_id(super::start_menu::APP_ID);
        notification.appname("Pilotlight").summary(&note.title).body(&body).show().map(drop)
    };
    Ok(tokio::task::spawn_blocking(shown).await??)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 103.
    #[test]
    fn case_103_what_a_session_wrote_is_text() {
        let hostile = "<b>bold</b> & \u{1b}[31m\u{202e}txt.\nsecond";
        for is_markup in [false, true] {
            let shown = body(hostile, is_markup);
            assert_eq!(shown.lines().count(), 2);
            assert!(!shown.contains(['\u{1b}', '\u{202e}']));
        }
        assert_eq!(body(hostile, true), "&lt;b&gt;bold&lt;/b&gt; &amp; [31mtxt.\nsecond");
        assert_eq!(body(hostile, false), "<b>bold</b> & [31mtxt.\nsecond");
        assert_eq!(body(&"x".repeat(10_000), true).chars().count(), LINE);
        assert_eq!(body(&"x\n".repeat(10_000), true).lines().count(), LINES);
    }
}
