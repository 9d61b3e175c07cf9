//! Orders that the engine gives itself: continuing sessions, and reconnecting them if the settings ask for it.

use crate::control::PendingOrder;
use crate::{Engine, Entry};
use pilotlight_core::action::{Action, is_bridged, offer};
use pilotlight_core::attempts::UNCOUNTED;
use pilotlight_core::facts::Facts;
use pilotlight_core::order::{Operation, Order};
use pilotlight_core::session::{Observed, Session};
use pilotlight_core::verdict::Status;
use pilotlight_system::log::{self, private};
use tokio::sync::mpsc;

/// Logged when an order to continue was postponed to the end of the session's turn.
const CONTINUES: &str = "its turn is over, so the postponed order to continue is carried out";
/// Logged when the settings ask for it.
const RECONNECTS: &str = "it lost its permissions, and its turn is over, so it is recovered automatically";

impl Engine {
    /// Continues sessions for which that was postponed to the end of their turn. Reconnects sessions that lost their
    /// permissions, if the settings ask for it: once for each loss, when the turn that was denied is over.
    pub(crate) fn reconnect_automatically(&mut self, wanted: bool) {
        let auto_reconnect = wanted && self.world.config.actions.auto_reconnect;
        let (now, limits) = (self.world.now(), self.world.config.limits);
        let is_over = |facts: &Facts| facts.turn.is_none() || facts.lapse(now, &limits).is_some();
        let mut due = Vec::new();
        for (key, entry) in self.world.fleet.entries() {
            let (session, status) = (entry.session(), entry.verdict.status);
            let (facts, control) = (&session.observed.facts, &session.control);
            // A prompt is typed into a terminal only on a click.
            if control.under_way.is_some() || is_bridged(session) {
                continue;
            }
            if let Some(marks) = control.pending_continue {
                let went_on = (marks.prompt, marks.aborted) != (facts.marks.prompt, facts.marks.aborted);
                if went_on || is_over(facts) {
                    // A session whose server died meanwhile is not hosted by itself.
                    let is_wanted = !went_on && facts.is_left_undone(session.liveness.left_undone);
                    let wanted = is_wanted && session.runner().live().is_some();
                    due.push((key.clone(), wanted.then_some((Operation::Continue, CONTINUES))));
                }
            } else if auto_reconnect && status == Status::PermissionLost && is_over(facts) {
                let since = facts.denials.since().map(|since| since.wall);
                let resends = self.world.config.actions.resend && offer(Action::Continue, session, status).is_ok();
                let operation = if resends { Operation::Continue } else { Operation::Reconnect { resend: false } };
                if since != self.connections.tasks.auto_reconnected.get(key).copied()
                    && offer(operation.action(), session, status).is_ok()
                {
                    due.push((key.clone(), Some((operation, RECONNECTS))));
                }
            }
        }
        for (key, operation) in due {
            let Some(Session { observed: Observed { facts, .. }, control, .. }) =
                self.world.fleet.get(&key).map(Entry::session)
            else {
                continue;
            };
            if let Some((operation, why)) = operation {
                let was_asked_for = control.pending_continue.is_some();
                let (order, since) =
                    (Order::new(&key.id, operation).on(facts.turn_id.as_deref()), facts.denials.since());
                let action = order.operation.action().name();
                log::info!(session = private(&key.id), action = action, "{}", why);
                if let Some(since) = since {
                    self.connections.tasks.auto_reconnected.insert(key.clone(), since.wall);
                }
                match self.disk.page(&key).check_countable() {
                    Err(error) if !was_asked_for => {
                        log::warn!(
                            session = private(&key.id),
                            "nothing is sent automatically: {}: {}",
                            UNCOUNTED,
                            private(&error)
                        );
                    }
                    _ => self.handle_order(PendingOrder::by_us(order, mpsc::unbounded_channel().0)),
                }
            }
            // A task that is running knows that it was postponed; a refused order is not repeated.
            if let Some(session) = self.world.fleet.session(&key).filter(|session| session.control.under_way.is_none())
            {
                session.control.pending_continue = None;
            }
        }
    }
}
