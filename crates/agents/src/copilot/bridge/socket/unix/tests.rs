use super::*;
use crate::copilot::bridge::wire::{Consent, OrderResult, is_proof, proof};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use tokio::io::AsyncReadExt;

const KEY: &[u8] = b"the key";
const SESSION: &str = "36535f61-5c7b-4f09-a70b-2f8aed972800";
/// The extension's nonce.
const NONCE: &str = "0123456789abcdef";

/// Our end of the socket, and its events.
struct Desk {
    folder: tempfile::TempDir,
    events: mpsc::Receiver<BridgeEvent>,
    _socket: BridgeSocket,
}

impl Desk {
    fn new(check: Check) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let ours = Ours { key: KEY.into(), auto_elevate: true, is_users: |_| true };
        let (socket, events) = serve_checked(folder.path(), ours, check).unwrap();
        Self { folder, events, _socket: socket }
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join(SOCKET)).await.unwrap()
    }

    /// An extension after its handshake.
    async fn joined(&mut self) -> (UnixStream, Bridge) {
        let mut stream = self.connect().await;
        say(&mut stream, &hello(PROTOCOL)).await;
        let welcome = hear(&mut stream).await.unwrap();
        let given = unhex(welcome["proof"].as_str().unwrap()).unwrap();
        assert!(is_proof(&given, KEY, "tray", &format!("{NONCE}:{}", std::process::id()), SESSION));
        let nonce = welcome["nonce"].as_str().unwrap();
        say(&mut stream, &json!({"t": "proof", "proof": hex(&proof(KEY, "ext", nonce, SESSION))})).await;
        let Some(BridgeEvent::Joined(_, hello, bridge)) = self.events.recv().await else { panic!("it has not joined") };
        assert_eq!((&*hello.session, hello.ppid), (SESSION, 7));
        (stream, bridge)
    }
}

fn hello(version: u32) -> Value {
    let pid = std::process::id();
    json!({"t": "hello", "v": version, "session": SESSION, "pid": pid, "ppid": 7, "elevated": false, "nonce": NONCE})
}

async fn say(stream: &mut UnixStream, value: &Value) {
    stream.write_all(format!("{value}\n").as_bytes()).await.unwrap();
}

/// The extension's next line; `None` where the connection is closed.
async fn hear(stream: &mut UnixStream) -> Option<Value> {
    let mut line = Vec::new();
    loop {
        match stream.read_u8().await {
            Ok(b'\n') => return Some(serde_json::from_slice(&line).unwrap()),
            Ok(byte) => line.push(byte),
            Err(_) => return None,
        }
    }
}

