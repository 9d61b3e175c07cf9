//! The real Codex: in terminals with its daemon, in one of its own, and `exec`.

use crate::support::codex::CodexHome;
use crate::support::pilotlight::Pilot;
use crate::support::process::signal;
use rustix::process::Signal;
use std::process::Stdio;

/// What a person's command would be: these are started by a test, which no terminal shows.
const CONFIG: &str = "[actions]\nscripts-may-answer = true\n";

fn pilot(home: &CodexHome) -> Pilot {
    Pilot::watching(vec![home.dir()], CONFIG, &[])
}

/// The story that says most: an approval is told, shown, approved and denied while the terminal shows its dialog; a turn
/// is stopped; the terminal is killed, and then the daemon.
#[test]
fn codex_in_terminals_with_a_daemon() {
    let home = CodexHome::new(true);
    let pilot = pilot(&home);
    let terminal = home.terminal(&[]);
    let made = home.project().join("made-by-agent.txt");

    terminal.enter("SCRIPT:perm Paint the fence");
    let id = home.id();
    terminal.shows("Would you like to run");
    let row = pilot.wait_status(&id, "needs-permission", "probably asks in its terminal: touch made-by-agent.txt");
    assert_eq!((&row["agent"], row["owner"]["pid"].as_u64()), (&"codex".into(), home.daemon().map(u64::from)));
    let ran = pilot.run_without_tray(&["approve", "--yes", &id]);
    assert!(ran.code == Some(0) && ran.out.contains("touch made-by-agent.txt"), "{ran:?}");
    terminal.shows("All done.");
    pilot.wait_status(&id, "idle", "done");
    assert!(made.exists(), "it was run");
    assert!(!terminal.has("Would you like to run"), "its dialog is gone");

    std::fs::remove_file(&made).unwrap();
    terminal.enter("SCRIPT:perm Paint it again");
    terminal.shows("Would you like to run");
    pilot.wait_status(&id, "needs-permission", "probably asks");
    let ran = pilot.run(&["deny", "--yes", &id]);
    assert!(ran.code == Some(0), "{ran:?}");
    pilot.wait_status(&id, "idle", "done");
    assert!(!made.exists(), "it was not run");

    terminal.enter("SCRIPT:hang Think");
    pilot.wait_status(&id, "working", "");
    let ran = pilot.run(&["stop", &id, "--yes"]);
    assert!(ran.code == Some(0), "{ran:?}");
    pilot.wait_status(&id, "idle", "stopped");
    let ran = pilot.run(&["stop", &id, "--end", "--yes"]);
    assert!(ran.code == Some(4) && ran.err.contains("close the session in its terminal"), "{ran:?}");

    terminal.enter("SCRIPT:hang Think on");
    pilot.wait_status(&id, "working", "");
    signal(terminal.pid(), Signal::KILL);
    let daemon = home.daemon().unwrap();
    signal(daemon, Signal::KILL);
    let row = pilot.wait_status(&id, "crashed", "its process is gone");
    assert!(row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");
}

#[test]
#[ignore = "takes long: tests/long.sh"]
fn codex_with_a_process_of_its_own() {
    let home = CodexHome::new(true);
    let pilot = pilot(&home);
    let terminal = home.terminal(&["--no-daemon"]);
    terminal.enter("SCRIPT:perm Paint the fence");
    let id = home.id();
    terminal.shows("Would you like to run");
    let row = pilot.wait_status(&id, "needs-permission", "probably asks in its terminal");
    assert_eq!(row["owner"]["pid"], terminal.pid());
    let ran = pilot.run(&["approve", "--yes", &id]);
    assert!(ran.code == Some(4) && ran.err.contains("use its terminal"), "{ran:?}");
    terminal.press(&["y"]);
    pilot.wait_status(&id, "idle", "done");
    terminal.enter("SCRIPT:question Which?");
    pilot.wait_status(&id, "needs-input", "ends in a question");
    terminal.enter("/compact");
    pilot.wait_status(&id, "working", "");
    home.release();
    let is_compacted = || std::fs::read_to_string(&home.logs()[0]).unwrap().contains("\"compacted\"").then_some(());
    crate::support::wait_until(crate::support::COPILOT, "it is compacted", String::new, is_compacted);
    pilot.wait_status(&id, "idle", "");
    terminal.enter("SCRIPT:fail Try");
    pilot.wait_status(&id, "failed", "401");
    terminal.enter("SCRIPT:hang Think");
    pilot.wait_status(&id, "working", "");
    let ran = pilot.run(&["stop", &id, "--end", "--yes"]);
    assert!(ran.code == Some(0), "{ran:?}");
    pilot.wait_status(&id, "crashed", "its process is gone");
    let said = pilot.run(&["status"]).out;
    assert!(!said.contains("needs you"), "whoever ended it knows: {said}");
}

#[test]
#[ignore = "takes long: tests/long.sh"]
fn codex_exec_runs_and_is_killed() {
    let home = CodexHome::new(false);
    let pilot = pilot(&home);
    let exec = |prompt: &str| {
        let mut command = home.command(&["exec", "--skip-git-repo-check", prompt]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut first = exec("SCRIPT:tool Dig");
    let id = home.id();
    pilot.wait_status(&id, "working", "running exec_command");
    home.release();
    assert!(first.wait().unwrap().success());
    pilot.wait_status(&id, "ended", "shut down");
    let mut second = exec("SCRIPT:hang Dig on");
    let of = |log: &std::path::PathBuf| log.display().to_string();
    let id = crate::support::wait_until(
        crate::support::COPILOT,
        "the second thread has a log",
        || format!("{:?}", home.logs()),
        || {
            home.logs()
                .iter()
                .map(of)
                .find(|log| !log.contains(&id))
                .map(|log| log[log.len() - 42..log.len() - 6].to_owned())
        },
    );
    pilot.wait_status(&id, "working", "the model thinks");
    second.kill().unwrap();
    second.wait().unwrap();
    pilot.wait_status(&id, "crashed", "its process is gone");
}

#[test]
#[ignore = "takes long: tests/long.sh"]
fn codexs_sub_agent_asks_as_its_thread() {
    let home = CodexHome::new(true);
    let pilot = pilot(&home);
    let terminal = home.terminal(&[]);
    terminal.enter("SCRIPT:agent Delegate it");
    let id = home.id();
    pilot.wait_status(&id, "needs-permission", "probably asks in its terminal");
    assert_eq!(pilot.rows().len(), 1, "the sub-agent has no row");
    let ran = pilot.run(&["approve", "--yes", &id]);
    assert!(ran.code == Some(0), "{ran:?}");
    pilot.wait_status(&id, "idle", "done");
    assert!(home.project().join("made-by-agent.txt").exists());
}
