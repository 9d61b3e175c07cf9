//! A log that was cut between two reads, and has grown again past the point that was reached.

use super::Log;
use pilotlight_agents::tail::ReadOutcome;
use pilotlight_core::verdict::Status;
use std::fs::{self, File};

/// Case 86: the point reached is inside a line, and the line that is there now has the same bytes.
#[test]
fn case_86_a_log_cut_inside_a_line_and_rewritten_alike_is_read_from_scratch() {
    let filler = format!(r#"{{"message":"{}"}}"#, "x".repeat(70_000));
    let mut log = Log::new();
    log.prompt();
    log.answer();
    assert_eq!(log.status(), Status::Idle);
    let idle_length = fs::metadata(log.path()).unwrap().len();
    log.prompt();
    let line = log.line("session.info", &filler);
    log.append(&line[..line.len() / 2]);
    assert_eq!(log.status(), Status::Working);
    File::options().write(true).open(log.path()).unwrap().set_len(idle_length).unwrap();
    log.write("session.info", &filler);
    assert_eq!(log.status(), Status::Idle, "the prompt is gone");
    assert_eq!(log.facts.turn, log.fresh_facts().turn);
}

/// However far it was read.
#[test]
fn case_86_a_log_cut_while_it_is_read_in_slices_is_read_from_scratch() {
    let filler = format!(r#"{{"message":"{}"}}"#, "x".repeat(200_000));
    for slices in 0.. {
        let mut log = Log::new();
        log.prompt();
        log.answer();
        let idle_length = fs::metadata(log.path()).unwrap().len();
        log.prompt();
        for _ in 0..3 {
            log.write("session.info", &filler);
        }
        let whole = (0..slices).any(|_| log.read_slice().unwrap() != ReadOutcome::More);
        File::options().write(true).open(log.path()).unwrap().set_len(idle_length).unwrap();
        for _ in 0..4 {
            log.write("session.info", &filler);
        }
        log.read_in_slices();
        assert_eq!(log.facts.turn, log.fresh_facts().turn, "after {slices} slices");
        if whole {
            assert!(slices > 8, "it takes many slices");
            return;
        }
    }
}
