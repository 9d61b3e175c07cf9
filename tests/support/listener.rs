//! The test as the tray's end of the bridge's socket: it receives what the extension sends, and gives orders.

use super::{COPILOT, SOON, wait_until};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The tray's nonce. The real tray uses a fresh one for each connection.
const NONCE: &str = "0123456789abcdef";

/// A connection to one extension.
pub(crate) struct Connection {
    /// Its hello message.
    pub(crate) hello: Value,
    stream: UnixStream,
    received: Arc<Mutex<Vec<Value>>>,
    /// Whether its orders still stand, for when the extension asks.
    stands: Arc<AtomicBool>,
}

/// Makes this settings file of the extension name the test's program as Pilotlight. Affects extensions that start
/// later.
pub(crate) fn pose_as_pilotlight(settings: &Path) {
    let mut read: Value = serde_json::from_slice(&std::fs::read(settings).unwrap()).unwrap();
    read["program"] = std::env::current_exe().unwrap().canonicalize().unwrap().to_str().unwrap().into();
    std::fs::write(settings, read.to_string()).unwrap();
}

/// Records the extension's file beside these settings as the one that was installed, as by another version.
pub(crate) fn record_hash(settings: &Path) {
    let mut read: Value = serde_json::from_slice(&std::fs::read(settings).unwrap()).unwrap();
    let file = std::fs::read(settings.with_file_name("extension.mjs")).unwrap();
    let digits = Sha256::digest(file).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    read["hash"] = digits.into();
    std::fs::write(settings, read.to_string()).unwrap();
}

/// The open file that proves to an extension which process it talks to. It must stay open during the handshake.
fn seal(nonce: &str, peer: u64) -> OwnedFd {
    rustix::fs::memfd_create(format!("pilotlight-{nonce}-{peer}"), rustix::fs::MemfdFlags::CLOEXEC).unwrap()
}

/// A listener on the socket path at which extensions expect the tray.
pub(crate) struct Listener {
    listener: UnixListener,
    key: Vec<u8>,
    path: PathBuf,
    version: u32,
}

/// An extension that received a welcome.
struct Greeted {
    /// Its hello message.
    hello: Value,
    stream: UnixStream,
    /// Its further lines.
    lines: Lines<BufReader<UnixStream>>,
    /// It checks this before it answers.
    seal: OwnedFd,
}

impl Greeted {
    /// Waits until it disconnects, and asserts that it sends nothing more.
    fn expect_disconnect(mut self) {
        assert!(self.lines.next().is_none_or(|line| line.is_err()), "it has sent more");
    }
}

