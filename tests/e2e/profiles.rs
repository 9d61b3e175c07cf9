//! Sessions whose process is not known to the home that lists them: profiles that share logs, files that were deleted,
//! and files that name another session. With the real agents.

use crate::support::claude::{Claude, ClaudeHome};
use crate::support::codex::CodexHome;
use crate::support::pilotlight::Pilot;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Stdio;

/// What a person's command would be: these are started by a test, which no terminal shows.
const CONFIG: &str = "[actions]\nscripts-may-answer = true\n";

/// Checks that a session is resumed neither in a terminal nor here.
#[track_caller]
fn is_not_resumed(pilot: &Pilot, id: &str, why: &str) {
    for arguments in [&["resume", id][..], &["resume", "--here", id]] {
        for ran in [pilot.run(arguments), pilot.run_without_tray(arguments)] {
            assert!(ran.code == Some(4) && ran.err.contains(why), "{arguments:?}: {ran:?}");
        }
    }
}

fn may_be_resumed(row: &Value) -> bool {
    row["actions"].as_array().unwrap().contains(&"resume".into())
}

/// Waits until a look finds the session's owner unknown, for this reason, while it counts neither as crashed nor as ended.
fn wait_doubt(pilot: &Pilot, id: &str, why: &str) -> Value {
    let row = pilot.row_where(id, "its owner is unknown", |row| row["because"].as_str().unwrap().contains(why));
    assert!(row["status"] != "ended" && row["status"] != "crashed" && !may_be_resumed(&row), "{row}");
    row
}

/// Waits until it is known which process of another home runs the session: the next pass over the processes tells.
fn wait_runner(pilot: &Pilot, id: &str, pid: u32) {
    let row = pilot.row_where(id, &format!("{pid} runs it"), |row| row["owner"]["pid"] == pid);
    assert!(!may_be_resumed(&row), "{row}");
}

/// Case 512: its process's file is in the home of the profile that runs it, and its log in both.
#[test]
fn case_512_a_session_of_another_profile_is_what_its_process_says() {
    let home = ClaudeHome::new();
    let work = home.profile(".claude-work");
    let pilot = Pilot::watching(vec![home.dir()], CONFIG, &[]);
    let claude = home.start_in(&work, &[]);
    let id = claude.id();
    claude.enter("SCRIPT:tool Paint the fence");
    claude.wait_screen("Do you want to");
    pilot.wait_status(&id, "needs-permission", "asks for permission: Bash");
    wait_runner(&pilot, &id, claude.pid());
    let one = |homes: &[std::path::PathBuf]| {
        let named: Vec<_> = homes.iter().flat_map(|home| ["--home", home.to_str().unwrap()]).collect();
        let ran = pilot.run_without_tray(&[&["status", "--json", "--all"], &named[..]].concat());
        let rows: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
        let its: Vec<_> = rows.into_iter().filter(|row| row["id"] == *id).collect();
        assert!(its.len() == 1 && its[0]["status"] == "needs-permission", "{its:?}");
    };
    one(&[home.dir(), work.clone()]);
    one(&[work.clone(), home.dir()]);

    claude.accept("Do you want to");
    pilot.wait_status(&id, "working", "running Bash");
    std::fs::write(home.project().join("go"), "").unwrap();
    pilot.wait_status(&id, "idle", "done, your turn");
    let ran = pilot.run(&["resume", "--here", &id]);
    assert!(ran.err.contains(&format!("process {} runs it", claude.pid())), "{ran:?}");

    claude.enter("SCRIPT:silence Paint the shed");
    pilot.wait_status(&id, "working", "the model thinks");
    claude.signal(Signal::KILL);
    // Nothing leads to the profile of a process that is gone: what it left there is known to those who saw it.
    let crashed = || pilot.history(&id).last().is_some_and(|status| status == "crashed").then_some(());
    wait_until(SOON, "it crashed", || pilot.log(), crashed);
}

