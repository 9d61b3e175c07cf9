//! The socket that the hooks of an agent connect to: which processes are let in, what they hand over, and the handle that
//! answers one.
//!
//! A Unix socket of mode 0600 in the runtime folder. A peer must be a process of the same user that runs this program as
//! a hook, and whose parent is a process of the agent. A tool's shell stands between the two, unless the tool has put the
//! hook in its place: an answer goes to the connection that it was asked over, and to no other, so the tool answers only
//! itself. What is handed over is bounded in length and time.

use super::COMMAND;
use super::wire::{FromHook, Header, INPUT_MAX, LINE_MAX, ToHook, VERSION};
use crate::fingerprint::Fingerprint;
use anyhow::{Context, ensure};
use pilotlight_core::time::Time;
use pilotlight_system::log::{self, Public, cause};
use pilotlight_system::own_socket::{Acceptor, OwnSocket};
#[cfg(not(target_os = "linux"))]
use pilotlight_system::process::arguments as command_line;
#[cfg(target_os = "linux")]
use pilotlight_system::process::command_line;
use pilotlight_system::process::{ancestors, executable};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// At most this many hooks at once. A session has one, or one for each sub-agent.
const CONNECTIONS_MAX: usize = 128;
/// How long a hook may take to hand over what it is asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// The delay before the next accept after a failed one: descriptors may have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_secs(1);
/// How many events may be queued for the loop.
const QUEUE_MAX: usize = 16;
/// Up to this many bytes, requests are read side by side. The time to hand one over bounds the others, too.
const SHORT: usize = 64 << 10;
/// How many longer ones are read at once, and wait for the loop.
const LONG_MAX: usize = 4;

/// How the hooks of an agent are listened for.
#[derive(Debug)]
pub(crate) struct Listening<A> {
    /// The socket's file name.
    pub(crate) socket: &'static str,
    /// The same while it is created.
    pub(crate) new_socket: &'static str,
    /// Which processes are let in.
    pub(crate) check: Check,
    /// Reads what a hook is asked. `None` if that is nothing for us.
    pub(crate) read: fn(&[u8]) -> Option<A>,
    /// How long a hook may take to pass an answer on.
    pub(crate) answers_within: Duration,
}

impl<A> Clone for Listening<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Listening<A> {}

/// A connection's number, never reused.
pub(crate) type ConnectionId = u64;

/// An event on the socket. Events of one connection arrive in order.
#[derive(Debug)]
pub(crate) enum HookEvent<A> {
    /// A hook asks.
    Asks(ConnectionId, Box<Hook<A>>),
    /// It has gone.
    Gone(ConnectionId),
}

/// A hook that asks.
#[derive(Clone, Debug)]
pub(crate) struct Hook<A> {
    pub(crate) asked: A,
    /// The process of the agent that started it.
    pub(crate) owner: u32,
    /// When it was started, by its own word.
    pub(crate) at: Time,
    pub(crate) handle: Handle,
}

/// Answers one hook. It is let go when the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Handle(mpsc::Sender<Told>);

/// What a hook is told, and where its reply goes.
#[derive(Debug)]
pub(crate) enum Told {
    Hold(Duration),
    Answer(Value, oneshot::Sender<FromHook>),
}

/// When a hook has gone that was to print an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Before it was told to.
    Before,
    /// It was told to.
    After,
}

impl Handle {
    #[cfg(test)]
    pub(crate) fn new(told: mpsc::Sender<Told>) -> Self {
        Self(told)
    }

    /// Tells it that it is held, for this long at most.
    pub(crate) fn hold(&self, span: Duration) {
        let _ = self.0.try_send(Told::Hold(span)); // one that has gone needs no word
    }

    /// Has it print this. Returns what it says of that.
    ///
    /// # Errors
    /// It has gone, before or after it was told to.
    pub(crate) async fn answer(&self, output: Value) -> Result<FromHook, Lost> {
        let (reply, said) = oneshot::channel();
        self.0.send(Told::Answer(output, reply)).await.map_err(|_| Lost::Before)?;
        said.await.map_err(|_| Lost::After)
    }

