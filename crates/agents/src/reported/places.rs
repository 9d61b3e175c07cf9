//! Where reports are, and what their files are called.

use pilotlight_system::paths;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of the reports, in a runtime folder.
pub(super) const FOLDER: &str = "reports";
/// The most sessions that are reported at once. More would only hide each other in every list.
pub(super) const MOST: usize = 200;
/// Begins what distinguishes two agents that use the same id.
const APART: char = '@';

/// The folders that may have reports, whether they exist or not, best first.
pub fn homes() -> Vec<PathBuf> {
    paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default()
}

/// The session whose file has this name.
pub(super) fn session_of(file: &str) -> Option<&str> {
    file.strip_suffix(".json").filter(|id| !id.is_empty() && !id.starts_with('.'))
}

/// The file of a session, by its id.
pub(crate) fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

/// The id of an agent's session where another agent has one with the same.
pub(super) fn apart(id: &str, agent: &str) -> String {
    format!("{id}{APART}{agent}")
}

/// A session's id, as its agent gave it.
pub(crate) fn given_id(id: &str) -> &str {
    id.split(APART).next().unwrap_or(id)
}

/// The ids of the sessions in a folder of reports.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<Arc<str>>> {
    let names = std::fs::read_dir(folder)?.flatten().map(|entry| entry.file_name());
    Ok(names.filter_map(|name| Some(session_of(name.to_str()?)?.into())).take(2 * MOST).collect())
}
