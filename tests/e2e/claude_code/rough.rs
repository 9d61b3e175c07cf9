//! The bridge of the real Claude Code in rough surroundings: trays that come and go or stand still, a full disk, a folder that is
//! gone, another machine. Whatever happens, the dialog in the terminal works.

use super::answers::{Bridged, DIALOG, install, user};
use crate::support::claude::ClaudeHome;
use crate::support::pilotlight::Pilot;
use crate::support::process::signal;
use crate::support::{COPILOT, SOON, wait_until};
use rustix::process::{Signal, geteuid};
use std::process::Command;

/// A tool of the session can have started the new tray: what that session asks is left to its terminal, and a new one is answered.
#[test]
fn case_810_a_tray_that_is_restarted_between_request_and_answer_leaves_it_to_the_terminal() {
    let mut bridged = Bridged::new();
    bridged.ask("twice");
    bridged.pilot.restart_tray_apart();
    bridged.wait_no_hook();
    bridged.pilot.wait_status_in_tray(&bridged.id, "needs-permission", "asks for permission: Bash");
    let refused = || {
        let late = bridged.pilot.run(&["approve", "--yes", &bridged.id]);
        assert!(late.code != Some(0) && late.err.contains("then restart the session"), "{late:?}");
    };
    refused();
    bridged.claude.accept(DIALOG);
    bridged.wait_made("made");
    bridged.claude.wait_screen("touch again");
    bridged.wait_no_hook();
    bridged.pilot.wait_status_in_tray(&bridged.id, "needs-permission", "asks for permission: Bash");
    refused();
    bridged.claude.accept(DIALOG);
    bridged.wait_made("again");
    let (claude, id) = bridged.another();
    claude.enter("SCRIPT:run Paint the fence");
    let asks = || bridged.pilot.row_in_tray(&id).filter(|row| row["request"]["text"] == "npm run paint");
    wait_until(COPILOT, "the tray has its request", || bridged.dump(), asks);
    bridged.run_ok(&["deny", "--yes", &id]);
    claude.wait_screen("It is done.");
}

/// Nothing that the tray keeps can be written.
#[test]
#[ignore = "tests/long.sh"]
fn case_812_on_a_full_disk_requests_are_answered_and_the_terminal_works() {
    if !geteuid().is_root() {
        return;
    }
    let fill = "unshare -m sh -c 'mount -t tmpfs -o size=64k none .local/state/pilotlight; touch .local/state/pilotlight/welcomed; \
                dd if=/dev/zero of=.local/state/pilotlight/rest bs=4k status=none; exec ./tray'";
    let mut bridged = Bridged::beside(|pilot| pilot.restart_tray_by(fill));
    bridged.ask("twice");
    bridged.run_ok(&["approve", "--yes", &bridged.id]);
    bridged.wait_made("made");
    bridged.claude.accept(DIALOG);
    bridged.wait_made("again");
    bridged.pilot.end_tray_by();
}

/// The hook that waits keeps its connection; later ones find no tray.
#[test]
#[ignore = "tests/long.sh"]
fn case_813_without_the_runtime_folder_what_was_asked_is_answered_and_the_next_is_left_to_the_terminal() {
    let bridged = Bridged::new();
    let popups = bridged.pilot.popups();
    bridged.ask("twice");
    let popup = popups.wait_for(1);
    std::fs::remove_dir_all(bridged.pilot.user().join("run/pilotlight")).unwrap();
    popups.click_after_reading(popup.number, "approve");
    bridged.wait_made("made");
    bridged.claude.wait_screen("touch again");
    bridged.wait_no_hook();
    bridged.claude.accept(DIALOG);
    bridged.wait_made("again");
    bridged.claude.wait_screen("It is done.");
}

/// The hook stays quiet until the tray goes on, which then lets it go.
#[test]
#[ignore = "tests/long.sh"]
fn case_744_a_tray_that_stops_while_a_hook_waits_holds_nothing_up() {
    let bridged = Bridged::new();
    bridged.ask("touch");
    let tray = bridged.pilot.tray_pid();
    signal(tray, Signal::STOP);
    bridged.claude.accept(DIALOG);
    bridged.wait_made("made");
    bridged.claude.wait_screen("It is done.");
    assert_eq!(bridged.claude.hooks().len(), 1, "{}", bridged.dump());
    assert!(!bridged.claude.screen().contains("hook"), "{}", bridged.claude.screen());
    signal(tray, Signal::CONT);
    bridged.wait_no_hook();
    bridged.wait_decision("user_temporary", "accept");
    bridged.pilot.wait_status(&bridged.id, "idle", "");
}

