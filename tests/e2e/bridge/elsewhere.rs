//! A terminal on another machine: what its bridge does for the tray there, it does for the one here.

use super::Bridged;
use crate::support::pilotlight::Pilot;
use crate::support::terminal::{CONSENT, DIALOG};
use crate::support::{COPILOT, wait_until};

/// A Pilotlight on another machine than this terminal's: that one is a host for it.
fn pilot_of(bridged: &Bridged) -> Pilot {
    let user = bridged.pilot.user().display();
    let (home, path) = (format!("HOME={user}"), format!("PATH={}", std::env::var("PATH").unwrap_or_default()));
    let (run, config) = (format!("XDG_RUNTIME_DIR={user}/run"), format!("PILOTLIGHT_CONFIG={user}/pilotlight.toml"));
    let program = env!("CARGO_BIN_EXE_pilotlight");
    let words = ["env", "-i", &home, &path, &run, &config, "LANG=C.UTF-8", program, "serve", "--stdio"];
    let words = serde_json::to_string(&words).unwrap();
    // The test has no terminal that is older than the session.
    let host = format!("[actions]\nscripts-may-answer = true\n[[host]]\nname = \"devbox\"\ncommand = {words}\n");
    Pilot::watching(Vec::new(), &host, &[])
}

#[test]
#[ignore = "tests/long.sh"]
fn case_477_the_question_whether_pilotlight_may_answer_is_asked_on_another_machine() {
    let bridged = Bridged::new(&[]);
    let (id, terminal, pilot) = (bridged.id(), &bridged.terminal, pilot_of(&bridged));
    terminal.enter("SCRIPT:plain Paint the wall");
    terminal.folder.wait("assistant.turn_end");
    let dump = || format!("{}\n{}\n{}", pilot.log(), bridged.pilot.log(), terminal.dump());
    let is = |bridge: &str| {
        let row = || pilot.row_in_tray(&id).filter(|row| row["status"] == "idle" && row["owner"]["bridge"] == bridge);
        let row = wait_until(COPILOT, &format!("its bridge is {bridge}"), dump, row);
        assert_eq!(row["host"], "devbox", "{row}");
    };
    is("joined");
    let ran = pilot.run(&["let-answer", "--host", "devbox", &id]);
    assert!(ran.code == Some(0) && ran.out.contains("asks in its terminal"), "{ran:?}\n{}", dump());
    terminal.wait_screen(CONSENT);
    terminal.press(&["1"]);
    terminal.folder.wait("permission.completed");
    terminal.wait_no_screen(CONSENT);
    is("elevated");
    // It is asked once.
    let again = pilot.run(&["let-answer", &id]);
    assert!(again.code == Some(4) && again.err.contains("already"), "{again:?}");
    terminal.enter("SCRIPT:sleep0 Paint the gate");
    terminal.folder.wait_nth("permission.requested", 2);
    terminal.wait_screen(DIALOG);
    pilot.wait_status_in_tray(&id, "needs-permission", "");
    let ran = pilot.run(&["approve", "--yes", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}\n{}", dump());
    terminal.folder.wait_nth("permission.completed", 2);
    terminal.wait_no_screen(DIALOG);
}
