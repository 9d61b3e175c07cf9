//! Questions and requests are taken, and shown, as the terminal shows them.

use super::Bridged;
use super::callers::words;
use super::stories::open;
use crate::e2e::orders::Staying;
use crate::support::executable::executable;
use crate::support::freeze::freeze;
use crate::support::pilotlight::CommandOutput;
use crate::support::process::signal;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::process::Command;

/// Makes the session ask by this script, and runs each of these answers. Returns what they printed, and the result of
/// the last, which must succeed.
fn answers(
    bridged: &Bridged,
    script: &str,
    question: &str,
    nth: usize,
    given: &[&[&str]],
) -> (Vec<CommandOutput>, String) {
    let (id, folder) = (bridged.id(), &bridged.terminal.folder);
    bridged.terminal.enter(&format!("SCRIPT:{script} Paint the fence {nth}"));
    bridged.pilot.wait_status_in_tray(&id, "needs-input", question);
    let asked = open(bridged);
    let ran = |answer: &&[&str]| bridged.pilot.run(&[&["answer", &id, "--request", &asked], *answer].concat());
    let ran: Vec<_> = given.iter().map(ran).collect();
    assert_eq!(ran.last().unwrap().code, Some(0), "{ran:?}\n{}", bridged.terminal.dump());
    let done = folder.wait_nth("tool.execution_complete", nth);
    bridged.pilot.wait_status_in_tray(&id, "idle", "");
    bridged.terminal.wait_no_screen("Copilot needs information");
    (ran, done["data"]["result"]["content"].to_string())
}

#[test]
#[ignore = "tests/long.sh"]
fn case_200d_titled_choices_and_other_words_are_answers_as_in_the_terminal() {
    let bridged = Bridged::new(&[]);
    let (ran, result) = answers(&bridged, "titled", "Which color?", 1, &[&["Red"]]);
    assert!(ran[0].out.contains("1) Red (r)") && result.contains("User responded: r\""), "{result} {ran:?}");
    let (_, result) = answers(&bridged, "titled", "Which color?", 2, &[&["purple"]]);
    assert!(result.contains("purple"), "{result}");
    // The terminal offers the same.
    bridged.terminal.enter("SCRIPT:titled Paint the fence 3");
    bridged.terminal.wait_screen("Other (type your answer)");
    assert!(!bridged.terminal.screen().contains("(r)"), "{}", bridged.terminal.dump());
    bridged.pilot.wait_status_in_tray(&bridged.id(), "needs-input", "Which color?");
    bridged.pilot.wait_menu(&bridged.id(), "Answer in your own words…");
}

/// Copilot's event omits the limits, which the tool's call has.
#[test]
#[ignore = "tests/long.sh"]
fn case_201f_limits_and_yes_or_no_hold_over_the_bridge() {
    let bridged = Bridged::new(&[]);
    let (ran, result) =
        answers(&bridged, "limits", "How many?", 1, &[&["--text", "9"], &["--text", "2.5"], &["--text", "3"]]);
    assert!(ran[0].code == Some(4) && ran[0].err.contains("its form does not allow this number"), "{ran:?}");
    assert!(ran[1].code == Some(4) && ran[1].err.contains("a whole number"), "{ran:?}");
    assert!(result.contains("User responded: 3"), "{result}");
    for (nth, answer, value) in
        [(2, &["yes"][..], "true"), (3, &["no"], "false"), (4, &["--field", "sure=TRUE"], "true")]
    {
        let (_, result) = answers(&bridged, "yesno", "Shall I?", nth, &[answer]);
        assert!(result.contains(&format!("User responded: {value}\"")), "{result}");
    }
}

#[test]
#[ignore = "tests/long.sh"]
fn case_200e_a_request_for_a_path_names_its_command_and_the_kind_of_access() {
    let bridged = Bridged::consented();
    let (id, folder) = (bridged.id(), &bridged.terminal.folder);
    bridged.terminal.enter("SCRIPT:outside Paint the fence");
    let asked = folder.wait_nth("permission.requested", 2);
    bridged.pilot.wait_status(&id, "needs-permission", "path");
    let (text, request) =
        ("/etc/hostname, to read or write, for: cat /etc/hostname", asked["data"]["requestId"].as_str().unwrap());
    bridged.pilot.wait_menu(&id, text);
    let ran = bridged.run_ok(&["approve", "--yes", &id]);
    for part in [
        "outside of the allowed folders, to read or write:",
        "By the session's log, for this command:\n    \n    cat /etc/hostname\n",
    ] {
        assert!(ran.out.contains(part), "{part:?}: {ran:?}");
    }
    assert!(ran.out.contains(request), "{ran:?}");
    folder.wait("tool.execution_complete");
}

