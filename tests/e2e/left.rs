//! What a session is like when we have let go of it: as it was before we came.

use super::orders::Staying;
use super::reach::{Reach, hearing, ignored, site_seen};
use super::stage::Stage;
use crate::support::person::{Manner, Person};
use crate::support::{SOON, block_on, wait_until};
use pilotlight::agent::copilot::server::attached::{Policy, attach};
use rustix::process::Signal;

/// Nobody could be asked before we came, and nobody can be asked afterwards: a request must not stay open for ever, and must not
/// be allowed either.
#[test]
fn case_133_a_session_that_could_ask_nobody_denies_again_when_we_have_left() {
    for policy in [Policy::Ask, Policy::ApproveAll] {
        let reach = Reach::without_person();
        reach.session.send("SCRIPT:denied1 Paint the fence");
        reach.session.folder.wait_nth("assistant.turn_end", 2);
        let (events, _heard) = hearing();
        let denied = site_seen(&reach.session.folder, &[reach.server.address()], true, |sight| sight.denied = true);
        let attached = block_on(attach(&denied, policy, events, 1, &ignored)).unwrap();
        block_on(attached.leave());
        reach.session.send("SCRIPT:denied2 Paint the gate");
        let log = &reach.session.folder;
        wait_until(
            SOON,
            "it is denied",
            || log.dump(),
            || (log.types().iter().filter(|kind| *kind == "assistant.turn_end").count() >= 5).then_some(()),
        );
        assert!(!reach.home.project().join("denied0.txt").exists(), "{}", log.dump());
        assert!(!reach.home.project().join("denied1.txt").exists(), "{}", log.dump());
    }
}

/// Its own client was asked before we came, and is asked afterwards.
#[test]
fn case_133_a_session_with_somebody_to_ask_asks_that_one_when_we_have_left() {
    let reach = Reach::set(Manner::Waits);
    let (events, _heard) = hearing();
    let attached = block_on(attach(&reach.site(), Policy::ApproveAll, events, 1, &ignored)).unwrap();
    block_on(attached.leave());
    reach.ask();
    reach.person.now(Manner::Approves);
    reach.session.folder.wait("permission.completed");
    reach.home.go();
    reach.session.folder.wait_nth("assistant.turn_end", 2);
    reach.session.folder.assert_one_chain();
}

/// Another client is attached beside us.
#[test]
fn case_133_another_client_goes_on_as_before() {
    let reach = Reach::without_person();
    let other = reach.server.connect();
    let person = Person::who(Manner::Waits);
    let _resumed = reach.server.resume(&other, &reach.session.id(), &person, None);
    let (events, _heard) = hearing();
    let attached = block_on(attach(&reach.site(), Policy::Ask, events, 1, &ignored)).unwrap();
    reach.ask();
    block_on(attached.leave());
    person.now(Manner::Approves);
    reach.session.folder.wait("permission.completed");
    reach.home.go();
    reach.session.folder.wait_nth("assistant.turn_end", 2);
    reach.session.folder.assert_one_chain();
}

/// What it asked while we were there is answered as it would have been without us.
#[test]
fn case_133_what_was_asked_of_a_command_that_leaves_does_not_wait_for_ever() {
    let stage = Stage::without_person();
    let (id, log) = (stage.session.id(), &stage.session.folder);
    stage.session.send("SCRIPT:denied3 Paint the fence");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.told("permission-lost", "");
    let mut one = Staying::start(stage.pilot.command(&["reconnect", &id]));
    one.says("stays connected");
    stage.session.send("SCRIPT:denied1 Paint the gate");
    stage.session.folder.wait("permission.requested");
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(0), "{}", one.said());
    let answer = log.wait("permission.completed");
    assert!(answer["data"]["result"]["kind"].as_str().unwrap().starts_with("denied-no-approval-rule"), "{answer}");
    log.wait_nth("assistant.turn_end", 6);
    stage.session.send("SCRIPT:denied1 Paint the house");
    log.wait_nth("assistant.turn_end", 8);
    assert_eq!(log.types().iter().filter(|kind| *kind == "permission.requested").count(), 1, "{}", log.dump());
    assert!(!stage.home.project().join("denied0.txt").exists());
}
