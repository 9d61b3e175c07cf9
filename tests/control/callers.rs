//! Case 107c: an agent must not approve itself.

use super::trays::{Double, Tray, socket};
use crate::support::executable::copy_program;
use crate::support::synthetic::User;
use pilotlight_core::order::{Operation, OrderReport, Outcome};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A shell that is named like Copilot.
fn copilot(user: &User) -> PathBuf {
    let program = user.scratch.path().join("bin").join("copilot");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    // Once: what an earlier script started may still run it, and then nothing can be written to it.
    if !program.exists() {
        copy_program("/bin/bash", &program);
    }
    program
}

/// Runs a script in that shell, which remains the parent of its commands. `$PILOTLIGHT` is our program.
fn by_copilot(user: &User, script: &str) -> Output {
    let mut command = Command::new(copilot(user));
    let mine = user.pilotlight(&[]);
    command.env_clear().envs(mine.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command.env("PILOTLIGHT", env!("CARGO_BIN_EXE_pilotlight"));
    command.args(["-c", &format!("{script}\nexit $?")]);
    command.output().unwrap()
}

fn is_refused(output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(
        stderr.contains("an agent must not answer, prompt, stop or take over sessions, and this was started"),
        "{stderr}"
    );
}

#[test]
fn case_107c_an_agents_approve_and_deny_are_refused() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let scripts = [
        "$PILOTLIGHT approve 00000001",
        "$PILOTLIGHT deny 00000001 --all",
        "$PILOTLIGHT approve 00000001 --ask --request r1",
        "$PILOTLIGHT answer 00000001 --choice 1",
        "sh -c 'sh -c \"$PILOTLIGHT approve 00000001; exit \\$?\"; exit $?'",
    ];
    for script in scripts {
        is_refused(&by_copilot(&user, script));
    }
    let double = Double::start(&user, |_| vec![OrderReport::End(Outcome::Done("it is done".into()))]);
    for script in scripts {
        is_refused(&by_copilot(&user, script));
    }
    assert_eq!(double.orders(), [], "no order reached the tray");
}

/// A detached process is recognised by Copilot's variables in its environment.
#[test]
fn case_107c_an_agent_that_detached_is_refused_too() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    let mut command = user.pilotlight(&["approve", "--yes", "00000001"]);
    is_refused(&command.env("COPILOT_AGENT_SESSION_ID", &session.id).output().unwrap());
}

/// Another agent's tool may not answer Copilot's requests either.
#[test]
fn case_248_a_tool_of_another_agent_is_refused_too() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    let mut command = user.pilotlight(&["approve", "--yes", "00000001"]);
    let output = command.env("CLAUDECODE", "1").output().unwrap();
    is_refused(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("this was started by Claude Code"), "{said}");
}

/// Without our command, directly over the socket.
#[test]
fn case_107c_the_tray_refuses_an_agents_answer() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let tray = Tray::start(&user);
    let ask = |ask: &str| {
        format!(
            "perl -e 'use IO::Socket::UNIX; $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; print $s \"$ARGV[1]\\n\"; \
             $s->flush; print <$s>' {} '{{\"id\":\"{}\",\"ask\":{ask}}}'",
            socket(&user).display(),
            session.id
        )
    };
    for answer in [
        r#"{"approve":{"these":["r1"]}}"#,
        r#"{"deny":{"these":[]}}"#,
        r#"{"reconnect":{"resend":true}}"#,
        r#"{"reconnect":{"resend":false}}"#,
        r#""stop""#,
        r#"{"answer":{"look":null}}"#,
        r#"{"answer":{"give":{"request":"r1","shown":1,"with":{"choice":0}}}}"#,
    ] {
        let output = by_copilot(&user, &ask(answer));
        let Ok(OrderReport::End(Outcome::Refused(reason))) = serde_json::from_slice(&output.stdout) else {
            panic!("{output:?}")
        };
        assert!(reason.contains("this was started by Copilot ("), "{reason}");
    }
    tray.wait_output("an order over the control socket was refused: an agent must not");

    // A client that exits before it can be inspected may be anybody.
    tray.freeze();
    let script = ask(r#"{"approve":{"these":[]}}"#).replace("print <$s>", "exit 7");
    let status = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert_eq!(status.code(), Some(7));
    tray.signal(Signal::CONT);
    tray.wait_output("it is unclear who asks");
}

/// The work of another session is the user's to stop, to end or to take over.
#[test]
fn case_189_an_agent_may_neither_stop_nor_attach_to_a_session() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    let double = Double::start(&user, |_| vec![OrderReport::End(Outcome::Done("it is done".into()))]);
    for script in ["stop --yes", "stop --end --yes", "reconnect", "reconnect --continue"] {
        let (name, options) = script.split_once(' ').unwrap_or((script, ""));
        is_refused(&by_copilot(&user, &format!("$PILOTLIGHT {name} 00000001 {options}")));
    }
    assert_eq!(double.orders(), [], "no order reached the tray");
    for name in ["resume", "show"] {
        let output = by_copilot(&user, &format!("$PILOTLIGHT {name} 00000001"));
        assert!(output.status.success(), "{output:?}");
    }
    let asked: Vec<_> = double.orders().into_iter().map(|order| order.operation).collect();
    assert_eq!(asked, [Operation::Resume, Operation::ShowTerminal]);
}
