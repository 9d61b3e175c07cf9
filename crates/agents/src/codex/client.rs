//! One connection to the daemon: JSON-RPC without its version, in a WebSocket over the Unix socket.
//!
//! A connection hears of every thread's status, but of a thread's requests only while it is subscribed to the thread. It
//! subscribes for as long as one order takes, and only to a thread that asks: resuming one that is not loaded would load
//! it. What it does not answer stays open in the terminal (observed with Codex 0.169.0).

use super::daemon_socket::{ANSWER_TIMEOUT, DaemonSocket};
use crate::channel::failure::Failure;
use futures_util::{SinkExt, StreamExt};
use pilotlight_core::order::Step;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// The longest message that is read, in bytes: a request has its whole command, or its changes to files.
const MESSAGE_MAX: usize = 8 << 20;

/// How long a connection listens at a time: as good as for ever.
const LISTENS: Duration = Duration::from_secs(24 * 3600);

/// A connection to the daemon.
pub(super) struct Client {
    socket: WebSocketStream<UnixStream>,
    calls: u64,
    /// What the daemon has asked of this connection, and told it, since it was last looked at.
    pub(super) heard: Vec<Value>,
}

impl Client {
    /// Connects to the daemon behind this socket.
    ///
    /// # Errors
    /// Why there is no connection.
    pub(super) async fn open(socket: &DaemonSocket) -> Result<Self, Failure> {
        let stream = socket.open().await?;
        let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX)).max_frame_size(Some(MESSAGE_MAX));
        let handshake = tokio_tungstenite::client_async_with_config("ws://localhost/", stream, Some(config));
        let (socket, _) = match timeout_at(Instant::now() + ANSWER_TIMEOUT, handshake).await {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(failed(Step::Attach, &format!("it does not speak its protocol: {error}"))),
            Err(_) => return Err(failed(Step::Attach, "it did not answer within 5 s")),
        };
        let mut client = Self { socket, calls: 0, heard: Vec::new() };
        let ourselves = json!({"name": "pilotlight", "title": "Pilotlight", "version": env!("CARGO_PKG_VERSION")});
        client.call(Step::Attach, "initialize", &json!({"clientInfo": ourselves})).await?;
        client.send(Step::Attach, &json!({"method": "initialized"})).await?;
        Ok(client)
    }

    async fn send(&mut self, step: Step, message: &Value) -> Result<(), Failure> {
        let sent = self.socket.send(Message::text(message.to_string()));
        match timeout_at(Instant::now() + ANSWER_TIMEOUT, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(step, &format!("it ended the connection: {error}"))),
            Err(_) => Err(failed(step, "it accepts no data")),
        }
    }

    /// The next message, until then.
    async fn next(&mut self, step: Step, until: Instant) -> Result<Option<Value>, Failure> {
        loop {
            match timeout_at(until, self.socket.next()).await {
                Err(_) => return Ok(None),
                Ok(Some(Ok(Message::Text(text)))) => match serde_json::from_str(&text) {
                    Ok(message) => return Ok(Some(message)),
                    Err(_) => return Err(failed(step, "it sent something that is not in its protocol")),
                },
                Ok(Some(Ok(Message::Close(_))) | None) => return Err(failed(step, "it ended the connection")),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(failed(step, &format!("the connection broke off: {error}"))),
            }
        }
    }

    /// The next message, whenever it comes.
    pub(super) async fn hear(&mut self) -> Result<Value, Failure> {
        loop {
            let until = Instant::now() + LISTENS;
            if let Some(message) = self.next(Step::Attach, until).await? {
                return Ok(message);
            }
        }
    }

    /// Calls a method, and returns its result.
    pub(super) async fn call(&mut self, step: Step, method: &str, params: &Value) -> Result<Value, Failure> {
        self.calls += 1;
        let id = self.calls;
        self.send(step, &json!({"id": id, "method": method, "params": params})).await?;
        let until = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let Some(mut message) = self.next(step, until).await? else {
                return Err(failed(step, &format!("it did not answer the call {method} within 5 s")));
            };
            if message.get("method").is_some() {
                self.heard.push(message);
            } else if message.get("id") == Some(&id.into()) {
                let why = message.pointer("/error/message").and_then(Value::as_str);
                if let Some(why) = why.or(message.get("error").map(|_| "no reason given")) {
                    return Err(failed(step, &format!("it refused the call {method}: {why}")));
                }
                return Ok(message.get_mut("result").map(Value::take).unwrap_or_default());
            }
        }
    }

    /// Answers what the daemon asked under this id.
    pub(super) async fn respond(&mut self, id: &Value, result: &Value) -> Result<(), Failure> {
        self.send(Step::Answer, &json!({"id": id, "result": result})).await
    }

    /// Waits until something is heard that fits, and returns what `find` made of it. `None` if nothing was, until then.
    pub(super) async fn wait_for<T>(
        &mut self,
        until: Instant,
        find: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        loop {
            if let Some(found) = self.heard.iter().find_map(&find) {
                return Ok(Some(found));
            }
            match self.next(Step::Verify, until).await? {
                Some(message) => self.heard.push(message),
                None => return Ok(None),
            }
        }
    }

    /// Unsubscribes from these threads, and closes the connection. What fails of it the daemon does by itself when the
    /// connection is gone.
    pub(super) async fn leave(mut self, threads: &[&str]) {
        for thread in threads {
            let _ = self.call(Step::Attach, "thread/unsubscribe", &json!({"threadId": thread})).await;
        }
        let _ = timeout_at(Instant::now() + ANSWER_TIMEOUT, self.socket.close(None)).await;
    }
}

fn failed(step: Step, why: &str) -> Failure {
    Failure::because(step, &format!("Codex's daemon: {why}"), "do it in the session's terminal")
}
