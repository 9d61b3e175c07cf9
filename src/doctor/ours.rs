//! Our own files, and whether one is broken.

#[cfg(target_os = "linux")]
use crate::tray::autostart::Login;
use crate::tray::notifier;
use pilotlight_engine::last_seen;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A file of ours, by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ours {
    /// What is remembered of each session. An entry of another form is not read.
    Seen,
    /// What is muted or paused.
    Quiet,
    /// Our own log.
    Log,
    /// The entry that starts us at login.
    #[cfg(target_os = "linux")]
    Entry,
}

impl Ours {
    /// Whether the file cannot be used. A link is judged by its target, and a missing file is not broken.
    pub(super) fn is_broken(self, path: &Path) -> bool {
        match self {
            Self::Seen => last_seen::is_broken(path),
            Self::Quiet => notifier::is_broken(path),
            Self::Log => takes_no_log(path),
            #[cfg(target_os = "linux")]
            Self::Entry => Login::find(&[]).stale_entries().iter().any(|(entry, _)| entry == path),
        }
    }
}

/// Whether it is not a plain file, or a link to where no file can be created.
fn takes_no_log(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(meta) => !meta.is_file(),
        Err(error) => {
            let target = fs::read_link(path).ok().zip(path.parent()).map(|(to, folder)| folder.join(to));
            let is_possible = |target: &Path| target.parent().is_some_and(Path::is_dir);
            target.is_some_and(|target| error.kind() != ErrorKind::NotFound || !is_possible(&target))
        }
    }
}
