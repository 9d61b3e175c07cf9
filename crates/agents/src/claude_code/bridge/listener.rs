//! The socket that hooks connect to: which processes are let in, what they hand over, and the handle that answers one.
//!
//! A Unix socket of mode 0600 in the runtime folder. A peer must be a process of the same user that runs this program as
//! a hook, and that a process of Claude Code started itself: a tool's shell stands between the two. What it hands over
//! is bounded in length and time. An answer goes to the connection that it was asked over, and to no other.

use super::asked::Asked;
use super::wire::{FromHook, Header, INPUT_MAX, LINE_MAX, SOCKET, ToHook, VERSION};
use super::{AGENT, COMMAND};
use crate::claude_code::running::FINGERPRINT;
use anyhow::{Context, ensure};
use pilotlight_core::time::Time;
use pilotlight_system::identity::Identity;
use pilotlight_system::log::{self, Public, cause};
#[cfg(not(target_os = "linux"))]
use pilotlight_system::process::arguments as command_line;
#[cfg(target_os = "linux")]
use pilotlight_system::process::command_line;
use pilotlight_system::process::{ancestors, executable};
use pilotlight_system::runtime::Runtime;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// The socket's name while it is created.
const NEW_SOCKET: &str = "hooks.new";
/// At most this many hooks at once. A session has one, or one for each sub-agent.
const CONNECTIONS_MAX: usize = 128;
/// How long a hook may take to hand over what it is asked, and to print an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The delay before the next accept after a failed one: descriptors may have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_secs(1);
/// How many events may be queued for the loop.
const QUEUE_MAX: usize = 16;

/// A connection's number, never reused.
pub(super) type ConnectionId = u64;

/// An event on the socket. Events of one connection arrive in order.
#[derive(Debug)]
pub(super) enum HookEvent {
    /// A hook asks.
    Asks(ConnectionId, Box<Hook>),
    /// It has gone.
    Gone(ConnectionId),
}

/// A hook that asks.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) asked: Asked,
    /// The process of Claude Code that started it.
    pub(super) owner: u32,
    /// When it was started, by its own word.
    pub(super) at: Time,
    pub(super) handle: Handle,
}

/// Answers one hook. It is let go when the last clone is dropped.
#[derive(Clone, Debug)]
pub(super) struct Handle(mpsc::Sender<Told>);

/// What a hook is told, and where its reply goes.
#[derive(Debug)]
pub(super) enum Told {
    Hold(Duration),
    Answer(Value, oneshot::Sender<()>),
}

impl Handle {
    #[cfg(test)]
    pub(super) fn new(told: mpsc::Sender<Told>) -> Self {
        Self(told)
    }

    /// Tells it that it is held, for this long at most.
    pub(super) fn hold(&self, span: Duration) {
        let _ = self.0.try_send(Told::Hold(span)); // one that has gone needs no word
    }

    /// Has it print this. Returns whether it did.
    pub(super) async fn answer(&self, output: Value) -> bool {
        let (reply, printed) = oneshot::channel();
        self.0.send(Told::Answer(output, reply)).await.is_ok() && printed.await.is_ok()
    }

    /// Whether it has gone.
    pub(super) fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}

/// The socket, served until this is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    accepting: AbortHandle,
    path: PathBuf,
    file: Identity,
    pub(super) events: mpsc::Receiver<HookEvent>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
        // Another tray may have replaced it.
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| Identity::of(&meta) == self.file) {
            let _ = fs::remove_file(&self.path); // a leftover is replaced by the next tray
        }
    }
}

/// Returns the process of Claude Code that started a hook, or why a process is no hook.
pub(super) type Check = fn(u32) -> Result<u32, &'static str>;

/// Whether anybody listens for hooks in this folder.
pub fn is_listened_to(folder: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(folder.join(SOCKET)).is_ok()
}

impl Listener {
    /// Serves the socket in `folder` on the current Tokio runtime, replacing an existing one.
    ///
    /// # Errors
    /// Where others have access to the folder, or the socket cannot be created.
    pub(super) fn serve(folder: &Path, check: Check) -> anyhow::Result<Self> {
        let (new, path) = (folder.join(NEW_SOCKET), folder.join(SOCKET));
        Runtime::open(folder)?.with_context(|| format!("there is no folder {}", folder.display()))?;
        let _ = fs::remove_file(&new); // left by a dead process; where it cannot be removed, binding reports why
        let listener =
            UnixListener::bind(&new).with_context(|| format!("cannot make the socket {}", path.display()))?;
        fs::set_permissions(&new, Permissions::from_mode(0o600))?;
        let file = Identity::of(&fs::symlink_metadata(&new)?);
        fs::rename(&new, &path)?;
        let (sender, events) = mpsc::channel(QUEUE_MAX);
        let accepting = tokio::spawn(accept(listener, check, sender)).abort_handle();
        Ok(Self { accepting, path, file, events })
    }
}

