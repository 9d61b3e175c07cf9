//! The socket on Linux and macOS.
//!
//! A Unix socket of mode 0600 in the runtime folder, next to the control socket. A peer must be a process of the same
//! user that Copilot started to load an extension, which is checked before it takes a place, and must know the key. Its
//! messages are bounded in length and rate, and handed on in order; when the receiver is slow, reading pauses.

use super::{Bridge, BridgeEvent, ConnectionId, Reply};
use crate::copilot::bridge::wire::{self, Hello, LINE_MAX, Message, Order, hex};
use crate::copilot::bridge::{PROTOCOL, peer};
use anyhow::{Context, bail, ensure};
use pilotlight_core::text::is_uuid;
use pilotlight_core::time::Span;
use pilotlight_system::clock::Clock;
use pilotlight_system::log::{self, Public, cause};
use pilotlight_system::own_socket::{Acceptor, OwnSocket};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

/// The socket's file name, known to the extension.
pub const SOCKET: &str = "bridge.sock";
/// The socket's name while it is created.
const NEW_SOCKET: &str = "bridge.new";
/// At most this many connections at once: one for each session in a terminal, and some that are just closing.
const CONNECTIONS_MAX: usize = 256;
/// How long an extension may take for the handshake, and to read an order.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the extension may take to begin an order, by the wall clock, which counts the time asleep. Its giver gives
/// up before.
const ORDER_LASTS: Span = Span::seconds(8);
/// The delay before the next accept after a failed one: descriptors may have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_secs(1);
/// How many messages of all extensions may be queued for the loop.
const QUEUE_MAX: usize = 64;
/// How many lines an extension may send in a second. The real one sends a few a turn.
const RATE_MAX: u32 = 500;
/// The longest nonce, in digits; the extension's has 32. It becomes part of a file's name.
const NONCE_MAX: usize = 64;
/// The longest line of the handshake, in bytes.
const HELLO_MAX: usize = 16 << 10;
/// The minimum interval between log lines about rejected peers.
const REJECTIONS_LOGGED_EVERY: Duration = Duration::from_secs(10);

/// The socket, served until this is dropped.
#[derive(Debug)]
pub struct BridgeSocket {
    accepting: AbortHandle,
    socket: OwnSocket,
}

impl BridgeSocket {
    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.socket.path()
    }

    /// Makes it again if its file was removed.
    pub(crate) fn renew(&mut self) {
        self.socket.renew();
    }
}

