//! Requests are answered and turns stopped over a session's server, without staying attached.

use super::reach::{Reach, Recorder, answer, at_step, context, open, stop};
use crate::support::freeze::freeze;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::pilotlight::Pilot;
use crate::support::process::{kill, port, signal};
use crate::support::server::Server;
use crate::support::terminal::Terminal;
use crate::support::{SOON, block_on, wait_until};
use pilotlight_agents::channel::endpoint::{Endpoint, Token};
use pilotlight_agents::channel::failure::FailureKind;
use pilotlight_agents::channel::fault::{Fault, Place};
use pilotlight_agents::copilot::server::client::ServerClient;
use pilotlight_core::order::{Step, Which};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;

/// The open requests of a session according to its server.
fn pending(reach: &Reach) -> Vec<Value> {
    reach.session.call("session.permissions.pendingRequests", json!({}))["items"].as_array().unwrap().clone()
}

#[test]
fn approves_the_request_of_another_client() {
    let reach = Reach::new(Manner::Waits);
    reach.ask();
    let command = pending(&reach)[0]["request"]["fullCommandText"].as_str().unwrap().to_owned();
    let steps = Recorder::default();
    let done = block_on(answer(&steps.at(&reach.context()), &open(&reach.session.folder), true));
    assert_eq!(done.unwrap(), "approved 1 request");
    let shown = steps.shown();
    assert!(
        shown.starts_with(&format!("Run this command:\n\n{command}\n")) && shown.ends_with("says: \"work until told\""),
        "{shown}"
    );
    assert_eq!([Step::Attach, Step::Answer, Step::Verify].map(|step| steps.count(step)), [1, 1, 1]);

    let completed = reach.session.folder.wait("permission.completed");
    assert_eq!(completed["data"]["result"]["kind"], "approved");
    // The late answer of the client that was asked first does no harm.
    reach.person.set_manner(Manner::Refuses);
    reach.home.release_tools();
    assert_eq!(reach.session.folder.wait("tool.execution_complete")["data"]["success"], true);
    reach.session.folder.wait_nth("assistant.turn_end", 2);
    reach.session.folder.assert_one_chain();
}

#[test]
#[ignore = "tests/long.sh"]
fn denies_the_request_of_another_client() {
    let reach = Reach::new(Manner::Waits);
    reach.ask();
    assert_eq!(block_on(answer(&reach.context(), &open(&reach.session.folder), false)).unwrap(), "denied 1 request");
    let completed = reach.session.folder.wait("permission.completed");
    assert_eq!(completed["data"]["result"]["kind"], "denied-interactively-by-user");
    assert_eq!(reach.session.folder.wait("tool.execution_complete")["data"]["success"], false);
    // As in the terminal, a denial by the user ends the turn.
    reach.session.folder.wait("abort");
    reach.session.folder.assert_one_chain();
}

#[test]
fn case_107b_a_click_on_an_answered_request_approves_nothing() {
    let reach = Reach::new(Manner::Waits);
    reach.session.send("SCRIPT:two Paint the fence");
    reach.session.folder.wait_nth("permission.requested", 2);
    let asked = pending(&reach);
    let of =
        |item: &Value| (item["requestId"].as_str().unwrap().to_owned(), item["request"]["fullCommandText"].clone());
    let ((first, first_text), (second, second_text)) = (of(&asked[0]), of(&asked[1]));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    // The first is answered elsewhere while its popup is shown.
    let elsewhere = json!({"requestId": first, "result": {"kind": "reject", "feedback": "not this"}});
    reach.session.call("session.permissions.handlePendingPermissionRequest", elsewhere);

    let context = reach.context();
    let late = Which::Shown { id: first.clone(), text: text(&first_text) };
    let other = Which::Shown { id: second.clone(), text: text(&first_text) };
    for which in [late, other, Which::These(vec![first])] {
        let failure = block_on(answer(&context, &which, true)).unwrap_err();
        assert!(failure.kind == FailureKind::Refused, "{failure}");
    }
    assert_eq!(pending(&reach).len(), 1);
    assert!(!["one.txt", "two.txt"].iter().any(|name| reach.home.project().join(name).exists()));
    let right = Which::Shown { id: second, text: text(&second_text) };
    assert_eq!(block_on(answer(&context, &right, true)).unwrap(), "approved 1 request");
    reach.session.folder.wait_nth("assistant.turn_end", 2);
    let written = |name| reach.home.project().join(name).exists();
    assert_eq!(written("two.txt"), second_text.to_string().contains("two.txt"));
    assert_ne!(written("one.txt"), written("two.txt"), "one was refused, the other approved");
    let failure = block_on(answer(&context, &open(&reach.session.folder), true)).unwrap_err();
    assert_eq!(failure.to_string(), "no permission request was open when this was asked for");
}

