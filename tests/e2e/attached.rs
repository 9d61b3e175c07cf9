//! Pilotlight as an additional client of a session.

use super::reach::{Reach, Recorder, attach, context_with, event_channel, open};
use crate::support::person::{Manner, Person};
use crate::support::process::kill;
use crate::support::server::Server;
use crate::support::{SOON, block_on, wait_until};
use pilotlight_agents::channel::connection_event::ConnectionEventKind;
use pilotlight_agents::channel::failure::FailureKind;
use pilotlight_agents::channel::fault::Fault;
use pilotlight_agents::channel::order::Policy;
use pilotlight_agents::channel::order::Prompt;
use pilotlight_agents::copilot::server::recover::resend;
use pilotlight_core::order::Step;
use std::time::Duration;

#[test]
fn attaching_restores_permission_requests() {
    let reach = Reach::without_person();
    // Attaches in the middle of a turn whose tools are all denied.
    let fourth = reach.model.hold("denied", 3);
    reach.session.send("SCRIPT:denied5 Paint the fence");
    reach.session.folder.wait_nth("tool.execution_complete", 3);
    reach.model.wait_requested("denied", 3);
    let before = reach.session.folder.types();
    assert!(!before.iter().any(|kind| kind.starts_with("permission.")), "nobody was asked");
    let (events, _received) = event_channel();
    let attached = block_on(attach(&reach.context(), Policy::Ask, events, 1)).unwrap();
    assert_eq!(reach.session.folder.types(), before, "attaching writes nothing");

    // The next requests stay open until they are answered.
    fourth.release();
    for asked in 1..=2 {
        reach.session.folder.wait_nth("permission.requested", asked);
        assert!(block_on(attached.activity()).unwrap().has_active_work);
        assert_eq!(
            block_on(attached.answer(&reach.context(), &open(&reach.session.folder), true)).unwrap(),
            "approved 1 request"
        );
    }
    reach.session.folder.wait_nth("assistant.turn_end", 6);
    let exists = |name| reach.home.project().join(name).exists();
    assert_eq!(["denied2.txt", "denied3.txt", "denied4.txt"].map(exists), [false, true, true]);
    block_on(attached.leave());
    reach.session.folder.assert_one_chain();
    assert!(!reach.session.folder.types().iter().any(|kind| kind == "session.resume" || kind == "session.shutdown"));
}

#[test]
fn approves_everything_if_the_policy_says_so() {
    let reach = Reach::new(Manner::Leaves);
    reach.session.send("SCRIPT:two Paint the fence");
    reach.session.folder.wait_nth("permission.requested", 2);
    let (events, _received) = event_channel();
    // Open requests are taken over, and new ones are approved.
    let attached = block_on(attach(&reach.context(), Policy::ApproveAll, events, 1)).unwrap();
    reach.session.folder.wait_nth("permission.completed", 2);
    block_on(attached.send("SCRIPT:seq Paint the door")).unwrap();
    reach.session.folder.wait_nth("permission.completed", 3);
    reach.session.folder.wait_nth("assistant.turn_end", 5);
    assert!(reach.home.project().join("a.txt").exists());
    reach.session.folder.assert_one_chain();
}

/// The frames of a server are limited in size, and realistic commands are far below the limit.
#[test]
fn case_135_long_commands_are_shown_and_approved_in_full() {
    let reach = Reach::new(Manner::Leaves);
    let (events, received) = event_channel();
    let attached = block_on(attach(&reach.context(), Policy::Ask, events, 1)).unwrap();
    block_on(attached.send("SCRIPT:long39 Paint the fence")).unwrap();
    reach.session.folder.wait("permission.requested");
    let (recorder, which) = (Recorder::default(), open(&reach.session.folder));
    assert_eq!(block_on(attached.answer(&recorder.at(&reach.context()), &which, true)).unwrap(), "approved 1 request");
    let shown = recorder.shown();
    assert!(shown.len() > 39_000 && shown.contains("\nEND\n\nThe agent says: "), "{} bytes", shown.len());
    assert_eq!(reach.session.folder.wait("tool.execution_complete")["data"]["success"], true);
    assert_eq!(std::fs::metadata(reach.home.project().join("long.txt")).unwrap().len(), 39_000);
    received.wait("it is idle", |what| *what == ConnectionEventKind::Idle);
    block_on(attached.leave());
    // The same with automatic approval, where the request arrives in an event.
    let reach = Reach::new(Manner::Leaves);
    let (events, _received) = event_channel();
    let attached = block_on(attach(&reach.context(), Policy::ApproveAll, events, 1)).unwrap();
    block_on(attached.send("SCRIPT:long100 Paint the door")).unwrap();
    let completed = reach.session.folder.wait("permission.completed");
    assert_eq!(completed["data"]["result"]["kind"], "approved");
    block_on(attached.leave());
}

