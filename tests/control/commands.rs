//! Arguments, exit codes and output of the commands that act. Scripts rely on these.

use super::trays::Double;
use crate::support::synthetic::{Folder, Owner, User};
use pilotlight_core::order::{Operation, Order, OrderReport, Outcome, ShownRequest, Step, Which};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::Output;
use std::time::Duration;

const COMMANDS: [&str; 6] = ["reconnect", "stop", "approve", "deny", "resume", "show"];

fn done() -> Vec<OrderReport> {
    vec![OrderReport::End(Outcome::Done("it is done".into()))]
}

/// A tray's reports for an order on a request that must be shown before it is answered.
fn shows(order: &Order, text: &str, outcome: Outcome) -> Vec<OrderReport> {
    let end = match &order.operation {
        Operation::Approve(Which::Shown { text: shown, .. }) if shown != text => Outcome::Refused("not this".into()),
        _ => outcome,
    };
    vec![
        OrderReport::Step(Step::Answer, "as one more\nclient\u{7}".into()),
        // A tray says whether it had to escape anything.
        OrderReport::Request(ShownRequest { text: text.into(), verbatim: !text.contains("\\u{"), in_log: None }),
        OrderReport::End(end),
    ]
}

/// Opens this request.
fn asks(session: &Folder, request: &str) {
    let data = format!(r#"{{"requestId":"{request}","permissionRequest":{{"kind":"shell","toolCallId":"c"}}}}"#);
    session.log_event("permission.requested", &data);
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// A server's session.
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
        for (id, words) in [
            ("ffff", "no session has \"ffff\""),
            ("0000ab", "\"0000ab\" means 2 sessions"),
            ("", "name a session by its id"),
        ] {
            let output = user.run(&[command, id]);
            assert_eq!(output.status.code(), Some(2), "{command} {id:?}: {output:?}");
            assert!(texts(&output).1.contains(words), "{command} {id:?}: {output:?}");
        }
        // Without an id, `resume` lists what can be resumed.
        assert_eq!(user.run(&[command]).status.code(), Some(if command == "resume" { 4 } else { 2 }), "{command}");
        assert_eq!(user.run(&[command, "0000ab01", "--home", "/nonexistent"]).status.code(), Some(3));
    }
    let both = user.run(&["approve", "0000ab01", "--all", "--request", "r"]);
    assert_eq!(both.status.code(), Some(2));
    assert_eq!(double.orders(), [], "no order was sent");
}

