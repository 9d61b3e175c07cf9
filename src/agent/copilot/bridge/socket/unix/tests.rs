use super::*;
use crate::agent::copilot::bridge::socket::Gone;
use crate::agent::copilot::bridge::wire::{Consent, is_proof, proof};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

const KEY: &[u8] = b"the key";
const SESSION: &str = "36535f61-5c7b-4f09-a70b-2f8aed972800";
/// Their nonce.
const NONCE: &str = "0123456789abcdef";

/// Our end, and what is heard there.
struct Desk {
    folder: tempfile::TempDir,
    heard: mpsc::Receiver<Heard>,
    _served: Served,
}

impl Desk {
    fn new(check: Check) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let (served, heard) = serve_checked(folder.path(), Ours { key: KEY.into(), by_itself: true }, check).unwrap();
        Self { folder, heard, _served: served }
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join(SOCKET)).await.unwrap()
    }

    /// An extension that has said who it is, and has proved it.
    async fn joined(&mut self) -> (UnixStream, Bridge) {
        let mut stream = self.connect().await;
        say(&mut stream, &hello(1)).await;
        let welcome = hear(&mut stream).await.unwrap();
        let given = unhex(welcome["proof"].as_str().unwrap()).unwrap();
        assert!(is_proof(&given, KEY, "tray", &format!("{NONCE}:{}", std::process::id()), SESSION));
        let nonce = welcome["nonce"].as_str().unwrap();
        say(&mut stream, &json!({"t": "proof", "proof": hex(&proof(KEY, "ext", nonce, SESSION))})).await;
        let Some(Heard::Joined(_, hello, bridge)) = self.heard.recv().await else { panic!("it has not joined") };
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

/// Its next line; `None` where the connection is over.
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

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn orders_go_out_and_their_results_come_back_each_to_its_own() {
    run(async {
        let mut desk = Desk::new(|_| Ok(7));
        let (mut stream, bridge) = desk.joined().await;
        say(&mut stream, &json!({"t": "consent", "open": true})).await;
        let Some(Heard::Told(_, Told::Consent(Consent { open: true, .. }))) = desk.heard.recv().await else { panic!() };
        let (one, two) = (bridge.clone(), bridge.clone());
        let stop = tokio::spawn(async move { one.order(Order::Stop { after: "root".into() }).await });
        let mut first = hear(&mut stream).await.unwrap();
        // It counts for a moment from now on.
        let now = jiff::Timestamp::now().as_millisecond();
        let by = first.as_object_mut().unwrap().remove("by").unwrap().as_i64().unwrap();
        assert!((now..=now + ORDER_LASTS.0).contains(&by), "{by} at {now}");
        assert_eq!(first, json!({"t": "stop", "after": "root", "id": 1}));
        let elevate = tokio::spawn(async move { two.order(Order::Elevate { after: "root".into() }).await });
        let second = hear(&mut stream).await.unwrap();
        assert_eq!((&second["t"], &second["id"]), (&json!("elevate"), &json!(2)));
        // A result that nobody waits for is nothing.
        say(&mut stream, &json!({"t": "result", "id": 9, "ok": true})).await;
        say(&mut stream, &json!({"t": "result", "id": 2, "ok": true})).await;
        say(&mut stream, &json!({"t": "result", "id": 1, "ok": false, "error": "changed"})).await;
        assert!(elevate.await.unwrap().unwrap().ok);
        assert_eq!(stop.await.unwrap().unwrap().error.as_deref(), Some("changed"));
        // What was ordered and not answered may have happened.
        let lost = tokio::spawn(async move { bridge.order(Order::Elevate { after: "root".into() }).await.map(|_| ()) });
        hear(&mut stream).await.unwrap();
        drop(stream);
        assert_eq!(lost.await.unwrap(), Err(Gone));
        let Some(Heard::Gone(_)) = desk.heard.recv().await else { panic!() };
    });
}

#[test]
fn who_is_no_extension_or_does_not_know_the_key_is_sent_away() {
    run(async {
        let mut desk = Desk::new(|_| Ok(7));
        let (mut other, mut version) = (hello(1), hello(2));
        other["ppid"] = 6.into();
        version["v"] = 2.into();
        let (mut stranger, mut path, mut word) = (hello(1), hello(1), hello(1));
        stranger["pid"] = 1.into();
        path["session"] = "../x".into();
        word["nonce"] = "no hexadecimal digits".into();
        let long = json!({"t": "hello", "v": 1, "cli": "x".repeat(HELLO_MAX)});
        let texts = [other, version, stranger, path, word, long, json!({"t": "proof"})].map(|first| first.to_string());
        for first in texts.into_iter().chain(["{".into(), "\u{0}".into()]) {
            let mut stream = desk.connect().await;
            // It may be sent away before all was said.
            let _ = stream.write_all(format!("{first}\n").as_bytes()).await;
            assert_eq!(hear(&mut stream).await, None, "{first:.99}");
        }
        for wrong in ["", "00", "xyz", &hex(&proof(b"another key", "ext", "n", "session"))] {
            let mut stream = desk.connect().await;
            say(&mut stream, &hello(1)).await;
            assert_eq!(hear(&mut stream).await.unwrap()["t"], "welcome");
            say(&mut stream, &json!({"t": "proof", "proof": wrong})).await;
            assert_eq!(hear(&mut stream).await, None, "{wrong:?}");
        }
        // Our own proof, sent back, is not theirs.
        let mut stream = desk.connect().await;
        say(&mut stream, &hello(1)).await;
        let ours = hear(&mut stream).await.unwrap()["proof"].clone();
        say(&mut stream, &json!({"t": "proof", "proof": ours})).await;
        assert_eq!(hear(&mut stream).await, None);
        desk.joined().await;
        assert!(desk.heard.try_recv().is_err(), "nothing was heard of the others");
    });
}

#[test]
fn what_it_cannot_say_ends_the_conversation() {
    run(async {
        let mut desk = Desk::new(|_| Ok(7));
        let long = "x".repeat(LINE_MAX + 1);
        for line in ["{", "[]", r#"{"t": "result", "id": "one", "ok": true}"#, &long] {
            let (mut stream, _bridge) = desk.joined().await;
            // It may be sent away before all was said.
            let _ = stream.write_all(format!("{line}\n").as_bytes()).await;
            let Some(Heard::Gone(_)) = desk.heard.recv().await else { panic!("{line:.40}") };
        }
        // What a later version tells is passed over; what was half said was not said.
        let (mut stream, _bridge) = desk.joined().await;
        say(&mut stream, &json!({"t": "weather", "sun": true})).await;
        let Some(Heard::Told(_, Told::Unknown)) = desk.heard.recv().await else { panic!() };
        stream.write_all(br#"{"t": "consent", "open""#).await.unwrap();
        drop(stream);
        let Some(Heard::Gone(_)) = desk.heard.recv().await else { panic!() };
    });
}

#[test]
fn a_socket_that_a_dead_one_left_is_replaced_and_ours_is_taken_away() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let path = folder.path().join(SOCKET);
        drop(UnixListener::bind(&path).unwrap());
        assert!(UnixStream::connect(&path).await.is_err());
        let (served, _heard) = serve(folder.path(), KEY.to_vec(), true).unwrap();
        assert!(UnixStream::connect(&path).await.is_ok());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(served);
        assert!(!path.exists());
        // One that others may write to is no place for it.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(serve(folder.path(), KEY.to_vec(), true).is_err());
    });
}

