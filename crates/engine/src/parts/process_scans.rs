//! Scans all processes for those that have a session open without a lock: when to start a scan, and what the last one
//! found.

use super::agenda::READ_SLICE;
use super::homes::Homes;
use super::throttle::Throttle;
use pilotlight_agents::adapter::Adapter;
use pilotlight_agents::openings::{Noted, OpenSession, OpenSessions};
use pilotlight_agents::scanner::OpenScanner;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_core::time::{Span, Time};
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// Minimum interval between scans. Many processes may exit at once, and each exit requires a scan of the others.
const SCAN_INTERVAL: Span = Span(200);
/// Minimum interval between scans for the unknown writer of a log, which may be on another machine.
const WRITER_INTERVAL: Span = Span::seconds(2);
/// How long after a write to a process's log the log is read: lines come in bursts.
const LOG_DELAY: Span = Span(200);

pub(crate) struct ProcessScans {
    scanner: OpenScanner,
    openings: OpenSessions,
    /// Other processes run than at the scan before, or show other sessions.
    has_other_runners: bool,
    /// Requests for another scan: a process exited, or a terminal's note changed.
    requested: Throttle,
    /// When to read the logs that processes have written since the last check, and whose logs.
    written_at: Option<Time>,
    written: HashSet<(HomeId, u32)>,
    /// What the terminals of each home had noted as open at the last check.
    notes: HashMap<HomeId, Noted>,
}

impl ProcessScans {
    /// Nothing was scanned yet.
    pub(crate) fn new() -> Self {
        Self {
            scanner: OpenScanner::default(),
            openings: OpenSessions::default(),
            has_other_runners: false,
            requested: Throttle::new(SCAN_INTERVAL),
            written_at: None,
            written: HashSet::new(),
            notes: HashMap::new(),
        }
    }

    /// What the last scan found.
    pub(crate) const fn openings(&self) -> &OpenSessions {
        &self.openings
    }

    /// Whether other processes run, or show other sessions, since this was last asked.
    pub(crate) fn take_other_runners(&mut self) -> bool {
        std::mem::take(&mut self.has_other_runners)
    }

    /// The process that has a session open without a lock, or may be about to open it.
    pub(crate) fn opener(&self, homes: &Homes, key: &Key) -> Option<&OpenSession> {
        self.openings.opener(homes.root(key.home), &key.id)
    }

    /// From now on, also looks for the homes in use of these agents.
    pub(crate) fn seek(&mut self, sought: Vec<&'static dyn Adapter>) {
        self.scanner.seek(sought);
    }

    /// Whether a scan is running.
    pub(crate) const fn is_scanning(&self) -> bool {
        self.scanner.is_running()
    }

    /// Forgets which logs were written: they may be on a file system that does not answer.
    pub(crate) fn forget_written(&mut self) {
        self.written.clear();
        self.written_at = None;
    }

    /// Scans all processes at once. Returns the sessions that different processes have open than before.
    pub(crate) fn scan_now(&mut self, homes: &Homes, names: &[String], now: Time) -> Vec<Key> {
        let found = self.scanner.scan(&homes.homes(), names, now);
        self.store(found, homes)
    }

    /// Starts a scan.
    pub(crate) fn start(&mut self, now: Time) {
        if self.scanner.is_running() {
            // The running scan may have passed processes that have changed since: another one must follow.
            self.requested.request(now);
        } else {
            self.scanner.begin();
        }
    }

    /// Does one step of the running scan. When the scan is done, returns the sessions that different processes have
    /// open than before.
    pub(crate) fn step(&mut self, homes: &Homes, names: &[String], now: Time) -> Option<Vec<Key>> {
        let until = Some(Instant::now() + READ_SLICE);
        let found = self.scanner.advance(&homes.homes(), names, now, until)?;
        Some(self.store(found, homes))
    }

    fn store(&mut self, found: OpenSessions, homes: &Homes) -> Vec<Key> {
        let before = std::mem::replace(&mut self.openings, found);
        let differing = self.openings.differing(&before).into_iter();
        self.has_other_runners |= self.openings.has_other_runners(&before);
        differing.filter_map(|(root, id)| Some(Key::new(homes.number(root)?, id))).collect()
    }

    /// Requests a scan for the unknown writer of a log, unless there was one just now.
    pub(crate) fn request_for_writer(&mut self, now: Time) {
        if !self.requested.was_done_within(WRITER_INTERVAL, now) {
            self.request(now);
        }
    }

