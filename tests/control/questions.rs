//! Confirmations before a session is ended or a request answered: on a terminal, or not at all.

use super::trays::Double;
use crate::support::synthetic::{Folder, User};
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use pilotlight_core::form::{Form, FormAnswer};
use pilotlight_core::order::{Operation, OrderReport, Outcome, Reply, ShownRequest, Which};
use serde_json::json;

const END: &str = "You can resume it later. [y/N]";

fn done() -> Vec<OrderReport> {
    vec![OrderReport::End(Outcome::Done("it is done".into()))]
}

/// Runs the program in a terminal that then shows its exit code.
fn in_terminal(user: &User, arguments: &[&str]) -> Tmux {
    Tmux::with_exit_code(&user.pilotlight(arguments), 110, 40)
}

/// A session with a live owner and these open requests.
fn asking(user: &User, requests: &[&str]) -> (Folder, crate::support::synthetic::Owner) {
    let session = user.session(1);
    let owner = session.owner(user);
    session.prompt();
    for request in requests {
        let data =
            format!(r#"{{"requestId":"{request}","permissionRequest":{{"kind":"shell","toolCallId":"{request}"}}}}"#);
        session.log_event("permission.requested", &data);
    }
    (session, owner)
}

#[test]
fn a_session_in_a_terminal_is_ended_only_after_a_yes() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    let double = Double::start(&user, |_| done());

    let output = user.run(&["stop", "00000001"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(4)
            && stderr.contains("cannot ask you without a terminal")
            && stderr.contains("--yes"),
        "{stderr}"
    );
    for answer in ["", "n", "yesterday"] {
        let terminal = in_terminal(&user, &["stop", "00000001"]);
        terminal.shows(END);
        terminal.text(answer);
        terminal.press(&["Enter"]);
        terminal.shows("the session was left as it is");
        terminal.shows("exited with 4");
    }
    assert_eq!(double.orders(), []);

    for answer in ["y", "YES"] {
        let terminal = in_terminal(&user, &["stop", "00000001"]);
        terminal.shows(END);
        terminal.text(answer);
        terminal.press(&["Enter"]);
        terminal.shows("it is done");
        terminal.shows("exited with 0");
    }
    assert!(user.run(&["stop", "00000001", "--yes"]).status.success());
    assert!(double.orders().iter().all(|order| order.operation == Operation::End { confirmed: true }));
    assert_eq!(double.orders().len(), 3);
}

/// In full, and the order names the text that was shown.
#[test]
fn with_ask_each_request_is_shown_before_it_is_answered() {
    let user = User::new();
    let (_session, _owner) = asking(&user, &["r-1", "r-2", "r-3"]);
    let double = Double::start(&user, |order| match &order.operation {
        Operation::Look(id) => {
            vec![
                OrderReport::Request(ShownRequest::verbatim(format!("shell: rm {id}"))),
                OrderReport::End(Outcome::Done("shown".into())),
            ]
        }
        Operation::Approve(Which::Shown { id, text }) if *text == format!("shell: rm {id}") => {
            vec![
                OrderReport::Request(ShownRequest::verbatim(text)),
                OrderReport::End(Outcome::Done(format!("{id} is allowed"))),
            ]
        }
        other => panic!("{other:?}"),
    });
    let answered = || -> Vec<String> {
        let orders = double.orders().into_iter();
        let text = |operation| match operation {
            Operation::Approve(Which::Shown { text, .. }) => Some(text),
            _ => None,
        };
        orders.filter_map(|order| text(order.operation)).collect()
    };

    let output = user.run(&["approve", "00000001", "--ask"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot ask you without a terminal"));

    let terminal = in_terminal(&user, &["approve", "00000001", "--ask"]);
    terminal.shows("    shell: rm r-1\nIts id, for --request: r-1\nApprove this request, once? [y/N]");
    assert_eq!(answered(), [""; 0], "not before the answer");
    terminal.press(&["y", "Enter"]);
    terminal.shows("r-1 is allowed\nexited with 0");
    assert_eq!(terminal.screen().matches("shell: rm").count(), 1, "shown once");

    let terminal = in_terminal(&user, &["approve", "00000001", "--ask", "--request", "r-9"]);
    terminal.shows("    shell: rm r-9\n");
    terminal.press(&["n", "Enter"]);
    terminal.shows("the request was left open\nexited with 4");

    let terminal = in_terminal(&user, &["approve", "00000001", "--ask", "--all"]);
    for (request, key) in [("r-1", "n"), ("r-2", "y"), ("r-3", "y")] {
        terminal.shows(&format!(
            "    shell: rm {request}\nIts id, for --request: {request}\nApprove this request, once? [y/N]"
        ));
        terminal.press(&[key, "Enter"]);
    }
    terminal.shows("exited with 4");
    assert_eq!(answered(), ["shell: rm r-1", "shell: rm r-2", "shell: rm r-3"]);
}

#[test]
fn with_ask_a_request_that_cannot_be_shown_is_not_asked_about() {
    let user = User::new();
    let (_session, _owner) = asking(&user, &["r-1"]);
    let double = Double::start(&user, |_| vec![OrderReport::End(Outcome::Refused("it is no longer open".into()))]);
    let terminal = in_terminal(&user, &["deny", "00000001", "--ask"]);
    terminal.shows("pilotlight: it is no longer open\nexited with 4");
    assert_eq!(double.orders().len(), 1);
    let none = User::new();
    let (_session, _owner) = asking(&none, &[]);
    let terminal = in_terminal(&none, &["deny", "00000001", "--ask"]);
    terminal.shows("it asks for no permission\nexited with 4");
}

/// It asks about no further request.
#[test]
fn ctrl_c_at_a_question_answers_nothing_and_ends() {
    let user = User::new();
    let (_session, _owner) = asking(&user, &["r-1", "r-2"]);
    let double = Double::start(&user, |_| {
        vec![OrderReport::Request(ShownRequest::verbatim("shell: ls")), OrderReport::End(Outcome::Done("shown".into()))]
    });
    let terminal = in_terminal(&user, &["approve", "00000001", "--ask", "--all"]);
    terminal.shows("[y/N]");
    terminal.press(&["C-c"]);
    terminal.shows("the request was left open");
    terminal.shows("exited with 4");
    assert!(double.orders().iter().all(|order| matches!(order.operation, Operation::Look(_))), "{:?}", double.orders());
}

/// It was shown in full, but its text is too long for an order.
#[test]
fn with_ask_a_very_long_request_is_answered_by_its_id() {
    let user = User::new();
    let (_session, _owner) = asking(&user, &["r-1"]);
    let double = Double::start(&user, |order| match &order.operation {
        Operation::Look(_) => vec![
            OrderReport::Request(ShownRequest::verbatim("x".repeat(70_000))),
            OrderReport::End(Outcome::Done("shown".into())),
        ],
        _ => done(),
    });
    let terminal = in_terminal(&user, &["deny", "00000001", "--ask"]);
    terminal.shows("Deny this request? [y/N]");
    terminal.press(&["y", "Enter"]);
    terminal.shows("it is done\nexited with 0");
    assert_eq!(double.orders()[1].operation, Operation::Deny(Which::These(vec!["r-1".into()])));
}

#[test]
fn input_typed_before_the_question_is_no_answer() {
    let user = User::new();
    let (_session, _owner) = asking(&user, &["r-1"]);
    let (typed, has_typed) = std::sync::mpsc::channel();
    let has_typed = std::sync::Mutex::new(has_typed);
    let double = Double::start(&user, move |_| {
        has_typed.lock().unwrap().recv().unwrap();
        vec![OrderReport::Request(ShownRequest::verbatim("shell: ls")), OrderReport::End(Outcome::Done("shown".into()))]
    });
    let terminal = in_terminal(&user, &["approve", "00000001", "--ask"]);
    wait_until(SOON, "it asks for the request", || terminal.screen(), || (double.orders().len() == 1).then_some(()));
    terminal.text("y");
    terminal.press(&["Enter"]);
    terminal.shows("y\n");
    typed.send(()).unwrap();
    terminal.shows("Approve this request, once? [y/N]");
    terminal.press(&["Enter"]);
    terminal.shows("the request was left open");
    assert_eq!(double.orders().len(), 1);
}

/// In full, and the answer is for the question that was shown.
#[test]
fn a_question_is_shown_before_it_is_answered() {
    let user = User::new();
    let (_session, _owner) = asking(&user, &[]);
    let form = |question: &str, second: &str| {
        let data = json!({"requestId": "r-1", "question": question, "choices": ["red", second]});
        Form::read("user_input.requested", &data).unwrap()
    };
    let double = Double::start(&user, move |order| match &order.operation {
        Operation::Answer(Reply::Look(request)) => {
            let (question, second) = match request.as_deref() {
                Some("odd") => ("Which c\u{43e}lor?", "dark blue"),
                Some("unseen") => ("Which color?\n9) none", "dark\u{1b}[2Kblue"),
                _ => ("Which color?\n9) none", "dark blue"),
            };
            vec![
                OrderReport::Question(Box::new(form(question, second))),
                OrderReport::End(Outcome::Done("it is still open".into())),
            ]
        }
        _ => done(),
    });
    let given = || {
        let orders = double.orders().into_iter();
        let give = |operation| match operation {
            Operation::Answer(Reply::Give { request, with, .. }) => Some((request, *with)),
            _ => None,
        };
        orders.filter_map(|order| give(order.operation)).collect::<Vec<_>>()
    };
    let run = |arguments: &[&str]| user.run(&[&["answer", "00000001", "--request", "r-1"], arguments].concat());
    let output = run(&["--choice", "2"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let shown = "    Which color?\n    9) none\nIts id, for --request: r-1\nIts choices:\n    1) red\n    2) dark blue\nit is done\n";
    assert!(stdout.contains(shown), "every line is indented: {stdout}");
    assert_eq!(given(), [("r-1".to_owned(), FormAnswer::Choice(1))]);
    for (arguments, code, why) in [
        (&["--choice", "3"][..], 4, "no number 3"),
        (&["--text", "mauve"], 4, "it takes one of its choices"),
        (&["blue"], 4, "no choice reads like this"),
        (&["--decline"], 4, "not declined"),
        (&[], 4, "cannot ask you without a terminal"),
        (&["--choice", "1", "--text", "red"], 2, "cannot be used with"),
        (&["red", "--choice", "1"], 2, "cannot be used with"),
    ] {
        let output = run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && stderr.contains(why), "{arguments:?}: {output:?}");
    }
    // A question that may mislead; and answers that do not name their question, which another may have replaced.
    for (arguments, why) in [
        (&["--request", "odd", "--choice", "1"][..], "may not be what it looks like"),
        (&["--request", "unseen", "--choice", "1"], "a character that cannot be seen (U+001B)"),
        (&["--choice", "1"], "the one shown here is `--request r-1`. The question was left open"),
        (&["red"], "say which question"),
        (&["--cancel"], "say which question"),
    ] {
        let output = user.run(&[&["answer", "00000001"], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(4) && stderr.contains(why), "{arguments:?}: {output:?}");
    }
    // A question that could not be printed is not answered.
    let mut unread = user.pilotlight(&["answer", "00000001", "--request", "r-1", "--choice", "1"]);
    let output = unread.stdout(std::fs::File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(given().len(), 1, "{:?}", given());
    let terminal = in_terminal(&user, &["answer", "00000001"]);
    terminal.shows("Your answer (1 to 2; Enter alone leaves it open):");
    terminal.press(&["C-c"]);
    terminal.shows("the question was left open\nexited with 4");
    let terminal = in_terminal(&user, &["answer", "00000001"]);
    terminal.shows("Your answer (1 to 2; Enter alone leaves it open):");
    terminal.press(&["1", "Enter"]);
    terminal.shows("it is done\nexited with 0");
    assert_eq!(given()[1..], [("r-1".to_owned(), FormAnswer::Choice(0))]);
}

/// On the command line, or on a terminal.
#[test]
fn a_form_is_filled_in_field_by_field() {
    let user = User::new();
    let (_session, _owner) = asking(&user, &[]);
    let fields = json!({"color": {"type": "string", "enum": ["red", "blue"], "title": "Color"},
        "coats": {"type": "integer", "minimum": 1, "maximum": 5},
        "rooms": {"type": "array", "items": {"type": "string", "enum": ["hall", "attic"]}}, "note": {"type": "string"}});
    let double = Double::start(&user, move |order| match &order.operation {
        Operation::Answer(Reply::Look(_)) => {
            let schema = json!({"type": "object", "properties": fields, "required": ["color", "coats"]});
            let data = json!({"requestId": "r-1", "message": "How shall it look?", "requestedSchema": schema});
            let form = Form::read("elicitation.requested", &data).unwrap();
            vec![OrderReport::Question(Box::new(form)), OrderReport::End(Outcome::Done("it is still open".into()))]
        }
        _ => done(),
    });
    let given = || {
        let orders = double.orders().into_iter();
        let give = |operation| match operation {
            Operation::Answer(Reply::Give { with, .. }) => match *with {
                FormAnswer::Fields(values) => Some(serde_json::Value::from(values)),
                _ => None,
            },
            _ => None,
        };
        orders.filter_map(|order| give(order.operation)).collect::<Vec<_>>()
    };
    let run = |fields: &[&str]| {
        let fields: Vec<_> = fields.iter().flat_map(|field| ["--field", field]).collect();
        user.run(&[&["answer", "00000001", "--request", "r-1"], &fields[..]].concat())
    };
    let output = run(&["color=blue", "coats=2", "rooms=attic", "rooms=hall", "note=a=b"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    for shown in [
        "    How shall it look?\nIts id, for --request: r-1\nIts fields:\n",
        "    color: Color; one of its choices\n        1) red\n        2) blue\n    coats: a whole number, 1 to 5\n",
        "    rooms: any of its choices; may be left out\n        1) hall\n        2) attic\n    note: a text; may be left out\n",
    ] {
        assert!(stdout.contains(shown), "{shown}\n{stdout}");
    }
    let first = json!({"color": "blue", "coats": 2, "rooms": ["attic", "hall"], "note": "a=b"});
    assert_eq!(given(), [first]);
    for (fields, code, why) in [
        (&["color=blue"][..], 4, "the form's field coats must be filled in"),
        (&["color=mauve", "coats=2"], 4, "color: no choice reads like this"),
        (&["color=blue", "coats=6"], 4, "coats: its form does not allow this number"),
        (&["color=blue", "color=red", "coats=2"], 4, "color: it takes one value"),
        (&["colour=blue"], 4, "the form has no field colour; its fields: color, coats, rooms, note"),
        (&["color"], 2, "NAME=VALUE"),
    ] {
        let output = run(fields);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && stderr.contains(why), "{fields:?}: {output:?}");
    }
    let type_in = |lines: &[(&str, &str)]| {
        let terminal = in_terminal(&user, &["answer", "00000001"]);
        for (asks, typed) in lines {
            terminal.shows(asks);
            terminal.text(typed);
            terminal.press(&["Enter"]);
        }
        terminal
    };
    let filled = [
        ("color (one of its choices, by number: 1 to 2):", "2"),
        ("coats (a whole number, 1 to 5):", "9"),
        ("its form does not allow this number\ncoats (a whole number, 1 to 5):", "3"),
        ("rooms (any of its choices; may be left out, by number: 1 to 2):", "1, attic"),
        ("note (a text; may be left out):", ""),
    ];
    type_in(&[&filled[..], &[("Send this? [y/N]", "n")]].concat()).shows("the question was left open\nexited with 4");
    type_in(&filled[..2]).shows("its form does not allow");
    assert_eq!(given().len(), 1, "{:?}", given());
    type_in(&[&filled[..], &[("Send this? [y/N]", "y")]].concat()).shows("it is done\nexited with 0");
    assert_eq!(given()[1..], [json!({"coats": 3, "color": "blue", "rooms": ["hall", "attic"]})]);
    // An empty required field leaves the question open, and so does Ctrl-C at any field.
    type_in(&[("color (", "")]).shows("the question was left open\nexited with 4");
    let terminal = type_in(&filled[..4]);
    terminal.shows("note (");
    terminal.press(&["C-c"]);
    terminal.shows("the question was left open\nexited with 4");
    assert_eq!(given().len(), 2, "{:?}", given());
}
