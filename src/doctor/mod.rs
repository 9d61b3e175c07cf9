//! What may keep Pilotlight from seeing, showing or doing its work, looked at once: `pilotlight doctor`, and the body of a bug
//! report.
//!
//! Each check only looks. It runs on a thread of its own and has a deadline: a folder on a server that is down, a bus that
//! does not answer or a program that does not end costs that check, and is itself worth telling. What is found is a
//! [`Finding`]: what was seen, how bad that is, and what to do now. Nothing is ever written into Copilot's folders; what can be put
//! right by us is ours alone ([`Fix`]), and is done only when the user says so.
//!
//! A finding is said twice: once for the user, with paths and names, and once for a stranger who reads a bug report. The
//! second text is made of our own words and of numbers, never by taking something out of the first: what is not put in
//! cannot leak.
//!
//! - `program`, `homes`, `servers`, `desktop`, `bridge`, `machine` and `own` are the checks, one file a subject.
//! - [`fix`] puts right what is ours; [`report`] makes a bug report, [`redact`] its words.
//!
//! May import: core, system, agent, config, terminal, control, engine, tray.

mod autostart;
pub mod bridge;
mod desktop;
pub mod fix;
mod homes;
mod machine;
mod own;
mod program;
pub mod redact;
pub mod report;
mod servers;

pub(crate) use fix::Fix;

use crate::config::{Config, Problem};
use crate::core::fleet::Session;
use crate::engine::last_seen::Seen;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What a check has not found out after this it does not: longer than the five seconds that a slow program may take to say its
/// version.
const DEADLINE: Duration = Duration::from_secs(8);
/// So many of the same kind are told one by one; the rest is counted.
const EACH: usize = 20;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// All is well.
    Ok,
    /// Worth knowing; Pilotlight works.
    Warning,
    /// Something does not work because of it.
    Problem,
}

impl Level {
    /// Its word.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What was looked at, in a word.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was seen, for the user.
    pub said: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// The same for a stranger: our own words and numbers alone.
    #[serde(skip)]
    pub redacted: String,
    /// What we can do about it.
    #[serde(skip)]
    pub fix: Option<Fix>,
}

impl Finding {
    fn ok(check: &'static str, said: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, said: said.into(), remedy: None, redacted: String::new(), fix: None }
    }

    fn warning(check: &'static str, said: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { level: Level::Warning, remedy: Some(remedy.into()), ..Self::ok(check, said) }
    }

    fn problem(check: &'static str, said: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { level: Level::Problem, remedy: Some(remedy.into()), ..Self::ok(check, said) }
    }

    /// What a stranger is told of it.
    fn redacted(self, redacted: impl Into<String>) -> Self {
        Self { redacted: redacted.into(), ..self }
    }

    /// What is said holds no name and no path: a stranger is told the same.
    fn told_to_all(self) -> Self {
        Self { redacted: self.said.clone(), ..self }
    }

    fn fixed_by(self, fix: Fix) -> Self {
        Self { fix: Some(fix), ..self }
    }
}

/// Where to look.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    /// Copilot's homes.
    pub homes: Vec<PathBuf>,
    /// The settings.
    pub config: Config,
    /// Where they are read from.
    pub config_path: Option<PathBuf>,
    /// What is wrong with them.
    pub problems: Vec<Problem>,
    /// What the user has looked at.
    pub seen: Seen,
    /// Where things are remembered.
    pub state_folder: Option<PathBuf>,
    /// Where the lock and the socket of the running tray may be, the best first.
    pub runtime_folders: Vec<PathBuf>,
    /// The user's home.
    pub user_home: Option<PathBuf>,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    /// In the order in which they are told.
    pub findings: Vec<Finding>,
    /// The sessions, as far as they could be looked at.
    pub sessions: Vec<Session>,
}

impl Examined {
    /// How bad the worst is.
    pub(crate) fn worst(&self) -> Level {
        self.findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
    }
}

/// What a check comes back with.
struct Seeing {
    findings: Vec<Finding>,
    sessions: Vec<Session>,
}

impl From<Vec<Finding>> for Seeing {
    fn from(findings: Vec<Finding>) -> Self {
        Self { findings, sessions: Vec::new() }
    }
}

/// A check: its name, what is told where it does not come back, and itself.
type Check = (&'static str, &'static str, fn(&Ground) -> Seeing);

const CHECKS: [Check; 10] = [
    ("version", "this program", |_| vec![own::version()].into()),
    ("config", "the settings", |ground| own::config(ground).into()),
    ("state", "what Pilotlight remembers", |ground| own::state(ground).into()),
    ("copilot", "the Copilot CLI", |ground| program::copilot(ground).into()),
    ("sessions", "Copilot's homes", homes_and_servers),
    ("bridge", "the bridge to terminals", |ground| bridge::bridge(ground).into()),
    ("watches", "the limit of file watches", |ground| machine::watches(ground).into()),
    ("descriptors", "the limit of open files", |ground| machine::descriptors(ground).into()),
    ("desktop", "the session bus", |_| desktop::desktop().into()),
    ("autostart", "what is started at login", |_| autostart::autostart().into()),
];

fn homes_and_servers(ground: &Ground) -> Seeing {
    let (mut findings, sessions) = homes::homes(ground);
    findings.extend(servers::servers(ground, &sessions));
    Seeing { findings, sessions }
}

/// Looks at everything, each check beside the others. Takes as long as the slowest, and at most eight seconds.
pub(crate) fn examine(ground: &Ground) -> Examined {
    let ground = Arc::new(ground.clone());
    let until = Instant::now() + DEADLINE;
    let under_way = CHECKS.map(|(check, subject, look)| {
        let (tell, told) = mpsc::channel();
        let ground = Arc::clone(&ground);
        let work = move || {
            let _ = tell.send(look(&ground)); // nobody listens any more after the deadline
        };
        let started = std::thread::Builder::new().name(check.into()).spawn(work);
        (check, subject, started.map(|_| told))
    });
    let mut examined = Examined::default();
    for (check, subject, told) in under_way {
        let left = until.saturating_duration_since(Instant::now());
        match told.map(|told| told.recv_timeout(left)) {
            Ok(Ok(seeing)) => {
                examined.findings.extend(seeing.findings);
                examined.sessions.extend(seeing.sessions);
            }
            Err(error) => examined.findings.push(
                Finding::problem(
                    check,
                    format!("{subject} could not be checked: the system allows no further thread ({error})"),
                    "raise the limit of your processes (`ulimit -u`), or of memory (`ulimit -v`), or end some; and try again",
                )
                .told_to_all(),
            ),
            Ok(Err(_)) => examined.findings.push(
                Finding::problem(
                    check,
                    format!("{subject} could not be checked within {} s", DEADLINE.as_secs()),
                    "something there does not answer: a folder on another machine, or a program that hangs; look at it and try again",
                )
                .told_to_all(),
            ),
        }
    }
    examined
}
