//! Recorded logs of Codex, checked against labels: see `tests/traces-codex/README.md`.

use super::traces::{labels, verdict_at};
use pilotlight::agent::codex::dialect;
use pilotlight::core::limits::Limits;
use pilotlight::core::replay::{OwnerStory, Replay};
use std::fs;
use std::path::{Path, PathBuf};

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces-codex");
    let mut folders: Vec<_> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[test]
fn every_recorded_thread_has_the_labelled_statuses() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for folder in folders() {
        let log = fs::read(folder.join("rollout.jsonl")).unwrap();
        for label in labels(&folder.join("labels.txt")) {
            let verdict = verdict_at(&log, &label, dialect::parse);
            checked += 1;
            wrong.extend(label.mistake(&verdict));
        }
    }
    assert!(wrong.is_empty(), "{} of {checked} labels:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 160, "only {checked} labels were read");
}

#[test]
fn every_line_of_every_recorded_thread_is_an_event() {
    for folder in folders() {
        let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), dialect::parse);
        let log = fs::read(folder.join("rollout.jsonl")).unwrap();
        let lines = log.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let expected = lines.clone().count() as u64;
        lines.for_each(|line| replay.line(line, &mut Vec::new()));
        assert_eq!((replay.facts.events, replay.facts.skipped), (expected, 0), "{}", folder.display());
        assert!(!replay.facts.forked, "{}", folder.display());
        assert!(replay.facts.cwd.is_some() && replay.facts.root.is_some(), "{}", folder.display());
    }
}
