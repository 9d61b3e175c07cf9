//! The hooks that ask now, and when each is let go.
//!
//! Nothing tells a hook that its request was answered in the terminal, but the process's own file does: it leaves
//! `waiting`. A session asks for one thing after the other, so that the next request says the same, but only once its process
//! waits anew: any tool of a session may call a hook in its name, and takes nothing's place. Which of two hooks is the session's
//! own is not guessed. Sub-agents ask beside it, and their dialogs appear only once their hooks have ended.

use super::asked::Asked;
use super::{AGENT, SOCKET};
use crate::channel;
use crate::claude_code::adapter::PROFILE;
use crate::claude_code::running::FINGERPRINT;
use crate::control::{self, BridgeNews, BridgeReport, BridgeSettings};
use crate::hooks::HookConfig;
use crate::hooks::carry::{HookBridge, OpenHook, report};
use crate::hooks::left::Left;
use crate::hooks::listener::{ConnectionId, Hook, HookEvent, Listening, parent_of};
use crate::hooks::source::{HookSource, new_id};
use pilotlight_core::session::{LetGo, Observed};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::verdict::reported_state::State;
use pilotlight_system::clock::Clock;
use pilotlight_system::log::{self, private};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

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
/// How late a process may say that it waits for what was shown first.
const WAITS_WITHIN: Span = Span::seconds(2);
/// How long after its process began to wait a hook may be started.
const STARTS_WITHIN: Span = Span::seconds(10);
/// For how long a hook that asks beside another is kept, to see which of them its process waits for.
const SETTLES_WITHIN: Span = Span::seconds(2);
/// Of two hooks that came within this time of each other, each may be the one that is not the session's own.
const AT_ONCE: Span = Span::seconds(1);
/// The most requests of one session. Real ones have one, or one for each sub-agent.
const OPEN_MAX: usize = 32;

/// The hooks that ask now.
#[derive(Debug)]
pub struct Bridges {
    source: HookSource<Asked>,
    settings: BridgeSettings,
    open: BTreeMap<ConnectionId, Waiting>,
    left: Left,
    /// Wakes the loop when it must be known which of two hooks is the session's own.
    settles: Option<Pin<Box<Sleep>>>,
}

/// A hook that waits for its answer.
#[derive(Debug)]
struct Waiting {
    hook: OpenHook<Asked>,
    /// It asks beside another hook of its session, and is not shown until its process waits anew since then.
    beside: Option<Time>,
    /// Since when its process was first seen to wait for it.
    wait: Option<Time>,
    /// A session that is watched is run by the process that started it.
    is_watched: bool,
}

fn apart(one: Time, other: Time) -> Span {
    (one - other).max(other - one)
}

impl Waiting {
    fn is_of(&self, session: &str, owner: u32) -> bool {
        *self.hook.hook.asked.session == *session && self.hook.hook.owner == owner
    }

    const fn is_sub_agents(&self) -> bool {
        self.hook.hook.asked.sub_agent.is_some()
    }

    /// Whether it was answered in the terminal, by what its process says.
    fn is_over(&self, observed: &Observed) -> bool {
        let Some(reported) = observed.reported_state.as_ref().filter(|_| !self.is_sub_agents()) else { return false };
        let (since, asked) = (reported.since.wall, self.hook.hook.at);
        match reported.state {
            State::Waiting(_) => false,
            State::Busy => self.wait.is_some() || since > asked + TOGETHER,
            State::Idle { .. } | State::Ended => self.wait.is_some() || since > asked,
        }
    }

    /// Since when its process waits for it, as far as is known.
    fn waited_since(&self) -> Time {
        self.wait.unwrap_or(self.hook.hook.at)
    }

    /// How long after its process began to wait it asked, or the other way round.
    fn apart(&self, since: Time) -> Span {
        apart(self.hook.hook.at, since)
    }

    /// Whether its process, which waits since then, may wait for it.
    fn may_be_waited_for(&self, since: Time) -> bool {
        let asked = self.hook.hook.at;
        since <= asked + AT_ONCE && asked <= since + STARTS_WITHIN
    }
}