/// The result of an order, or `None` once the extension has disconnected. The order stands.
async fn result(bridge: &Bridge, order: Order) -> Option<OrderResult> {
    let mut replies = bridge.order(order).await.ok()?;
    loop {
        match replies.recv().await? {
            Reply::Asks { answer, .. } => answer.send(true).unwrap(),
            Reply::Result(result) => return Some(result),
        }
    }
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn each_order_gets_its_own_result() {
    run(async {
        let mut desk = Desk::new(|_| Ok(7));
        let (mut stream, bridge) = desk.joined().await;
        say(&mut stream, &json!({"t": "consent", "open": true})).await;
        let Some(BridgeEvent::Message(_, Message::Consent(Consent { open: true, .. }))) = desk.events.recv().await
        else {
            panic!()
        };
        let (one, two) = (bridge.clone(), bridge.clone());
        let stop = tokio::spawn(async move { result(&one, Order::Stop { after: "root".into() }).await });
        let mut first = hear(&mut stream).await.unwrap();
        // Its deadline is counted from now.
        let now = jiff::Timestamp::now().as_millisecond();
        let by = first.as_object_mut().unwrap().remove("by").unwrap().as_i64().unwrap();
        assert!((now..=now + ORDER_LASTS.0).contains(&by), "{by} at {now}");
        assert_eq!(first, json!({"t": "stop", "after": "root", "id": 1}));
        let elevate = tokio::spawn(async move { result(&two, Order::Elevate { after: "root".into() }).await });
        let second = hear(&mut stream).await.unwrap();
        assert_eq!((&second["t"], &second["id"]), (&json!("elevate"), &json!(2)));
        // A result that nobody waits for is ignored.
        say(&mut stream, &json!({"t": "result", "id": 9, "ok": true})).await;
        say(&mut stream, &json!({"t": "result", "id": 2, "ok": true})).await;
        say(&mut stream, &json!({"t": "result", "id": 1, "ok": false, "error": "changed"})).await;
        assert!(elevate.await.unwrap().unwrap().ok);
        assert_eq!(stop.await.unwrap().unwrap().error.as_deref(), Some("changed"));
        // An order without a result may have been carried out.
        let lost =
            tokio::spawn(async move { result(&bridge, Order::Elevate { after: "root".into() }).await.is_none() });
        hear(&mut stream).await.unwrap();
        drop(stream);
        assert!(lost.await.unwrap());
        let Some(BridgeEvent::Gone(_)) = desk.events.recv().await else { panic!() };
    });
}

/// The extension acts only once its giver has said that the order stands; a giver that has left says no.
#[test]
fn case_190_an_order_stands_only_as_long_as_its_giver_is_there() {
    run(async {
        let mut desk = Desk::new(|_| Ok(7));
        let (mut stream, bridge) = desk.joined().await;
        let stop = || Order::Stop { after: "root".into() };
        let mut replies = bridge.order(stop()).await.unwrap();
        assert_eq!(hear(&mut stream).await.unwrap()["id"], 1);
        for stands in [true, false] {
            say(&mut stream, &json!({"t": "ask", "id": 1, "ready": true})).await;
            let Some(Reply::Asks { ready: true, answer }) = replies.recv().await else { panic!() };
            answer.send(stands).unwrap();
            assert_eq!(hear(&mut stream).await, Some(json!({"t": "stands", "id": 1, "stands": stands})));
        }
        say(&mut stream, &json!({"t": "ask", "id": 1, "ready": true})).await;
        drop(replies.recv().await); // not answered
        assert_eq!(hear(&mut stream).await, Some(json!({"t": "stands", "id": 1, "stands": false})));
        drop(replies);
        // It has left, or there is no such order.
        for id in [1, 7] {
            say(&mut stream, &json!({"t": "ask", "id": id, "ready": true})).await;
            assert_eq!(hear(&mut stream).await, Some(json!({"t": "stands", "id": id, "stands": false})));
        }
        // Two orders at the same time.
        let (mut one, mut two) = (bridge.order(stop()).await.unwrap(), bridge.order(stop()).await.unwrap());
        let ids = [hear(&mut stream).await.unwrap(), hear(&mut stream).await.unwrap()].map(|order| order["id"].clone());
        assert_eq!(ids, [json!(2), json!(3)]);
        for id in ids {
            say(&mut stream, &json!({"t": "ask", "id": id, "ready": true})).await;
        }
        let (Some(Reply::Asks { answer: first, .. }), Some(Reply::Asks { answer: second, .. })) =
            (one.recv().await, two.recv().await)
        else {
            panic!()
        };
        second.send(true).unwrap();
        assert_eq!(hear(&mut stream).await, Some(json!({"t": "stands", "id": 3, "stands": true})));
        drop(first);
        assert_eq!(hear(&mut stream).await, Some(json!({"t": "stands", "id": 2, "stands": false})));
    });
}

#[test]
fn a_peer_that_is_no_extension_or_does_not_know_the_key_is_rejected() {
    run(async {
        let mut desk = Desk::new(|_| Ok(7));
        let (mut other, version) = (hello(PROTOCOL), hello(PROTOCOL + 1));
        other["ppid"] = 6.into();
        let (mut stranger, mut path, mut word) = (hello(PROTOCOL), hello(PROTOCOL), hello(PROTOCOL));
        stranger["pid"] = 1.into();
        path["session"] = "../x".into();
        word["nonce"] = "no hexadecimal digits".into();
        let long = json!({"t": "hello", "v": PROTOCOL, "cli": "x".repeat(HELLO_MAX)});
        let texts = [other, version, stranger, path, word, long, json!({"t": "proof"})].map(|first| first.to_string());
        for first in texts.into_iter().chain(["{".into(), "\u{0}".into()]) {
            let mut stream = desk.connect().await;
            // It may be disconnected before all was written.
            let _ = stream.write_all(format!("{first}\n").as_bytes()).await;
            assert_eq!(hear(&mut stream).await, None, "{first:.99}");
        }
        for wrong in ["", "00", "xyz", &hex(&proof(b"another key", "ext", "n", "session"))] {
            let mut stream = desk.connect().await;
            say(&mut stream, &hello(PROTOCOL)).await;
            assert_eq!(hear(&mut stream).await.unwrap()["t"], "welcome");
            say(&mut stream, &json!({"t": "proof", "proof": wrong})).await;
            assert_eq!(hear(&mut stream).await, None, "{wrong:?}");
        }
        // Our own proof, sent back, is not theirs.
        let mut stream = desk.connect().await;
        say(&mut stream, &hello(PROTOCOL)).await;
        let ours = hear(&mut stream).await.unwrap()["proof"].clone();
        say(&mut stream, &json!({"t": "proof", "proof": ours})).await;
        assert_eq!(hear(&mut stream).await, None);
        desk.joined().await;
        assert!(desk.events.try_recv().is_err(), "the others caused no events");
    });
}

#[test]
fn a_malformed_message_ends_the_connection() {
    run(async {
        let mut desk = Desk::new(|_| Ok(7));
        let long = "x".repeat(LINE_MAX + 1);
        for line in ["{", "[]", r#"{"t": "result", "id": "one", "ok": true}"#, &long] {
            let (mut stream, _bridge) = desk.joined().await;
            // It may be disconnected before all was written.
            let _ = stream.write_all(format!("{line}\n").as_bytes()).await;
            let Some(BridgeEvent::Gone(_)) = desk.events.recv().await else { panic!("{line:.40}") };
        }
        // A later version's message is unknown; a partial line is dropped.
        let (mut stream, _bridge) = desk.joined().await;
        say(&mut stream, &json!({"t": "weather", "sun": true})).await;
        let Some(BridgeEvent::Message(_, Message::Unknown)) = desk.events.recv().await else { panic!() };
        stream.write_all(br#"{"t": "consent", "open""#).await.unwrap();
        drop(stream);
        let Some(BridgeEvent::Gone(_)) = desk.events.recv().await else { panic!() };
    });
}

#[test]
fn a_dead_trays_socket_is_replaced_and_ours_is_removed() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let path = folder.path().join(SOCKET);
        drop(UnixListener::bind(&path).unwrap());
        assert!(UnixStream::connect(&path).await.is_err());
        let (socket, _events) = serve(folder.path(), KEY.to_vec(), true, |_| true).unwrap();
        assert!(UnixStream::connect(&path).await.is_ok());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(socket);
        assert!(!path.exists());
        // A folder that others may write to is refused.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(serve(folder.path(), KEY.to_vec(), true, |_| true).is_err());
    });
}

