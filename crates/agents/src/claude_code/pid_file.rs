//! What each process of Claude Code says of itself: `sessions/<pid>.json`, the authority on who runs a session.
//!
//! Beside them lie files with secrets, `<pid>.<hex>.key`: only names that are all digits are ever opened.

use pilotlight_core::time::Time;
use pilotlight_core::verdict::reported_state::{State, Wait};
use pilotlight_system::plain_file::{self, Links, OpenError, is_absence};
use pilotlight_system::process::{self, PidStatus};
use serde_json::Value;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The folder of a home that holds them.
pub(super) const FOLDER: &str = "sessions";
/// The longest one that is read, in bytes; they have 600.
const LENGTH_MAX: u64 = 64 << 10;
/// How often one is read again that is being written: they are written in place, within microseconds.
const TRIES: usize = 20;
/// The most files that the folder may have: each session looks at all of them.
const FILES_MAX: usize = 1_000;

/// What a process says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PidFile {
    /// The home that it is in.
    pub(super) home: PathBuf,
    pub(super) pid: u32,
    /// When the process started, in the system's unit, which no other process with its id has.
    pub(super) start: Option<Box<str>>,
    /// When it started, by the wall clock.
    pub(super) started: Option<Time>,
    /// The machine, and where on it its id means something.
    pub(super) domain: Option<Box<str>>,
    pub(super) session: Box<str>,
    pub(super) cwd: Option<Box<str>>,
    pub(super) version: Option<Box<str>>,
    /// A supervisor runs it in the background.
    pub(super) is_background: bool,
    /// How the session is used: `cli`, `sdk-cli`, `sdk-py`.
    pub(super) entrypoint: Option<Box<str>>,
    /// What the session does. `None`: it does not say.
    pub(super) state: Option<State>,
    /// Since when, by the wall clock.
    pub(super) since: Option<Time>,
    /// The title that its user gave it.
    pub(super) name: Option<Box<str>>,
    /// The tmux pane that shows it.
    pub(super) pane: Option<Box<str>>,
}

/// Whether the process that wrote a file still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// It does.
    Alive,
    /// It does not.
    Dead,
    /// That cannot be told: another user's, or of another container.
    Unknown,
}

/// What is found under the name of a process's file.
#[derive(Debug)]
pub(super) enum Found {
    /// What the process says.
    File(PidFile),
    /// Nothing, or nothing that makes sense, or the process has no session yet.
    Nothing,
    /// It is cut, empty, or no file at all: the process may say anything.
    Unreadable,
}

/// What all processes of a home say of themselves.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) files: Vec<PidFile>,
    /// The processes whose file cannot be read.
    pub(super) unreadable: Vec<u32>,
}

