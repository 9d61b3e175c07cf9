//! Recordings of real sessions, played on disk with a real process for each of theirs, and judged at each moment;
//! `tests/claude-code/README.md` says what they are. And what goes wrong around one session.

mod around;
mod faults;

use super::*;
use crate::openings::OpenSessions;
use crate::tail::ReadContext;
use pilotlight_core::fleet::{Row, Session as Shown};
use pilotlight_core::limits::Limits;
use pilotlight_system::process::births;
use pilotlight_system::process::testing::{Running, waiting};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::HashMap;
use std::collections::HashSet;

/// How often the sessions are judged, in milliseconds.
const STEP: i64 = 250;
/// How long after the evidence a status must show, and how long before the next one's it need not any more, in
/// milliseconds: times in the recordings are upper bounds.
const LATE: i64 = 1000;
const EARLY: i64 = 300;

fn session(home: &Path, id: &str) -> ClaudeReader {
    let root = home.join(store::PROJECTS);
    ClaudeReader::new(home, &root, id, store::path(home, &root, id))
}

/// A home, and a reader of each of its sessions.
struct World {
    scratch: tempfile::TempDir,
    readers: Vec<(ClaudeReader, Shown)>,
    limits: Limits,
}

impl World {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir_all(scratch.path().join(pid_file::FOLDER)).unwrap();
        fs::create_dir_all(scratch.path().join(store::PROJECTS)).unwrap();
        Self { scratch, readers: Vec::new(), limits: Limits::default() }
    }

    fn home(&self) -> &Path {
        self.scratch.path()
    }

    fn write(&self, path: &str, text: &[u8]) {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Adds readers for sessions that processes name for the first time.
    fn find_sessions(&mut self) {
        for file in pid_file::all(self.home()) {
            if self.readers.iter().all(|(reader, _)| reader.id != file.session) {
                let reader = session(self.home(), &file.session);
                self.readers.push((reader, Shown { id: file.session.clone(), ..Shown::default() }));
            }
        }
    }

    /// Reads all again. Returns what became of each.
    fn refresh(&mut self, now: Moment) -> Vec<io::Result<ReadStatus>> {
        self.refresh_with(now, OpenSessions::NONE)
    }

    /// The same, where these processes of agents run.
    fn refresh_with(&mut self, now: Moment, openings: &OpenSessions) -> Vec<io::Result<ReadStatus>> {
        let (known, mut buffer) = (HashSet::new(), Vec::new());
        let reading = Reading {
            context: ReadContext { now, limits: &self.limits, until: None },
            owner_names: &[],
            known: &known,
            openings,
            all: false,
        };
        let read =
            |(reader, shown): &mut (ClaudeReader, Shown)| reader.refresh(&reading, &mut shown.observed, &mut buffer);
        self.readers.iter_mut().map(read).collect()
    }

    fn ended(&mut self, pid: u32, at: Time) {
        for (reader, shown) in &mut self.readers {
            reader.process_ended(&mut shown.observed, pid, at);
        }
    }

    fn row(&self, session: usize, now: Moment) -> Option<Row> {
        self.readers.get(session).map(|(_, shown)| shown.row(now, &self.limits).0)
    }
}

/// The file of a process as it was recorded, as if a process of ours had written it.
fn as_if_by(text: &str, process: &Running) -> String {
    let Ok(mut json) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let birth = births(Time(0))(process.pid()).unwrap();
    json["pid"] = process.pid().into();
    json["procStart"] = birth.ticks.to_string().into();
    if json.get("pidDomain").is_some() {
        let machine = own_machine_or_none();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
        json["pidDomain"] = format!("linux:{machine}:{}", namespace.display()).into();
    }
    json.to_string()
}

fn own_machine_or_none() -> String {
    fs::read_to_string("/etc/machine-id").unwrap_or_default().trim().to_owned()
}

fn signal(process: &Running, number: &str) {
    let signal = match number {
        "19" => Signal::STOP,
        "18" => Signal::CONT,
        _ => Signal::KILL,
    };
    kill_process(Pid::from_raw(process.pid().cast_signed()).unwrap(), signal).unwrap();
}

/// A recording that is played.
struct Play {
    world: World,
    folder: PathBuf,
    /// The wall clock at its start.
    start: i64,
    processes: HashMap<String, Running>,
    /// Ours for each of theirs, also after its end.
    pids: HashMap<String, u32>,
    /// Processes that end at the next step: a clean end deletes the file first.
    ending: Vec<String>,
}

impl Play {
    fn new(folder: &Path, events: &[Value]) -> Self {
        let at = |event: &Value| (event["t"].as_f64().unwrap() * 1000.0) as i64;
        let written = events.iter().filter_map(|event| {
            let json: Value = serde_json::from_str(event["text"].as_str()?).ok()?;
            Some(json["updatedAt"].as_i64().or(json["startedAt"].as_i64())? - at(event))
        });
        let start = written.max().unwrap_or(1_795_461_440_000);
        let (processes, pids, ending) = (HashMap::new(), HashMap::new(), Vec::new());
        Self { world: World::new(), folder: folder.to_owned(), start, processes, pids, ending }
    }

    fn now(&self, t: i64) -> Moment {
        Moment::of(Time(self.start + t))
    }

    fn end(&mut self, recorded: &str, t: i64) {
        if let Some(mut process) = self.processes.remove(recorded) {
            let pid = process.pid();
            process.end();
            self.world.ended(pid, Time(self.start + t));
        }
    }

