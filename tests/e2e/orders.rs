//! Orders to the real CLI: one at a time, only for the turn or request that was meant, with one of three outcomes.

use super::reach::{Reach, answer, at_step, attach, open, stop};
use super::stage::Stage;
use crate::support::freeze::freeze;
use crate::support::home::Folder;
use crate::support::person::Manner;
use crate::support::process::signal;
use crate::support::{SOON, block_on, wait_until};
use pilotlight_agents::channel::failure::{Failure, FailureKind};
use pilotlight_agents::channel::order::Policy;
use pilotlight_agents::channel::order::Prompt;
use pilotlight_agents::copilot::server::recover::resend;
use pilotlight_core::order::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A command that may stay connected, with its output so far.
pub(crate) struct Staying {
    child: Child,
    output: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Staying {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        let read = |stream| {
            let output = Arc::clone(&output);
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    output.lock().unwrap().push_str(&format!("{line}\n"));
                }
            })
        };
        let readers = streams.into_iter().map(read).collect();
        Self { child, output, readers }
    }

    pub(crate) fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    pub(crate) fn wait_output(&self, text: &str) {
        let what = format!("it prints {text:?}");
        wait_until(SOON, &what, || self.output(), || self.output().contains(text).then_some(()));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Its exit code, once it has exited and all that it printed is read.
    pub(crate) fn code(&mut self) -> Option<i32> {
        let status =
            wait_until(SOON, "it exits", || self.output.lock().unwrap().clone(), || self.child.try_wait().unwrap());
        self.wait_read();
        status.code()
    }

    /// Its exit code, if it has exited. -1 means killed by a signal.
    pub(crate) fn try_code(&mut self) -> Option<i32> {
        let status = self.child.try_wait().unwrap()?;
        self.wait_read();
        Some(status.code().unwrap_or(-1))
    }

    /// Waits until what it printed is read.
    fn wait_read(&self) {
        let is_read = || self.readers.iter().all(JoinHandle::is_finished).then_some(());
        wait_until(SOON, "its output is read", || self.output(), is_read);
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

fn resend_at_once(runs: usize) {
    for _ in 0..runs {
        let stage = Stage::without_person();
        let id = stage.session.id();
        stage.session.send("SCRIPT:denied3 Paint the fence");
        stage.session.folder.wait_nth("assistant.turn_end", 4);
        stage.wait_status("permission-lost", "");
        let command = || stage.pilot.command(&["reconnect", "--resend", &id]);
        let mut both = [Staying::start(command()), Staying::start(command())];
        // One of them is refused, whichever is later. The other has sent the prompt and stays connected.
        let dump = || both.iter().map(Staying::output).collect::<Vec<_>>().join("--\n");
        wait_until(SOON, "the prompt is sent", dump, || {
            (count(&stage.session.folder, "user.message") > 1).then_some(())
        });
        let refused = wait_until(SOON, "one is refused", String::new, || {
            both.iter_mut().map(Staying::try_code).position(|code| code == Some(4))
        });
        both[1 - refused].wait_output("your last prompt was sent again");
        assert_eq!(both[1 - refused].try_code(), None, "it stays connected: {}", both[1 - refused].output());
        stage.session.folder.wait("permission.requested");
        assert_eq!(count(&stage.session.folder, "user.message"), 2, "{}", stage.session.folder.dump());
        let reasons = ["another Pilotlight is busy with it", "is under way", "another turn has begun", "still open"];
        let why = || both[refused].output();
        let is_explained = || reasons.iter().any(|reason| why().contains(reason)).then_some(());
        wait_until(SOON, "the reason is printed", why, is_explained);
        stage.session.folder.assert_one_chain();
    }
}

/// However close together, and without a tray.
#[test]
fn case_120_two_simultaneous_resends_send_one_prompt() {
    resend_at_once(3);
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_120_two_simultaneous_resends_send_one_prompt_often() {
    resend_at_once(30);
}

#[test]
#[ignore = "ten rounds: tests/long.sh"]
fn case_121_of_four_reconnects_without_a_tray_two_are_refused_often() {
    (0..10).for_each(|_| four_reconnects());
}

fn four_reconnects() {
    let stage = Stage::new(Manner::Approves);
    let id = stage.session.id();
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.wait_status("working", "");
    for _ in 0..2 {
        let mut one = Staying::start(stage.pilot.command(&["reconnect", &id]));
        one.wait_output("stays connected");
        one.signal(Signal::INT);
        assert_eq!(one.code(), Some(0), "{}", one.output());
    }
    for _ in 0..2 {
        let ran = stage.pilot.run_without_tray(&["reconnect", &id]);
        assert_eq!(ran.code, Some(4), "{ran:?}");
        assert!(ran.err.contains("tried 2 times without a completed turn"), "{ran:?}");
    }
    // A tray counts them too.
    let ran = stage.pilot.run(&["reconnect", &id]);
    assert!(ran.code == Some(4) && ran.err.contains("tried 2 times"), "{ran:?}");
    // The user's own abort resets the count.
    stage.session.abort();
    stage.session.folder.wait("abort");
    stage.wait_status("idle", "stopped");
    Staying::start(stage.pilot.command(&["reconnect", &id])).wait_output("stays connected");
}

/// Our own stop does not reset the count, with or without a tray.
fn reconnects_and_a_stop() {
    for with_tray in [true, false] {
        let stage = Stage::new(Manner::Approves);
        let id = stage.session.id();
        let run = |args: &[&str]| if with_tray { stage.pilot.run(args) } else { stage.pilot.run_without_tray(args) };
        let reconnect = || {
            if with_tray {
                let ran = run(&["reconnect", &id]);
                if ran.code == Some(0) {
                    stage.pilot.wait_menu(&id, "Pilotlight: attached to its server");
                    stage.pilot.click(&id, "Detach");
                    stage.pilot.wait_menu(&id, "Pilotlight: its server can be reached");
                }
                return ran.code;
            }
            let mut one = Staying::start(stage.pilot.command(&["reconnect", &id]));
            let output = Arc::clone(&one.output);
            let dump = || output.lock().unwrap().clone();
            let stays = || output.lock().unwrap().contains("stays connected");
            let over = wait_until(SOON, "it stays connected or exits", dump, || {
                one.try_code().or_else(|| stays().then_some(0))
            });
            if over == 0 {
                one.signal(Signal::INT);
            }
            one.code()
        };
        stage.session.send("SCRIPT:hang Paint the fence");
        stage.wait_status("working", "");
        let mut codes = Vec::new();
        for stopped in 0..4 {
            codes.push(reconnect());
            if stopped == 0 {
                let ran = run(&["stop", &id]);
                assert_eq!(ran.code, Some(0), "{ran:?}");
                stage.session.folder.wait("abort");
                stage.wait_status("idle", "stopped");
            }
        }
        assert_eq!(codes, [Some(0), Some(0), Some(4), Some(4)], "with a tray: {with_tray}");
    }
}

#[test]
#[ignore = "tests/long.sh"]
fn case_121_our_own_stop_does_not_reset_the_count_of_reconnects() {
    reconnects_and_a_stop();
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_121_our_own_stop_does_not_reset_the_count_of_reconnects_often() {
    (0..10).for_each(|_| reconnects_and_a_stop());
}

/// An order to a stopped tray is not carried out later if its command was interrupted.
fn late_stops(runs: usize) {
    let stage = Stage::new(Manner::Approves);
    let id = stage.session.id();
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.wait_status("working", "");
    for _ in 0..runs {
        freeze(stage.pilot.tray_pid());
        let mut one = Staying::start(stage.pilot.command_with_tray(&["stop", &id]));
        one.wait_output("is stopped");
        one.signal(Signal::INT);
        assert_eq!(one.code(), Some(1), "{}", one.output());
        one.wait_output("interrupted; nothing was sent");
        signal(stage.pilot.tray_pid(), Signal::CONT);
        // When the tray answers this, it has handled everything before.
        let ran = stage.pilot.run(&["approve", "--yes", &id]);
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

fn late_stop_after_a_new_turn() {
    let stage = Stage::new(Manner::Approves);
    let id = stage.session.id();
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.wait_status("working", "");
    freeze(stage.pilot.tray_pid());
    let mut one = Staying::start(stage.pilot.command_with_tray(&["stop", &id]));
    one.wait_output("is stopped");
    stage.session.abort();
    stage.session.folder.wait("abort");
    stage.session.send("SCRIPT:hang And the gate");
    signal(stage.pilot.tray_pid(), Signal::CONT);
    assert_eq!(one.code(), Some(4), "{}", one.output());
    one.wait_output("another turn has begun");
    stage.wait_status("working", "");
    assert_eq!(count(&stage.session.folder, "abort"), 1);
}

#[test]
#[ignore = "tests/long.sh"]
fn case_122_a_late_stop_does_not_affect_the_next_turn() {
    late_stop_after_a_new_turn();
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_122_a_late_stop_does_not_affect_the_next_turn_often() {
    (0..10).for_each(|_| late_stop_after_a_new_turn());
}

fn late_answers_after_a_new_request() {
    let stage = Stage::new(Manner::Waits);
    let id = stage.session.id();
    stage.session.send("SCRIPT:tool Paint the fence");
    let first = stage.session.folder.wait("permission.requested")["data"]["requestId"].clone();
    stage.wait_status("needs-permission", "");
    freeze(stage.pilot.tray_pid());
    let mut late = ["approve", "deny"].map(|verb| {
        let one = Staying::start(stage.pilot.command_with_tray(&[verb, "--yes", "--all", &id]));
        one.wait_output("is stopped");
        one
    });
    stage.session.abort();
    stage.session.folder.wait("abort");
    stage.session.send("SCRIPT:two And the gate");
    stage.session.folder.wait_nth("permission.requested", 3);
    signal(stage.pilot.tray_pid(), Signal::CONT);
    for one in &mut late {
        assert_eq!(one.code(), Some(4), "{}", one.output());
    }
    let answered = |event: &Value| event["type"] == "permission.completed" && event["data"]["requestId"] != first;
    assert!(!stage.session.folder.events().iter().any(answered), "{}", stage.session.folder.dump());
    stage.wait_status("needs-permission", "");
}

#[test]
fn case_122_a_late_approval_does_not_affect_the_next_request() {
    late_answers_after_a_new_request();
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_122_a_late_approval_does_not_affect_the_next_request_often() {
    (0..10).for_each(|_| late_answers_after_a_new_request());
}

/// The server is frozen at the moment of the send: the result is reported as uncertain, and nothing is sent twice.
#[test]
#[ignore = "tests/long.sh"]
fn case_130_a_request_to_a_frozen_server_is_reported_as_uncertain() {
    let is_unconfirmed = |failure: &Failure| {
        assert!(
            failure.kind == FailureKind::Unconfirmed && failure.to_string().starts_with("may have happened: "),
            "{failure}"
        );
    };
    let asking = Reach::new(Manner::Waits);
    asking.ask();
    let (context, pid) = (asking.context(), asking.server.pid());
    let frozen_at = |step| at_step(&context, step, move || freeze(pid));
    let which = open(&asking.session.folder);
    let failure = block_on(answer(&frozen_at(Step::Answer), &which, true)).unwrap_err();
    is_unconfirmed(&failure);
    assert!(failure.to_string().contains("its log has no answer yet"), "{failure}");
    signal(asking.server.pid(), Signal::CONT);
    asking.session.folder.wait("permission.completed");
    let failure = block_on(stop(&frozen_at(Step::Abort))).unwrap_err();
    is_unconfirmed(&failure);
    signal(asking.server.pid(), Signal::CONT);
    asking.session.folder.wait("abort");

    let (events, _received) = super::reach::event_channel();
    let attached = block_on(attach(&context, Policy::Ask, events, 1)).unwrap();
    let last = context.log_view.borrow().prompt;
    let failure = block_on(resend(
        &attached,
        &Prompt::Continue("SCRIPT:plain Go on".into()),
        last,
        &frozen_at(Step::Resend),
        Duration::from_secs(30),
    ))
    .unwrap_err();
    is_unconfirmed(&failure);
    signal(asking.server.pid(), Signal::CONT);
    asking.session.folder.wait_nth("user.message", 2);
    asking.session.folder.wait_nth("assistant.turn_end", 2);
    assert_eq!(count(&asking.session.folder, "user.message"), 2, "it was sent once");
    asking.session.folder.assert_one_chain();
}

/// The server is frozen, so the tray waits for it. Whoever interrupts the command learns that nothing was sent, and that is
/// so.
#[test]
#[ignore = "tests/long.sh"]
fn case_201b_an_interrupted_command_says_what_happened() {
    let stage = Stage::new(Manner::Approves);
    let id = stage.session.id();
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.wait_status("working", "");
    freeze(stage.server.pid());
    let mut one = Staying::start(stage.pilot.command_with_tray(&["stop", &id]));
    one.wait_output("the tray is working on your order");
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(1), "{}", one.output());
    one.wait_output("interrupted; nothing was sent");
    signal(stage.server.pid(), Signal::CONT);
    stage.wait_status("working", "");
    assert_eq!(count(&stage.session.folder, "abort"), 0, "{}", stage.session.folder.dump());
}

/// Another Pilotlight has the session's lock and stands still: an order says so, and how it goes on.
#[test]
#[ignore = "tests/long.sh"]
fn case_201e_an_order_behind_a_stopped_process_says_that_it_is_stopped() {
    let stage = Stage::new(Manner::Approves);
    let id = stage.session.id();
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.wait_status("working", "");
    freeze(stage.server.pid());
    let one = Staying::start(stage.pilot.command(&["stop", &id]));
    let has_lock = || {
        let notes = std::fs::read_dir(stage.pilot.user().join(".local/state/pilotlight/sessions")).ok()?;
        let mut notes = notes.filter_map(|note| std::fs::read_to_string(note.ok()?.path()).ok());
        notes.any(|note| note == format!(r#"{{"process":{},"doing":"stop"}}"#, one.pid())).then_some(())
    };
    wait_until(SOON, "it has the lock", || one.output(), has_lock);
    freeze(one.pid());
    let said = stage.pilot.run_without_tray(&["stop", &id]).err;
    assert!(said.contains(&format!("but is stopped: `kill -CONT {}` continues it", one.pid())), "{said}");
    signal(one.pid(), Signal::CONT);
    signal(stage.server.pid(), Signal::CONT);
}

/// Five requests of one session are approved at the same moment, without a tray: each command waits for its turn.
#[test]
fn case_200c_five_approvals_at_once_are_five_done() {
    let stage = Stage::new(Manner::Waits);
    let id = stage.session.id();
    stage.session.send("SCRIPT:many5 Paint the fence");
    stage.session.folder.wait_nth("permission.requested", 5);
    stage.wait_status("needs-permission", "5 requests");
    let asked: Vec<_> =
        stage.session.folder.events().into_iter().filter(|e| e["type"] == "permission.requested").collect();
    let approve = |event: &Value| {
        let request = event["data"]["requestId"].as_str().unwrap();
        Staying::start(stage.pilot.command(&["approve", &id, "--request", request]))
    };
    let mut five: Vec<_> = asked.iter().map(approve).collect();
    for one in &mut five {
        assert_eq!(one.code(), Some(0), "{}", one.output());
    }
    stage.session.folder.wait_nth("tool.execution_complete", 5);
    assert!((1..=5).all(|n| stage.home.project().join(format!("many{n}.txt")).exists()));
}

/// A server's request that is too large to be read says so, with a tray and without one; the small one beside it is
/// answered.
#[test]
#[ignore = "tests/long.sh"]
fn case_192_a_large_request_of_a_server_is_denied_and_does_not_hide_others() {
    for has_tray in [true, false] {
        let stage = Stage::new(Manner::Waits);
        let (id, folder) = (stage.session.id(), &stage.session.folder);
        stage.session.send("SCRIPT:beside400 Paint the fence");
        folder.wait_nth("permission.requested", 2);
        stage.wait_status("needs-permission", "2 requests");
        let named = |kind: &str| {
            let of_kind = |event: &&Value| event["data"]["permissionRequest"]["kind"] == kind;
            folder.events().iter().find(of_kind).unwrap()["data"]["requestId"].as_str().unwrap().to_owned()
        };
        let run = |verb: &str, request: &str| {
            let arguments = [verb, &id, "--request", request];
            if has_tray { stage.pilot.run(&arguments) } else { stage.pilot.run_without_tray(&arguments) }
        };
        let refused = run("approve", &named("write"));
        let words = format!("{refused:?}");
        assert!(refused.code == Some(4) && refused.err.contains("too large to be read here"), "{words:.999}");
        assert_eq!(run("approve", &named("shell")).code, Some(0));
        assert_eq!(run("deny", &named("write")).code, Some(0));
        folder.wait_nth("permission.completed", 2);
        assert!(!stage.home.project().join("new.txt").exists());
    }
}
