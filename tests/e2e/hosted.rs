//! A session whose server died, hosted in a server of Pilotlight's own.

use super::reach::{Reach, Recorder, context_with, event_channel};
use crate::support::executable::executable;
use crate::support::person::{Manner, Person};
use crate::support::process::{is_live, kill};
use crate::support::server::Server;
use crate::support::{SOON, block_on, wait_until};
use pilotlight_agents::channel::Keep;
use pilotlight_agents::channel::connection_event::ConnectionEventKind;
use pilotlight_agents::channel::failure::Failure;
use pilotlight_agents::channel::fault::{Fault, Place};
use pilotlight_agents::channel::order::Policy;
use pilotlight_agents::copilot::program::{VERSION_TIMEOUT_LONG, find_program};
use pilotlight_agents::copilot::server::hosted::{Hosted, host};
use pilotlight_agents::copilot::server::testing::TestContext;
use pilotlight_core::order::Step;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// A session whose server was killed while its tool ran.
fn crashed() -> (Reach, TestContext) {
    let mut reach = Reach::new(Manner::Approves);
    reach.session.send("SCRIPT:tool Paint the fence");
    reach.session.folder.wait("permission.completed");
    reach.server.kill();
    let mut context = context_with(&reach.session.folder, &[], false, |log_view| log_view.tools_open = 1);
    context.cwd = Some(reach.home.project());
    (reach, context)
}

fn hosted(
    reach: &Reach,
    context: &TestContext,
    events: UnboundedSender<pilotlight_agents::channel::connection_event::ConnectionEvent>,
) -> Result<Hosted, Failure> {
    let program = reach.home.program(&reach.model);
    block_on(host(&program, &reach.home.dir(), context, Keep { policy: Policy::ApproveAll, events, generation: 1 }))
}

/// Sets the session's model, which only its own client knows.
fn give_model(reach: &Reach, hosted: &Hosted) {
    let options = json!({"sessionId": reach.session.id(), "provider": reach.server.provider()});
    block_on(hosted.attached().link().sdk().call("session.options.update", Some(options))).unwrap();
}

#[test]
#[ignore = "tests/long.sh"]
fn a_crashed_session_works_again() {
    let (reach, context) = crashed();
    let dead = reach.session.folder.locks();
    let before = reach.session.folder.types();
    let (events, received) = event_channel();
    let steps = Recorder::default();
    let hosted = hosted(&reach, &steps.at(&context), events).unwrap();
    let pid = hosted.pid().unwrap();
    assert_eq!((steps.count(Step::Resume), steps.count(Step::Abort)), (3, 0), "it is idle, so nothing is aborted");
    assert_eq!(hosted.attached().is_last_client(), Some(true));
    let folder = &reach.session.folder;
    assert_eq!((folder.types(), folder.locks()), (before.clone(), dead), "nothing is written before the first prompt");

    give_model(&reach, &hosted);
    block_on(hosted.attached().send("SCRIPT:seq Go on")).unwrap();
    // That it works is reported too, unless it is idle again at the next poll.
    folder.wait_nth("assistant.turn_end", 3);
    received.wait("it is idle", |what| *what == ConnectionEventKind::Idle);
    assert_eq!(folder.locks(), [pid], "our server owns it");
    let since = folder.events().split_off(before.len());
    let kinds: Vec<&str> = since.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..4], ["session.resume", "tool.execution_complete", "session.warning", "user.message"]);
    assert_eq!(since[1]["data"]["error"]["code"], "interrupted", "the unmatched tool is closed");
    assert!(reach.home.project().join("a.txt").exists(), "its tools run, approved by policy");

    block_on(hosted.end());
    assert!(!is_live(pid));
    assert_eq!((folder.types().pop().as_deref(), folder.locks().len()), (Some("session.shutdown"), 0));
    folder.assert_one_chain();
}

#[test]
fn our_own_server_does_not_outlive_us() {
    let (reach, context) = crashed();
    let (events, _received) = event_channel();
    let hosted = hosted(&reach, &context, events).unwrap();
    let pid = hosted.pid().unwrap();
    block_on(async { drop(hosted) });
    wait_until(SOON, "the server is gone", String::new, || (!is_live(pid)).then_some(()));
}

