//! What is done without an order: sessions go on, or are reconnected, where the user has set that.

use crate::core::action::{Action, is_bridged, offer};
use crate::core::order::{Ask, Given, Order};
use crate::core::session::Facts;
use crate::core::verdict::Status;
use crate::engine::{Engine, Round};
use tokio::sync::mpsc;

impl Engine {
    /// Has sessions go on whose turn is over by now, where that was asked for; and reconnects those that lost their permissions,
    /// where the user has set that, once for each loss, when the turn that was denied is over.
    pub(in crate::engine) fn reconnect_by_itself(&mut self, wanted: bool, round: &mut Round) {
        let auto_reconnect = wanted && self.config.actions.auto_reconnect;
        let (now, limits) = (self.clock.now(), self.config.limits);
        let is_over = |facts: &Facts| facts.turn.is_none() || facts.lapse(now, &limits).is_some();
        let mut due = Vec::new();
        for (key, entry) in self.fleet.entries() {
            let (session, status) = (entry.session(), entry.verdict.status);
            let (facts, control) = (&session.facts, &session.control);
            // A prompt is typed into a terminal by a click alone.
            if control.under_way.is_some() || is_bridged(session) {
                continue;
            }
            if let Some(marks) = control.goes_on {
                let went_on = (marks.prompt, marks.aborted) != (facts.marks.prompt, facts.marks.aborted);
                if went_on || is_over(facts) {
                    let wanted = !went_on && facts.is_left_undone(session.live.left_undone);
                    due.push((key.clone(), wanted.then_some(Ask::Continue)));
                }
            } else if auto_reconnect && status == Status::PermissionLost && is_over(facts) {
                let since = facts.denials.since().map(|since| since.wall);
                let resends = self.config.actions.resend && offer(Action::Continue, session, status).is_ok();
                let ask = if resends { Ask::Continue } else { Ask::Reconnect { resend: false } };
                if since != self.acting.by_itself.get(key).copied() && offer(ask.action(), session, status).is_ok() {
                    due.push((key.clone(), Some(ask)));
                }
            }
        }
        for (key, ask) in due {
            let Some(facts) = self.fleet.get(&key).map(|entry| &entry.session().facts) else { continue };
            if let Some(ask) = ask {
                let (order, since) = (Order::new(&key.1, ask).on(facts.root.as_deref()), facts.denials.since());
                let action = order.ask.action().name();
                tracing::info!(session = %key.1, action, "it lost its permissions, and its turn is over: done by itself");
                if let Some(since) = since {
                    self.acting.by_itself.insert(key.clone(), since.wall);
                }
                self.act(Given::by_us(order, mpsc::unbounded_channel().0), round);
            }
            // What is under way knows that it waited; what was refused is not asked again.
            if let Some(folder) = self.fleet.folder(&key).filter(|folder| folder.session.control.under_way.is_none()) {
                folder.session.control.goes_on = None;
            }
        }
    }
}
