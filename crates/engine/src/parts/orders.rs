//! Orders that wait for something to happen.

use crate::control::PendingOrder;
use pilotlight_core::order::{Outcome, Report};
use pilotlight_core::session::Key;
use pilotlight_core::time::Time;

/// Orders that wait.
#[derive(Default)]
pub(crate) struct Orders {
    /// Those that wait for something to happen.
    pub(crate) postponed: Vec<PostponedOrder>,
    /// Called before the first order that may leave us connected to a session.
    pub(crate) on_first_attach: Option<Box<dyn FnOnce() + Send>>,
}

/// An order that waits.
pub(crate) struct PostponedOrder {
    pub(crate) pending: PendingOrder,
    pub(crate) waits_for: WaitFor,
    /// When the wait ends in any case, by the awake clock.
    pub(crate) until: Time,
}

/// How long an order may still wait.
#[derive(Clone, Copy)]
pub(crate) enum OrderDeadline {
    /// For whatever there is to wait for.
    Full,
    /// Only for others that answer the same session, here or in another Pilotlight, until this moment.
    ForTurn(Time),
}

/// What an order may wait for.
pub(crate) enum WaitFor {
    /// That this session's log is read to its end: until then nothing is known of what the session does now. The order
    /// may then wait for something else.
    Log(Key, OrderDeadline),
    /// The exit of this process.
    End(u32),
    /// That the process of a new lock of this session holds it, or does not.
    Owner(Key),
    /// The bridge to the session of this id.
    Bridge(Box<str>),
    /// The answer of this silent session's server to the question what the session does.
    Probe(Key),
    /// The end of what is being done with this session.
    Turn(Key),
    /// That fewer recoveries run, for one of this session: it waits for however long they take.
    Room(Key),
    /// That another Pilotlight has finished with the session. No system tells when, so it is tried again and again until
    /// this moment, by the awake clock.
    Lock(Time),
}

impl Orders {
    /// When, by the awake clock, the first wait ends.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.postponed.iter().map(|postponed| postponed.until).min()
    }

    /// Fails all waiting orders, at exit.
    pub(crate) fn fail_postponed(&mut self) {
        for postponed in self.postponed.drain(..) {
            postponed.pending.report(Report::End(Outcome::Failed("Pilotlight is ending; nothing was sent".into())));
        }
    }
}
