//! A home, and the far side of its daemon's socket, for tests.

use futures_util::{SinkExt, StreamExt};
use pilotlight_system::process::start_ticks;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::tungstenite::Message;

/// Whether a process runs Codex, or is this one: tests hold locks themselves.
pub(super) fn runs_codex(pid: u32) -> bool {
    pid == std::process::id() || super::target::runs_codex(pid)
}

/// A home whose daemon is this process.
pub(super) fn home(daemon: u32) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for folder in ["sessions", "thread-writer-locks", "app-server-daemon"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    note(home.path(), daemon);
    home
}

/// Notes this process as the daemon of a home.
pub(super) fn note(home: &Path, pid: u32) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let ticks = start_ticks(pid).unwrap();
    let note = format!(r#"{{"pid":{pid},"processIdentity":{{"bootId":"{}","startTicks":{ticks}}}}}"#, boot.trim());
    fs::write(home.join("app-server-daemon/daemon.pid"), note).unwrap();
}

/// The far side of a daemon's socket: answers calls, and asks what it was told to ask.
pub(super) struct Daemon {
    /// What was sent to it, in order: methods of calls, and the decisions of answers.
    pub(super) heard: UnboundedReceiver<String>,
    _socket: TempDir,
}

/// What it does.
#[derive(Clone, Default)]
pub(super) struct Plays {
    /// The status of its thread.
    pub(super) status: Value,
    /// What it asks whoever resumes its thread.
    pub(super) asks: Vec<Value>,
    /// What it says once it was answered.
    pub(super) then: Vec<Value>,
    /// What it says instead of an answer to `thread/read`.
    pub(super) garbage: Option<&'static str>,
}

impl Daemon {
    /// Listens where this home has its daemon's socket.
    pub(super) fn listen(home: &Path, plays: Plays) -> Self {
        let socket = tempfile::tempdir().unwrap();
        let path = socket.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        for (path, mode) in [(socket.path(), 0o700), (&path, 0o600)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir_all(home.join("app-server-control")).unwrap();
        symlink(&path, home.join("app-server-control/app-server-control.sock")).unwrap();
        let (sender, heard) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (plays, sender) = (plays.clone(), sender.clone());
                tokio::spawn(async move { serve(stream, plays, sender).await });
            }
        });
        Self { heard, _socket: socket }
    }

    /// All that was sent to it so far.
    pub(super) fn heard(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }
}

async fn serve(stream: UnixStream, plays: Plays, sender: UnboundedSender<String>) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let message: Value = serde_json::from_str(&text).unwrap();
        let said = |value: &Value| Message::text(value.to_string());
        let Some(method) = message["method"].as_str() else {
            let _ = sender.send(format!("{} {}", message["id"], message["result"]["decision"].as_str().unwrap()));
            for then in &plays.then {
                socket.send(said(then)).await.unwrap();
            }
            continue;
        };
        let _ = sender.send(method.to_owned());
        let result = match method {
            "thread/read" if let Some(garbage) = plays.garbage => {
                socket.send(Message::text(garbage)).await.unwrap();
                continue;
            }
            "thread/read" => json!({"thread": {"status": plays.status}}),
            _ => json!({}),
        };
        if message.get("id").is_some() {
            socket.send(said(&json!({"id": message["id"], "result": result}))).await.unwrap();
        }
        if method == "thread/resume" {
            for asks in &plays.asks {
                socket.send(said(asks)).await.unwrap();
            }
        }
    }
}
