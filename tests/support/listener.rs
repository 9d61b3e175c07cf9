//! The far side of the bridge's socket, as the test: it hears what the extension says, and orders.

use super::{COPILOT, SOON, wait_until};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The tray's nonce; whoever checks proofs would take a fresh one.
const NONCE: &str = "0123456789abcdef";

/// One extension that is connected.
pub(crate) struct Line {
    /// Its first words.
    pub(crate) hello: Value,
    stream: UnixStream,
    heard: Arc<Mutex<Vec<Value>>>,
}

/// Has this file of settings of the extension name the test as Pilotlight, for extensions that are started from then on.
pub(crate) fn be_pilotlight(settings: &Path) {
    let mut read: Value = serde_json::from_slice(&std::fs::read(settings).unwrap()).unwrap();
    read["program"] = std::env::current_exe().unwrap().canonicalize().unwrap().to_str().unwrap().into();
    std::fs::write(settings, read.to_string()).unwrap();
}

/// What shows an extension which process it talks to, for as long as this is held.
fn seal(nonce: &str, peer: u64) -> OwnedFd {
    rustix::fs::memfd_create(format!("pilotlight-{nonce}-{peer}"), rustix::fs::MemfdFlags::CLOEXEC).unwrap()
}

/// Listens where extensions look for the tray.
pub(crate) struct Listener {
    listener: UnixListener,
    key: Vec<u8>,
    path: PathBuf,
    version: u32,
}

/// An extension that was greeted.
struct Greeted {
    /// Its first words.
    hello: Value,
    stream: UnixStream,
    /// What it says next.
    lines: Lines<BufReader<UnixStream>>,
    /// It looks for this before it answers.
    seal: OwnedFd,
}

impl Greeted {
    /// Waits until it has left without another word.
    fn leaves(mut self) {
        assert!(self.lines.next().is_none_or(|line| line.is_err()), "it has said more");
    }
}

/// What proves that a side knows the key.
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
        Self { listener, key: key.to_vec(), path, version: 1 }
    }

    /// The same, of another version of the protocol.
    pub(crate) fn of_version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    fn next(&self) -> UnixStream {
        let accept = || self.listener.accept().ok();
        let (stream, _) = wait_until(SOON, "the extension connects", String::new, accept);
        stream.set_nonblocking(false).unwrap();
        stream
    }

    /// Greets the next extension, with what is right for it, or for another conversation, which began with these words.
    fn greet(&self, other: Option<&Value>) -> Greeted {
        let stream = self.next();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let hello: Value = serde_json::from_str(&lines.next().expect("it says who it is").unwrap()).unwrap();
        let first = other.unwrap_or(&hello);
        let (nonce, session) = (first["nonce"].as_str().unwrap(), first["session"].as_str().unwrap());
        let peer = first["pid"].as_u64().unwrap();
        let seal = seal(nonce, peer);
        let proof = proof(&self.key, "tray", &format!("{nonce}:{peer}"), session);
        let welcome =
            json!({"t": "welcome", "v": self.version, "nonce": NONCE, "proof": proof, "pid": std::process::id()});
        writeln!(&stream, "{welcome}").unwrap();
        Greeted { hello, stream, lines, seal }
    }

    /// Greets the next extension, and waits until it has left: what we say proves nothing to it.
    pub(crate) fn accept_and_be_left(&self) {
        self.greet(None).leaves();
    }

    /// Answers the next extension with what was right for another conversation, of which these were the first words; and waits until it
    /// has left.
    pub(crate) fn replay(&self, before: &Value) {
        let greeted = self.greet(Some(before));
        assert_ne!(greeted.hello["nonce"], before["nonce"]);
        greeted.leaves();
    }

    /// Whether somebody has come who was not let in yet.
    pub(crate) fn is_wanted(&self) -> bool {
        self.listener.accept().is_ok()
    }

    /// Lets the next extension in.
    pub(crate) fn accept(&self) -> Line {
        let Greeted { hello, stream, mut lines, seal: _seal } = self.greet(None);
        let mut next = move || lines.next()?.ok().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let right = proof(&self.key, "ext", NONCE, hello["session"].as_str().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&heard);
        if let Some(said) = next() {
            assert_eq!(said, json!({"t": "proof", "proof": right}));
        }
        std::thread::spawn(move || {
            while let Some(said) = next() {
                into.lock().unwrap().push(said);
            }
            into.lock().unwrap().push(json!({"t": "gone"}));
        });
        Line { hello, stream, heard }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Line {
    /// Everything it said so far.
    pub(crate) fn heard(&self) -> Vec<Value> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until it has said this.
    pub(crate) fn wait(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let dump = || format!("{:#?}", self.heard());
        wait_until(COPILOT, what, dump, || self.heard().into_iter().find(&is_it))
    }

    /// Waits for an event of this type.
    pub(crate) fn event(&self, kind: &str) -> Value {
        self.wait(kind, |said| said["t"] == "event" && said["type"] == kind)["data"].clone()
    }

    /// Says this, whatever it is.
    pub(crate) fn say(&self, text: &str) {
        let _ = (&self.stream).write_all(text.as_bytes()); // it may leave before all was said
    }

    /// Waits until it has left.
    pub(crate) fn leaves(&self) {
        self.wait("it leaves", |said| said["t"] == "gone");
    }

    /// Orders, and waits for what came of it: nothing, or why nothing was done.
    pub(crate) fn order(&self, id: u32, mut order: Value) -> Result<Value, String> {
        order["id"] = id.into();
        writeln!(&self.stream, "{order}").unwrap();
        let result = self.wait(&format!("the result of {order}"), |said| said["t"] == "result" && said["id"] == id);
        if result["ok"] == true { Ok(result) } else { Err(result["error"].as_str().unwrap().to_owned()) }
    }
}