    /// Starts a scan now, or 200 ms after the last one was started, so that many exits at once cause only one scan.
    pub(crate) fn request(&mut self, now: Time) {
        self.requested.request(now);
        self.start_requested(now);
    }

    /// Starts the requested scan if it is due.
    pub(crate) fn start_requested(&mut self, now: Time) {
        if !self.scanner.is_running() && self.requested.start_if_due(now) {
            self.start(now);
        }
    }

    /// Forgets a process that has exited.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.openings.forget(pid);
        self.scanner.forget(pid);
    }

    /// Forgets what was learned about processes whose start was not seen, so that they are checked again.
    pub(crate) fn forget_unseen(&mut self) {
        self.scanner.forget_unseen();
    }

    /// Notes that these processes have written to their logs.
    pub(crate) fn logs_written(&mut self, written: HashSet<(HomeId, u32)>, now: Time) {
        if !written.is_empty() {
            self.written.extend(written);
            self.written_at.get_or_insert(now + LOG_DELAY);
        }
    }

    /// Reads the written logs if that is due: one of their processes may have opened or closed a session.
    pub(crate) fn check_written_logs(&mut self, homes: &Homes, now: Time) {
        if self.written_at.is_none_or(|at| at > now) {
            return;
        }
        self.written_at = None;
        let until = Some(Instant::now() + READ_SLICE);
        let written = std::mem::take(&mut self.written).into_iter();
        let written = written.filter(|(home, _)| homes.is_followed(*home));
        if self.scanner.may_differ(written.map(|(home, pid)| (homes.home(home).adapter(), pid)), until) {
            self.start(now);
        }
    }

    /// Reads what the terminals of a home have noted as open. If that has changed, a process may have opened or closed
    /// a session.
    pub(crate) fn check_terminal_notes(&mut self, homes: &Homes, home: HomeId, now: Time) {
        let noted = homes.home(home).noted();
        if self.notes.get(&home) != Some(&noted) {
            self.notes.insert(home, noted);
            self.request(now);
        }
    }

    /// When the next work is due without an event.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        // A running scan is continued anyway.
        let requested = self.requested.due_at().filter(|_| !self.scanner.is_running());
        self.written_at.into_iter().chain(requested).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_agents::home::Home;
    use std::path::Path;

    const NOW: Time = Time(1_000_000);

    fn later(millis: i64) -> Time {
        NOW + Span(millis)
    }

    #[test]
    fn many_exits_at_once_cause_one_scan_now_and_one_later() {
        let (mut scans, homes) = (ProcessScans::new(), Homes::new(&[], NOW));
        assert!(!scans.is_scanning() && scans.wake_at().is_none());
        for _ in 0..100 {
            scans.request(NOW);
        }
        assert!(scans.is_scanning(), "at once");
        assert_eq!(scans.wake_at(), None, "it is continued anyway");
        while scans.step(&homes, &[], NOW).is_none() {}
        assert_eq!(scans.wake_at(), Some(NOW + SCAN_INTERVAL), "what the scan saw may be outdated");
        scans.start_requested(later(199));
        assert!(!scans.is_scanning());
        scans.start_requested(later(200));
        assert!(scans.is_scanning());
    }

    #[test]
    fn logs_are_read_once_for_a_burst_of_lines() {
        let homes = Homes::new(&[Home::at(Path::new("/nowhere"))], NOW);
        let mut scans = ProcessScans::new();
        scans.logs_written(HashSet::new(), NOW);
        assert_eq!(scans.wake_at(), None);
        for millis in [0, 50, 150] {
            scans.logs_written(HashSet::from([(HomeId(0), 2_000_000_000)]), later(millis));
        }
        assert_eq!(scans.wake_at(), Some(later(200)));
        scans.check_written_logs(&homes, later(199));
        assert!(!scans.is_scanning());
        scans.check_written_logs(&homes, later(200));
        assert!(scans.is_scanning(), "what an unknown process has open is unknown");
        assert!(scans.wake_at().is_none());
    }

    #[test]
    fn a_changed_note_of_a_terminal_starts_a_scan() {
        let scratch = tempfile::tempdir().unwrap();
        let (mut scans, homes) = (ProcessScans::new(), Homes::new(&[Home::at(scratch.path())], NOW));
        scans.check_terminal_notes(&homes, HomeId(0), NOW);
        assert!(scans.is_scanning(), "nothing is known the first time");
        while scans.step(&homes, &[], NOW).is_none() {}
        scans.check_terminal_notes(&homes, HomeId(0), later(1000));
        assert!(!scans.is_scanning() && scans.wake_at().is_none());
    }
}
