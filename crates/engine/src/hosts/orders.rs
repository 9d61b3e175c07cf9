//! The orders that are under way on a host.

use crate::control::PendingOrder;
use crate::control::pipe::lines::ToHost;
use pilotlight_core::order::{OrderReport, Outcome};
use pilotlight_core::text::plain;
use std::collections::BTreeMap;
use tokio::task::JoinSet;

/// Maximum length of a host's words about an order, in characters.
const WORDS_MAX: usize = 1000;

/// The orders that are under way, each with the number that its reports have.
#[derive(Default)]
pub(super) struct SentOrders {
    pending: BTreeMap<u64, PendingOrder>,
    last: u64,
    /// Each ends with its order's number when that is not wanted any more.
    withdrawn: JoinSet<u64>,
}

impl SentOrders {
    /// Notes an order. Returns the line that gives it to the host, and from then on it may have had its effect.
    pub(super) fn begin(&mut self, pending: PendingOrder) -> ToHost {
        self.last += 1;
        let n = self.last;
        // There it is for this machine.
        let order = pending.order.clone().at(None);
        pending.begin();
        let waits = pending.clone();
        self.withdrawn.spawn(async move {
            tokio::select! {
                () = waits.taken_back() => {}
                () = waits.reply.closed() => {}
            }
            n
        });
        self.pending.insert(n, pending);
        ToHost::Order { n, order: Box::new(order) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Waits for an order that is not wanted any more. Returns the line that takes it back.
    pub(super) async fn withdrawn(&mut self) -> ToHost {
        loop {
            match self.withdrawn.join_next().await {
                Some(Ok(n)) if self.pending.contains_key(&n) => return ToHost::TakeBack(n),
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Passes a report on. One on no order of ours is ignored.
    pub(super) fn report(&mut self, n: u64, report: OrderReport, host: &str) {
        if let Some(pending) = self.pending.get(&n) {
            pending.report(made_safe(report, host));
        }
    }

    /// Passes the end of an order on.
    pub(super) fn end(&mut self, n: u64, outcome: Outcome, host: &str) {
        if let Some(pending) = self.pending.remove(&n) {
            pending.report(made_safe(OrderReport::End(outcome), host));
        }
    }

    /// The connection is gone: what was sent may have happened.
    pub(super) fn lose(&mut self, host: &str) {
        for (_, pending) in std::mem::take(&mut self.pending) {
            let words = format!("may have happened: the connection to {host} was lost before it reported the outcome");
            pending.report(OrderReport::End(Outcome::Unconfirmed(words)));
        }
        self.withdrawn.abort_all();
    }
}

/// Sanitizes the words of a report, and names the machine in those about a failure. Requests and questions pass unchanged; the
/// code that shows them sanitizes them.
fn made_safe(report: OrderReport, host: &str) -> OrderReport {
    let safe = |words: String| String::from(plain(&words, WORDS_MAX));
    let there = |words: String| format!("on {host}: {}", safe(words));
    match report {
        OrderReport::Step(step, words) => OrderReport::Step(step, safe(words)),
        OrderReport::End(outcome) => OrderReport::End(match outcome {
            Outcome::Done(words) => Outcome::Done(safe(words)),
            Outcome::Failed(words) => Outcome::Failed(there(words)),
            Outcome::Unconfirmed(words) => Outcome::Unconfirmed(there(words)),
            Outcome::Refused(words) => Outcome::Refused(there(words)),
            Outcome::Unknown => Outcome::Unknown,
        }),
        OrderReport::Request(_) | OrderReport::Question(_) => report,
    }
}
