//! Scans all processes for the sessions that they have open, whichever agents they are.

use super::adapter::{Adapter, SessionScanner};
use super::home::Home;
use super::openings::{OpenSession, OpenSessions};
use super::programs;
use super::runners::{self, HomeInUse, Scan};
use pilotlight_core::time::Time;
use std::time::Instant;

/// Scans processes, and remembers what it has read of them.
#[derive(Debug, Default)]
pub struct OpenScanner {
    /// The agents whose homes in use are looked for.
    sought: Vec<&'static dyn Adapter>,
    scanners: Vec<(&'static dyn Adapter, Box<dyn SessionScanner>)>,
    scan: Option<OpenScan>,
}

/// A scan of all processes in progress.
#[derive(Debug, Default)]
struct OpenScan {
    /// How many agents' scans are complete.
    complete: usize,
    found: Vec<OpenSession>,
}

impl OpenScanner {
    /// From now on, also looks for the homes in use of these agents.
    pub fn seek(&mut self, sought: Vec<&'static dyn Adapter>) {
        self.sought = sought;
    }

    /// Whether a scan is in progress.
    pub const fn is_running(&self) -> bool {
        self.scan.is_some()
    }

    /// Begins a scan, in place of one in progress.
    pub fn begin(&mut self) {
        self.scanners.iter_mut().for_each(|(_, scanner)| scanner.begin());
        self.scan = Some(OpenScan::default());
    }

    /// Scans all processes for sessions of these sources. `names` are further programs that count as Copilot, `now` is
    /// the wall clock.
    pub fn scan(&mut self, homes: &[&Home], names: &[String], now: Time) -> OpenSessions {
        self.begin();
        loop {
            if let Some(openings) = self.advance(homes, names, now, None) {
                return openings;
            }
        }
    }

    /// Continues the scan until the deadline `until`. Returns its result once it is complete.
    pub fn advance(
        &mut self,
        homes: &[&Home],
        names: &[String],
        now: Time,
        until: Option<Instant>,
    ) -> Option<OpenSessions> {
        let scan = self.scan.as_mut()?;
        for adapter in homes.iter().map(|home| home.adapter()) {
            if self.scanners.iter().all(|(other, _)| *other != adapter)
                && let Some(mut scanner) = adapter.scanner()
            {
                scanner.begin();
                self.scanners.push((adapter, scanner));
            }
        }
        for (adapter, scanner) in self.scanners.iter_mut().skip(scan.complete) {
            let its: Vec<_> = homes.iter().copied().filter(|home| home.adapter() == *adapter).collect();
            scan.found.extend(scanner.advance(&its, names, now, until)?);
            scan.complete += 1;
        }
        let found = self.scan.take()?.found;
        let folders = homes.iter().map(|home| (home.adapter(), home.folder().to_owned())).collect();
        let Scan { runners, in_use } = runners::scan(homes, &self.sought, now);
        let found = OpenSessions::new(found).with(runners, folders).with_in_use(in_use);
        Some(found.with_programs(|pids| programs::running(homes, pids)))
    }

    /// Removes a process that has ended from the scan in progress.
    pub fn forget(&mut self, pid: u32) {
        self.scanners.iter_mut().for_each(|(_, scanner)| scanner.forget(pid));
        if let Some(scan) = &mut self.scan {
            scan.found.retain(|open| open.pid != pid);
        }
    }

    /// Whether processes that wrote to their logs may have opened or closed a session since the last scan. Reads what
    /// is new in the logs of known processes, which takes microseconds, until the deadline `until`. An unknown process
    /// needs a scan.
    pub fn may_differ(
        &mut self,
        written: impl Iterator<Item = (&'static dyn Adapter, u32)>,
        until: Option<Instant>,
    ) -> bool {
        let mut written: Vec<_> = written.collect();
        let mut may_differ = false;
        for (adapter, scanner) in &mut self.scanners {
            let (its, others): (Vec<_>, Vec<_>) = written.into_iter().partition(|(of, _)| of == adapter);
            let pids: Vec<u32> = its.into_iter().map(|(_, pid)| pid).collect();
            may_differ |= !pids.is_empty() && scanner.may_differ(&pids, until);
            written = others;
        }
        // What the processes of other agents write is as short as a scan of it.
        may_differ || !written.is_empty()
    }

    /// Has processes that were not visible looked for again.
    pub fn forget_unseen(&mut self) {
        self.scanners.iter_mut().for_each(|(_, scanner)| scanner.forget_unseen());
    }
}

/// The homes in use of these agents, where those of `homes` are followed.
pub fn homes_in_use(homes: &[&Home], sought: &[&'static dyn Adapter]) -> Vec<HomeInUse> {
    // No time of a process matters here.
    runners::scan(homes, sought, Time(0)).in_use
}
