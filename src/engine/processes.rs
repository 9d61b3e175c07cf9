//! Looks at all processes, for those that have a session open without a lock: when one is to begin, and what the last one found.

use super::homes::Homes;
use super::scan::SLICE;
use super::sparing::Sparing;
use super::{Engine, Key};
use crate::agent::copilot::opened::{Looking, Noted, Openers, Opening, Openings, noted};
use crate::core::time::{Moment, Span, Time};
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// Many processes may end at once, and each time all others are to be looked at: once in so long.
const EVERY: Span = Span(200);
/// How long after a process wrote in its log that is looked into: lines come in bursts.
const LOGGED: Span = Span(200);

/// What is known of all processes.
pub(super) struct Processes {
    openers: Openers,
    openings: Openings,
    /// A look that is under way.
    looking: Option<Looking>,
    /// A process ended, or a terminal noted something: another look is wanted.
    wanted: Sparing,
    /// What processes have written in their logs since those were last looked at: when that is done next, and whose logs.
    written_at: Option<Time>,
    written: HashSet<u32>,
    /// What the terminals of each home had noted as open, when that was last looked at.
    noted: HashMap<usize, Noted>,
}

impl Processes {
    /// Nothing was looked at.
    pub(super) fn new() -> Self {
        Self {
            openers: Openers::default(),
            openings: Openings::default(),
            looking: None,
            wanted: Sparing::every(EVERY),
            written_at: None,
            written: HashSet::new(),
            noted: HashMap::new(),
        }
    }

    /// What the last look found.
    pub(super) const fn openings(&self) -> &Openings {
        &self.openings
    }

    /// The process that has a session open without a lock, or may be about to open it.
    pub(super) fn opener(&self, homes: &Homes, key: &Key) -> Option<&Opening> {
        self.openings.opener(homes.root(key.0), &key.1)
    }

    /// Whether a look is under way.
    pub(super) const fn is_looking(&self) -> bool {
        self.looking.is_some()
    }

    /// Looks at all processes here and now. The sessions that others have open now than before.
    pub(super) fn look(&mut self, homes: &Homes, names: &[String], now: Time) -> Vec<Key> {
        self.looking = None;
        let found = self.openers.look(&homes.roots(), names, now);
        self.take(found, homes)
    }

    /// Begins a look.
    pub(super) fn begin(&mut self, now: Time) {
        match self.looking {
            None => self.looking = Some(Looking::begin()),
            // What was seen of some may be so no more.
            Some(_) => self.wanted.ask(now),
        }
    }

    /// Goes on with it a little. The same when it is over; `None`: it is not.
    pub(super) fn go_on(&mut self, homes: &Homes, names: &[String], now: Time) -> Option<Vec<Key>> {
        let mut looking = self.looking.take()?;
        let until = Some(Instant::now() + SLICE);
        match self.openers.go_on(&mut looking, &homes.roots(), names, now, until) {
            Some(found) => Some(self.take(found, homes)),
            None => {
                self.looking = Some(looking);
                None
            }
        }
    }

    fn take(&mut self, found: Openings, homes: &Homes) -> Vec<Key> {
        let before = std::mem::replace(&mut self.openings, found);
        let differing = self.openings.differing(&before).into_iter();
        differing.filter_map(|(root, id)| Some((homes.number(root)?, id.into()))).collect()
    }

    /// A look begins now, or 200 ms after the last one did: a storm of ends is one look.
    pub(super) fn look_soon(&mut self, now: Time) {
        self.wanted.ask(now);
        self.begin_wanted(now);
    }

    /// Begins the look that is wanted, where it is time.
    pub(super) fn begin_wanted(&mut self, now: Time) {
        if self.looking.is_none() && self.wanted.begin(now) {
            self.begin(now);
        }
    }

    /// A process is gone.
    pub(super) fn forget(&mut self, pid: u32) {
        self.openings.forget(pid);
        if let Some(looking) = &mut self.looking {
            looking.forget(pid);
        }
    }

    /// Who was not seen to run is looked for again.
    pub(super) fn forget_strangers(&mut self) {
        self.openers.forget_strangers();
    }

    /// These processes wrote in their logs.
    pub(super) fn wrote(&mut self, pids: HashSet<u32>, now: Time) {
        if !pids.is_empty() {
            self.written.extend(pids);
            self.written_at.get_or_insert(now + LOGGED);
        }
    }

