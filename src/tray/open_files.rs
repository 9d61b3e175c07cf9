//! Opens the settings and the diagnostics in the default text program.
//!
//! Diagnostics are shown before they can be copied: they are written to a file, opened, and kept. What is copied is
//! exactly what was shown, and not newly collected.

use super::open;
use anyhow::Context as _;
use pilotlight_engine::config;
use pilotlight_system::log::{self, cause};
use pilotlight_system::state_file;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The file of the diagnostics, in the state folder.
pub(crate) const DIAGNOSTICS: &str = "diagnostics.txt";

/// The files that can be opened. All clones share the diagnostics that were shown.
#[derive(Clone)]
pub(crate) struct OpenFiles {
    config: Option<PathBuf>,
    state_folder: Option<PathBuf>,
    diagnose: Arc<dyn Fn() -> String + Send + Sync>,
    shown: Arc<Mutex<Option<String>>>,
}

impl OpenFiles {
    /// `config` is the settings file; `diagnose` collects the diagnostics, which may take seconds.
    pub(crate) fn new(
        config: Option<PathBuf>,
        state_folder: Option<PathBuf>,
        diagnose: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self { config, state_folder, diagnose: Arc::new(diagnose), shown: Arc::default() }
    }

    /// Opens the settings on its own thread. `failed` is called if that fails.
    pub(super) fn open_settings(&self, failed: impl Fn(String) + Send + 'static) {
        let Some(path) = self.config.clone() else { return failed("no folder for settings is known".into()) };
        spawn(failed, move || {
            make_config(&path)?;
            open::text(&path)
        });
    }

    /// Collects the diagnostics and opens them on its own thread. `failed` is called if that fails.
    pub(super) fn show_diagnostics(&self, failed: impl Fn(String) + Send + 'static) {
        let Some(path) = self.state_folder.as_ref().map(|folder| folder.join(DIAGNOSTICS)) else {
            return failed(
                "there is no folder to write the diagnostics to: `pilotlight diagnostics` prints them".into(),
            );
        };
        let (diagnose, shown) = (Arc::clone(&self.diagnose), Arc::clone(&self.shown));
        spawn(failed, move || {
            let text = diagnose();
            state_file::replace(&path, text.as_bytes())?;
            open::text(&path)?;
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            Ok(())
        });
    }

    /// The diagnostics that were last shown.
    pub(super) fn shown(&self) -> Option<String> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Creates the settings file if there is none, with all keys and their meaning as comments. Returns whether it was
/// created.
///
/// # Errors
/// Where it cannot be written.
pub(crate) fn make_config(path: &Path) -> anyhow::Result<bool> {
    if std::fs::symlink_metadata(path).is_ok() {
        return Ok(false);
    }
    state_file::replace(path, config::reference().as_bytes()).with_context(|| {
        let remedy = match path.ancestors().skip(1).find(|folder| folder.exists()) {
            Some(file) if !file.is_dir() => format!("{} is not a folder: move it away", file.display()),
            _ => "give yourself the right to".to_owned(),
        };
        format!("cannot write {}: {remedy}, or name another file with PILOTLIGHT_CONFIG", path.display())
    })?;
    Ok(true)
}

fn spawn(failed: impl Fn(String) + Send + 'static, work: impl FnOnce() -> anyhow::Result<()> + Send + 'static) {
    let work = move || {
        if let Err(error) = work() {
            failed(format!("{error:#}"));
        }
    };
    if let Err(error) = std::thread::Builder::new().name("open-files".into()).spawn(work) {
        log::warn!("nothing can be opened: {}", cause(&error));
    }
}