impl Bridges {
    /// Those that connect there, once it begins to listen.
    pub fn at(config: HookConfig) -> Self {
        let source = HookSource::new(config, LISTENING);
        Self {
            source,
            settings: BridgeSettings::default(),
            open: BTreeMap::new(),
            left: Left::default(),
            settles: None,
        }
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
        let (session, owner) = (hook.asked.session.clone(), hook.owner);
        let held = self.settings.hold_sub_agents.min(HELD_MAX);
        let is_sub_agents = hook.asked.sub_agent.is_some();
        if is_sub_agents && held > Span::ZERO {
            hook.handle.hold(held.to_std());
        } else if is_sub_agents {
            return None;
        }
        if self.open.values().filter(|open| open.is_of(&session, owner)).count() >= OPEN_MAX {
            return None;
        }
        let opened = OpenHook::new(new_id()?, hook, now, &self.source.config.memory);
        let Some(hook) = self.left.note_unless_opened(&session, owner, now.wall, opened) else { return Some(session) };
        // So it does where it is not known which of two was its own.
        let unclear = self.left.at(&session, owner, LetGo::TwoAsk);
        let others = self.mains(&session, owner).map(|(_, open)| open.waited_since());
        let beside = others.chain(unclear).max().filter(|_| !is_sub_agents);
        if beside.is_some() {
            self.wake_to_settle(SETTLES_WITHIN);
        } else {
            self.left.forget(&session, None);
        }
        self.open.insert(id, Waiting { hook, beside, wait: None, is_watched: false });
        Some(session)
    }

    /// The hooks of a session itself, which this process runs.
    fn mains(&self, session: &str, owner: u32) -> impl Iterator<Item = (ConnectionId, &Waiting)> {
        let its = self.open.iter().filter(move |(_, open)| !open.is_sub_agents() && open.is_of(session, owner));
        its.map(|(id, open)| (*id, open))
    }

    /// Shows the hook for which a session's process waits now, if it asked beside another one: that one is over, as its process waits
    /// anew, since then.
    fn settle(&mut self, session: &str, owner: u32, waits: Time) {
        let nearest = self.mains(session, owner).filter(|(_, open)| open.beside.is_some());
        let nearest = nearest.map(|(_, open)| open.apart(waits)).min();
        let shown = self.mains(session, owner).find(|(_, open)| open.beside.is_none()).map(|(id, _)| id);
        let shown = shown.and_then(|id| Some((id, self.open.get_mut(&id)?)));
        let shown = shown.map(|(id, open)| {
            let asked = open.hook.hook.at;
            let fits = waits + TOGETHER >= asked && waits <= asked + WAITS_WITHIN;
            if open.wait.is_none() && fits && nearest.is_none_or(|nearest| nearest >= open.apart(waits)) {
                open.wait = Some(waits);
            }
            (id, asked, open.wait)
        });
        let before = shown.map(|(_, asked, wait)| wait.unwrap_or(asked));
        for open in self.open.values_mut().filter(|open| open.is_of(session, owner)) {
            open.beside = open.beside.map(|since| before.map_or(since, |before| since.max(before)));
        }
        // Which of two that came together is the one that its process waits for, nobody knows.
        let is_apart = |open: &Waiting| match shown {
            Some((_, asked, None)) => apart(open.hook.hook.at, asked) >= AT_ONCE,
            _ => true,
        };
        let is_anew = |open: &Waiting| open.beside.is_some_and(|before| waits > before);
        let is_next = |open: &Waiting| is_anew(open) && open.may_be_waited_for(waits) && is_apart(open);
        let next: Vec<_> = self.mains(session, owner).filter(|(_, open)| is_next(open)).map(|(id, _)| id).collect();
        // Of several, it is not known which.
        let [next] = next[..] else { return };
        shown.map(|(id, ..)| self.open.remove(&id));
        if let Some(next) = self.open.get_mut(&next) {
            (next.beside, next.wait) = (None, Some(waits));
            self.left.forget(session, None);
        }
    }

