//! Which processes run Claude Code, and with which home.

use crate::agent::fingerprint::Fingerprint;
use crate::core::time::Time;
use crate::system::identity::Identity;
use crate::system::process::{self, Reading};
use std::fs;
use std::path::{Path, PathBuf};

/// What it is called.
pub(super) const WORD: &str = "Claude Code";
/// What it is recognised by. Observed: 2.1.330.
pub(super) const FINGERPRINT: Fingerprint = Fingerprint {
    program: "claude",
    releases: Some("claude/versions"),
    package: "@anthropic-ai/claude-code",
    marks: &["CLAUDECODE", "CLAUDE_CODE_SESSION_ID"],
};
/// Its home, in that of its user.
pub(super) const HOME: &str = ".claude";
/// What names another home.
pub(super) const HOME_VARIABLE: &str = "CLAUDE_CONFIG_DIR";

/// Whether a process runs Claude Code with this home. A file in a copy of its home is of another time: it may run another
/// session by now.
pub(super) fn runs_it(pid: u32, home: &Path) -> bool {
    FINGERPRINT.is_run_by(pid) && home_of(pid).is_none_or(|its| is_same_folder(&its, home))
}

/// A process that may run any session whose log was written since it started: its own file cannot be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct MayRun {
    pub(super) pid: u32,
    /// When it started, at the earliest, by the wall clock.
    pub(super) since: Time,
}

/// Those of these processes that run Claude Code with this home. `now` is the wall clock.
pub(super) fn may_run(home: &Path, pids: &[u32], now: Time) -> impl Iterator<Item = MayRun> {
    let running = pids.iter().filter(|pid| runs_it(**pid, home));
    running.filter_map(move |&pid| match process::read(pid, now) {
        Reading::Process { started, .. } => {
            Some(MayRun { pid, since: started.map_or(Time(0), |at| at - process::SLACK) })
        }
        Reading::Absent | Reading::Hidden => None,
    })
}

/// The home of a process, by its environment. `None` if that does not tell.
#[cfg(target_os = "linux")]
fn home_of(pid: u32) -> Option<PathBuf> {
    let variables = process::variables(pid, &[HOME_VARIABLE, "HOME"])?;
    let value =
        |name: &str| variables.iter().find(|(is, value)| is == name && !value.is_empty()).map(|(_, value)| value);
    let named = value(HOME_VARIABLE).map(PathBuf::from);
    named.or_else(|| Some(Path::new(value("HOME")?).join(HOME))).filter(|home| home.is_absolute())
}

/// The home of a process: the system does not tell.
#[cfg(not(target_os = "linux"))]
const fn home_of(_: u32) -> Option<PathBuf> {
    None
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    let identity = |folder: &Path| fs::metadata(folder).ok().map(|meta| Identity::of(&meta));
    identity(one).is_some_and(|one| identity(other) == Some(one))
}
