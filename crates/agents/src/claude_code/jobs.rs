//! What a background session asks: the only file that says so, `jobs/<the first part of its id>/state.json`.

use pilotlight_core::text::{COMMAND_MAX, NAME_MAX, plain};
use pilotlight_core::verdict::reported_state::WaitingTool;
use pilotlight_system::plain_file::{self, Links};
use serde::Deserialize;
use std::io::Read;
use std::path::Path;

/// The folder of a home that holds them.
const FOLDER: &str = "jobs";
const FILE: &str = "state.json";
/// The longest one that is read, in bytes; they have 2,000.
const LENGTH_MAX: u64 = 256 << 10;

/// A background session, as its supervisor knows it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Job {
    session_id: Option<Box<str>>,
    state: Option<Box<str>>,
    needs: Option<Box<str>>,
}

/// The job of a session, if it has one.
pub(super) fn of(home: &Path, id: &str) -> Option<Job> {
    let path = home.join(FOLDER).join(short(id)).join(FILE);
    let (file, _) = plain_file::open(&path, Links::Refused).ok()?;
    let mut text = Vec::new();
    file.take(LENGTH_MAX).read_to_end(&mut text).ok()?;
    let job: Job = serde_json::from_slice(&text).ok()?;
    (job.session_id.as_deref() == Some(id)).then_some(job)
}

/// How commands name the job of a session.
pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

impl Job {
    /// Whether its supervisor runs it, or is about to start it again.
    pub(super) fn is_kept(&self) -> bool {
        !matches!(self.state.as_deref(), None | Some("stopped" | "done" | "completed" | "failed"))
    }

    /// Whether its user ended it.
    pub(super) fn is_stopped(&self) -> bool {
        self.state.as_deref() == Some("stopped")
    }

    /// What it asks: "approve Bash: touch x".
    pub(super) fn asks(&self) -> Option<WaitingTool> {
        let (tool, text) = self.needs.as_deref()?.strip_prefix("approve ")?.split_once(": ")?;
        Some(WaitingTool { tool: plain(tool, NAME_MAX), text: Some(plain(text, COMMAND_MAX)), by: None })
    }
}
