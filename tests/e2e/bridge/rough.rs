//! Who is in a hurry, types meanwhile, or kills what is at work: no tool runs that nobody approved, and the terminal goes on.

use super::Bridged;
use super::stories::{ends, open};
use crate::support::desktop::panel::Entry;
use crate::support::home::Folder;
use crate::support::process::{is_live, signal};
use crate::support::terminal::DIALOG;
use crate::support::{COPILOT, wait_until};
use rustix::process::Signal;
use std::time::Duration;

/// Two clicks on the same item, as fast as they go, while two requests are open: the second one answers nothing.
#[test]
#[ignore = "tests/long.sh"]
fn a_double_click_approves_one_request() {
    let bridged = Bridged::set(&[]);
    bridged.allowed();
    let (id, terminal, panel) = (bridged.id(), &bridged.terminal, bridged.pilot.panel());
    for round in 0..3 {
        terminal.enter(&format!("SCRIPT:two Paint the fence {round}"));
        terminal.folder.wait_nth("permission.requested", 2 * round + 3);
        bridged.pilot.told(&id, "needs-permission", "");
        let approves = |entry: &Entry| entry.shown().starts_with("Approve once") && entry.enabled;
        panel.wait_for("it can be approved", approves);
        panel.rest();
        panel.open();
        let item = panel.wait_for("it can be approved", approves).id;
        for _click in 0..2 {
            panel.click(item);
        }
        panel.close();
        terminal.folder.wait_nth("permission.completed", 2 * round + 2);
        // The other one is open still.
        bridged.pilot.told(&id, "needs-permission", "");
        bridged.done(&["deny", &id]);
        terminal.folder.wait_nth("permission.completed", 2 * round + 3);
        let how: Vec<_> = ends(&terminal.folder).into_iter().skip(2 * round + 1).map(|(how, _)| how).collect();
        assert_eq!(how, ["approved", "denied-interactively-by-user"], "{}", terminal.dump());
        bridged.pilot.told(&id, "idle", "");
    }
}

/// What its user has half typed is lost by no answer, no stop and no prompt of ours, and is sent by none.
#[test]
#[ignore = "tests/long.sh"]
fn what_is_half_typed_stays_and_is_not_sent() {
    const DRAFT: &str = "please fix the 2nd bug";
    let bridged = Bridged::set(&["--allow-all-tools"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:name Paint the gate");
    bridged.pilot.told_beside(&id, "needs-input", "Which name?");
    // Into the form's own field: whoever answers first counts, as a whole.
    terminal.type_only("Grace");
    bridged.done(&["answer", &id, "--request", &open(&bridged), "--text", "Ada"]);
    let result = terminal.folder.wait("tool.execution_complete").to_string();
    assert!(result.contains("Ada") && !result.contains("Grace"), "{result}");
    bridged.pilot.told_beside(&id, "idle", "");

    terminal.enter("SCRIPT:hang Paint the fence");
    bridged.model.wait_asked("hang", 0);
    terminal.type_only(DRAFT);
    bridged.pilot.told(&id, "working", "");
    bridged.done(&["stop", &id]);
    terminal.folder.wait("abort");
    bridged.pilot.told(&id, "idle", "");
    terminal.wait_screen(DRAFT);
    terminal.press(&["C-u"]);

    terminal.enter("SCRIPT:err400 Paint the shed");
    bridged.pilot.told(&id, "failed", "");
    terminal.type_only(DRAFT);
    bridged.pilot.click(&id, "Send on");
    terminal.folder.wait_nth("user.message", 4);
    bridged.pilot.told(&id, "failed", "");
    terminal.wait_screen(DRAFT);
    let prompts = terminal.folder.events();
    let prompts: Vec<_> = prompts.iter().filter(|event| event["type"] == "user.message").collect();
    assert!(prompts.len() == 4 && !prompts.iter().any(|prompt| prompt.to_string().contains(DRAFT)), "{prompts:?}");
}

/// Kills this process at the `run`th moment of an approval. What runs was approved once; what was not is asked in the terminal as before,
/// where its user approves it.
fn interrupted(bridged: &Bridged, folder: &Folder, run: usize, process: u32) {
    let (id, terminal) = (folder.id(), &bridged.terminal);
    let marker = bridged.home.project().join("many1.txt");
    let _ = std::fs::remove_file(&marker);
    let [asked, ended, done] = ["permission.requested", "permission.completed", "tool.execution_complete"]
        .map(|kind| (kind, folder.types().iter().filter(|one| *one == kind).count()));
    terminal.enter(&format!("SCRIPT:many1 Paint the fence {run}"));
    folder.wait_nth(asked.0, asked.1 + 1);
    terminal.wait_screen(DIALOG);
    let elevated = || bridged.pilot.row_beside(&id).filter(|row| row["owner"]["bridge"] == "elevated").map(|_| ());
    wait_until(COPILOT, "it may answer there", || bridged.pilot.log(), elevated);
    let ran = std::thread::scope(|threads| {
        let clicked = threads.spawn(|| bridged.pilot.run(&["approve", &id]));
        // At any moment of what the command does.
        #[expect(clippy::disallowed_methods, reason = "the moments are what is tried")]
        std::thread::sleep(Duration::from_millis(12 * run as u64));
        signal(process, Signal::KILL);
        clicked.join().unwrap()
    });
    let is_over = || ends(folder).len() > ended.1;
    match ran.code {
        Some(0) => assert!(is_over(), "{ran:?}\n{}", folder.dump()),
        // Refused, failed, or it may have happened.
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

fn remembered() -> Bridged {
    Bridged::changed(&[], |home, _| home.remember_consent(&home.project()))
}

#[test]
#[ignore = "tests/long.sh"]
fn a_bridge_that_is_killed_in_the_middle_of_an_approval() {
    let bridged = remembered();
    let mut known = vec![bridged.terminal.folder.clone()];
    for run in 0..6 {
        let folder = known.last().unwrap();
        interrupted(&bridged, folder, run, bridged.terminal.extension());
        bridged.terminal.enter("/clear");
        let ids: Vec<_> = known.iter().map(Folder::id).collect();
        let next = bridged.next_session(&ids);
        bridged.pilot.has_bridges(1, &next.id());
        known.push(next);
    }
}

#[test]
#[ignore = "tests/long.sh"]
fn a_tray_that_is_killed_in_the_middle_of_an_approval() {
    let mut bridged = remembered();
    bridged.pilot.end_tray();
    for run in 0..6 {
        let bridges = bridged.pilot.bridges("");
        let tray = bridged.another_tray(env!("CARGO_BIN_EXE_pilotlight").as_ref());
        bridged.pilot.has_bridges(bridges + 1, "");
        interrupted(&bridged, &bridged.terminal.folder, run, tray.pid());
    }
}
