//! The bridges that are connected: listens for them, and keeps what each reports.

use super::carry::BridgeHandle;
use super::files::Files;
use super::known::BridgeState;
use super::socket::{Bridge, BridgeEvent, BridgeSocket, ConnectionId, is_listened_to, serve};
use super::wire::{Consent, Hello, Message};
use crate::channel;
use crate::control::{self, BridgeNews, BridgeReport};
use crate::copilot::adapter::PROFILE;
use pilotlight_core::time::Time;
use pilotlight_system::clock::Clock;
use pilotlight_system::log::{self, cause, private};
use pilotlight_system::process::is_gone;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, watch};

/// Where to listen for bridges, and where their key is. Without a key, no bridge is installed.
#[derive(Clone, Debug)]
pub struct BridgeConfig {
    /// The runtime folder.
    pub folder: PathBuf,
    /// The bridge's files on our disk.
    pub files: Files,
    /// Whether no tool of a session that this process runs can have started us.
    pub is_users: fn(u32) -> bool,
    /// Other processes may listen there as well, one at a time: this one begins when it is told to, and not while another does.
    pub shared: bool,
    /// Nothing may change because we listen: no bridge makes use of a remembered consent, or takes us for the one that the
    /// user lets answer.
    pub only_looks: bool,
}

/// The bridges that are connected.
#[derive(Default)]
pub struct Bridges {
    config: Option<BridgeConfig>,
    socket: Option<(BridgeSocket, mpsc::Receiver<BridgeEvent>)>,
    /// The events of bridges that no socket connects: those of scripted sessions.
    scripted: Option<mpsc::Receiver<BridgeEvent>>,
    connections: HashMap<ConnectionId, ConnectedBridge>,
}

/// A bridge that is connected.
struct ConnectedBridge {
    /// The session that it has joined, and the process that it names as its owner.
    session: Box<str>,
    owner: u32,
    /// The bridge's own process.
    process: u32,
    handle: BridgeHandle,
    state: watch::Sender<BridgeState>,
}

impl ConnectedBridge {
    fn is_of(&self, session: &str, owner: u32) -> bool {
        *self.session == *session && self.owner == owner
    }
}

impl Bridges {
    /// Those that connect there, once it begins to listen.
    pub fn at(config: BridgeConfig) -> Self {
        Self { config: Some(config), ..Self::default() }
    }

    /// Those of scripted sessions, whose events come from here. There is no socket then.
    pub fn scripted(events: mpsc::Receiver<BridgeEvent>) -> Self {
        Self { scripted: Some(events), ..Self::default() }
    }

    /// Stops listening, and disconnects from all.
    fn close(&mut self) {
        self.socket = None;
        self.connections.clear();
    }

    /// Handles a bridge that has connected, reported something, or disconnected.
    fn handle(&mut self, event: BridgeEvent, now: Time) -> Option<BridgeNews> {
        let session = match event {
            BridgeEvent::Joined(id, hello, bridge) => self.join(id, hello, bridge, now),
            BridgeEvent::Message(id, Message::Consent(Consent { unexpected: true, .. })) => {
                let stops = self.is_connected(id) && self.stop_elevating();
                return stops.then_some(BridgeNews::StoppedElevating);
            }
            BridgeEvent::Message(id, message) => self.hear(id, message),
            BridgeEvent::Gone(id) => self.leave(id),
        };
        session.map(BridgeNews::Of)
    }

    /// Adds a bridge that has connected, unless its session already has one. Returns its session.
    fn join(&mut self, id: ConnectionId, hello: Hello, bridge: Bridge, now: Time) -> Option<Box<str>> {
        // The first bridge to connect is the session's, as long as its process lives.
        let first = self.connections.iter().find(|(_, bridge)| bridge.is_of(&hello.session, hello.ppid));
        if let Some((&first, connected)) = first {
            if !is_gone(connected.process, now) {
                log::warn!(session = private(&hello.session), "a second bridge for a session was rejected");
                return None;
            }
            self.connections.remove(&first);
        }
        log::info!(session = private(&hello.session), pid = private(&hello.pid), "a bridge has connected");
        let (state, receiver) = watch::channel(BridgeState::new(&hello));
        let handle = BridgeHandle { bridge, known: receiver };
        let (process, owner) = (hello.pid, hello.ppid);
        let connected = ConnectedBridge { session: hello.session.clone(), owner, process, handle, state };
        self.connections.insert(id, connected);
        Some(hello.session)
    }