#[test]
fn the_last_client_keeps_the_session_alive() {
    let reach = Reach::new(Manner::Waits);
    reach.ask();
    let (events, received) = event_channel();
    let attached = block_on(attach(&reach.context(), Policy::Ask, events, 7)).unwrap();
    assert_eq!(attached.is_last_client(), None, "its own client is still connected");
    reach.client.leave();
    wait_until(SOON, "we are the last client", String::new, || attached.is_last_client());
    // Case 107e: the request, which nobody else can answer, is still open.
    assert_eq!(
        block_on(attached.answer(&reach.context(), &open(&reach.session.folder), true)).unwrap(),
        "approved 1 request"
    );
    reach.home.release_tools();
    let idle = received.wait("it is idle", |what| *what == ConnectionEventKind::Idle);
    assert_eq!((idle.generation, &*idle.id), (7, &*reach.session.id()));
    received.wait("it no longer works", |what| *what == ConnectionEventKind::Active(false));
    assert!(!reach.session.folder.types().iter().any(|kind| kind == "session.shutdown"));
    block_on(attached.leave());
    reach.session.folder.wait("session.shutdown");
    reach.session.folder.assert_one_chain();
    assert!(
        !received.all().iter().any(|event| matches!(event.kind, ConnectionEventKind::Lost(_))),
        "we left, which is no loss"
    );
}

#[test]
fn attaching_aborts_a_silent_turn() {
    let reach = Reach::new(Manner::Approves);
    reach.session.send("SCRIPT:hang Paint the fence");
    reach.model.wait_requested("hang", 0);
    let (events, received) = event_channel();
    let silent =
        context_with(&reach.session.folder, &[reach.server.address()], true, |log_view| log_view.silent = true);
    let watched = block_on(attach(&silent, Policy::Observe, events.clone(), 1)).unwrap();
    assert!(block_on(watched.activity()).unwrap().has_active_work, "an observer aborts nothing");
    block_on(watched.leave());

    let steps = Recorder::default();
    let attached = block_on(attach(&steps.at(&silent), Policy::Ask, events, 2)).unwrap();
    assert_eq!((steps.count(Step::Abort), steps.count(Step::Verify)), (1, 1));
    reach.session.folder.wait("abort");
    let first = received.all().into_iter().find(|event| event.generation == 2).unwrap();
    assert_eq!(first.kind, ConnectionEventKind::Active(true), "the first event reports its activity");
    block_on(attached.send("SCRIPT:plain Never mind")).unwrap();
    reach.session.folder.wait_nth("user.message", 2);
    received.wait("it no longer works", |what| *what == ConnectionEventKind::Active(false));
    reach.session.folder.assert_one_chain();
}

#[test]
fn a_turn_with_an_open_request_is_not_silent() {
    let reach = Reach::new(Manner::Waits);
    reach.ask();
    let (events, _received) = event_channel();
    let silent =
        context_with(&reach.session.folder, &[reach.server.address()], true, |log_view| log_view.silent = true);
    let attached = block_on(attach(&silent, Policy::Ask, events, 1)).unwrap();
    assert!(!reach.session.folder.types().iter().any(|kind| kind == "abort"));
    assert_eq!(
        block_on(attached.answer(&reach.context(), &open(&reach.session.folder), false)).unwrap(),
        "denied 1 request"
    );
}

