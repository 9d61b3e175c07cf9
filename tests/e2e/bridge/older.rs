//! The bridge in older releases of Copilot's terminal interface, which create no hold files.

use super::Bridged;
use crate::support::home::old_clis;

/// Consent, answer, approve, stop and deny, in each release with which the bridge claims to be tested.
#[test]
#[ignore = "tests/long.sh installs the older releases"]
fn older_releases_can_be_stopped_answered_approved_and_denied() {
    for cli in old_clis() {
        let bridged = Bridged::with_cli(&cli, &[], "", |_, _| ());
        let (id, terminal) = (bridged.id(), &bridged.terminal);
        bridged.give_consent();
        bridged.choose_blue();
        bridged.pilot.wait_status_in_tray(&id, "idle", "");
        terminal.enter("SCRIPT:tool Paint the gate");
        let completed = bridged.answer_request(&["approve", "--yes"], 2);
        assert_eq!(completed["data"]["result"]["kind"], "approved", "{completed}");
        bridged.pilot.wait_status(&id, "working", "");
        bridged.pilot.click(&id, "Stop the turn");
        terminal.folder.wait("abort");
        terminal.enter("SCRIPT:seq Paint the shed");
        let completed = bridged.answer_request(&["deny", "--yes"], 3);
        assert_eq!(completed["data"]["result"]["kind"], "denied-interactively-by-user", "{completed}");
    }
}
