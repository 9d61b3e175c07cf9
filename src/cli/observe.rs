//! The sessions, as commands see them: those of the running tray, or else of an engine of this process that runs until it
//! has its first complete picture.

use super::bridges::{has_bridge, installed_bridges, place_to_look};
use super::context::{Context, runtime};
use super::report::say;
use super::trays::{ask_first, unresponsive};
use pilotlight_agents::adapter::ADAPTERS;
use pilotlight_agents::copilot::bridge::Bridges;
use pilotlight_agents::home::Home;
use pilotlight_core::fleet::Session;
use pilotlight_core::time::{Moment, Time};
use pilotlight_engine::config::Config;
use pilotlight_engine::last_seen::LastSeen;
use pilotlight_engine::observation::{Observation, ObservedHome};
use pilotlight_engine::past::{Depth, OnDisk};
use pilotlight_engine::{Engine, control};
use pilotlight_system::paths;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

/// How much is done to find out about the sessions, where no tray has done it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// Files and processes are read.
    Look,
    /// Servers are asked about silent sessions, and bridges have time to connect.
    Ask,
}

/// The sessions at one time.
pub(super) struct Picture {
    /// The sessions, in no meaningful order.
    pub(super) sessions: Vec<Session>,
    /// When it was taken, by the clocks of whoever took it.
    pub(super) now: Moment,
    /// Whether bridges were listened for.
    pub(super) are_bridges_known: bool,
    homes: Vec<Home>,
    /// Since when the tray follows each of them, if it was asked.
    since: Vec<Option<Time>>,
    /// The ids of all sessions on disk, if they were listed.
    listed: Option<Vec<Arc<str>>>,
}

impl Picture {
    /// Since when the tray follows a home, if it does and was asked.
    pub(super) fn followed_since(&self, home: &Home) -> Option<Time> {
        let number = self.homes.iter().position(|its| its == home)?;
        self.since[number]
    }

    /// The ids of all sessions on disk, including those that are not in the picture.
    pub(super) fn ids(&mut self) -> Vec<Arc<str>> {
        self.listed.take().unwrap_or_else(|| OnDisk::list(&self.homes).ids())
    }
}

/// Observes the sessions of some homes.
pub(super) struct Observer {
    pub(super) homes: Vec<Home>,
    pub(super) config: Config,
    pub(super) seen: LastSeen,
    /// The names of the agents that are wanted; none: all.
    pub(super) only: Vec<Box<str>>,
    /// The user has installed the bridge.
    pub(super) has_bridge: bool,
    /// The agents whose bridge the user has installed.
    pub(super) bridged_agents: Vec<&'static str>,
}

/// The sessions that are open, and those that ended last; with `past`, all others on disk as well.
///
/// # Errors
/// If the system refuses what is needed to read them.
pub(super) fn observe(context: &Context, effort: Effort, past: Option<Depth>) -> anyhow::Result<Picture> {
    Observer::of(context).observe(effort, past)
}

impl Observer {
    pub(super) fn of(context: &Context) -> Self {
        Self {
            homes: context.readable(),
            config: context.config.clone(),
            seen: context.seen.clone(),
            only: context.only.clone(),
            has_bridge: context.demo.is_none() && has_bridge(),
            bridged_agents: if context.demo.is_none() { installed_bridges() } else { Vec::new() },
        }
    }

    /// [`observe`].
    ///
    /// # Errors
    /// The same.
    pub(super) fn observe(&self, effort: Effort, past: Option<Depth>) -> anyhow::Result<Picture> {
        match from_tray(&self.homes, effort) {
            Some(told) => {
                let since = |home: &Home| told.homes.iter().find(|observed| is_of(observed, home))?.since;
                let since = self.homes.iter().map(since).collect();
                Ok(Picture { since, ..self.picture(told, true, past) })
            }
            None => self.observe_alone(effort, past),
        }
    }

    /// The same, whatever tray runs.
    ///
    /// # Errors
    /// The same.
    pub(super) fn observe_alone(&self, effort: Effort, past: Option<Depth>) -> anyhow::Result<Picture> {
        let place = (effort == Effort::Ask && self.has_bridge).then(place_to_look).flatten();
        let are_bridges_known = place.is_some() || !self.has_bridge;
        let mut engine = Engine::for_one_look(&self.homes, self.config.clone(), self.seen.clone());
        engine.note_bridges(self.bridged_agents.clone());
        if let Some(place) = place {
            engine.listen_to_bridges(Bridges::at(place));
        }
        let observed = runtime()?.block_on(engine.observe(effort == Effort::Ask))?;
        Ok(self.picture(observed, are_bridges_known, past))
    }

    fn picture(&self, observation: Observation, are_bridges_known: bool, past: Option<Depth>) -> Picture {
        let now = observation.now;
        let mut sessions = Vec::new();
        let mut held: Vec<HashSet<Box<str>>> = vec![HashSet::new(); self.homes.len()];
        for observed in observation.homes {
            let Some(number) = self.homes.iter().position(|home| is_of(&observed, home)) else { continue };
            let is_wanted = |session: &Session| {
                self.only.is_empty() || self.only.iter().any(|name| **name == *session.observed.agent.name())
            };
            for session in observed.sessions.into_iter().filter(is_wanted) {
                held[number].insert(session.id.clone());
                sessions.push(session);
            }
        }
        let listed = past.map(|depth| {
            let disk = OnDisk::list(&self.homes);
            let is_held = |number: usize, id: &str| held[number].contains(id);
            sessions.extend(disk.read(is_held, depth, (&self.config, &self.seen), now));
            disk.ids()
        });
        let since = vec![None; self.homes.len()];
        Picture { sessions, now, are_bridges_known, homes: self.homes.clone(), since, listed }
    }
}

/// The sessions of the running tray, if it watches all these homes, and none that shares logs with one of them.
fn from_tray(homes: &[Home], effort: Effort) -> Option<Observation> {
    let observation = match runtime().ok()?.block_on(ask_first(control::ask_for_sessions)) {
        Ok(observation) => observation?,
        Err(tray) => {
            // Whoever is to act asks it once more, and says so then.
            if effort == Effort::Ask {
                say(&unresponsive(tray, "what only it knows is missing here"));
            }
            return None;
        }
    };
    let watches = |home: &Home| observation.homes.iter().any(|observed| is_of(observed, home));
    let shares = |observed: &ObservedHome| {
        let adapter = ADAPTERS.iter().find(|adapter| adapter.name() == &*observed.agent);
        let other = adapter.map(|adapter| Home::of(*adapter, PathBuf::from(&*observed.path)));
        other.is_some_and(|other| homes.iter().any(|home| !is_of(observed, home) && other.shares_all(home)))
    };
    let is_other = |observed: &&ObservedHome| !homes.iter().any(|home| is_of(observed, home));
    let shows_all = homes.iter().all(watches) && !observation.homes.iter().filter(is_other).any(shares);
    shows_all.then_some(observation)
}

/// Whether this is what was observed of that home.
fn is_of(observed: &ObservedHome, home: &Home) -> bool {
    *observed.agent == *home.adapter().name() && observed.path == paths::canonical(home.folder())
}
