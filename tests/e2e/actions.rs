//! What the menu and the commands do to sessions of the real CLI, and what they refuse.
//!
//! Failures of a server at each step are tested in `recover.rs`; here the whole program acts. Each test ends with a
//! check of the log: one chain of events, nothing lost.

use super::stage::Stage;
use crate::support::home::{Folder, Home, cli};
use crate::support::model::Model;
use crate::support::person::Manner;
use crate::support::pilotlight::{CommandOutput, Pilot};
use crate::support::terminal::Terminal;
use crate::support::{SOON, wait, wait_until};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::time::Duration;

/// Asserts that only the first event has no parent, no two have the same parent, and none is duplicated.
fn assert_chain(folder: &Folder) {
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

/// The environment in which a Copilot that Pilotlight starts finds its model.
pub(crate) fn environment(home: &Home, model: &Model) -> Vec<(OsString, OsString)> {
    let command = home.copilot(model);
    let is_needed = |name: &str| name.starts_with("COPILOT_") && name != "COPILOT_HOME" || name == "XDG_CACHE_HOME";
    let given = command.get_envs().filter(|(name, _)| is_needed(&name.to_string_lossy()));
    given.filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect()
}

#[test]
fn a_request_of_another_client_is_approved_from_the_menu() {
    let stage = Stage::new(Manner::Waits);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    let row = stage.wait_status("needs-permission", "");
    for action in ["approve", "deny", "reconnect", "stop"] {
        assert!(row["actions"].as_array().unwrap().contains(&action.into()), "{row}");
    }
    stage.pilot.wait_menu(&stage.session.id(), "Wants to run: for i in $(seq 600)");
    stage.pilot.click(&stage.session.id(), "Approve once");
    stage.session.folder.wait("permission.completed");
    stage.wait_status("working", "");
    stage.home.release_tools();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("idle", "");
    assert_eq!(answers(&stage.session.folder), ["approved"]);
    assert_chain(&stage.session.folder);
    let log = stage.pilot.log();
    assert!(!log.contains("seq 600") && !log.contains("Paint"), "no content in the log: {log}");
}

#[test]
fn a_request_is_denied_by_a_command_over_the_tray() {
    let stage = Stage::new(Manner::Waits);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.wait_status("needs-permission", "");
    let ran = stage.pilot.run(&["deny", "--yes", &stage.session.id()[..13]]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("for i in $(seq 600)"), "the request is shown in full: {ran:?}");
    stage.session.folder.wait("tool.execution_complete");
    assert_eq!(answers(&stage.session.folder), ["denied-interactively-by-user"]);
    stage.wait_status("idle", "");
    let again = stage.pilot.run(&["deny", "--yes", &stage.session.id()]);
    assert_eq!(again.code, Some(4), "{again:?}");
    assert!(again.err.contains("asks for no permission"), "{again:?}");
}

/// The client that could answer disconnected while another one stays connected, so the request would stay open forever.
#[test]
#[ignore = "tests/long.sh"]
fn case_41_an_orphaned_request_is_approved_by_a_command_alone() {
    let stage = Stage::new(Manner::Waits);
    let other = stage.server.connect();
    let person = crate::support::person::Person::new(Manner::Leaves);
    let _stays = stage.server.resume(&other, &stage.session.id(), &person, None);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    stage.client.leave();
    stage.wait_status("needs-permission", "");
    let ran = stage.pilot.run_without_tray(&["approve", "--yes", &stage.session.id()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    stage.wait_status("working", "");
    stage.home.release_tools();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("idle", "");
    assert_chain(&stage.session.folder);
}

/// docs/json.md: what a script needs to decide on each request of the real CLI, and to answer just that one.
#[test]
#[ignore = "tests/long.sh"]
fn the_json_tells_each_request_with_the_id_that_answers_it() {
    let stage = Stage::new(Manner::Waits);
    let id = stage.session.id();
    let next = |before: &Value| {
        let asks = || stage.pilot.row(&id).map(|row| row["request"].clone()).filter(|it| it["id"] != before["id"]);
        wait_until(SOON, "another request is told", || format!("{:?}", stage.pilot.row(&id)), asks)
    };
    let answer = |verb: &str, request: &Value| {
        let ran = stage.pilot.run_without_tray(&[verb, &id, "--request", request["id"].as_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    stage.session.send("SCRIPT:two Paint the fence");
    stage.session.folder.wait_nth("permission.requested", 2);
    let first = stage.wait_status("needs-permission", "2 requests are open")["request"].clone();
    assert_eq!((&first["kind"], &first["reads_plain"]), (&json!("shell"), &json!(true)), "{first}");
    // Copilot asks for tools that it runs at once in any order; they are told in that of the log.
    let events = stage.session.folder.events();
    let asked = events.iter().filter(|event| event["type"] == "permission.requested").map(|event| &event["data"]);
    let [one, other] = asked.collect::<Vec<_>>().try_into().unwrap();
    let command = |asked: &Value| asked["permissionRequest"]["fullCommandText"].clone();
    let mut commands = [command(one), command(other)];
    commands.sort_by_key(Value::to_string);
    assert_eq!(commands, ["echo one > one.txt; echo hi", "echo two > two.txt"]);
    assert_eq!((&first["id"], &first["text"]), (&one["requestId"], &command(one)));
    answer("approve", &first);
    let second = next(&first);
    assert_eq!((&second["id"], &second["text"]), (&other["requestId"], &command(other)));
    answer("deny", &second);
    stage.wait_status("idle", "");
    assert_eq!(stage.pilot.row(&id).unwrap()["request"], Value::Null);
    assert_eq!(answers(&stage.session.folder)[0], "approved");
    // A new file: its name, no single text.
    stage.session.send("SCRIPT:file1 Paint the gate");
    stage.session.folder.wait_nth("permission.requested", 3);
    let file = stage.wait_status("needs-permission", "")["request"].clone();
    let paths = file["paths"].as_array().unwrap();
    assert!(paths.len() == 1 && paths[0].as_str().unwrap().ends_with("/new.txt"), "{file}");
    assert_eq!((&file["kind"], &file["text"], &file["reads_plain"]), (&json!("write"), &Value::Null, &json!(false)));
    answer("deny", &file);
    stage.wait_status("idle", "");
    assert_chain(&stage.session.folder);
}

/// A session without a handler denies every tool silently. After Reconnect, the next request is ours to answer.
#[test]
fn lost_permissions_come_back_with_reconnect() {
    let stage = Stage::without_person();
    let id = stage.session.id();
    stage.session.send("SCRIPT:denied3 Paint the fence");
    stage.wait_status("permission-lost", "");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.pilot.click(&id, "Reconnect only");
    stage.pilot.wait_menu(&id, "Pilotlight: attached to its server");
    stage.wait_status("needs-input", "its last prompt was not carried out");
    stage.session.send("SCRIPT:tool Paint the gate");
    stage.session.folder.wait("permission.requested");
    stage.wait_status("needs-permission", "");
    stage.pilot.click(&id, "Approve once");
    stage.session.folder.wait("permission.completed");
    stage.home.release_tools();
    stage.wait_status("idle", "");
    assert_eq!(answers(&stage.session.folder).last().unwrap(), "approved");
    assert_chain(&stage.session.folder);
}

#[test]
#[ignore = "tests/long.sh"]
fn a_hanging_turn_is_stopped_and_the_session_continues_to_work() {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.wait_status("working", "");
    stage.pilot.click(&stage.session.id(), "Stop the turn");
    stage.wait_status("idle", "stopped");
    let again = stage.pilot.run(&["stop", &stage.session.id()]);
    assert_eq!(again.code, Some(4), "{again:?}");
    assert!(again.err.contains("nothing to stop"), "{again:?}");
    stage.session.send("SCRIPT:plain Never mind");
    stage.session.folder.wait("assistant.message");
    stage.wait_status("idle", "done");
    assert_chain(&stage.session.folder);
}

/// A crashed session of a program is resumed in a server of our own, continues there, and its requests are ours to
/// answer.
#[test]
fn a_crashed_session_is_resumed_in_our_own_server() {
    let (home, model) = (Home::new("project"), Model::start());
    let config = settings("continue-prompt = \"SCRIPT:tool Go on\"\n");
    let mut pilot = Pilot::with(&[&home], &config, &environment(&home, &model));
    let mut server = crate::support::server::Server::start(&home, &model);
    let dead_pid = server.pid();
    let person = crate::support::person::Person::new(Manner::Approves);
    let client = server.connect();
    let session = server.create(&client, Some(&person));
    let id = session.id();
    session.send("SCRIPT:tool Paint the fence");
    session.folder.wait("permission.completed");
    pilot.wait_status(&id, "working", "");
    server.kill();
    home.release_tools(); // the tool's shell outlives its server
    let row = pilot.wait_status(&id, "crashed", "unfinished");
    std::fs::remove_file(home.project().join("go")).unwrap();
    assert!(!row["actions"].as_array().unwrap().contains(&"resend".into()), "its tool may have had its effect: {row}");

    // Only its program knew its tools, hooks and instructions, so nothing is sent before the user says so again.
    pilot.click(&id, "Reconnect and continue");
    pilot.wait_menu(&id, "Pilotlight: it runs in a server of Pilotlight's own");
    pilot.wait_menu(&id, "nothing was sent");
    assert_eq!(session.folder.types().iter().filter(|kind| *kind == "user.message").count(), 1);
    pilot.click(&id, "Reconnect and continue");
    let is_asked =
        || (session.folder.types().iter().filter(|kind| *kind == "permission.requested").count() == 2).then_some(());
    wait_until(SOON, "it continues and asks", || format!("{}\n{}", pilot.log(), session.folder.dump()), is_asked);
    let row = pilot.wait_status(&id, "needs-permission", "");
    assert_eq!(row["owner"]["state"], "alive", "{row}");
    assert_ne!(row["owner"]["pid"], dead_pid, "{row}");
    pilot.click(&id, "Approve once");
    session.folder.wait_nth("permission.completed", 2);
    home.release_tools();
    pilot.wait_status(&id, "idle", "");
    assert_chain(&session.folder);
    let log = pilot.log();
    assert!(
        log.contains("resend") && !log.contains("seq 600") && !log.contains("Paint"),
        "no content in the log: {log}"
    );
    // Our exit shuts it down in an orderly way, so it can be resumed.
    pilot.end_tray();
    session.folder.wait("session.shutdown");
    let row = pilot.row_where(&id, "it has ended", |row| row["status"] == "ended");
    assert!(row["actions"].as_array().unwrap().contains(&"reconnect".into()), "{row}");
}

/// Cases 70, 62: a plain terminal is never taken over. It can only be ended, which needs a confirmation.
#[test]
fn case_62_and_70_a_live_terminal_cannot_be_taken_over_but_can_be_ended() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &[]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("permission.requested");
    let row = pilot.wait_status(&id, "needs-permission", "");
    assert_eq!(row["owner"]["attachable"], false, "{row}");
    for command in [&["reconnect"][..], &["approve", "--yes"], &["resume"]] {
        let ran = pilot.run(&[command, &[&id]].concat());
        assert_eq!(ran.code, Some(4), "{command:?}: {ran:?}");
    }
    let refused = pilot.run(&["reconnect", &id]);
    assert!(refused.err.contains("a second process, which would corrupt its history"), "{refused:?}");
    let unasked = pilot.run(&["stop", &id]);
    assert_eq!(unasked.code, Some(4), "nobody can be asked: {unasked:?}");
    pilot.wait_status(&id, "needs-permission", "");
    let ended = pilot.run(&["stop", &id, "--yes"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    terminal.folder.wait("session.shutdown");
    pilot.wait_status(&id, "ended", "shut down");
    assert_chain(&terminal.folder);
}

#[test]
fn a_terminal_can_be_ended_from_the_menu_and_resumed() {
    let (home, model) = (Home::new("project"), Model::start());
    // A terminal whose screen the test can read.
    let socket = home.root().join("tmux");
    let words = ["tmux", "-S", socket.to_str().unwrap(), "new-session", "-d", "-x", "140", "-y", "45", "{command}"];
    let mut pilot = Pilot::with(&[&home], &settings(&format!("terminal = {words:?}\n")), &environment(&home, &model));
    let terminal = Terminal::start(&home, &model, &[]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    pilot.wait_status(&id, "idle", "");
    pilot.click(&id, "End it");
    terminal.folder.wait("session.shutdown");
    pilot.wait_status(&id, "ended", "");
    pilot.wait_menu(&id, "has ended; the session can be resumed");
    let again = pilot.run(&["resume", &id]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let tmux = |args: &[&str]| {
        let mut command = std::process::Command::new("tmux");
        command.arg("-S").arg(&socket).args(args);
        CommandOutput::of(command)
    };
    wait_until(
        SOON,
        "the resumed session shows in the new terminal",
        || tmux(&["capture-pane", "-p"]).out,
        || tmux(&["capture-pane", "-p"]).out.contains("Paint the fence").then_some(()),
    );
    let path = tmux(&["display-message", "-p", "#{pane_current_path}"]).out;
    assert_eq!(path.trim(), home.project().canonicalize().unwrap().to_str().unwrap());
    // The terminal outlives us.
    pilot.end_tray();
    assert!(tmux(&["capture-pane", "-p"]).out.contains("Paint the fence"));
    tmux(&["kill-server"]);
}

/// Cases 72 and 107d: a process that is not certainly the session's own is not signalled, whatever the lock says.
#[test]
#[ignore = "tests/long.sh"]
fn case_72_and_107d_a_terminal_with_two_sessions_is_not_ended() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &[]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    pilot.wait_status(&id, "idle", "");
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
    // A terminal that is still creating its new session accepts a prompt and loses it.
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
#[ignore = "tests/long.sh"]
fn a_terminal_with_a_server_is_answered_and_keeps_running_when_we_quit() {
    let (home, model) = (Home::new("project"), Model::start());
    let mut pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &["--ui-server", "--port", "0"]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("permission.requested");
    pilot.wait_status(&id, "needs-permission", "");
    pilot.click(&id, "Approve once");
    terminal.folder.wait("permission.completed");
    pilot.wait_status(&id, "working", "");
    home.release_tools();
    terminal.folder.wait_nth("assistant.turn_end", 2);
    pilot.wait_status(&id, "idle", "");
    pilot.click(&id, "Reconnect");
    pilot.wait_menu(&id, "Pilotlight: attached to its server");
    pilot.end_tray();
    terminal.enter("SCRIPT:plain And the gate");
    terminal.folder.wait_nth("assistant.turn_end", 3);
    assert!(!terminal.folder.types().contains(&"session.shutdown".to_owned()));
    assert_chain(&terminal.folder);
}

/// Case 107c: an agent must not approve its own requests.
#[test]
fn case_107c_approve_run_by_a_tool_of_a_session_is_refused() {
    let stage = Stage::new(Manner::Approves);
    let asking = Stage::new(Manner::Waits);
    asking.session.send("SCRIPT:tool Paint the fence");
    asking.wait_status("needs-permission", "");
    let command = asking.pilot.command(&["approve", "--yes", &asking.session.id()]);
    let (code, out) = run_by_a_tool(&stage, &command);
    assert_eq!(code, "4", "{out}");
    assert!(answers(&asking.session.folder).is_empty(), "nothing was answered");
    asking.wait_status("needs-permission", "");
}

/// Makes a tool of a session run a command. Returns its exit code and output.
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
    let is_complete = |kind: &String| *kind == "tool.execution_complete";
    let before = stage.session.folder.types().iter().filter(|kind| is_complete(kind)).count();
    stage.session.send("SCRIPT:script Run it");
    stage.session.folder.wait_nth("tool.execution_complete", before + 1);
    stage.wait_status("idle", "");
    let read = |name: &str| std::fs::read_to_string(stage.home.project().join(name)).unwrap_or_default();
    (read("code.txt").trim().to_owned(), read("out.txt"))
}

/// With the setting, which is off by default, the session is reconnected after the denied turn.
#[test]
fn auto_reconnect_reconnects_a_session_that_lost_its_permissions() {
    let stage = Stage::without_person_configured("[actions]\nauto-reconnect = true\n");
    let id = stage.session.id();
    stage.session.send("SCRIPT:denied3 Paint the fence");
    stage.session.folder.wait_nth("tool.execution_complete", 3);
    stage.pilot.wait_menu(&id, "Pilotlight: attached to its server");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.session.send("SCRIPT:tool Paint the gate");
    stage.session.folder.wait("permission.requested");
    stage.wait_status("needs-permission", "");
}

/// With a real terminal on a display, as started by `tests/visible/terminal.sh`: a killed session is resumed where it
/// was.
#[test]
#[ignore = "needs a display: tests/visible/terminal.sh"]
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
    pilot.wait_status(&id, "crashed", "");
    pilot.click(&id, "Resume in a terminal");
    let xdotool = |args: &[&str]| {
        let mut command = std::process::Command::new("xdotool");
        command.args(args);
        CommandOutput::of(command)
    };
    let window = wait_until(SOON, "the terminal's window is there", String::new, || {
        let found = xdotool(&["search", "--onlyvisible", "--class", "xterm"]).out;
        found.lines().next().map(str::to_owned)
    });
    xdotool(&["windowfocus", "--sync", &window]);
    // The interface ignores keys until it has drawn itself, so the prompt is typed until it is accepted.
    wait_until(
        SOON,
        "the resumed session accepts a prompt",
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
    let row = pilot.wait_status(&id, "idle", "");
    assert_eq!(row["owner"]["state"], "alive", "{row}");
    if let Some(picture) = std::env::var_os("PILOTLIGHT_TEST_PICTURE") {
        let mut command = std::process::Command::new("import");
        command.args(["-window", "root"]).arg(picture);
        CommandOutput::of(command);
    }
    let pid = row["owner"]["pid"].as_u64().unwrap().try_into().unwrap();
    crate::support::process::signal(pid, rustix::process::Signal::TERM);
    pilot.wait_status(&id, "ended", "");
    assert_chain(&terminal.folder);
}