    /// Looks into the logs that were written, where it is time: one of their processes may have opened or closed a session.
    pub(super) fn look_into_logs(&mut self, now: Time) {
        if self.written_at.is_none_or(|at| at > now) {
            return;
        }
        self.written_at = None;
        if self.openers.may_differ(std::mem::take(&mut self.written), Some(Instant::now() + SLICE)) {
            self.begin(now);
        }
    }

    /// The terminals of a home noted what they have open: unless that is as it was, a process may have opened or closed a session.
    pub(super) fn noted_anew(&mut self, homes: &Homes, home: usize, now: Time) {
        let Some(folder) = homes.root(home).parent() else { return };
        let noted = noted(folder);
        if self.noted.get(&home) != Some(&noted) {
            self.noted.insert(home, noted);
            self.look_soon(now);
        }
    }

    /// When there is something to look at though nothing happened.
    pub(super) fn wake_at(&self) -> Option<Time> {
        // A look that is under way is gone on with anyway.
        let wanted = self.wanted.due().filter(|_| self.looking.is_none());
        self.written_at.into_iter().chain(wanted).min()
    }
}

impl Engine {
    /// Looks at all processes here and now, and has it looked anew into the sessions that other processes have open now than did
    /// before.
    pub(super) fn look_at_processes(&mut self) {
        let Moment { wall, .. } = self.clock.now();
        let differing = self.processes.look(&self.homes, &self.config.owners.names, wall);
        self.openings_differ(differing);
    }

    /// Does one step of a look that is under way.
    pub(super) fn go_on_looking_at_processes(&mut self) {
        let Moment { wall, .. } = self.clock.now();
        if let Some(differing) = self.processes.go_on(&self.homes, &self.config.owners.names, wall) {
            self.openings_differ(differing);
        }
    }

    fn openings_differ(&mut self, differing: Vec<Key>) {
        for key in differing {
            if self.fleet.folder(&key).is_some() || self.history.contains(&key) {
                self.agenda.urgent(key);
            }
        }
        self.greet_new_owners();
        self.note_resumed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const NOW: Time = Time(1_000_000);

    fn later(millis: i64) -> Time {
        NOW + Span(millis)
    }

    #[test]
    fn a_storm_of_ends_is_one_look_now_and_one_later() {
        let (mut processes, homes) = (Processes::new(), Homes::new(&[], NOW));
        assert!(!processes.is_looking() && processes.wake_at().is_none());
        for _ in 0..100 {
            processes.look_soon(NOW);
        }
        assert!(processes.is_looking(), "at once");
        assert_eq!(processes.wake_at(), None, "it is gone on with anyway");
        while processes.go_on(&homes, &[], NOW).is_none() {}
        assert_eq!(processes.wake_at(), Some(NOW + EVERY), "what was seen of some may be so no more");
        processes.begin_wanted(later(199));
        assert!(!processes.is_looking());
        processes.begin_wanted(later(200));
        assert!(processes.is_looking());
    }

    #[test]
    fn logs_are_looked_into_once_for_a_burst_of_lines() {
        let mut processes = Processes::new();
        processes.wrote(HashSet::new(), NOW);
        assert_eq!(processes.wake_at(), None);
        for millis in [0, 50, 150] {
            processes.wrote(HashSet::from([2_000_000_000]), later(millis));
        }
        assert_eq!(processes.wake_at(), Some(later(200)));
        processes.look_into_logs(later(199));
        assert!(!processes.is_looking());
        processes.look_into_logs(later(200));
        assert!(processes.is_looking(), "nobody knows what a process has open that was not seen to run");
        assert!(processes.wake_at().is_none());
    }

    #[test]
    fn what_terminals_note_is_looked_into_when_it_is_another() {
        let scratch = tempfile::tempdir().unwrap();
        let root: PathBuf = scratch.path().join("session-state");
        let (mut processes, homes) = (Processes::new(), Homes::new(&[root], NOW));
        processes.noted_anew(&homes, 0, NOW);
        assert!(processes.is_looking(), "the first time nothing is known");
        while processes.go_on(&homes, &[], NOW).is_none() {}
        processes.noted_anew(&homes, 0, later(1000));
        assert!(!processes.is_looking() && processes.wake_at().is_none());
    }
}