impl Drop for BridgeSocket {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Whether anybody listens in this folder.
pub fn is_listened_to(folder: &Path) -> bool {
    pilotlight_system::runtime::is_listened_to(&folder.join(SOCKET))
}

/// Serves the socket in `folder` on the current Tokio runtime, replacing an existing one.
///
/// # Errors
/// Where others have access to the folder, or the socket cannot be created.
pub fn serve(
    folder: &Path,
    key: Vec<u8>,
    auto_elevate: bool,
    is_users: IsUsers,
) -> anyhow::Result<(BridgeSocket, mpsc::Receiver<BridgeEvent>)> {
    serve_checked(folder, Ours { key: key.into(), auto_elevate, is_users }, peer::extension_parent)
}

/// Returns the parent of an extension's process, or why a process is not an extension.
type Check = fn(u32) -> Result<u32, &'static str>;

/// Tells whether no tool of a session that a process runs can have started us.
type IsUsers = fn(u32) -> bool;

/// Our side of every handshake.
#[derive(Clone)]
struct Ours {
    key: Arc<[u8]>,
    /// Whether the extension may make use of a remembered consent.
    auto_elevate: bool,
    is_users: IsUsers,
}

/// Logs rejected peers at a limited rate.
#[derive(Default)]
struct RejectionLog {
    at: Option<Instant>,
    suppressed: usize,
}

impl RejectionLog {
    fn rejected(&mut self, why: &dyn Public) {
        if self.at.is_some_and(|at| at.elapsed() < REJECTIONS_LOGGED_EVERY) {
            self.suppressed = self.suppressed.saturating_add(1);
            return;
        }
        self.at = Some(Instant::now());
        match std::mem::take(&mut self.suppressed) {
            0 => log::warn!("a bridge was turned away: {}", *why),
            others => log::warn!("a bridge was turned away: {} ({} others before it)", *why, others),
        }
    }
}

fn serve_checked(
    folder: &Path,
    ours: Ours,
    check: Check,
) -> anyhow::Result<(BridgeSocket, mpsc::Receiver<BridgeEvent>)> {
    let (socket, acceptor) = OwnSocket::bind(folder, SOCKET, NEW_SOCKET)?;
    let (events, received) = mpsc::channel(QUEUE_MAX);
    let accepting = tokio::spawn(accept(acceptor, ours, check, events)).abort_handle();
    Ok((BridgeSocket { accepting, socket }, received))
}

async fn accept(mut acceptor: Acceptor, ours: Ours, check: Check, events: mpsc::Sender<BridgeEvent>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let log = Arc::new(Mutex::new(RejectionLog::default()));
    let reject = move |why: &dyn Public| log.lock().unwrap_or_else(PoisonError::into_inner).rejected(why);
    let mut connections = JoinSet::new();
    let mut id = 0;
    loop {
        let stream = match acceptor.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                log::warn!("a bridge cannot be let in: {}", cause(&error));
                sleep(ACCEPT_BACKOFF).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        // A flood of connections costs one check each and takes no places; others get their turn in between.
        tokio::task::yield_now().await;
        let (peer, parent) = match peer_of(&stream, check) {
            Ok(known) => known,
            Err(why) if why.to_string() == peer::OURSELVES => continue,
            Err(why) => {
                reject(&cause(why.as_ref()));
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            reject(&"too many are connected");
            continue;
        };
        id += 1;
        let (ours, events, id, reject) = (ours.clone(), events.clone(), id, reject.clone());
        connections.spawn(async move {
            if let Err(error) = serve_connection(stream, id, (peer, parent), &ours, &events).await {
                reject(&cause(error.as_ref()));
            }
            drop(place);
        });
    }
}

/// Returns the peer's process and its parent, if the peer is an extension of the same user.
fn peer_of(stream: &UnixStream, check: Check) -> anyhow::Result<(u32, u32)> {
    let credentials = stream.peer_cred()?;
    ensure!(credentials.uid() == rustix::process::geteuid().as_raw(), "it is another user's");
    let peer = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).context("its process is unknown")?;
    Ok((peer, check(peer).map_err(anyhow::Error::msg)?))
}

/// Serves one extension, from the handshake to its disconnection.
async fn serve_connection(
    stream: UnixStream,
    id: ConnectionId,
    processes: (u32, u32),
    ours: &Ours,
    events: &mpsc::Sender<BridgeEvent>,
) -> anyhow::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from);
    let hello = timeout(PATIENCE, handshake(&mut from, &mut to, ours, processes))
        .await
        .context("it does not say who it is")??;
    let (orders, ordered) = mpsc::channel(1);
    events.send(BridgeEvent::Joined(id, hello, Bridge::new(orders))).await?;
    let ended = exchange(&mut from, &mut to, ordered, id, events).await;
    events.send(BridgeEvent::Gone(id)).await?;
    ended
}

/// Each side proves that it knows the key, and we also prove which process we are.
async fn handshake(
    from: &mut BufReader<OwnedReadHalf>,
    to: &mut OwnedWriteHalf,
    Ours { key, auto_elevate, is_users }: &Ours,
    (peer, parent): (u32, u32),
) -> anyhow::Result<Hello> {
    #[derive(Deserialize)]
    struct First {
        t: String,
        #[serde(flatten)]
        hello: Hello,
    }
    let first = Lines::new(from, HELLO_MAX).next().await?.context("it has gone")?;
    let First { t, hello } = serde_json::from_slice(&first)?;
    ensure!(t == "hello" && hello.v == PROTOCOL, "it speaks another version of the protocol");
    ensure!(is_uuid(&hello.session) && hello.nonce.len() <= NONCE_MAX, "it names no session");
    ensure!(hello.nonce.bytes().all(|byte| byte.is_ascii_hexdigit()), "its nonce is not hexadecimal");
    ensure!(hello.pid == peer, "it is another process than it says");
    ensure!(hello.ppid == parent, "another process started it than it says");
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("the system gives no random number: {error}"))?;
    let nonce = hex(&random);
    // Our proof and our seal both name the process they are meant for, so a process that relays them proves nothing.
    let proof = hex(&wire::proof(key, "tray", &format!("{}:{peer}", hello.nonce), &hello.session));
    let _seal = seal(&hello.nonce, peer)?;
    let welcome = serde_json::json!({"t": "welcome", "v": PROTOCOL, "nonce": nonce, "proof": proof,
        "pid": std::process::id(), "byItself": auto_elevate, "isUsers": is_users(parent)});
    write(to, &welcome).await?;
    let answer = Lines::new(from, HELLO_MAX).next().await?.context("it does not take us for Pilotlight")?;
    let Message::Proof { proof } = serde_json::from_slice(&answer)? else {
        bail!("it does not prove that it knows the key")
    };
    let proof = unhex(&proof).context("its proof is not hexadecimal")?;
    ensure!(wire::is_proof(&proof, key, "ext", &nonce, &hello.session), "it does not know the key");
    Ok(hello)
}

