//! The pipe between two machines: `pilotlight serve --stdio` on the one, started by the Pilotlight of the other over
//! `ssh` or the like. It carries lines of JSON ([`lines`]). This side tells of its sessions as they change, from an
//! [`Outbox`], and takes orders as the control socket does: judged by the process that reads the pipe, as a client is by
//! its own.
//!
//! It is bounded in both directions. What was not written yet is replaced by what is newer, so a reader that is slow gets
//! the latest of each session; a line that is too long, or too many orders at a time, are refused.

pub mod lines;
pub(crate) mod outbox;

use super::caller::{self, CallerPolicy};
use super::command::{CancelState, Command, PendingOrder};
use super::wire::ORDER_MAX;
use lines::{FromHost, Hello, ToHost};
use outbox::Outbox;
use pilotlight_core::action::ActionFlag;
use pilotlight_core::order::{Order, OrderReport, Outcome};
use pilotlight_system::clock::Clock;
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::{Sender, channel, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Maximum number of orders under way over one pipe.
const ORDERS_MAX: usize = 32;
/// How many reports may wait to be written.
const REPORTS_QUEUED: usize = 64;
/// Lines are written in blocks of about this many bytes.
const BLOCK: usize = 64 << 10;

/// What a pipe is served with.
pub struct Service<'a> {
    /// The process that reads the pipe, by which its orders are judged; `None` if the system does not report it.
    pub caller: Option<u32>,
    pub policy: &'a CallerPolicy,
    /// Whether a tray runs here.
    pub has_tray: bool,
    /// Whether it is told how the last messages of sessions begin.
    pub messages: bool,
    /// Receives the commands.
    pub handle: &'a (dyn Fn(Command) + Send + Sync),
}

/// The orders under way over a pipe.
#[derive(Default)]
struct PipedOrders {
    stands: HashMap<u64, Arc<CancelState>>,
    forwarders: JoinSet<()>,
}

/// Serves a pipe until its other end closes.
///
/// # Errors
/// If it cannot be written to, or a line cannot be read. What was under way is taken back then.
pub async fn serve_pipe(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    service: &Service<'_>,
) -> io::Result<()> {
    let hello = FromHost::Pilotlight(Hello::new(Clock::start().now().wall, service.has_tray));
    write(&mut to, &[hello]).await?;
    let outbox = Arc::new(Outbox::new(service.messages));
    (service.handle)(Command::TellAll(Arc::clone(&outbox)));
    let (reply, mut reports) = channel(REPORTS_QUEUED);
    let (mut from, mut line) = (BufReader::new(from), Vec::new());
    let mut orders = PipedOrders::default();
    loop {
        tokio::select! {
            Some((n, report)) = reports.recv() => {
                if matches!(report, OrderReport::End(_)) {
                    orders.stands.remove(&n);
                }
                write(&mut to, &[FromHost::Report { n, report }]).await?;
            }
            read = read_line(&mut from, &mut line) => {
                if !read? {
                    return Ok(());
                }
                let answer = match serde_json::from_slice(&line) {
                    Ok(asked) => orders.take(asked, service, &reply),
                    Err(error) => Some(FromHost::Over(format!("a line is not understood ({error}): another version?"))),
                };
                line.clear();
                if let Some(answer) = answer {
                    write(&mut to, std::slice::from_ref(&answer)).await?;
                    if matches!(answer, FromHost::Over(_)) {
                        return Ok(());
                    }
                }
            }
            () = outbox.changed() => write(&mut to, &outbox.take()).await?,
            Some(_) = orders.forwarders.join_next() => {}
        }
    }
}

fn listen_for_bridges(service: &Service<'_>) {
    let (reply, _) = oneshot::channel(); // nobody waits for it
    (service.handle)(Command::RestartBridgeListener(reply));
}

impl PipedOrders {
    /// Does what a line asks for. Returns what is answered at once.
    fn take(&mut self, asked: ToHost, service: &Service<'_>, reply: &Sender<(u64, OrderReport)>) -> Option<FromHost> {
        match asked {
            ToHost::Ping(n) => return Some(FromHost::Pong(n)),
            ToHost::Seen(ids) => (service.handle)(Command::SeenByIds(ids)),
            ToHost::Acts => listen_for_bridges(service),
            // `serve` answers it, and does not pass it on.
            ToHost::History => {}
            ToHost::TakeBack(n) => {
                let outcome = Outcome::Failed("interrupted; nothing was sent".into());
                let cancel_state = self.stands.get(&n)?;
                return cancel_state.take_back().then(|| FromHost::Report { n, report: OrderReport::End(outcome) });
            }
            ToHost::Order { n, order } => {
                // Another process may have listened for them, and have ended since.
                listen_for_bridges(service);
                if let Err(why) = self.give(n, *order, service, reply) {
                    return Some(FromHost::Report { n, report: OrderReport::End(Outcome::Refused(why)) });
                }
            }
        }
        None
    }

    fn give(
        &mut self,
        n: u64,
        order: Order,
        service: &Service<'_>,
        reply: &Sender<(u64, OrderReport)>,
    ) -> Result<(), String> {
        if order.operation.action().is(ActionFlag::OpensWindow) {
            return Err("Pilotlight opens no window here for somebody at another machine".into());
        }
        if order.host.is_some() {
            return Err("Pilotlight passes no order on to a third machine".into());
        }
        if self.stands.len() >= ORDERS_MAX || self.stands.contains_key(&n) {
            return Err("it takes no more orders at once; try again when one is done".into());
        }
        caller::may_order(&order.operation, service.caller, service.policy)?;
        let (report, mut reports) = unbounded_channel();
        let pending = PendingOrder::by_caller(order, report, service.caller.unwrap_or(0));
        self.stands.insert(n, pending.cancel_state());
        (service.handle)(Command::Act(pending));
        let reply = reply.clone();
        self.forwarders.spawn(async move {
            loop {
                let unreported = || {
                    OrderReport::End(Outcome::Unconfirmed("may have happened: it did not report the outcome".into()))
                };
                let report = reports.recv().await.unwrap_or_else(unreported);
                let is_over = matches!(report, OrderReport::End(_));
                if reply.send((n, report)).await.is_err() || is_over {
                    return;
                }
            }
        });
        Ok(())
    }
}

/// Reads the rest of a line. False at the end. Cancel-safe.
///
/// # Errors
/// If it cannot be read, or is too long.
pub async fn read_line(from: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> io::Result<bool> {
    let room = (ORDER_MAX - line.len()) as u64;
    from.take(room).read_until(b'\n', line).await?;
    match line.last() {
        Some(b'\n') => Ok(true),
        Some(_) if line.len() >= ORDER_MAX => Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long")),
        _ => Ok(false),
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), messages: &[impl Serialize]) -> io::Result<()> {
    let mut block = Vec::new();
    for message in messages {
        serde_json::to_writer(&mut block, message)?;
        block.push(b'\n');
        if block.len() >= BLOCK {
            to.write_all(&block).await?;
            block.clear();
        }
    }
    to.write_all(&block).await?;
    to.flush().await
}
