//! Owners that were killed, and whose locks another Copilot has cleaned away.

use crate::support::made_up::{Folder, Owner, User};
use serde_json::{Value, json};
use std::time::Duration;

/// The log of a Copilot process that was started so long ago, and says this of a session.
fn log(user: &User, pid: u32, ago: Duration, session: &Folder, says: &[&str]) {
    let logs = user.home().join("logs");
    std::fs::create_dir_all(&logs).unwrap();
    let started = jiff::Timestamp::now() - ago;
    let lines: String =
        says.iter().map(|says| format!("2026-11-22T01:02:18.498Z [INFO] {says} {}\n", session.id)).collect();
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
fn a_killed_owner_whose_lock_was_cleaned_away_is_told_by_its_log() {
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
    // Those that had it open before are gone as well.
    log(&user, dead(&user), AGO * 2, &session, &[OPENS, CLOSES]);
    log(&user, dead(&user), AGO * 3, &session, &[OPENS]);
    assert_eq!(user.row(&session).unwrap()["owner"]["pid"], pid);
    // What would hold up others while it is read is not read, and then nothing is known.
    let endless = std::fs::File::create(user.home().join("logs/process-1-1.log")).unwrap();
    endless.set_len(1 << 30).unwrap();
    assert_eq!(user.row(&session).unwrap()["status"], "working");
}

#[test]
fn where_nothing_tells_who_runs_it_no_owner_is_called_gone() {
    let user = User::new();
    let living = Owner::start(user.scratch.path(), "copilot");
    type Case<'a> = (&'static str, &'a dyn Fn(&Folder));
    let tell: [Case<'_>; 5] = [
        ("no log", &|_| ()),
        ("it was closed", &|session| log(&user, dead(&user), AGO, session, &[OPENS, CLOSES])),
        ("another session", &|_| log(&user, dead(&user), AGO, &user.session(9), &[OPENS])),
        ("one that may live", &|session| {
            log(&user, dead(&user), AGO, session, &[OPENS]);
            log(&user, living.pid(), Duration::ZERO, session, &[OPENS]);
        }),
        ("started after its last event", &|session| log(&user, dead(&user), Duration::ZERO, session, &[OPENS])),
    ];
    for (n, (what, tell)) in (1..).zip(tell) {
        let session = user.session(n);
        session.append(session.line(Duration::from_secs(10), "user.message", r#"{"content":"Paint the fence"}"#));
        tell(&session);
        let row = user.row(&session).unwrap();
        assert!(!resumes(&row) && row["status"] != "crashed", "{what}: {row}");
    }
}

/// Who saw it end remembers, whatever is left on disk.
#[test]
fn an_owner_that_was_seen_to_end_stays_gone_without_its_lock() {
    let (_user, session, owner, watch) = User::working(1);
    let lock = session.path.join(format!("inuse.{}.lock", owner.pid()));
    owner.kill();
    watch.told(&session, "crashed");
    std::fs::remove_file(lock).unwrap();
    // Told in one line with something that surely changes its row.
    session.workspace("name: Paint the gate\n");
    let row = watch.until(&session, "renamed", |row| row.to_string().contains("gate"));
    assert_eq!((&row["status"], resumes(&row)), (&json!("crashed"), true), "{row}");
    // Whoever writes to it runs it.
    session.say("tool.execution_start", r#"{"toolCallId":"t","toolName":"bash"}"#);
    let row = watch.told(&session, "working");
    assert!(!resumes(&row), "{row}");
}
