//! Double clicks, typing during an order, and killed processes: no tool runs without approval, and the terminal
//! continues.

use super::Bridged;
use super::stories::{ends, open};
use crate::support::desktop::panel::Entry;
use crate::support::home::Folder;
use crate::support::process::{is_live, signal};
use crate::support::terminal::DIALOG;
use crate::support::{COPILOT, wait_until};
use rustix::process::Signal;
use std::time::Duration;

/// Two immediate clicks on the same item while two requests are open: the second click has no effect.
#[test]
#[ignore = "tests/long.sh"]
fn a_double_click_approves_one_request() {
    let bridged = Bridged::consented();
    let (id, terminal, panel) = (bridged.id(), &bridged.terminal, bridged.pilot.panel());
    for round in 0..3 {
        terminal.enter(&format!("SCRIPT:two Paint the fence {round}"));
        terminal.folder.wait_nth("permission.requested", 2 * round + 3);
        bridged.pilot.wait_status(&id, "needs-permission", "");
        let approves = |entry: &Entry| entry.shown().starts_with("Approve once") && entry.enabled;
        panel.wait_for("it can be approved", approves);
        panel.open();
        let item = panel.wait_for("it can be approved", approves).id;
        for _click in 0..2 {
            panel.click(item);
        }
        panel.close();
        terminal.folder.wait_nth("permission.completed", 2 * round + 2);
        // The other one is still open.
        bridged.pilot.wait_status(&id, "needs-permission", "");
        bridged.run_ok(&["deny", "--yes", &id]);
        terminal.folder.wait_nth("permission.completed", 2 * round + 3);
        let how: Vec<_> = ends(&terminal.folder).into_iter().skip(2 * round + 1).map(|(how, _)| how).collect();
        assert_eq!(how, ["approved", "denied-interactively-by-user"], "{}", terminal.dump());
        bridged.pilot.wait_status(&id, "idle", "");
    }
}

/// A draft that the user is typing is neither lost nor sent by our answers, stops and prompts.
#[test]
#[ignore = "tests/long.sh"]
fn a_half_typed_draft_is_neither_lost_nor_sent() {
    const DRAFT: &str = "please fix the 2nd bug";
    let bridged = Bridged::new(&["--allow-all-tools"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:name Paint the gate");
    bridged.pilot.wait_status_in_tray(&id, "needs-input", "Which name?");
    // Typed into the form's own field: the first complete answer counts.
    terminal.type_only("Grace");
    bridged.run_ok(&["answer", &id, "--request", &open(&bridged), "--text", "Ada"]);
    let result = terminal.folder.wait("tool.execution_complete").to_string();
    assert!(result.contains("Ada") && !result.contains("Grace"), "{result}");
    bridged.pilot.wait_status_in_tray(&id, "idle", "");

    terminal.enter("SCRIPT:hang Paint the fence");
    bridged.model.wait_requested("hang", 0);
    terminal.type_only(DRAFT);
    bridged.pilot.wait_status(&id, "working", "");
    bridged.run_ok(&["stop", &id]);
    terminal.folder.wait("abort");
    bridged.pilot.wait_status(&id, "idle", "");
    terminal.wait_screen(DRAFT);
    terminal.press(&["C-u"]);

    terminal.enter("SCRIPT:err400 Paint the shed");
    bridged.pilot.wait_status(&id, "failed", "");
    terminal.type_only(DRAFT);
    bridged.pilot.click(&id, "Continue");
    terminal.folder.wait_nth("user.message", 4);
    bridged.pilot.wait_status(&id, "failed", "");
    terminal.wait_screen(DRAFT);
    let prompts = terminal.folder.events();
    let prompts: Vec<_> = prompts.iter().filter(|event| event["type"] == "user.message").collect();
    assert!(prompts.len() == 4 && !prompts.iter().any(|prompt| prompt.to_string().contains(DRAFT)), "{prompts:?}");
}

/// Kills this process at the `run`th moment of an approval. The tool runs only if it was approved once. Otherwise its
/// request stays open in the terminal, where the user approves it.
fn kill_during_approval(bridged: &Bridged, folder: &Folder, run: usize, process: u32) {
    let (id, terminal) = (folder.id(), &bridged.terminal);
    let marker = bridged.home.project().join("many1.txt");
    let _ = std::fs::remove_file(&marker);
    let [asked, ended, done] = ["permission.requested", "permission.completed", "tool.execution_complete"]
        .map(|kind| (kind, folder.types().iter().filter(|one| *one == kind).count()));
    terminal.enter(&format!("SCRIPT:many1 Paint the fence {run}"));
    folder.wait_nth(asked.0, asked.1 + 1);
    terminal.wait_screen(DIALOG);
    let elevated = || bridged.pilot.row_in_tray(&id).filter(|row| row["owner"]["bridge"] == "elevated").map(|_| ());
    wait_until(COPILOT, "it may answer there", || bridged.pilot.log(), elevated);
    let ran = std::thread::scope(|threads| {
        let clicked = threads.spawn(|| bridged.pilot.run(&["approve", "--yes", &id]));
        // At different moments of the command.
        #[expect(clippy::disallowed_methods, reason = "the test tries different moments")]
        std::thread::sleep(Duration::from_millis(12 * run as u64));
        signal(process, Signal::KILL);
        clicked.join().unwrap()
    });
    let is_over = || ends(folder).len() > ended.1;
    match ran.code {
        Some(0) => assert!(is_over(), "{ran:?}\n{}", folder.dump()),
        // Refused, failed, or unconfirmed.
        Some(1 | 4 | 5) if !is_over() => {
            terminal.approve();
            assert_eq!(folder.wait_nth(ended.0, ended.1 + 1)["data"]["decisionSource"], "human_response");
        }
        Some(5) => {}
        _ => panic!("{ran:?}\n{}", folder.dump()),
    }
    folder.wait_nth(done.0, done.1 + 1);
    assert_eq!(ends(folder).len(), ended.1 + 1, "{}", folder.dump());
    assert!(marker.exists() && is_live(terminal.pid()));
    terminal.wait_no_screen(DIALOG);
}

fn with_remembered_consent() -> Bridged {
    Bridged::prepared(&[], |home, _| home.remember_consent(&home.project()))
}

#[test]
#[ignore = "tests/long.sh"]
fn a_bridge_killed_during_an_approval() {
    let bridged = with_remembered_consent();
    let mut known = vec![bridged.terminal.folder.clone()];
    for run in 0..6 {
        let folder = known.last().unwrap();
        kill_during_approval(&bridged, folder, run, bridged.terminal.extension());
        bridged.terminal.enter("/clear");
        let ids: Vec<_> = known.iter().map(Folder::id).collect();
        let next = bridged.next_session(&ids);
        bridged.pilot.wait_bridges(1, &next.id());
        known.push(next);
    }
}

#[test]
#[ignore = "tests/long.sh"]
fn a_tray_killed_during_an_approval() {
    let mut bridged = with_remembered_consent();
    bridged.pilot.end_tray();
    for run in 0..6 {
        let bridges = bridged.pilot.bridge_count("");
        let tray = bridged.another_tray(env!("CARGO_BIN_EXE_pilotlight").as_ref());
        bridged.pilot.wait_bridges(bridges + 1, "");
        kill_during_approval(&bridged, &bridged.terminal.folder, run, tray.pid());
    }
}