#[test]
#[ignore = "tests/long.sh"]
fn approves_the_request_of_a_disconnected_client() {
    let reach = Reach::new(Manner::Waits);
    let other = reach.server.connect();
    let _stays = reach.server.resume(&other, &reach.session.id(), &Person::new(Manner::Leaves), None);
    reach.ask();
    reach.client.leave();
    assert_eq!(block_on(answer(&reach.context(), &open(&reach.session.folder), true)).unwrap(), "approved 1 request");
    reach.home.release_tools();
    reach.session.folder.wait_nth("assistant.turn_end", 2);
    reach.session.folder.assert_one_chain();
}

#[test]
fn stops_a_hanging_tool_and_a_silent_model() {
    let reach = Reach::new(Manner::Approves);
    // Case 42: another session of the same server is not affected.
    let other = reach.server.create(&reach.client, Some(&reach.person));
    let answer_of_other = reach.model.hold("question", 0);
    other.send("SCRIPT:question Paint the door");

    let context = reach.context();
    reach.session.send("SCRIPT:tool Paint the fence");
    reach.session.folder.wait("permission.completed");
    assert_eq!(block_on(stop(&context)).unwrap(), "stopped");
    reach.session.folder.wait_nth("abort", 1);
    reach.session.send("SCRIPT:hang Paint the fence");
    reach.model.wait_requested("hang", 0);
    let steps = Recorder::default();
    assert_eq!(block_on(stop(&steps.at(&context))).unwrap(), "stopped");
    assert_eq!([Step::Attach, Step::Abort, Step::Verify].map(|step| steps.count(step)), [1, 1, 1]);
    reach.session.folder.wait_nth("abort", 2);

    reach.session.send("SCRIPT:plain Never mind");
    let answered = |event: &Value| event["data"]["content"] == "Done.";
    let log = &reach.session.folder;
    wait_until(SOON, "it works again", || log.dump(), || log.events().iter().any(answered).then_some(()));
    log.assert_one_chain();
    assert!(!other.folder.types().iter().any(|kind| kind == "abort"));
    answer_of_other.release();
    other.folder.wait("assistant.turn_end");
    // Stopping an idle session succeeds.
    assert_eq!(block_on(stop(&context)).unwrap(), "stopped");
}

#[test]
fn a_session_of_another_server_is_not_loaded_twice() {
    let reach = Reach::new(Manner::Waits);
    reach.ask();
    let before = reach.session.folder.types();
    let wrong = Server::start(&reach.home, &reach.model);
    let context = context(&reach.session.folder, &[wrong.address()], false);
    let failure = block_on(answer(&context, &open(&reach.session.folder), true)).unwrap_err();
    assert_eq!(failure.faults, [Fault::NotLoaded(Place::At(wrong.address()))]);
    let failure = block_on(stop(&context)).unwrap_err();
    assert_eq!((failure.step, failure.faults.len()), (Some(Step::Attach), 1));
    // Nothing was loaded there, and nothing was written.
    let link =
        block_on(ServerClient::open(&Endpoint { address: wrong.address(), token: None }, Path::new(""))).unwrap();
    assert!(matches!(block_on(link.activity(&context.id)), Err(Fault::NotLoaded(_))));
    assert_eq!((reach.session.folder.types(), reach.session.folder.locks()), (before, vec![reach.server.pid()]));
}

#[test]
fn a_token_is_right_wrong_missing_or_unexpected() {
    let (home, model) = (Home::new("project"), Model::start());
    let guarded = Server::with_token(&home, &model, Some("open sesame"));
    let open = |server: &Server, token: Option<&str>| {
        let token = token.map(|token| Token::new(token).unwrap());
        let endpoint = Endpoint { address: server.address(), token };
        block_on(async {
            let link = ServerClient::open(&endpoint, Path::new("")).await?;
            link.ping(std::time::Duration::from_secs(5)).await
        })
    };
    let place = Place::At(guarded.address());
    assert_eq!(open(&guarded, Some("open sesame")), Ok(()));
    assert_eq!(open(&guarded, Some("open barley")), Err(Fault::WrongToken(place)));
    assert_eq!(open(&guarded, None), Err(Fault::TokenNeeded(place)));
    let unguarded = Server::start(&home, &model);
    assert_eq!(open(&unguarded, None), Ok(()));
    assert_eq!(open(&unguarded, Some("open sesame")), Err(Fault::TokenUnexpected(Place::At(unguarded.address()))));
}

/// It would be drawn afterwards all the same, and take the user's keys.
#[test]
#[ignore = "tests/long.sh: needs a machine that is not busy"]
fn case_206_in_a_terminal_with_a_server_a_request_is_answered_once_its_dialog_is_drawn() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &["--ui-server", "--port", "0"]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:plain Hello");
    terminal.folder.wait("assistant.turn_end");
    terminal.record();
    terminal.enter("SCRIPT:file200 Paint the fence");
    terminal.folder.wait("permission.requested");
    let mut command = pilot.command_with_tray(&["approve", "--yes", &id]);
    let given = std::thread::spawn(move || command.output().unwrap());
    terminal.folder.wait("permission.completed");
    let drawn = terminal.recorded();
    assert!(drawn.contains("Do you want to"), "{drawn}\n{}", terminal.dump());
    assert!(given.join().unwrap().status.success());
    terminal.wait_no_screen("Do you want to");
    pilot.wait_status(&id, "idle", "");
    assert!(!terminal.screen().contains("Do you want to"), "{}", terminal.dump());
}

