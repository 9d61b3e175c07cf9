//! A terminal on another machine: what its bridge does for the tray there, it does for the one here.

use super::Bridged;
use super::callers::OlderShell;
use crate::support::pilotlight::Pilot;
use crate::support::terminal::{CONSENT, DIALOG, Terminal};
use crate::support::{COPILOT, wait_until};

/// A Pilotlight on another machine than this terminal's: that one is a host for it.
fn pilot_of(bridged: &Bridged) -> Pilot {
    let user = bridged.pilot.user().display();
    let (home, path) = (format!("HOME={user}"), format!("PATH={}", std::env::var("PATH").unwrap_or_default()));
    let (run, config) = (format!("XDG_RUNTIME_DIR={user}/run"), format!("PILOTLIGHT_CONFIG={user}/pilotlight.toml"));
    let program = env!("CARGO_BIN_EXE_pilotlight");
    let words = [
        "env",
        "-i",
        &home,
        &path,
        &run,
        &config,
        "LANG=C.UTF-8",
        "PILOTLIGHT_DISCOVER=false",
        program,
        "serve",
        "--stdio",
    ];
    let host = format!("[[host]]\nname = \"devbox\"\ncommand = {}\n", serde_json::to_string(&words).unwrap());
    Pilot::watching(Vec::new(), &host, &[])
}

#[test]
#[ignore = "tests/long.sh"]
fn case_477_the_question_whether_pilotlight_may_answer_is_asked_on_another_machine() {
    let bridged = Bridged::new(&[]);
    let pilot = pilot_of(&bridged);
    // What is older than the session is no tool of it: this shell, and the connection.
    let shell = OlderShell::start();
    wait_until(COPILOT, "the machine is reached", || pilot.log(), || pilot.row_in_tray(&bridged.id()));
    let terminal = Terminal::start(&bridged.home, &bridged.model, &[]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:plain Paint the wall");
    terminal.folder.wait("assistant.turn_end");
    let dump = || format!("{}\n{}\n{}", pilot.log(), bridged.pilot.log(), terminal.dump());
    let is = |bridge: &str| {
        let row = || pilot.row_in_tray(&id).filter(|row| row["status"] == "idle" && row["owner"]["bridge"] == bridge);
        let row = wait_until(COPILOT, &format!("its bridge is {bridge}"), dump, row);
        assert_eq!(row["host"], "devbox", "{row}");
    };
    is("joined");
    let (code, said) = shell.run(&pilot, &["let-answer", "--host", "devbox", &id]);
    assert!(code == "0" && said.contains("asks in its terminal"), "{code} {said}\n{}", dump());
    terminal.wait_screen(CONSENT);
    terminal.press(&["1"]);
    terminal.folder.wait("permission.completed");
    terminal.wait_no_screen(CONSENT);
    is("elevated");
    // It is asked once.
    let (code, said) = shell.run(&pilot, &["let-answer", &id]);
    assert!(code == "4" && said.contains("already"), "{code} {said}");
    terminal.enter("SCRIPT:sleep0 Paint the gate");
    terminal.folder.wait_nth("permission.requested", 2);
    terminal.wait_screen(DIALOG);
    pilot.wait_status_in_tray(&id, "needs-permission", "");
    let (code, said) = shell.run(&pilot, &["approve", "--yes", &id]);
    assert_eq!(code, "0", "{said}\n{}", dump());
    terminal.folder.wait_nth("permission.completed", 2);
    terminal.wait_no_screen(DIALOG);
}
