//! One order at a time, for the turn or the request that it was given for, and three words for how it ended: with the real CLI.

use super::reach::{Reach, answering, ignored, open};
use super::stage::Stage;
use crate::support::freeze::freeze;
use crate::support::home::Folder;
use crate::support::person::Manner;
use crate::support::process::signal;
use crate::support::{SOON, block_on, wait_until};
use pilotlight::agent::copilot::server::attached::{Policy, attach};
use pilotlight::agent::copilot::server::recover::{Failure, Prompt, RequestAnswer, answer, resend, stop};
use pilotlight::core::order::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A command that may stay, with what it says so far.
pub(crate) struct Staying {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Staying {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for stream in streams {
            let said = Arc::clone(&said);
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    said.lock().unwrap().push_str(&format!("{line}\n"));
                }
            });
        }
        Self { child, said }
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub(crate) fn says(&self, what: &str) {
        wait_until(SOON, &format!("it says {what:?}"), || self.said(), || self.said().contains(what).then_some(()));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn code(&mut self) -> Option<i32> {
        wait_until(SOON, "it ends", || self.said.lock().unwrap().clone(), || self.child.try_wait().unwrap()).code()
    }

    /// How it ended, if it has.
    fn ended(&mut self) -> Option<i32> {
        self.child.try_wait().unwrap().map(|status| status.code().unwrap_or(-1))
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn count(folder: &Folder, kind: &str) -> usize {
    folder.types().iter().filter(|other| *other == kind).count()
}

fn two_at_once(runs: usize) {
    for _ in 0..runs {
        let stage = Stage::without_person();
        let id = stage.session.id();
        stage.session.send("SCRIPT:denied3 Paint the fence");
        stage.session.folder.wait_nth("assistant.turn_end", 4);
        stage.told("permission-lost", "");
        let command = || stage.pilot.command(&["reconnect", "--resend", &id]);
        let mut both = [Staying::start(command()), Staying::start(command())];
        // One of them is refused, whenever it comes; the other has sent the prompt and stays.
        let dump = || both.iter().map(Staying::said).collect::<Vec<_>>().join("--\n");
        wait_until(SOON, "the prompt is sent", dump, || {
            (count(&stage.session.folder, "user.message") > 1).then_some(())
        });
        let refused = wait_until(SOON, "one is refused", String::new, || {
            both.iter_mut().map(Staying::ended).position(|code| code == Some(4))
        });
        both[1 - refused].says("your last prompt was sent again");
        assert_eq!(both[1 - refused].ended(), None, "it stays: {}", both[1 - refused].said());
        stage.session.folder.wait("permission.requested");
        assert_eq!(count(&stage.session.folder, "user.message"), 2, "{}", stage.session.folder.dump());
        let reasons =
            ["another Pilotlight is doing something with it", "is under way", "another turn has begun", "still open"];
        let why = || both[refused].said();
        let is_told = || reasons.iter().any(|reason| why().contains(reason)).then_some(());
        wait_until(SOON, "it is told why", why, is_told);
        stage.session.folder.assert_one_chain();
    }
}

/// However close together, and with no tray that both could ask.
#[test]
fn case_120_two_that_send_again_at_once_send_one_prompt() {
    two_at_once(3);
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_120_two_that_send_again_at_once_send_one_prompt_often() {
    two_at_once(30);
}

fn four_reconnects() {
    let stage = Stage::set(Manner::Approves);
    let id = stage.session.id();
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.told("working", "");
    for _ in 0..2 {
        let mut one = Staying::start(stage.pilot.command(&["reconnect", &id]));
        one.says("stays connected");
        one.signal(Signal::INT);
        assert_eq!(one.code(), Some(0), "{}", one.said());
    }
    for _ in 0..2 {
        let ran = stage.pilot.run_alone(&["reconnect", &id]);
        assert_eq!(ran.code, Some(4), "{ran:?}");
        assert!(ran.err.contains("it was tried 2 times, and no turn has completed since"), "{ran:?}");
    }
    // A tray counts the same.
    let ran = stage.pilot.run(&["reconnect", &id]);
    assert!(ran.code == Some(4) && ran.err.contains("it was tried 2 times"), "{ran:?}");
    // The user's own word counts anew.
    stage.session.abort();
    stage.session.folder.wait("abort");
    stage.told("idle", "stopped");
    Staying::start(stage.pilot.command(&["reconnect", &id])).says("stays connected");
}

#[test]
fn case_121_four_reconnects_in_a_row_without_a_tray_are_two() {
    four_reconnects();
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_121_four_reconnects_in_a_row_without_a_tray_are_two_often() {
    (0..10).for_each(|_| four_reconnects());
}

/// Our own stop is no sign that the user went on, with a tray or without.
fn reconnects_and_a_stop() {
    for with_tray in [true, false] {
        let stage = Stage::set(Manner::Approves);
        let id = stage.session.id();
        let run = |args: &[&str]| if with_tray { stage.pilot.run(args) } else { stage.pilot.run_alone(args) };
        let reconnect = || {
            if with_tray {
                let ran = run(&["reconnect", &id]);
                if ran.code == Some(0) {
                    stage.pilot.menu_says(&id, "Pilotlight: attached to its server");
                    stage.pilot.click(&id, "Detach");
                    stage.pilot.menu_says(&id, "Pilotlight: its server can be reached");
                }
                return ran.code;
            }
            let mut one = Staying::start(stage.pilot.command(&["reconnect", &id]));
            let said = Arc::clone(&one.said);
            let dump = || said.lock().unwrap().clone();
            let stays = || said.lock().unwrap().contains("stays connected");
            let over = wait_until(SOON, "it stays or ends", dump, || one.ended().or_else(|| stays().then_some(0)));
            if over == 0 {
                one.signal(Signal::INT);
            }
            one.code()
        };
        stage.session.send("SCRIPT:hang Paint the fence");
        stage.told("working", "");
        let mut codes = Vec::new();
        for stopped in 0..4 {
            codes.push(reconnect());
            if stopped == 0 {
                let ran = run(&["stop", &id]);
                assert_eq!(ran.code, Some(0), "{ran:?}");
                stage.session.folder.wait("abort");
                stage.told("idle", "stopped");
            }
        }
        assert_eq!(codes, [Some(0), Some(0), Some(4), Some(4)], "with a tray: {with_tray}");
    }
}

#[test]
fn case_121_reconnects_with_our_own_stop_between_them_are_two() {
    reconnects_and_a_stop();
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_121_reconnects_with_our_own_stop_between_them_are_two_often() {
    (0..10).for_each(|_| reconnects_and_a_stop());
}

/// What was asked of a tray that was held up, by somebody who left meanwhile, is not done later.
fn late_stops(runs: usize) {
    let stage = Stage::set(Manner::Approves);
    let id = stage.session.id();
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.told("working", "");
    for _ in 0..runs {
        freeze(stage.pilot.tray());
        let mut one = Staying::start(stage.pilot.command_beside(&["stop", &id]));
        one.says("is stopped");
        one.signal(Signal::INT);
        assert_eq!(one.code(), Some(1), "{}", one.said());
        one.says("interrupted; nothing was sent");
        signal(stage.pilot.tray(), Signal::CONT);
        // The tray has heard of all that happened before, once it answers.
        let ran = stage.pilot.run(&["approve", &id]);
        assert_eq!(ran.code, Some(4), "{ran:?}");
        assert_eq!(count(&stage.session.folder, "abort"), 0, "{}", stage.pilot.log());
    }
    let ran = stage.pilot.run(&["stop", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    stage.session.folder.wait("abort");
}

#[test]
fn case_122_an_order_whose_command_was_interrupted_is_not_carried_out_later() {
    late_stops(2);
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_122_an_order_whose_command_was_interrupted_is_not_carried_out_later_often() {
    late_stops(20);
}

fn late_stop_beside_a_turn() {
    let stage = Stage::set(Manner::Approves);
    let id = stage.session.id();
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.told("working", "");
    freeze(stage.pilot.tray());
    let mut one = Staying::start(stage.pilot.command_beside(&["stop", &id]));
    one.says("is stopped");
    stage.session.abort();
    stage.session.folder.wait("abort");
    stage.session.send("SCRIPT:hang And the gate");
    signal(stage.pilot.tray(), Signal::CONT);
    assert_eq!(one.code(), Some(4), "{}", one.said());
    one.says("another turn has begun");
    stage.told("working", "");
    assert_eq!(count(&stage.session.folder, "abort"), 1);
}

#[test]
fn case_122_a_stop_that_comes_late_does_not_hit_the_next_turn() {
    late_stop_beside_a_turn();
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_122_a_stop_that_comes_late_does_not_hit_the_next_turn_often() {
    (0..10).for_each(|_| late_stop_beside_a_turn());
}

fn late_answers_beside_a_request() {
    let stage = Stage::set(Manner::Waits);
    let id = stage.session.id();
    stage.session.send("SCRIPT:tool Paint the fence");
    let first = stage.session.folder.wait("permission.requested")["data"]["requestId"].clone();
    stage.told("needs-permission", "");
    freeze(stage.pilot.tray());
    let mut late = ["approve", "deny"].map(|verb| {
        let one = Staying::start(stage.pilot.command_beside(&[verb, "--all", &id]));
        one.says("is stopped");
        one
    });
    stage.session.abort();
    stage.session.folder.wait("abort");
    stage.session.send("SCRIPT:two And the gate");
    stage.session.folder.wait_nth("permission.requested", 3);
    signal(stage.pilot.tray(), Signal::CONT);
    for one in &mut late {
        assert_eq!(one.code(), Some(4), "{}", one.said());
    }
    let answered = |event: &Value| event["type"] == "permission.completed" && event["data"]["requestId"] != first;
    assert!(!stage.session.folder.events().iter().any(answered), "{}", stage.session.folder.dump());
    stage.told("needs-permission", "");
}

#[test]
fn case_122_an_approval_that_comes_late_does_not_hit_the_next_request() {
    late_answers_beside_a_request();
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_122_an_approval_that_comes_late_does_not_hit_the_next_request_often() {
    (0..10).for_each(|_| late_answers_beside_a_request());
}

/// The server is held up the moment something is sent to it: that is not called failed, and is not sent twice.
#[test]
fn case_130_what_a_frozen_server_was_sent_may_have_happened() {
    let frozen_at = |reach: &Reach, at: Step| {
        let pid = reach.server.pid();
        move |step: Step, _: String| {
            if step == at {
                freeze(pid);
            }
        }
    };
    let is_unconfirmed = |failure: &Failure| {
        assert!(failure.sent && failure.to_string().starts_with("may have happened: "), "{failure}");
    };
    let asking = Reach::set(Manner::Waits);
    asking.ask();
    let site = asking.site();
    let which = open(&asking.session.folder);
    let failure = block_on(answer(RequestAnswer {
        steps: &frozen_at(&asking, Step::TakeOver),
        ..answering(&site, &which, true)
    }))
    .unwrap_err();
    is_unconfirmed(&failure);
    assert!(failure.to_string().contains("its log has no answer yet"), "{failure}");
    signal(asking.server.pid(), Signal::CONT);
    asking.session.folder.wait("permission.completed");
    let failure = block_on(stop(&site, &frozen_at(&asking, Step::Abort))).unwrap_err();
    is_unconfirmed(&failure);
    signal(asking.server.pid(), Signal::CONT);
    asking.session.folder.wait("abort");

    let (events, _heard) = super::reach::hearing();
    let attached = block_on(attach(&site, Policy::Ask, events, 1, &ignored)).unwrap();
    let frozen = frozen_at(&asking, Step::Resend);
    let last = site.sight.borrow().prompt;
    let failure = block_on(resend(
        &attached,
        &Prompt::GoOn("SCRIPT:plain Go on".into()),
        last,
        &site,
        Duration::from_secs(30),
        &frozen,
    ))
    .unwrap_err();
    is_unconfirmed(&failure);
    signal(asking.server.pid(), Signal::CONT);
    asking.session.folder.wait_nth("user.message", 2);
    asking.session.folder.wait_nth("assistant.turn_end", 2);
    assert_eq!(count(&asking.session.folder, "user.message"), 2, "it was sent once");
    asking.session.folder.assert_one_chain();
}

/// The tray is held up after it has sent: its command says what it knows.
#[test]
fn case_130_a_command_says_what_the_disk_says() {
    let stage = Stage::set(Manner::Approves);
    let id = stage.session.id();
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.told("working", "");
    freeze(stage.server.pid());
    let mut one = Staying::start(stage.pilot.command_beside(&["stop", &id]));
    one.says("the tray is working on it");
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(5), "{}", one.said());
    one.says("its log says that the turn goes on");
    signal(stage.server.pid(), Signal::CONT);
    stage.told("working", "");
}