/// What a look tells is what `--request` takes.
#[test]
#[ignore = "tests/long.sh"]
fn case_200f_a_look_tells_the_id_to_answer_by() {
    const SAYS: &str = "Its id, for --request: ";
    let bridged = Bridged::consented();
    let (id, folder) = (bridged.id(), &bridged.terminal.folder);
    let told =
        |out: &str| out.lines().find_map(|line| line.strip_prefix(SAYS)).unwrap_or_else(|| panic!("{out}")).to_owned();
    bridged.terminal.enter("SCRIPT:many2 Paint the fence");
    let second = folder.wait_nth("permission.requested", 3);
    let second_file = if second.to_string().contains("many2.txt") { "many2.txt" } else { "many1.txt" };
    let second = second["data"]["requestId"].as_str().unwrap().to_owned();
    bridged.pilot.wait_status(&id, "needs-permission", "2 requests");
    // Without a terminal to ask on, `--ask` is refused before it looks; another hash looks, and leaves the request open.
    let look = ["approve", &id, "--request", &second, "--sha256", "0"];
    let ran = bridged.pilot.run(&look);
    assert!(ran.code == Some(4) && told(&ran.out) == second, "{ran:?}");
    bridged.run_ok(&["deny", &id, "--request", &second]);
    bridged.run_ok(&["approve", "--yes", &id]);
    let done = folder.wait_nth("tool.execution_complete", 2);
    assert!(!bridged.home.project().join(second_file).exists(), "{done}");
    bridged.pilot.wait_status(&id, "idle", "");

    bridged.terminal.enter("SCRIPT:form Paint the gate");
    bridged.pilot.wait_status_in_tray(&id, "needs-input", "Which color?");
    let ran = bridged.pilot.run(&["answer", &id]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    bridged.run_ok(&["answer", &id, "--request", &told(&ran.out), "blue"]);
    let done = folder.wait_nth("tool.execution_complete", 3);
    assert!(done.to_string().contains("blue"), "{done}");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_200c_five_approvals_at_once_over_the_bridge_are_five_done() {
    let bridged = Bridged::consented();
    let (id, folder) = (bridged.id(), &bridged.terminal.folder);
    bridged.terminal.enter("SCRIPT:many5 Paint the fence");
    folder.wait_nth("permission.requested", 6);
    bridged.pilot.wait_status(&id, "needs-permission", "5 requests");
    let asked: Vec<_> = folder.events().into_iter().filter(|event| event["type"] == "permission.requested").collect();
    let approve = |event: &serde_json::Value| {
        let request = event["data"]["requestId"].as_str().unwrap();
        let mut command = bridged.pilot.command_with_tray(&["approve", &id, "--request", request]);
        std::thread::spawn(move || command.output().unwrap())
    };
    let five: Vec<_> = asked[1..].iter().map(approve).collect();
    for output in five.into_iter().map(|one| one.join().unwrap()) {
        assert!(output.status.success(), "{output:?}\n{}", bridged.terminal.dump());
    }
    folder.wait_nth("tool.execution_complete", 5);
    assert!((1..=5).all(|n| bridged.home.project().join(format!("many{n}.txt")).exists()));
}

/// They all reach a tray that was just started, to which the bridge is still connecting.
#[test]
#[ignore = "tests/long.sh"]
fn case_200g_five_approvals_while_the_bridge_connects_are_five_done() {
    let mut bridged = Bridged::consented();
    let (id, folder) = (bridged.id(), &bridged.terminal.folder);
    bridged.terminal.enter("SCRIPT:many5 Paint the fence");
    folder.wait_nth("permission.requested", 6);
    bridged.pilot.wait_status(&id, "needs-permission", "5 requests");
    let asked: Vec<_> = folder.events().into_iter().filter(|event| event["type"] == "permission.requested").collect();
    let extension = bridged.terminal.extension();
    freeze(extension);
    bridged.pilot.restart_tray();
    freeze(bridged.pilot.tray_pid());
    let approve = |event: &serde_json::Value| {
        let request = event["data"]["requestId"].as_str().unwrap();
        Staying::start(bridged.pilot.command_with_tray(&["approve", &id, "--request", request]))
    };
    let mut five: Vec<_> = asked[1..].iter().map(approve).collect();
    five.iter().for_each(|one| one.wait_output("this command waits for it"));
    signal(bridged.pilot.tray_pid(), Signal::CONT);
    signal(extension, Signal::CONT);
    for one in &mut five {
        assert_eq!(one.code(), Some(0), "{}\n{}", one.output(), bridged.terminal.dump());
    }
    folder.wait_nth("tool.execution_complete", 5);
}

/// Another command listens where bridges connect.
#[test]
#[ignore = "tests/long.sh"]
fn case_201g_a_command_that_waits_for_another_says_so_and_is_interrupted_at_once() {
    let mut bridged = Bridged::consented();
    bridged.pilot.end_tray();
    let (id, folder) = (bridged.id(), &bridged.terminal.folder);
    bridged.terminal.enter("SCRIPT:tool Paint the fence");
    folder.wait_nth("permission.requested", 2);
    let other = bridged.pilot.user().join(".local/state/pilotlight/bridge.sock");
    let other = std::os::unix::net::UnixListener::bind(other).unwrap();
    let mut one = Staying::start(bridged.pilot.command(&["approve", "--yes", &id]));
    one.wait_output("another Pilotlight is using the bridges");
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(1), "{}", one.output());
    one.wait_output("interrupted; nothing was sent");
    drop(other);
    assert_eq!(folder.types().iter().filter(|kind| *kind == "permission.completed").count(), 1);
}

/// Without a tray nothing has shown the request before, so whoever runs `approve` on a terminal is asked once more.
#[test]
#[ignore = "tests/long.sh"]
fn case_201a_approve_without_a_tray_shows_the_request_and_asks() {
    let mut shell = Command::new("bash");
    shell.args(["--norc", "-i"]).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("TERM", "xterm-256color");
    let terminal = Tmux::start(&shell, 110, 30);
    let shows =
        |text: &str| wait_until(SOON, text, || terminal.screen(), || terminal.screen().contains(text).then_some(()));
    shows("bash-");
    let mut bridged = Bridged::consented();
    bridged.pilot.end_tray();
    let (id, folder) = (bridged.id(), &bridged.terminal.folder);
    bridged.terminal.enter("SCRIPT:many1 Paint the fence");
    folder.wait_nth("permission.requested", 2);
    for (key, code) in [("n", 4), ("y", 0)] {
        let mut command = bridged.pilot.command(&["approve", &id]);
        let command = words(command.env("TERM", "xterm-256color"));
        let script = bridged.pilot.user().join("approve.sh");
        executable(&script, &format!("#!/bin/sh\nclear\n{command}\necho \"exited with $?\"\n"));
        terminal.text(&script.display().to_string());
        terminal.press(&["Enter"]);
        shows("echo 1 > many1.txt");
        shows("Approve this request, once? [y/N]");
        assert!(!folder.types().iter().any(|kind| kind == "tool.execution_complete"), "{}", bridged.terminal.dump());
        terminal.press(&[key, "Enter"]);
        shows(&format!("exited with {code}"));
        terminal.press(&["C-l"]);
        let is_clear = || (!terminal.screen().contains("exited")).then_some(());
        wait_until(SOON, "the shell is cleared", || terminal.screen(), is_clear);
    }
    folder.wait("tool.execution_complete");
}

/// A form that outlived its turn would take the keys that are meant for the next prompt.
#[test]
#[ignore = "tests/long.sh"]
fn case_199a_a_form_goes_with_the_turn_that_is_stopped() {
    let bridged = Bridged::new(&[]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    for nth in 1..=3 {
        terminal.enter(&format!("SCRIPT:form Paint the fence {nth}"));
        bridged.pilot.wait_status_in_tray(&id, "needs-input", "Which color?");
        terminal.wait_screen("esc cancel");
        bridged.run_ok(&["stop", &id]);
        terminal.folder.wait_nth("abort", nth);
        terminal.wait_no_screen("esc cancel");
        bridged.pilot.wait_status_in_tray(&id, "idle", "");
    }
    // A prompt is taken at once.
    terminal.enter("SCRIPT:plain Paint the gate");
    terminal.folder.wait_nth("user.message", 4);
}
