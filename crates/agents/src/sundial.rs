//! A made-up agent, for tests alone: all that an agent needs that is only shown.
//!
//! Its home has a file `sundial.toml`. A session is a file `days/<year>/<month>/<day>/<id>.json`, which is written anew
//! whenever something happens; a process that runs a session names it in `running/<pid>`.

use super::adapter::{Adapter, SessionScanner};
use super::fingerprint::Fingerprint;
use super::listing::Listing;
use super::openings::{OpenSession, Opened};
use super::profile::Profile;
use super::reader::{Reader, SessionReader};
use super::reading::{ReadStatus, Reading};
use super::source::Source;
use super::stamps::Stamps;
use super::walk;
use pilotlight_core::agent::Names;
use pilotlight_core::event::{Body, Event, ToolResult};
use pilotlight_core::facts::Facts;
use pilotlight_core::owner::{Held, Owner};
use pilotlight_core::scan::Text;
use pilotlight_core::session::{About, Allows, Kind, Observed};
use pilotlight_core::time::{Moment, Time};
use pilotlight_system::file_times::modified;
use pilotlight_system::plain_file::{self, Links};
use pilotlight_system::process::is_gone;
use pilotlight_system::watcher::{Layout, Logs, WatchPlan};
use serde::Deserialize;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The folder of a home in which each process names its session.
const RUNNING: &str = "running";
/// How many folders lie between the folder of the sessions and a session: year, month and day.
const DEPTH: usize = 3;
/// The longest session that is read, in bytes.
const LENGTH_MAX: u64 = 1 << 20;
/// Why nothing can be done with its sessions.
const READ_ONLY: &str = "a sundial only shows the time";

/// What is the same about all its homes.
const PROFILE: Profile = Profile {
    names: Names {
        name: "sundial",
        word: "Sundial",
        mark: "Sundial",
        no_owner: "no process names it",
        left_behind: "it named it before",
        contested: "named it",
    },
    program: "sundial",
    fingerprint: Some(Fingerprint {
        program: "sundial",
        releases: None,
        package: "sundial",
        marks: &["SUNDIAL"],
        content: None,
    }),
    installed: &[],
    tried: "1",
    gaps: Some("it can only be looked at"),
    home: ".sundial",
    home_variable: "SUNDIAL_HOME",
    is_home: |home| home.join("sundial.toml").is_file(),
    sessions: "days",
    watch_plan: WatchPlan {
        layout: Layout::Files { depth: DEPTH, session_of, beside: None },
        logs: Some(Logs { folder: RUNNING, pid: |file| file.parse().ok(), names_session: false }),
        notes: None,
        locks: None,
    },
};

/// The session whose file has this name.
fn session_of(file: &str) -> Option<&str> {
    file.strip_suffix(".json").filter(|id| !id.is_empty() && !id.starts_with('.'))
}

/// A session, as its file has it.
#[derive(Deserialize)]
struct File {
    title: Box<str>,
    folder: Box<str>,
    events: Vec<Happening>,
}

/// Something that happened in a session.
#[derive(Deserialize)]
struct Happening {
    at: Box<str>,
    what: Box<str>,
    #[serde(default)]
    text: Box<str>,
}

impl Happening {
    /// The same as the neutral event. `None` for what is not known.
    fn event(&self) -> Option<Event<'_>> {
        let text = Text(self.text.as_bytes());
        let body = match &*self.what {
            "prompt" => Body::Prompt { joins: false, continuation: false, autopilot: None },
            "tool" => Body::ToolStart {
                call: Text(b"shadow"),
                name: Some(Text(b"shadow")),
                command: Some(text),
                detached: false,
                asks: false,
                question: None,
                nested: false,
                asks_unseen: false,
            },
            "tool over" => Body::ToolDone {
                call: Text(b"shadow"),
                result: ToolResult::Success,
                by_user: false,
                shell: None,
                ended: None,
            },
            "answer" => Body::Message { requests_tools: false, asks: self.text.ends_with('?'), model: None },
            "turn over" => Body::RoundEnd,
            "error" => Body::Error { kind: None, message: Some(text), status: None },
            "end" => Body::Shutdown,
            _ => return None,
        };
        let at = Some(Time::parse(self.at.as_bytes())?);
        Some(Event { kind: self.what.as_bytes(), at, id: b"", parent: b"", round: b"", sub_agent: None, body })
    }
}

/// Reads one session.
#[derive(Debug)]
struct Dial {
    root: PathBuf,
    id: Box<str>,
    path: PathBuf,
    /// When the file was last written, as of the last read.
    written: Option<Time>,
    /// The process that runs it, or did.
    pid: Option<u32>,
}