#[test]
fn who_says_too_much_is_sent_away_and_takes_nobody_along() {
    run(async {
        let mut desk = Desk::new(|_| Ok(7));
        let (mut quiet, _bridge) = desk.joined().await;
        let (mut stream, _other) = desk.joined().await;
        let flood = tokio::spawn(async move { while stream.write_all(b"{\"t\": \"weather\"}\n").await.is_ok() {} });
        let mut heard = 0;
        while let Some(Heard::Told(2, _)) = desk.heard.recv().await {
            heard += 1;
        }
        assert!((1..=2 * RATE_MAX).contains(&heard), "{heard}");
        flood.await.unwrap();
        say(&mut quiet, &json!({"t": "consent", "open": true})).await;
        let Some(Heard::Told(1, Told::Consent(_))) = desk.heard.recv().await else { panic!("it is gone as well") };
    });
}

/// Whoever is no extension takes no place: there may be any number of them.
#[test]
fn strangers_take_no_room() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static IS_ONE: AtomicBool = AtomicBool::new(false);
    run(async {
        let mut desk = Desk::new(|_| if IS_ONE.load(Ordering::Acquire) { Ok(7) } else { Err("it is none") });
        let mut held = Vec::new();
        for _ in 0..LINES_MAX + 50 {
            let mut stream = desk.connect().await;
            assert_eq!(hear(&mut stream).await, None);
            held.push(stream);
        }
        IS_ONE.store(true, Ordering::Release);
        desk.joined().await;
    });
}

#[test]
#[cfg(target_os = "linux")]
fn we_prove_which_process_we_are_for_as_long_as_it_is_asked() {
    run(async {
        let desk = Desk::new(|_| Ok(7));
        let mut stream = desk.connect().await;
        say(&mut stream, &hello(1)).await;
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
