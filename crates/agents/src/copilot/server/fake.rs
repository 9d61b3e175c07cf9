//! A fake server for tests, with scripted responses.

use super::testing::TestContext;
use crate::channel::action_context::LogView;
use crate::channel::endpoint::{Endpoint, Token};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The reaction to a call.
pub(super) enum Response {
    Result(Value),
    /// Events of the session `s`, then the result.
    Events(Vec<Value>, Value),
    Error(i64, &'static str),
    /// Arbitrary bytes, with no frame around them.
    Raw(Vec<u8>),
    Nothing,
    Close,
}

pub(super) struct FakeServer {
    pub(super) endpoint: Endpoint,
    /// The methods that were called.
    pub(super) calls: Arc<Mutex<Vec<String>>>,
    /// How many clients have disconnected.
    pub(super) left: Arc<AtomicUsize>,
}

impl FakeServer {
    /// Starts a server. `respond` gets the method, its parameters, and how often that method was called before.
    pub(super) async fn start(respond: impl Fn(&str, &Value, usize) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls: Arc<Mutex<Vec<String>>> = Arc::default();
        let (respond, log) = (Arc::new(respond), Arc::clone(&calls));
        let left: Arc<AtomicUsize> = Arc::default();
        let left_counter = Arc::clone(&left);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (respond, log) = (Arc::clone(&respond), Arc::clone(&log));
                let left = Arc::clone(&left_counter);
                tokio::spawn(async move {
                    serve(stream, &*respond, &log).await;
                    left.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { endpoint: Endpoint { address, token: None }, calls, left }
    }

    /// The same endpoint with a token.
    pub(super) fn with_token(&self, token: &str) -> Endpoint {
        Endpoint { token: Token::new(token), ..self.endpoint.clone() }
    }

    /// How often a method was called.
    pub(super) fn called(&self, method: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| *call == method).count()
    }
}

/// Copilot's response to `connect`.
pub(super) fn greeting() -> Response {
    Response::Result(json!({"ok": true, "protocolVersion": 3, "version": "1.0.102"}))
}

async fn serve(
    stream: TcpStream,
    respond: &(dyn Fn(&str, &Value, usize) -> Response + Sync),
    log: &Mutex<Vec<String>>,
) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    while let Some(call) = frame(&mut read).await {
        let method = call["method"].as_str().unwrap_or_default().to_owned();
        let before = {
            let mut log = log.lock().unwrap();
            log.push(method.clone());
            log.iter().filter(|other| **other == method).count() - 1
        };
        let result_frame = |result: Value| json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string();
        let body = match respond(&method, &call["params"], before) {
            Response::Result(result) => result_frame(result),
            Response::Events(events, result) => {
                for event in events {
                    let params = json!({"sessionId": "s", "event": event});
                    send(
                        &mut write,
                        &json!({"jsonrpc": "2.0", "method": "session.event", "params": params}).to_string(),
                    )
                    .await;
                }
                result_frame(result)
            }
            Response::Error(code, message) => {
                json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}}).to_string()
            }
            Response::Raw(bytes) => {
                let _ = write.write_all(&bytes).await;
                continue;
            }
            Response::Nothing => continue,
            Response::Close => return,
        };
        send(&mut write, &body).await;
    }
}

async fn send(write: &mut (impl AsyncWriteExt + Unpin), body: &str) {
    let _ = write.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
}

/// The context of an action on the owned session `s`, which may be loaded in the servers at `endpoints`; and the sender
/// that updates its log view.
pub(super) fn context_at(endpoints: Vec<Endpoint>, log_view: LogView) -> (TestContext, watch::Sender<LogView>) {
    let (sender, log_view) = watch::channel(log_view);
    (TestContext::new("s", true, endpoints, log_view), sender)
}

/// A live event.
pub(super) fn event(id: &str, kind: &str, data: &Value) -> Value {
    json!({"id": id, "type": kind, "timestamp": "2026-11-20T18:07:25.003Z", "parentId": null, "ephemeral": true, "data": data})
}

async fn frame(read: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        length = line.trim().strip_prefix("Content-Length: ")?.parse().ok()?;
    }
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.ok()?;
    serde_json::from_slice(&body).ok()
}
