//! The control socket: how a command hands what it was asked to do to the tray that runs, so that the connections which that
//! takes stay when the command has ended.
//!
//! A Unix socket of mode 0600 in the folder that also holds the lock of the running tray, a named pipe on Windows. A client
//! writes one [`Order`] as a line of JSON and reads lines of JSON: first `"heard"`, at once, so that a tray that hangs is told
//! from one that has work to do; then each a [`Report`], the last of which is its end. Its own end stays open meanwhile: one
//! that closes it takes its order back, as long as nothing was sent on account of it.
//!
//! - [`serve`] is the tray's side, [`ask`] the command's.
//! - [`caller`] is who may ask: the same user alone, and for answers to permission requests nobody whom Copilot started.
//!
//! Nothing here is trusted for coming from the same user: lines are bounded, clients must not be slow, and what is not
//! understood is refused in words. Whoever connects is let in; where that makes too many, the one that has waited longest
//! without giving an order has to go, first of the process that has the most of them. Nothing is logged of what an order is
//! about.
//!
//! May import: core, system, agent.

pub mod caller;
mod client;
#[cfg(unix)]
#[path = "unix.rs"]
mod place;
#[cfg(windows)]
#[path = "windows.rs"]
mod place;
#[cfg(test)]
#[cfg(unix)]
mod tests;

pub(crate) use client::{Asked, ask};
pub(crate) use place::{Probe, probe};

