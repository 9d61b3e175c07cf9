//! Ctrl-C at any moment of a command: its exit code reports what happened, and nothing is done after its exit.

use super::stage::Stage;
use crate::support::home::Folder;
use crate::support::person::Manner;
use crate::support::pilotlight::CommandOutput;
use crate::support::process::signal;
use crate::support::{SOON, wait, wait_until};
use rustix::process::Signal;
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;

/// How long a sent request takes at most to have its effect.
const ARRIVED: Duration = Duration::from_millis(400);

fn count(folder: &Folder, kind: &str) -> usize {
    folder.types().iter().filter(|other| *other == kind).count()
}

/// Interrupts a command in several rounds, each time at another moment. Returns the exit codes: `None` if the signal
/// killed it.
fn at_any_moment(verb: &str, prompt: &str, begins: &str, effect: &str, rounds: usize) -> Vec<Option<i32>> {
    let stage = Stage::new(Manner::Waits);
    let (id, folder) = (stage.session.id(), &stage.session.folder);
    let mut codes = Vec::new();
    for round in 0..rounds {
        stage.session.send(prompt);
        folder.wait_nth(begins, round + 1);
        let before = count(folder, effect);
        let arguments = [verb, "--yes", &id];
        let with_tray = round % 2 == 0;
        let mut command =
            if with_tray { stage.pilot.command_with_tray(&arguments) } else { stage.pilot.command(&arguments) };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn().unwrap();
        // The critical moments depend on the machine. Most are early.
        let moment = Duration::from_millis((round as u64 * 29) % 240);
        wait(moment, || None::<()>);
        signal(started.id(), Signal::INT);
        let output = started.wait_with_output().unwrap();
        stage.session.call("session.metadata.activity", json!({}));
        let happened = || count(folder, effect) > before;
        let span = if output.status.success() { SOON } else { ARRIVED };
        let happened = wait(span, || happened().then_some(())).is_some();
        let dump = || format!("{verb} with the tray: {with_tray}, after {moment:?}: {output:#?}\n{}", folder.dump());
        match output.status.code() {
            Some(0) => assert!(happened, "reported as done: {}", dump()),
            Some(5) => {}
            // Refused while the previous order is still being cancelled.
            Some(1 | 4) | None => assert!(!happened, "reported as not done, or not reported: {}", dump()),
            other => panic!("exit code {other:?}: {}", dump()),
        }
        codes.push(output.status.code());
        // No effect if no turn is open.
        stage.session.abort();
        let is_idle = || stage.session.call("session.metadata.activity", json!({}))["hasActiveWork"] == false;
        wait_until(SOON, "its turn is over", || folder.dump(), || is_idle().then_some(()));
    }
    codes.sort_unstable();
    let ran: CommandOutput = stage.pilot.run(&[verb, &id]);
    assert_eq!(ran.code, Some(4), "no order is left running: {ran:?}");
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
fn case_130_an_interrupted_approval_reports_its_effect() {
    approvals(6);
}

#[test]
#[ignore = "tests/long.sh"]
fn case_130_an_interrupted_stop_reports_its_effect() {
    stops(6);
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_130_interrupted_commands_report_their_effect_often() {
    eprintln!("approve: {:?}", approvals(60));
    eprintln!("stop: {:?}", stops(60));
}
