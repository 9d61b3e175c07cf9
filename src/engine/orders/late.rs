//! Orders that wait for something to happen: for an owner that is just ending, or that is just coming, or for its bridge.

use super::Orders;
use crate::agent::copilot::owner::GRACE;
use crate::core::action::{Action, ServerState};
use crate::core::fleet::{Kind, Session};
use crate::core::order::{Given, Outcome, Report};
use crate::core::owner::{Held, Owner};
use crate::core::time::{Span, Time};
use crate::engine::resumed::makes_an_owner;
use crate::engine::{Engine, Key, Round};
use crate::system::process::{is_ending, is_gone};

/// How long an order waits for an owner that is just ending. A Copilot with much in its memory takes a second.
const ENDS_WITHIN: Span = Span::seconds(2);

/// An order that waits for something to happen.
pub(super) struct Late {
    pub(super) given: Given,
    pub(super) for_what: For,
    /// Until when, by the awake clock.
    pub(super) until: Time,
}

impl Orders {
    /// When, by the awake clock, an order was waited for long enough.
    pub(in crate::engine) fn wake_at(&self) -> Option<Time> {
        self.late.iter().map(|late| late.until).min()
    }

    /// Those that waited were not begun, and are not any more.
    pub(in crate::engine) fn refuse_late(&mut self) {
        for late in self.late.drain(..) {
            late.given.report(Report::End(Outcome::Failed("Pilotlight is ending; nothing was sent".into())));
        }
    }
}

/// What an order may wait for.
pub(super) enum For {
    /// This owner's end.
    End(u32),
    /// A look that tells whether the process of a new lock of this session holds it.
    Owner(Key),
    /// The bridge to the session of this id.
    Bridge(Box<str>),
}

/// What a bridge does.
const fn is_for_a_bridge(action: Action) -> bool {
    matches!(
        action,
        Action::Approve | Action::Deny | Action::Answer | Action::Continue | Action::Stop | Action::LetAnswer
    )
}

impl Engine {
    /// Goes on with the orders whose session's owner has gone, or was waited for long enough.
    pub(in crate::engine) fn act_late(&mut self, round: &mut Round) {
        let now = self.clock.now().awake;
        let (bridges, fleet) = (&self.bridges, &self.fleet);
        let has_passed = |for_what: &For| match for_what {
            For::End(pid) => !is_ending(*pid),
            For::Owner(key) => fleet.is_settled(key),
            For::Bridge(session) => bridges.has_told(session),
        };
        let due: Vec<_> =
            self.orders.late.extract_if(.., |late| late.until <= now || has_passed(&late.for_what)).collect();
        for late in due {
            self.act_or_wait(late.given, false, round);
        }
    }

    /// Until when, by the awake clock, a bridge is waited for, where we have only just begun to listen and one may come.
    pub(super) fn bridge_comes_until(&mut self, key: &Key, action: Action) -> Option<Time> {
        let until = self.bridges.come_until.filter(|until| *until > self.clock.now().awake)?;
        if !is_for_a_bridge(action) || self.bridges.has_told(&key.1) {
            return None;
        }
        self.reach(key);
        let session = self.fleet.get(key)?.session();
        let may_have_one = session.owner.live().is_some() && session.about.kind == Kind::Terminal;
        (may_have_one && session.control.server == ServerState::Nowhere).then_some(until)
    }

    /// What the refusal of an order may rest on that is soon over, and how soon.
    pub(super) fn what_passes(&self, key: &Key, action: Action) -> Option<(For, Span)> {
        let session = self.fleet.get(key)?.session();
        if session.held == Held::Soon {
            return Some((For::Owner(key.clone()), GRACE));
        }
        if let Some(another) = self.opens_another(session, action) {
            return Some((For::Owner(another.clone()), GRACE));
        }
        self.ending_owner(key, action).map(|pid| (For::End(pid), ENDS_WITHIN))
    }

    /// The other session that a session's owner is just opening, where that one is to be ended.
    pub(super) fn opens_another(&self, session: &Session, action: Action) -> Option<&Key> {
        let pid = session.owner.pid().filter(|_| matches!(action, Action::End | Action::ForceQuit))?;
        self.fleet.opened_soon_by(pid)
    }

    /// Whether the owner of a session that is to be ended has another one open by now, or is just opening it.
    pub(super) fn would_end_another(&self, session: &Session, action: Action) -> bool {
        matches!(action, Action::End | Action::ForceQuit)
            && (session.control.others > 0 || self.opens_another(session, action).is_some())
    }

    /// The process of an owner that is just ending, or has ended since it was looked at, where a session without one could be
    /// resumed.
    fn ending_owner(&self, key: &Key, action: Action) -> Option<u32> {
        let (Owner::Alive { pid, .. } | Owner::Opened { pid, .. } | Owner::Unknown { pid }) =
            self.fleet.get(key)?.session().runner()
        else {
            return None;
        };
        let ends = || is_ending(pid) || is_gone(pid, self.clock.now().wall);
        (makes_an_owner(action) && ends()).then_some(pid)
    }
}
