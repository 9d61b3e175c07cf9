//! Orders that wait: for the end of their session's log, for another answer to the same session, for an owner that is
//! just exiting, for one that is just starting, for the session's bridge, or for other recoveries.

use super::refuse;
use crate::Engine;
use crate::connections::due_query;
use crate::control::PendingOrder;
use pilotlight_agents::channel::ACTIVITY_TIMEOUT;
use pilotlight_agents::reading::GRACE;
use pilotlight_core::action::{Action, ActionFlag, ServerState};
use pilotlight_core::fleet::{Kind, Session};
use pilotlight_core::order::{OrderReport, Outcome};
use pilotlight_core::owner::{HoldProof, Owner};
use pilotlight_core::session::Key;
use pilotlight_core::time::{Span, Time};
use pilotlight_system::note::Note;
use pilotlight_system::process::{is_ending, is_gone, is_stopped};

/// How long an order waits for the end of its session's log.
const LOG_READ_WITHIN: Span = Span::seconds(5);
/// How long an order waits for an owner that is exiting. A Copilot that uses much memory takes a second.
const OWNER_ENDS_WITHIN: Span = Span::seconds(2);
/// How long an order waits for a server's answer: a second longer than that may take.
const SERVER_ANSWERS_WITHIN: Span = Span(ACTIVITY_TIMEOUT.as_millis() as i64 + 1000);

/// How long an order waits for the bridge to its session. A running bridge connects milliseconds after we begin to
/// listen; on a busy machine it takes longer.
const BRIDGE_CONNECTS_WITHIN: Span = Span::seconds(2);

/// How long an answer waits for others to the same session. Each may wait until its dialog is drawn.
const QUEUED_WITHIN: Span = Span::seconds(120);
/// How long a lock may have no note that says who has it.
const NOTED_WITHIN: Span = Span::seconds(2);
/// How long until a lock of another Pilotlight is tried again.
const LOCK_RETRY: Span = Span(100);

/// An order that waits.
pub(crate) struct PostponedOrder {
    pub(super) pending: PendingOrder,
    pub(super) waits_for: WaitReason,
    /// When the wait ends in any case, by the awake clock.
    pub(super) until: Time,
}

/// How long an order may still wait.
#[derive(Clone, Copy)]
pub(super) enum MayWait {
    /// For anything that there is to wait for.
    ForAnything,
    /// Only for others that answer the same session, here or in another Pilotlight, until this moment.
    InQueue(Time),
}

/// What an order may wait for.
pub(super) enum WaitReason {
    /// That this session's log is read to its end: until then nothing is known of what the session does now. The order
    /// may then wait for something else.
    Log(Key, MayWait),
    /// The exit of this process.
    Exit(u32),
    /// That the process of a new lock of this session holds it, or does not.
    Owner(Key),
    /// The bridge to the session of this id.
    Bridge(Box<str>),
    /// The answer of this silent session's server to the question what the session does.
    Activity(Key),
    /// The end of what is being done with this session.
    Queue(Key),
    /// That fewer recoveries run, for one of this session: it waits for however long they take.
    RecoverySlot(Key),
    /// That another Pilotlight has finished with the session. No system tells when, so it is tried again and again until
    /// this moment, by the awake clock.
    Lock(Time),
}

impl Engine {
    /// When, by the awake clock, the first wait ends.
    pub(crate) fn postponed_until(&self) -> Option<Time> {
        self.postponed.iter().map(|postponed| postponed.until).min()
    }

    /// Fails all waiting orders, at exit.
    pub(crate) fn fail_postponed(&mut self) {
        for postponed in self.postponed.drain(..) {
            postponed
                .pending
                .report(OrderReport::End(Outcome::Failed("Pilotlight is ending; nothing was sent".into())));
        }
    }

