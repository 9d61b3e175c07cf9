//! Silence: the limits, in real time. A status stands until the limits are made shorter, so that all have time to tell it.

use super::stage::Stage;
use crate::support::person::Manner;

/// These limits, of a Pilotlight that asks no server: that would say that it is busy.
fn limits(limits: &str) -> String {
    format!("[actions]\nask-servers = false\n[limits]\n{limits}")
}

#[test]
fn of_a_model_that_never_answers() {
    let stage = Stage::set(Manner::Approves);
    stage.told("idle", "no prompt yet");
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.model.wait_asked("hang", 0);
    stage.told("working", "");
    stage.pilot.configure("[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"1h\"\n");
    stage.told("quiet", "");
    stage.pilot.configure("[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"6s\"\n");
    stage.told("stuck", "");
    assert_eq!(stage.history(), ["idle", "working", "quiet", "stuck"]);
    stage.session.abort();
    stage.told("idle", "");
}

#[test]
fn of_a_tool_that_does_nothing() {
    let stage = Stage::configured(&limits(""));
    stage.session.send("SCRIPT:sleep600 Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.told("working", "");
    stage.pilot.configure(&limits("tool-quiet = \"1s\"\ntool-stuck = \"1h\"\n"));
    stage.told("quiet", "");
    stage.pilot.configure(&limits("tool-quiet = \"1s\"\ntool-stuck = \"8s\"\n"));
    stage.told("stuck", "");
    stage.session.abort();
    stage.told("idle", "");
}

/// How busy a tool is takes a while to be seen.
#[test]
fn of_a_tool_that_is_busy() {
    let times = "tool-quiet = \"3s\"\ntool-stuck = \"8s\"\ntool-busy-stuck = \"25s\"\n";
    let stage = Stage::configured(&limits(times));
    stage.session.send("SCRIPT:spin Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.told("quiet", "running long");
    stage.told("stuck", "running long");
    stage.home.go();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("idle", "");
}
