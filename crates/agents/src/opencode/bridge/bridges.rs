//! The hooks that ask now. Each is open as long as its request is: its plugin lets it go once that was answered.

use super::SOCKET;
use super::asked::Asked;
use super::hook::ANSWERED_WITHIN;
use crate::channel;
use crate::control::{self, BridgeNews, BridgeReport};
use crate::hooks::HookConfig;
use crate::hooks::carry::{HookBridge, OpenHook, report};
use crate::hooks::left::Left;
use crate::hooks::listener::{ConnectionId, Hook, HookEvent, Listening, parent_of};
use crate::hooks::source::{HookSource, new_id};
use crate::opencode::{FINGERPRINT, NAME};
use crate::reported::Process;
use pilotlight_core::session::{LetGo, Observed};
use pilotlight_core::time::{Moment, Span};
use pilotlight_core::verdict::hook_report::HookActivity;
use pilotlight_system::clock::Clock;
use pilotlight_system::log::{self, private};
use pilotlight_system::process::is_of_our_user;
use rustix::process::{Pid, getsid};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

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
/// The most requests of which it is remembered that two hooks asked for them.
const DOUBTFUL_MAX: usize = 64;
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
    /// The processes of opencode that sessions were first seen with, as long as they live.
    owners: BTreeMap<Box<str>, Process>,
    /// The requests that two hooks asked for, by their process: it is not known which is opencode's.
    doubtful: VecDeque<(Process, Box<str>)>,
    left: Left,
    /// Wakes the loop when a hook has waited for long for its session to be seen.
    seen_by: Option<Pin<Box<Sleep>>>,
}

/// A hook that waits for its answer.
#[derive(Debug)]
struct Waiting {
    hook: OpenHook<Asked>,
    /// The process that started it.
    process: Process,
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
        Self {
            source: HookSource::new(config, LISTENING),
            open: BTreeMap::new(),
            answered: None,
            owners: BTreeMap::new(),
            doubtful: VecDeque::new(),
            left: Left::default(),
            seen_by: None,
        }
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
        let (session, owner) = (hook.asked.session.clone(), hook.owner);
        let process = Process::of(owner)?;
        // Of a request that is asked anew, the plugin has lost the former hook. Where that is still there, one is not the plugin's.
        let is_same = |open: &Waiting| open.hook.hook.owner == owner && open.hook.hook.asked.id == hook.asked.id;
        let has_two = self.open.values().any(|open| is_same(open) && !open.hook.hook.handle.is_gone());
        self.open.retain(|_, open| !is_same(open));
        let doubt = (process, hook.asked.id.clone());
        if has_two || self.doubtful.contains(&doubt) {
            log::warn!(session = private(&session), "hooks were let go: two ask for one request");
            if has_two {
                self.doubtful.truncate(DOUBTFUL_MAX - 1);
                self.doubtful.push_front(doubt);
            }
            self.left.note(&session, owner, LetGo::TwoAsk, now.wall);
            return Some(session);
        }
        if self.open.values().filter(|open| open.is_of(&session, owner)).count() >= OPEN_MAX {
            return None;
        }
        let opened = OpenHook::new(new_id()?, hook, now, &self.source.config.memory);
        let Some(hook) = self.left.note_unless_opened(&session, owner, now.wall, opened) else { return Some(session) };
        self.left.forget(&session, None);
        self.open.insert(id, Waiting { hook, process, is_watched: false });
        Some(session)
    }

    /// Whether two processes of opencode say that a session is theirs: this one, and one that it was seen with before and that lives.
    fn is_contested(&mut self, session: &str, owner: u32) -> bool {
        let Some(process) = Process::of(owner) else { return false };
        match self.owners.get(session) {
            Some(known) if *known == process => false,
            Some(known) if known.is_there() => true,
            _ => {
                self.owners.retain(|_, known| known.is_there());
                if FINGERPRINT.is_run_by(owner) {
                    self.owners.insert(session.into(), process);
                }
                false
            }
        }
    }

    /// Lets go the hooks of sessions that nobody has seen for long: the plugin reports its session first.
    fn poll_unseen(&mut self, context: &mut Context<'_>, clock: &Clock) {
        loop {
            let now = clock.now();
            self.open.retain(|_, open| open.is_watched || now.since(open.hook.at) < SEEN_WITHIN);
            let unseen = self.open.values().filter(|open| !open.is_watched).map(|open| now.since(open.hook.at)).max();
            let Some(longest) = unseen else { return self.seen_by = None };
            let left = (SEEN_WITHIN - longest).max(Span(1)).to_std();
            let timer = self.seen_by.get_or_insert_with(|| Box::pin(sleep(left)));
            if timer.as_mut().poll(context).is_pending() {
                return;
            }
            self.seen_by = None;
        }
    }

    /// The hooks of a session that this process runs, in the order in which its terminal shows what they ask: by opencode's
    /// ids, which grow. Hooks may overtake each other.
    fn of(&self, session: &str, owner: u32) -> Vec<&OpenHook<Asked>> {
        let process = Process::of(owner);
        let its = self.open.values().filter(|open| open.is_of(session, owner) && Some(open.process) == process);
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
        self.poll_unseen(context, clock);
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
        if self.is_contested(session, owner) || observed.contested {
            return self.open.retain(|_, open| *open.hook.hook.asked.session != *session);
        }
        let goes_on = observed.hook_report.as_ref().filter(|told| told.said != HookActivity::Blocked);
        if let Some(told) = goes_on {
            self.left.forget(session, Some(told.since));
        }
        self.open.values_mut().filter(|open| open.is_of(session, owner)).for_each(|open| open.is_watched = true);
    }

    fn report(&self, session: &str, owner: u32, _untried: bool) -> Option<BridgeReport> {
        let open = self.of(session, owner);
        report(&open, open.first().map(|first| first.hook.asked.about.clone()))
    }

    fn let_go(&self, session: &str, owner: u32) -> Option<LetGo> {
        self.left.why(session, owner)
    }

    fn bridge(&self, session: &str, owner: u32) -> Option<Arc<dyn channel::Bridge>> {
        HookBridge::over(self.of(session, owner).into_iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests;