use crate::core::order::{Given, Order, Outcome, Report};
use caller::Judge;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;
use tokio::task::{self, AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// An order is at most so long, in bytes, its line break included: ids, and at most one request's text.
pub(crate) const ORDER_MAX: usize = 64 << 10;
/// So many clients are connected at once.
const CLIENTS_MAX: usize = 64;
/// So many of them may be one process's.
const OF_ONE_PROCESS: usize = 16;
/// What a client is told first: its order has arrived.
const HEARD: &[u8] = b"\"heard\"\n";
/// A client has so long to write its order, and to take each report.
const PATIENCE: Duration = Duration::from_secs(5);
/// Long enough to hear of everything that has happened already.
const MOMENT: Duration = Duration::from_millis(1);
/// Where clients cannot be let in (no descriptors are left), the next try is when one has left, or so much later.
const PAUSE: Duration = Duration::from_secs(1);

/// The control socket, served for as long as this is held. Its end closes every connection and removes the socket.
#[derive(Debug)]
pub(crate) struct Served {
    accepting: AbortHandle,
    _mark: place::Mark,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What every conversation needs.
struct House {
    judge: Judge,
    orders: Box<dyn Fn(Given) + Send + Sync>,
}

/// Serves the control socket in `folder`, on the runtime that this is called on. Whoever calls holds the lock of the running
/// tray: a socket that stands there is a dead one's, and is replaced.
///
/// `judge` says how callers are judged. `orders` is called with each order that may be given.
///
/// # Errors
/// Where the folder is not the user's own, or others may write to it; where the socket cannot be made there. The words say
/// what to do.
pub(crate) fn serve(folder: &Path, judge: Judge, orders: impl Fn(Given) + Send + Sync + 'static) -> io::Result<Served> {
    let (listener, mark) = place::bind(folder)?;
    let house = Arc::new(House { judge, orders: Box::new(orders) });
    let accepting = tokio::spawn(accept(listener, house)).abort_handle();
    Ok(Served { accepting, _mark: mark })
}

/// A client that is connected.
struct Guest {
    process: Option<u32>,
    /// Sends it away. Closed as soon as it has given its order.
    dismiss: oneshot::Sender<()>,
}

/// Lets clients in. Those who are in go with this.
async fn accept(mut listener: place::Listener, house: Arc<House>) {
    let mut clients = JoinSet::new();
    let mut guests: Vec<(task::Id, Guest)> = Vec::new();
    let mut is_paused = false;
    loop {
        tokio::select! {
            Some(left) = clients.join_next_with_id() => {
                let id = left.map_or_else(|error| error.id(), |(id, ())| id);
                guests.retain(|(guest, _)| *guest != id);
                is_paused = false;
            }
            () = sleep(PAUSE), if is_paused => is_paused = false,
            accepted = listener.accept(), if !is_paused => match accepted {
                Ok(Some((stream, process))) => {
                    let has_room = make_room(&mut guests, process, place::is_scarce(&stream));
                    let house = Arc::clone(&house);
                    let (dismiss, dismissed) = oneshot::channel();
                    let client = clients.spawn(async move {
                        let talk = async {
                            if has_room { converse(stream, process, &house, dismissed).await } else { turn_away(stream).await }
                        };
                        if let Err(error) = talk.await {
                            tracing::debug!(%error, "a client of the control socket has gone");
                        }
                    });
                    guests.push((client.id(), Guest { process, dismiss }));
                    // Whoever was sent away leaves before the next one comes.
                    task::yield_now().await;
                }
                Ok(None) => {} // another user's, closed
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a command on the control socket");
                    is_paused = true;
                }
            },
        }
    }
}

/// Sends those away that have waited longest without giving an order, until there is room for one more client of this
/// process. Whether there is: all may have given one. Where descriptors are scarce, one is sent away for each that comes.
fn make_room(guests: &mut Vec<(task::Id, Guest)>, process: Option<u32>, scarce: bool) -> bool {
    let mut scarce = scarce;
    let of =
        |guests: &[(task::Id, Guest)], process| guests.iter().filter(|(_, guest)| guest.process == process).count();
    loop {
        let is_full = guests.len() >= CLIENTS_MAX || std::mem::take(&mut scarce);
        if !is_full && of(guests, process) < OF_ONE_PROCESS {
            return true;
        }
        let waits =
            |(_, guest): &(task::Id, Guest)| !guest.dismiss.is_closed() && (is_full || guest.process == process);
        let waiting = guests.iter().enumerate().filter(|(_, guest)| waits(guest));
        // Of equally many the first, which has waited longest.
        let longest = waiting.rev().max_by_key(|(_, (_, guest))| of(guests, guest.process)).map(|(index, _)| index);
        let Some(longest) = longest else { return guests.len() < CLIENTS_MAX && of(guests, process) < OF_ONE_PROCESS };
        let _ = guests.remove(longest).1.dismiss.send(()); // it may be leaving by itself
    }
}

/// Tells a client that there is no room for it.
async fn turn_away(stream: place::ServerStream) -> io::Result<()> {
    let (_, mut to) = tokio::io::split(stream);
    refuse(&mut to, "the tray is busy with as many orders as it takes at once; try again when one is done".into()).await
}

/// One client: its order in, its reports out.
async fn converse(
    stream: place::ServerStream,
    caller: Option<u32>,
    house: &House,
    dismissed: oneshot::Receiver<()>,
) -> io::Result<()> {
    let (mut from, mut to) = tokio::io::split(stream);
    let read = tokio::select! {
        read = timeout(PATIENCE, read_order(&mut from)) => read,
        _ = dismissed => return refuse(&mut to, "no order came, and other clients were waiting; try again".into()).await,
    };
    let order = match read {
        Ok(Ok(Some(order))) => order,
        Ok(Ok(None)) => return Ok(()), // it only looked whether somebody is here
        Ok(Err(reason)) => return refuse(&mut to, reason).await,
        Err(_) => return refuse(&mut to, format!("no order came within {} s", PATIENCE.as_secs())).await,
    };
    if let Err(reason) = caller::may_ask(&order.ask, caller, &house.judge) {
        tracing::warn!("an order over the control socket was refused: {reason}");
        return refuse(&mut to, reason).await;
    }
    send(&mut to, HEARD).await?;
    // A tray that was held up may hear of an order whose command has gone meanwhile: that one is not given.
    let mut more = [0];
    if timeout(MOMENT, from.read(&mut more)).await.is_ok() {
        return Ok(());
    }
    let (reply, mut reports) = unbounded_channel();
    (house.orders)(Given::by_caller(order, reply));
    loop {
        tokio::select! {
            report = reports.recv() => {
                let unsaid = || Report::End(Outcome::Unconfirmed("may have happened: the tray did not say how it ended".into()));
                let report = report.unwrap_or_else(unsaid);
                write(&mut to, &report).await?;
                if matches!(report, Report::End(_)) {
                    return Ok(());
                }
            }
            // Nothing more is expected of it: its end, or a word too many, ends the conversation, and the order with it, as long as
            // nothing was sent.
            _ = from.read(&mut more) => return Ok(()),
        }
    }
}

/// The client's order; `None` if it left without a word. An error is the reason to refuse it.
async fn read_order(from: &mut ReadHalf<place::ServerStream>) -> Result<Option<Order>, String> {
    let mut line = Vec::new();
    let mut from = BufReader::new(from.take(ORDER_MAX as u64));
    let read = from.read_until(b'\n', &mut line).await.map_err(|error| format!("the order cannot be read: {error}"))?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => serde_json::from_slice(&line).map(Some).map_err(|error| {
            format!(
                "the tray does not understand this order ({error}); if it is another version, quit it from its menu and \
                 start `pilotlight` again"
            )
        }),
        Some(_) if read == ORDER_MAX => Err(format!("an order is at most {} KB long", ORDER_MAX >> 10)),
        Some(_) => Err("the order breaks off: it is one line, with its line break".into()),
    }
}

async fn refuse(to: &mut WriteHalf<place::ServerStream>, reason: String) -> io::Result<()> {
    write(to, &Report::End(Outcome::Refused(reason))).await
}

async fn write(to: &mut WriteHalf<place::ServerStream>, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    send(to, &line).await
}

async fn send(to: &mut WriteHalf<place::ServerStream>, line: &[u8]) -> io::Result<()> {
    let written = async {
        to.write_all(line).await?;
        to.flush().await
    };
    timeout(PATIENCE, written).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
