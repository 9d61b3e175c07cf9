//! Recoveries that wait for others.

use super::*;
use crate::config::Config;
use crate::last_seen::LastSeen;
use crate::parts::tasks::TaskMessage;
use pilotlight_agents::home::Home;
use pilotlight_core::action::Action;
use pilotlight_core::session::HomeId;
use pilotlight_system::process::testing::ended;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

/// A session that crashed in the middle of its turn a moment ago.
fn crash(home: &Home, id: &str, engine: &Engine) {
    let (folder, pid) = (home.path(id), ended());
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("inuse.{pid}.lock")), pid.to_string()).unwrap();
    let now = engine.world.now().wall;
    let event = |id: &str, kind: &str, parent: Option<&str>| {
        json!({"id": id, "type": kind, "timestamp": now, "parentId": parent, "data": {"content": "go on"}}).to_string()
    };
    let events = [event("a", "user.message", None), event("b", "assistant.turn_start", Some("a"))];
    fs::write(folder.join("events.jsonl"), events.join("\n") + "\n").unwrap();
}

fn resume(engine: &mut Engine, id: &str) -> UnboundedReceiver<OrderReport> {
    let (reply, reports) = unbounded_channel();
    engine.handle_order(PendingOrder::by_us(Order::new(id, Operation::Resume), reply));
    reports
}

/// Copilot is found nowhere, so each task fails, once the loop handles that.
fn engine(home: &Path) -> Engine {
    let mut config = Config::default();
    config.actions.program = Some(home.join("nowhere"));
    // Without a state folder there are no locks, and nothing is done.
    Engine::new(&[Home::at(home)], config, LastSeen::load(Some(home.join("state/seen.json"))))
}

async fn next(engine: &mut Engine) -> TaskMessage {
    timeout(Duration::from_secs(30), engine.connections.tasks.next_message())
        .await
        .expect("a task says something")
        .unwrap()
}

#[tokio::test]
async fn a_fourth_recovery_waits_for_the_end_of_one_of_three() {
    let scratch = tempfile::tempdir().unwrap();
    let (home, ids) =
        (Home::at(scratch.path()), [1, 2, 3, 4].map(|n| format!("36535f61-5c7b-4f09-a70b-2f8aed97280{n}")));
    let mut engine = engine(scratch.path());
    ids.iter().for_each(|id| crash(&home, id, &engine));
    engine.disk.check_homes(&engine.world);
    engine.disk.rescan_now(&mut engine.world);
    engine.take_up_disk_changes();
    let mut reports = ids.each_ref().map(|id| resume(&mut engine, id));
    let keys = ids.map(|id| Key::new(HomeId::default(), id));
    for key in &keys {
        let under_way = engine.world.fleet.session(key).unwrap().control.under_way;
        assert_eq!(under_way, Some(Action::Resume), "{:?}", reports.each_mut().map(UnboundedReceiver::try_recv));
    }
    let [.., third, fourth] = &keys;
    assert!(engine.connections.tasks.is_busy(third) && !engine.connections.tasks.is_busy(fourth));
    engine.retry_postponed();
    assert!(!engine.connections.tasks.is_busy(fourth), "three are running");
    while !engine.connections.tasks.is_busy(fourth) {
        let message = next(&mut engine).await;
        engine.handle_task_message(message);
        engine.retry_postponed();
    }
    assert!(engine.postponed.is_empty());
    let [.., report] = &mut reports;
    while !matches!(report.try_recv(), Ok(OrderReport::End(Outcome::Failed(_)))) {
        let message = next(&mut engine).await;
        engine.handle_task_message(message);
    }
}
