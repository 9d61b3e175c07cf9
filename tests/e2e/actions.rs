//! One click puts it right: what the menu and the commands do to sessions of the real CLI, and what they refuse.
//!
//! How each step behaves when its server does not is tested in `recover.rs`; here the whole program acts. At the end of a
//! story its log is looked at: one chain of events, nothing lost.

use super::stage::Stage;
use crate::support::home::{Folder, Home, cli};
use crate::support::model::Model;
use crate::support::person::Manner;
use crate::support::pilotlight::{Pilot, Ran};
use crate::support::terminal::Terminal;
use crate::support::{SOON, wait, wait_until};
use serde_json::Value;
use std::ffi::OsString;
use std::time::Duration;

/// No event but the first goes on from nothing, no two go on from the same one, none is there twice.
fn is_one_chain(folder: &Folder) {
    let events = folder.events();
    let off_chain = |event: &&Value| !event["type"].as_str().unwrap_or_default().starts_with("model.");
    let mut parents: Vec<_> = events.iter().filter(off_chain).map(|event| event["parentId"].to_string()).collect();
    let mut ids: Vec<_> = events.iter().map(|event| event["id"].to_string()).collect();
    for (what, list) in [("parents", &mut parents), ("ids", &mut ids)] {
        let all = list.len();
        list.sort();
        list.dedup();
        assert_eq!(list.len(), all, "{what} are not one chain\n{}", folder.dump());
    }
}

/// The kind of each answer to a permission request, in order.
fn answers(folder: &Folder) -> Vec<String> {
    let of = |event: &Value| event["data"]["result"]["kind"].as_str().unwrap_or_default().to_owned();
    folder.events().iter().filter(|event| event["type"] == "permission.completed").map(of).collect()
}

pub(crate) fn settings(more: &str) -> String {
    format!("[actions]\ncopilot = {:?}\n{more}", cli().display().to_string())
}

/// What Copilot needs to find its model, for one that Pilotlight starts.
pub(crate) fn environment(home: &Home, model: &Model) -> Vec<(OsString, OsString)> {
    let command = home.copilot(model);
    let wanted = |name: &str| name.starts_with("COPILOT_") && name != "COPILOT_HOME" || name == "XDG_CACHE_HOME";
    let given = command.get_envs().filter(|(name, _)| wanted(&name.to_string_lossy()));
    given.filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect()
}

#[test]
fn a_request_of_another_client_is_approved_from_the_menu() {
    let stage = Stage::set(Manner::Waits);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    let row = stage.told("needs-permission", "");
    for action in ["approve", "deny", "reconnect", "stop"] {
        assert!(row["actions"].as_array().unwrap().contains(&action.into()), "{row}");
    }
    stage.pilot.menu_says(&stage.session.id(), "Wants to run: for i in $(seq 600)");
    stage.pilot.click(&stage.session.id(), "Approve once");
    stage.session.folder.wait("permission.completed");
    stage.told("working", "");
    stage.home.go();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("idle", "");
    assert_eq!(answers(&stage.session.folder), ["approved"]);
    is_one_chain(&stage.session.folder);
    let log = stage.pilot.log();
    assert!(!log.contains("seq 600") && !log.contains("Paint"), "no content in the log: {log}");
}

#[test]
fn a_request_is_denied_by_a_command_over_the_tray() {
    let stage = Stage::set(Manner::Waits);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.told("needs-permission", "");
    let ran = stage.pilot.run(&["deny", &stage.session.id()[..13]]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("for i in $(seq 600)"), "what it answers is shown whole: {ran:?}");
    stage.session.folder.wait("tool.execution_complete");
    assert_eq!(answers(&stage.session.folder), ["denied-interactively-by-user"]);
    stage.told("idle", "");
    let again = stage.pilot.run(&["deny", &stage.session.id()]);
    assert_eq!(again.code, Some(4), "{again:?}");
    assert!(again.err.contains("asks for no permission"), "{again:?}");
}

