//! The outboxes through which this machine reports its sessions to others.

use super::fleet::{Entry, Fleet};
use crate::control::pipe::outbox::Outbox;
use crate::world::World;
use pilotlight_core::remote::SessionReport;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Span, Time};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Minimum interval between reports of mere activity in otherwise unchanged sessions.
const HEARD_INTERVAL: Span = Span::seconds(5);

fn report(entry: &Entry, now: Moment, shows_messages: bool) -> SessionReport {
    let report = entry.report(now);
    if shows_messages { report } else { report.without_message() }
}

/// All that are told.
#[derive(Debug, Default)]
pub(crate) struct Outboxes {
    boxes: Vec<Weak<Outbox>>,
    /// What was last told of when something was heard.
    heard: BTreeMap<Key, Time>,
    /// When that is told next, by the awake clock, if something was heard since.
    heard_at: Option<Time>,
    /// When it was last told.
    told_heard: Option<Time>,
}

impl Outboxes {
    /// Tells this of all sessions, now and as they change, as long as somebody holds it.
    /// Messages are told only if the settings show them.
    pub(crate) fn add(&mut self, outbox: &Arc<Outbox>, world: &World) {
        let (fleet, now, shows) = (&world.fleet, world.now(), world.config.list.last_message);
        for (key, entry) in fleet.entries() {
            outbox.put(key, report(entry, now, shows));
            self.heard.insert(key.clone(), entry.last_progress.get());
        }
        outbox.mark_complete();
        self.boxes.push(Arc::downgrade(outbox));
    }

    /// Tells of these sessions, which are new, changed or gone. Messages are told only if the settings show them.
    pub(crate) fn update<'a>(
        &mut self,
        fleet: &Fleet,
        keys: impl Iterator<Item = &'a Key>,
        now: Moment,
        shows_messages: bool,
    ) {
        self.boxes.retain(|outbox| outbox.strong_count() > 0);
        if self.boxes.is_empty() {
            (self.heard, self.heard_at) = (BTreeMap::new(), None);
            return;
        }
        let boxes: Vec<_> = self.boxes.iter().filter_map(Weak::upgrade).collect();
        for key in keys {
            match fleet.get(key) {
                Some(entry) => {
                    self.heard.insert(key.clone(), entry.last_progress.get());
                    boxes.iter().for_each(|outbox| outbox.put(key, report(entry, now, shows_messages)));
                }
                None => {
                    self.heard.remove(key);
                    boxes.iter().for_each(|outbox| outbox.remove(key));
                }
            }
        }
        let heard: Vec<_> = fleet
            .entries()
            .map(|(key, entry)| (key, entry.last_progress.get()))
            .filter(|(key, at)| self.heard.get(*key).is_some_and(|told| told < at))
            .collect();
        self.heard_at = None;
        if heard.is_empty() {
            return;
        }
        let due = self.told_heard.map(|told| told + HEARD_INTERVAL).filter(|due| *due > now.awake);
        self.heard_at = due;
        if due.is_none() {
            for (key, at) in heard {
                boxes.iter().for_each(|outbox| outbox.hear(key, at));
                self.heard.insert(key.clone(), at);
            }
            self.told_heard = Some(now.awake);
        }
    }

    /// When there is something to tell even if nothing changes, by the awake clock.
    pub(crate) const fn wake_at(&self) -> Option<Time> {
        self.heard_at
    }
}