    /// Notes what a bridge reports. Returns its session if that is new.
    fn hear(&mut self, id: ConnectionId, message: Message) -> Option<Box<str>> {
        let connected = self.connections.get(&id)?;
        connected.state.send_if_modified(|state| state.hear(message)).then(|| connected.session.clone())
    }

    /// Forgets a bridge that has disconnected: what it reported no longer counts. Returns its session.
    fn leave(&mut self, id: ConnectionId) -> Option<Box<str>> {
        let gone = self.connections.remove(&id)?;
        log::info!(session = private(&gone.session), "a bridge has disconnected");
        Some(gone.session)
    }

    /// Whether this bridge is connected.
    fn is_connected(&self, id: ConnectionId) -> bool {
        self.connections.contains_key(&id)
    }

    /// Copilot asked its user although nobody wanted it to: from now on no bridge elevates without a request. Each
    /// learns that when it connects again, so all are disconnected. Returns false if none elevates anyway.
    fn stop_elevating(&mut self) -> bool {
        let Some(config) = self.config.as_ref().filter(|config| config.files.may_elevate()) else { return false };
        log::warn!("Copilot asked in a terminal whether Pilotlight may answer, although it had been told before");
        config.files.mark_misread();
        self.close();
        true
    }

    /// The bridge of a session that this process owns.
    fn of(&self, session: &str, owner: u32) -> Option<&ConnectedBridge> {
        self.connections.values().find(|bridge| bridge.is_of(session, owner))
    }
}

impl control::Bridges for Bridges {
    fn agent(&self) -> &'static str {
        PROFILE.names.name
    }

    fn start(&mut self) {
        if self.config.as_ref().is_some_and(|config| !config.shared) {
            self.update_listener();
        }
    }

    /// Listens if there is a key, and stops if there is none.
    fn update_listener(&mut self) {
        let Some(config) = &self.config else { return };
        let Some(key) = config.files.key() else { return self.close() };
        if self.socket.is_some() || config.shared && is_listened_to(&config.folder) {
            return;
        }
        let may_elevate = !config.only_looks && config.files.may_elevate();
        let is_users = if config.only_looks { |_| false } else { config.is_users };
        match serve(&config.folder, key.to_vec(), may_elevate, is_users) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => log::warn!("sessions in terminals cannot be reached: {}", cause(&*error)),
        }
    }

    fn socket(&self) -> Option<PathBuf> {
        Some(self.socket.as_ref()?.0.path())
    }

    fn renew_socket(&mut self) {
        if let Some((socket, _)) = &mut self.socket {
            socket.renew();
        }
    }

    fn poll_news(&mut self, context: &mut Context<'_>, clock: &Clock) -> Poll<BridgeNews> {
        loop {
            let events = self.socket.as_mut().map(|(_, events)| events).or(self.scripted.as_mut());
            match events.map(|events| events.poll_recv(context)) {
                Some(Poll::Ready(Some(event))) => {
                    if let Some(news) = self.handle(event, clock.now().wall) {
                        return Poll::Ready(news);
                    }
                }
                // A stage that has ended says nothing more.
                Some(Poll::Ready(None) | Poll::Pending) | None => return Poll::Pending,
            }
        }
    }

    fn is_listening(&self) -> bool {
        self.socket.is_some() || self.scripted.is_some()
    }

    fn has_reported(&self, session: &str) -> bool {
        self.connections.values().any(|bridge| *bridge.session == *session && bridge.state.borrow().pending_received)
    }

    fn report(&self, session: &str, owner: u32, untried: bool) -> Option<BridgeReport> {
        let state = self.of(session, owner)?.state.borrow();
        Some(BridgeReport {
            bridge: state.bridge(untried),
            release: state.release.clone(),
            is_other: state.is_other,
            approves_all: state.approves_all,
            questions: state.questions.open(),
            requests: Vec::new(),
            about: None,
        })
    }

    fn bridge(&self, session: &str, owner: u32) -> Option<Arc<dyn channel::Bridge>> {
        Some(Arc::new(self.of(session, owner)?.handle.clone()))
    }
}
