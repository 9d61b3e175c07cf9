//! The hooks that ask now, and when each is let go.
//!
//! Nothing tells a hook that its request was answered in the terminal, but the process's own file does: it leaves
//! `waiting`. The next request of the session says the same, as a session asks for one thing after the other. Sub-agents
//! ask beside it, and their dialogs appear only once their hooks have ended.

use super::carry::{HookBridge, OpenHook};
use super::listener::{Check, ConnectionId, Hook, HookEvent, Listener, is_listened_to, owner_of};
use crate::channel;
use crate::claude_code::adapter::PROFILE;
use crate::control::{self, BridgeNews, BridgeReport, BridgeSettings};
use pilotlight_core::action;
use pilotlight_core::session::Observed;
use pilotlight_core::time::{Moment, Span};
use pilotlight_core::verdict::reported_state::State;
use pilotlight_system::clock::Clock;
use pilotlight_system::log::{self, cause, private};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The longest time that a sub-agent's request is held.
const HELD_MAX: Span = Span::seconds(15);
/// How much later than its hook a process may say that it waits, or the other way round. Seen: 0.1 s.
const TOGETHER: Span = Span(300);
/// The most requests of one session. Real ones have one, or one for each sub-agent.
const OPEN_MAX: usize = 32;

/// Where to listen for hooks, and when.
pub struct HookConfig {
    /// The runtime folder.
    pub folder: PathBuf,
    /// Whether the user has installed the bridge.
    pub is_installed: Box<dyn Fn() -> bool + Send>,
    /// Whether no tool of a session that this process runs can have started us.
    pub is_users: fn(u32) -> bool,
    /// Other processes may listen there as well, one at a time: this one begins when it is told to, and not while another
    /// does.
    pub shared: bool,
}

impl fmt::Debug for HookConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookConfig").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The hooks that ask now.
#[derive(Debug)]
pub struct Bridges {
    config: HookConfig,
    check: Check,
    settings: BridgeSettings,
    listener: Option<Listener>,
    open: BTreeMap<ConnectionId, Waiting>,
}

/// A hook that waits for its answer.
#[derive(Debug)]
struct Waiting {
    hook: OpenHook,
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
        Self::checked(config, owner_of)
    }

    pub(super) fn checked(config: HookConfig, check: Check) -> Self {
        Self { config, check, settings: BridgeSettings::default(), listener: None, open: BTreeMap::new() }
    }

    /// Handles a hook that asks, or has gone. Returns its session if there is something new to say of it.
    fn handle(&mut self, event: HookEvent, now: Moment) -> Option<Box<str>> {
        match event {
            HookEvent::Asks(id, hook) => self.ask(id, *hook, now),
            HookEvent::Gone(id) => self.open.remove(&id).map(|gone| gone.hook.hook.asked.session),
        }
    }

    fn ask(&mut self, id: ConnectionId, hook: Hook, now: Moment) -> Option<Box<str>> {
        if !(self.config.is_users)(hook.owner) {
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
        let hook = OpenHook { request, hook, at: now };
        self.open.insert(id, Waiting { hook, was_waiting: false, is_watched: false });
        Some(session)
    }

    /// The hooks of a session that this process runs, the first one first.
    fn of(&self, session: &str, owner: u32) -> impl Iterator<Item = &OpenHook> {
        let its = self.open.values().filter(move |open| open.is_of(session, owner));
        its.map(|open| &open.hook).filter(|open| !open.hook.handle.is_gone())
    }
}

/// An id that no other request has: hooks have none. A UUID, as nothing else becomes a part of a command.
fn new_id() -> Option<Box<str>> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    let (high, low) =
        (u64::from_be_bytes(random[..8].try_into().ok()?), u64::from_be_bytes(random[8..].try_into().ok()?));
    let id = format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0xfff,
        low & 0xffff_ffff_ffff
    );
    Some(id.into())
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
        if !self.config.shared {
            self.update_listener();
        }
    }

    fn update_listener(&mut self) {
        if !(self.config.is_installed)() {
            self.listener = None;
            self.open.clear();
        } else if self.listener.is_none() && !(self.config.shared && is_listened_to(&self.config.folder)) {
            match Listener::serve(&self.config.folder, self.check) {
                Ok(listener) => self.listener = Some(listener),
                Err(error) => log::warn!("hooks cannot reach Pilotlight: {}", cause(&*error)),
            }
        }
    }

    fn poll_news(&mut self, context: &mut Context<'_>, clock: &Clock) -> Poll<BridgeNews> {
        loop {
            let Some(listener) = &mut self.listener else { return Poll::Pending };
            let Poll::Ready(Some(event)) = listener.events.poll_recv(context) else { return Poll::Pending };
            if let Some(session) = self.handle(event, clock.now()) {
                return Poll::Ready(BridgeNews::Of(session));
            }
        }
    }

    fn is_listening(&self) -> bool {
        self.listener.is_some()
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
        let open: Vec<_> = self.of(session, owner).collect();
        if open.is_empty() {
            return None;
        }
        Some(BridgeReport {
            bridge: action::Bridge::Elevated,
            release: None,
            is_other: false,
            approves_all: None,
            questions: open.iter().filter_map(|open| open.asking()).collect(),
            requests: open.iter().filter_map(|open| open.hook.asked.open_request(&open.request, open.at)).collect(),
        })
    }

    fn bridge(&self, session: &str, owner: u32) -> Option<Arc<dyn channel::Bridge>> {
        let open: Vec<_> = self.of(session, owner).cloned().collect();
        (!open.is_empty()).then(|| Arc::new(HookBridge { open }) as _)
    }
}

#[cfg(test)]
mod tests;
