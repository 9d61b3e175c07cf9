//! Somebody who uses Claude Code: recordings (`tests/claude-code`) are laid down anew, step by step, some with blanks in their JSON. As
//! recorded, the file of the process is ahead of the log, is written in place, and is gone before a clean end; a
//! process that is killed leaves it behind. Case 294. Where the home is another profile's, whose logs are a link to those that
//! are followed, the same is true: case 517.

use super::played::{GAP, Stage, later, millis, new_id, recordings, spaced};
use super::truth::{Truth, now};
use crate::support::synthetic::Owner;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Those with one session that do not depend on the passing of minutes.
const RECORDINGS: [&str; 21] = [
    "agent",
    "agent-perm",
    "ask",
    "bgshell",
    "deny3",
    "err429",
    "esc-tool",
    "long-tool",
    "p-kill",
    "p-plain",
    "perm-approve",
    "perm-deny",
    "perm-kill",
    "plan",
    "question",
    "sdk",
    "sighup-tool",
    "sigkill-tool",
    "sigterm-tool",
    "agent-fg",
    "workflow",
];
/// The times in the file of a process.
const TIMES: [&str; 4] = ["startedAt", "updatedAt", "statusUpdatedAt", "nameSince"];
/// How much earlier than its label a status may change, in milliseconds: labels are rounded, and the steps of a
/// recording are 50 ms on a busy machine.
const EARLY: i64 = 300;
/// How long a process outlives its file at a clean end, in milliseconds.
const OUTLIVES: i64 = 150;

/// One person, who has one session at a time.
pub(crate) struct ClaudeCode<'a>(pub(crate) Stage<'a>);

/// What happens next in a recording.
enum Step {
    Event(Value),
    /// The next label is near.
    Unsure,
    /// From now on this is true.
    Label(Truth),
}

/// A recording that is played.
struct Play {
    home: PathBuf,
    folder: PathBuf,
    /// The session's id, there and here.
    ids: Option<(String, String)>,
    /// When it was recorded, by its own clock, in milliseconds.
    start: i64,
    /// Ours for each of the recorded processes.
    owners: HashMap<String, Owner>,
    /// How much of each log is written.
    written: HashMap<String, usize>,
    /// Its logs are written with blanks in their JSON.
    is_spaced: bool,
}

impl ClaudeCode<'_> {
    /// Plays a recording to its end, or to the death of its process, and removes what it left.
    pub(crate) fn act(&mut self) {
        let name = self.0.one_of(&RECORDINGS);
        let folder = folder(name);
        let mut play = Play::new(self.0.home, &folder);
        play.is_spaced = self.0.rng.below(2) == 0;
        let (mut at, mut truth) = (0, Truth::Unknown);
        for (time, step) in steps(&folder) {
            let is_gap = time - at > GAP;
            if !self.0.follow(time - at) || is_gap && self.0.rng.below(8) == 0 && self.kills(&mut play, name, truth) {
                break;
            }
            at = time;
            match &step {
                Step::Event(event) => self.happens(&mut play, event, time),
                Step::Unsure => truth = Truth::Unknown,
                Step::Label(label) => truth = *label,
            }
            if !matches!(step, Step::Event(_)) {
                self.note(&play, truth);
            }
        }
        println!("{name}: {:?}", play.ids);
        self.0.rest();
        self.note(&play, Truth::Unknown);
        play.remove();
        self.note(&play, Truth::Absent);
    }

    /// Kills the processes of a session that does this, and returns whether that was done.
    fn kills(&self, play: &mut Play, name: &str, truth: Truth) -> bool {
        let left = match truth {
            _ if play.owners.is_empty() => return false,
            // Of a session that was never prompted, nothing is left.
            _ if play.written.is_empty() => Truth::Absent,
            Truth::Is("working" | "needs-permission") => Truth::Is("crashed"),
            // Its tools were denied up to the end, and nobody was asked.
            Truth::Is("idle") if name == "deny3" => Truth::Is("failed"),
            Truth::Is("idle") => Truth::Is("ended"),
            _ => return false,
        };
        self.note(play, Truth::Unknown);
        play.owners.clear();
        self.note(play, left);
        true
    }

    fn note(&self, play: &Play, truth: Truth) {
        // What a killed process left in a home that is not followed is found by those alone who saw it live.
        let is_known = truth != Truth::Is("crashed") || !self.0.home.join("projects").is_symlink();
        let truth = if is_known { truth } else { Truth::Unknown };
        if let Some((_, id)) = &play.ids {
            self.0.note(id, truth);
        }
    }

    fn happens(&self, play: &mut Play, event: &Value, time: i64) {
        if let Some(rest) = event["mark"].as_str().and_then(|mark| mark.strip_prefix("signal ")) {
            let (number, pid) = rest.split_once(" to ").unwrap();
            if number == "9" {
                play.owners.remove(pid).map(Owner::kill);
            }
        }
        let Some(file) = event["file"].as_str().and_then(|file| file.strip_prefix(".claude/")) else { return };
        let recorded = file.strip_prefix("sessions/").and_then(|file| file.strip_suffix(".json"));
        match (recorded, event["ev"] == "gone") {
            (Some(pid), true) => {
                if let Some(owner) = play.owners.remove(pid) {
                    let _ = fs::remove_file(play.home.join(format!("sessions/{}.json", owner.pid())));
                    self.0.wait(OUTLIVES);
                    owner.kill();
                }
            }
            (Some(pid), false) => play.says(pid, event["text"].as_str().unwrap_or_default(), time),
            (None, true) => drop(fs::remove_file(play.place(file))),
            (None, false) => play.write(file, event, time),
        }
    }
}

