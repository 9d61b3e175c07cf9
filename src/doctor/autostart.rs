//! What is started at login, as the menu says it; and what of it points to no program any more.

use super::Finding;
use crate::tray::autostart::Login;

const CHECK: &str = "autostart";

/// Whether this program is, and what an earlier one left behind.
pub(super) fn autostart() -> Vec<Finding> {
    let login = Login::find(&[]);
    let state = login.state();
    let start = if state.on { "started at login" } else { "not started at login" };
    let said = state.note.map_or_else(|| start.to_owned(), |note| format!("{start}: {note}"));
    #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "only Linux has entries that others write"))]
    let mut findings = vec![Finding::ok(CHECK, said).redacted(start)];
    #[cfg(target_os = "linux")]
    findings.extend(login.astray().into_iter().map(|(entry, program)| astray(entry, &program)));
    findings
}

#[cfg(target_os = "linux")]
fn astray(entry: std::path::PathBuf, program: &std::path::Path) -> Finding {
    let said = format!("{} starts {}, which is not there", entry.display(), program.display());
    Finding::problem(
        CHECK,
        said,
        "switch \"Start at login\" off and on again; `pilotlight doctor --fix` moves the entry aside",
    )
    .redacted("it starts a program that is not there")
    .fixed_by(super::Fix::Aside(entry, super::own::Ours::Entry))
}
