//! The demo's end of the pipe to its stage: the engine gets the scripted sessions' bridges, as from real terminals.
//!
//! What a bridge in a real terminal does is done at the stage. So an order is checked, shown and confirmed by the log as
//! everywhere else, and nothing that it leads to is outside of the stage's folder.

use crate::pipe::{StageEvent, StageOrder};
use pilotlight_agents::adapter::Adapter;
use pilotlight_agents::copilot::Copilot;
use pilotlight_agents::copilot::bridge::PROTOCOL;
use pilotlight_agents::copilot::bridge::files::hash;
use pilotlight_agents::copilot::bridge::socket::{Bridge, BridgeEvent, ConnectionId, Reply};
use pilotlight_agents::copilot::bridge::wire::{Hello, Order, OrderResult};
use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

/// How many events may wait for the engine.
const QUEUE_MAX: usize = 64;

/// The pipe to the stage. Closing it ends the stage.
#[derive(Clone)]
pub struct StageInput(Arc<Mutex<Option<ChildStdin>>>);

impl StageInput {
    pub fn new(input: Option<ChildStdin>) -> Self {
        Self(Arc::new(Mutex::new(input)))
    }

    /// Closes it for all clones.
    pub fn close(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Fails if the stage has ended.
    fn send(&self, ordered: &StageOrder) -> io::Result<()> {
        let line = serde_json::to_string(ordered)? + "\n";
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(input) => input.write_all(line.as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Orders that the stage is carrying out, by their ids.
#[derive(Clone, Default)]
struct Pending {
    orders: Arc<Mutex<HashMap<u64, UnboundedSender<Reply>>>>,
    last: Arc<AtomicU64>,
}

impl Pending {
    fn add(&self, reply: UnboundedSender<Reply>) -> u64 {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).insert(id, reply);
        id
    }

    fn take(&self, id: u64) -> Option<UnboundedSender<Reply>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    fn clear(&self) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A session's orders, as the engine gives them.
type OrderReceiver = Receiver<(Order, UnboundedSender<Reply>)>;

/// Connects the engine to the stage: returns what the engine hears of the sessions' bridges.
///
/// # Errors
/// If the system refuses a thread.
pub fn connect(
    told: impl BufRead + Send + 'static,
    stage: u32,
    input: StageInput,
) -> io::Result<Receiver<BridgeEvent>> {
    let (events, received) = mpsc::channel(QUEUE_MAX);
    let (joined, sessions) = mpsc::unbounded_channel();
    let pending = Pending::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let taken = pending.clone();
    let give = move || runtime.block_on(give_orders(sessions, input, taken));
    std::thread::Builder::new().name("orders".into()).spawn(give)?;
    std::thread::Builder::new().name("told".into()).spawn(move || hear(told, stage, &events, &joined, &pending))?;
    Ok(received)
}

/// Hands on what the stage tells, until it ends.
fn hear(
    told: impl BufRead,
    stage: u32,
    events: &Sender<BridgeEvent>,
    joined: &UnboundedSender<(Box<str>, OrderReceiver)>,
    pending: &Pending,
) {
    let mut connections: HashMap<Box<str>, ConnectionId> = HashMap::new();
    let mut last = 0;
    for line in told.lines().map_while(Result::ok) {
        let event = match serde_json::from_str(&line) {
            Ok(StageEvent::Joined { session, owner }) => {
                last += 1;
                connections.insert(session.clone(), last);
                let (orders, ordered) = mpsc::channel(1);
                let _ = joined.send((session.clone(), ordered)); // fails only as the demo ends
                Some(BridgeEvent::Joined(last, hello(session, stage, owner), Bridge::new(orders)))
            }
            Ok(StageEvent::Left { session }) => connections.remove(&session).map(BridgeEvent::Gone),
            Ok(StageEvent::Reported { session, message }) => {
                let message = serde_json::from_value(message).ok();
                message.and_then(|message| Some(BridgeEvent::Message(*connections.get(&session)?, message)))
            }
            Ok(StageEvent::Did { id, error }) => {
                if let Some(reply) = pending.take(id) {
                    let _ = reply.send(Reply::Result(OrderResult { id, ok: error.is_none(), error, bytes: None }));
                }
                None
            }
            Ok(StageEvent::Ready { .. }) | Err(_) => None,
        };
        // As the demo ends nobody listens any more. The stage must be able to write until then.
        if let Some(event) = event {
            let _ = events.blocking_send(event);
        }
    }
    pending.clear();
    for (_, connection) in connections {
        let _ = events.blocking_send(BridgeEvent::Gone(connection));
    }
}

/// What the extension of a terminal would say first. Its user has let Pilotlight answer there.
fn hello(session: Box<str>, stage: u32, owner: u32) -> Hello {
    Hello {
        v: PROTOCOL,
        session,
        pid: stage,
        ppid: owner,
        cli: Some(Copilot.profile().tried.into()),
        elevated: true,
        consenting: false,
        refused: false,
        hash: hash().into(),
        nonce: "".into(),
    }
}

/// Takes the sessions' orders, each session's in turn.
async fn give_orders(mut sessions: UnboundedReceiver<(Box<str>, OrderReceiver)>, input: StageInput, pending: Pending) {
    while let Some((session, mut orders)) = sessions.recv().await {
        let (input, pending) = (input.clone(), pending.clone());
        tokio::spawn(async move {
            while let Some((order, reply)) = orders.recv().await {
                tokio::spawn(give(session.clone(), order, reply, input.clone(), pending.clone()));
            }
        });
    }
}

/// Asks whether an order still stands, as a bridge does right before it acts, and has the stage carry it out.
async fn give(session: Box<str>, order: Order, reply: UnboundedSender<Reply>, input: StageInput, pending: Pending) {
    if let Order::Listen { wait } = order {
        // A scripted session is silent between two acts.
        tokio::time::sleep(Duration::from_millis(wait)).await;
        let _ = reply.send(Reply::Result(OrderResult { id: 0, ok: true, error: None, bytes: None }));
        return;
    }
    let (answer, stands) = oneshot::channel();
    let asked = reply.send(Reply::Asks { ready: true, answer });
    if asked.is_err() || !stands.await.unwrap_or(false) {
        return;
    }
    let id = pending.add(reply);
    if input.send(&StageOrder { id, session, order }).is_err() {
        drop(pending.take(id)); // whoever gave it learns that the bridge has gone
    }
}
