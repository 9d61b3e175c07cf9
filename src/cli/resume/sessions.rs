//! All sessions that can be chosen: those of this machine, and those of other machines as they come in. Nothing waits for
//! another machine.

use crate::cli::context::Context;
use crate::cli::hosts::{Asking, TOLD_WITHIN, Which};
use crate::core::fleet::{Row, distinguish};
use crate::core::text::listed;
use crate::core::time::Moment;
use tokio::time::{Instant, sleep_until};

/// The sessions that are known.
pub(super) struct Sessions<'a> {
    context: &'a Context,
    /// Those of this machine, with their names before they were made unique.
    here: Vec<Row>,
    asking: Option<Asking>,
    now: Moment,
    /// From then on it is said which machines are late.
    patient_until: Instant,
}

impl<'a> Sessions<'a> {
    /// Begins to ask the other machines, on the current runtime.
    pub(super) fn start(context: &'a Context, here: Vec<Row>, now: Moment) -> Self {
        let hosts: Vec<_> = context.hosts().collect();
        let asking = (!hosts.is_empty()).then(|| Asking::start(&hosts, Which::All, now));
        Self { context, here, asking, now, patient_until: Instant::now() + TOLD_WITHIN }
    }

    /// A row of each session that is known by now.
    pub(super) fn rows(&self) -> Vec<Row> {
        let far = self.asking.iter().flat_map(Asking::sessions);
        let far = far.filter(|session| self.context.is_wanted_agent(&session.observed.agent));
        let far = far.map(|session| session.row(self.now, &self.context.config.limits).0);
        let mut rows: Vec<_> = self.here.iter().cloned().chain(far).collect();
        distinguish(&mut rows);
        rows
    }

    /// Waits until there are other rows or notes. Cancel-safe.
    pub(super) async fn change(&mut self) {
        let Some(asking) = &mut self.asking else { return std::future::pending().await };
        let is_patient = !asking.is_complete() && Instant::now() < self.patient_until;
        loop {
            tokio::select! {
                is_news = asking.next() => if is_news {
                    return;
                },
                () = sleep_until(self.patient_until), if is_patient => return,
            }
        }
    }

    /// Which machines are not reached, or late, in a line.
    pub(super) fn note(&self) -> Option<String> {
        let asking = self.asking.as_ref()?;
        let mut notes: Vec<_> = asking.troubles().map(|(host, why)| format!("{host} is not reached: {why}")).collect();
        let late: Vec<_> = asking.late().filter(|_| Instant::now() >= self.patient_until).collect();
        if !late.is_empty() {
            let has = if late.len() == 1 { "has" } else { "have" };
            notes.push(format!("{} {has} not told of all sessions yet", listed(&late)));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}
