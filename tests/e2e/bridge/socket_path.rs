//! What the extension finds at the tray's socket path, and what it receives there: it speaks only to the tray, and
//! ignores invalid messages.

use super::{Stage, install, ours};
use crate::support::home::Home;
use crate::support::listener::Listener;
use crate::support::model::Model;
use crate::support::terminal::{DIALOG, Terminal};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixListener;

#[test]
fn only_the_tray_is_obeyed_and_only_orders_that_fit() {
    let (home, model) = (Home::new("project"), Model::start());
    let key = install(&home, &model);
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
    // A symlink would lead it to another listener.
    let elsewhere = ours(&home).join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let other = Listener::start(&elsewhere, &key);
    fs::remove_file(&socket).unwrap();
    symlink(elsewhere.join("bridge.sock"), &socket).unwrap();
    terminal.enter("SCRIPT:plain Paint the gate");
    terminal.folder.wait_nth("assistant.turn_end", 2);
    fs::remove_file(&socket).unwrap();
    fs::create_dir(&socket).unwrap();
    fs::remove_dir(&socket).unwrap();
    // Another user's socket replaces it atomically.
    let new = folder.join("theirs");
    let theirs = UnixListener::bind(&new).unwrap();
    theirs.set_nonblocking(true).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&new, Some(65534), Some(65534)).unwrap();
        fs::rename(&new, &socket).unwrap();
    }
    terminal.enter("SCRIPT:plain Paint the shed");
    terminal.folder.wait_nth("assistant.turn_end", 3);
    // It connects to our socket, and connected to no other before.
    let listener = Listener::start(&folder, &key);
    let connection = listener.accept();
    assert_eq!(connection.hello["session"], terminal.folder.id());
    assert!(theirs.accept().is_err() && !other.has_pending());

    // A proof of an earlier connection is not valid for the next.
    let hello = connection.hello.clone();
    drop((connection, listener));
    let again = Listener::start(&folder, &key);
    again.replay(&hello);
    drop(again);
    let connection = Listener::start(&folder, &key).accept();
    assert_eq!(connection.hello["session"], terminal.folder.id());
    // Orders for another turn, or for requests that are not open, are refused.
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
        assert!(connection.order(n as u32, order.clone()).is_err(), "{order}");
    }
    assert!(terminal.screen().contains(DIALOG), "{}", terminal.dump());
    assert!(!terminal.folder.types().iter().any(|kind| kind == "abort" || kind == "permission.completed"));
}

/// After invalid or overlong lines it disconnects, and connects to the next listener. The dialog in its terminal is not
/// affected.
#[test]
#[ignore = "tests/long.sh"]
fn a_listener_that_sends_invalid_messages_is_left() {
    let Stage { terminal, mut connection, mut listener, model: _model, home } = Stage::new(&[]);
    let key = fs::read(ours(&home).join(".local/state/pilotlight/bridge.key")).unwrap();
    let folder = ours(&home).join("run/pilotlight");
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.wait_screen(DIALOG);
    for nonsense in ["{\n".to_owned(), "\u{0}\n".to_owned(), "x".repeat(2 << 20)] {
        connection.send(&nonsense);
        connection.wait_closed();
        drop((connection, listener));
        listener = Listener::start(&folder, &key);
        connection = listener.accept();
    }
    // An incomplete line has no effect.
    connection.send(r#"{"t": "stop", "id": 7, "after": "#);
    drop((connection, listener));
    listener = Listener::start(&folder, &key);
    connection = listener.accept();
    // Neither null nor a flood of messages does harm.
    connection.send("null\n[]\n7\n");
    connection.send(&"{\"t\": \"activity\"}\n".repeat(5000));
    terminal.approve();
    terminal.folder.wait("tool.execution_start");
    assert_eq!(connection.order(1, json!({"t": "activity"})).unwrap()["hasActiveWork"], true);
    let events = terminal.folder.events();
    let prompt = events.iter().rfind(|event| event["type"] == "user.message").unwrap();
    connection.order(2, json!({"t": "stop", "after": prompt["id"]})).unwrap();
    terminal.folder.wait("abort");
    drop(listener);
}

/// A turn ends and the next one begins while orders to stop the first arrive again and again. The next one is not
/// stopped.
#[test]
#[ignore = "tests/long.sh"]
fn late_stops_do_not_affect_the_next_turn() {
    let stage = Stage::new(&["--allow-all-tools"]);
    stage.terminal.enter("SCRIPT:plain Paint the wall");
    stage.connection.event("session.idle");
    for run in 1..=20 {
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
                    stage.connection.order(id, json!({"t": "stop", "after": root})).unwrap_err();
                }
            });
            stage.terminal.enter(&prompt);
            let done = |_: &_| {
                stage.connection.received().iter().filter(|message| message["type"] == "session.idle").count() > run
            };
            stage.connection.wait("the turn is over", done);
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        stage.terminal.folder.wait_nth("assistant.turn_end", run + 1);
    }
    let types = stage.terminal.folder.types();
    assert!(!types.iter().any(|kind| kind == "abort"), "{}", stage.terminal.dump());
}