impl SessionReader for Dial {
    fn refresh(
        &mut self,
        reading: &Reading<'_>,
        observed: &mut Observed,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ReadStatus> {
        let meta = fs::symlink_metadata(&self.path)?;
        (observed.touched, observed.has_log) = (modified(&meta), true);
        observed.allows = Allows::Nothing { why: READ_ONLY.into() };
        self.find_owner(reading, observed);
        observed.unread = reading.is_history(observed);
        if observed.unread { Ok(ReadStatus::Complete) } else { Ok(self.read_history(reading, observed, buffer)) }
    }

    fn read_history(&mut self, reading: &Reading<'_>, observed: &mut Observed, _: &mut Vec<u8>) -> ReadStatus {
        observed.unread = false;
        if self.written.replace(observed.touched) == Some(observed.touched) {
            return ReadStatus::Complete;
        }
        match parse(&self.path) {
            Ok(file) => fold(file, reading, observed),
            Err(why) => observed.problem = Some(why.to_string().into()),
        }
        ReadStatus::Complete
    }

    fn about(&self) -> About {
        let file = parse(&self.path).ok();
        file.map_or(About::default(), |file| About { name: Some(file.title), ..About::default() })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn pids(&self) -> Vec<u32> {
        self.pid.into_iter().collect()
    }

    fn process_ended(&mut self, observed: &mut Observed, pid: u32, at: Time) {
        if observed.owner.pid() == Some(pid) {
            observed.owner = Owner::Gone { pid, at: Some(at) };
        }
    }
}

impl Dial {
    fn find_owner(&mut self, reading: &Reading<'_>, observed: &mut Observed) {
        let opening = reading.openings.of(&self.root, &self.id);
        self.pid = opening.map(|opening| opening.pid).or(self.pid);
        observed.holders = opening.map(|opening| opening.pid).into_iter().collect();
        (observed.held, observed.owner) = match (opening, self.pid) {
            (Some(OpenSession { pid, since, .. }), _) => (Held::Verified, Owner::Alive { pid: *pid, started: *since }),
            (None, Some(pid)) => (Held::Unverified, Owner::Gone { pid, at: None }),
            (None, None) => (Held::Unverified, Owner::Never),
        };
    }
}

/// Folds what happened in a session.
fn fold(file: File, reading: &Reading<'_>, observed: &mut Observed) {
    observed.problem = None;
    observed.about = About { name: Some(file.title), cwd: Some(file.folder), kind: Kind::Terminal, ..About::default() };
    observed.facts = Facts::default();
    let now = reading.context.now;
    for event in file.events.iter().filter_map(Happening::event) {
        let wall = event.at.map_or(now.wall, |at| at.min(now.wall));
        let at = Moment { wall, awake: now.awake - (now.wall - wall) };
        observed.facts.fold(&event, at, reading.context.limits);
    }
}

fn parse(path: &Path) -> io::Result<File> {
    let (file, _) = plain_file::open(path, Links::Refused)?;
    let mut text = Vec::new();
    file.take(LENGTH_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// The made-up agent.
pub struct Sundial;

impl Adapter for Sundial {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn list(&self, home: &Source, _: Stamps) -> io::Result<Listing> {
        let mut found = Vec::<Arc<str>>::new();
        walk::files(home.root(), DEPTH, session_of, &mut |_| (), &mut |id, _| {
            found.push(id.into());
            true
        })?;
        Ok(Listing::of(found))
    }

    fn path(&self, home: &Source, id: &str) -> PathBuf {
        walk::find(home.root(), DEPTH, session_of, id).unwrap_or_else(|| home.root().join(id))
    }

    fn open(&self, home: &Source, id: &str, path: PathBuf) -> Reader {
        Box::new(Dial { root: home.root().to_owned(), id: id.into(), path, written: None, pid: None })
    }

    fn scanner(&self) -> Option<Box<dyn SessionScanner>> {
        Some(Box::new(Scanner))
    }
}

/// Finds the sessions that processes name.
#[derive(Debug)]
struct Scanner;

impl SessionScanner for Scanner {
    fn begin(&mut self) {}

    fn advance(&mut self, homes: &[&Source], _: &[String], now: Time, _: Option<Instant>) -> Option<Vec<OpenSession>> {
        Some(homes.iter().flat_map(|home| open_sessions(home.home(), home.root(), now)).collect())
    }
}

/// The sessions that processes of a home run.
fn open_sessions(home: &Path, root: &Path, now: Time) -> Vec<OpenSession> {
    let files = fs::read_dir(home.join(RUNNING)).into_iter().flatten().flatten();
    let open = files.filter_map(|file| {
        let pid = file.file_name().to_str()?.parse().ok().filter(|pid| !is_gone(*pid, now))?;
        let (named, _) = plain_file::open(&file.path(), Links::Refused).ok()?;
        let mut id = String::new();
        named.take(100).read_to_string(&mut id).ok()?;
        let opened = Opened::Session(id.trim().into());
        Some(OpenSession {
            pid,
            root: root.to_owned(),
            opened,
            since: None,
            is_uncertain: false,
            may_be_closed: false,
            guessed: None,
            inside: None,
        })
    });
    open.collect()
}
