//! The socket on Linux and macOS.
//!
//! A Unix socket of mode 0600 in the runtime folder, beside the control socket. Whoever connects must be a process of the same
//! user that Copilot started to load an extension, which is looked at before it takes up any room, and know the key. What it
//! says is bounded in length, number and rate, and handed on in order; what is not taken as fast as it comes waits.

use super::{Bridge, Heard, Line};
use crate::agent::copilot::bridge::wire::{self, Hello, LINE_MAX, Order, Told, hex};
use crate::agent::copilot::bridge::{PROTOCOL, peer};
use crate::core::text::is_uuid;
use crate::core::time::Span;
use crate::system::clock::Clock;
use crate::system::runtime::Runtime;
use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

/// The socket. Extensions look for this name.
const SOCKET: &str = "bridge.sock";
/// The socket while it is made.
const NEW_SOCKET: &str = "bridge.new";
/// So many are connected at once: one for each session in a terminal, and some that are just leaving.
const LINES_MAX: usize = 256;
/// An extension has so long to say who it is and to prove it, and to take each order.
const PATIENCE: Duration = Duration::from_secs(5);
/// An order that is older is not carried out: whoever gave it is told soon that nothing is known of it.
const ORDER_LASTS: Span = Span::seconds(8);
/// Where no more can be let in (no descriptors are left), the next try is so much later.
const PAUSE: Duration = Duration::from_secs(1);
/// So many lines of all extensions may wait for the loop.
const WAITING_MAX: usize = 64;
/// An extension tells a few events a turn; one that says more than this many lines in a second is none.
const RATE_MAX: u32 = 500;
/// A nonce has 32 digits; the name of a file may have more.
const NONCE_MAX: usize = 64;
/// Its first words are at most so long, in bytes.
const HELLO_MAX: usize = 16 << 10;
/// Those that are not let in are told of in our log once in so long.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// The socket, served for as long as this is held.
#[derive(Debug)]
pub(crate) struct Served {
    accepting: AbortHandle,
    path: PathBuf,
    file: (u64, u64),
}

impl Drop for Served {
    fn drop(&mut self) {
        self.accepting.abort();
        // It may be the next one's by now.
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.file) {
            let _ = fs::remove_file(&self.path); // what stays is replaced by the next one
        }
    }
}

/// Whether somebody listens in this folder.
pub(crate) fn is_listened_to(folder: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(folder.join(SOCKET)).is_ok()
}

/// Serves the socket in `folder`, on the runtime that this is called on, in place of one that stands there.
///
/// # Errors
/// Where the folder is not ours alone, or the socket cannot be made there.
pub(crate) fn serve(folder: &Path, key: Vec<u8>, by_itself: bool) -> anyhow::Result<(Served, mpsc::Receiver<Heard>)> {
    serve_checked(folder, Ours { key: key.into(), by_itself }, peer::starter)
}

/// Which process started an extension; why a process is none.
type Check = fn(u32) -> Result<u32, &'static str>;

/// What we tell every extension.
#[derive(Clone)]
struct Ours {
    key: Arc<[u8]>,
    /// It may make use of a consent that is remembered.
    by_itself: bool,
}

/// Tells our log who was not let in, however many try.
#[derive(Default)]
struct Turned {
    at: Option<Instant>,
    untold: u32,
}

impl Turned {
    fn away(&mut self, why: &dyn std::fmt::Display) {
        if self.at.is_some_and(|at| at.elapsed() < TOLD_EVERY) {
            self.untold = self.untold.saturating_add(1);
            return;
        }
        self.at = Some(Instant::now());
        match std::mem::take(&mut self.untold) {
            0 => tracing::warn!("a bridge was turned away: {why}"),
            others => tracing::warn!("a bridge was turned away: {why} ({others} others before it)"),
        }
    }
}