    /// Lets a hook go that has asked beside another one for long: its process waits for the other one. What came at the same time
    /// may be either's: both are left to the terminal. Returns its session.
    fn let_go_beside(&mut self, now: Moment) -> Option<Box<str>> {
        let is_due = |open: &Waiting| open.beside.is_some() && now.since(open.hook.at) >= SETTLES_WITHIN;
        let (id, due) = self.open.iter().find(|(_, open)| is_due(open))?;
        let (id, at, session, owner) =
            (*id, due.hook.hook.at, due.hook.hook.asked.session.clone(), due.hook.hook.owner);
        let is_at_once = |other: Time| apart(at, other) < AT_ONCE;
        let is_shown = self.mains(&session, owner).any(|(_, open)| open.beside.is_none());
        let others = self.mains(&session, owner).filter(|(other, open)| *other != id && is_at_once(open.hook.hook.at));
        let others: Vec<_> = others.map(|(other, _)| other).collect();
        log::warn!(session = private(&session), "a hook was let go: another one asks for its session");
        self.open.remove(&id);
        if !others.is_empty() || !is_shown {
            others.iter().for_each(|other| drop(self.open.remove(other)));
            self.left.note(&session, owner, LetGo::TwoAsk, now.wall);
        }
        Some(session)
    }

    /// Has the loop look again once a hook has asked beside another one for long.
    fn wake_to_settle(&mut self, after: Span) {
        if self.settles.is_none() {
            self.settles = Some(Box::pin(sleep(after.to_std())));
        }
    }

    /// Lets a hook go that has asked beside another one for long. Returns its session.
    fn poll_beside(&mut self, context: &mut Context<'_>, clock: &Clock) -> Option<Box<str>> {
        loop {
            if self.settles.as_mut()?.as_mut().poll(context).is_pending() {
                return None;
            }
            self.settles = None;
            let now = clock.now();
            let gone = self.let_go_beside(now);
            let beside = self.open.values().filter(|open| open.beside.is_some());
            if let Some(longest) = beside.map(|open| now.since(open.hook.at)).max() {
                self.wake_to_settle((SETTLES_WITHIN - longest).max(Span(1)));
            }
            if gone.is_some() {
                return gone;
            }
        }
    }

    /// The hooks of a session that this process runs, the first one first.
    fn of(&self, session: &str, owner: u32) -> impl Iterator<Item = &OpenHook<Asked>> {
        let its = self.open.values().filter(move |open| open.is_of(session, owner) && open.beside.is_none());
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

    fn socket(&self) -> Option<PathBuf> {
        self.source.socket()
    }

    fn renew_socket(&mut self) {
        self.source.renew();
    }

    fn poll_news(&mut self, context: &mut Context<'_>, clock: &Clock) -> Poll<BridgeNews> {
        while let Poll::Ready(event) = self.source.poll(context) {
            if let Some(session) = self.handle(event, clock.now()) {
                return Poll::Ready(BridgeNews::Of(session));
            }
        }
        match self.poll_beside(context, clock) {
            Some(session) => Poll::Ready(BridgeNews::Of(session)),
            None => Poll::Pending,
        }
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
        if observed.contested {
            // Whoever it is that asks: two processes have the session.
            self.open.retain(|_, open| *open.hook.hook.asked.session != *session);
        }
        let waits = observed.reported_state.as_ref().map(|reported| (reported.state, reported.since.wall));
        match waits {
            Some((State::Waiting(_), since)) => self.settle(session, owner, since),
            Some((_, since)) => self.left.forget(session, Some(since)),
            // It does not tell for which of them it waits.
            None if self.mains(session, owner).any(|(_, open)| open.beside.is_some()) => {
                let asked = self.mains(session, owner).map(|(_, open)| open.hook.at.wall).max().unwrap_or_default();
                self.open.retain(|_, open| open.is_sub_agents() || !open.is_of(session, owner));
                self.left.note(session, owner, LetGo::TwoAsk, asked);
            }
            None => {}
        }
    }

    fn forget_unwatched(&mut self, session: &str) {
        self.open.retain(|_, open| *open.hook.hook.asked.session != *session || open.is_watched);
    }

    fn report(&self, session: &str, owner: u32, _untried: bool) -> Option<BridgeReport> {
        report(&self.of(session, owner).collect::<Vec<_>>(), None)
    }

    fn let_go(&self, session: &str, owner: u32) -> Option<LetGo> {
        self.left.why(session, owner)
    }

    fn bridge(&self, session: &str, owner: u32) -> Option<Arc<dyn channel::Bridge>> {
        HookBridge::over(self.of(session, owner).cloned().collect())
    }
}

#[cfg(test)]
mod tests;
