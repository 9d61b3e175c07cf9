//! How long nothing has happened, as the commands show it.

use crate::support::synthetic::{Folder, User};
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use std::time::Duration;

const TOOL: &str = r#"{"toolCallId":"c1","toolName":"bash","arguments":{"command":"sleep 60"}}"#;

/// A session whose turn began 250 s ago, and whose tool was started `ago`.
fn at_work(user: &User, ago: u64) -> Folder {
    let session = user.session(1);
    let line = |ago, kind, data| session.line(Duration::from_secs(ago), kind, data);
    let prompt = line(250, "user.message", r#"{"content":"do it","delivery":"idle"}"#);
    session.append(prompt + &line(ago, "tool.execution_start", TOOL));
    session
}

fn said(user: &User, args: &[&str]) -> String {
    String::from_utf8(user.run(args).stdout).unwrap()
}

#[test]
fn case_162_status_and_explain_say_how_long_nothing_has_happened() {
    let user = User::new();
    let session = at_work(&user, 51);
    let _owner = session.owner(&user);
    let table = said(&user, &["status"]);
    assert!(table.contains("50 s     running bash; turn: 4 min, 1 tool, last seen 50 s ago"), "{table}");
    let page = said(&user, &["explain", &session.id]);
    let line = page.lines().find(|line| line.starts_with("last seen")).unwrap();
    assert!(
        line.contains("Z (5") && line.ends_with(" ago), by the event tool.execution_start (bash) in its log"),
        "{line}"
    );
    let row = user.row(&session).unwrap();
    assert_eq!(row["because"], "running bash", "an age in it would not stay true");
}

#[test]
fn case_162_the_live_table_counts_a_silence() {
    let user = User::new();
    let session = at_work(&user, 48);
    let _owner = session.owner(&user);
    let table = Tmux::start(user.pilotlight(&["live"]).env("TERM", "xterm-256color"), 120, 20);
    for age in ["50 s", "55 s"] {
        table.shows(&format!("{age}     running bash; turn: 4 min, 1 tool, last seen {age} ago"));
    }
}

#[test]
fn case_162_the_live_table_forgets_a_silence_with_the_next_event() {
    let user = User::new();
    let session = at_work(&user, 121);
    let _owner = session.owner(&user);
    let table = Tmux::start(user.pilotlight(&["live"]).env("TERM", "xterm-256color"), 120, 20);
    table.shows("2 min    running bash; turn: 4 min, 1 tool, last seen 2 min ago");
    // Mere progress, which changes nothing else. Its age alone would be redrawn only half a minute later.
    session.log_event("assistant.reasoning", "{}");
    let forgotten = || table.screen().contains("now      running bash; turn: 4 min, 1 tool\n").then_some(());
    wait_until(SOON / 2, "the silence is over", || table.screen(), forgotten);
}

#[test]
fn case_173_a_session_that_was_just_opened_has_no_age() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    let table = said(&user, &["status"]);
    assert!(table.contains("  -        no prompt yet"), "{table}");
    let page = said(&user, &["explain", &session.id]);
    assert!(page.contains("last seen       nothing yet\n"), "{page}");
}
