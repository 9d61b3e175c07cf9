//! What is asked of the engine, by clients of the socket and by the rest of the program, each with the channel for its
//! answer.

use super::pipe::outbox::Outbox;
use crate::observation::Observation;
use pilotlight_core::order::{Order, OrderReport};
use pilotlight_core::remote::SessionReport;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Span, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};

/// What a client of the socket, the user or another part of the program asks of the engine.
#[derive(Debug)]
pub enum Command {
    /// Carry out an order.
    Act(PendingOrder),
    /// Report the sessions.
    ReportSessions(oneshot::Sender<Observation>),
    /// Report what is known of other machines.
    ReportHosts(oneshot::Sender<Vec<HostReport>>),
    /// Try to reach a machine again now.
    RetryHost(RetryHost),
    /// Know that the window has come in which this process runs.
    HoldWindow(u32, oneshot::Sender<()>),
    /// Start or stop listening for bridges, because the bridge key was created or removed.
    RestartBridgeListener(oneshot::Sender<()>),
    /// From now on, tell this of all sessions as they change.
    TellAll(Arc<Outbox>),
    /// The user has seen these sessions.
    Seen(Vec<Key>),
    /// The user of another machine has seen the sessions of these ids.
    SeenByIds(Vec<Box<str>>),
    /// The user has seen all sessions.
    SeenAll,
    /// Rescan everything now.
    Refresh,
    /// Call the view again even if nothing changed.
    Redraw,
    /// Exit.
    Quit,
    /// Exit as at a signal: what ends with us is noted.
    End,
}

/// What is known of another machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HostReport {
    pub host: Box<str>,
    /// How far its wall clock is behind.
    pub behind: Span,
    pub sessions: Vec<SessionReport>,
    /// Why it is not reached, if it is not.
    pub trouble: Option<Box<str>>,
    /// Since when, by the wall clock here.
    #[serde(default)]
    pub since: Option<Time>,
    /// When it is tried again.
    #[serde(default)]
    pub again: Option<Time>,
    /// By which it is known again under another name.
    #[serde(default)]
    pub machine: Option<Box<str>>,
}

/// To try to reach a machine again now.
#[derive(Debug)]
pub struct RetryHost {
    pub host: Box<str>,
    /// By another connection: what runs there was replaced.
    pub anew: bool,
    /// Who wants to know what came of it.
    pub reply: Option<oneshot::Sender<Option<HostReport>>>,
}

/// An order on its way to the engine, with the channel for its reports.
#[derive(Clone, Debug)]
pub struct PendingOrder {
    pub order: Order,
    /// Receives the reports; the last one is an end.
    pub reply: UnboundedSender<OrderReport>,
    /// Drop the order if its reports have no receiver any more, unless something has already been sent. False for our
    /// own orders, which need no receiver.
    pub lapses: bool,
    /// The process that gave it: our own if the user clicked; 0 if the system does not report it.
    pub caller: u32,
    /// The running tray passed it on to this command: the user clicked there, or it has judged who gave it.
    pub is_from_tray: bool,
    /// The user typed it in a window that this tray opened at a click.
    pub is_in_window: bool,
    cancel_state: Arc<CancelState>,
}

/// How far an order is, and whether its client took it back.
#[derive(Debug)]
pub(super) struct CancelState {
    taken_back: watch::Sender<bool>,
    /// Something may have been sent for it.
    begun: AtomicBool,
}

impl CancelState {
    /// Takes the order back. Returns whether nothing was sent for it, and nothing will be.
    pub(super) fn take_back(&self) -> bool {
        self.taken_back.send_replace(true);
        !self.begun.load(Ordering::SeqCst)
    }
}

impl PendingOrder {
    /// An order from a client, dropped when the client disconnects.
    pub fn by_caller(order: Order, reply: UnboundedSender<OrderReport>, caller: u32) -> Self {
        Self::new(order, reply, true, caller)
    }

    /// An order of our own.
    pub fn by_us(order: Order, reply: UnboundedSender<OrderReport>) -> Self {
        Self::new(order, reply, false, std::process::id())
    }

    /// Whether another process gave it.
    pub(crate) fn is_by_other(&self) -> bool {
        self.caller != std::process::id()
    }

    /// Whether the user clicked for it, assuming that the panel is the user's; or a tray has already checked its caller.
    pub(crate) fn is_click(&self) -> bool {
        self.is_from_tray || !self.is_by_other() && !self.lapses
    }

    /// Whether a command gave it, this process or another, and not a click or what is typed in a window that a click opened.
    pub(crate) fn is_by_command(&self) -> bool {
        if self.is_in_window {
            false
        } else if self.is_from_tray {
            self.order.by_command
        } else {
            !self.is_click()
        }
    }

    fn new(order: Order, reply: UnboundedSender<OrderReport>, lapses: bool, caller: u32) -> Self {
        let cancel_state = CancelState { taken_back: watch::Sender::new(false), begun: AtomicBool::new(false) };
        Self {
            order,
            reply,
            lapses,
            caller,
            is_from_tray: false,
            is_in_window: false,
            cancel_state: Arc::new(cancel_state),
        }
    }

    /// Whether the client that gave it has disconnected, or taken it back.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.lapses && (self.reply.is_closed() || *self.cancel_state.taken_back.borrow())
    }

    /// Notes that from now on something may be sent for it.
    pub(crate) fn begin(&self) {
        self.cancel_state.begun.store(true, Ordering::SeqCst);
    }

    /// Its cancel state, which outlives the order.
    pub(super) fn cancel_state(&self) -> Arc<CancelState> {
        Arc::clone(&self.cancel_state)
    }

    /// Waits until it is taken back.
    pub(crate) async fn taken_back(&self) {
        let _ = self.cancel_state.taken_back.subscribe().wait_for(|taken_back| *taken_back).await; // we hold the sender
    }

    /// Sends a report, if it still has a receiver.
    pub(crate) fn report(&self, report: OrderReport) {
        let _ = self.reply.send(report);
    }
}
