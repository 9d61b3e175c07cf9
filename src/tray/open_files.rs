//! What is opened in an editor: the settings, and what a bug report needs.
//!
//! A bug report is shown before it can be copied: it is written into a file of ours, opened in whatever shows text, and kept as
//! it was shown. What is copied is that, and not what would be found a moment later.

use super::open;
use crate::config;
use crate::system::state_file;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The file in the state folder that a bug report is shown from.
pub(crate) const DIAGNOSTICS: &str = "diagnostics.txt";

/// The papers of one user. All clones share what was shown.
#[derive(Clone)]
pub(crate) struct OpenFiles {
    config: Option<PathBuf>,
    state_folder: Option<PathBuf>,
    diagnose: Arc<dyn Fn() -> String + Send + Sync>,
    shown: Arc<Mutex<Option<String>>>,
}

impl OpenFiles {
    /// `config` is the file of the settings; `diagnose` makes the text of a bug report, and may take seconds.
    pub(crate) fn new(
        config: Option<PathBuf>,
        state_folder: Option<PathBuf>,
        diagnose: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self { config, state_folder, diagnose: Arc::new(diagnose), shown: Arc::default() }
    }

    /// Opens the settings, on a thread of its own. `failed` is called where that cannot be done.
    pub(super) fn open_settings(&self, failed: impl Fn(String) + Send + 'static) {
        let Some(path) = self.config.clone() else { return failed("no folder for settings is known".into()) };
        apart(failed, move || {
            make_config(&path)?;
            open::text(&path)
        });
    }

    /// Makes the text of a bug report and opens it, on a thread of its own. `failed` is called where that cannot be done.
    pub(super) fn show_diagnostics(&self, failed: impl Fn(String) + Send + 'static) {
        let Some(path) = self.state_folder.as_ref().map(|folder| folder.join(DIAGNOSTICS)) else {
            return failed(
                "there is no folder to write the diagnostics to: `pilotlight diagnostics` prints them".into(),
            );
        };
        let (diagnose, shown) = (Arc::clone(&self.diagnose), Arc::clone(&self.shown));
        apart(failed, move || {
            let text = diagnose();
            state_file::replace(&path, text.as_bytes())?;
            open::text(&path)?;
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            Ok(())
        });
    }

    /// The text that was shown last.
    pub(super) fn shown(&self) -> Option<String> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes the file of the settings where there is none: all keys, with their meaning, as comments. Whether it was made.
///
/// # Errors
/// Where it cannot be written.
pub(crate) fn make_config(path: &Path) -> anyhow::Result<bool> {
    if std::fs::symlink_metadata(path).is_ok() {
        return Ok(false);
    }
    state_file::replace(path, config::reference().as_bytes())?;
    Ok(true)
}

fn apart(failed: impl Fn(String) + Send + 'static, work: impl FnOnce() -> anyhow::Result<()> + Send + 'static) {
    let work = move || {
        if let Err(error) = work() {
            failed(format!("{error:#}"));
        }
    };
    if let Err(error) = std::thread::Builder::new().name("open-files".into()).spawn(work) {
        tracing::warn!("nothing can be opened: {error}");
    }
}