fn serve_checked(folder: &Path, ours: Ours, check: Check) -> anyhow::Result<(Served, mpsc::Receiver<Heard>)> {
    let (new, path) = (folder.join(NEW_SOCKET), folder.join(SOCKET));
    Runtime::open(folder)?.with_context(|| format!("there is no folder {}", folder.display()))?;
    let _ = fs::remove_file(&new); // a dead one's; where it cannot be removed, binding says why
    let listener = UnixListener::bind(&new).with_context(|| format!("cannot make the socket {}", path.display()))?;
    fs::set_permissions(&new, Permissions::from_mode(0o600))?;
    let meta = fs::symlink_metadata(&new)?;
    fs::rename(&new, &path)?;
    let (tell, heard) = mpsc::channel(WAITING_MAX);
    let accepting = tokio::spawn(accept(listener, ours, check, tell)).abort_handle();
    Ok((Served { accepting, path, file: (meta.dev(), meta.ino()) }, heard))
}

async fn accept(listener: UnixListener, ours: Ours, check: Check, tell: mpsc::Sender<Heard>) {
    let room = Arc::new(Semaphore::new(LINES_MAX));
    let turned = Arc::new(Mutex::new(Turned::default()));
    let turn_away = move |why: &dyn std::fmt::Display| turned.lock().unwrap_or_else(PoisonError::into_inner).away(why);
    let mut conversations = tokio::task::JoinSet::new();
    let mut line = 0;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a bridge cannot be let in");
                sleep(PAUSE).await;
                continue;
            }
        };
        while conversations.try_join_next().is_some() {}
        // Whoever floods the socket costs a look each, and nobody else a place.
        tokio::task::yield_now().await;
        let (peer, starter) = match peer_of(&stream, check) {
            Ok(known) => known,
            Err(why) if why.to_string() == peer::OURSELVES => continue,
            Err(why) => {
                turn_away(&why);
                continue;
            }
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            turn_away(&"too many are connected");
            continue;
        };
        line += 1;
        let (ours, tell, line, turn_away) = (ours.clone(), tell.clone(), line, turn_away.clone());
        conversations.spawn(async move {
            if let Err(error) = converse(stream, line, (peer, starter), &ours, &tell).await {
                turn_away(&format_args!("{error:#}"));
            }
            drop(place);
        });
    }
}

/// The process at the other end, and the one that started it, where it is an extension of the same user's.
fn peer_of(stream: &UnixStream, check: Check) -> anyhow::Result<(u32, u32)> {
    let credentials = stream.peer_cred()?;
    ensure!(credentials.uid() == rustix::process::geteuid().as_raw(), "it is another user's");
    let peer = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).context("its process is not told")?;
    Ok((peer, check(peer).map_err(anyhow::Error::msg)?))
}

/// One extension, from its first words to its end.
async fn converse(
    stream: UnixStream,
    line: Line,
    processes: (u32, u32),
    ours: &Ours,
    tell: &mpsc::Sender<Heard>,
) -> anyhow::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from);
    let hello =
        timeout(PATIENCE, greet(&mut from, &mut to, ours, processes)).await.context("it does not say who it is")??;
    let (orders, ordered) = mpsc::channel(1);
    tell.send(Heard::Joined(line, hello, Bridge { orders })).await?;
    let ended = serve_one(&mut from, &mut to, ordered, line, tell).await;
    tell.send(Heard::Gone(line)).await?;
    ended
}

