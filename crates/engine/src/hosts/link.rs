//! The connection to one host: its child process, kept by a task beside the loop.

use super::command::{Leader, Orphan, again, serve};
use super::incoming::{Incoming, Unheard};
use super::orders::SentOrders;
use super::rate_limiter::FLOODS_AFTER;
use super::stderr::{StderrTail, last_line};
use super::why;
use crate::config::HostSetting;
use crate::control::PendingOrder;
use crate::control::pipe::lines::{FromHost, Hello, ToHost};
use pilotlight_core::order::{OrderReport, Outcome};
use pilotlight_core::text::plain;
use pilotlight_system::log::{self, private};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long a host has to say its first line.
const HELLO_WITHIN: Duration = Duration::from_secs(20);
/// How long it has to say anything while something is expected of it.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long a child has to read a line.
const WRITE_WITHIN: Duration = Duration::from_secs(5);
/// How long a child that has closed its output has to end.
const END_WITHIN: Duration = Duration::from_secs(1);
/// How long the last words of one that has ended may take.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(200);
/// How long to wait before the next attempt, in seconds: ever longer.
const RETRIES: [u64; 6] = [1, 2, 5, 15, 60, 300];
/// A connection that lasted as long begins the list again.
const LASTED: Duration = Duration::from_secs(30);
/// Where in [`RETRIES`] a host that flooded starts: late enough for the user to see the reason.
const FLOODED: usize = 3;
/// Maximum number of lines that are passed on at a time.
const BATCH: usize = 1000;
/// Maximum length of a reason in an order's outcome, in characters.
const WHY_MAX: usize = 300;
/// How many commands may wait for the link.
const QUEUED: usize = 64;

/// What a host said, or what became of its connection.
#[derive(Debug)]
pub enum HostEventKind {
    Hello(Hello),
    Line(FromHost),
    /// The connection is lost, or could not be made, for this reason.
    Lost {
        why: String,
        /// After how long it is tried again; `None`: it is not.
        again_in: Option<Duration>,
    },
}

/// A batch of events from one host.
#[derive(Debug)]
pub struct HostEvent {
    pub host: Arc<str>,
    /// Tells a link from the one before it of the same host.
    pub(crate) generation: u64,
    pub said: Vec<HostEventKind>,
}

/// What a link is told.
#[derive(Debug)]
pub enum ToLink {
    /// To have an order carried out.
    Order(Box<PendingOrder>),
    /// The user has seen the sessions of these ids.
    Seen(Vec<Box<str>>),
    /// To ask for all sessions, also those that ended long ago.
    History,
    /// Try again now; if connected, find out whether the host still answers.
    Retry,
    /// Try again now, by another connection: what runs there was replaced.
    Anew,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To look once: it is not made anew when it is lost.
    Look,
    /// To watch, as long as it is there.
    Watch,
    /// To watch and to give orders.
    Act,
}

/// A connection to a host. Dropping it ends the child.
#[derive(Debug)]
pub struct Link {
    commands: Sender<ToLink>,
    task: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    /// Starts to keep a connection, on the current runtime.
    pub fn start(host: HostSetting, generation: u64, purpose: Purpose, event: Sender<HostEvent>) -> Self {
        let (commands, told) = channel(QUEUED);
        let name: Arc<str> = host.name.as_str().into();
        let keeper =
            Keeper { host, name, generation, purpose, event, told, orders: SentOrders::default(), held: Vec::new() };
        Self { commands, task: tokio::spawn(keeper.keep()).abort_handle() }
    }

    /// Tells the link something. What it has no room for is lost, except that an order is refused.
    pub fn tell(&self, told: ToLink) {
        if let Err(error) = self.commands.try_send(told)
            && let ToLink::Order(pending) = error.into_inner()
        {
            pending.report(OrderReport::End(Outcome::Failed("its host is not reached; nothing was sent".into())));
        }
    }
}

/// Why a connection ended.
struct Ended {
    why: String,
    /// The host said too much, for as long as it was let: that it was connected is no sign that it will be.
    is_flood: bool,
    /// Another connection is wanted in its place.
    is_wanted: bool,
}

impl From<String> for Ended {
    fn from(why: String) -> Self {
        Self { why, is_flood: false, is_wanted: false }
    }
}

struct Keeper {
    host: HostSetting,
    name: Arc<str>,
    generation: u64,
    purpose: Purpose,
    event: Sender<HostEvent>,
    told: Receiver<ToLink>,
    orders: SentOrders,
    /// The orders for which the host is tried again: given as soon as it answers.
    held: Vec<PendingOrder>,
}

