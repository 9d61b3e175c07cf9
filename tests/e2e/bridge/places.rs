//! What stands where the extension looks for the tray, and what it is told there: only what is the tray's is spoken to, and what makes no
//! sense is nothing.

use super::{Stage, installed, ours};
use crate::support::home::Home;
use crate::support::listener::Listener;
use crate::support::model::Model;
use crate::support::terminal::{DIALOG, Terminal};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixListener;

#[test]
fn what_stands_in_the_sockets_place_is_left_alone() {
    let (home, model) = (Home::new("project"), Model::start());
    let key = installed(&home, &model);
    let folder = ours(&home).join("run/pilotlight");
    fs::create_dir_all(&folder).unwrap();
    let socket = folder.join("bridge.sock");
    let fifo = || {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &socket, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    fifo();
    let terminal = Terminal::start(&home, &model, &[]);
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    // By a link it would come to somebody who waits there.
    let beside = ours(&home).join("beside");
    fs::create_dir_all(&beside).unwrap();
    let aside = Listener::start(&beside, &key);
    fs::remove_file(&socket).unwrap();
    symlink(beside.join("bridge.sock"), &socket).unwrap();
    terminal.enter("SCRIPT:plain Paint the gate");
    terminal.folder.wait_nth("assistant.turn_end", 2);
    fs::remove_file(&socket).unwrap();
    fs::create_dir(&socket).unwrap();
    fs::remove_dir(&socket).unwrap();
    // Another user's comes into its place in one piece.
    let new = folder.join("theirs");
    let theirs = UnixListener::bind(&new).unwrap();
    theirs.set_nonblocking(true).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&new, Some(65534), Some(65534)).unwrap();
        fs::rename(&new, &socket).unwrap();
    }
    terminal.enter("SCRIPT:plain Paint the shed");
    terminal.folder.wait_nth("assistant.turn_end", 3);
    // It comes to the one that is ours, and went to none before.
    let line = Listener::start(&folder, &key).accept();
    assert_eq!(line.hello["session"], terminal.folder.id());
    assert!(theirs.accept().is_err() && !aside.is_wanted());
}

/// Words of an earlier conversation prove nothing in the next.
#[test]
fn what_was_said_before_proves_nothing() {
    let Stage { terminal, line, listener, model: _model, home } = Stage::set(&[]);
    let key = fs::read(ours(&home).join(".local/state/pilotlight/bridge.key")).unwrap();
    let (folder, hello) = (ours(&home).join("run/pilotlight"), line.hello.clone());
    drop((line, listener));
    let again = Listener::start(&folder, &key);
    again.replay(&hello);
    drop(again);
    let line = Listener::start(&folder, &key).accept();
    assert_eq!(line.hello["session"], terminal.folder.id());
    // Nor do orders of another turn, or for what is not open.
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.wait_screen(DIALOG);
    for order in [
        json!({"t": "stop", "after": "another"}),
        json!({"t": "stop"}),
        json!({"t": "send", "after": "another", "prompt": "SCRIPT:two"}),
        json!({"t": "answer", "requestId": "another", "result": {"action": "accept", "content": {}}}),
        json!({"t": "plan", "requestId": "another", "response": {"approved": true, "selectedAction": "autopilot"}}),
        json!({"t": "plan", "requestId": "another", "response": {"approved": true, "selectedAction": "interactive"}}),
        json!({"t": "approve", "requestId": "another", "toolCallId": "another", "text": "another"}),
        json!({"t": "approve-always"}),
        json!({"t": "__proto__"}),
        json!({"t": "constructor"}),
        json!({"t": 1}),
        json!({}),
    ]
    .into_iter()
    .enumerate()
    {
        let (n, order) = order;
        assert!(line.order(n as u32, order.clone()).is_err(), "{order}");
    }
    assert!(terminal.screen().contains(DIALOG), "{}", terminal.dump());
    assert!(!terminal.folder.types().iter().any(|kind| kind == "abort" || kind == "permission.completed"));
}

/// Lines that are none, too long, too many: it leaves, and is back at the next one; the dialog in its terminal is there as ever.
#[test]
#[ignore = "tests/long.sh"]
fn whoever_talks_nonsense_is_left() {
    let Stage { terminal, mut line, mut listener, model: _model, home } = Stage::set(&[]);
    let key = fs::read(ours(&home).join(".local/state/pilotlight/bridge.key")).unwrap();
    let folder = ours(&home).join("run/pilotlight");
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.wait_screen(DIALOG);
    for nonsense in ["{\n".to_owned(), "\u{0}\n".to_owned(), "x".repeat(2 << 20)] {
        line.say(&nonsense);
        line.leaves();
        drop((line, listener));
        listener = Listener::start(&folder, &key);
        line = listener.accept();
    }
    // What is half said is not said.
    line.say(r#"{"t": "stop", "id": 7, "after": "#);
    drop((line, listener));
    listener = Listener::start(&folder, &key);
    line = listener.accept();
    // Neither null nor a flood does harm.
    line.say("null\n[]\n7\n");
    line.say(&"{\"t\": \"activity\"}\n".repeat(5000));
    terminal.approve();
    terminal.folder.wait("tool.execution_start");
    assert_eq!(line.order(1, json!({"t": "activity"})).unwrap()["hasActiveWork"], true);
    let events = terminal.folder.events();
    let prompt = events.iter().rfind(|event| event["type"] == "user.message").unwrap();
    line.order(2, json!({"t": "stop", "after": prompt["id"]})).unwrap();
    terminal.folder.wait("abort");
    drop(listener);
}

/// A turn ends, and the next one begins, while it is told again and again to stop the first: the next one is not stopped.
fn late_stops(runs: usize) {
    let stage = Stage::set(&["--allow-all-tools"]);
    stage.terminal.enter("SCRIPT:plain Paint the wall");
    stage.line.event("session.idle");
    for run in 1..=runs {
        stage.terminal.folder.wait_nth("user.message", run);
        let root = stage.root();
        let prompt = format!("SCRIPT:plain Paint the fence {run}");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for order in 0.. {
                    if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    let id = u32::try_from(run * 100_000 + order).unwrap();
                    stage.line.order(id, json!({"t": "stop", "after": root})).unwrap_err();
                }
            });
            stage.terminal.enter(&prompt);
            let done = |_: &_| stage.line.heard().iter().filter(|said| said["type"] == "session.idle").count() > run;
            stage.line.wait("the turn is over", done);
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        stage.terminal.folder.wait_nth("assistant.turn_end", run + 1);
    }
    let types = stage.terminal.folder.types();
    assert!(!types.iter().any(|kind| kind == "abort"), "{}", stage.terminal.dump());
}

#[test]
fn a_stop_that_comes_late_does_not_hit_the_next_turn() {
    late_stops(2);
}

#[test]
#[ignore = "the same often"]
fn a_stop_that_comes_late_does_not_hit_the_next_turn_often() {
    late_stops(20);
}
