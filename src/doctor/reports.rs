//! What hooks report: how many sessions, where it lies, and whether more can be written there.

use super::check::CheckContext;
use super::finding::Finding;
use super::own::may_write;
use pilotlight_agents::home::{Home, report_homes, reported_sessions};
use pilotlight_core::text::counted;
use pilotlight_system::clock::Clock;
use pilotlight_system::runtime::Runtime;
use std::path::Path;

const CHECK: &str = "reports";

/// The sessions that hooks report, and the place where the next report would be written: the first folder of ours that
/// belongs to us alone.
pub(super) fn reports(_: &CheckContext) -> Vec<Finding> {
    let homes = report_homes();
    let Some(place) = homes.iter().find(|home| Runtime::open(home.folder()).is_ok()).map(Home::root) else {
        let text = "there is no folder for the reports of hooks";
        let remedy = "`pilotlight report` fails: set HOME, or XDG_STATE_HOME, to a folder that you own";
        return vec![Finding::problem(CHECK, text, remedy).public()];
    };
    let shown = place.display();
    if !can_be_written(place) {
        let remedy = "until you own this folder, `pilotlight report` fails";
        let text = format!("{shown}, the folder for the reports of hooks, cannot be written");
        return vec![Finding::problem(CHECK, text, remedy).redacted("their folder cannot be written")];
    }
    let now = Clock::start().now().wall;
    let count = match homes.iter().map(|home| reported_sessions(home, now)).sum() {
        0 => "no hook reports a session".to_owned(),
        n => format!("hooks report {}", counted(n, "session")),
    };
    let place = if place.is_dir() {
        format!("their reports are in {shown}")
    } else {
        format!("the first report creates {shown}")
    };
    vec![Finding::ok(CHECK, format!("{count}; {place}")).redacted(count)]
}

/// Whether a folder can be written, or made.
fn can_be_written(folder: &Path) -> bool {
    let there = folder.ancestors().find(|folder| folder.symlink_metadata().is_ok());
    there.is_some_and(|there| there.is_dir() && may_write(there))
}
