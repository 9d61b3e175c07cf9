//! Scans all processes for the sessions that they have open, whichever agents they are.

use super::copilot::opened as copilot;
use super::openings::OpenSessions;
use super::runners;
use super::source::Source;
use super::wing::Wing;
use pilotlight_core::time::Time;
use std::time::Instant;

/// Scans processes, and remembers what it has read of them.
#[derive(Debug, Default)]
pub struct OpenScanner {
    copilot: copilot::OpenScanner,
}

/// A scan of all processes in progress.
#[derive(Debug)]
pub struct OpenScan {
    copilot: copilot::OpenScan,
}

impl OpenScan {
    /// Begins a scan.
    pub fn begin() -> Self {
        Self { copilot: copilot::OpenScan::begin() }
    }

    /// Removes a process that has ended.
    pub fn forget(&mut self, pid: u32) {
        self.copilot.forget(pid);
    }
}

impl OpenScanner {
    /// Scans all processes for sessions of these sources. `names` are further programs that count as Copilot, `now` is
    /// the wall clock.
    pub fn scan(&mut self, sources: &[&Source], names: &[String], now: Time) -> OpenSessions {
        let mut scan = OpenScan::begin();
        loop {
            if let Some(openings) = self.advance(&mut scan, sources, names, now, None) {
                return openings;
            }
        }
    }

    /// Continues a scan until the deadline `until`. Returns its result once it is complete.
    pub fn advance(
        &mut self,
        scan: &mut OpenScan,
        sources: &[&Source],
        names: &[String],
        now: Time,
        until: Option<Instant>,
    ) -> Option<OpenSessions> {
        let of = |wing: Wing| sources.iter().filter(move |source| source.wing() == wing);
        let roots: Vec<_> = of(Wing::Copilot).map(|source| source.root().to_owned()).collect();
        let found = self.copilot.advance(&mut scan.copilot, &roots, names, now, until)?;
        #[cfg(test)]
        let found = of(Wing::Sundial).fold(found, |mut found, source| {
            found.extend(super::sundial::open_sessions(source.home(), source.root(), now));
            found
        });
        let homes = sources.iter().map(|source| (source.wing(), source.home().to_owned())).collect();
        Some(OpenSessions::new(found).with(runners::scan(sources, now), homes))
    }

    /// Whether processes that wrote to their logs may have opened or closed a session since the last scan. Reads what
    /// is new in the logs of known processes, which takes microseconds, until the deadline `until`. An unknown process
    /// needs a scan.
    pub fn may_differ(&mut self, written: impl Iterator<Item = (Wing, u32)>, until: Option<Instant>) -> bool {
        // What other agents' processes write is as short as a scan of it.
        let (its, others): (Vec<_>, Vec<_>) = written.partition(|(wing, _)| *wing == Wing::Copilot);
        self.copilot.may_differ(its.into_iter().map(|(_, pid)| pid), until) || !others.is_empty()
    }

    /// Has processes that were not visible looked for again.
    pub fn forget_unseen(&mut self) {
        self.copilot.forget_unseen();
    }
}
