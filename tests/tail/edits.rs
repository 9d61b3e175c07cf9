//! A log that is edited in any way, read as it changes and read anew after each edit: both come to the same. The fuzz target
//! `edits` plays what is here, too.

use pilotlight::agent::copilot::tail::{Found, Look, Tail};
use pilotlight::core::limits::Limits;
use pilotlight::core::owner::Owner;
use pilotlight::core::session::Facts;
use pilotlight::core::time::{Moment, Time};
use pilotlight::core::verdict::{Live, judge};
use pilotlight::system::clock::Clock;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// What Copilot writes, but for the id and the time.
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

/// Plays edits of three bytes each on a log in this folder.
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
                let beside = folder.join("beside");
                let text = fs::read(&path).unwrap_or_default();
                fs::write(&beside, &text[..place as usize]).unwrap();
                fs::rename(beside, &path).unwrap();
            }
            _ => drop(fs::remove_file(&path)),
        }
        // Whole, or as little at a time as can be; after what was written, however long that took.
        let moment = Moment::of(Time(Clock::start().now().wall.0 + 5));
        let look = Look { now: moment, limits: &limits, until: None };
        if at(2) % 2 == 0 {
            tail.read(&path, &mut facts, look, buffer).unwrap();
        } else {
            let slice = |tail: &mut Tail, facts: &mut Facts, buffer: &mut Vec<u8>| {
                tail.read(&path, facts, Look { until: Some(Instant::now()), ..look }, buffer).unwrap()
            };
            while slice(&mut tail, &mut facts, buffer) == Found::More {}
        }
        let mut afresh = Facts::default();
        Tail::default().read(&path, &mut afresh, look, buffer).unwrap();
        let verdict = |facts: &Facts| {
            let owner = Owner::Alive { pid: 1, started: None };
            judge(facts, &owner, &Live::default(), None, moment, &limits)
        };
        let (stays, comes) = (verdict(&facts), verdict(&afresh));
        assert_eq!((stays.status, stays.because), (comes.status, comes.because), "after {n}: {edit:?}");
        assert_eq!(facts.turn.is_some(), afresh.turn.is_some());
        // An event that is dated a moment ahead counts as of when it was read: then, or now.
        let (stays, comes) = (facts.progress.unwrap_or_default(), afresh.progress.unwrap_or_default());
        assert_eq!(stays.wall, comes.wall, "after {n}: {edit:?}");
        assert!(stays.awake == comes.awake || stays.awake < stays.wall, "after {n}: {edit:?}, {stays:?}, {comes:?}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// Case 140: however a log is edited, who follows it and who comes now know the same of it.
        #[test]
        fn case_140_who_follows_a_log_knows_what_who_comes_now_does(edits in prop::collection::vec(any::<u8>(), 0..150)) {
            let scratch = tempfile::tempdir().unwrap();
            super::play(&edits, scratch.path(), &mut Vec::new());
        }
    }
}
