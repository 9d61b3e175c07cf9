//! After we detach, a session behaves as before we attached.

use super::orders::Staying;
use super::reach::{Reach, attach, context_with, event_channel};
use super::stage::Stage;
use crate::support::person::{Manner, Person};
use crate::support::{SOON, block_on, wait_until};
use pilotlight_agents::channel::order::Policy;
use rustix::process::Signal;

/// Nobody could be asked before we attached, and nobody can be asked after we detached. A request must neither stay
/// open forever nor be allowed.
#[test]
#[ignore = "tests/long.sh"]
fn case_133_a_session_that_could_ask_nobody_denies_again_after_we_detach() {
    for policy in [Policy::Ask, Policy::ApproveAll] {
        let reach = Reach::without_person();
        reach.session.send("SCRIPT:denied1 Paint the fence");
        reach.session.folder.wait_nth("assistant.turn_end", 2);
        let (events, _received) = event_channel();
        let denied =
            context_with(&reach.session.folder, &[reach.server.address()], true, |log_view| log_view.denied = true);
        let attached = block_on(attach(&denied, policy, events, 1)).unwrap();
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

/// Its own client is asked again after we detached.
#[test]
fn case_133_a_session_asks_its_own_client_again_after_we_detach() {
    let reach = Reach::new(Manner::Waits);
    let (events, _received) = event_channel();
    let attached = block_on(attach(&reach.context(), Policy::ApproveAll, events, 1)).unwrap();
    block_on(attached.leave());
    reach.ask();
    reach.person.set_manner(Manner::Approves);
    reach.session.folder.wait("permission.completed");
    reach.home.release_tools();
    reach.session.folder.wait_nth("assistant.turn_end", 2);
    reach.session.folder.assert_one_chain();
}

/// Another client is attached at the same time.
#[test]
#[ignore = "tests/long.sh"]
fn case_133_another_client_is_not_affected() {
    let reach = Reach::without_person();
    let other = reach.server.connect();
    let person = Person::new(Manner::Waits);
    let _resumed = reach.server.resume(&other, &reach.session.id(), &person, None);
    let (events, _received) = event_channel();
    let attached = block_on(attach(&reach.context(), Policy::Ask, events, 1)).unwrap();
    reach.ask();
    block_on(attached.leave());
    person.set_manner(Manner::Approves);
    reach.session.folder.wait("permission.completed");
    reach.home.release_tools();
    reach.session.folder.wait_nth("assistant.turn_end", 2);
    reach.session.folder.assert_one_chain();
}

/// A request made while we were attached is answered as it would be without us.
#[test]
#[ignore = "tests/long.sh"]
fn case_133_a_request_to_a_command_that_exits_does_not_stay_open() {
    let stage = Stage::without_person();
    let (id, log) = (stage.session.id(), &stage.session.folder);
    stage.session.send("SCRIPT:denied3 Paint the fence");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.wait_status("permission-lost", "");
    let mut one = Staying::start(stage.pilot.command(&["reconnect", &id]));
    one.wait_output("stays connected");
    stage.session.send("SCRIPT:denied1 Paint the gate");
    stage.session.folder.wait("permission.requested");
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(0), "{}", one.output());
    let answer = log.wait("permission.completed");
    assert!(answer["data"]["result"]["kind"].as_str().unwrap().starts_with("denied-no-approval-rule"), "{answer}");
    log.wait_nth("assistant.turn_end", 6);
    stage.session.send("SCRIPT:denied1 Paint the house");
    log.wait_nth("assistant.turn_end", 8);
    assert_eq!(log.types().iter().filter(|kind| *kind == "permission.requested").count(), 1, "{}", log.dump());
    assert!(!stage.home.project().join("denied0.txt").exists());
}
