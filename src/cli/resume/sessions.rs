//! All sessions that can be chosen: those of this machine, and those of other machines as they come in. Nothing waits for
//! another machine.

use crate::cli::context::Context;
use crate::cli::hosts::{Asking, TOLD_WITHIN, Which};
use crate::core::fleet::{Finder, Row, Session, distinguish};
use crate::core::limits::Limits;
use crate::core::text::listed;
use crate::core::time::Moment;
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

/// The sessions that are known.
pub(super) struct Sessions<'a> {
    context: &'a Context,
    /// Those of this machine, with their names before they were made unique.
    here: Arc<[Row]>,
    asking: Option<Asking>,
    now: Moment,
    /// From then on it is said which machines are late.
    patient_until: Instant,
    /// Makes a finder of all that was known when it began, beside the loop: it takes longer than a key may.
    making: Option<JoinHandle<Finder>>,
    /// More is known than is being made.
    has_more: bool,
}

impl<'a> Sessions<'a> {
    /// Begins to ask the other machines, on the current runtime.
    pub(super) fn start(context: &'a Context, here: Vec<Row>, now: Moment) -> Self {
        let hosts: Vec<_> = context.hosts().collect();
        let asking = (!hosts.is_empty()).then(|| Asking::start(&hosts, Which::All, now));
        let patient_until = Instant::now() + TOLD_WITHIN;
        Self { context, here: here.into(), asking, now, patient_until, making: None, has_more: false }
    }

    /// A finder of the sessions of this machine.
    pub(super) fn here(&self) -> Finder {
        finder(&self.here, &[], self.now, &self.context.config.limits)
    }

    /// Waits until there is a finder of more sessions, or another note. Cancel-safe.
    pub(super) async fn change(&mut self) -> Option<Finder> {
        let Some(asking) = &mut self.asking else { return std::future::pending().await };
        let is_patient = !asking.is_complete() && Instant::now() < self.patient_until;
        loop {
            if self.has_more && self.making.is_none() {
                self.has_more = false;
                let is_wanted = |session: &&Arc<Session>| self.context.is_wanted_agent(&session.observed.agent);
                let far: Vec<_> = asking.sessions().filter(is_wanted).cloned().collect();
                let (here, limits, now) = (Arc::clone(&self.here), self.context.config.limits, self.now);
                self.making = Some(spawn_blocking(move || finder(&here, &far, now, &limits)));
            }
            tokio::select! {
                is_news = asking.next() => if is_news {
                    self.has_more = true;
                    return None;
                },
                () = sleep_until(self.patient_until), if is_patient => return None,
                made = made(&mut self.making) => {
                    self.making = None;
                    return made;
                }
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

/// A finder of the sessions of this machine and of others.
fn finder(here: &[Row], far: &[Arc<Session>], now: Moment, limits: &Limits) -> Finder {
    let far = far.iter().map(|session| session.row(now, limits).0);
    let mut rows: Vec<_> = here.iter().cloned().chain(far).collect();
    distinguish(&mut rows);
    Finder::new(rows)
}

async fn made(making: &mut Option<JoinHandle<Finder>>) -> Option<Finder> {
    match making {
        Some(making) => making.await.ok(),
        None => std::future::pending().await,
    }
}
