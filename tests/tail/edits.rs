//! A log under random edits: following it and reading it from scratch after each edit give the same facts. The fuzz
//! target `edits` runs this, too.

use pilotlight_agents::copilot::log_format::LOG_FORMAT;
use pilotlight_agents::tail::{ReadContext, ReadOutcome, Tail};
use pilotlight_core::facts::Facts;
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::Owner;
use pilotlight_core::time::{Moment, Time};
use pilotlight_core::verdict::{Liveness, Observations, judge};
use pilotlight_system::clock::Clock;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// Lines as Copilot writes them, without id and time.
const LINES: [(&str, &str); 10] = [
    ("user.message", r#"{"content":"do it","agentMode":"interactive"}"#),
    ("assistant.turn_start", "{}"),
    ("assistant.message", r#"{"content":"Done.","toolRequests":[]}"#),
    ("assistant.message", r#"{"content":"","toolRequests":[{"toolCallId":"c"}]}"#),
    ("assistant.turn_end", "{}"),
    ("tool.execution_start", r#"{"toolCallId":"c","toolName":"bash"}"#),
    ("tool.execution_complete", r#"{"toolCallId":"c","success":true}"#),
    ("permission.requested", r#"{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"c"}}"#),
    ("abort", "{}"),
    ("session.shutdown", "{}"),
];

/// Applies edits, encoded in three bytes each, to a log in this folder, and compares the readers after each one.
pub(crate) fn play(edits: &[u8], folder: &Path, buffer: &mut Vec<u8>) {
    let path = folder.join("events.jsonl");
    drop(File::create(&path).unwrap());
    let limits = Limits::default();
    let (mut tail, mut facts) = (Tail::default(), Facts::default());
    for (n, edit) in edits.chunks(3).enumerate().take(64) {
        let at = |index: usize| usize::from(*edit.get(index).unwrap_or(&0));
        let length = fs::metadata(&path).map_or(0, |meta| meta.len());
        let place = length * at(1) as u64 / 255;
        let now = Clock::start().now().wall.0;
        let (kind, body) = LINES[at(1) % LINES.len()];
        let line = format!(
            "{{\"type\":\"{kind}\",\"data\":{body},\"id\":\"{n}\",\"timestamp\":\"{}\",\"parentId\":null}}\n",
            Time(now)
        );
        let append = |bytes: &[u8]| {
            let mut log = OpenOptions::new().append(true).create(true).open(&path).unwrap();
            log.write_all(bytes).unwrap();
        };
        match at(0) % 8 {
            0..=2 => append(line.as_bytes()),
            3 => append(&line.as_bytes()[..at(2) % line.len()]),
            4 if length > 0 => {
                let log = OpenOptions::new().write(true).open(&path).unwrap();
                log.write_all_at(&[at(2) as u8], place.min(length - 1)).unwrap();
            }
            5 => {
                let log = OpenOptions::new().write(true).create(true).truncate(false).open(&path).unwrap();
                log.set_len(place).unwrap();
            }
            6 => {
                let temporary = folder.join("temporary");
                let text = fs::read(&path).unwrap_or_default();
                fs::write(&temporary, &text[..place as usize]).unwrap();
                fs::rename(temporary, &path).unwrap();
            }
            _ => drop(fs::remove_file(&path)),
        }
        // Read in one go or in the smallest slices, at a time after every timestamp written so far.
        let moment = Moment::of(Time(Clock::start().now().wall.0 + 5));
        let context = ReadContext { now: moment, limits: &limits, until: None };
        if at(2) % 2 == 0 {
            tail.read(&LOG_FORMAT, &path, &mut facts, context, buffer).unwrap();
        } else {
            let slice = |tail: &mut Tail, facts: &mut Facts, buffer: &mut Vec<u8>| {
                tail.read(&LOG_FORMAT, &path, facts, ReadContext { until: Some(Instant::now()), ..context }, buffer)
                    .unwrap()
            };
            while slice(&mut tail, &mut facts, buffer) == ReadOutcome::More {}
        }
        let mut fresh = Facts::default();
        Tail::default().read(&LOG_FORMAT, &path, &mut fresh, context, buffer).unwrap();
        let verdict = |facts: &Facts| {
            let owner = Owner::Alive { pid: 1, started: None };
            judge(Observations::by_log(facts), &owner, &Liveness::default(), None, moment, &limits)
        };
        let (followed, reread) = (verdict(&facts), verdict(&fresh));
        assert_eq!(
            (followed.status, followed.because.to_string()),
            (reread.status, reread.because.to_string()),
            "after {n}: {edit:?}"
        );
        assert_eq!(facts.turn.is_some(), fresh.turn.is_some());
        // The awake time of an event dated slightly ahead is the time of its reading, which differs between the two.
        let (followed, reread) = (facts.progress.unwrap_or_default(), fresh.progress.unwrap_or_default());
        assert_eq!(followed.wall, reread.wall, "after {n}: {edit:?}");
        let is_early = followed.awake < followed.wall;
        assert!(followed.awake == reread.awake || is_early, "after {n}: {edit:?}, {followed:?}, {reread:?}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn case_140_following_an_edited_log_gives_what_reading_it_from_scratch_gives(edits in prop::collection::vec(any::<u8>(), 0..150)) {
            let scratch = tempfile::tempdir().unwrap();
            super::play(&edits, scratch.path(), &mut Vec::new());
        }
    }
}