/// The client that could answer is gone while another one stays: the request would be open for ever.
#[test]
fn case_41_an_orphaned_request_is_approved_by_a_command_alone() {
    let stage = Stage::set(Manner::Waits);
    let other = stage.server.connect();
    let person = crate::support::person::Person::who(Manner::Leaves);
    let _stays = stage.server.resume(&other, &stage.session.id(), &person, None);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    stage.client.leave();
    stage.told("needs-permission", "");
    let ran = stage.pilot.run_alone(&["approve", &stage.session.id()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    stage.told("working", "");
    stage.home.go();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("idle", "");
    is_one_chain(&stage.session.folder);
}

/// A session without a handler fails every tool silently; after Reconnect the next request asks us.
#[test]
fn lost_permissions_come_back_with_reconnect() {
    let stage = Stage::without_person();
    let id = stage.session.id();
    stage.session.send("SCRIPT:denied3 Paint the fence");
    stage.told("permission-lost", "");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.pilot.click(&id, "Reconnect only");
    stage.pilot.menu_says(&id, "Pilotlight: attached to its server");
    stage.told("needs-input", "its last prompt was not carried out");
    stage.session.send("SCRIPT:tool Paint the gate");
    stage.session.folder.wait("permission.requested");
    stage.told("needs-permission", "");
    stage.pilot.click(&id, "Approve once");
    stage.session.folder.wait("permission.completed");
    stage.home.go();
    stage.told("idle", "");
    assert_eq!(answers(&stage.session.folder).last().unwrap(), "approved");
    is_one_chain(&stage.session.folder);
}

#[test]
fn a_hanging_turn_is_stopped_and_the_session_works_on() {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.told("working", "");
    stage.pilot.click(&stage.session.id(), "Stop the turn");
    stage.told("idle", "stopped");
    let again = stage.pilot.run(&["stop", &stage.session.id()]);
    assert_eq!(again.code, Some(4), "{again:?}");
    assert!(again.err.contains("nothing to stop"), "{again:?}");
    stage.session.send("SCRIPT:plain Never mind");
    stage.session.folder.wait("assistant.message");
    stage.told("idle", "done");
    is_one_chain(&stage.session.folder);
}

/// A crashed session of a program: resumed in a server of our own, told to go on, its requests ours.
#[test]
fn a_crashed_session_is_resumed_in_a_server_of_our_own() {
    let (home, model) = (Home::new("project"), Model::start());
    let goes_on = settings("continue-prompt = \"SCRIPT:tool Go on\"\n");
    let mut pilot = Pilot::with(&[&home], &goes_on, &environment(&home, &model));
    let mut server = crate::support::server::Server::start(&home, &model);
    let theirs = server.pid();
    let person = crate::support::person::Person::who(Manner::Approves);
    let client = server.connect();
    let session = server.create(&client, Some(&person));
    let id = session.id();
    session.send("SCRIPT:tool Paint the fence");
    session.folder.wait("permission.completed");
    pilot.told(&id, "working", "");
    server.kill();
    home.go(); // the tool's shell outlives its server
    let row = pilot.told(&id, "crashed", "unfinished");
    std::fs::remove_file(home.project().join("go")).unwrap();
    assert!(!row["actions"].as_array().unwrap().contains(&"resend".into()), "its tool may have had its effect: {row}");

    pilot.click(&id, "Reconnect and continue");
    pilot.menu_says(&id, "Pilotlight: it runs in a server of ours");
    let begun =
        || (session.folder.types().iter().filter(|kind| *kind == "permission.requested").count() == 2).then_some(());
    wait_until(SOON, "it is told to go on", || format!("{}\n{}", pilot.log(), session.folder.dump()), begun);
    let row = pilot.told(&id, "needs-permission", "");
    assert_eq!(row["owner"]["state"], "alive", "{row}");
    assert_ne!(row["owner"]["pid"], theirs, "{row}");
    pilot.click(&id, "Approve once");
    session.folder.wait_nth("permission.completed", 2);
    home.go();
    pilot.told(&id, "idle", "");
    is_one_chain(&session.folder);
    let log = pilot.log();
    assert!(
        log.contains("resend") && !log.contains("seq 600") && !log.contains("Paint"),
        "no content in the log: {log}"
    );
    // Our end ends it, gently: it can be resumed.
    pilot.end_tray();
    session.folder.wait("session.shutdown");
    let row = pilot.row_where(&id, "it has ended", |row| row["status"] == "ended");
    assert!(row["actions"].as_array().unwrap().contains(&"reconnect".into()), "{row}");
}

/// Cases 70, 62: a plain terminal is never taken over; it can only be ended, and that takes a second word.
#[test]
fn case_70_a_live_terminal_is_not_taken_over_but_can_be_ended() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &[]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("permission.requested");
    let row = pilot.told(&id, "needs-permission", "");
    assert_eq!(row["owner"]["attachable"], false, "{row}");
    for command in ["reconnect", "approve", "resume"] {
        let ran = pilot.run(&[command, &id]);
        assert_eq!(ran.code, Some(4), "{command}: {ran:?}");
    }
    let refused = pilot.run(&["reconnect", &id]);
    assert!(refused.err.contains("a second owner would fork its log"), "{refused:?}");
    let unasked = pilot.run(&["stop", &id]);
    assert_eq!(unasked.code, Some(4), "nobody can be asked: {unasked:?}");
    pilot.told(&id, "needs-permission", "");
    let ended = pilot.run(&["stop", &id, "--yes"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    terminal.folder.wait("session.shutdown");
    pilot.told(&id, "ended", "shut down");
    is_one_chain(&terminal.folder);
}

#[test]
fn a_terminal_is_ended_from_the_menu_and_resumed_in_a_terminal() {
    let (home, model) = (Home::new("project"), Model::start());
    // A terminal that a test can look into.
    let socket = home.root().join("tmux");
    let words = ["tmux", "-S", socket.to_str().unwrap(), "new-session", "-d", "-x", "140", "-y", "45", "{command}"];
    let mut pilot = Pilot::with(&[&home], &settings(&format!("terminal = {words:?}\n")), &environment(&home, &model));
    let terminal = Terminal::start(&home, &model, &[]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    pilot.told(&id, "idle", "");
    pilot.click(&id, "End it");
    terminal.folder.wait("session.shutdown");
    pilot.told(&id, "ended", "");
    pilot.menu_says(&id, "has ended; the session can be resumed");
    let again = pilot.run(&["resume", &id]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let tmux = |args: &[&str]| {
        let mut command = std::process::Command::new("tmux");
        command.arg("-S").arg(&socket).args(args);
        Ran::of(command)
    };
    wait_until(
        SOON,
        "the resumed session shows in the new terminal",
        || tmux(&["capture-pane", "-p"]).out,
        || tmux(&["capture-pane", "-p"]).out.contains("Paint the fence").then_some(()),
    );
    let path = tmux(&["display-message", "-p", "#{pane_current_path}"]).out;
    assert_eq!(path.trim(), home.project().canonicalize().unwrap().to_str().unwrap());
    // It outlives us.
    pilot.end_tray();
    assert!(tmux(&["capture-pane", "-p"]).out.contains("Paint the fence"));
    tmux(&["kill-server"]);
}

/// Cases 72 and 107d: whatever the lock says, what is not surely the session's own process is not signalled.
#[test]
fn a_terminal_with_two_sessions_is_not_ended() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &[]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    pilot.told(&id, "idle", "");
    terminal.enter("/new");
    let second = wait_until(
        SOON,
        "the terminal has a second session",
        || terminal.screen(),
        || home.sessions().into_iter().find(|folder| folder.id() != id && !folder.locks().is_empty()),
    );
    let ran = pilot.run(&["stop", "--yes", &id]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains("1 other session"), "{ran:?}");
    // While it still makes its new session, a terminal takes a prompt and loses it.
    terminal.wait_screen("Started a new session");
    let is_prompted = || second.types().iter().any(|kind| kind == "user.message").then_some(());
    for _ in 0..4 {
        terminal.enter("SCRIPT:plain And the gate");
        if wait(Duration::from_secs(5), is_prompted).is_some() {
            break;
        }
    }
    second.wait("assistant.turn_end");
}

#[test]
fn a_terminal_with_a_server_is_answered_and_left_running_when_we_quit() {
    let (home, model) = (Home::new("project"), Model::start());
    let mut pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &["--ui-server", "--port", "0"]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("permission.requested");
    pilot.told(&id, "needs-permission", "");
    pilot.click(&id, "Approve once");
    terminal.folder.wait("permission.completed");
    pilot.told(&id, "working", "");
    home.go();
    terminal.folder.wait_nth("assistant.turn_end", 2);
    pilot.told(&id, "idle", "");
    pilot.click(&id, "Reconnect");
    pilot.menu_says(&id, "Pilotlight: attached to its server");
    pilot.end_tray();
    terminal.enter("SCRIPT:plain And the gate");
    terminal.folder.wait_nth("assistant.turn_end", 3);
    assert!(!terminal.folder.types().contains(&"session.shutdown".to_owned()));
    is_one_chain(&terminal.folder);
}

/// Case 107c: an agent must not approve itself.
#[test]
fn case_107c_approve_run_by_a_tool_of_a_session_is_refused() {
    let stage = Stage::set(Manner::Approves);
    let asking = Stage::set(Manner::Waits);
    asking.session.send("SCRIPT:tool Paint the fence");
    asking.told("needs-permission", "");
    let command = asking.pilot.command(&["approve", &asking.session.id()]);
    let (code, out) = run_by_a_tool(&stage, &command);
    assert_eq!(code, "4", "{out}");
    assert!(answers(&asking.session.folder).is_empty(), "nothing was answered");
    asking.told("needs-permission", "");
}

/// Has a tool of a session run a command: its exit code, and what it said.
pub(super) fn run_by_a_tool(stage: &Stage, command: &std::process::Command) -> (String, String) {
    let mut script = String::new();
    for (name, value) in command.get_envs() {
        let quoted = value.unwrap_or_default().to_string_lossy().replace('\'', r"'\''");
        script += &format!("export {}='{quoted}'\n", name.to_string_lossy());
    }
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    script += &format!("{} > out.txt 2>&1; echo $? > code.txt\n", words.join(" "));
    std::fs::write(stage.home.project().join("script.sh"), script).unwrap();
    let ran = |kind: &String| *kind == "tool.execution_complete";
    let before = stage.session.folder.types().iter().filter(|kind| ran(kind)).count();
    stage.session.send("SCRIPT:script Run it");
    stage.session.folder.wait_nth("tool.execution_complete", before + 1);
    stage.told("idle", "");
    let read = |name: &str| std::fs::read_to_string(stage.home.project().join(name)).unwrap_or_default();
    (read("code.txt").trim().to_owned(), read("out.txt"))
}

/// Off by default; where it is set, the session is reconnected when the turn that was denied is over.
#[test]
fn a_session_that_loses_its_permissions_is_reconnected_where_that_is_set() {
    let stage = Stage::without_person_configured("[actions]\nauto-reconnect = true\n");
    let id = stage.session.id();
    stage.session.send("SCRIPT:denied3 Paint the fence");
    stage.session.folder.wait_nth("tool.execution_complete", 3);
    stage.pilot.menu_says(&id, "Pilotlight: attached to its server");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.session.send("SCRIPT:tool Paint the gate");
    stage.session.folder.wait("permission.requested");
    stage.told("needs-permission", "");
}

/// With a real terminal on a display, as `tests/visible/terminal.sh` starts it: what was killed goes on where it was.
#[test]
#[ignore = "wants a display: tests/visible/terminal.sh"]
fn a_killed_terminal_is_resumed_in_xterm() {
    let Some(display) = std::env::var_os("PILOTLIGHT_TEST_DISPLAY").and_then(|_| std::env::var_os("DISPLAY")) else {
        return;
    };
    let (home, model) = (Home::new("project"), Model::start());
    let mut environment = environment(&home, &model);
    environment.extend([("DISPLAY".into(), display), ("TERMINAL".into(), "xterm".into())]);
    let pilot = Pilot::with(&[&home], &settings(""), &environment);
    let terminal = Terminal::start(&home, &model, &[]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("permission.requested");
    terminal.signal(rustix::process::Signal::KILL);
    pilot.told(&id, "crashed", "");
    pilot.click(&id, "Resume in a terminal");
    let xdotool = |args: &[&str]| {
        let mut command = std::process::Command::new("xdotool");
        command.args(args);
        Ran::of(command)
    };
    let window = wait_until(SOON, "the terminal's window is there", String::new, || {
        let found = xdotool(&["search", "--onlyvisible", "--class", "xterm"]).out;
        found.lines().next().map(str::to_owned)
    });
    xdotool(&["windowfocus", "--sync", &window]);
    // The interface takes no keys before it has drawn itself: the prompt is typed until it is there.
    wait_until(
        SOON,
        "the resumed session takes a prompt",
        || terminal.folder.dump(),
        || {
            let prompts = terminal.folder.types().iter().filter(|kind| *kind == "user.message").count();
            if prompts < 2 {
                xdotool(&["type", "--clearmodifiers", "--window", &window, "SCRIPT:plain And the gate"]);
                xdotool(&["key", "--window", &window, "Return"]);
            }
            (prompts >= 2).then_some(())
        },
    );
    terminal.folder.wait("assistant.turn_end");
    let row = pilot.told(&id, "idle", "");
    assert_eq!(row["owner"]["state"], "alive", "{row}");
    if let Some(picture) = std::env::var_os("PILOTLIGHT_TEST_PICTURE") {
        let mut command = std::process::Command::new("import");
        command.args(["-window", "root"]).arg(picture);
        Ran::of(command);
    }
    let pid = row["owner"]["pid"].as_u64().unwrap().try_into().unwrap();
    crate::support::process::signal(pid, rustix::process::Signal::TERM);
    pilot.told(&id, "ended", "");
    is_one_chain(&terminal.folder);
}