/// The process of Claude Code that started this hook.
///
/// # Errors
/// Why it is none.
pub(super) fn owner_of(hook: u32) -> Result<u32, &'static str> {
    if executable(hook).is_none_or(|its| executable(std::process::id()) != Some(its)) {
        return Err("it runs another program");
    }
    let words = command_line(hook).unwrap_or_default();
    if words.len() != 3 || words[1] != COMMAND || words[2] != AGENT {
        return Err("it was not started as a hook");
    }
    let Some(&owner) = ancestors(hook).first() else { return Err("its parent process is unknown") };
    if FINGERPRINT.is_run_by(owner) { Ok(owner) } else { Err("Claude Code did not start it") }
}

async fn accept(listener: UnixListener, check: Check, events: mpsc::Sender<HookEvent>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    let mut id = 0;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                log::warn!("a hook cannot be let in: {}", cause(&error));
                sleep(ACCEPT_BACKOFF).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        // A flood of connections costs one check each and takes no places; others get their turn in between.
        tokio::task::yield_now().await;
        let owner = match peer_of(&stream, check) {
            Ok(owner) => owner,
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
        let (events, id) = (events.clone(), id);
        connections.spawn(async move {
            if let Err(why) = serve_connection(stream, id, owner, &events).await {
                reject(&cause(why.as_ref()));
            }
            drop(place);
        });
    }
}

fn reject(why: &dyn Public) {
    log::debug!("a hook was let go: {}", *why);
}

/// Returns the process of Claude Code that started the peer, if the peer is a hook of the same user.
fn peer_of(stream: &UnixStream, check: Check) -> anyhow::Result<u32> {
    let credentials = stream.peer_cred()?;
    ensure!(credentials.uid() == rustix::process::geteuid().as_raw(), "it is another user's");
    let peer = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).context("its process is unknown")?;
    check(peer).map_err(anyhow::Error::msg)
}

/// Serves one hook until either side lets go.
async fn serve_connection(
    stream: UnixStream,
    id: ConnectionId,
    owner: u32,
    events: &mpsc::Sender<HookEvent>,
) -> anyhow::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from);
    let (asked, at) = timeout(PATIENCE, read_request(&mut from)).await.context("it does not say what it asks")??;
    let (sender, mut told) = mpsc::channel(2);
    let hook = Box::new(Hook { asked, owner, at, handle: Handle(sender) });
    events.send(HookEvent::Asks(id, hook)).await?;
    let ended = exchange(&mut from, &mut to, &mut told).await;
    drop((from, to, told));
    events.send(HookEvent::Gone(id)).await?;
    ended
}

async fn read_request(from: &mut (impl AsyncBufRead + Unpin)) -> anyhow::Result<(Asked, Time)> {
    let mut line = Vec::new();
    from.take(LINE_MAX as u64).read_until(b'\n', &mut line).await?;
    let header: Header = serde_json::from_slice(&line)?;
    ensure!(header.v == VERSION, "it is of another version");
    ensure!(header.length <= INPUT_MAX, "it asks too much");
    let mut input = vec![0; header.length];
    from.read_exact(&mut input).await?;
    Ok((Asked::read(&input).context("it asks for no permission")?, Time(header.at)))
}

/// Tells the hook what it is to be told, until either side lets go, or it has answered.
async fn exchange(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    told: &mut mpsc::Receiver<Told>,
) -> anyhow::Result<()> {
    let mut held_for = None;
    loop {
        let over = async {
            match held_for {
                Some(span) => sleep(span).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // It says nothing before it is answered: it has gone.
            read = from.fill_buf() => {
                let _ = read?;
                return Ok(());
            }
            () = over => return Ok(()),
            next = told.recv() => match next {
                None => return Ok(()),
                Some(Told::Hold(span)) => {
                    held_for = Some(span);
                    write(to, &ToHook::Hold).await?;
                }
                Some(Told::Answer(output, reply)) => {
                    write(to, &ToHook::Answer { output }).await?;
                    let mut line = Vec::new();
                    let mut bounded = from.take(LINE_MAX as u64);
                    timeout(PATIENCE, bounded.read_until(b'\n', &mut line)).await.context("it does not print its answer")??;
                    let FromHook::Printed = serde_json::from_slice(&line)?;
                    let _ = reply.send(()); // whoever answered may have gone
                    return Ok(());
                }
            },
        }
    }
}

async fn write(to: &mut (impl AsyncWriteExt + Unpin), told: &ToHook) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(told)?;
    line.push(b'\n');
    Ok(timeout(PATIENCE, to.write_all(&line)).await.context("it does not read")??)
}
