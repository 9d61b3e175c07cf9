//! Applies what the bridges to terminals report to their sessions.

use crate::config::Config;
use crate::connections::Connections;
use crate::world::World;
use pilotlight_agents::channel::Bridge;
use pilotlight_agents::control::{BridgeNews, BridgeReport, BridgeSettings, Bridges};
use pilotlight_core::session::{Allows, BridgeSetup, Key, Session};
use pilotlight_core::time::{Moment, Time};
use pilotlight_core::verdict::hook_report::{HookActivity, HookReport};
use pilotlight_core::verdict::reported_state::State;
use pilotlight_system::clock::Clock;
use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;

/// What is next heard of a bridge. Never returns while nobody listens.
pub(crate) async fn next_news(bridges: &mut [Box<dyn Bridges>], clock: &Clock) -> BridgeNews {
    poll_fn(|context| {
        let mut news = bridges.iter_mut().map(|bridges| bridges.poll_news(context, clock));
        news.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}

impl Connections {
    /// Begins to listen for bridges.
    pub(crate) fn start_bridges(&mut self, config: &Config) {
        self.configure_bridges(config);
        self.bridges.iter_mut().for_each(|bridges| bridges.start());
    }

    /// Puts the settings of bridges in force.
    pub(crate) fn configure_bridges(&mut self, config: &Config) {
        let settings =
            BridgeSettings { untried: config.actions.bridge_untried, hold_sub_agents: config.actions.hold_sub_agents };
        self.bridges.iter_mut().for_each(|bridges| bridges.configure(settings));
    }

    /// Whether a bridge may connect soon that is listened for.
    pub(crate) fn awaits_bridges(&self) -> bool {
        self.bridges.iter().any(|bridges| bridges.is_listening() && bridges.stays_connected())
    }

    /// Whether the bridge of this session may connect soon.
    pub(crate) fn may_connect(&self, session: &Session) -> bool {
        self.of(session).is_some_and(|bridges| bridges.is_listening() && bridges.stays_connected())
    }

    /// Whether the bridge of this session is connected and has reported what is open there.
    pub(crate) fn has_bridge_reported(&self, session: &str) -> bool {
        self.bridges.iter().any(|bridges| bridges.has_reported(session))
    }

    /// The bridges of a session's agent.
    fn of(&self, session: &Session) -> Option<&dyn Bridges> {
        let agent = session.observed.agent.name();
        self.bridges.iter().find(|bridges| bridges.agent() == agent).map(|bridges| &**bridges)
    }

    /// What is known of which sessions of this one's agent a bridge reaches.
    fn bridge_setup(&self, session: &Session) -> BridgeSetup {
        let is_installed = self.bridged_agents.contains(&session.observed.agent.name());
        match (self.of(session).is_some_and(Bridges::is_listening), is_installed) {
            (true, _) => BridgeSetup::Installed,
            (false, true) => BridgeSetup::Unheard,
            (false, false) => BridgeSetup::NotInstalled,
        }
    }

    /// Starts or stops listening after a bridge was installed or removed.
    pub(crate) fn restart_bridge_listener(&mut self, world: &mut World) {
        self.bridges.iter_mut().for_each(|bridges| bridges.update_listener());
        self.update_bridges(world, None);
    }

    /// The sockets at which bridges are listened for.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = PathBuf> {
        self.bridges.iter().filter_map(|bridges| bridges.socket())
    }

    /// Makes those again that were removed.
    pub(crate) fn renew_sockets(&mut self) {
        self.bridges.iter_mut().for_each(|bridges| bridges.renew_socket());
    }

    /// Takes up what was heard of a bridge.
    pub(crate) fn take_bridge_news(&mut self, world: &mut World, news: &BridgeNews) {
        match news {
            BridgeNews::Of(session) => {
                self.update_bridges(world, Some(session));
                self.bridges.iter_mut().for_each(|bridges| bridges.forget_unwatched(session));
            }
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
        let untried = world.config.actions.bridge_untried;
        let Some(session) = world.fleet.session(key) else { return false };
        let setup = self.bridge_setup(session);
        let agent = session.observed.agent.name();
        let of_agent = self.bridges.iter_mut().find(|bridges| bridges.agent() == agent);
        // A process that provably does not hold this session is not its owner.
        let owner = session.observed.owner.live();
        let (report, was_answered, let_go) = of_agent.map_or((None, false, None), |bridges| {
            bridges.observe(&session.id, &session.observed);
            let report = owner.and_then(|owner| bridges.report(&session.id, owner, untried));
            let let_go = owner.and_then(|owner| bridges.let_go(&session.id, owner));
            (report, bridges.was_answered(&session.id), let_go)
        });
        if let Some(about) = report.as_ref().and_then(|report| report.about.clone()) {
            session.observed.about = about;
        }
        let bridge = report.as_ref().map(|report| report.bridge);
        let (bridge_before, questions_before) = (session.control.bridge, session.liveness.questions.clone());
        session.control.bridge = bridge;
        session.control.release = report.as_ref().and_then(|report| report.release.clone());
        session.control.bridge_setup = setup;
        session.control.old_bridge = report.as_ref().is_some_and(|report| report.is_other);
        let approves_all = report.as_ref().and_then(|report| report.approves_all);
        let is_new = std::mem::replace(&mut session.control.approves_all, approves_all) != approves_all;
        let is_asked_anew = take_requests(session, report.as_ref());
        // What was said of the question in its terminal is over with it.
        let asks = Some(pilotlight_core::session::Bridge::Asking);
        if bridge_before == asks && bridge != asks {
            session.control.outcome = None;
        }
        // A bridge that is there only while something is asked.
        let is_reported = session.observed.hook_report.is_some();
        // What we let go is still asked in its terminal.
        let is_left = let_go.is_some() || session.observed.contested;
        let is_left_anew = std::mem::replace(&mut session.control.let_go, let_go) != let_go;
        if bridge_before.is_some() && bridge.is_none() && !is_left {
            note_over(session, world.clock.now());
        }
        let comes_and_goes = is_reported || session.observed.allows == Allows::Process;
        if comes_and_goes && owner.is_some() && session.control.under_way.is_none() {
            let was_asked = bridge_before.is_some() && !was_answered && !is_left;
            note_answer(session, was_asked, report.as_ref(), world.clock.now().wall);
        }
        if !is_attached {
            // Only a tool asks questions, and the log records tools: what calls itself a bridge may be an impostor. Where there
            // is no log, the bridge alone knows.
            let asks = is_reported
                || session.observed.facts.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty())
                || !session.observed.facts.sub_agents.is_empty();
            session.liveness.questions = report.filter(|_| asks).map(|report| report.questions).unwrap_or_default();
        }
        is_new
            || is_left_anew
            || is_asked_anew
            || bridge_before != bridge
            || questions_before != session.liveness.questions
    }

    /// The bridge to a session's terminal, if it accepts orders.
    pub(crate) fn bridge_to(&self, world: &World, key: &Key) -> Option<Arc<dyn Bridge>> {
        let session = world.fleet.get(key)?.session();
        session.control.bridge.filter(|bridge| bridge.accepts_orders())?;
        self.of(session)?.bridge(&session.id, session.observed.owner.live()?)
    }
}

/// Notes whether what a session's bridge reported was answered in its terminal: it is gone, and not by us.
fn note_answer(session: &mut Session, was_asked: bool, report: Option<&BridgeReport>, now: Time) {
    let is_idle = session.observed.hook_report.as_ref().is_some_and(|told| told.said == HookActivity::Idle);
    let control = &mut session.control;
    match report {
        Some(_) => control.answered_there = None,
        None if was_asked => {
            let turn = session.observed.facts.turn_id.clone();
            control.answered_there = turn.or_else(|| session.observed.hook_report.is_some().then(Box::default));
            control.outcome = Some((now, "what it asked was answered in its terminal".into()));
        }
        None if is_idle => control.answered_there = None,
        None => {}
    }
}

/// What a session's bridge reported is over, of which its next report is still on its way.
fn note_over(session: &mut Session, now: Moment) {
    let waits = |told: &&mut HookReport| told.said == HookActivity::Blocked;
    if let Some(told) = session.observed.hook_report.as_mut().filter(waits) {
        (told.said, told.since, told.at) = (HookActivity::Working, now.wall, now);
    }
}

/// Takes up the requests that a session's bridge reports, in place of those that it reported before. Returns whether
/// they are others. Only a session at work asks.
fn take_requests(session: &mut Session, report: Option<&BridgeReport>) -> bool {
    let works = match session.observed.reported_state.as_ref().map(|reported| reported.state) {
        Some(State::Idle { .. } | State::Ended) => false,
        Some(State::Busy | State::Waiting(_)) => true,
        None => session.observed.facts.turn.is_some() || session.observed.hook_report.is_some(),
    };
    let open = &mut session.observed.facts.requests;
    let before: Vec<_> = open.extract_if(.., |request| request.over_bridge.is_some()).collect();
    let now = report.filter(|_| works).map(|report| report.requests.clone()).unwrap_or_default();
    let is_new = before != now;
    open.extend(now);
    is_new
}