#[test]
fn case_64_a_prompt_is_not_sent_behind_a_silent_turn() {
    let reach = Reach::new(Manner::Approves);
    reach.session.send("SCRIPT:hang Paint the fence");
    reach.model.wait_requested("hang", 0);
    let (events, _received) = event_channel();
    let context = reach.context();
    let attached = block_on(attach(&context, Policy::Ask, events, 1)).unwrap();
    let text = "SCRIPT:plain Paint the fence";
    let prompt = &Prompt::Repeat(text.to_owned());
    let send = || {
        let steps = Recorder::default();
        let sent = block_on(resend(&attached, prompt, None, &steps.at(&context), Duration::from_secs(2)));
        (sent, steps.count(Step::Resend), steps.count(Step::Abort))
    };
    // The silent turn would block the prompt, and it is neither queued nor is the turn aborted for it.
    let (refused, sent, aborted) = send();
    assert!(
        refused.is_err_and(|failure| failure.kind == FailureKind::Refused && failure.to_string().contains("it works"))
    );
    assert_eq!((sent, aborted), (0, 0));
    reach.session.abort();
    reach.session.folder.wait("abort");
    assert_eq!(send(), (Ok("sent".to_owned()), 1, 0));
    let repeated = reach.session.folder.wait_nth("user.message", 2);
    assert_eq!(repeated["data"]["content"], text);
    reach.session.folder.wait("assistant.message");
    assert_eq!(reach.model.request_count("plain", 0), 1, "it was not done twice");
    reach.session.folder.assert_one_chain();

    // Case 40: not after a tool succeeded.
    block_on(attached.send("SCRIPT:seq Paint the door")).unwrap();
    reach.session.folder.wait_nth("tool.execution_complete", 2);
    wait_until(SOON, "it is seen", String::new, || (context.log_view.borrow().ran > 0).then_some(()));
    let failure = block_on(resend(&attached, prompt, None, &context, Duration::from_secs(2))).unwrap_err();
    assert!(failure.kind == FailureKind::Refused, "{failure}");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_50_the_loss_of_a_server_is_reported_once() {
    let mut reach = Reach::new(Manner::Approves);
    let (events, received) = event_channel();
    let attached = block_on(attach(&reach.context(), Policy::Ask, events, 3)).unwrap();
    reach.session.send("SCRIPT:hang Paint the fence");
    received.wait("it works", |what| *what == ConnectionEventKind::Active(true));
    reach.server.kill();
    let lost = received.wait("it is lost", |what| matches!(what, ConnectionEventKind::Lost(_)));
    assert!(matches!(lost.kind, ConnectionEventKind::Lost(Fault::Gone(_))), "{lost:?}");
    assert!(matches!(block_on(attached.send("SCRIPT:plain Go on")), Err(Fault::Gone(_))));
    let after = received.all();
    assert!(matches!(after.last().unwrap().kind, ConnectionEventKind::Lost(_)), "{after:?}");
}

/// What a client of the server switches off leaves the same trace as the user's own command, so neither is told apart.
#[test]
#[ignore = "tests/long.sh"]
fn case_205_that_a_session_approves_everything_is_reported_while_we_are_attached() {
    let reach = Reach::new(Manner::Approves);
    let (events, received) = event_channel();
    let _attached = block_on(attach(&reach.context(), Policy::Ask, events, 3)).unwrap();
    received.wait("it asks", |what| *what == ConnectionEventKind::Approves(false));
    reach.session.send("SCRIPT:plain Paint the fence");
    reach.session.folder.wait("assistant.turn_end");
    let mode = serde_json::json!({"mode": "allow-all", "source": "slash_command"});
    reach.session.call("session.permissions.setMode", mode);
    received.wait("it approves everything", |what| *what == ConnectionEventKind::Approves(true));
    let changed = reach.session.folder.wait("session.permissions_changed");
    let data = changed["data"].as_object().unwrap();
    assert!(!data.contains_key("source"), "it tells who: {changed}");
}

#[test]
fn a_session_closed_by_its_server_is_reported_as_lost() {
    let reach = Reach::new(Manner::Approves);
    let (events, received) = event_channel();
    let _attached = block_on(attach(&reach.context(), Policy::Ask, events, 3)).unwrap();
    reach.client.call("sessions.close", serde_json::json!({"sessionId": reach.session.id()}));
    let lost = received.wait("it is lost", |what| matches!(what, ConnectionEventKind::Lost(_)));
    assert!(matches!(lost.kind, ConnectionEventKind::Lost(Fault::NotLoaded(_))), "{lost:?}");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_41_a_server_that_dies_while_we_attach_leaves_the_session_unchanged() {
    // At the first step (connected), the second (attached), or the third (requests taken over).
    for fatal in 1..=3 {
        let mut reach = Reach::new(Manner::Waits);
        reach.ask();
        let pid = reach.server.pid();
        let count = std::sync::atomic::AtomicUsize::new(0);
        let (events, received) = event_channel();
        let context =
            context_with(&reach.session.folder, &[reach.server.address()], true, |log_view| log_view.silent = true);
        let context = context.at_steps(move |_| {
            if count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1 == fatal {
                kill(pid);
            }
        });
        match block_on(attach(&context, Policy::Ask, events, 1)) {
            Err(failure) => {
                let step = if fatal == 1 { Step::Attach } else { Step::Answer };
                assert_eq!(failure.step, Some(step), "{failure}");
                assert!(matches!(failure.faults[..], [Fault::Gone(_)]), "{failure}");
            }
            Ok(_attached) => {
                assert_eq!(fatal, 3, "nothing is requested after the last step");
                received.wait("it is lost", |what| matches!(what, ConnectionEventKind::Lost(Fault::Gone(_))));
            }
        }
        reach.server.kill();
        reach.session.folder.assert_one_chain();
        let server = Server::start(&reach.home, &reach.model);
        let client = server.connect();
        let resumed = server.resume(&client, &reach.session.id(), &Person::new(Manner::Approves), None);
        resumed.send("SCRIPT:plain Go on");
        resumed.folder.wait("session.resume");
        resumed.folder.assert_one_chain();
    }
}
