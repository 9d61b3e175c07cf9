//! The hooks that ask now, and when each is let go.
//!
//! Nothing tells a hook that its request was answered in the terminal, but the process's own file does: it leaves
//! `waiting`. The next request of the session says the same, as a session asks for one thing after the other. Sub-agents
//! ask beside it, and their dialogs appear only once their hooks have ended.

use super::asked::Asked;
use super::{AGENT, SOCKET};
use crate::channel;
use crate::claude_code::adapter::PROFILE;
use crate::claude_code::running::FINGERPRINT;
use crate::control::{self, BridgeNews, BridgeReport, BridgeSettings};
use crate::hooks::HookConfig;
use crate::hooks::carry::{HookBridge, OpenHook, report};
use crate::hooks::listener::{ConnectionId, Hook, HookEvent, Listening, parent_of};
use crate::hooks::source::{HookSource, new_id};
use pilotlight_core::session::Observed;
use pilotlight_core::time::{Moment, Span};
use pilotlight_core::verdict::reported_state::State;
use pilotlight_system::clock::Clock;
use pilotlight_system::log::{self, private};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How its hooks are listened for.
const LISTENING: Listening<Asked> = Listening {
    socket: SOCKET,
    new_socket: "hooks.new",
    check: |hook| parent_of(hook, AGENT, &FINGERPRINT),
    read: Asked::read,
    answers_within: Duration::from_secs(2),
};
/// The longest time that a sub-agent's request is held.
const HELD_MAX: Span = Span::seconds(15);
/// How much later than its hook a process may say that it waits, or the other way round. Seen: 0.1 s.
const TOGETHER: Span = Span(300);
/// The most requests of one session. Real ones have one, or one for each sub-agent.
const OPEN_MAX: usize = 32;

/// The hooks that ask now.
#[derive(Debug)]
pub struct Bridges {
    source: HookSource<Asked>,
    settings: BridgeSettings,
    open: BTreeMap<ConnectionId, Waiting>,
}

/// A hook that waits for its answer.
#[derive(Debug)]
struct Waiting {
    hook: OpenHook<Asked>,
    /// Its process was seen to wait for its user since.
    was_waiting: bool,
    /// A session that is watched is run by the process that started it.
    is_watched: bool,
}

impl Waiting {
    fn is_of(&self, session: &str, owner: u32) -> bool {
        *self.hook.hook.asked.session == *session && self.hook.hook.owner == owner
    }

    const fn is_sub_agents(&self) -> bool {
        self.hook.hook.asked.sub_agent.is_some()
    }

    /// Whether it was answered in the terminal, by what its process says.
    fn is_over(&mut self, observed: &Observed) -> bool {
        let Some(reported) = observed.reported_state.as_ref().filter(|_| !self.is_sub_agents()) else { return false };
        let (since, asked) = (reported.since.wall, self.hook.hook.at);
        match reported.state {
            State::Waiting(_) => {
                self.was_waiting |= since + TOGETHER >= asked;
                false
            }
            State::Busy => self.was_waiting || since > asked + TOGETHER,
            State::Idle { .. } | State::Ended => self.was_waiting || since > asked,
        }
    }
}

impl Bridges {
    /// Those that connect there, once it begins to listen.
    pub fn at(config: HookConfig) -> Self {
        let source = HookSource::new(config, LISTENING);
        Self { source, settings: BridgeSettings::default(), open: BTreeMap::new() }
    }

    /// Handles a hook that asks, or has gone. Returns its session if there is something new to say of it.
    fn handle(&mut self, event: HookEvent<Asked>, now: Moment) -> Option<Box<str>> {
        match event {
            HookEvent::Asks(id, hook) => self.ask(id, *hook, now),
            HookEvent::Gone(id) => self.open.remove(&id).map(|gone| gone.hook.hook.asked.session),
        }
    }

    fn ask(&mut self, id: ConnectionId, hook: Hook<Asked>, now: Moment) -> Option<Box<str>> {
        if !(self.source.config.is_users)(hook.owner) {
            log::warn!("a hook was let go: a tool of its session can have started this Pilotlight");
            return None;
        }
        let session = hook.asked.session.clone();
        let held = self.settings.hold_sub_agents.min(HELD_MAX);
        if hook.asked.sub_agent.is_none() {
            // What it asked before is answered.
            self.open.retain(|_, open| open.is_sub_agents() || !open.is_of(&session, hook.owner));
        } else if held > Span::ZERO {
            hook.handle.hold(held.to_std());
        } else {
            return None;
        }
        if self.open.values().filter(|open| open.is_of(&session, hook.owner)).count() >= OPEN_MAX {
            return None;
        }
        let request = new_id()?;
        log::info!(session = private(&session), "a hook asks");
        let hook = OpenHook { request, hook, at: now, is_answered: Arc::default() };
        self.open.insert(id, Waiting { hook, was_waiting: false, is_watched: false });
        Some(session)
    }

    /// The hooks of a session that this process runs, the first one first.
    fn of(&self, session: &str, owner: u32) -> impl Iterator<Item = &OpenHook<Asked>> {
        let its = self.open.values().filter(move |open| open.is_of(session, owner));
        its.map(|open| &open.hook).filter(|open| !open.hook.handle.is_gone())
    }
}

impl control::Bridges for Bridges {
    fn agent(&self) -> &'static str {
        PROFILE.names.name
    }

    fn stays_connected(&self) -> bool {
        false
    }

    fn configure(&mut self, settings: BridgeSettings) {
        self.settings = settings;
    }

    fn start(&mut self) {
        self.source.start();
    }

    fn update_listener(&mut self) {
        if !self.source.update() {
            self.open.clear();
        }
    }

    fn poll_news(&mut self, context: &mut Context<'_>, clock: &Clock) -> Poll<BridgeNews> {
        while let Poll::Ready(event) = self.source.poll(context) {
            if let Some(session) = self.handle(event, clock.now()) {
                return Poll::Ready(BridgeNews::Of(session));
            }
        }
        Poll::Pending
    }

    fn is_listening(&self) -> bool {
        self.source.is_listening()
    }

    fn has_reported(&self, session: &str) -> bool {
        self.open.values().any(|open| *open.hook.hook.asked.session == *session)
    }

    fn observe(&mut self, session: &str, observed: &Observed) {
        let Some(owner) = observed.owner.live() else { return };
        let is_untried = observed.untried.is_some() && !self.settings.untried;
        self.open.retain(|_, open| {
            let is_its = open.is_of(session, owner);
            open.is_watched |= is_its;
            !is_its || !is_untried && !open.is_over(observed)
        });
    }

    fn forget_unwatched(&mut self, session: &str) {
        self.open.retain(|_, open| *open.hook.hook.asked.session != *session || open.is_watched);
    }

    fn report(&self, session: &str, owner: u32, _untried: bool) -> Option<BridgeReport> {
        report(&self.of(session, owner).collect::<Vec<_>>(), None)
    }

    fn bridge(&self, session: &str, owner: u32) -> Option<Arc<dyn channel::Bridge>> {
        HookBridge::over(self.of(session, owner).cloned().collect())
    }
}

#[cfg(test)]
mod tests;
