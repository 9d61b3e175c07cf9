//! Ctrl-C at any moment of a command: what it exits with is what came of it, and nothing is done after it has ended.

use super::stage::Stage;
use crate::support::home::Folder;
use crate::support::person::Manner;
use crate::support::pilotlight::Ran;
use crate::support::process::signal;
use crate::support::{SOON, wait, wait_until};
use rustix::process::Signal;
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;

/// By then what is on its way has arrived.
const ARRIVED: Duration = Duration::from_millis(400);

fn count(folder: &Folder, kind: &str) -> usize {
    folder.types().iter().filter(|other| *other == kind).count()
}

/// Interrupts a command in as many rounds, each time at another moment. What it exited with: `None` where it ended by the signal.
fn at_any_moment(verb: &str, prompt: &str, begins: &str, effect: &str, rounds: usize) -> Vec<Option<i32>> {
    let stage = Stage::set(Manner::Waits);
    let (id, folder) = (stage.session.id(), &stage.session.folder);
    let mut codes = Vec::new();
    for round in 0..rounds {
        stage.session.send(prompt);
        folder.wait_nth(begins, round + 1);
        let before = count(folder, effect);
        let arguments = [verb, &id];
        let beside = round % 2 == 0;
        let mut command = if beside { stage.pilot.command_beside(&arguments) } else { stage.pilot.command(&arguments) };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn().unwrap();
        // Where it matters depends on the machine: most moments are early ones.
        let moment = Duration::from_millis((round as u64 * 29) % 240);
        wait(moment, || None::<()>);
        signal(started.id(), Signal::INT);
        let output = started.wait_with_output().unwrap();
        stage.session.call("session.metadata.activity", json!({}));
        let came = || count(folder, effect) > before;
        let span = if output.status.success() { SOON } else { ARRIVED };
        let came = wait(span, || came().then_some(())).is_some();
        let dump = || format!("{verb} beside the tray: {beside}, after {moment:?}: {output:#?}\n{}", folder.dump());
        match output.status.code() {
            Some(0) => assert!(came, "said to be done: {}", dump()),
            Some(5) => {}
            // Where the one before is still being taken back, another is refused.
            Some(1 | 4) | None => assert!(!came, "said not to be done, or nothing was said: {}", dump()),
            other => panic!("exit code {other:?}: {}", dump()),
        }
        codes.push(output.status.code());
        // Nothing happens where nothing runs any more.
        stage.session.abort();
        let rests = || stage.session.call("session.metadata.activity", json!({}))["hasActiveWork"] == false;
        wait_until(SOON, "its turn is over", || folder.dump(), || rests().then_some(()));
    }
    codes.sort_unstable();
    let ran: Ran = stage.pilot.run(&[verb, &id]);
    assert_eq!(ran.code, Some(4), "nothing is left under way: {ran:?}");
    folder.assert_one_chain();
    codes
}

fn approvals(rounds: usize) -> Vec<Option<i32>> {
    at_any_moment("approve", "SCRIPT:tool Paint the fence", "permission.requested", "permission.completed", rounds)
}

fn stops(rounds: usize) -> Vec<Option<i32>> {
    at_any_moment("stop", "SCRIPT:hang Paint the fence", "assistant.turn_start", "abort", rounds)
}

#[test]
fn case_130_an_approval_that_is_interrupted_says_what_came_of_it() {
    approvals(6);
}

#[test]
fn case_130_a_stop_that_is_interrupted_says_what_came_of_it() {
    stops(6);
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_130_interrupted_commands_say_what_came_of_them_often() {
    eprintln!("approve: {:?}", approvals(60));
    eprintln!("stop: {:?}", stops(60));
}
