//! What each command does that asks its user something, where nobody can be asked: it exits with 4, and does nothing.

use super::trays::Double;
use crate::support::executable::executable;
use crate::support::synthetic::{Folder, Owner, User};
use crate::support::tmux::Tmux;
use pilotlight_core::form::Form;
use pilotlight_core::order::{Operation, OrderReport, Outcome, Reply};
use serde_json::json;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Runs the command without a terminal, and expects that it refuses with these words.
fn refuses(user: &User, arguments: &[&str], words: &str) {
    let mut command = user.pilotlight(arguments);
    let path = std::env::join_paths([user.scratch.path().join("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
    let output = command.env("PATH", path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && said.contains(words), "{arguments:?}: {output:?}");
}

const NOBODY: &str = "Pilotlight cannot ask you without a terminal";

/// A session of a program, not of a terminal.
fn of_program(user: &User, n: u32) -> Folder {
    let session = user.session(n);
    session.workspace(&format!("id: {}\ncwd: /home/dev/project\nclient_name: sdk\n", session.id));
    session
}

/// A session that a process worked on until it was killed.
fn crashed(user: &User, session: Folder) -> Folder {
    let owner = session.owner(user);
    session.prompt();
    owner.kill();
    session
}

#[test]
fn case_239_a_request_or_a_question_is_left_open() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    session.asks_permission("r");
    let schema = json!({"type": "object", "properties": {"coats": {"type": "integer"}}, "required": ["coats"]});
    let form = json!({"requestId": "f", "message": "How many?", "requestedSchema": schema});
    let question = json!({"requestId": "q", "question": "Which color?", "choices": ["red", "blue"]});
    let double = Double::start(&user, move |order| {
        let form = match &order.operation {
            Operation::Answer(Reply::Look(Some(id))) if id == "f" => Form::read("elicitation.requested", &form),
            _ => Form::read("user_input.requested", &question),
        };
        vec![OrderReport::Question(Box::new(form.unwrap())), OrderReport::End(Outcome::Done("it is still open".into()))]
    });
    refuses(&user, &["approve", "--ask", "00000001"], NOBODY);
    refuses(&user, &["deny", "--ask", "00000001"], NOBODY);
    refuses(&user, &["answer", "00000001"], NOBODY);
    refuses(&user, &["answer", "00000001", "--request", "f"], NOBODY);
    let looks = |operation: &Operation| matches!(operation, Operation::Answer(Reply::Look(_)));
    assert!(double.orders().iter().all(|order| looks(&order.operation)), "{:?}", double.orders());
}

#[test]
fn case_239_no_session_is_ended() {
    let user = User::new();
    let (one, other) = (user.session(1), of_program(&user, 2));
    let owners = [one.owner(&user), other.owner(&user)];
    one.prompt();
    other.prompt();
    refuses(&user, &["stop", "00000001"], NOBODY);
    refuses(&user, &["stop", "00000001", "--end"], NOBODY);
    refuses(
        &user,
        &["stop", "00000002", "--end"],
        "`--end` ends the session. Pilotlight cannot ask you without a terminal",
    );
    // With a terminal for the answer, but none that shows the question.
    let stop = user.pilotlight(&["stop", "00000001"]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "\"$0\" \"$@\" 2>\"$HOME/said\""]).arg(stop.get_program()).args(stop.get_args());
    shell.envs(stop.get_envs().filter_map(|(key, value)| Some((key, value?))));
    Tmux::with_exit_code(&shell, 80, 24).shows("exited with 4");
    assert!(fs::read_to_string(user.scratch.path().join("said")).unwrap().contains(NOBODY));
    assert_eq!(owners.each_ref().map(is_alive), [true, true]);
}

fn is_alive(owner: &Owner) -> bool {
    Path::new(&format!("/proc/{}/exe", owner.pid())).read_link().is_ok()
}

/// A server that logs nothing, so that nobody knows which sessions it has open. It is a shell that waits for input.
fn server_without_log(user: &User) -> Child {
    let program = user.scratch.path().join("server/copilot");
    fs::create_dir(program.parent().unwrap()).unwrap();
    // Written by another process, as `executable` says.
    assert!(Command::new("install").args(["-m", "755", "/bin/bash"]).arg(&program).status().unwrap().success());
    let mut command = Command::new(&program);
    command.arg0("copilot").args(["-c", "read -r", "copilot", "--server", "--log-level", "none"]);
    // A folder above those of the sessions.
    command.env("COPILOT_HOME", user.home()).current_dir(user.scratch.path()).stdin(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn case_239_no_session_is_recovered_at_a_risk() {
    let user = User::new();
    crashed(&user, user.session(1));
    crashed(&user, of_program(&user, 2));
    refuses(&user, &["reconnect", "--continue", "00000001"], "`pilotlight resume 00000001-");
    let lacks = "Pilotlight cannot ask you without a terminal: add `--yes` if you agree";
    refuses(&user, &["reconnect", "--continue", "00000002"], lacks);
    refuses(&user, &["reconnect", "--resend", "00000002"], lacks);
    // A session that cannot be locked is left alone, whatever anybody says.
    let sessions = user.scratch.path().join(".local/state/pilotlight/sessions");
    let locked: Vec<_> = fs::read_dir(&sessions).unwrap().map(|file| file.unwrap().path()).collect();
    fs::remove_dir_all(&sessions).unwrap();
    fs::write(&sessions, "").unwrap();
    refuses(&user, &["reconnect", "00000002"], "cannot tell whether another Pilotlight is busy with it");
    // Attempts cannot be counted where a folder is in the place of the record.
    fs::remove_file(&sessions).unwrap();
    for lock in locked {
        fs::create_dir_all(lock.with_extension("json")).unwrap();
    }
    for arguments in [&["reconnect", "00000002"][..], &["reconnect", "--continue", "00000002"]] {
        refuses(&user, arguments, NOBODY);
    }
    fs::remove_dir_all(&sessions).unwrap();
    let mut server = server_without_log(&user);
    for command in ["resume", "reconnect"] {
        refuses(
            &user,
            &[command, "00000001"],
            &format!("process {}, a Copilot that does not log what it opens", server.id()),
        );
        refuses(&user, &[command, "00000001"], NOBODY);
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn case_239_nothing_is_installed_removed_or_repaired() {
    let user = User::new();
    let at = |path: &str| user.scratch.path().join(path);
    fs::create_dir(at("bin")).unwrap();
    executable(&at("bin/copilot"), "#!/bin/sh\necho 'GitHub Copilot CLI 1.0.102'\n");
    let config = at(".config/pilotlight/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "bogus = 1\n").unwrap();
    refuses(&user, &["bridge", "install"], NOBODY);
    refuses(&user, &["setup"], NOBODY);
    refuses(&user, &["doctor", "--fix"], NOBODY);
    assert_eq!(fs::read_to_string(&config).unwrap(), "bogus = 1\n");
    assert!(!user.home().join("settings.json").exists() && !at(".local/share").exists());
    assert!(user.run(&["setup", "--yes"]).status.success());
    refuses(&user, &["setup", "--remove"], NOBODY);
    assert!(at(".local/share/applications/pilotlight.desktop").exists());
}

/// The agent's command succeeds, and does nothing.
#[test]
fn case_872_a_bridge_that_the_agent_did_not_install_is_not_called_installed() {
    let user = User::new();
    fs::create_dir(user.scratch.path().join("bin")).unwrap();
    executable(&user.scratch.path().join("bin/copilot"), "#!/bin/sh\necho 'GitHub Copilot CLI 1.0.102'\n");
    let path = std::env::join_paths([user.scratch.path().join("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
    let mut install = user.pilotlight(&["bridge", "install", "--agent", "copilot", "--yes"]);
    let output = install.env("PATH", path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("has not installed the bridge"), "{output:?}");
}
