//! Arguments, exit codes and output of the commands that act: what scripts rely on.

use super::trays::Double;
use crate::made_up::{Folder, User};
use pilotlight::act::{Ask, Order, Outcome, Report, Step, Which};
use std::process::Output;
use std::time::Duration;

const COMMANDS: [&str; 6] = ["reconnect", "stop", "approve", "deny", "resume", "show"];

fn done() -> Vec<Report> {
    vec![Report::End(Outcome::Done("it is done".into()))]
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// A session of a server.
fn sdk(user: &User, n: u32) -> Folder {
    let session = user.session(n);
    session.workspace(&format!("id: {}\ncwd: /home/dev/project\nclient_name: sdk\n", session.id));
    session
}

#[test]
fn an_id_that_is_unknown_ambiguous_or_empty_exits_with_2() {
    let user = User::new();
    for n in [0xab00, 0xab01] {
        user.session(n).ended(Duration::from_secs(60));
    }
    let double = Double::start(&user, |_| done());
    for command in COMMANDS {
        for (id, words) in
            [("ffff", "no session's id begins with"), ("0000ab", "2 session's ids begin with"), ("", "an id is needed")]
        {
            let output = user.run(&[command, id]);
            assert_eq!(output.status.code(), Some(2), "{command} {id:?}: {output:?}");
            assert!(texts(&output).1.contains(words), "{command} {id:?}: {output:?}");
        }
        assert_eq!(user.run(&[command]).status.code(), Some(2));
        assert_eq!(user.run(&[command, "0000ab01", "--home", "/nonexistent"]).status.code(), Some(3));
    }
    let both = user.run(&["approve", "0000ab01", "--all", "--request", "r"]);
    assert_eq!(both.status.code(), Some(2));
    assert_eq!(double.orders(), [], "nothing was asked for");
}

#[test]
fn what_is_asked_is_what_the_arguments_say() {
    let user = User::new();
    let session = sdk(&user, 1);
    let _owner = session.owner(&user);
    let double = Double::start(&user, |_| done());
    let one = || Which::One("r-1".into());
    let cases: [(&[&str], Ask); 11] = [
        (&["reconnect", "0000"], Ask::Reconnect { resend: false }),
        (&["reconnect", "0000", "--resend"], Ask::Reconnect { resend: true }),
        (&["stop", "0000"], Ask::Stop),
        (&["stop", "0000", "--yes"], Ask::Stop),
        (&["approve", "0000"], Ask::Approve(Which::Oldest)),
        (&["approve", "0000", "--all"], Ask::Approve(Which::All)),
        (&["approve", "0000", "--request", "r-1"], Ask::Approve(one())),
        (&["deny", "0000"], Ask::Deny(Which::Oldest)),
        (&["deny", "0000", "--request", "r-1"], Ask::Deny(one())),
        (&["resume", "0000"], Ask::Resume),
        (&["show", "0000"], Ask::ShowTerminal),
    ];
    for (arguments, _) in &cases {
        let output = user.run(arguments);
        assert_eq!((output.status.code(), texts(&output)), (Some(0), ("it is done\n".into(), String::new())));
    }
    let wanted = cases.map(|(_, ask)| Order { id: session.id.as_str().into(), ask });
    assert_eq!(double.orders(), wanted);
}

#[test]
fn steps_and_reasons_go_to_standard_error_the_request_and_the_result_to_standard_output() {
    let user = User::new();
    sdk(&user, 1);
    let _double = Double::start(&user, |order| {
        let end = match order.ask {
            Ask::Approve(_) => Outcome::Done("allowed \u{1b}[31monce".into()),
            Ask::Reconnect { .. } => Outcome::Failed("the server does not answer".into()),
            _ => Outcome::Refused("the session is over".into()),
        };
        let request = Report::Request("shell: ls\u{1b}[2K\n\u{202e}pilotlight: allowed".into());
        vec![Report::Step(Step::TakeOver, "as one more\nclient\u{7}".into()), request, Report::End(end)]
    });
    let (out, err) = texts(&user.run(&["approve", "00000001"]));
    let request = "The request:\n    shell: ls\\u{1b}[2K\n    \\u{202e}pilotlight: allowed\n";
    assert_eq!(out, format!("{request}allowed [31monce\n"));
    assert_eq!(err, "take-over: as one more client\n");
    for (command, code, words) in
        [("reconnect", 1, "pilotlight: the server does not answer\n"), ("deny", 4, "pilotlight: the session is over\n")]
    {
        let output = user.run(&[command, "00000001"]);
        assert_eq!(output.status.code(), Some(code));
        let (out, err) = texts(&output);
        assert_eq!(out, request, "no result");
        assert!(err.ends_with(words), "{err}");
    }
}

/// How it ended counts, not whether somebody read it.
#[test]
fn an_output_that_nobody_reads_changes_no_exit_code() {
    let user = User::new();
    sdk(&user, 1);
    let double = Double::start(&user, |_| {
        let text = "x".repeat(1 << 20);
        vec![Report::Request(text), Report::End(Outcome::Failed("in vain".into()))]
    });
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = user.pilotlight(&["approve", "00000001"]).stdout(writer).status().unwrap();
    assert_eq!((status.code(), double.orders().len()), (Some(1), 1));
}

#[test]
fn a_tray_that_breaks_off_is_a_failure_in_words() {
    let user = User::new();
    sdk(&user, 1);
    let _double = Double::start(&user, |order| match order.ask {
        Ask::Stop => Vec::new(),
        _ => vec![Report::Step(Step::Attach, "to its server".into())],
    });
    for command in ["stop", "reconnect"] {
        let output = user.run(&[command, "00000001"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(texts(&output).1.contains("the tray broke off before it said how it ended"), "{output:?}");
    }
}

#[test]
fn an_answer_of_another_version_is_a_failure_in_words() {
    let user = User::new();
    sdk(&user, 1);
    let _double = Double::start_raw(&user, |_, stream| {
        std::io::Write::write_all(stream, b"{\"done\":true}\n").unwrap();
    });
    let output = user.run(&["stop", "00000001"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(texts(&output).1.contains("is it of another version?"), "{output:?}");
}

/// Without a tray the command does it itself: nothing can be done with this one.
#[test]
fn without_a_tray_the_command_acts_and_ends() {
    let user = User::new();
    let session = sdk(&user, 1);
    let _owner = session.owner(&user);
    session.prompt();
    for command in ["approve", "deny", "stop", "reconnect"] {
        let output = user.run(&[command, "00000001"]);
        assert_eq!(output.status.code(), Some(4), "{command}: {output:?}");
        assert!(texts(&output).1.starts_with("pilotlight: "), "{command}: {output:?}");
    }
}

#[test]
fn explain_names_the_request_that_can_be_answered() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    session.say("permission.requested", r#"{"requestId":"r-1","permissionRequest":{"kind":"shell","toolCallId":"c"}}"#);
    let (told, _) = texts(&user.run(&["explain", "00000001"]));
    assert!(told.contains("asks permission shell for ") && told.contains(", request r-1\n"), "{told}");
}
