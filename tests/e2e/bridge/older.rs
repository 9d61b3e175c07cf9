//! The bridge in older releases of Copilot's terminal interface, which make no hold beside their locks.

use super::Bridged;
use crate::support::home::old_clis;

/// Stop, answer, allow once, approve; in each release that the bridge says it was tried with.
#[test]
#[ignore = "tests/long.sh installs the older releases"]
fn the_main_story_in_older_releases() {
    for cli in old_clis() {
        let bridged = Bridged::of(&cli, &[], "", |_, _| ());
        let (id, terminal) = (bridged.id(), &bridged.terminal);
        bridged.allowed();
        bridged.chosen();
        bridged.pilot.told_beside(&id, "idle", "");
        terminal.enter("SCRIPT:tool Paint the gate");
        let completed = bridged.answered(&["approve"], 2);
        assert_eq!(completed["data"]["result"]["kind"], "approved", "{completed}");
        bridged.pilot.told(&id, "working", "");
        bridged.pilot.click(&id, "Stop the turn");
        terminal.folder.wait("abort");
        terminal.enter("SCRIPT:seq Paint the shed");
        let completed = bridged.answered(&["deny"], 3);
        assert_eq!(completed["data"]["result"]["kind"], "denied-interactively-by-user", "{completed}");
    }
}
