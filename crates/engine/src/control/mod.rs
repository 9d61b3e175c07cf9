//! The control socket, over which a command hands its order to the running tray, so that connections made for the order
//! stay open after the command has exited.
//!
//! A Unix socket of mode 0600 in the folder that also holds the lock of the running tray; a named pipe on Windows. A
//! client writes one [`Order`](pilotlight_core::order::Order) as a line of JSON and reads lines of JSON: first an immediate
//! `"heard"`, which distinguishes a busy tray from one that hangs, then one [`OrderReport`] per line, the last of which ends
//! the order. The client keeps its end open in the meantime: closing it takes the order back, as long as nothing was
//! sent for it.
//!
//! - [`serve`] is the tray's side, [`ask`] the command's.
//! - [`pipe`] is a connection that stays, for a Pilotlight on another machine: `pilotlight serve` relays it here.
//! - [`caller`] decides who may give which order: only the same user, and permission requests can be answered by nobody
//!   whom Copilot started; [`origin`] tells whether a person can be known to have given it, [`opened`] whether it comes
//!   from a window that the tray opened.
//!
//! Coming from the same user does not make anything trusted: lines are bounded, clients must not be slow, and what is
//! not understood is refused with a reason. Every client is accepted. If there are too many, the one that has waited
//! longest without giving an order is dismissed, first of the process that has the most clients. The contents of orders
//! are never logged.

pub mod caller;
mod client;
mod command;
pub mod opened;
pub mod origin;
pub mod pipe;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod transport;
mod wire;

pub use client::{
    OrderConnection, ask, ask_for_hosts, ask_for_sessions, ask_to_hold_window, ask_to_listen_to_bridges, ask_to_retry,
    ask_to_serve,
};
pub use command::{Command, HostReport, PendingOrder, RetryHost};
pub use transport::{SocketState, socket_state};
pub use wire::ORDER_MAX;

