//! The hooks that ask now. Each is open as long as its request is: its plugin lets it go once that was answered.

use super::SOCKET;
use super::asked::Asked;
use super::hook::ANSWERED_WITHIN;
use crate::channel;
use crate::control::{self, BridgeNews, BridgeReport};
use crate::hooks::HookConfig;
use crate::hooks::carry::{HookBridge, OpenHook, report};
use crate::hooks::listener::{ConnectionId, Hook, HookEvent, Listening, parent_of};
use crate::hooks::source::{HookSource, new_id};
use crate::opencode::{FINGERPRINT, NAME};
use pilotlight_core::session::Observed;
use pilotlight_core::time::{Moment, Span};
use pilotlight_system::clock::Clock;
use pilotlight_system::log::{self, private};
use pilotlight_system::process::{birth_of, is_of_our_user};
use rustix::process::{Pid, getsid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

/// How its hooks are listened for.
const LISTENING: Listening<Asked> = Listening {
    socket: SOCKET,
    new_socket: "opencode.new",
    check: owner_of,
    read: Asked::read,
    answers_within: ANSWERED_WITHIN.saturating_add(Duration::from_secs(1)),
};
/// The most requests of one session. The plugin hands over no more.
const OPEN_MAX: usize = 32;
/// How long the report of a session may take to be seen after its hook.
const SEEN_WITHIN: Span = Span::seconds(5);

/// The process of opencode whose plugin started this hook. Each tool leads a session of processes of its own, which it cannot
/// leave for opencode's: so none can be taken for the plugin, even in the place of its own shell.
///
/// # Errors
/// Why it is none.
fn owner_of(hook: u32) -> Result<u32, &'static str> {
    let owner = parent_of(hook, NAME, &FINGERPRINT)?;
    if !is_of_our_user(owner) {
        return Err("its opencode is another user's");
    }
    if leader(hook).is_none_or(|its| leader(owner) != Some(its)) {
        return Err("a tool of opencode's started it");
    }
    Ok(owner)
}

/// The process that leads the session of processes that this one is in.
fn leader(pid: u32) -> Option<Pid> {
    getsid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()
}

/// The hooks that ask now.
#[derive(Debug)]
pub struct Bridges {
    source: HookSource<Asked>,
    open: BTreeMap<ConnectionId, Waiting>,
    /// The session whose hook went last, if we answered that.
    answered: Option<Box<str>>,
}

/// A hook that waits for its answer.
#[derive(Debug)]
struct Waiting {
    hook: OpenHook<Asked>,
    /// When the process that started it started itself, in the system's unit.
    born: u64,
    /// Its session was seen, and is run by the process that started it.
    is_watched: bool,
}

impl Waiting {
    fn is_of(&self, session: &str, owner: u32) -> bool {
        *self.hook.hook.asked.session == *session && self.hook.hook.owner == owner
    }
}

impl Bridges {
    /// Those that connect there, once it begins to listen.
    pub fn at(config: HookConfig) -> Self {
        Self { source: HookSource::new(config, LISTENING), open: BTreeMap::new(), answered: None }
    }

    /// Handles a hook that asks, or has gone. Returns its session if there is something new to say of it.
    fn handle(&mut self, event: HookEvent<Asked>, now: Moment) -> Option<Box<str>> {
        match event {
            HookEvent::Asks(id, hook) => self.ask(id, *hook, now),
            HookEvent::Gone(id) => {
                let OpenHook { hook, is_answered, .. } = self.open.remove(&id)?.hook;
                let session = hook.asked.session;
                self.answered = is_answered.load(Ordering::Relaxed).then(|| session.clone());
                Some(session)
            }
        }
    }

    fn ask(&mut self, id: ConnectionId, hook: Hook<Asked>, now: Moment) -> Option<Box<str>> {
        if !(self.source.config.is_users)(hook.owner) {
            log::warn!("a hook was let go: a tool of its session can have started this Pilotlight");
            return None;
        }
        let session = hook.asked.session.clone();
        // Of a request that is asked anew, the plugin has lost the former hook.
        self.open.retain(|_, open| open.hook.hook.owner != hook.owner || open.hook.hook.asked.id != hook.asked.id);
        if self.open.values().filter(|open| open.is_of(&session, hook.owner)).count() >= OPEN_MAX {
            return None;
        }
        let (request, born) = (new_id()?, birth_of(hook.owner)?);
        log::info!(session = private(&session), "a hook asks");
        let hook = OpenHook { request, hook, at: now, is_answered: Arc::default() };
        self.open.insert(id, Waiting { hook, born, is_watched: false });
        Some(session)
    }

    /// The hooks of a session that this process runs, in the order in which its terminal shows what they ask: by opencode's
    /// ids, which grow. Hooks may overtake each other.
    fn of(&self, session: &str, owner: u32) -> Vec<&OpenHook<Asked>> {
        let born = birth_of(owner);
        let its = self.open.values().filter(|open| open.is_of(session, owner) && Some(open.born) == born);
        let mut its: Vec<_> = its.map(|open| &open.hook).filter(|open| !open.hook.handle.is_gone()).collect();
        its.sort_by(|one, other| one.hook.asked.id.cmp(&other.hook.asked.id));
        its
    }
}

impl control::Bridges for Bridges {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn stays_connected(&self) -> bool {
        false
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
        // The plugin reports its session first: nobody watches one that has no row by now.
        if self.open.values().any(|open| !open.is_watched) {
            let now = clock.now();
            self.open.retain(|_, open| open.is_watched || now.since(open.hook.at) < SEEN_WITHIN);
        }
        Poll::Pending
    }

    fn is_listening(&self) -> bool {
        self.source.is_listening()
    }

    fn has_reported(&self, session: &str) -> bool {
        self.open.values().any(|open| *open.hook.hook.asked.session == *session)
    }

    fn was_answered(&self, session: &str) -> bool {
        self.answered.as_deref() == Some(session)
    }

    fn observe(&mut self, session: &str, observed: &Observed) {
        let Some(owner) = observed.owner.live() else { return };
        self.open.values_mut().filter(|open| open.is_of(session, owner)).for_each(|open| open.is_watched = true);
    }

    fn report(&self, session: &str, owner: u32, _untried: bool) -> Option<BridgeReport> {
        let open = self.of(session, owner);
        report(&open, open.first().map(|first| first.hook.asked.about.clone()))
    }

    fn bridge(&self, session: &str, owner: u32) -> Option<Arc<dyn channel::Bridge>> {
        HookBridge::over(self.of(session, owner).into_iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests;
