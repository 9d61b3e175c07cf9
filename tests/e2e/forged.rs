//! Whoever can write a session's log decides what rows, popups and scripts are told of its request. What would be run is
//! its server's to say: where the two differ, nothing is approved, and both are shown.

use super::bridge::callers::words;
use super::stage::Stage;
use crate::support::desktop::popups::Popup;
use crate::support::executable::executable;
use crate::support::home::Folder;
use crate::support::person::Manner;
use crate::support::pilotlight::CommandOutput;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

const AT_ONCE: &str = "[notifications]\nafter-start = \"1ms\"\n";
/// An id of the form of Copilot's.
const OTHER: &str = "36535f61-5c7b-4f09-a70b-2f8aed972801";

/// The open request in the log, as it was written.
fn asked(folder: &Folder) -> Value {
    folder.wait("permission.requested")
}

fn id_of(asked: &Value) -> &str {
    asked["data"]["requestId"].as_str().unwrap()
}

fn command_of(asked: &Value) -> &str {
    asked["data"]["permissionRequest"]["fullCommandText"].as_str().unwrap()
}

/// Appends events to the log as another process would.
fn append(folder: &Folder, events: &[Value]) {
    let mut log = fs::File::options().append(true).open(folder.log()).unwrap();
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    log.write_all(lines.as_bytes()).unwrap();
}

/// How the ids of forged events begin.
const FORGED: &str = "36535f61-5c7b-4f09-a70b-2f8aed97f";

/// The id of another forged event: one that comes twice counts once.
fn forged_id() -> Value {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{FORGED}{:03x}", COUNT.fetch_add(1, Ordering::Relaxed)).into()
}

/// The event that marks a request completed, after `event`.
fn completed(event: &Value) -> Value {
    let mut forged = event.clone();
    forged["type"] = "permission.completed".into();
    forged["id"] = forged_id();
    forged["data"] = serde_json::json!({"requestId": id_of(event), "result": {"kind": "approved"}});
    forged
}

/// The same request, for another command.
fn asks_for(event: &Value, command: &str) -> Value {
    let mut forged = event.clone();
    forged["id"] = forged_id();
    for part in ["permissionRequest", "promptRequest"] {
        if forged["data"][part].is_object() {
            forged["data"][part]["fullCommandText"] = command.into();
        }
    }
    forged
}

/// A command in a terminal of its own, which then shows its exit code.
fn on_terminal(command: &Command) -> Tmux {
    Tmux::with_exit_code(command, 110, 40)
}

/// A shell in a terminal, as a user has it open before a session is created.
fn shell() -> Tmux {
    let mut shell = Command::new("bash");
    shell.args(["--norc", "-i"]).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("TERM", "xterm-256color");
    let terminal = Tmux::start(&shell, 110, 40);
    wait_screen(&terminal, "bash-");
    terminal
}

/// Waits until the terminal shows this text, possibly wrapped.
fn wait_screen(terminal: &Tmux, what: &str) {
    let contains = || terminal.screen().split_whitespace().collect::<Vec<_>>().join(" ").contains(what).then_some(());
    wait_until(SOON, &format!("the terminal shows {what:?}"), || terminal.screen(), contains);
}

/// Each way in which a command approves, with and without a tray.
fn every_way(stage: &Stage, request: &str) -> Vec<CommandOutput> {
    let id = stage.session.id();
    let ways =
        [&["approve", "--yes", &id][..], &["approve", "--yes", "--all", &id], &["approve", &id, "--request", request]];
    ways.iter().flat_map(|way| [stage.pilot.run(way), stage.pilot.run_without_tray(way)]).collect()
}

/// The server's own events of answers: those that were not forged.
fn answers(folder: &Folder) -> usize {
    let is_one = |event: &&Value| {
        event["type"] == "permission.completed" && !event["id"].as_str().is_some_and(|id| id.starts_with(FORGED))
    };
    folder.events().iter().filter(is_one).count()
}

