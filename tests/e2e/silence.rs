//! Limits of silence in real time. A status lasts until the limits are shortened, so that all views have time to show
//! it.

use super::stage::Stage;
use crate::support::person::Manner;

/// A config with these limits, for a Pilotlight that asks no servers: a server would report that it is busy.
fn limits(limits: &str) -> String {
    format!("[actions]\nask-servers = false\n[limits]\n{limits}")
}

#[test]
fn a_model_that_never_answers() {
    let stage = Stage::new(Manner::Approves);
    stage.wait_status("idle", "no prompt yet");
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.model.wait_requested("hang", 0);
    stage.wait_status("working", "");
    stage.pilot.configure("[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"1h\"\n");
    stage.wait_status("quiet", "");
    stage.pilot.configure(
        "[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"6s\"\nthinking-quiet = \"1s\"\nthinking-stuck = \"6s\"\n",
    );
    stage.wait_status("stuck", "");
    assert_eq!(stage.history(), ["idle", "working", "quiet", "stuck"]);
    stage.session.abort();
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_tool_that_does_nothing() {
    let stage = Stage::configured(&limits(""));
    stage.session.send("SCRIPT:sleep600 Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.wait_status("working", "");
    stage.pilot.configure(&limits("tool-quiet = \"1s\"\ntool-stuck = \"1h\"\n"));
    stage.wait_status("quiet", "");
    stage.pilot.configure(&limits("tool-quiet = \"1s\"\ntool-stuck = \"8s\"\n"));
    stage.wait_status("stuck", "");
    stage.session.abort();
    stage.wait_status("idle", "");
}

/// It takes a while to measure how busy a tool is.
#[test]
#[ignore = "tests/long.sh"]
fn a_tool_that_is_busy() {
    let times = "tool-quiet = \"3s\"\ntool-stuck = \"8s\"\ntool-busy-stuck = \"25s\"\n";
    let stage = Stage::configured(&limits(times));
    stage.session.send("SCRIPT:spin Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.wait_status("quiet", "running long");
    stage.wait_status("stuck", "running long");
    stage.home.release_tools();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("idle", "");
}