    /// Whether it has gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}

/// The socket, served until this is dropped.
#[derive(Debug)]
pub(crate) struct Listener<A> {
    accepting: AbortHandle,
    pub(crate) socket: OwnSocket,
    pub(crate) events: mpsc::Receiver<HookEvent<A>>,
}

impl<A> Drop for Listener<A> {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Returns the process of the agent that started a hook, or why a process is no hook.
pub(crate) type Check = fn(u32) -> Result<u32, &'static str>;

impl<A: Send + Sync + 'static> Listener<A> {
    /// Serves the socket in `folder` on the current Tokio runtime, replacing an existing one.
    ///
    /// # Errors
    /// Where others have access to the folder, or the socket cannot be created.
    pub(crate) fn serve(folder: &Path, listening: Listening<A>) -> io::Result<Self> {
        let (socket, acceptor) = OwnSocket::bind(folder, listening.socket, listening.new_socket)?;
        let (sender, events) = mpsc::channel(QUEUE_MAX);
        let accepting = tokio::spawn(accept(acceptor, listening, sender)).abort_handle();
        Ok(Self { accepting, socket, events })
    }
}

/// The process of the agent that started this hook: our program, called as the hook of the agent with this name.
///
/// # Errors
/// Why it is none.
pub(crate) fn parent_of(hook: u32, name: &str, fingerprint: &Fingerprint) -> Result<u32, &'static str> {
    let Some(program) = executable(hook).filter(|its| executable(std::process::id()).as_ref() == Some(its)) else {
        return Err("it runs another program");
    };
    if !is_here(hook, &program) {
        return Err("its program is another one, in a container");
    }
    let words = command_line(hook).unwrap_or_default();
    if words.len() != 3 || words[1] != COMMAND || words[2] != *name {
        return Err("it was not started as a hook");
    }
    let Some(&owner) = ancestors(hook).first() else { return Err("its parent process is unknown") };
    if fingerprint.is_run_by(owner) { Ok(owner) } else { Err("its agent did not start it") }
}

/// Whether the program of a process is the one that has this path here.
#[cfg(target_os = "linux")]
fn is_here(pid: u32, program: &Path) -> bool {
    pilotlight_system::process::sees_same(pid, program) == Some(true)
}

#[cfg(not(target_os = "linux"))]
const fn is_here(_pid: u32, _program: &Path) -> bool {
    true
}

async fn accept<A: Send + Sync + 'static>(
    mut acceptor: Acceptor,
    listening: Listening<A>,
    events: mpsc::Sender<HookEvent<A>>,
) {
    let (places, readers) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), Arc::new(Semaphore::new(LONG_MAX)));
    let mut connections = JoinSet::new();
    let mut id = 0;
    loop {
        let stream = match acceptor.accept().await {
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
        let owner = match peer_of(&stream, listening.check) {
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
        let (events, readers, id) = (events.clone(), Arc::clone(&readers), id);
        connections.spawn(async move {
            if let Err(why) = serve_connection(stream, id, owner, listening, &readers, &events).await {
                reject(&cause(why.as_ref()));
            }
            drop(place);
        });
    }
}

fn reject(why: &dyn Public) {
    log::debug!("a hook was let go: {}", *why);
}

/// Returns the process of the agent that started the peer, if the peer is a hook of the same user.
fn peer_of(stream: &UnixStream, check: Check) -> anyhow::Result<u32> {
    let credentials = stream.peer_cred()?;
    ensure!(credentials.uid() == rustix::process::geteuid().as_raw(), "it is another user's");
    let peer = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).context("its process is unknown")?;
    check(peer).map_err(anyhow::Error::msg)
}

/// Serves one hook until either side lets go.
async fn serve_connection<A: Send + Sync + 'static>(
    stream: UnixStream,
    id: ConnectionId,
    owner: u32,
    listening: Listening<A>,
    readers: &Arc<Semaphore>,
    events: &mpsc::Sender<HookEvent<A>>,
) -> anyhow::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from);
    let read = timeout(PATIENCE, take_request(&mut from, listening.read, readers)).await;
    let (asked, at, place) = read.context("it does not say what it asks")??;
    let (sender, mut told) = mpsc::channel(2);
    let hook = Box::new(Hook { asked, owner, at, handle: Handle(sender) });
    events.send(HookEvent::Asks(id, hook)).await?;
    drop(place);
    let ended = exchange(&mut from, &mut to, &mut told, listening.answers_within).await;
    drop((from, to, told));
    events.send(HookEvent::Gone(id)).await?;
    ended
}

/// Reads what a hook asks, and when it began. A long request is read while it has a place among those.
async fn take_request<A>(
    from: &mut (impl AsyncBufRead + Unpin),
    read: fn(&[u8]) -> Option<A>,
    readers: &Arc<Semaphore>,
) -> anyhow::Result<(A, Time, Option<OwnedSemaphorePermit>)> {
    let mut line = Vec::new();
    from.take(LINE_MAX as u64).read_until(b'\n', &mut line).await?;
    let header: Header = serde_json::from_slice(&line)?;
    ensure!(header.v == VERSION, "it is of another version");
    ensure!(header.length <= INPUT_MAX, "it asks too much");
    let place = if header.length > SHORT { Some(Arc::clone(readers).acquire_owned().await?) } else { None };
    let mut input = vec![0; header.length];
    from.read_exact(&mut input).await?;
    let asked = read(&input).context("it asks for nothing that could be answered")?;
    Ok((asked, Time(header.at), place))
}

/// Tells the hook what it is to be told, until either side lets go, or it has answered.
async fn exchange(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    told: &mut mpsc::Receiver<Told>,
    answers_within: Duration,
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
                    let read = timeout(answers_within, bounded.read_until(b'\n', &mut line)).await;
                    read.context("it does not pass its answer on")??;
                    let _ = reply.send(serde_json::from_slice(&line)?); // whoever answered may have gone
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
