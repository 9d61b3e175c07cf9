//! When Copilot asks in a terminal whether Pilotlight may answer there: not while somebody types, and not where it remembers.

use super::{Bridged, Stage, bridge, extension_in, ours};
use crate::e2e::orders::Staying;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::terminal::CONSENT;
use crate::support::{COPILOT, wait, wait_until};
use std::time::{Duration, Instant};

/// The keys would answer it: "2" there means "always".
#[test]
#[ignore = "tests/long.sh"]
fn case_209_the_question_waits_while_somebody_types() {
    let bridged = Bridged::new(&[]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:plain Paint the wall");
    terminal.folder.wait("assistant.turn_end");
    bridged.pilot.wait_status(&id, "idle", "");
    // What is read within eight seconds of the prompt may be the prompt.
    let pass = |millis| {
        let end = Instant::now() + Duration::from_millis(millis);
        wait(COPILOT, || (Instant::now() > end).then_some(()));
    };
    pass(9000);
    terminal.press(&["2"]);
    let mut one = Staying::start(bridged.pilot.command_with_tray(&["let-answer", &id]));
    one.wait_output("waiting until nobody types");
    let mut typed = "2".to_owned();
    for _ in 0..24 {
        pass(500);
        terminal.press(&["2"]);
        typed.push('2');
        wait_until(
            COPILOT,
            "its prompt takes the keys",
            || terminal.dump(),
            || terminal.screen().contains(&typed).then_some(()),
        );
        assert!(!terminal.screen().contains(CONSENT), "{}", terminal.dump());
    }
    terminal.wait_screen(CONSENT);
    assert_eq!(one.code(), Some(0), "{}", one.output());
    terminal.press(&["1"]);
    terminal.folder.wait("permission.completed");
    terminal.wait_no_screen(CONSENT);
    assert!(terminal.screen().contains(&typed), "the draft is still there\n{}", terminal.dump());
    assert!(!bridged.home.dir().join("permissions-config.json").exists());
}

/// Where the prompt was the last that was typed, nothing is waited for.
#[test]
#[ignore = "tests/long.sh"]
fn case_209_after_a_prompt_the_question_comes_at_once() {
    let bridged = Bridged::new(&[]);
    let id = bridged.id();
    bridged.terminal.enter("SCRIPT:plain Paint the wall");
    bridged.terminal.folder.wait("assistant.turn_end");
    bridged.pilot.wait_status(&id, "idle", "");
    let ran = bridged.run_ok(&["let-answer", &id]);
    assert!(ran.out.contains("asks in its terminal") && ran.out.contains("after /new"), "it says where: {ran:?}");
    assert!(!(ran.out + &ran.err).contains("waiting until nobody types"));
    bridged.terminal.wait_screen(CONSENT);
    let pilot = &bridged.pilot;
    pilot.wait_menu(&id, "Copilot asks in its terminal whethe");
    bridged.terminal.press(&["Escape"]);
    bridged.terminal.wait_no_screen(CONSENT);
    let says_so = || pilot.panel().layout().1.words().contains("asks in its terminal whethe");
    wait_until(COPILOT, "its menu no longer says that it asks", || pilot.log(), || (!says_so()).then_some(()));
}

/// A busy Copilot takes seconds to grant what it remembers. It lists no question meanwhile.
#[test]
#[ignore = "tests/long.sh"]
fn case_200a_a_remembered_consent_that_is_granted_late_is_not_taken_for_misread() {
    let stage = Stage::in_home(&[], |home| {
        home.remember_consent(&home.project());
        let file = extension_in(&ours(home)).join("extension.mjs");
        let code = std::fs::read_to_string(&file).unwrap();
        let (granted, late) = ("await CALLS.elevate();", "new Promise((resolve) => setTimeout(resolve, 4000));");
        let changed = code.replace(granted, &format!("{granted} await {late}"));
        assert_ne!(code, changed);
        std::fs::write(file, changed).unwrap();
    });
    stage.terminal.enter("SCRIPT:plain Paint the shed");
    stage.connection.wait("it asks", |message| message["t"] == "consent" && message["open"] == true);
    stage.connection.wait("it may answer", |message| message["t"] == "consent" && message["elevated"] == true);
    let received = stage.connection.received();
    assert!(!received.iter().any(|message| message["unexpected"] == true), "{received:?}");
}

/// Before anything is installed.
#[test]
fn who_installs_it_is_told_what_else_that_makes_possible() {
    let (home, model) = (Home::new("project"), Model::start());
    let ran = bridge(&home, &model, &["install"]);
    let told = ran.out + &ran.err;
    for part in ["to make Copilot stop asking you", "Copilot's sandbox and its --deny-tool"] {
        assert!(ran.code == Some(4) && told.contains(part), "{told}");
    }
    assert!(!ours(&home).join(".local/share/pilotlight/bridge").exists());
}
