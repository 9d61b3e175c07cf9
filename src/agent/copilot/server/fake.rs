//! A server that is none, for tests: it says what it is told to.

use super::recover::{Permit, Sight, Site};
use super::servers::{Endpoint, Token};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What it does about a call.
pub(super) enum Say {
    Answer(Value),
    /// Events of the session `s`, and then the answer.
    Events(Vec<Value>, Value),
    Error(i64, &'static str),
    /// Bytes, be they a frame or not.
    Raw(Vec<u8>),
    Nothing,
    Close,
}

/// A fake server, and the calls that it got.
pub(super) struct Fake {
    pub(super) endpoint: Endpoint,
    pub(super) calls: Arc<Mutex<Vec<String>>>,
    /// How many of its clients have left.
    pub(super) left: Arc<AtomicUsize>,
}

impl Fake {
    /// Starts one; `say` is given the method, its parameters and how many calls of that method came before.
    pub(super) async fn start(say: impl Fn(&str, &Value, usize) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls: Arc<Mutex<Vec<String>>> = Arc::default();
        let (say, log) = (Arc::new(say), Arc::clone(&calls));
        let left: Arc<AtomicUsize> = Arc::default();
        let gone = Arc::clone(&left);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (say, log) = (Arc::clone(&say), Arc::clone(&log));
                let gone = Arc::clone(&gone);
                tokio::spawn(async move {
                    serve(stream, &*say, &log).await;
                    gone.fetch_add(1, Ordering::SeqCst);
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

/// What Copilot answers to `connect`.
pub(super) fn greeting() -> Say {
    Say::Answer(json!({"ok": true, "protocolVersion": 3, "version": "1.0.102"}))
}

async fn serve(stream: TcpStream, say: &(dyn Fn(&str, &Value, usize) -> Say + Sync), log: &Mutex<Vec<String>>) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    while let Some(call) = frame(&mut read).await {
        let method = call["method"].as_str().unwrap_or_default().to_owned();
        let before = {
            let mut log = log.lock().unwrap();
            log.push(method.clone());
            log.iter().filter(|other| **other == method).count() - 1
        };
        let answer = |result: Value| json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string();
        let body = match say(&method, &call["params"], before) {
            Say::Answer(result) => answer(result),
            Say::Events(events, result) => {
                for event in events {
                    let params = json!({"sessionId": "s", "event": event});
                    send(
                        &mut write,
                        &json!({"jsonrpc": "2.0", "method": "session.event", "params": params}).to_string(),
                    )
                    .await;
                }
                answer(result)
            }
            Say::Error(code, message) => {
                json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}}).to_string()
            }
            Say::Raw(bytes) => {
                let _ = write.write_all(&bytes).await;
                continue;
            }
            Say::Nothing => continue,
            Say::Close => return,
        };
        send(&mut write, &body).await;
    }
}

async fn send(write: &mut (impl AsyncWriteExt + Unpin), body: &str) {
    let _ = write.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
}

/// The session `s` of an owner, as the engine would hand it over, where servers at `endpoints` may have it; and who changes what
/// is seen of it.
pub(super) fn site_at(endpoints: Vec<Endpoint>, sight: Sight) -> (Site, watch::Sender<Sight>) {
    let (sender, sight) = watch::channel(sight);
    (Site { id: "s".into(), cwd: None, endpoints, owned: true, sight, permit: Permit::default() }, sender)
}

/// An event as it is told live.
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