impl Play {
    fn new(home: &Path, folder: &Path) -> Self {
        let written = events(folder).filter_map(|event| {
            let json: Value = serde_json::from_str(event["text"].as_str()?).ok()?;
            Some(json["updatedAt"].as_i64().or(json["startedAt"].as_i64())? - time_of(&event))
        });
        let start = written.max().expect("a process says when it started");
        let (home, folder) = (home.to_owned(), folder.to_owned());
        Self { home, folder, ids: None, start, owners: HashMap::new(), written: HashMap::new(), is_spaced: false }
    }

    /// By how much later it happens here than it did there.
    fn shift(&self, time: i64) -> i64 {
        now() - (self.start + time)
    }

    fn with_own_id(&self, text: &str) -> String {
        self.ids.as_ref().map_or_else(|| text.to_owned(), |(there, here)| text.replace(there, here))
    }

    fn place(&self, file: &str) -> PathBuf {
        self.home.join(self.with_own_id(file))
    }

    /// A process writes its file.
    fn says(&mut self, recorded: &str, text: &str, time: i64) {
        let shift = self.shift(time);
        let program = self.home.parent().unwrap();
        let owner = self
            .owners
            .entry(recorded.to_owned())
            .or_insert_with(|| Owner::start_with(program, "claude", &[("CLAUDE_CONFIG_DIR", &self.home)]));
        let path = self.home.join(format!("sessions/{}.json", owner.pid()));
        let Ok(mut json) = serde_json::from_str::<Value>(text) else { return fs::write(path, text).unwrap() };
        json["pid"] = owner.pid().into();
        json["procStart"] = start_of(owner.pid()).into();
        if json.get("pidDomain").is_some() {
            let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
            let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
            json["pidDomain"] = format!("linux:{}:{}", machine.trim(), namespace.display()).into();
        }
        for key in TIMES {
            if let Some(at) = json[key].as_i64() {
                json[key] = (at + shift).into();
            }
        }
        if self.ids.is_none() {
            self.ids = Some((json["sessionId"].as_str().unwrap().to_owned(), new_id(4)));
        }
        fs::write(path, self.with_own_id(&json.to_string())).unwrap();
    }