#[test]
fn a_flooding_extension_is_disconnected_alone() {
    run(async {
        let mut desk = Desk::new(|_| Ok(7));
        let (mut quiet, _bridge) = desk.joined().await;
        let (mut stream, _other) = desk.joined().await;
        let flood = tokio::spawn(async move { while stream.write_all(b"{\"t\": \"weather\"}\n").await.is_ok() {} });
        let mut messages = 0;
        while let Some(BridgeEvent::Message(2, _)) = desk.events.recv().await {
            messages += 1;
        }
        assert!((1..=2 * RATE_MAX).contains(&messages), "{messages}");
        flood.await.unwrap();
        say(&mut quiet, &json!({"t": "consent", "open": true})).await;
        let Some(BridgeEvent::Message(1, Message::Consent(_))) = desk.events.recv().await else {
            panic!("it was disconnected too")
        };
    });
}

#[test]
fn rejected_peers_take_no_places() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static ACCEPT: AtomicBool = AtomicBool::new(false);
    run(async {
        let mut desk = Desk::new(|_| if ACCEPT.load(Ordering::Acquire) { Ok(7) } else { Err("it is no extension") });
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS_MAX + 50 {
            let mut stream = desk.connect().await;
            assert_eq!(hear(&mut stream).await, None);
            held.push(stream);
        }
        ACCEPT.store(true, Ordering::Release);
        desk.joined().await;
    });
}

#[test]
#[cfg(target_os = "linux")]
fn our_process_holds_the_seal_during_the_handshake() {
    run(async {
        let desk = Desk::new(|_| Ok(7));
        let mut stream = desk.connect().await;
        say(&mut stream, &hello(PROTOCOL)).await;
        let welcome = hear(&mut stream).await.unwrap();
        assert_eq!((&welcome["pid"], &welcome["byItself"]), (&json!(std::process::id()), &json!(true)));
        let seals = || {
            let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
            let name = format!("/memfd:pilotlight-{NONCE}-{} (deleted)", std::process::id());
            open.filter(|fd| fs::read_link(fd.path()).is_ok_and(|link| link == Path::new(&name))).count()
        };
        assert!(seals() > 0);
        drop(stream);
    });
}