/// A child that runs, and its ends of the pipe.
struct Running {
    child: Leader,
    to: ChildStdin,
    incoming: Incoming<ChildStdout>,
    stderr: StderrTail,
    reading: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Keeper {
    async fn keep(mut self) {
        let mut failed = 0;
        loop {
            let began = Instant::now();
            let Ended { why, is_flood, is_wanted } = self.connect().await;
            self.orders.lose(&self.name);
            if is_wanted {
                failed = 0;
                continue;
            }
            if is_flood {
                failed = failed.max(FLOODED);
            } else if began.elapsed() >= LASTED {
                failed = 0;
            }
            let again_in = Duration::from_secs(RETRIES[failed.min(RETRIES.len() - 1)]);
            failed += 1;
            log::info!(tag = "host", host = private(&self.name), "not reached: {}", private(&why));
            self.refuse_held(&why);
            let is_tried_again = self.purpose != Purpose::Look;
            self.pass_on(vec![HostEventKind::Lost { why, again_in: is_tried_again.then_some(again_in) }]).await;
            if !is_tried_again {
                return;
            }
            let mut waits = std::pin::pin!(sleep(again_in));
            loop {
                let told = tokio::select! {
                    () = &mut waits => break,
                    told = self.told.recv() => told,
                };
                match told {
                    Some(ToLink::Order(pending)) => self.held.push(*pending),
                    Some(ToLink::Retry | ToLink::Anew) => {}
                    Some(ToLink::Seen(_) | ToLink::History) => continue,
                    None => return,
                }
                // As if for the first time: what just became possible may take a few seconds more.
                failed = 0;
                break;
            }
        }
    }

    /// Refuses the orders that wait for the host, which does not answer.
    fn refuse_held(&mut self, why: &str) {
        let held = std::mem::take(&mut self.held).into_iter();
        let queued = std::iter::from_fn(|| self.told.try_recv().ok());
        let queued = queued.filter_map(|told| if let ToLink::Order(pending) = told { Some(*pending) } else { None });
        for pending in held.chain(queued) {
            let words = format!("{} is not reached: {}; nothing was sent", self.name, plain(why, WHY_MAX));
            pending.report(OrderReport::End(Outcome::Failed(words)));
        }
    }

    /// Whoever listens may have gone: then this task is about to be ended.
    async fn pass_on(&self, said: Vec<HostEventKind>) {
        let event = HostEvent { host: Arc::clone(&self.name), generation: self.generation, said };
        let _ = self.event.send(event).await;
    }

    /// Connects, and speaks with the host until the connection is lost.
    async fn connect(&mut self) -> Ended {
        let mut running = match start(&self.host) {
            Ok(running) => running,
            Err(why) => return why.into(),
        };
        if let Some(again) = again(&self.host) {
            let _ = running.to.write_all(again.as_bytes()).await; // what is read says why it was not taken
        }
        let hello = match timeout(HELLO_WITHIN, running.incoming.hello()).await {
            Ok(Ok(hello)) => hello,
            Ok(Err(unheard)) => return self.why(running, unheard, false).await,
            Err(_) => return self.silent(&running).into(),
        };
        self.pass_on(vec![HostEventKind::Hello(hello)]).await;
        if self.purpose == Purpose::Act {
            let _ = write(&mut running.to, &ToHost::Acts).await; // what is read says why it was not taken
        }
        for pending in std::mem::take(&mut self.held) {
            if !pending.is_abandoned() {
                let order = self.orders.begin(pending);
                let _ = write(&mut running.to, &order).await; // likewise
            }
        }
        let mut batch = Vec::new();
        let unheard = self.talk(&mut running, &mut batch).await;
        if !batch.is_empty() {
            self.pass_on(batch).await;
        }
        self.why(running, unheard, true).await
    }

    /// That nothing was heard of a child.
    fn silent(&self, running: &Running) -> String {
        let words = format!("it did not answer within {} s", HELLO_WITHIN.as_secs());
        match last_line(&running.stderr.text(), WHY_MAX) {
            Some(last) => format!("{words}: {last}"),
            None => words,
        }
    }

    /// Why nothing more is heard of a child. Ends it.
    async fn why(&self, mut running: Running, unheard: Unheard, has_greeted: bool) -> Ended {
        match unheard {
            Unheard::Nonsense(words) => return words.into(),
            Unheard::Flood => return Ended { is_flood: true, ..Ended::from(why::flood(FLOODS_AFTER)) },
            Unheard::Replaced => return Ended { is_wanted: true, ..Ended::from(String::new()) },
            Unheard::Ended => {}
        }
        let status = timeout(END_WITHIN, running.child.wait()).await.ok().and_then(Result::ok);
        // What it said last may still be on its way. Something that lives on may hold the other end for ever.
        let _ = timeout(LAST_WORDS_WITHIN, &mut running.reading).await;
        let code = status.and_then(|status| status.code());
        why::ended(&self.host, has_greeted, code, &running.stderr.text()).into()
    }

    /// Returns why nothing more is heard. What was heard last is in the batch.
    async fn talk(&mut self, running: &mut Running, batch: &mut Vec<HostEventKind>) -> Unheard {
        let (mut gathered, mut expected, mut pings) = (None, None, 0);
        loop {
            let line = tokio::select! {
                said = running.incoming.next(!self.orders.is_empty()) => {
                    expected = None;
                    match said {
                        Ok(FromHost::Over(words)) => return Unheard::Nonsense(plain(&words, 200).into()),
                        Ok(said) => self.take(said, batch),
                        Err(unheard) => return unheard,
                    }
                    let gathers_until = running.incoming.gathers_until().filter(|_| batch.len() < BATCH);
                    if !batch.is_empty() && gathers_until.is_none_or(|until| until <= Instant::now()) {
                        self.hand_over(running, batch).await;
                    }
                    gathered = gathers_until.filter(|_| !batch.is_empty());
                    continue;
                }
                () = sleep_until(gathered.unwrap_or_else(Instant::now)), if gathered.is_some() => {
                    gathered = None;
                    self.hand_over(running, batch).await;
                    continue;
                }
                told = self.told.recv() => match told {
                    Some(ToLink::Order(pending)) => self.orders.begin(*pending),
                    Some(ToLink::Seen(ids)) => ToHost::Seen(ids),
                    Some(ToLink::History) => ToHost::History,
                    Some(ToLink::Anew) => return Unheard::Replaced,
                    Some(ToLink::Retry) => {
                        pings += 1;
                        ToHost::Ping(pings)
                    }
                    None => return Unheard::Ended,
                },
                line = self.orders.withdrawn() => line,
                () = sleep_until(expected.unwrap_or_else(Instant::now)), if expected.is_some() => {
                    return Unheard::Nonsense(format!("it has not answered for {} s", ANSWER_WITHIN.as_secs()));
                }
            };
            let is_order = matches!(line, ToHost::Order { .. });
            if let Err(unheard) = write(&mut running.to, &line).await {
                return unheard;
            }
            if is_order {
                // An order may take long; whether the host still answers shows sooner.
                pings += 1;
                if let Err(unheard) = write(&mut running.to, &ToHost::Ping(pings)).await {
                    return unheard;
                }
            }
            if is_order || matches!(line, ToHost::Ping(_)) {
                expected = expected.or(Some(Instant::now() + ANSWER_WITHIN));
            }
        }
    }

    /// Passes on what was gathered.
    async fn hand_over(&self, running: &mut Running, batch: &mut Vec<HostEventKind>) {
        let began = Instant::now();
        self.pass_on(std::mem::take(batch)).await;
        running.incoming.withhold(began.elapsed());
    }

    /// Passes reports on, and keeps the rest.
    fn take(&mut self, said: FromHost, batch: &mut Vec<HostEventKind>) {
        match said {
            FromHost::Report { n, report: OrderReport::End(outcome) } => self.orders.end(n, outcome, &self.name),
            FromHost::Report { n, report } => self.orders.report(n, report, &self.name),
            line => batch.push(HostEventKind::Line(line)),
        }
    }
}

/// Starts the child of a host.
///
/// # Errors
/// Why it cannot be started.
fn start(host: &HostSetting) -> Result<Running, String> {
    let (child, (to, from, said)) = Leader::piped(&serve(host), Orphan::Ends)?;
    let stderr = StderrTail::default();
    let reading = tokio::spawn(stderr.clone().read(said));
    Ok(Running { child, to, incoming: Incoming::new(from), stderr, reading })
}

async fn write(to: &mut ChildStdin, line: &ToHost) -> Result<(), Unheard> {
    let Ok(mut bytes) = serde_json::to_vec(line) else { return Ok(()) };
    bytes.push(b'\n');
    let written = async {
        to.write_all(&bytes).await?;
        to.flush().await
    };
    match timeout(WRITE_WITHIN, written).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Unheard::Ended),
        Err(_) => Err(Unheard::Nonsense("it reads nothing that is sent to it".into())),
    }
}
