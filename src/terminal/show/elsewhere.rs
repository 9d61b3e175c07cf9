//! Not supported on this system.

use std::path::Path;

/// Only names the process.
///
/// # Errors
/// Always.
pub(crate) fn show(pid: u32, _ancestors: &[u32], _tty: Option<&Path>) -> Result<String, String> {
    Err(format!(
        "on this system the terminal of process {pid} cannot be brought to the front; look for it among your windows"
    ))
}