/// The process whose file has this name.
pub(super) fn pid_of(file: &str) -> Option<u32> {
    let digits = file.strip_suffix(".json")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Where the file of a process is.
pub(super) fn path(home: &Path, pid: u32) -> PathBuf {
    home.join(FOLDER).join(format!("{pid}.json"))
}

/// What all processes of a home say of themselves, as far as that can be read.
pub(super) fn all(home: &Path) -> Vec<PidFile> {
    list(home).unwrap_or_default().files
}

/// The processes that have a file.
///
/// # Errors
/// Where their folder is there, and cannot be listed, or has too many.
pub(super) fn pids(home: &Path) -> io::Result<Vec<u32>> {
    match fs::read_dir(home.join(FOLDER)) {
        Ok(entries) => {
            let entries: Vec<_> = entries.flatten().take(FILES_MAX + 1).collect();
            if entries.len() > FILES_MAX {
                return Err(io::Error::other(format!(
                    "it has more than {FILES_MAX} files: remove those of old processes"
                )));
            }
            Ok(entries.iter().filter_map(|entry| pid_of(entry.file_name().to_str()?)).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// What all processes of a home say of themselves.
///
/// # Errors
/// Where their folder is there, and cannot be listed, or has too many.
pub(super) fn list(home: &Path) -> io::Result<Listed> {
    let mut listed = Listed::default();
    for pid in pids(home)? {
        match find(home, pid) {
            Found::File(file) => listed.files.push(file),
            Found::Nothing => {}
            Found::Unreadable => listed.unreadable.push(pid),
        }
    }
    Ok(listed)
}

/// What a process says of itself. `None` if it says nothing that makes sense, or has no session yet.
pub(super) fn read(home: &Path, pid: u32) -> Option<PidFile> {
    match find(home, pid) {
        Found::File(file) => Some(file),
        Found::Nothing | Found::Unreadable => None,
    }
}

/// Whether a process has left a file that cannot be read.
pub(super) fn is_unreadable(home: &Path, pid: u32) -> bool {
    matches!(find(home, pid), Found::Unreadable)
}

fn find(home: &Path, pid: u32) -> Found {
    let path = path(home, pid);
    for _ in 0..TRIES {
        let file = match plain_file::open(&path, Links::Refused) {
            Ok((file, _)) => file,
            Err(OpenError::Io(error)) if is_absence(&error) => return Found::Nothing,
            Err(_) => return Found::Unreadable,
        };
        let mut text = Vec::new();
        if file.take(LENGTH_MAX).read_to_end(&mut text).is_err() {
            return Found::Unreadable;
        }
        if let Ok(json) = serde_json::from_slice(&text) {
            let file = PidFile::parse(home, &json).filter(|file| file.pid == pid);
            return file.map_or(Found::Nothing, Found::File);
        }
        std::thread::yield_now();
    }
    Found::Unreadable
}

impl PidFile {
    fn parse(home: &Path, json: &Value) -> Option<Self> {
        let text = |key: &str| json.get(key).and_then(Value::as_str).map(Box::<str>::from);
        let millis = |key: &str| json.get(key).and_then(Value::as_i64).map(Time);
        let is = |key: &str, value: &str| text(key).is_some_and(|text| *text == *value);
        let state = state(text("status").as_deref(), text("waitingFor").as_deref());
        let is_background = is("kind", "bg");
        // A background process has no session yet, or names another one for a moment when it is started again.
        if json.get("spare").and_then(Value::as_bool) == Some(true) || is_background && state.is_none() {
            return None;
        }
        Some(Self {
            home: home.to_owned(),
            pid: u32::try_from(json.get("pid")?.as_u64()?).ok()?,
            start: text("procStart").or_else(|| Some(json.get("procStart")?.as_u64()?.to_string().into())),
            started: millis("startedAt"),
            domain: text("pidDomain"),
            session: text("sessionId").filter(|id| is_id(id))?,
            cwd: text("cwd"),
            version: text("version"),
            is_background,
            entrypoint: text("entrypoint"),
            state,
            since: millis("statusUpdatedAt").or_else(|| millis("updatedAt")),
            name: text("name").filter(|_| !is("nameSource", "derived") && !is("nameSource", "auto") && !is_background),
            pane: text("tmux").and_then(|tmux| pane_in(&tmux)),
        })
    }

    /// Whether the process that wrote it still runs. `now` is the wall clock.
    pub(super) fn life(&self, now: Time) -> Life {
        if self.is_elsewhere() {
            return if self.contained() == Some(None) { Life::Dead } else { Life::Unknown };
        }
        match process::read(self.pid, now) {
            PidStatus::Absent => Life::Dead,
            PidStatus::Hidden => Life::Unknown,
            PidStatus::Process { started, .. } if self.is_start(started, now) => Life::Alive,
            PidStatus::Process { .. } => Life::Dead,
        }
    }

    /// Whether its process id means nothing here: it is another container's, or another machine's.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.domain.as_deref().is_some_and(|domain| !is_here(domain))
    }

    /// The id here of the process that wrote it in a container of this machine; `Some(None)` if that has ended, `None` where
    /// it cannot be told.
    #[cfg(target_os = "linux")]
    pub(super) fn contained(&self) -> Option<Option<u32>> {
        let (domain, own) = (self.domain.as_deref()?, own_machine()?);
        let ticks = self.start.as_ref()?.parse().ok()?;
        if machine_of(domain) == Some(&*own) { process::contained(self.pid, ticks) } else { None }
    }

    /// The same: only Linux tells.
    #[cfg(not(target_os = "linux"))]
    pub(super) const fn contained(&self) -> Option<Option<u32>> {
        None
    }

    /// Whether this process, which runs in a container, wrote it there.
    pub(super) fn is_by(&self, pid: u32) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(ticks) = self.start.as_ref().and_then(|start| start.parse().ok()) {
            return process::is_contained(pid, self.pid, ticks);
        }
        let _ = pid;
        false
    }

    /// Whether the process of its id that started then is the one that wrote it.
    fn is_start(&self, started: Option<Time>, now: Time) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(start) = &self.start {
            let birth = process::births(now)(self.pid);
            let claimed = start.parse();
            return birth.is_some_and(|birth| claimed.is_ok_and(|at| process::is_own_start(self.pid, birth.ticks, at)));
        }
        // Elsewhere the unit of the start is not known. Whoever started after it was written did not write it.
        let _ = now;
        started.zip(self.started).is_none_or(|(started, written)| started <= written + process::SLACK)
    }

    /// Whether it is of this process, which started then, in the system's own unit.
    #[cfg(target_os = "linux")]
    pub(super) fn is_of(&self, pid: u32, born: u64) -> bool {
        let is_start = |start: &str| start.parse().is_ok_and(|at| process::is_own_start(pid, born, at));
        self.start.as_deref().is_none_or(is_start)
    }

    /// Whether another file is of the same process.
    pub(super) fn is_same_process(&self, other: &Self) -> bool {
        self.pid == other.pid && self.start == other.start && self.home == other.home
    }
}

/// What a session does, by the words of its process.
fn state(status: Option<&str>, waits_for: Option<&str>) -> Option<State> {
    Some(match status? {
        "busy" => State::Busy,
        "idle" => State::Idle { shell: false },
        "shell" => State::Idle { shell: true },
        "waiting" => State::Waiting(match waits_for {
            Some("permission prompt" | "worker request" | "sandbox request" | "goal proposal") => Wait::Permission,
            Some("dialog open") => Wait::Dialog,
            _ => Wait::Input,
        }),
        _ => return None,
    })
}

/// Whether an id is one of a session: nothing else may become a part of a path.
pub(super) fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The pane of a place in tmux, `<session>:@<window>.%<pane>`.
fn pane_in(place: &str) -> Option<Box<str>> {
    let pane = place.rsplit_once('.')?.1;
    let digits = pane.strip_prefix('%')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| pane.into())
}

/// Whether process ids of this domain, `linux:<machine>:pid:[<namespace>]`, mean something here.
fn is_here(domain: &str) -> bool {
    if !cfg!(target_os = "linux") {
        return true; // not known there
    }
    let own = fs::read_link("/proc/self/ns/pid").ok();
    let namespace = own.as_deref().and_then(Path::to_str);
    let is_machine = machine_of(domain).is_none_or(|machine| own_machine().is_none_or(|own| *own == *machine));
    is_machine && namespace.is_none_or(|own| domain.ends_with(own))
}

/// The machine that a domain names.
fn machine_of(domain: &str) -> Option<&str> {
    Some(domain.strip_prefix("linux:")?.split_once(':')?.0)
}

/// This machine's id.
fn own_machine() -> Option<String> {
    let (file, _) = plain_file::open(Path::new("/etc/machine-id"), Links::Followed).ok()?;
    let mut id = String::new();
    file.take(100).read_to_string(&mut id).ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests;
