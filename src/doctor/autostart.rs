//! What is started at login, as the menu shows it, and entries whose program is gone.

use super::finding::Finding;
#[cfg(target_os = "linux")]
use super::{fix::Fix, ours::Ours};
use crate::tray::autostart::Login;

/// Whether this program is started, and entries that an earlier one left behind.
pub(super) fn autostart() -> Vec<Finding> {
    const CHECK: &str = "autostart";
    let login = Login::find(&[]);
    let state = login.state();
    let start = if state.on { "started at login" } else { "not started at login" };
    let note = state.line.map(|line| {
        format!(
            "{} starts no desktop entries. To start it there, add this line to {}: {}",
            line.of, line.file, line.text
        )
    });
    let text = state.note.or(note).map_or_else(|| start.to_owned(), |note| format!("{start}: {note}"));
    #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "only Linux has entries that others write"))]
    let mut findings = vec![Finding::ok(CHECK, text).redacted(start)];
    #[cfg(target_os = "linux")]
    findings.extend(login.stale_entries().into_iter().map(|(entry, program)| {
        let text = format!("{} starts {}, which is not there", entry.display(), program.display());
        let remedy = "switch \"Start at login\" off and on again; `pilotlight doctor --fix` moves the entry aside";
        Finding::problem(CHECK, text, remedy)
            .redacted("it starts a program that is not there")
            .fixed_by(Fix::Aside(entry, Ours::Entry))
    }));
    findings
}
