//! Orders that wait: for an owner that is just exiting, for one that is just starting, or for the session's bridge.

use crate::agent::copilot::owner::GRACE;
use crate::core::action::{Action, ServerState, Trait};
use crate::core::fleet::{Kind, Session};
use crate::core::owner::{Held, Owner};
use crate::core::session::Key;
use crate::core::time::{Span, Time};
use crate::engine::parts::orders::WaitFor;
use crate::engine::{Changes, Engine};
use crate::system::process::{is_ending, is_gone};

/// How long an order waits for an owner that is exiting. A Copilot that uses much memory takes a second.
const OWNER_ENDS_WITHIN: Span = Span::seconds(2);

impl Engine {
    /// Tries the orders again whose wait is over.
    pub(in crate::engine) fn retry_postponed(&mut self, changes: &mut Changes) {
        let now = self.clock.now().awake;
        let (bridges, fleet) = (&self.bridges, &self.fleet);
        let is_over = |waits_for: &WaitFor| match waits_for {
            WaitFor::End(pid) => !is_ending(*pid),
            WaitFor::Owner(key) => fleet.is_settled(key),
            WaitFor::Bridge(session) => bridges.has_reported(session),
        };
        let due: Vec<_> = self
            .orders
            .postponed
            .extract_if(.., |postponed| postponed.until <= now || is_over(&postponed.waits_for))
            .collect();
        for postponed in due {
            self.run_or_postpone(postponed.pending, false, changes);
        }
    }

    /// Until when, by the awake clock, an order waits for a bridge: only if we have just begun to listen and the
    /// session may have a bridge.
    pub(super) fn bridge_deadline(&mut self, key: &Key, action: Action) -> Option<Time> {
        let until = self.bridges.connect_until().filter(|until| *until > self.clock.now().awake)?;
        if !action.is(Trait::OverBridge) || self.bridges.has_reported(&key.1) {
            return None;
        }
        self.find_server(key);
        let session = self.fleet.get(key)?.session();
        let may_have_bridge = session.owner.live().is_some() && session.about.kind == Kind::Terminal;
        (may_have_bridge && session.control.server == ServerState::NotListening).then_some(until)
    }

    /// Why an order that was refused may soon be possible, and how long it may wait for that.
    pub(super) fn reason_to_wait(&self, key: &Key, action: Action) -> Option<(WaitFor, Span)> {
        let session = self.fleet.get(key)?.session();
        if session.held == Held::Pending {
            return Some((WaitFor::Owner(key.clone()), GRACE));
        }
        if let Some(another) = self.session_being_opened(session, action) {
            return Some((WaitFor::Owner(another.clone()), GRACE));
        }
        self.ending_owner(key, action).map(|pid| (WaitFor::End(pid), OWNER_ENDS_WITHIN))
    }

    /// The other session that a session's owner is just opening, if the action is to end that owner.
    pub(super) fn session_being_opened(&self, session: &Session, action: Action) -> Option<&Key> {
        let pid = session.owner.pid().filter(|_| action.is(Trait::EndsOwner))?;
        self.fleet.being_opened_by(pid)
    }

    /// Whether ending the session's owner would end another session, which that owner has open or is just opening.
    pub(super) fn would_end_another(&self, session: &Session, action: Action) -> bool {
        action.is(Trait::EndsOwner)
            && (session.control.other_sessions > 0 || self.session_being_opened(session, action).is_some())
    }

    /// The owner, if it is exiting or has exited since it was read, and the action can resume a session without one.
    fn ending_owner(&self, key: &Key, action: Action) -> Option<u32> {
        let (Owner::Alive { pid, .. } | Owner::Opened { pid, .. } | Owner::Unknown { pid }) =
            self.fleet.get(key)?.session().runner()
        else {
            return None;
        };
        let is_exiting = || is_ending(pid) || is_gone(pid, self.clock.now().wall);
        (action.is(Trait::Recovery) && is_exiting()).then_some(pid)
    }
}