#[test]
fn a_terminal_with_a_server_loses_nothing() {
    let (home, model) = (Home::new("project"), Model::start());
    let terminal = Terminal::start(&home, &model, &["--ui-server", "--port", "0"]);
    let at = [([127, 0, 0, 1], port(terminal.pid())).into()];
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("permission.requested");
    terminal.wait_screen("Do you want to run this command?");
    let before = terminal.folder.types();

    // A server that is not known to be the owner, and does not report the session as loaded, is not asked to join it.
    let mut another = context(&terminal.folder, &at, false);
    another.id = "00000000-0000-4000-8000-000000000000".into();
    let failure = block_on(answer(&another, &open(&terminal.folder), true)).unwrap_err();
    assert!(matches!(failure.faults[..], [Fault::NotLoaded(_)]), "{failure}");
    // After joining and leaving, the request can still be answered in the terminal.
    let owned = context(&terminal.folder, &at, true);
    let nothing = Which::These(vec!["none".to_owned()]);
    assert!(block_on(answer(&owned, &nothing, true)).unwrap_err().kind == FailureKind::Refused);
    assert_eq!(terminal.folder.types(), before, "nothing is written");
    terminal.approve();
    home.release_tools();
    terminal.folder.wait_nth("assistant.turn_end", 2);

    // The next one is approved from here, and its dialog disappears.
    std::fs::remove_file(home.project().join(crate::support::script::GO)).unwrap();
    terminal.enter("SCRIPT:tool Paint the door");
    terminal.folder.wait_nth("permission.requested", 2);
    terminal.wait_screen("Do you want to run this command?");
    assert_eq!(block_on(answer(&owned, &open(&terminal.folder), true)).unwrap(), "approved 1 request");
    terminal.folder.wait_nth("permission.completed", 2);
    let dialog = || (!terminal.screen().contains("Do you want to run this command?")).then_some(());
    wait_until(SOON, "the dialog is gone", || terminal.screen(), dialog);
    assert_eq!(block_on(stop(&owned)).unwrap(), "stopped");
    terminal.folder.wait("abort");

    // It continues to run, and asks as before.
    terminal.enter("SCRIPT:two Paint the house");
    terminal.folder.wait_nth("permission.requested", 3);
    terminal.approve();
    terminal.folder.wait_nth("permission.completed", 3);
    terminal.folder.assert_one_chain();
    assert_eq!(terminal.folder.locks(), [terminal.pid()]);
}

#[test]
#[ignore = "tests/long.sh"]
fn a_hanging_server_is_reported_and_may_recover() {
    let reach = Reach::new(Manner::Waits);
    reach.ask();
    freeze(reach.server.pid());
    let failure = block_on(answer(&reach.context(), &open(&reach.session.folder), true)).unwrap_err();
    assert_eq!(failure.faults, [Fault::Silent { place: Place::At(reach.server.address()), seconds: 5 }]);
    signal(reach.server.pid(), Signal::CONT);
    let answered = block_on(answer(&reach.context(), &open(&reach.session.folder), true));
    assert_eq!(answered.as_deref(), Ok("approved 1 request"), "{failure}\n{}", reach.session.folder.dump());
}

#[test]
#[ignore = "tests/long.sh"]
fn case_41_a_server_that_dies_at_any_step_leaves_the_session_unchanged() {
    // The order, and the step at which the server dies.
    for (is_stop, step) in [(false, Step::Attach), (false, Step::Answer), (true, Step::Attach), (true, Step::Abort)] {
        let mut reach = Reach::new(Manner::Waits);
        reach.ask();
        let pid = reach.server.pid();
        let context = at_step(&reach.context(), step, move || kill(pid));
        let failure = if is_stop {
            block_on(stop(&context)).err()
        } else {
            block_on(answer(&context, &open(&reach.session.folder), true)).err()
        };
        // The log shows an abort that took effect before the server died.
        if let Some(failure) = failure {
            // A request that may have reached the server is not reported as failed.
            let words = if (is_stop, step) == (false, Step::Attach) { "failed" } else { "may have happened" };
            assert!(failure.to_string().contains(words) && !failure.faults.is_empty(), "{step:?}: {failure}");
            assert!(matches!(failure.faults[..], [Fault::Gone(_)]), "{step:?}: {failure}");
        } else {
            assert_eq!((is_stop, step), (true, Step::Abort));
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
