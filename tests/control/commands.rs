//! Arguments, exit codes and output of the commands that act: what scripts rely on.

use super::trays::Double;
use crate::support::made_up::{Folder, User};
use pilotlight::core::order::{Ask, Order, Outcome, Report, Step, Which};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::Output;
use std::time::Duration;

const COMMANDS: [&str; 6] = ["reconnect", "stop", "approve", "deny", "resume", "show"];

fn done() -> Vec<Report> {
    vec![Report::End(Outcome::Done("it is done".into()))]
}

/// The program's answer to a request that must be shown before it is answered.
fn shows(order: &Order, text: &str, then: Outcome) -> Vec<Report> {
    let end = match &order.ask {
        Ask::Approve(Which::Shown { text: shown, .. }) if shown != text => Outcome::Refused("not this".into()),
        _ => then,
    };
    vec![
        Report::Step(Step::TakeOver, "as one more\nclient\u{7}".into()),
        Report::Request(text.into()),
        Report::End(end),
    ]
}

/// This request is open.
fn asks(session: &Folder, request: &str) {
    let data = format!(r#"{{"requestId":"{request}","permissionRequest":{{"kind":"shell","toolCallId":"c"}}}}"#);
    session.say("permission.requested", &data);
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
        for (id, words) in [
            ("ffff", "no session has \"ffff\""),
            ("0000ab", "\"0000ab\" means 2 sessions"),
            ("", "name a session by its id"),
        ] {
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
    session.prompt();
    for request in ["r-1", "r-2"] {
        let asks =
            format!(r#"{{"requestId":"{request}","permissionRequest":{{"kind":"shell","toolCallId":"{request}"}}}}"#);
        session.say("permission.requested", &asks);
    }
    let double = Double::start(&user, |_| done());
    let these = |ids: &[&str]| Which::These(ids.iter().map(|id| (*id).to_owned()).collect());
    let cases: [(&[&str], Ask); 9] = [
        (&["reconnect", "0000"], Ask::Reconnect { resend: false }),
        (&["reconnect", "0000", "--resend"], Ask::Reconnect { resend: true }),
        (&["stop", "0000"], Ask::Stop),
        (&["stop", "0000", "--yes"], Ask::Stop),
        (&["deny", "0000"], Ask::Deny(these(&["r-1"]))),
        (&["deny", "0000", "--all"], Ask::Deny(these(&["r-1", "r-2"]))),
        (&["deny", "0000", "--request", "r-9"], Ask::Deny(these(&["r-9"]))),
        (&["resume", "0000"], Ask::Resume),
        (&["show", "0000"], Ask::ShowTerminal),
    ];
    for (arguments, _) in &cases {
        let output = user.run(arguments);
        assert_eq!((output.status.code(), texts(&output)), (Some(0), ("it is done\n".into(), String::new())));
    }
    // What is done to a turn names it, and every request is named.
    let wanted = cases.map(|(_, ask)| Order::new(&session.id, ask).on(Some("1")).in_home(&user.home()));
    assert_eq!(double.orders(), wanted);
}

/// What is approved was shown before, and is approved only if it asks for just that.
#[test]
fn what_is_approved_is_what_was_shown() {
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
        let shown = |order: &Order| match &order.ask {
            Ask::Approve(Which::Shown { id, text }) if text == "shell: ls" => Some(id.clone()),
            Ask::Approve(Which::Shown { text, .. }) if text == "\0" => None,
            other => panic!("{other:?}"),
        };
        orders.iter().filter_map(shown).collect()
    };
    assert_eq!(answered(&["approve", "0000"]), ["r-1"]);
    assert_eq!(answered(&["approve", "0000", "--request", "r-2"]), ["r-2"]);
    assert_eq!(answered(&["approve", "0000", "--all"]), ["r-1", "r-2", "r-3"]);
}

/// As long as the request was not shown, nothing can have been approved.
#[test]
fn case_130_a_look_at_a_request_that_breaks_off_has_approved_nothing() {
    let user = User::new();
    let session = sdk(&user, 1);
    session.prompt();
    asks(&session, "r-1");
    let _double = Double::start(&user, |_| vec![Report::Step(Step::Attach, "to its server".into())]);
    let output = user.run(&["approve", "00000001"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = texts(&output).1;
    assert!(said.contains("the request could not be shown") && said.contains("nothing was answered"), "{said}");
}

/// What nobody could read, nobody has allowed.
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
        let mine = user.pilotlight(&["approve", "00000001"]);
        shell.args(["-c", "exec \"$0\" \"$@\" >&-"]).arg(mine.get_program()).args(mine.get_args());
        shell.envs(mine.get_envs().filter_map(|(key, value)| Some((key, value?))));
        shell.output().unwrap()
    };
    let into = |to: std::process::Stdio, arguments: &[&str]| user.pilotlight(arguments).stdout(to).output().unwrap();
    let approve: &[&str] = &["approve", "00000001"];
    let all: &[&str] = &["approve", "00000001", "--all"];
    for (output, into) in [
        (closed, "a closed one"),
        (into(open("/dev/full").into(), approve), "a full one"),
        (into(open("/dev/full").into(), all), "a full one, all"),
        (into(open("/dev/null").into(), approve), "nowhere"),
        (into(writer.into(), approve), "a pipe that nobody reads"),
    ] {
        assert_eq!(output.status.code(), Some(4), "{into}: {output:?}");
        let said = texts(&output).1;
        assert!(said.contains("could not be written out (") && said.contains("it was left open"), "{into}: {said}");
    }
    let approved = |order: &Order| !matches!(&order.ask, Ask::Approve(Which::Shown { text, .. }) if text == "\0");
    assert!(!double.orders().iter().any(approved), "{:?}", double.orders());
    assert_eq!(user.run(approve).status.code(), Some(0), "with an output that is read it is");
}

/// What may read as something else is only answered after it was looked at.
#[test]
fn case_114_what_may_read_as_something_else_is_not_approved_unasked() {
    let user = User::new();
    let session = sdk(&user, 1);
    let _owner = session.owner(&user);
    session.prompt();
    asks(&session, "r-1");
    let double = Double::start(&user, |order| shows(order, "shell: rm -rf /t\u{43c}p", Outcome::Done("done".into())));
    let output = user.run(&["approve", "00000001"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let (out, err) = texts(&output);
    assert!(out.contains("rm -rf /t\u{43c}p"), "it is shown: {out}");
    assert!(err.contains("left open") && err.contains("pilotlight approve --ask"), "{err}");
    let answered = |order: &Order| !matches!(&order.ask, Ask::Approve(Which::Shown { text, .. }) if text == "\0");
    assert!(!double.orders().iter().any(answered), "{:?}", double.orders());
    assert_eq!(user.run(&["deny", "00000001"]).status.code(), Some(0), "denying it needs no look");
}

#[test]
fn steps_and_reasons_go_to_standard_error_the_request_and_the_result_to_standard_output() {
    let user = User::new();
    let session = sdk(&user, 1);
    let _owner = session.owner(&user);
    session.prompt();
    asks(&session, "r-1");
    let _double = Double::start(&user, |order| {
        let end = match order.ask {
            Ask::Approve(_) => Outcome::Done("allowed \u{1b}[31monce".into()),
            Ask::Reconnect { .. } => Outcome::Failed("the server does not answer".into()),
            _ => Outcome::Refused("the session is over".into()),
        };
        shows(order, "shell: ls\u{1b}[2K\npilotlight: allowed", end)
    });
    let (out, err) = texts(&user.run(&["approve", "00000001"]));
    let request = "The request of project:\n    shell: ls\\u{1b}[2K\n    pilotlight: allowed\n";
    assert_eq!(out, format!("{request}allowed [31monce\n"));
    assert_eq!(err, "take-over: as one more client\n");
    for (command, code, words) in
        [("reconnect", 1, "pilotlight: the server does not answer\n"), ("deny", 4, "pilotlight: the session is over\n")]
    {
        let output = user.run(&[command, "00000001"]);
        assert_eq!(output.status.code(), Some(code));
        let (out, err) = texts(&output);
        assert_eq!(out, if command == "deny" { request } else { "" }, "no result");
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
    let status = user.pilotlight(&["deny", "00000001"]).stdout(writer).status().unwrap();
    assert_eq!((status.code(), double.orders().len()), (Some(1), 1));
}

#[test]
fn case_130_what_a_tray_that_breaks_off_had_may_have_happened() {
    let user = User::new();
    sdk(&user, 1).prompt();
    let _double = Double::start(&user, |order| match order.ask {
        Ask::Stop => Vec::new(),
        _ => vec![Report::Step(Step::Attach, "to its server".into())],
    });
    // One that has not even heard of it has sent nothing.
    for (command, code, words) in [
        ("stop", 1, "the tray broke off before it said how it ended"),
        ("reconnect", 5, "may have happened: the tray broke off before it said how it ended"),
    ] {
        let output = user.run(&[command, "00000001"]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let (_, err) = texts(&output);
        assert!(err.contains(words) && err.contains("nothing was sent") == (code == 1), "{err}");
    }
}

/// What is interrupted is looked up on disk before anything is said of it.
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
        ("approve", answered("approved"), 0, "approved: its log says so"),
        ("approve", answered(REFUSED), 5, "its log has another answer"),
        ("deny", answered(REFUSED), 0, "denied: its log says so"),
        ("stop", None, 5, "its log says that the turn goes on"),
        ("stop", aborted(), 0, "its log says that the turn has ended"),
    ];
    for (command, meanwhile, code, words) in cases {
        let user = User::new();
        let session = sdk(&user, 1);
        session.prompt();
        session.say("permission.requested", asked);
        let (has, order) = std::sync::mpsc::channel();
        let _double = Double::start_raw(&user, move |order, stream| {
            let mut say = |report: &Report| {
                let mut line = serde_json::to_vec(report).unwrap();
                line.push(b'\n');
                std::io::Write::write_all(stream, &line).unwrap();
            };
            // What is approved is shown first.
            if matches!(&order.ask, Ask::Approve(Which::Shown { text, .. }) if text == "\0") {
                shows(order, "shell: ls", Outcome::Unknown).iter().for_each(say);
                return;
            }
            say(&Report::Step(Step::Attach, "to its server".into()));
            has.send(()).unwrap();
            let _ = Read::read(stream, &mut [0]); // until the command has gone
        });
        let mut run = user.pilotlight(&[command, "00000001"]);
        run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut run = run.spawn().unwrap();
        order.recv().unwrap();
        let mut stderr = BufReader::new(run.stderr.take().unwrap());
        let mut err = String::new();
        stderr.read_line(&mut err).unwrap(); // it has heard of the tray
        if let Some((kind, data)) = meanwhile {
            session.say(kind, &data);
        }
        kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        let output = run.wait_with_output().unwrap();
        stderr.read_to_string(&mut err).unwrap();
        let out = texts(&output).0;
        assert_eq!(output.status.code(), Some(code), "{command}: {output:?}, {err}");
        let said = if code == 0 { out } else { err };
        assert!(said.contains(words) && !said.contains("failed"), "{command}: {said}");
    }
}

#[test]
fn an_answer_of_another_version_may_mean_anything() {
    let user = User::new();
    sdk(&user, 1).prompt();
    let _double = Double::start_raw(&user, |_, stream| {
        std::io::Write::write_all(stream, b"{\"done\":true}\n").unwrap();
    });
    let output = user.run(&["stop", "00000001"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(texts(&output).1.contains("is it another version?"), "{output:?}");
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