use caller::CallerPolicy;
use pilotlight_core::order::{OrderReport, Outcome};
use pilotlight_system::log::{self, cause, private};
use pipe::{Service, serve_pipe};
use serde::Serialize;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::{self, AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use wire::{ACK, ClientRequest, TrayRequest};

/// Maximum number of connected clients.
const CLIENTS_MAX: usize = 64;
/// Maximum number of clients from one process.
const CLIENTS_PER_PROCESS_MAX: usize = 16;
/// How long a client may take to write its order, and to read each report.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an order that was taken back too late has to end, so that its client hears how.
const ENDS_WITHIN: Duration = Duration::from_secs(3);
/// How long to wait for a hangup that has already happened.
const HANGUP_GRACE: Duration = Duration::from_millis(1);
/// How long to wait, if no client leaves earlier, before accepting is tried again after it failed (no descriptors are
/// left).
const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// The control socket, served as long as this value lives. Dropping it closes every connection and removes the socket.
#[derive(Debug)]
pub struct ControlServer {
    accepting: AbortHandle,
    socket_file: transport::SocketFile,
}

impl ControlServer {
    /// The socket's file, if it has one.
    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.socket_file.path()
    }

    /// Makes the socket again if its file was removed.
    pub(crate) fn renew(&mut self) {
        self.socket_file.renew();
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What is shared by all conversations.
struct Context {
    policy: CallerPolicy,
    handle: Box<dyn Fn(Command) + Send + Sync>,
}

/// Serves the control socket in `folder`, on the current runtime. The caller must hold the lock of the running tray, so
/// a socket that already exists was left by a dead tray and is replaced.
///
/// `policy` decides which callers may give which orders. `handle` is called with each command that may be given.
///
/// # Errors
/// If the folder is not the user's own, or others may write to it; if the socket cannot be created there. The message
/// says what to do.
pub fn serve(
    folder: &Path,
    policy: CallerPolicy,
    handle: impl Fn(Command) + Send + Sync + 'static,
) -> io::Result<ControlServer> {
    let (listener, socket_file) = transport::bind(folder)?;
    let context = Arc::new(Context { policy, handle: Box::new(handle) });
    let accepting = tokio::spawn(accept(listener, context)).abort_handle();
    Ok(ControlServer { accepting, socket_file })
}

/// A connected client.
struct Client {
    process: Option<u32>,
    /// Dismisses the client. Closed as soon as it has given its order.
    dismiss: oneshot::Sender<()>,
}

/// Accepts clients. Dropping this future disconnects them all.
async fn accept(mut listener: transport::Listener, context: Arc<Context>) {
    let mut conversations = JoinSet::new();
    let mut clients: Vec<(task::Id, Client)> = Vec::new();
    let mut is_paused = false;
    loop {
        tokio::select! {
            Some(left) = conversations.join_next_with_id() => {
                let id = left.map_or_else(|error| error.id(), |(id, ())| id);
                clients.retain(|(client, _)| *client != id);
                is_paused = false;
            }
            () = sleep(ACCEPT_RETRY), if is_paused => is_paused = false,
            accepted = listener.accept(), if !is_paused => match accepted {
                Ok(Some((stream, process))) => {
                    let has_room = make_room(&mut clients, process, transport::is_scarce(&stream));
                    let context = Arc::clone(&context);
                    let (dismiss, dismissed) = oneshot::channel();
                    let conversation = conversations.spawn(async move {
                        let talk = async {
                            if has_room { serve_client(stream, process, &context, dismissed).await } else { refuse_full(stream).await }
                        };
                        if let Err(error) = talk.await {
                            log::debug!("a client of the control socket has gone: {}", cause(&error));
                        }
                    });
                    clients.push((conversation.id(), Client { process, dismiss }));
                    // A dismissed client must leave before the next one is accepted.
                    task::yield_now().await;
                }
                Ok(None) => {} // another user's connection, already closed
                Err(error) => {
                    log::warn!("cannot accept a command on the control socket: {}", cause(&error));
                    is_paused = true;
                }
            },
        }
    }
}

/// Makes room for one more client of this process by dismissing those that have waited longest without giving an order.
/// Returns whether there is room: if all have given one, nobody is dismissed. While descriptors are scarce, one is
/// dismissed for each that is accepted.
fn make_room(clients: &mut Vec<(task::Id, Client)>, process: Option<u32>, scarce: bool) -> bool {
    let mut scarce = scarce;
    let of = |clients: &[(task::Id, Client)], process| {
        clients.iter().filter(|(_, client)| client.process == process).count()
    };
    loop {
        let is_full = clients.len() >= CLIENTS_MAX || std::mem::take(&mut scarce);
        if !is_full && of(clients, process) < CLIENTS_PER_PROCESS_MAX {
            return true;
        }
        let may_be_dismissed =
            |(_, client): &(task::Id, Client)| !client.dismiss.is_closed() && (is_full || client.process == process);
        let waiting = clients.iter().enumerate().filter(|(_, client)| may_be_dismissed(client));
        // Among processes with equally many clients, the first client, which has waited longest.
        let longest = waiting.rev().max_by_key(|(_, (_, client))| of(clients, client.process)).map(|(index, _)| index);
        let Some(longest) = longest else {
            return clients.len() < CLIENTS_MAX && of(clients, process) < CLIENTS_PER_PROCESS_MAX;
        };
        let _ = clients.remove(longest).1.dismiss.send(()); // fails if it is leaving anyway
    }
}

/// Refuses a client because there is no room for it.
async fn refuse_full(stream: transport::ServerStream) -> io::Result<()> {
    let (_, mut to) = tokio::io::split(stream);
    refuse(&mut to, "the tray takes no more orders at once; try again when one is done".into()).await
}

/// Serves one client: reads its request and writes the answer.
async fn serve_client(
    stream: transport::ServerStream,
    caller: Option<u32>,
    context: &Context,
    dismissed: oneshot::Receiver<()>,
) -> io::Result<()> {
    let (mut from, mut to) = tokio::io::split(stream);
    let read = tokio::select! {
        read = timeout(CLIENT_TIMEOUT, read_request(&mut from)) => read,
        _ = dismissed => return refuse(&mut to, "no order came, and other clients were waiting; try again".into()).await,
    };
    let request = match read {
        Ok(Ok(Some(request))) => request,
        Ok(Ok(None)) => return Ok(()), // it only checked whether the socket is served
        Ok(Err(reason)) => return refuse(&mut to, reason).await,
        Err(_) => return refuse(&mut to, format!("no order came within {} s", CLIENT_TIMEOUT.as_secs())).await,
    };
    if let ClientRequest::Order(order) = &request
        && let Err(reason) = caller::may_order(&order.operation, caller, &context.policy)
    {
        log::warn!("an order over the control socket was refused: {}", private(&reason));
        return refuse(&mut to, reason).await;
    }
    send(&mut to, ACK).await?;
    if let ClientRequest::Tray(TrayRequest::Serve { messages }) = request {
        let service = Service { caller, policy: &context.policy, has_tray: true, messages, handle: &*context.handle };
        return serve_pipe(from, to, &service).await;
    }
    // A tray that was blocked may read an order whose command has exited in the meantime. Such an order is dropped.
    if timeout(HANGUP_GRACE, from.read(&mut [0])).await.is_ok() {
        return write(&mut to, &OrderReport::End(taken_back())).await;
    }
    match request {
        ClientRequest::Order(order) => {
            let (reply, reports) = unbounded_channel();
            let pending = PendingOrder::by_caller(order, reply, caller.unwrap_or(0));
            (context.handle)(Command::Act(pending.clone()));
            write_reports(pending, reports, &mut from, &mut to).await
        }
        ClientRequest::Tray(TrayRequest::Sessions) => {
            let (reply, sessions) = oneshot::channel();
            (context.handle)(Command::ReportSessions(reply));
            write_answer(sessions, &mut from, &mut to).await
        }
        ClientRequest::Tray(TrayRequest::Hosts) => {
            let (reply, reports) = oneshot::channel();
            (context.handle)(Command::ReportHosts(reply));
            write_answer(reports, &mut from, &mut to).await
        }
        ClientRequest::Tray(TrayRequest::Serve { .. }) => Ok(()), // above
        ClientRequest::Tray(TrayRequest::RetryHost { host, anew }) => {
            let (reply, report) = oneshot::channel();
            (context.handle)(Command::RetryHost(RetryHost { host, anew, reply: Some(reply) }));
            // It knows no such machine if nobody holds the other end.
            write_answer(async { Ok(report.await.unwrap_or_default()) }, &mut from, &mut to).await
        }
        ClientRequest::Tray(TrayRequest::HoldWindow) => {
            let (reply, held) = oneshot::channel();
            (context.handle)(Command::HoldWindow(caller.unwrap_or(0), reply));
            write_answer(held, &mut from, &mut to).await
        }
        ClientRequest::Tray(TrayRequest::ListenToBridges) => {
            let (reply, listens) = oneshot::channel();
            (context.handle)(Command::RestartBridgeListener(reply));
            write_answer(listens, &mut from, &mut to).await
        }
    }
}

/// The outcome of an order that its client took back in time.
fn taken_back() -> Outcome {
    Outcome::Failed("interrupted; nothing was sent".into())
}

/// Writes an order's reports, up to its end. If the client closes its end, it takes the order back, and is told what
/// happened: that nothing was sent, or how the order ended if that shows soon.
async fn write_reports(
    pending: PendingOrder,
    mut reports: UnboundedReceiver<OrderReport>,
    from: &mut ReadHalf<transport::ServerStream>,
    to: &mut WriteHalf<transport::ServerStream>,
) -> io::Result<()> {
    let cancel_state = pending.cancel_state();
    // Once the engine has dropped the order, no report comes.
    drop(pending);
    let (mut more, mut until) = ([0], None);
    loop {
        tokio::select! {
            report = reports.recv() => {
                let unreported = || OrderReport::End(Outcome::Unconfirmed("may have happened: the tray did not report the outcome".into()));
                let report = report.unwrap_or_else(unreported);
                write(to, &report).await?;
                if matches!(report, OrderReport::End(_)) {
                    return Ok(());
                }
            }
            // The client must not send anything else: whether it closes its end or sends more, it wants the order no
            // longer.
            _ = from.read(&mut more), if until.is_none() => {
                if cancel_state.take_back() {
                    return write(to, &OrderReport::End(taken_back())).await;
                }
                until = Some(Instant::now() + ENDS_WITHIN);
            }
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => return Ok(()),
        }
    }
}

/// Writes the answer to a request that is not an order.
async fn write_answer<T: Serialize>(
    answer: impl Future<Output = Result<T, oneshot::error::RecvError>>,
    from: &mut ReadHalf<transport::ServerStream>,
    to: &mut WriteHalf<transport::ServerStream>,
) -> io::Result<()> {
    let mut more = [0];
    tokio::select! {
        answer = answer => match answer {
            Ok(answer) => write(to, &answer).await,
            Err(_) => Ok(()), // the tray is ending
        },
        _ = from.read(&mut more) => Ok(()),
    }
}

/// Reads the client's request; `None` if it closed the connection without one. The error is the reason to refuse it.
async fn read_request(from: &mut ReadHalf<transport::ServerStream>) -> Result<Option<ClientRequest>, String> {
    let mut line = Vec::new();
    let mut from = BufReader::new(from.take(ORDER_MAX as u64));
    let read = from.read_until(b'\n', &mut line).await.map_err(|error| format!("the order cannot be read: {error}"))?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => ClientRequest::read(&line).map(Some).map_err(|error| {
            format!(
                "the tray does not understand this order ({error}); if it is another version, quit it from its menu and \
                 start `pilotlight` again"
            )
        }),
        Some(_) if read == ORDER_MAX => Err(format!("an order is at most {} KB long", ORDER_MAX >> 10)),
        Some(_) => Err("the order is cut off: it must be one line that ends in a line break".into()),
    }
}

async fn refuse(to: &mut WriteHalf<transport::ServerStream>, reason: String) -> io::Result<()> {
    write(to, &OrderReport::End(Outcome::Refused(reason))).await
}

async fn write(to: &mut WriteHalf<transport::ServerStream>, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    send(to, &line).await
}

async fn send(to: &mut WriteHalf<transport::ServerStream>, line: &[u8]) -> io::Result<()> {
    let written = async {
        to.write_all(line).await?;
        to.flush().await
    };
    timeout(CLIENT_TIMEOUT, written).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
