//! Two trays: the real one, without a desktop, and a double that answers orders as the test wants.

use crate::support::freeze::freeze;
use crate::support::synthetic::User;
use crate::support::{SOON, wait_until};
use pilotlight_core::order::{Order, OrderReport};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The socket's folder if the login session has no runtime folder.
pub(crate) fn folder(user: &User) -> PathBuf {
    user.scratch.path().join(".local/state/pilotlight")
}

pub(crate) fn socket(user: &User) -> PathBuf {
    folder(user).join("pilotlight.sock")
}

/// The real tray.
pub(crate) struct Tray {
    child: Child,
    output: PathBuf,
}

impl Tray {
    /// Starts it, and waits until it serves its socket.
    pub(crate) fn start(user: &User) -> Self {
        let before = fs::symlink_metadata(socket(user)).ok().map(|meta| identity(&meta));
        let tray = Self::start_from(user, user.pilotlight(&["tray"]));
        let is_new = || fs::symlink_metadata(socket(user)).is_ok_and(|meta| Some(identity(&meta)) != before);
        wait_until(SOON, "the tray serves its socket", || tray.output(), || is_new().then_some(()));
        tray
    }

    /// Starts it with this command.
    pub(crate) fn start_from(user: &User, mut command: Command) -> Self {
        let output = user.scratch.path().join("output");
        let file = fs::File::options().create(true).append(true).open(&output).unwrap();
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { child: command.spawn().unwrap(), output }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Waits until its output contains this text.
    pub(crate) fn wait_output(&self, text: &str) {
        let contains = || self.output().contains(text).then_some(());
        wait_until(SOON, &format!("it says {text:?}"), || self.output(), contains);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn freeze(&self) {
        freeze(self.child.id());
    }

    /// Signals it, and waits until it exits.
    pub(crate) fn end(mut self, signal: Signal) {
        self.signal(signal);
        self.child.wait().unwrap();
    }
}

fn identity(meta: &fs::Metadata) -> (u64, i64) {
    use std::os::unix::fs::MetadataExt;
    (meta.ino(), meta.ctime_nsec())
}

impl Drop for Tray {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects to the socket, whoever serves it.
pub(crate) fn connect(user: &User) -> UnixStream {
    let stream = UnixStream::connect(socket(user)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// The whole answer, up to the end of the connection.
pub(crate) fn answer(mut stream: UnixStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer); // input that the tray left unread resets the connection after the answer
    String::from_utf8(answer).unwrap()
}

/// The double. It runs until the test process exits.
pub(crate) struct Double {
    orders: Arc<Mutex<Vec<Order>>>,
}

impl Double {
    /// Serves the socket. Each order is answered with these reports, then its connection is closed.
    pub(crate) fn start(user: &User, answer: impl Fn(&Order) -> Vec<OrderReport> + Send + 'static) -> Self {
        let write_all = move |order: &Order, stream: &mut UnixStream| {
            for report in answer(order) {
                let mut line = serde_json::to_vec(&report).unwrap();
                line.push(b'\n');
                stream.write_all(&line).unwrap();
            }
        };
        Self::start_raw(user, write_all)
    }

    /// The same, but the test writes to the connection itself.
    pub(crate) fn start_raw(user: &User, answer: impl Fn(&Order, &mut UnixStream) + Send + 'static) -> Self {
        fs::create_dir_all(folder(user)).unwrap();
        let listener = UnixListener::bind(socket(user)).unwrap();
        let orders: Arc<Mutex<Vec<Order>>> = Arc::default();
        let received = Arc::clone(&orders);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                // As a tray of another version, it does not tell of its sessions.
                let Ok(order) = serde_json::from_str::<Order>(&line) else { continue };
                received.lock().unwrap().push(order.clone());
                answer(&order, &mut stream);
            }
        });
        Self { orders }
    }

    /// The orders so far.
    pub(crate) fn orders(&self) -> Vec<Order> {
        self.orders.lock().unwrap().clone()
    }
}
