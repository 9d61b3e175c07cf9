//! Every Copilot that runs on this machine, with the homes that it works in.

#[cfg(not(target_os = "linux"))]
#[path = "running/elsewhere.rs"]
mod platform;
#[cfg(target_os = "linux")]
#[path = "running/linux.rs"]
mod platform;
mod program;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::time::Instant;

use pilotlight_core::time::Time;

pub use program::Program;

/// A search for every Copilot that runs.
///
/// Checks every process of the machine: some 10 us each on Linux, and 200 us for each Copilot. Processes that cannot be
/// read are left out.
#[derive(Debug)]
pub struct Search {
    rest: platform::Rest,
    found: Vec<Program>,
}

impl Search {
    /// A search that has checked no process yet.
    pub(crate) fn begin() -> Self {
        Self { rest: platform::Rest::all(), found: Vec::new() }
    }

    /// Continues until `until`, or to the end. Returns the programs at the end, `None` before. `names` are file names
    /// of further executables that count as Copilot; `now` is the wall clock.
    pub(crate) fn go_on(&mut self, names: &[String], now: Time, until: Option<Instant>) -> Option<Vec<Program>> {
        self.rest.check(&mut self.found, names, now, until).then(|| std::mem::take(&mut self.found))
    }
}

/// Every Copilot that runs, found in one pass.
#[cfg(test)]
pub(crate) fn programs(names: &[String], now: Time) -> Vec<Program> {
    Search::begin().go_on(names, now, None).unwrap_or_default()
}