/// The program's exit neither waits for a slow server nor kills it.
#[test]
#[ignore = "tests/long.sh"]
fn our_own_server_may_shut_down_slowly() {
    let (reach, context) = crashed();
    let copilot = reach.home.program(&reach.model);
    let slow = reach.home.project().join("slow");
    // The end of its input reaches it with a delay.
    let script = format!(
        "#!/bin/bash\nexec 3<&0\nexec {} \"$@\" < <(cat <&3; until [ -e ended ]; do sleep 0.05; done)\n",
        copilot.display()
    );
    executable(&slow, &script);
    let (events, _received) = event_channel();
    let hosted =
        block_on(host(&slow, &reach.home.dir(), &context, Keep { policy: Policy::ApproveAll, events, generation: 1 }))
            .unwrap();
    let pid = hosted.pid().unwrap();
    give_model(&reach, &hosted);
    block_on(hosted.attached().send("SCRIPT:plain Go on")).unwrap();
    reach.session.folder.wait("assistant.turn_end");
    let timeout = block_on(async { tokio::time::timeout(Duration::from_millis(50), hosted.end()).await });
    assert!(timeout.is_err(), "it does not end before its input does");
    std::fs::write(reach.home.project().join("ended"), "").unwrap();
    reach.session.folder.wait("session.shutdown");
    wait_until(SOON, "the server is gone", String::new, || (!is_live(pid)).then_some(()));
    assert_eq!(reach.session.folder.locks(), [0_u32; 0]);
}

#[test]
fn case_62_a_session_resumed_elsewhere_is_not_taken_over() {
    let (reach, context) = crashed();
    let (events, _received) = event_channel();
    let hosted = hosted(&reach, &context, events).unwrap();
    give_model(&reach, &hosted);

    let server = Server::start(&reach.home, &reach.model);
    let client = server.connect();
    let resumed = server.resume(&client, &reach.session.id(), &Person::new(Manner::Approves), None);
    resumed.send("SCRIPT:plain Go on");
    resumed.folder.wait("assistant.turn_end");
    let before = resumed.folder.types();
    assert_eq!(block_on(hosted.attached().send("SCRIPT:plain Go on")), Err(Fault::Taken(Place::Own)));
    block_on(hosted.end());
    assert_eq!((resumed.folder.types(), resumed.folder.locks()), (before, vec![server.pid()]));
    resumed.folder.assert_one_chain();
}

#[test]
#[ignore = "tests/long.sh"]
fn case_41_our_own_server_that_dies_leaves_the_session_unchanged() {
    for fatal in 1..=2 {
        let (reach, context) = crashed();
        let before = reach.session.folder.types();
        let (count, project) = (std::sync::atomic::AtomicUsize::new(0), reach.home.project());
        let deadly = context.at_steps(move |_| {
            let started = servers_in(&project);
            if !started.is_empty() && count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1 == fatal {
                started.into_iter().for_each(kill);
            }
        });
        let (events, _received) = event_channel();
        let failure = hosted(&reach, &deadly, events).unwrap_err();
        assert!(matches!(failure.faults[..], [Fault::Gone(Place::Own)]), "{failure}");
        assert_eq!(reach.session.folder.types(), before);

        // The next attempt succeeds.
        let (events, _received) = event_channel();
        let hosted = hosted(&reach, &context, events).unwrap();
        give_model(&reach, &hosted);
        block_on(hosted.attached().send("SCRIPT:plain Go on")).unwrap();
        reach.session.folder.wait("session.resume");
        reach.session.folder.assert_one_chain();
    }
}

/// The pids of the stdio servers whose working directory is this folder.
pub(super) fn servers_in(project: &Path) -> Vec<u32> {
    let pids =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_there = |pid: &u32| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let folder = std::fs::read_link(format!("/proc/{pid}/cwd"));
        folder.is_ok_and(|folder| folder == project) && words.contains("--stdio")
    };
    pids.filter(is_there).collect()
}

#[test]
fn programs_that_are_no_server_are_reported() {
    let (reach, context) = crashed();
    let (events, _received) = event_channel();
    let start = |program: &str| {
        block_on(host(
            program.as_ref(),
            &reach.home.dir(),
            &context,
            Keep { policy: Policy::Ask, events: events.clone(), generation: 1 },
        ))
        .unwrap_err()
    };
    // It may exit before, during or after the first request.
    for _ in 0..50 {
        let ended = start("/bin/false");
        assert!(matches!(ended.faults[..], [Fault::Gone(Place::Own)]), "{ended:?}");
    }
    let missing = start("/nowhere/copilot");
    assert!(matches!(missing.faults[..], [Fault::NotStarted(_)]), "{missing}");
    assert!(missing.to_string().ends_with("resume the session in a terminal"), "{missing}");
}

#[test]
fn the_real_program_is_recognised() {
    let reach = Reach::new(Manner::Approves);
    let program = reach.home.program(&reach.model);
    assert_eq!(block_on(find_program(Some(&program), VERSION_TIMEOUT_LONG)), Ok(program));
}
