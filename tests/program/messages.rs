//! How the last message of a session begins, and where that is told.

use crate::control::hosts::{name_hosts, serves};
use crate::control::trays::Tray;
use crate::support::synthetic::{Folder, User};
use crate::support::{SOON, wait_until};
use serde_json::{Value, json};
use std::fs;

fn says(session: &Folder, text: &str) {
    session.log_event("assistant.message", &json!({ "content": text, "toolRequests": [] }).to_string());
    session.log_event("assistant.turn_end", "{}");
}

fn text_of(user: &User, args: &[&str]) -> String {
    let ran = user.run(args);
    String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
}

fn message(user: &User, session: &Folder) -> Value {
    let rows = user.rows(&["--messages"]);
    rows.iter().find(|row| row["id"] == session.id.as_str()).unwrap()["last_message"].clone()
}

/// Without a tray, and beside one.
#[test]
fn case_770_it_is_told_where_it_is_asked_for_and_nowhere_else() {
    for has_tray in [false, true] {
        let user = User::new();
        let session = user.session(1);
        let _owner = session.owner(&user);
        session.prompt();
        says(&session, "I painted\n\n the \u{1b}[31mheron\u{202e}.");
        let _tray = has_tray.then(|| Tray::start(&user));
        wait_until(SOON, "it is idle", String::new, || user.row(&session).filter(|row| row["status"] == "idle"));
        let told = message(&user, &session);
        let words = told.as_str().unwrap();
        assert!(words.starts_with("I painted the ") && words.contains("heron"), "{words:?}");
        assert!(!words.contains(['\n', '\u{1b}', '\u{202e}']), "{words:?}");
        assert!(text_of(&user, &["explain", &session.id]).contains("heron"));
        for silent in [&["status", "--json"][..], &["status"], &["diagnostics"], &["status", "--openmetrics"]] {
            assert!(!text_of(&user, silent).contains("heron"), "{silent:?}");
        }
        let log = user.scratch.path().join(".local/state/pilotlight");
        let logs = fs::read_dir(log).into_iter().flatten().flatten().filter(|entry| entry.path().is_file());
        for entry in logs {
            let text = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
            assert!(!text.contains("heron"), "{}", entry.path().display());
        }
    }
}

#[test]
fn case_770_a_setting_switches_it_off_and_no_host_tells_it_unasked() {
    let (near, remote) = (User::new(), User::new());
    name_hosts(&near, &[("devbox", serves(&remote))]);
    let (here, there) = (near.session(1), remote.session(2));
    let _owners = (here.owner(&near), there.owner(&remote));
    for session in [&here, &there] {
        session.prompt();
        says(session, "I painted the heron.");
    }
    assert_eq!(message(&near, &here), "I painted the heron.");
    assert_eq!(message(&near, &there), Value::Null);
    assert!(!text_of(&near, &["explain", &there.id]).contains("heron"));
    let settings = near.scratch.path().join(".config/pilotlight/config.toml");
    let hosts = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, format!("[list]\nlast-message = false\n{hosts}")).unwrap();
    assert_eq!(message(&near, &here), Value::Null);
    assert!(!text_of(&near, &["explain", &here.id]).contains("heron"));
    assert_eq!(near.run(&["status", "--messages"]).status.code(), Some(2), "it is for JSON");
}

/// Another machine is asked, by the words that run Pilotlight there. -> Told in JSON and in words, with and
/// without a tray at either end, unless that machine's own settings forbid it.
#[test]
fn case_842_a_host_tells_it_if_it_is_asked() {
    let (near, remote) = (User::new(), User::new());
    name_hosts(&near, &[("devbox", [serves(&remote), vec!["--messages".into()]].concat())]);
    let there = remote.session(2);
    let _owner = there.owner(&remote);
    there.prompt();
    says(&there, "I painted the heron.");
    let told = || {
        assert_eq!(message(&near, &there), "I painted the heron.");
        assert!(text_of(&near, &["explain", &there.id]).contains("I painted the heron."));
    };
    told();
    let remote_tray = Tray::start(&remote);
    told();
    let tray = Tray::start(&near);
    wait_until(SOON, "the tray is told", || text_of(&near, &["status"]), || near.row(&there));
    told();
    drop((tray, remote_tray));
    let settings = remote.scratch.path().join(".config/pilotlight/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, "[list]\nlast-message = false\n").unwrap();
    assert_eq!(message(&near, &there), Value::Null);
}

#[test]
fn case_770_of_20_mb_in_one_line_the_beginning_is_told() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    says(&session, &format!("It begins so. {}", "\u{1b}[2Jword ".repeat(20 << 17)));
    let told = message(&user, &session);
    let words = told.as_str().unwrap();
    assert!(words.starts_with("It begins so. ") && words.chars().count() <= 500, "{words:?}");
    // A blank one, and one of a sub-agent, take the place of none.
    session.log_event("assistant.message", r#"{"content":" \n","toolRequests":[]}"#);
    let line = session.line(
        std::time::Duration::ZERO,
        "assistant.message",
        r#"{"content":"A sub-agent's.","toolRequests":[]}"#,
    );
    session.append(line.replacen("},\"id\":", "},\"agentId\":\"s1\",\"id\":", 1));
    assert_eq!(message(&user, &session), told);
}