#[test]
fn case_703_a_request_that_was_forged_in_the_log_is_approved_in_no_way() {
    let stage = Stage::with_config(Manner::Waits, AT_ONCE);
    let popups = stage.pilot.popups();
    let (id, folder) = (stage.session.id(), &stage.session.folder);
    stage.wait_status("idle", "");
    stage.session.send("SCRIPT:tool Paint the fence");
    let event = asked(folder);
    let request = id_of(&event);
    let danger = command_of(&event).to_owned();
    for (nth, benign) in [(0, "echo benign".to_owned()), (1, danger.replacen(' ', "  ", 1)), (2, format!("{danger} "))]
    {
        append(folder, &[completed(&event), asks_for(&event, &benign)]);
        let row = stage.pilot.row_where(&id, "the forged text", |row| row["request"]["text"] == *benign);
        assert_eq!(row["request"]["id"], request, "as JSON has it");
        for ran in every_way(&stage, request) {
            assert_eq!(ran.code, Some(4), "{nth}: {ran:?}");
            assert!(ran.out.contains(&danger[..20]) && ran.out.contains("its log says something else"), "{ran:?}");
            assert!(
                ran.out.contains(&format!("to run: {}", &benign[..4])) && ran.err.contains("nothing was approved"),
                "{ran:?}"
            );
        }
        for command in [stage.pilot.command_with_tray(&["approve", &id]), stage.pilot.command(&["approve", &id])] {
            let terminal = on_terminal(&command);
            wait_screen(&terminal, "exited with 4");
            let screen = terminal.screen();
            assert!(!screen.contains("[y/N]") && screen.contains("its log says something else"), "{screen}");
        }
    }
    // A click, of which the first text was shown in the menu, or in a popup.
    append(folder, &[completed(&event), asks_for(&event, "echo benign")]);
    stage.pilot.wait_menu(&id, "Wants to run: echo benign");
    let forged = |popup: &Popup| popup.body.starts_with("echo benign");
    let shows = || popups.received().into_iter().rev().find(forged);
    let popup = wait_until(SOON, "a popup shows it", || format!("{:#?}", popups.received()), shows);
    let tells_both = |popup: &&Popup| {
        popup.title == "project: nothing was done"
            && popup.body.contains("echo benign")
            && popup.body.contains(&danger[..20])
    };
    let both = |received: Vec<Popup>| received.iter().filter(tells_both).count();
    let told = |many: usize| {
        let is_told = || (both(popups.received()) == many).then_some(());
        wait_until(SOON, "both texts are told", || format!("{:#?}", popups.received()), is_told);
    };
    stage.pilot.click(&id, "Approve once");
    told(1);
    popups.click_after_reading(popup.number, "approve");
    told(2);
    assert_eq!(answers(folder), 0, "{}", folder.dump());
    // It can still be denied.
    assert_eq!(stage.pilot.run(&["deny", &id, "--request", request]).code, Some(0));
    folder.wait("tool.execution_complete");
}

