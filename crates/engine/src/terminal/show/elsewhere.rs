//! Not supported on this system.

use std::path::Path;

/// Why the terminal of a process cannot be shown.
pub const fn why_not(_pid: u32, _has_pane: bool) -> Option<&'static str> {
    Some("on this system no program can bring another's window to the front: look for it among your windows")
}

/// Whether the terminal of a process has the focus. Nobody can tell.
pub const fn has_focus(_pid: u32, _ancestors: &[u32], _tty: Option<&Path>, _pane: Option<&str>) -> bool {
    false
}

/// Only names the process.
///
/// # Errors
/// Always.
pub fn show(pid: u32, _: &[u32], _: Option<&Path>, _: Option<&str>) -> Result<String, String> {
    Err(format!(
        "on this system the terminal of process {pid} cannot be brought to the front; look for it among your windows"
    ))
}
