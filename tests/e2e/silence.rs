//! Silence: the limits, made short by a config, in real time.

use super::stage::Stage;

#[test]
fn of_a_model_that_never_answers() {
    let stage = Stage::configured("[limits]\nfresh-quiet = \"3s\"\nfresh-stuck = \"6s\"\n");
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.model.wait_asked("hang", 0);
    stage.told("working", "");
    stage.told("quiet", "");
    stage.told("stuck", "");
    assert_eq!(stage.history(), ["idle", "working", "quiet", "stuck"]);
    stage.session.abort();
    stage.told("idle", "");
}

#[test]
fn of_a_tool_that_does_nothing() {
    // Asked, its server would say that it is busy.
    let stage =
        Stage::configured("[actions]\nask-servers = false\n[limits]\ntool-quiet = \"3s\"\ntool-stuck = \"8s\"\n");
    stage.session.send("SCRIPT:sleep60 Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.told("quiet", "");
    stage.told("stuck", "");
    stage.session.abort();
    stage.told("idle", "");
}

#[test]
fn of_a_tool_that_is_busy() {
    let limits = "[limits]\ntool-quiet = \"3s\"\ntool-stuck = \"8s\"\ntool-busy-stuck = \"12s\"\n";
    let stage = Stage::configured(&format!("[actions]\nask-servers = false\n{limits}"));
    stage.session.send("SCRIPT:spin Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.told("quiet", "");
    stage.told("stuck", "running long");
    stage.home.go();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("idle", "");
}
