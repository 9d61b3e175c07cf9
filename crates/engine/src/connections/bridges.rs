//! Applies what the bridges to terminals report to their sessions.

use crate::connections::Connections;
use crate::world::World;
use pilotlight_agents::channel::Bridge;
use pilotlight_agents::control::{BridgeNews, Bridges};
use pilotlight_core::session::{BridgeSetup, Key};
use pilotlight_system::clock::Clock;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// What is next heard of a bridge. Never returns while nobody listens.
pub(crate) async fn next_news(bridges: &mut Option<Box<dyn Bridges>>, clock: &Clock) -> BridgeNews {
    poll_fn(|context| match bridges {
        Some(bridges) => bridges.poll_news(context, clock),
        None => Poll::Pending,
    })
    .await
}

impl Connections {
    /// Whether we listen for bridges.
    pub(crate) fn is_listening_to_bridges(&self) -> bool {
        self.bridges.as_ref().is_some_and(|bridges| bridges.is_listening())
    }

    /// Whether the bridge of this session is connected and has reported what is open there.
    pub(crate) fn has_bridge_reported(&self, session: &str) -> bool {
        self.bridges.as_ref().is_some_and(|bridges| bridges.has_reported(session))
    }

    /// What is known of which sessions a bridge reaches.
    fn bridge_setup(&self) -> BridgeSetup {
        match (self.is_listening_to_bridges(), self.bridge_is_installed) {
            (true, _) => BridgeSetup::Installed,
            (false, true) => BridgeSetup::Unheard,
            (false, false) => BridgeSetup::NotInstalled,
        }
    }

    /// Starts or stops listening after the bridge was installed or removed.
    pub(crate) fn restart_bridge_listener(&mut self, world: &mut World) {
        if let Some(bridges) = &mut self.bridges {
            bridges.update_listener();
        }
        self.update_bridges(world, None);
    }

    /// Takes up what was heard of a bridge.
    pub(crate) fn take_bridge_news(&mut self, world: &mut World, news: &BridgeNews) {
        match news {
            BridgeNews::Of(session) => self.update_bridges(world, Some(session)),
            BridgeNews::StoppedElevating => self.restart_bridge_listener(world),
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
        let (untried, setup) = (world.config.actions.bridge_untried, self.bridge_setup());
        let Some(session) = world.fleet.session(key) else { return false };
        // A process that provably does not hold this session is not its owner.
        let owner = session.observed.owner.live();
        let report = self.bridges.as_ref().and_then(|bridges| bridges.report(&session.id, owner?, untried));
        let bridge = report.as_ref().map(|report| report.bridge);
        let (bridge_before, questions_before) = (session.control.bridge, session.liveness.questions.clone());
        session.control.bridge = bridge;
        session.control.release = report.as_ref().and_then(|report| report.release.clone());
        session.control.bridge_setup = setup;
        session.control.old_bridge = report.as_ref().is_some_and(|report| report.is_other);
        let approves_all = report.as_ref().and_then(|report| report.approves_all);
        let is_new = std::mem::replace(&mut session.control.approves_all, approves_all) != approves_all;
        if !is_attached {
            // Only a tool asks questions, and the log records tools: what calls itself a bridge may be an impostor.
            let asks = session.observed.facts.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty())
                || !session.observed.facts.sub_agents.is_empty();
            session.liveness.questions = report.filter(|_| asks).map(|report| report.questions).unwrap_or_default();
        }
        is_new || bridge_before != bridge || questions_before != session.liveness.questions
    }

    /// The bridge to a session's terminal, if it accepts orders.
    pub(crate) fn bridge_to(&self, world: &World, key: &Key) -> Option<Arc<dyn Bridge>> {
        let session = world.fleet.get(key)?.session();
        session.control.bridge.filter(|bridge| bridge.accepts_orders())?;
        self.bridges.as_ref()?.bridge(&session.id, session.observed.owner.live()?)
    }
}