    /// Tries the orders again whose wait is over.
    pub(crate) fn retry_postponed(&mut self) {
        let now = self.world.now().awake;
        // One at a time: of those that wait for each other, the first keeps the next waiting.
        while let Some(due) = self.postponed.iter().position(|it| it.until <= now || self.is_over(&it.waits_for)) {
            let PostponedOrder { pending, waits_for, until } = self.postponed.remove(due);
            let end = match waits_for {
                WaitReason::Log(key, may_wait) => {
                    self.go_on_after_log(pending, &key, may_wait);
                    continue;
                }
                WaitReason::RecoverySlot(key) => {
                    self.world.update_control(&key, |control| control.under_way = None);
                    self.handle_order(pending);
                    continue;
                }
                WaitReason::Lock(end) => end,
                WaitReason::Queue(_) => until,
                // Several may have waited for the same.
                WaitReason::Exit(_) | WaitReason::Owner(_) | WaitReason::Bridge(_) | WaitReason::Activity(_) => {
                    now + QUEUED_WITHIN
                }
            };
            self.run_or_postpone(pending, MayWait::InQueue(end));
        }
    }

    /// Whether what an order waits for has happened.
    fn is_over(&self, waits_for: &WaitReason) -> bool {
        match waits_for {
            WaitReason::Log(key, _) => !self.disk.agenda.is_reading(key),
            WaitReason::Exit(pid) => !is_ending(*pid),
            WaitReason::Owner(key) => self.world.fleet.is_settled(key),
            WaitReason::Bridge(session) => self.connections.has_bridge_reported(session),
            WaitReason::Activity(key) => {
                self.world.fleet.get(key).is_none_or(|entry| !entry.session().liveness.querying_server)
            }
            WaitReason::Queue(key) => !self.connections.tasks.is_busy(key),
            WaitReason::RecoverySlot(_) => self.connections.tasks.has_room(Action::Reconnect),
            WaitReason::Lock(_) => false,
        }
    }

    /// How an action waits for another Pilotlight that answers the same session, by the note in its lock. `None` if it
    /// must not wait: the other one does something else, or stands still.
    pub(super) fn wait_for_lock(
        &self,
        action: Action,
        note: Option<&Note>,
        may_wait: MayWait,
    ) -> Option<(WaitReason, Time)> {
        let now = self.world.now().awake;
        let is_queued = |action: Option<Action>| action.is_some_and(|action| action.is(ActionFlag::Queued));
        let is_answer = is_queued(Some(action))
            && note.is_none_or(|note| is_queued(Action::named(&note.doing)) && !is_stopped(note.process));
        let end = match may_wait {
            MayWait::ForAnything => now + QUEUED_WITHIN,
            MayWait::InQueue(end) => end,
        };
        // The holder writes its note just after it has the lock.
        let latest = if note.is_none() { end - (QUEUED_WITHIN - NOTED_WITHIN) } else { end };
        (is_answer && now < latest).then(|| (WaitReason::Lock(end), end.min(now + LOCK_RETRY)))
    }

    /// Until when, by the awake clock, an order waits for the end of its session's log, which is read on now: after a start
    /// the log may be long, or the machine busy.
    pub(super) fn log_deadline(&mut self, key: &Key, may_wait: MayWait) -> Option<Time> {
        self.read_session_now(key);
        let latest = self.world.now().awake + LOG_READ_WITHIN;
        self.disk.agenda.is_reading(key).then(|| match may_wait {
            MayWait::ForAnything => latest,
            MayWait::InQueue(end) => latest.min(end),
        })
    }

    /// Goes on with an order whose session's log was read to its end, and refuses any other.
    fn go_on_after_log(&mut self, pending: PendingOrder, key: &Key, may_wait: MayWait) {
        if !self.disk.agenda.is_reading(key) {
            return self.run_or_postpone(pending, may_wait);
        }
        let why = "its log is long, and still being read, so nothing was sent: try again in a moment";
        refuse(&pending, why);
    }

