//! Applies what the bridges to terminals report to their sessions.

use crate::contacts::Contacts;
use crate::world::World;
use pilotlight_agents::bridges::{BridgeEvent, BridgeNews, ConnectedBridge};
use pilotlight_agents::channel::BridgeHandle;
use pilotlight_core::session::Key;

impl Contacts {
    /// Starts or stops listening after the bridge was installed or removed.
    pub(crate) fn restart_bridge_listener(&mut self, world: &mut World) {
        self.bridges.update_listener();
        self.update_bridges(world, None);
    }

    /// Handles a bridge that has connected, reported something, or disconnected.
    pub(crate) fn handle_bridge_event(&mut self, world: &mut World, event: BridgeEvent) {
        match self.bridges.handle(event, world.now().wall) {
            Some(BridgeNews::Of(session)) => self.update_bridges(world, Some(&session)),
            Some(BridgeNews::StoppedElevating) => self.restart_bridge_listener(world),
            None => {}
        }
    }

    /// Updates what bridges report of the sessions with this id, in every home that has one (homes may be copies);
    /// without an id, of all sessions.
    fn update_bridges(&mut self, world: &mut World, session: Option<&str>) {
        let keys: Vec<_> = world.fleet.keys().filter(|key| session.is_none_or(|session| *key.id == *session)).collect();
        for key in keys {
            if self.update_bridge(world, &key) {
                world.changes.redraw = true;
                world.judge(&key);
            }
        }
    }

    /// Applies what a session's bridge reports. Returns whether that is new.
    pub(super) fn update_bridge(&mut self, world: &mut World, key: &Key) -> bool {
        let is_attached = self.tasks.connection_state(key).is_some();
        let untried = world.config.actions.bridge_untried;
        let Some(session) = world.fleet.session(key) else { return false };
        // A process that provably does not hold this session is not its owner.
        let connected = session.observed.owner.live().and_then(|owner| self.bridges.of(&session.id, owner));
        let state = connected.map(ConnectedBridge::state);
        let bridge = state.as_ref().map(|state| state.bridge(untried));
        let release = state.as_ref().and_then(|state| state.release.clone());
        let (bridge_before, questions_before) = (session.control.bridge, session.vitals.questions.clone());
        (session.control.bridge, session.control.release) = (bridge, release);
        session.control.bridge_setup = self.bridges.setup();
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
    pub(crate) fn bridge_to(&self, world: &World, key: &Key) -> Option<BridgeHandle> {
        let session = world.fleet.get(key)?.session();
        session.control.bridge.filter(|bridge| bridge.accepts_orders())?;
        self.bridges.of(&session.id, session.observed.owner.live()?).map(ConnectedBridge::handle)
    }
}