/// An open file named after a connection. The extension looks for it among our process's descriptors: another process
/// that has read the key does not have it.
#[cfg(target_os = "linux")]
fn seal(nonce: &str, peer: u32) -> anyhow::Result<std::os::fd::OwnedFd> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    rustix::fs::memfd_create(format!("pilotlight-{nonce}-{peer}"), flags).context("cannot prove which process this is")
}

#[cfg(not(target_os = "linux"))]
fn seal(_nonce: &str, _peer: u32) -> anyhow::Result<Option<std::os::fd::OwnedFd>> {
    Ok(None)
}

/// Hands on the extension's messages and sends it orders, until either side disconnects.
async fn exchange(
    from: &mut BufReader<OwnedReadHalf>,
    to: &mut OwnedWriteHalf,
    mut ordered: mpsc::Receiver<(Order, mpsc::UnboundedSender<Reply>)>,
    id: ConnectionId,
    events: &mpsc::Sender<BridgeEvent>,
) -> anyhow::Result<()> {
    let mut pending: HashMap<u64, mpsc::UnboundedSender<Reply>> = HashMap::new();
    // Whether orders still stand, by their ids, once it is known.
    let mut standing = JoinSet::new();
    let mut last = 0_u64;
    let clock = Clock::start();
    let mut lines = Lines::new(from, LINE_MAX);
    let (mut second, mut count) = (Instant::now(), 0);
    loop {
        tokio::select! {
            read = lines.next() => {
                let Some(text) = read? else { return Ok(()) };
                if second.elapsed() >= Duration::from_secs(1) {
                    (second, count) = (Instant::now(), 0);
                }
                count += 1;
                ensure!(count <= RATE_MAX, "it sends too much");
                match serde_json::from_slice(&text)? {
                    Message::Result(result) => {
                        if let Some(reply) = pending.remove(&result.id) {
                            let _ = reply.send(Reply::Result(result)); // the caller may have left
                        }
                    }
                    Message::Ask { id, ready } => {
                        let (answer, answered) = oneshot::channel();
                        // If the caller has left, the answer is dropped with this question, which means no.
                        let _ = pending.get(&id).map(|reply| reply.send(Reply::Asks { ready, answer }));
                        standing.spawn(async move { (id, answered.await.unwrap_or(false)) });
                    }
                    message => events.send(BridgeEvent::Message(id, message)).await?,
                }
            }
            Some(Ok((id, stands))) = standing.join_next() => {
                write(to, &serde_json::json!({"t": "stands", "id": id, "stands": stands})).await?;
            }
            order = ordered.recv() => {
                // Every `Bridge` was dropped: the engine did not accept this connection, or has replaced it.
                let Some((order, reply)) = order else { return Ok(()) };
                last += 1;
                let mut text = serde_json::to_value(&order)?;
                text["id"] = last.into();
                text["by"] = (clock.now().wall + ORDER_LASTS).0.into();
                pending.insert(last, reply);
                write(to, &text).await?;
            }
        }
    }
}

/// Reads lines. `next` is cancel-safe: a partial line is kept for the next call.
struct Lines<'a, R> {
    from: &'a mut R,
    partial: Vec<u8>,
    /// The longest line, in bytes.
    max: usize,
}

impl<'a, R: AsyncBufRead + Unpin> Lines<'a, R> {
    const fn new(from: &'a mut R, max: usize) -> Self {
        Self { from, partial: Vec::new(), max }
    }

    async fn next(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        loop {
            let buffer = self.from.fill_buf().await?;
            if buffer.is_empty() {
                return Ok(None); // a partial line is dropped
            }
            let end = memchr::memchr(b'\n', buffer);
            let taken = end.map_or(buffer.len(), |end| end + 1);
            self.partial.extend_from_slice(&buffer[..taken]);
            self.from.consume(taken);
            ensure!(self.partial.len() <= self.max, "a line of it is too long");
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.partial)));
            }
        }
    }
}

async fn write(to: &mut OwnedWriteHalf, value: &serde_json::Value) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(timeout(PATIENCE, to.write_all(&line)).await.context("it does not read")??)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2).map(|digits| std::str::from_utf8(digits).ok());
    digits.map(|digits| u8::from_str_radix(digits?, 16).ok()).collect()
}

#[cfg(test)]
mod tests;
