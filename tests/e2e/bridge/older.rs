//! The bridge in older releases of Copilot's terminal interface, which make no hold beside their locks.

use super::Bridged;
use crate::support::home::old_clis;

/// Stop, answer, allow once, approve; in each release that the bridge says it was tried with.
#[test]
#[ignore = "tests/long.sh installs the older releases"]
fn the_main_story_in_older_releases() {
    for cli in old_clis() {
        let bridged = Bridged::of(&cli, &[], |_| ());
        let (id, terminal) = (bridged.id(), &bridged.terminal);
        bridged.allowed();
        terminal.enter("SCRIPT:form Paint the fence");
        bridged.pilot.told_beside(&id, "needs-input", "Which color?");
        bridged.pilot.click(&id, "Answer “blue”");
        let done = terminal.folder.wait("tool.execution_complete");
        assert!(done.to_string().contains("blue"), "{done}");
        bridged.pilot.told_beside(&id, "idle", "");
        terminal.enter("SCRIPT:tool Paint the gate");
        terminal.wait_screen("Do you want to run this command?");
        bridged.pilot.told(&id, "needs-permission", "");
        bridged.done(&["approve", &id]);
        let completed = terminal.folder.wait_nth("permission.completed", 2);
        assert_eq!(completed["data"]["result"]["kind"], "approved", "{completed}");
        bridged.pilot.told(&id, "working", "");
        bridged.pilot.click(&id, "Stop the turn");
        terminal.folder.wait("abort");
        terminal.enter("SCRIPT:seq Paint the shed");
        terminal.wait_screen("Do you want to run this command?");
        bridged.pilot.told(&id, "needs-permission", "");
        bridged.done(&["deny", &id]);
        let completed = terminal.folder.wait_nth("permission.completed", 3);
        assert_eq!(completed["data"]["result"]["kind"], "denied-interactively-by-user", "{completed}");
    }
}
