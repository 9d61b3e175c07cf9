//! The bridges to sessions in plain terminals: listens for them, and keeps what each reports.
//!
//! So far Copilot alone has one.

use super::copilot::bridge::carry::BridgeHandle;
use super::copilot::bridge::known::BridgeState;
use super::copilot::bridge::socket::{Bridge, BridgeSocket, ConnectionId, serve};
use super::copilot::bridge::wire::{Consent, Hello, Message};
use pilotlight_core::fleet::Session;
use pilotlight_core::session::BridgeSetup;
use pilotlight_core::time::Time;
use pilotlight_system::log::{self, cause, private};
use pilotlight_system::process::is_gone;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

pub use super::copilot::bridge::files::Files as BridgeFiles;
pub use super::copilot::bridge::socket::{BridgeEvent, is_listened_to};

/// Where to listen for bridges, and where their key is. Without a key, no bridge is installed.
#[derive(Clone, Debug)]
pub struct BridgeConfig {
    /// The runtime folder.
    pub folder: PathBuf,
    /// The bridge's files on our disk.
    pub files: BridgeFiles,
    /// Whether no tool of a session that this process runs can have started us.
    pub is_users: fn(u32) -> bool,
    /// Other processes may listen there as well, one at a time: this one begins when it is told to, and not while another does.
    pub shared: bool,
}

/// What an event of a bridge has changed.
pub enum BridgeNews {
    /// What is known of the session with this id.
    Of(Box<str>),
    /// All bridges were disconnected: none of them may make use of a remembered consent any more.
    StoppedElevating,
}

/// The bridges that are connected.
#[derive(Default)]
pub struct Bridges {
    config: Option<BridgeConfig>,
    socket: Option<(BridgeSocket, mpsc::Receiver<BridgeEvent>)>,
    /// The events of bridges that no socket connects: those of scripted sessions.
    scripted: Option<mpsc::Receiver<BridgeEvent>>,
    connections: HashMap<ConnectionId, ConnectedBridge>,
    /// The user has installed the bridge, whoever listens for it.
    is_installed: bool,
}

/// A bridge that is connected.
pub struct ConnectedBridge {
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

    /// What it has reported.
    pub fn state(&self) -> watch::Ref<'_, BridgeState> {
        self.state.borrow()
    }

    /// What an order is carried out over.
    pub fn handle(&self) -> BridgeHandle {
        self.handle.clone()
    }
}

impl Bridges {
    /// Sets where to listen from now on.
    pub fn configure(&mut self, config: BridgeConfig) {
        self.config = Some(config);
    }

    /// Takes the events of scripted sessions' bridges from here. There is no socket then.
    pub fn connect(&mut self, events: mpsc::Receiver<BridgeEvent>) {
        self.scripted = Some(events);
    }

    /// Begins to listen, unless it waits to be told to.
    pub fn start(&mut self) {
        if self.config.as_ref().is_some_and(|config| !config.shared) {
            self.update_listener();
        }
    }

    /// Listens if there is a key, and stops if there is none.
    pub fn update_listener(&mut self) {
        let Some(config) = &self.config else { return };
        let Some(key) = config.files.key() else { return self.close() };
        if self.socket.is_some() || config.shared && is_listened_to(&config.folder) {
            return;
        }
        match serve(&config.folder, key.to_vec(), config.files.may_elevate(), config.is_users) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => log::warn!("sessions in terminals cannot be reached: {}", cause(&*error)),
        }
    }

    /// Stops listening, and disconnects from all.
    fn close(&mut self) {
        self.socket = None;
        self.connections.clear();
    }

    /// The next event of a bridge. Never returns while not listening.
    pub async fn next_event(&mut self) -> BridgeEvent {
        let events = self.socket.as_mut().map(|(_, events)| events).or(self.scripted.as_mut());
        if let Some(events) = events
            && let Some(event) = events.recv().await
        {
            return event;
        }
        std::future::pending().await
    }

    /// Handles a bridge that has connected, reported something, or disconnected.
    pub fn handle(&mut self, event: BridgeEvent, now: Time) -> Option<BridgeNews> {
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

    /// Notes whether the user has installed the bridge.
    pub const fn note_installed(&mut self, is_installed: bool) {
        self.is_installed = is_installed;
    }

    /// What is known of which sessions a bridge reaches.
    pub const fn setup(&self) -> BridgeSetup {
        match (self.is_listening(), self.is_installed) {
            (true, _) => BridgeSetup::Installed,
            (false, true) => BridgeSetup::Unheard,
            (false, false) => BridgeSetup::NotInstalled,
        }
    }

    /// Whether we listen for bridges.
    pub const fn is_listening(&self) -> bool {
        self.socket.is_some() || self.scripted.is_some()
    }

    /// Whether the bridge of this session is connected and has reported what is open there.
    pub fn has_reported(&self, session: &str) -> bool {
        self.connections.values().any(|bridge| *bridge.session == *session && bridge.state.borrow().pending_received)
    }

    /// The bridge of a session that this process owns.
    pub fn of(&self, session: &str, owner: u32) -> Option<&ConnectedBridge> {
        self.connections.values().find(|bridge| bridge.is_of(session, owner))
    }
}

/// Where no tray runs: listens until all these sessions' bridges have connected, or for that long, and notes what they
/// say of themselves. Returns false if that is not possible, so that nothing is known. `untried` allows releases that the
/// bridge was not tested with.
pub async fn meet(config: &BridgeConfig, sessions: &mut [Session], untried: bool, within: Duration) -> bool {
    let Some(key) = config.files.key() else { return false };
    // Nothing may change because somebody looks: no bridge makes use of a remembered consent, or takes us for the one
    // that the user lets answer.
    let Ok((_socket, mut events)) = serve(&config.folder, key.to_vec(), false, |_| false) else { return false };
    let is_of = |hello: &Hello, session: &Session| {
        session.id == hello.session && session.observed.owner.live() == Some(hello.ppid)
    };
    let mut connected: HashMap<_, (Hello, Bridge)> = HashMap::new();
    let meet = async {
        let all_are_there = |connected: &HashMap<_, (Hello, Bridge)>| {
            sessions.iter().all(|session| connected.values().any(|(hello, _)| is_of(hello, session)))
        };
        while !all_are_there(&connected)
            && let Some(event) = events.recv().await
        {
            match event {
                BridgeEvent::Joined(id, hello, bridge) => {
                    connected.insert(id, (hello, bridge));
                }
                BridgeEvent::Message(..) => {}
                BridgeEvent::Gone(id) => drop(connected.remove(&id)),
            }
        }
    };
    let _ = timeout(within, meet).await; // those that have not connected by then are not there
    for session in sessions {
        session.control.bridge_setup = BridgeSetup::Installed;
        if let Some((hello, _)) = connected.values().find(|(hello, _)| is_of(hello, session)) {
            let state = BridgeState::new(hello);
            session.control.bridge = Some(state.bridge(untried));
            session.control.release.clone_from(&state.release);
            session.control.old_bridge = state.is_other;
        }
    }
    true
}
