//! Reads what was last reported of one session.

use super::record::{Process, Record};
use crate::reader::SessionReader;
use crate::reading::{ReadStatus, Reading};
use pilotlight_core::agent::Agent;
use pilotlight_core::owner::{HoldProof, Owner};
use pilotlight_core::session::{About, Allows, Observed};
use pilotlight_core::time::{Moment, Time};
use pilotlight_core::verdict::hook_report::HookReport;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why nothing can be done with such a session.
const READ_ONLY: &str = "its hook only sends reports: act in the session's terminal";

/// Reads one session.
#[derive(Debug)]
pub(crate) struct ReportReader {
    path: PathBuf,
    /// The names of the agents whose reports are read, if only theirs are.
    only: Option<Arc<[Box<str>]>>,
    /// The processes that run it, by their reports: one, or several that contend for it.
    processes: Vec<Process>,
    /// When the record that was read last was given, in nanoseconds since 1970, and on both clocks.
    given: Option<(i64, Moment)>,
}

impl ReportReader {
    pub(crate) fn new(path: PathBuf, only: Option<Arc<[Box<str>]>>) -> Self {
        Self { path, only, processes: Vec::new(), given: None }
    }
}

impl SessionReader for ReportReader {
    // Gone means that the session is over: it was reported so, its process has ended, or nobody has said anything for long.
    // Or it is of an agent that is not wanted.
    fn refresh(
        &mut self,
        reading: &Reading<'_>,
        observed: &mut Observed,
        _buffer: &mut Vec<u8>,
    ) -> io::Result<ReadStatus> {
        let now = reading.context.now;
        let is_wanted = |record: &Record| self.only.as_ref().is_none_or(|only| only.contains(&record.agent));
        let record = Record::read(&self.path).filter(|record| is_wanted(record) && record.is_current(now.wall));
        let (said, record) =
            record.and_then(|record| Some((record.state.said()?, record))).ok_or(io::ErrorKind::NotFound)?;
        self.processes = record.living(now.wall);
        // It may have ended since the record was read.
        if record.process.is_some() && self.processes.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        observed.contested = self.processes.len() > 1;
        let (given, since) = (record.given(now.wall), record.began(now.wall));
        // The awake clock does not count the time that the machine has slept since.
        let fresh = Moment { wall: given, awake: now.awake - (now.wall - given) };
        let at = self.given.filter(|(at, _)| *at == record.at).map_or(fresh, |(_, at)| at);
        self.given = Some((record.at, at));
        let owner = self.processes.first().map(|process| Owner::Alive { pid: process.pid, started: None });
        observed.owner = owner.unwrap_or_default();
        observed.agent = Agent::reported(&record.agent).unwrap_or_default();
        observed.held = HoldProof::Unverified;
        observed.touched = given;
        observed.allows = Allows::Nothing { why: READ_ONLY.into() };
        observed.about = About { name: record.title, cwd: record.cwd, ..About::default() };
        observed.hook_report =
            Some(HookReport { said, since, reason: record.reason, at, has_worked: record.has_worked });
        Ok(ReadStatus::Complete)
    }

    fn about(&self) -> About {
        let record = Record::read(&self.path);
        record.map_or(About::default(), |record| About { name: record.title, cwd: record.cwd, ..About::default() })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn process_ended(&mut self, observed: &mut Observed, pid: u32, at: Time) {
        self.processes.retain(|process| process.pid != pid);
        observed.contested &= self.processes.len() > 1;
        if observed.owner.pid() == Some(pid) {
            observed.owner = Owner::Gone { pid, at: Some(at) };
        }
    }

    fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(|process| process.pid).collect()
    }
}