/// Case 513: any program of the user can delete it.
#[test]
fn case_513_a_session_whose_file_was_deleted_is_not_over_while_its_process_lives() {
    let home = ClaudeHome::new();
    let pilot = Pilot::watching(vec![home.dir()], CONFIG, &[]);
    let claude = home.start(&[]);
    let id = claude.id();
    claude.enter("SCRIPT:plain Paint the fence");
    claude.wait_screen("It is done.");
    pilot.wait_status(&id, "idle", "done, your turn");
    let other = home.start(&[]);
    let ended = other.id();
    other.enter("SCRIPT:plain Paint the gate");
    other.wait_screen("It is done.");
    pilot.wait_status(&ended, "idle", "done, your turn");
    let beside = home.start(&[]);
    other.signal(Signal::TERM);
    pilot.wait_status(&ended, "ended", "no process runs it any more");
    assert!(may_be_resumed(&pilot.row(&ended).unwrap()), "who works beside it shows a session of its own");

    std::fs::remove_file(claude.file()).unwrap();
    let row = wait_doubt(&pilot, &id, "works in its folder");
    assert_eq!((&row["owner"]["pid"], &row["owner"]["state"]), (&claude.pid().into(), &"unknown".into()));
    is_not_resumed(&pilot, &id, "may ");
    let ran = pilot.run(&["stop", "--end", "--yes", &id]);
    assert!(ran.code == Some(4), "{ran:?}");
    let told = pilot.history(&id);
    assert!(!told.iter().any(|status| status == "ended" || status == "crashed"), "{told:?}");
    drop(claude);
    pilot.wait_status(&id, "ended", "");
    drop(beside);
}

/// Case 514: the file of one process names the session of another.
#[test]
fn case_514_a_process_that_only_a_file_ties_to_a_session_is_not_ended_unasked() {
    let home = ClaudeHome::new();
    let pilot = Pilot::watching(vec![home.dir()], CONFIG, &[]);
    let (one, two) = (home.start(&[]), home.start(&[]));
    let prompt = |claude: &Claude| {
        claude.enter("SCRIPT:plain Paint the fence");
        claude.wait_screen("It is done.");
        pilot.wait_status(&claude.id(), "idle", "done, your turn");
        claude.id()
    };
    let (id, other) = (prompt(&one), prompt(&two));
    std::fs::remove_file(one.file()).unwrap();
    let file = std::fs::read_to_string(two.file()).unwrap();
    std::fs::write(two.file(), file.replace(&other, &id)).unwrap();
    for ran in [pilot.run_without_tray(&["stop", "--end", "--yes", &id]), pilot.run(&["stop", "--end", "--yes", &id])] {
        let words = [&*format!("process {}", two.pid()), "works in", "started", "cannot ask you without a terminal"];
        assert!(ran.code == Some(4) && words.iter().all(|word| ran.err.contains(word)), "{ran:?}");
    }
    assert!(crate::support::process::is_live(two.pid()));
    wait_doubt(&pilot, &other, "works in its folder");
    is_not_resumed(&pilot, &other, "may still run");
}

/// Case 515: a task's home has the logs of the user's.
#[test]
fn case_515_a_thread_of_another_home_with_the_same_logs_is_what_its_lock_says() {
    let home = CodexHome::new(false);
    let task = home.dir().with_file_name("task");
    std::fs::create_dir(&task).unwrap();
    std::fs::create_dir_all(home.dir().join("sessions")).unwrap();
    std::fs::copy(home.dir().join("config.toml"), task.join("config.toml")).unwrap();
    std::os::unix::fs::symlink("../.codex/sessions", task.join("sessions")).unwrap();
    let pilot = Pilot::watching(vec![home.dir()], CONFIG, &[]);
    let mut exec = home.command(&["exec", "--skip-git-repo-check", "SCRIPT:tool Dig"]);
    exec.env("CODEX_HOME", &task).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut exec = exec.spawn().unwrap();
    let id = home.id();
    pilot.wait_status(&id, "working", "running exec_command");
    wait_runner(&pilot, &id, exec.id());
    std::fs::remove_file(task.join(format!("thread-writer-locks/{id}.lock"))).unwrap();
    let row = wait_doubt(&pilot, &id, "has its log open");
    assert_eq!(row["status"], "working");
    is_not_resumed(&pilot, &id, "may still run");
    home.release();
    assert!(exec.wait().unwrap().success());
    pilot.wait_status(&id, "ended", "");
    let told = pilot.history(&id);
    assert!(!told.iter().any(|status| status == "crashed"), "{told:?}");
}