/// The proof that a side knows the key.
pub(crate) fn proof(key: &[u8], side: &str, nonce: &str, session: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(format!("{side}:{nonce}:{session}").as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Listener {
    /// Listens in this folder, with this key.
    pub(crate) fn start(folder: &Path, key: &[u8]) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let (path, new) = (folder.join("bridge.sock"), folder.join("bridge.new"));
        let listener = UnixListener::bind(&new).unwrap();
        listener.set_nonblocking(true).unwrap();
        std::fs::rename(&new, &path).unwrap();
        Self { listener, key: key.to_vec(), path, version: 2 }
    }

    /// Sets the version of the protocol that it announces.
    pub(crate) fn with_version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    fn next(&self) -> UnixStream {
        let accept = || self.listener.accept().ok();
        let (stream, _) = wait_until(SOON, "the extension connects", String::new, accept);
        stream.set_nonblocking(false).unwrap();
        stream
    }

    /// Welcomes the next extension, with the proof for its own hello, or for the hello of another conversation.
    fn greet(&self, other: Option<&Value>) -> Greeted {
        let stream = self.next();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let hello: Value = serde_json::from_str(&lines.next().expect("it sends a hello").unwrap()).unwrap();
        let first = other.unwrap_or(&hello);
        let (nonce, session) = (first["nonce"].as_str().unwrap(), first["session"].as_str().unwrap());
        let peer = first["pid"].as_u64().unwrap();
        let seal = seal(nonce, peer);
        let proof = proof(&self.key, "tray", &format!("{nonce}:{peer}"), session);
        let welcome = json!({"t": "welcome", "v": self.version, "nonce": NONCE, "proof": proof, "pid": std::process::id(),
            "isUsers": true});
        writeln!(&stream, "{welcome}").unwrap();
        Greeted { hello, stream, lines, seal }
    }

    /// Welcomes the next extension with a proof that it does not accept, and waits until it disconnects.
    pub(crate) fn accept_and_expect_disconnect(&self) {
        self.greet(None).expect_disconnect();
    }

    /// Replays to the next extension the proof of another conversation, which began with this hello, and waits until it
    /// disconnects.
    pub(crate) fn replay(&self, before: &Value) {
        let greeted = self.greet(Some(before));
        assert_ne!(greeted.hello["nonce"], before["nonce"]);
        greeted.expect_disconnect();
    }

    /// Whether a connection waits to be accepted. Accepts and drops it.
    pub(crate) fn has_pending(&self) -> bool {
        self.listener.accept().is_ok()
    }

    /// Completes the handshake with the next extension.
    pub(crate) fn accept(&self) -> Connection {
        let Greeted { hello, stream, mut lines, seal: _seal } = self.greet(None);
        let mut next = move || lines.next()?.ok().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let right = proof(&self.key, "ext", NONCE, hello["session"].as_str().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&received);
        if let Some(reply) = next() {
            assert_eq!(reply, json!({"t": "proof", "proof": right}));
        }
        let stands = Arc::new(AtomicBool::new(true));
        let (still, to) = (Arc::clone(&stands), stream.try_clone().unwrap());
        std::thread::spawn(move || {
            while let Some(message) = next() {
                if message["t"] == "ask" {
                    let answer = json!({"t": "stands", "id": message["id"], "stands": still.load(Ordering::SeqCst)});
                    let _ = writeln!(&to, "{answer}"); // it may have gone
                }
                into.lock().unwrap().push(message);
            }
            into.lock().unwrap().push(json!({"t": "gone"}));
        });
        Connection { hello, stream, received, stands }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Connection {
    /// Everything received so far.
    pub(crate) fn received(&self) -> Vec<Value> {
        self.received.lock().unwrap().clone()
    }

    /// Waits for a message that fits.
    pub(crate) fn wait(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let dump = || format!("{:#?}", self.received());
        wait_until(COPILOT, what, dump, || self.received().into_iter().find(&fits))
    }

    /// Waits for an event of this type.
    pub(crate) fn event(&self, kind: &str) -> Value {
        self.wait(kind, |message| message["t"] == "event" && message["type"] == kind)["data"].clone()
    }

    /// Sends this text as it is.
    pub(crate) fn send(&self, text: &str) {
        let _ = (&self.stream).write_all(text.as_bytes()); // it may disconnect before everything is sent
    }

    /// Withdraws all orders that are given from now on, or lets them stand again.
    pub(crate) fn set_stands(&self, stands: bool) {
        self.stands.store(stands, Ordering::SeqCst);
    }

    /// Waits until the extension has disconnected.
    pub(crate) fn wait_closed(&self) {
        self.wait("it disconnects", |message| message["t"] == "gone");
    }

    /// Sends an order, and waits for its result, or the reason why nothing was done.
    pub(crate) fn order(&self, id: u32, mut order: Value) -> Result<Value, String> {
        order["id"] = id.into();
        writeln!(&self.stream, "{order}").unwrap();
        let result =
            self.wait(&format!("the result of {order}"), |message| message["t"] == "result" && message["id"] == id);
        if result["ok"] == true { Ok(result) } else { Err(result["error"].as_str().unwrap().to_owned()) }
    }
}