    /// Another file changes: a small one is written anew, and a log grows.
    fn write(&mut self, file: &str, event: &Value, time: i64) {
        let path = self.place(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if let Some(text) = event["text"].as_str() {
            return fs::write(path, self.with_own_id(text)).unwrap();
        }
        let Some(rest) = file.strip_prefix("projects/") else { return };
        let Ok(whole) = fs::read_to_string(self.folder.join("files").join(rest)) else { return };
        let size = event["size"].as_u64().map_or(whole.len(), |size| whole.len().min(size as usize));
        let written = self.written.insert(file.to_owned(), size).unwrap_or_default();
        let Some(new) = whole.get(written..size) else { return };
        let lines = later(&self.with_own_id(new), self.shift(time));
        let lines = if self.is_spaced && lines.ends_with('\n') { spaced(&lines) } else { lines };
        let mut log = fs::File::options().append(true).create(true).open(path).unwrap();
        log.write_all(lines.as_bytes()).unwrap();
    }

    /// Ends what still runs, and removes what it left.
    fn remove(&mut self) {
        self.owners.clear();
        let Some((_, id)) = self.ids.clone() else { return };
        for entry in fs::read_dir(self.home.join("sessions")).unwrap().flatten() {
            if fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(&id)) {
                let _ = fs::remove_file(entry.path()); // another one may have been faster
            }
        }
        for file in self.written.keys() {
            let log = self.place(file);
            let _ = fs::remove_dir_all(log.with_extension(""));
            let _ = fs::remove_file(log);
        }
    }
}

/// The recording of this name, of whichever release.
fn folder(name: &str) -> PathBuf {
    let mut folders =
        ["2.1.330", "2.1.332"].map(|version| recordings("claude-code").join(version).join(name)).into_iter();
    folders.find(|folder| folder.is_dir()).unwrap()
}

fn events(folder: &Path) -> impl Iterator<Item = Value> {
    let text = fs::read_to_string(folder.join("timeline.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>().into_iter()
}

fn time_of(event: &Value) -> i64 {
    (event["t"].as_f64().unwrap() * 1000.0) as i64
}

/// What happens in a recording, with the milliseconds since its start. Of two statuses that are both right, neither is
/// the truth.
fn steps(folder: &Path) -> Vec<(i64, Step)> {
    let mut steps: Vec<_> = events(folder).map(|event| (time_of(&event), Step::Event(event))).collect();
    let labels = fs::read_to_string(folder.join("labels.txt")).unwrap();
    for label in labels.lines() {
        let (at, status) = label.split_once(' ').unwrap();
        let Ok(at) = at.parse::<f64>() else {
            assert_eq!(label, "session 1", "a recording with one session");
            continue;
        };
        let at = (at * 1000.0) as i64;
        let truth = STATUSES.iter().find(|known| **known == status).map_or(Truth::Unknown, |status| Truth::Is(status));
        steps.push((at - EARLY, Step::Unsure));
        // It is rounded.
        steps.push((at + 60, Step::Label(truth)));
    }
    steps.sort_by_key(|(at, _)| *at);
    steps
}

/// The statuses that labels may name.
const STATUSES: [&str; 8] =
    ["idle", "working", "needs-permission", "needs-input", "permission-lost", "failed", "crashed", "ended"];

/// When a process started, as its file says it.
fn start_of(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit_once(") ").unwrap().1;
    rest.split(' ').nth(19).unwrap().to_owned()
}

#[test]
fn every_recording_that_is_played_has_steps_and_labels() {
    for name in RECORDINGS {
        let folder = folder(name);
        let steps = steps(&folder);
        let labels = steps.iter().filter(|(_, step)| matches!(step, Step::Label(Truth::Is(_)))).count();
        assert!(labels >= 2, "{name}: {labels} labels");
        let log = events(&folder)
            .find_map(|event| Some(event["file"].as_str()?.strip_prefix(".claude/projects/")?.to_owned()));
        let text = fs::read_to_string(folder.join("files").join(log.unwrap())).unwrap();
        assert!(text.contains("\"timestamp\":\"") && millis("2026-11-23T19:17:23.579Z").is_some(), "{name}");
    }
}