#[test]
fn case_703_a_request_that_the_log_has_under_another_id_or_not_at_all_is_not_approved() {
    let stage = Stage::new(Manner::Waits);
    let (id, folder) = (stage.session.id(), &stage.session.folder);
    stage.session.send("SCRIPT:tool Paint the fence");
    let event = asked(folder);
    let (request, danger) = (id_of(&event), command_of(&event).to_owned());
    stage.wait_status("needs-permission", "");
    // The same text under another id: the server knows no such request.
    let mut other = asks_for(&event, &danger);
    other["data"]["requestId"] = OTHER.into();
    append(folder, &[completed(&event), other]);
    stage.pilot.row_where(&id, "the other id", |row| row["request"]["id"] == OTHER);
    for ran in every_way(&stage, OTHER) {
        assert!(ran.code == Some(4) && ran.err.contains("no longer open"), "{ran:?}");
    }
    // By the id that the log calls answered.
    for ran in [
        stage.pilot.run(&["approve", &id, "--request", request]),
        stage.pilot.run_without_tray(&["approve", &id, "--request", request]),
    ] {
        assert!(ran.code == Some(4) && ran.out.contains("that it was answered already"), "{ran:?}");
    }
    // The log is written anew without the request, and with another one, so that something seems to be asked.
    let log = fs::read_to_string(folder.log()).unwrap();
    let kept = |line: &&str| !line.contains(request);
    let rewritten: String = log.lines().filter(kept).map(|line| format!("{line}\n")).collect();
    fs::write(folder.log(), rewritten).unwrap();
    stage.pilot.row_where(&id, "the other id alone", |row| row["request"]["id"] == OTHER);
    for ran in [
        stage.pilot.run(&["approve", &id, "--request", request]),
        stage.pilot.run_without_tray(&["approve", &id, "--request", request]),
    ] {
        assert!(ran.code == Some(4) && ran.out.contains("nothing of such a request"), "{ran:?}");
    }
    assert_eq!(answers(folder), 0, "{}", folder.dump());
}

/// The request that was shown is answered elsewhere before the yes: the next one is left alone.
#[test]
fn case_704_on_a_terminal_it_asks_and_answers_only_what_it_showed() {
    let shell = shell();
    let stage = Stage::new(Manner::Waits);
    let (id, folder) = (stage.session.id(), &stage.session.folder);
    stage.session.send("SCRIPT:two Paint the fence");
    folder.wait_nth("permission.requested", 2);
    let row = stage.wait_status("needs-permission", "2 requests are open");
    let (first, text) = (row["request"]["id"].as_str().unwrap(), row["request"]["text"].as_str().unwrap());
    // With a tray or without, it asks.
    for command in [stage.pilot.command_with_tray(&["approve", &id]), stage.pilot.command(&["approve", &id])] {
        let terminal = on_terminal(&command);
        wait_screen(&terminal, &format!("{text} "));
        wait_screen(&terminal, "Approve this request, once? [y/N]");
        terminal.press(&["Enter"]);
        wait_screen(&terminal, "the request was left open exited with 4");
    }
    let typed = |command: &Command| {
        let script = stage.pilot.user().join("approve.sh");
        executable(&script, &format!("#!/bin/sh\nclear\n{}\necho \"exited with $?\"\n", words(command)));
        // What an earlier command asked is not taken for what this one asks.
        shell.press(&["C-l"]);
        let is_clear = || (!shell.screen().contains("Approve")).then_some(());
        wait_until(SOON, "the shell is cleared", || shell.screen(), is_clear);
        shell.text(&script.display().to_string());
        shell.press(&["Enter"]);
        wait_screen(&shell, "Approve this request, once? [y/N]");
        &shell
    };
    let terminal = typed(&stage.pilot.command_with_tray(&["approve", &id]));
    assert_eq!(stage.pilot.run(&["deny", &id, "--request", first]).code, Some(0));
    terminal.press(&["y", "Enter"]);
    wait_screen(terminal, "no longer open");
    wait_screen(terminal, "exited with 4");
    assert_eq!(answers(folder), 1, "the next one is left alone: {}", folder.dump());
    // Without a terminal, a script says that it means it.
    for verb in ["approve", "deny"] {
        for ran in [stage.pilot.run(&[verb, &id]), stage.pilot.run_without_tray(&[verb, &id, "--all"])] {
            assert!(ran.code == Some(4) && ran.err.contains("--request RID") && ran.err.contains("--yes"), "{ran:?}");
        }
    }
    assert_eq!(answers(folder), 1);
    let terminal = typed(&stage.pilot.command_with_tray(&["approve", &id]));
    terminal.press(&["y", "Enter"]);
    wait_screen(terminal, "approved 1 request exited with 0");
    assert_eq!(answers(folder), 2);
}
