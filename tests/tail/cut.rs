//! A log that was cut between two looks, and has grown again past the point reached.

use super::Log;
use pilotlight::agent::copilot::tail::Found;
use pilotlight::core::verdict::Status;
use std::fs::{self, File};

/// CASES.md 86 (UP): cut between two looks, and grown again past the point reached, which is in the middle of a line whose bytes
/// are those of the line that stands there now.
#[test]
fn case_86_a_log_that_was_cut_inside_a_line_like_any_other_is_read_afresh() {
    let filler = format!(r#"{{"message":"{}"}}"#, "x".repeat(70_000));
    let mut log = Log::new();
    log.prompt();
    log.answer();
    assert_eq!(log.status(), Status::Idle);
    let rested = fs::metadata(log.path()).unwrap().len();
    log.prompt();
    let line = log.line("session.info", &filler);
    log.append(&line[..line.len() / 2]);
    assert_eq!(log.status(), Status::Working);
    File::options().write(true).open(log.path()).unwrap().set_len(rested).unwrap();
    log.say("session.info", &filler);
    assert_eq!(log.status(), Status::Idle, "the prompt is gone");
    assert_eq!(log.facts.turn, log.facts_afresh().turn);
}

/// The same while it is being read anew, a little at a time: however far that had come.
#[test]
fn case_86_a_log_that_is_cut_while_it_is_read_anew_is_begun_afresh() {
    let filler = format!(r#"{{"message":"{}"}}"#, "x".repeat(200_000));
    for slices in 0.. {
        let mut log = Log::new();
        log.prompt();
        log.answer();
        let rested = fs::metadata(log.path()).unwrap().len();
        log.prompt();
        for _ in 0..3 {
            log.say("session.info", &filler);
        }
        let whole = (0..slices).any(|_| log.slice().unwrap() != Found::More);
        File::options().write(true).open(log.path()).unwrap().set_len(rested).unwrap();
        for _ in 0..4 {
            log.say("session.info", &filler);
        }
        log.read_in_slices();
        assert_eq!(log.facts.turn, log.facts_afresh().turn, "after {slices} slices");
        if whole {
            assert!(slices > 8, "it is read in pieces");
            return;
        }
    }
}
