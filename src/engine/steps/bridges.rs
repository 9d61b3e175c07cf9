//! Applies what the bridges to terminals report to their sessions.

use crate::agent::bridges::{BridgeConfig, BridgeEvent, BridgeNews, ConnectedBridge};
use crate::agent::channel::BridgeHandle;
use crate::core::session::Key;
use crate::engine::{Changes, Engine};
use tokio::sync::mpsc::Receiver;

impl Engine {
    /// Sets where to listen for bridges from now on.
    pub(crate) fn listen_to_bridges(&mut self, config: BridgeConfig) {
        self.bridges.configure(config);
    }

    /// Takes the events of scripted sessions' bridges from here.
    pub(crate) fn connect_bridges(&mut self, events: Receiver<BridgeEvent>) {
        self.bridges.connect(events);
    }

    /// Starts or stops listening after the bridge was installed or removed.
    pub(super) fn restart_bridge_listener(&mut self, changes: &mut Changes) {
        self.bridges.update_listener();
        self.update_bridges(None, changes);
    }

    /// Handles a bridge that has connected, reported something, or disconnected.
    pub(super) fn handle_bridge_event(&mut self, event: BridgeEvent, changes: &mut Changes) {
        match self.bridges.handle(event, self.clock.now().wall) {
            Some(BridgeNews::Of(session)) => self.update_bridges(Some(&session), changes),
            Some(BridgeNews::StoppedElevating) => self.restart_bridge_listener(changes),
            None => {}
        }
    }

    /// Updates what bridges report of the sessions with this id, in every home that has one (homes may be copies);
    /// without an id, of all sessions.
    fn update_bridges(&mut self, session: Option<&str>, changes: &mut Changes) {
        let keys: Vec<_> = self.fleet.keys().filter(|key| session.is_none_or(|session| *key.id == *session)).collect();
        for key in keys {
            if self.update_bridge(&key) {
                changes.redraw = true;
                self.judge(&key, changes);
            }
        }
    }

    /// Applies what a session's bridge reports. Returns whether that is new.
    pub(super) fn update_bridge(&mut self, key: &Key) -> bool {
        let is_attached = self.tasks.connection_state(key).is_some();
        let untried = self.config.actions.bridge_untried;
        let Some(session) = self.fleet.session(key) else { return false };
        // A process that provably does not hold this session is not its owner.
        let connected = session.observed.owner.live().and_then(|owner| self.bridges.of(&session.id, owner));
        let state = connected.map(ConnectedBridge::state);
        let bridge = state.as_ref().map(|state| state.bridge(untried));
        let release = state.as_ref().and_then(|state| state.release.clone());
        let (bridge_before, questions_before) = (session.control.bridge, session.vitals.questions.clone());
        (session.control.bridge, session.control.release) = (bridge, release);
        session.control.old_bridge = state.as_ref().is_some_and(|state| state.is_other);
        let approves_all = state.as_ref().and_then(|state| state.approves_all);
        let is_new = std::mem::replace(&mut session.control.approves_all, approves_all) != approves_all;
        if !is_attached {
            // Only a tool asks questions, and the log records tools: what calls itself a bridge may be an impostor.
            let asks = session.observed.facts.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty())
                || !session.observed.facts.sub_agents.is_empty();
            session.vitals.questions = state.filter(|_| asks).map(|state| state.questions.open()).unwrap_or_default();
        }
        is_new || bridge_before != bridge || questions_before != session.vitals.questions
    }

    /// The bridge to a session's terminal, if it accepts orders.
    pub(super) fn bridge_to(&self, key: &Key) -> Option<BridgeHandle> {
        let session = self.fleet.get(key)?.session();
        session.control.bridge.filter(|bridge| bridge.accepts_orders())?;
        self.bridges.of(&session.id, session.observed.owner.live()?).map(ConnectedBridge::handle)
    }
}