    /// Until when, by the awake clock, an order waits for a bridge: if the session may have one that is not connected.
    pub(super) fn bridge_deadline(&mut self, key: &Key, action: Action) -> Option<Time> {
        if !action.is(ActionFlag::OverBridge)
            || !self.connections.may_connect(self.world.fleet.get(key)?.session())
            || self.connections.has_bridge_reported(&key.id)
        {
            return None;
        }
        self.connections.find_server(&mut self.world, &self.disk, key);
        let session = self.world.fleet.get(key)?.session();
        let may_have_bridge = session.observed.owner.live().is_some() && session.observed.about.kind == Kind::Terminal;
        let is_expected = may_have_bridge && session.control.server == ServerState::NotListening;
        is_expected.then(|| self.world.now().awake + BRIDGE_CONNECTS_WITHIN)
    }

    /// Until when, by the awake clock, a recovery waits for what a silent session's server says: it stops a turn only if
    /// that is not known to work or to wait. This does not depend on whether a tray, or the settings, ask by themselves:
    /// the order contacts that server anyway.
    pub(super) fn activity_deadline(&mut self, key: &Key, action: Action) -> Option<Time> {
        let entry = self.world.fleet.get(key).filter(|_| action.is(ActionFlag::Counted))?;
        let session = entry.session();
        let wanted = due_query(session, entry.verdict.status).filter(|_| session.answer().is_none());
        if let Some(((pid, _), progress)) = wanted
            && !session.liveness.querying_server
        {
            self.connections.query_process(&mut self.world, &self.disk, pid, vec![(key.clone(), progress)]);
        }
        let is_asked = self.world.fleet.get(key).is_some_and(|entry| entry.session().liveness.querying_server);
        is_asked.then(|| self.world.now().awake + SERVER_ANSWERS_WITHIN)
    }

    /// Why an order that was refused may soon be possible, and until when, by the awake clock, it may wait for that.
    pub(super) fn reason_to_wait(&self, key: &Key, action: Action, may_wait: MayWait) -> Option<(WaitReason, Time)> {
        let (session, now) = (self.world.fleet.get(key)?.session(), self.world.now().awake);
        if action.is(ActionFlag::Queued) && session.control.under_way.is_some_and(|other| other.is(ActionFlag::Queued))
        {
            let end = match may_wait {
                MayWait::ForAnything => now + QUEUED_WITHIN,
                MayWait::InQueue(end) => end,
            };
            return (now < end).then(|| (WaitReason::Queue(key.clone()), end));
        }
        if matches!(may_wait, MayWait::InQueue(_)) {
            return None;
        }
        if session.observed.held == HoldProof::Pending {
            return Some((WaitReason::Owner(key.clone()), now + GRACE));
        }
        if let Some(another) = self.session_being_opened(session, action) {
            return Some((WaitReason::Owner(another.clone()), now + GRACE));
        }
        self.ending_owner(key, action).map(|pid| (WaitReason::Exit(pid), now + OWNER_ENDS_WITHIN))
    }

    /// The other session that a session's owner is just opening, if the action is to end that owner.
    pub(super) fn session_being_opened(&self, session: &Session, action: Action) -> Option<&Key> {
        let pid = session.observed.owner.pid().filter(|_| action.is(ActionFlag::EndsOwner))?;
        self.world.fleet.being_opened_by(pid)
    }

    /// Whether ending the session's owner would end another session, which that owner has open or is just opening.
    pub(super) fn would_end_another(&self, session: &Session, action: Action) -> bool {
        action.is(ActionFlag::EndsOwner)
            && (session.control.other_sessions > 0 || self.session_being_opened(session, action).is_some())
    }

    /// The owner, if it is exiting or has exited since it was read, and the action can resume a session without one.
    fn ending_owner(&self, key: &Key, action: Action) -> Option<u32> {
        let (Owner::Alive { pid, .. } | Owner::Opened { pid, .. } | Owner::Unknown { pid }) =
            self.world.fleet.get(key)?.session().runner()
        else {
            return None;
        };
        let is_exiting = || is_ending(pid) || is_gone(pid, self.world.now().wall);
        (action.is(ActionFlag::Recovery) && is_exiting()).then_some(pid)
    }
}