/// A request that is too large to be handed over is left to the terminal.
#[test]
#[ignore = "tests/long.sh"]
fn case_814_a_request_of_10_mb_is_left_to_the_terminal() {
    let bridged = Bridged::new();
    bridged.claude.enter("SCRIPT:large Paint the fence");
    bridged.claude.wait_screen(DIALOG);
    bridged.wait_no_hook();
    assert!(!bridged.pilot.log().contains("a hook asks"), "{}", bridged.dump());
    bridged.claude.accept(DIALOG);
    let size = || std::fs::metadata(bridged.made("large")).ok().map(|meta| meta.len());
    wait_until(COPILOT, "its tool has run", || bridged.dump(), || size().filter(|size| *size == 10 << 20));
}

#[test]
#[ignore = "tests/long.sh"]
fn case_815_the_status_of_the_bridge_says_which_sessions_it_covers() {
    let (pilot, home) = user("");
    let older = home.start(&[]);
    let of = |id: &str, words: &str| {
        let line = format!("{}  ", &id[..8]);
        let status = || pilot.run(&["bridge", "status"]).out;
        let says = || status().lines().any(|it| it.trim_start().starts_with(&line) && it.contains(words)).then_some(());
        wait_until(SOON, &format!("{id} is {words:?}"), status, says);
    };
    of(&older.id(), "not covered: run `pilotlight bridge install`, then restart it");
    install(pilot.command_with_tray(&[]));
    of(
        &older.id(),
        "not covered: it started before the bridge was installed; enter /reload-plugins in it, or restart it",
    );
    let younger = home.start(&[]);
    of(&younger.id(), "covered; you can answer what it asks");
    younger.enter("SCRIPT:touch Paint the fence");
    of(&younger.id(), "covered; you can answer its permission requests");
    older.enter("/reload-plugins");
    older.wait_screen("Reloaded");
    older.enter("SCRIPT:touch Paint the fence");
    of(&older.id(), "covered; you can answer its permission requests");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_816_what_is_asked_on_another_machine_is_answered_from_here() {
    const PILOTLIGHT: &str = env!("CARGO_BIN_EXE_pilotlight");
    let home = ClaudeHome::new();
    let user = format!("HOME={}", home.user().display());
    let path = format!("PATH={}", std::env::var("PATH").unwrap_or_default());
    let there = ["env", "-i", &user, &path, "PILOTLIGHT_DISCOVER=false", PILOTLIGHT];
    let mut command = Command::new(PILOTLIGHT);
    command.env_clear().env("HOME", home.user());
    install(command);
    let words = serde_json::to_string(&[&there[..], &["serve", "--stdio"]].concat()).unwrap();
    let empty = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(empty.path().join("session-state")).unwrap();
    let config = format!("[[host]]\nname = \"devbox\"\ncommand = {words}\n");
    let pilot = Pilot::watching(vec![empty.path().to_owned()], &config, &[]);
    // What connects there is no login, and counts as the user's because it is older than what runs the session.
    let socket = home.user().join(".local/state/pilotlight/hooks.sock");
    wait_until(SOON, "hooks are listened for there", || pilot.log(), || socket.exists().then_some(()));

    let claude = home.start(&[]);
    let id = claude.id();
    let made = |file: &str| {
        let made = || home.project().join(file).exists().then_some(());
        wait_until(COPILOT, "its tool has run", || format!("{}\n{}", claude.screen(), pilot.log()), made);
    };
    claude.enter("SCRIPT:twice Paint the fence");
    let row = pilot.wait_status_in_tray(&id, "needs-permission", "");
    assert_eq!((&row["host"], &row["request"]["text"]), (&"devbox".into(), &"touch made".into()), "{row}");
    pilot.click(&id, "Approve once");
    made("made");
    pilot.row_where(&id, "the next is asked", |row| row["request"]["text"] == "touch again");
    let ran = pilot.run(&["deny", "--yes", "--note", "Use a brush, please.", &id]);
    assert!(ran.code == Some(0) && ran.out.contains("denied 1 request with a note"), "{ran:?}");
    claude.wait_log("Use a brush, please.");
    claude.wait_screen("It is done.");
    assert!(!home.project().join("again").exists());
}