    fn apply(&mut self, event: &Value, t: i64) {
        if let Some(rest) = event["mark"].as_str().and_then(|mark| mark.strip_prefix("signal ")) {
            let (number, pid) = rest.split_once(" to ").unwrap();
            match number {
                "9" | "10" | "12" => self.end(pid, t),
                "18" | "19" => signal(&self.processes[pid], number),
                _ => {}
            }
        }
        let Some(file) = event["file"].as_str().and_then(|file| file.strip_prefix(".claude/")) else { return };
        if let Some(recorded) = file.strip_prefix("sessions/").and_then(|file| file.strip_suffix(".json")) {
            return self.apply_pid_file(recorded, event);
        }
        if event["ev"] == "gone" {
            let _ = fs::remove_file(self.world.home().join(file));
        } else if let Some(text) = event["text"].as_str() {
            self.world.write(file, text.as_bytes());
        } else if let Some(rest) = file.strip_prefix("projects/") {
            let whole = fs::read(self.folder.join("files").join(rest)).unwrap_or_default();
            let size = event["size"].as_u64().map_or(whole.len(), |size| whole.len().min(size as usize));
            self.world.write(file, &whole[..size]);
        }
    }

    fn apply_pid_file(&mut self, recorded: &str, event: &Value) {
        if event["ev"] == "gone" {
            if let Some(pid) = self.pids.get(recorded) {
                let _ = fs::remove_file(pid_file::path(self.world.home(), *pid));
                self.ending.push(recorded.to_owned());
            }
            return;
        }
        let process = self.processes.entry(recorded.to_owned()).or_insert_with(waiting);
        let text = as_if_by(event["text"].as_str().unwrap_or_default(), process);
        let pid = process.pid();
        self.pids.insert(recorded.to_owned(), pid);
        self.world.write(&format!("{}/{pid}.json", pid_file::FOLDER), text.as_bytes());
    }
}

/// The status of each session at each step.
fn play(folder: &Path) -> Vec<(i64, Vec<Option<Row>>)> {
    let text = fs::read_to_string(folder.join("timeline.jsonl")).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut play = Play::new(folder, &events);
    let (mut rest, mut steps) = (events.iter().peekable(), Vec::new());
    let last = (events.last().unwrap()["t"].as_f64().unwrap() * 1000.0) as i64 + 3000;
    for t in (0..last).step_by(STEP as usize) {
        let mut is_new = !play.ending.is_empty();
        for recorded in std::mem::take(&mut play.ending) {
            play.end(&recorded, t);
        }
        while let Some(event) = rest.next_if(|event| event["t"].as_f64().unwrap() * 1000.0 <= t as f64) {
            play.apply(event, t);
            is_new = true;
        }
        let now = play.now(t);
        play.world.find_sessions();
        is_new |= play.world.readers.iter().any(|(reader, _)| reader.owner_recheck_at().is_some());
        if is_new {
            play.world.refresh(now);
        }
        steps.push((t, (0..play.world.readers.len()).map(|session| play.world.row(session, now)).collect()));
    }
    steps
}

/// The statuses of a session that are right from a time on, and the next time.
fn labels(folder: &Path) -> Vec<(usize, i64, String, i64)> {
    let text = fs::read_to_string(folder.join("labels.txt")).unwrap();
    let (mut session, mut found) = (0, Vec::<(usize, i64, String, i64)>::new());
    for line in text.lines() {
        let (first, second) = line.split_once(' ').unwrap();
        if first == "session" {
            session = second.parse::<usize>().unwrap() - 1;
            continue;
        }
        let at = (first.parse::<f64>().unwrap() * 1000.0) as i64;
        if let Some(before) = found.last_mut().filter(|before| before.0 == session) {
            before.3 = at;
        }
        found.push((session, at, second.to_owned(), i64::MAX / 2));
    }
    found
}

/// What is wrong about a recording.
fn faults(folder: &Path) -> Vec<String> {
    let name = folder.strip_prefix(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap().display().to_string();
    let (steps, mut faults) = (play(folder), Vec::new());
    for (session, from, statuses, until) in labels(folder) {
        let in_time = |t: i64| t >= from + LATE && t < until - EARLY;
        for (t, rows) in steps.iter().filter(|(t, _)| in_time(*t)) {
            let row = rows.get(session).and_then(Option::as_ref);
            let status = row.map_or("none", |row| row.status.name());
            let fits = |right: &str| right == status || right == "any" || right == "working" && status == "finishing";
            if !statuses.split('|').any(fits) {
                let because = row.map(|row| row.because.to_string()).unwrap_or_default();
                faults.push(format!("{name} session {}: at {t} ms {status}, not {statuses}: {because}", session + 1));
                break;
            }
        }
    }
    faults
}

/// Case 251.
#[test]
fn case_251_recordings_are_told_as_they_were_labelled() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/claude-code");
    let mut folders = Vec::new();
    for version in fs::read_dir(root).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        folders.extend(fs::read_dir(version.path()).unwrap().flatten().map(|entry| entry.path()));
    }
    folders.sort();
    let only = std::env::var("PILOTLIGHT_TEST_RECORDING").unwrap_or_default();
    let found: Vec<_> = folders.iter().filter(|folder| folder.ends_with(&only) || only.is_empty()).collect();
    assert!(!found.is_empty());
    let faults: Vec<_> = found.into_iter().flat_map(|folder| faults(folder)).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
