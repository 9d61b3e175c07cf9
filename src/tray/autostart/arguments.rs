//! How the program is started at login.

use anyhow::Context;
use std::path::PathBuf;

/// The arguments of the program when it is started at login.
///
/// # Errors
/// Where a home's path is not valid UTF-8, which the entry needs.
pub(super) fn arguments(homes: &[PathBuf]) -> anyhow::Result<Vec<&str>> {
    let mut words = vec!["tray"];
    for home in homes {
        let home = home.to_str().with_context(|| format!("the path of {} is not valid UTF-8", home.display()))?;
        words.extend(["--home", home]);
    }
    Ok(words)
}
