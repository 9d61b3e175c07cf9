//! Owners that were killed and whose locks another Copilot has removed.

use crate::support::synthetic::{Folder, Owner, User};
use serde_json::{Value, json};
use std::time::Duration;

/// Writes the log of a Copilot process that started `ago`, with these messages about a session.
fn log(user: &User, pid: u32, ago: Duration, session: &Folder, messages: &[&str]) {
    let logs = user.home().join("logs");
    std::fs::create_dir_all(&logs).unwrap();
    let started = jiff::Timestamp::now() - ago;
    let lines: String =
        messages.iter().map(|message| format!("2026-11-22T01:02:18.498Z [INFO] {message} {}\n", session.id)).collect();
    std::fs::write(logs.join(format!("process-{}-{pid}.log", started.as_millisecond())), lines).unwrap();
}

fn dead(user: &User) -> u32 {
    Owner::start(user.scratch.path(), "copilot").kill()
}

fn resumes(row: &Value) -> bool {
    row["actions"].as_array().unwrap().contains(&json!("resume"))
}

const OPENS: &str = "Workspace initialized:";
const CLOSES: &str = "Closing session";
const AGO: Duration = Duration::from_secs(20);

#[test]
fn a_killed_owner_without_its_lock_is_found_by_its_log() {
    let user = User::new();
    let session = user.session(1);
    session.prompt();
    let row = user.row(&session).unwrap();
    assert_eq!((&row["status"], resumes(&row)), (&json!("working"), false), "{row}");
    assert!(row["because"].as_str().unwrap().contains("no process is known to run it"), "{row}");
    let pid = dead(&user);
    log(&user, pid, AGO, &session, &[OPENS]);
    let row = user.row(&session).unwrap();
    assert_eq!((&row["status"], resumes(&row)), (&json!("crashed"), true), "{row}");
    assert_eq!(row["owner"], json!({"pid": pid, "state": "gone", "attachable": false, "bridge": null}));
    // Earlier processes that had it open are gone as well.
    log(&user, dead(&user), AGO * 2, &session, &[OPENS, CLOSES]);
    log(&user, dead(&user), AGO * 3, &session, &[OPENS]);
    assert_eq!(user.row(&session).unwrap()["owner"]["pid"], pid);
    // A log that is too large to read quickly is not read, so nothing is known.
    let endless = std::fs::File::create(user.home().join("logs/process-1-1.log")).unwrap();
    endless.set_len(1 << 30).unwrap();
    assert_eq!(user.row(&session).unwrap()["status"], "working");
}

#[test]
fn an_unknown_owner_is_not_called_gone() {
    let user = User::new();
    let living = Owner::start(user.scratch.path(), "copilot");
    type Case<'a> = (&'static str, &'a dyn Fn(&Folder));
    let cases: [Case<'_>; 5] = [
        ("no log", &|_| ()),
        ("it was closed", &|session| log(&user, dead(&user), AGO, session, &[OPENS, CLOSES])),
        ("another session", &|_| log(&user, dead(&user), AGO, &user.session(9), &[OPENS])),
        ("one that may live", &|session| {
            log(&user, dead(&user), AGO, session, &[OPENS]);
            log(&user, living.pid(), Duration::ZERO, session, &[OPENS]);
        }),
        ("started after its last event", &|session| log(&user, dead(&user), Duration::ZERO, session, &[OPENS])),
    ];
    for (n, (what, write)) in (1..).zip(cases) {
        let session = user.session(n);
        session.append(session.line(Duration::from_secs(10), "user.message", r#"{"content":"Paint the fence"}"#));
        write(&session);
        let row = user.row(&session).unwrap();
        assert!(!resumes(&row) && row["status"] != "crashed", "{what}: {row}");
    }
}

/// A `watch` that saw it end remembers that, whatever is left on disk.
#[test]
fn an_owner_seen_to_end_stays_gone_without_its_lock() {
    let (_user, session, owner, watch) = User::working(1);
    let lock = session.path.join(format!("inuse.{}.lock", owner.pid()));
    owner.kill();
    watch.wait_status(&session, "crashed");
    std::fs::remove_file(lock).unwrap();
    // Another change surely prints a line, which also shows this one.
    session.workspace("name: Paint the gate\n");
    let row = watch.wait_row(&session, "renamed", |row| row.to_string().contains("gate"));
    assert_eq!((&row["status"], resumes(&row)), (&json!("crashed"), true), "{row}");
    // A new event means that a process runs it.
    session.log_event("tool.execution_start", r#"{"toolCallId":"t","toolName":"bash"}"#);
    let row = watch.wait_status(&session, "working");
    assert!(!resumes(&row), "{row}");
}