/// Each side proves that it knows the key, and we that we are this very process.
async fn greet(
    from: &mut BufReader<OwnedReadHalf>,
    to: &mut OwnedWriteHalf,
    Ours { key, by_itself }: &Ours,
    (peer, starter): (u32, u32),
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
    ensure!(hello.nonce.bytes().all(|byte| byte.is_ascii_hexdigit()), "its nonce is none");
    ensure!(hello.pid == peer, "it is another process than it says");
    ensure!(hello.ppid == starter, "another process started it than it says");
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("the system gives no random number: {error}"))?;
    let nonce = hex(&random);
    // Both name the process that they are for: another one that hands them on proves nothing by them.
    let proof = hex(&wire::proof(key, "tray", &format!("{}:{peer}", hello.nonce), &hello.session));
    let _seal = seal(&hello.nonce, peer)?;
    let welcome = serde_json::json!({"t": "welcome", "v": PROTOCOL, "nonce": nonce, "proof": proof,
        "pid": std::process::id(), "byItself": by_itself});
    write(to, &welcome).await?;
    let answer = Lines::new(from, HELLO_MAX).next().await?.context("it does not take us for Pilotlight")?;
    let Told::Proof { proof } = serde_json::from_slice(&answer)? else {
        bail!("it does not prove that it knows the key")
    };
    let proof = unhex(&proof).context("its proof is none")?;
    ensure!(wire::is_proof(&proof, key, "ext", &nonce, &hello.session), "it does not know the key");
    Ok(hello)
}

/// A file that is open for as long as this is held, by the name of a conversation: the extension looks for it in our process, which
/// tells us from whoever read the key.
#[cfg(target_os = "linux")]
fn seal(nonce: &str, peer: u32) -> anyhow::Result<std::os::fd::OwnedFd> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    rustix::fs::memfd_create(format!("pilotlight-{nonce}-{peer}"), flags).context("cannot prove which process this is")
}

#[cfg(not(target_os = "linux"))]
fn seal(_nonce: &str, _peer: u32) -> anyhow::Result<Option<std::os::fd::OwnedFd>> {
    Ok(None)
}

/// Takes what it says, and hands it orders, until either side has enough.
async fn serve_one(
    from: &mut BufReader<OwnedReadHalf>,
    to: &mut OwnedWriteHalf,
    mut ordered: mpsc::Receiver<(Order, oneshot::Sender<wire::Result>)>,
    line: Line,
    tell: &mpsc::Sender<Heard>,
) -> anyhow::Result<()> {
    let mut waiting = HashMap::new();
    let mut last = 0_u64;
    let clock = Clock::start();
    let mut lines = Lines::new(from, LINE_MAX);
    let (mut second, mut said) = (Instant::now(), 0);
    loop {
        tokio::select! {
            read = lines.next() => {
                let Some(text) = read? else { return Ok(()) };
                if second.elapsed() >= Duration::from_secs(1) {
                    (second, said) = (Instant::now(), 0);
                }
                said += 1;
                ensure!(said <= RATE_MAX, "it says too much");
                match serde_json::from_slice(&text)? {
                    Told::Result(result) => {
                        if let Some(tell) = waiting.remove(&result.id) {
                            let _: Result<(), _> = oneshot::Sender::send(tell, result); // whoever asked may have left
                        }
                    }
                    told => tell.send(Heard::Told(line, told)).await?,
                }
            }
            order = ordered.recv() => {
                // Nobody orders any more: it was not taken, or is not wanted.
                let Some((order, tell)) = order else { return Ok(()) };
                last += 1;
                let mut text = serde_json::to_value(&order)?;
                text["id"] = last.into();
                text["by"] = (clock.now().wall + ORDER_LASTS).0.into();
                waiting.insert(last, tell);
                write(to, &text).await?;
            }
        }
    }
}

/// Lines, each whole however often waiting for it was given up.
struct Lines<'a, R> {
    from: &'a mut R,
    begun: Vec<u8>,
    /// The longest line, in bytes.
    most: usize,
}

impl<'a, R: AsyncBufRead + Unpin> Lines<'a, R> {
    const fn new(from: &'a mut R, most: usize) -> Self {
        Self { from, begun: Vec::new(), most }
    }

    async fn next(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        loop {
            let buffer = self.from.fill_buf().await?;
            if buffer.is_empty() {
                return Ok(None); // what is half said is not said
            }
            let end = memchr::memchr(b'\n', buffer);
            let taken = end.map_or(buffer.len(), |end| end + 1);
            self.begun.extend_from_slice(&buffer[..taken]);
            self.from.consume(taken);
            ensure!(self.begun.len() <= self.most, "a line of it is too long");
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.begun)));
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
