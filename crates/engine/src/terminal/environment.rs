//! The parts of our environment that matter for terminals.

use pilotlight_system::paths;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    /// `PATH`.
    pub(super) path: Option<OsString>,
    /// `TERMINAL`.
    pub(super) terminal: Option<OsString>,
    /// `XDG_CURRENT_DESKTOP`: names separated by colons.
    pub(super) desktop: Option<OsString>,
    /// Whether there is an X server, by `DISPLAY`.
    pub(super) x11: bool,
    /// Whether there is a Wayland compositor, by `WAYLAND_DISPLAY`.
    pub(super) wayland: bool,
    /// The user's home.
    pub(super) home: Option<PathBuf>,
    /// The folder of the desktop's settings.
    pub(super) settings: Option<PathBuf>,
}

impl Environment {
    pub(super) fn read() -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = paths::user_home();
        let settings = var("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        Self {
            path: var("PATH"),
            terminal: var("TERMINAL"),
            desktop: var("XDG_CURRENT_DESKTOP"),
            x11: var("DISPLAY").is_some(),
            wayland: var("WAYLAND_DISPLAY").is_some(),
            settings: settings.or_else(|| Some(home.as_ref()?.join(".config"))),
            home,
        }
    }
}
