//! Recorded logs, checked against labels that were written by hand, from the design and the log alone.
//!
//! Each folder of `tests/traces/` has a session as it was on disk, and `labels.txt`: the expected status and a word of
//! its reason, at a line or some time after the last one. `tests/traces/README.md` describes the format.

use pilotlight_agents::copilot::log_format;
use pilotlight_core::facts::Facts;
use pilotlight_core::limits::Limits;
use pilotlight_core::replay::{OwnerStory, Parse, Replay};
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Verdict;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) struct Label {
    owner: OwnerStory,
    at: At,
    status: String,
    words: String,
    source: String,
}

enum At {
    Line(usize),
    After(Span),
}

fn span(text: &str) -> Span {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap();
    let n: i64 = text[..digits].parse().unwrap();
    match &text[digits..] {
        "ms" => Span(n),
        "s" => Span::seconds(n),
        "min" => Span::minutes(n),
        "h" => Span::hours(n),
        unit => panic!("unknown unit {unit}"),
    }
}

pub(super) fn labels(path: &Path) -> Vec<Label> {
    let mut owner = None;
    let mut labels = Vec::new();
    for (number, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
        let source = format!("{}:{}: {line}", path.display(), number + 1);
        let columns: Vec<_> = line.split('#').next().unwrap().split_whitespace().collect();
        match columns[..] {
            [] => {}
            ["owner", story] => {
                owner = Some(match story {
                    "alive" => OwnerStory::Alive,
                    "dead" => OwnerStory::Dead,
                    "unknown" => OwnerStory::Unknown,
                    _ => panic!("{source}"),
                });
            }
            [at, status, words] => labels.push(Label {
                owner: owner.expect("a section first"),
                at: match at.strip_prefix('+') {
                    Some(after) => At::After(span(after)),
                    None => At::Line(at.parse().unwrap()),
                },
                status: status.to_owned(),
                words: if words == "-" { String::new() } else { words.to_owned() },
                source,
            }),
            _ => panic!("three columns: {source}"),
        }
    }
    labels
}

impl Label {
    /// What is wrong about this verdict.
    pub(super) fn mistake(&self, verdict: &Verdict) -> Option<String> {
        let is_right = verdict.status.name() == self.status
            && verdict.because.to_string().to_lowercase().replace(' ', "_").contains(&self.words);
        (!is_right).then(|| format!("{}\n    got: {} ({})", self.source, verdict.status, verdict.because))
    }
}

pub(super) fn verdict_at(log: &[u8], label: &Label, parse: Parse) -> Verdict {
    let mut replay = Replay::new(label.owner, Limits::default(), parse);
    let mut changes = Vec::new();
    let lines = match label.at {
        At::Line(line) => line,
        At::After(_) => usize::MAX,
    };
    for line in log.split(|&byte| byte == b'\n').take(lines) {
        replay.line(line, &mut changes);
    }
    if let At::After(span) = label.at {
        replay.finish(span, &mut changes);
    }
    let verdict = replay.verdict();
    if let Some(last) = changes.last() {
        assert_eq!(last.status, verdict.status, "a change was not reported: {}", label.source);
    }
    verdict
}

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let mut folders: Vec<_> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn log_of(folder: &Path) -> Vec<u8> {
    let session = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    fs::read(session.join("events.jsonl")).unwrap()
}

#[test]
fn every_recorded_session_has_the_labelled_statuses() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for folder in folders() {
        let log = log_of(&folder);
        let labels = labels(&folder.join("labels.txt"));
        assert!(!labels.is_empty(), "{} has no labels", folder.display());
        for label in &labels {
            let verdict = verdict_at(&log, label, log_format::parse);
            checked += 1;
            wrong.extend(label.mistake(&verdict));
        }
    }
    assert!(wrong.is_empty(), "{} of {checked} labels:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 1500, "only {checked} labels were read");
}

#[test]
fn every_line_of_every_recording_is_an_event() {
    for folder in folders() {
        let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), log_format::parse);
        let log = log_of(&folder);
        let lines = log.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let expected = lines.clone().count() as u64;
        lines.for_each(|line| replay.line(line, &mut Vec::new()));
        assert_eq!((replay.facts.events, replay.facts.skipped), (expected, 0), "{}", folder.display());
        assert!(!replay.facts.forked, "{}", folder.display());
    }
}

/// A command is told of a session by the tray, with all that the tray has read of it.
#[test]
fn case_730_every_recorded_session_is_the_same_to_whoever_is_told_of_it() {
    for folder in folders() {
        let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), log_format::parse);
        let mut told = 0;
        for (number, line) in log_of(&folder).split(|&byte| byte == b'\n').enumerate() {
            replay.line(line, &mut Vec::new());
            if number % 10 == 0 {
                let facts = serde_json::to_string(&replay.facts).unwrap();
                assert_eq!(serde_json::from_str::<Facts>(&facts).unwrap(), replay.facts, "{}", folder.display());
                told += 1;
            }
        }
        assert!(told > 0, "{}", folder.display());
    }
}
