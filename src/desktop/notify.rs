//! Notifications: what a click on the icon shows, and the welcome on the first run.
//!
//! None of it may hold anything up. Each is sent by a task or a thread of its own, only a few at a time and for a limited
//! time; where it cannot be sent that is said once, in the log. What a session wrote is text: on Linux the body is markup,
//! and `<`, `>` and `&` are escaped.

use crate::core::text::plain;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// So many may be on their way at once; what comes on top is dropped.
const AT_ONCE: usize = 4;
/// A server that has not answered after this does not.
#[cfg(target_os = "linux")]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// A title is at most this long, in characters.
const TITLE: usize = 120;
/// A line of the body is.
const LINE: usize = 240;

/// Sends notifications.
#[derive(Clone, Debug)]
pub struct Notifier {
    runtime: Handle,
    on_their_way: Arc<Semaphore>,
    told: Arc<AtomicBool>,
}

/// What a notification says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// One line.
    pub title: String,
    /// A few lines.
    pub body: String,
}

impl Notifier {
    /// Notifications that are sent on this runtime.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime, on_their_way: Arc::new(Semaphore::new(AT_ONCE)), told: Arc::default() }
    }

    /// Sends one; returns at once. `failed` is called where it could not be shown.
    pub fn send(&self, note: &Note, failed: impl FnOnce() + Send + 'static) {
        let Ok(way) = Arc::clone(&self.on_their_way).try_acquire_owned() else { return failed() };
        let note = Note { title: plain(&note.title, TITLE).into(), body: body(&note.body) };
        let told = Arc::clone(&self.told);
        let sent = async move {
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

/// Lines made fit to be shown; the breaks between them are ours.
fn body(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| escaped(&plain(line, LINE))).collect();
    lines.join("\n")
}

/// The three characters that markup is made of.
fn escaped(text: &str) -> String {
    if cfg!(target_os = "linux") {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    } else {
        text.into()
    }
}

#[cfg(target_os = "linux")]
async fn show(note: Note) -> anyhow::Result<()> {
    let shown = async {
        let capabilities = capabilities().await?;
        let mut notification = notify_rust::Notification::new();
        notification.appname("Pilotlight").summary(&note.title);
        notification.hint(notify_rust::Hint::DesktopEntry("pilotlight".into()));
        if capabilities.iter().any(|can| can == "body") {
            notification.body(&note.body);
        }
        notification.show_async().await?;
        anyhow::Ok(())
    };
    match tokio::time::timeout(PATIENCE, shown).await {
        Ok(result) => result,
        Err(_) => anyhow::bail!("the notification server does not answer"),
    }
}

/// What the notification server can do. notify-rust asks only in a way that holds the thread.
#[cfg(target_os = "linux")]
async fn capabilities() -> zbus::Result<Vec<String>> {
    let (name, path) = ("org.freedesktop.Notifications", "/org/freedesktop/Notifications");
    let connection = zbus::Connection::session().await?;
    connection.call_method(Some(name), path, Some(name), "GetCapabilities", &()).await?.body().deserialize()
}

#[cfg(not(target_os = "linux"))]
async fn show(note: Note) -> anyhow::Result<()> {
    let shown = move || {
        notify_rust::Notification::new().appname("Pilotlight").summary(&note.title).body(&note.body).show().map(drop)
    };
    Ok(tokio::task::spawn_blocking(shown).await??)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CASES.md 103.
    #[test]
    fn case_103_what_a_session_wrote_is_text() {
        let hostile = "<b>bold</b> & \u{1b}[31m\u{202e}txt.\nsecond";
        let shown = body(hostile);
        assert_eq!(shown.lines().count(), 2);
        assert!(!shown.contains(['\u{1b}', '\u{202e}']));
        if cfg!(target_os = "linux") {
            assert_eq!(shown, "&lt;b&gt;bold&lt;/b&gt; &amp; [31mtxt.\nsecond");
        }
        assert_eq!(body(&"x".repeat(10_000)).chars().count(), LINE);
    }
}