#[test]
fn orders_match_the_arguments() {
    let user = User::new();
    let session = sdk(&user, 1);
    let _owner = session.owner(&user);
    session.prompt();
    for request in ["r-1", "r-2"] {
        let asks =
            format!(r#"{{"requestId":"{request}","permissionRequest":{{"kind":"shell","toolCallId":"{request}"}}}}"#);
        session.log_event("permission.requested", &asks);
    }
    let double = Double::start(&user, |_| done());
    let these = |ids: &[&str]| Which::These(ids.iter().map(|id| (*id).to_owned()).collect());
    let cases: [(&[&str], Operation); 9] = [
        (&["reconnect", "0000"], Operation::Reconnect { resend: false }),
        (&["reconnect", "0000", "--resend"], Operation::Reconnect { resend: true }),
        (&["stop", "0000"], Operation::Stop),
        (&["stop", "0000", "--yes"], Operation::Stop),
        (&["deny", "--yes", "0000"], Operation::Deny(these(&["r-1"]))),
        (&["deny", "--yes", "0000", "--all"], Operation::Deny(these(&["r-1", "r-2"]))),
        (&["deny", "0000", "--request", "r-9"], Operation::Deny(these(&["r-9"]))),
        (&["resume", "0000"], Operation::Resume),
        (&["show", "0000"], Operation::ShowTerminal),
    ];
    for (arguments, _) in &cases {
        let output = user.run(arguments);
        assert_eq!((output.status.code(), texts(&output)), (Some(0), ("it is done\n".into(), String::new())));
    }
    // An order on a turn names the turn, and an answer names each request.
    let wanted = cases
        .map(|(_, operation)| Order::new(&session.id, operation).on(Some("1")).in_home(user.home().to_str().unwrap()));
    assert_eq!(double.orders(), wanted);
}

/// The order names the text that was shown.
#[test]
fn only_a_request_that_was_shown_is_approved() {
    let user = User::new();
    let session = sdk(&user, 1);
    let _owner = session.owner(&user);
    session.prompt();
    for request in ["r-1", "r-2", "r-3"] {
        asks(&session, request);
    }
    let double = Double::start(&user, |order| shows(order, "shell: ls", Outcome::Done("it is done".into())));
    let answered = |arguments: &[&str]| -> Vec<String> {
        let before = double.orders().len();
        let output = user.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let orders = double.orders().split_off(before);
        let shown = |order: &Order| match &order.operation {
            Operation::Approve(Which::Shown { id, text }) if text == "shell: ls" => Some(id.clone()),
            Operation::Look(_) => None,
            other => panic!("{other:?}"),
        };
        orders.iter().filter_map(shown).collect()
    };
    assert_eq!(answered(&["approve", "--yes", "0000"]), ["r-1"]);
    assert_eq!(answered(&["approve", "0000", "--request", "r-2"]), ["r-2"]);
    assert_eq!(answered(&["approve", "--yes", "0000", "--all"]), ["r-1", "r-2", "r-3"]);
}

/// Nothing can have been approved before it was shown.
#[test]
fn case_130_a_tray_lost_before_showing_a_request_has_approved_nothing() {
    let user = User::new();
    let session = sdk(&user, 1);
    session.prompt();
    asks(&session, "r-1");
    let _double = Double::start(&user, |_| vec![OrderReport::Step(Step::Attach, "to its server".into())]);
    let output = user.run(&["approve", "--yes", "00000001"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = texts(&output).1;
    assert!(stderr.contains("the request could not be shown") && stderr.contains("nothing was answered"), "{stderr}");
}

#[test]
fn case_115_with_a_full_or_closed_output_nothing_is_approved() {
    let user = User::new();
    let session = sdk(&user, 1);
    let _owner = session.owner(&user);
    session.prompt();
    asks(&session, "r-1");
    let double = Double::start(&user, |order| shows(order, "shell: ls", Outcome::Done("it is done".into())));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let open = |path: &str| std::fs::File::options().write(true).open(path).unwrap();
    let closed = {
        let mut shell = std::process::Command::new("sh");
        let mine = user.pilotlight(&["approve", "--yes", "00000001"]);
        shell.args(["-c", "exec \"$0\" \"$@\" >&-"]).arg(mine.get_program()).args(mine.get_args());
        shell.envs(mine.get_envs().filter_map(|(key, value)| Some((key, value?))));
        shell.output().unwrap()
    };
    let into = |to: std::process::Stdio, arguments: &[&str]| user.pilotlight(arguments).stdout(to).output().unwrap();
    let approve: &[&str] = &["approve", "--yes", "00000001"];
    let all: &[&str] = &["approve", "--yes", "00000001", "--all"];
    for (output, into) in [
        (closed, "closed"),
        (into(open("/dev/full").into(), approve), "full"),
        (into(open("/dev/full").into(), all), "full, --all"),
        (into(open("/dev/null").into(), approve), "/dev/null"),
        (into(writer.into(), approve), "a pipe without a reader"),
    ] {
        assert_eq!(output.status.code(), Some(4), "{into}: {output:?}");
        let stderr = texts(&output).1;
        assert!(
            stderr.contains("could not be written out (") && stderr.contains("it was left open"),
            "{into}: {stderr}"
        );
    }
    let approved = |order: &Order| !matches!(&order.operation, Operation::Look(_));
    assert!(!double.orders().iter().any(approved), "{:?}", double.orders());
    assert_eq!(user.run(approve).status.code(), Some(0), "with a readable output it is approved");
}

#[test]
fn case_114_text_that_may_mislead_is_not_approved_without_asking() {
    let user = User::new();
    let session = sdk(&user, 1);
    let _owner = session.owner(&user);
    session.prompt();
    asks(&session, "r-1");
    let double = Double::start(&user, |order| shows(order, "shell: rm -rf /t\u{43c}p", Outcome::Done("done".into())));
    let output = user.run(&["approve", "--yes", "00000001"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let (out, err) = texts(&output);
    assert!(out.contains("rm -rf /t\u{43c}p"), "it is shown: {out}");
    assert!(err.contains("left open") && err.contains("on a terminal with `pilotlight approve "), "{err}");
    let answered = |order: &Order| !matches!(&order.operation, Operation::Look(_));
    assert!(!double.orders().iter().any(answered), "{:?}", double.orders());
    assert_eq!(user.run(&["deny", "--yes", "00000001"]).status.code(), Some(0), "it can be denied without asking");
}

/// What the menu and popups leave to Review. A server's text has invisible characters escaped.
#[test]
fn case_187_a_script_approves_what_does_not_read_as_it_is_only_by_its_hash() {
    for text in ["rm -rf /\\u{200b}tmp", "ls \\u{202e}x", "ls \u{200d}x", "rm -rf /t\u{43c}p", "echo \u{5d0}"] {
        let (user, _owner, double) = asks_for(text);
        let answered = |order: &Order| !matches!(&order.operation, Operation::Look(_));
        let by_hash = |hash: &str| user.run(&["approve", "00000001", "--request", "r-1", "--sha256", hash]);
        let output = user.run(&["approve", "--yes", "00000001"]);
        let (_, err) = texts(&output);
        assert!(output.status.code() == Some(4) && err.contains("left open"), "{text:?}: {output:?}");
        let hash = err.split("--request r-1 --sha256 ").nth(1).unwrap_or_else(|| panic!("{err}"))[..64].to_owned();
        assert_eq!(by_hash(&hash.replace(&hash[..4], "zzzz")).status.code(), Some(4), "another text");
        assert!(!double.orders().iter().any(answered), "{text:?}: {:?}", double.orders());
        assert_eq!(by_hash(&hash).status.code(), Some(0), "{text:?}");
        let given = Operation::Approve(Which::Shown { id: "r-1".into(), text: text.into() });
        assert!(double.orders().iter().any(|order| order.operation == given), "{:?}", double.orders());
    }
    let (user, _owner, double) = asks_for("make\n\tcat 報告.txt");
    assert_eq!(user.run(&["approve", "--yes", "00000001"]).status.code(), Some(0), "{:?}", double.orders());
    assert_eq!(
        user.run(&["approve", "--yes", "00000001", "--sha256", "00"]).status.code(),
        Some(2),
        "of which request?"
    );
}

/// A user whose session asks for this, with a tray.
fn asks_for(text: &'static str) -> (User, Owner, Double) {
    let user = User::new();
    let session = sdk(&user, 1);
    let owner = session.owner(&user);
    session.prompt();
    asks(&session, "r-1");
    let double = Double::start(&user, |order| shows(order, text, Outcome::Done("done".into())));
    (user, owner, double)
}

#[test]
fn steps_and_reasons_go_to_standard_error_the_request_and_the_result_to_standard_output() {
    let user = User::new();
    let session = sdk(&user, 1);
    let _owner = session.owner(&user);
    session.prompt();
    asks(&session, "r-1");
    let _double = Double::start(&user, |order| {
        let end = match order.operation {
            Operation::Approve(_) => Outcome::Done("allowed \u{1b}[31monce".into()),
            Operation::Reconnect { .. } => Outcome::Failed("the server does not answer".into()),
            _ => Outcome::Refused("the session is over".into()),
        };
        shows(order, "shell: ls\npilotlight: allowed", end)
    });
    let (out, err) = texts(&user.run(&["approve", "--yes", "00000001"]));
    let request = "The request of project:\n    shell: ls\n    pilotlight: allowed\n";
    assert_eq!(out, format!("{request}Its id, for --request: r-1\nallowed [31monce\n"));
    assert_eq!(err, "answering: as one more client\n");
    for (command, code, words) in [
        (&["reconnect"][..], 1, "pilotlight: the server does not answer\n"),
        (&["deny", "--yes"], 4, "pilotlight: the session is over\n"),
    ] {
        let output = user.run(&[command, &["00000001"]].concat());
        assert_eq!(output.status.code(), Some(code));
        let (out, err) = texts(&output);
        assert_eq!(out, if command[0] == "deny" { request } else { "" }, "no result");
        assert!(err.ends_with(words), "{err}");
    }
}

/// The exit code is that of the order.
#[test]
fn an_output_without_a_reader_does_not_change_the_exit_code() {
    let user = User::new();
    sdk(&user, 1);
    let double = Double::start(&user, |_| {
        let text = "x".repeat(1 << 20);
        vec![OrderReport::Request(ShownRequest::verbatim(text)), OrderReport::End(Outcome::Failed("in vain".into()))]
    });
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = user.pilotlight(&["deny", "--yes", "00000001"]).stdout(writer).status().unwrap();
    assert_eq!((status.code(), double.orders().len()), (Some(1), 1));
}

#[test]
fn case_130_an_order_that_a_lost_tray_had_begun_may_have_happened() {
    let user = User::new();
    sdk(&user, 1).prompt();
    let _double = Double::start(&user, |order| match order.operation {
        Operation::Stop => Vec::new(),
        _ => vec![OrderReport::Step(Step::Attach, "to its server".into())],
    });
    // Without a single report, the tray cannot have sent anything.
    for (command, code, words) in [
        ("stop", 1, "the tray broke off before it reported the outcome"),
        ("reconnect", 5, "may have happened: the tray broke off before it reported the outcome"),
    ] {
        let output = user.run(&[command, "00000001"]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let (_, err) = texts(&output);
        assert!(err.contains(words) && err.contains("nothing was sent") == (code == 1), "{err}");
    }
}

/// The result depends on what the log says.
#[test]
fn case_130_an_interrupted_order_is_looked_up_on_disk() {
    let asked = r#"{"requestId":"r-1","permissionRequest":{"kind":"shell","toolCallId":"c"}}"#;
    let answered = |kind: &str| {
        let data = format!(r#"{{"requestId":"r-1","toolCallId":"c","result":{{"kind":"{kind}"}}}}"#);
        Some(("permission.completed", data))
    };
    let aborted = || Some(("abort", r#"{"reason":"user_initiated"}"#.to_owned()));
    const REFUSED: &str = "denied-interactively-by-user";
    let cases = [
        (
            "approve",
            None,
            5,
            "may have happened: interrupted while the tray was working on it; its log has no answer yet",
        ),
        ("approve", answered("approved"), 0, "approved: the session's log confirms it"),
        ("approve", answered(REFUSED), 5, "its log has another answer"),
        ("deny", answered(REFUSED), 0, "denied: the session's log confirms it"),
        ("stop", None, 5, "its log says that the turn is still running"),
        ("stop", aborted(), 0, "its log says that the turn has ended"),
    ];
    for (command, logged, code, words) in cases {
        let user = User::new();
        let session = sdk(&user, 1);
        session.prompt();
        session.log_event("permission.requested", asked);
        let (begun, has_begun) = std::sync::mpsc::channel();
        let _double = Double::start_raw(&user, move |order, stream| {
            let mut send = |report: &OrderReport| {
                let mut line = serde_json::to_vec(report).unwrap();
                line.push(b'\n');
                std::io::Write::write_all(stream, &line).unwrap();
            };
            // An approval first looks at the request.
            if matches!(&order.operation, Operation::Look(_)) {
                shows(order, "shell: ls", Outcome::Unknown).iter().for_each(send);
                return;
            }
            send(&OrderReport::Step(Step::Attach, "to its server".into()));
            begun.send(()).unwrap();
            let _ = Read::read(stream, &mut [0]); // until the command exits
        });
        let more: &[&str] = if command == "stop" { &[] } else { &["--yes"] };
        let mut run = user.pilotlight(&[&[command, "00000001"], more].concat());
        run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut run = run.spawn().unwrap();
        has_begun.recv().unwrap();
        let mut stderr = BufReader::new(run.stderr.take().unwrap());
        let mut err = String::new();
        stderr.read_line(&mut err).unwrap(); // the command has a report from the tray
        if let Some((kind, data)) = logged {
            session.log_event(kind, &data);
        }
        kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        let output = run.wait_with_output().unwrap();
        stderr.read_to_string(&mut err).unwrap();
        let out = texts(&output).0;
        assert_eq!(output.status.code(), Some(code), "{command}: {output:?}, {err}");
        let printed = if code == 0 { out } else { err };
        assert!(printed.contains(words) && !printed.contains("failed"), "{command}: {printed}");
    }
}

/// What was sent is logged only after the command was interrupted: it looks again before it says that it may have happened,
/// and names what to look at.
#[test]
fn case_201d_an_interrupted_order_is_looked_up_again() {
    for (logged, code, words) in
        [(true, 0, "its log says that the turn has ended"), (false, 5, "`pilotlight explain 00000001")]
    {
        let user = User::new();
        let session = sdk(&user, 1);
        session.prompt();
        let (told, tell) = std::sync::mpsc::channel();
        let _double = Double::start_raw(&user, move |_, stream| {
            let mut line = serde_json::to_vec(&OrderReport::Step(Step::Abort, "tells it to stop".into())).unwrap();
            line.push(b'\n');
            std::io::Write::write_all(stream, &line).unwrap();
            told.send("begun").unwrap();
            let _ = Read::read(stream, &mut [0]); // until the command is interrupted
            told.send("interrupted").unwrap();
        });
        let mut run = user.pilotlight(&["stop", "00000001"]);
        run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let run = run.spawn().unwrap();
        assert_eq!(tell.recv(), Ok("begun"));
        kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        assert_eq!(tell.recv(), Ok("interrupted"));
        if logged {
            session.log_event("abort", r#"{"reason":"user_initiated"}"#);
        }
        let output = run.wait_with_output().unwrap();
        let (out, err) = texts(&output);
        assert!(output.status.code() == Some(code) && format!("{out}{err}").contains(words), "{output:?}");
    }
}

#[test]
fn after_an_answer_of_another_version_anything_may_have_happened() {
    let user = User::new();
    sdk(&user, 1).prompt();
    let _double = Double::start_raw(&user, |_, stream| {
        std::io::Write::write_all(stream, b"{\"done\":true}\n").unwrap();
    });
    let output = user.run(&["stop", "00000001"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(texts(&output).1.contains("is it another version?"), "{output:?}");
}

/// It refuses, because this session's server listens nowhere.
#[test]
fn without_a_tray_the_command_acts_by_itself() {
    let user = User::new();
    let session = sdk(&user, 1);
    let _owner = session.owner(&user);
    session.prompt();
    for command in [&["approve", "--yes"][..], &["deny", "--yes"], &["stop"], &["reconnect"]] {
        let output = user.run(&[command, &["00000001"]].concat());
        assert_eq!(output.status.code(), Some(4), "{command:?}: {output:?}");
        assert!(texts(&output).1.starts_with("pilotlight: "), "{command:?}: {output:?}");
    }
}

#[test]
fn explain_names_the_request_that_can_be_answered() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    session.asks_permission("r-1");
    let (out, _) = texts(&user.run(&["explain", "00000001"]));
    assert!(out.contains("asks permission to use shell, asked ") && out.contains(" ago; request r-1\n"), "{out}");
}
