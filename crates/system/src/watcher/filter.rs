//! Which file events are relevant, and what each of them means.

use super::hints::Hints;
use super::plan::{Layout, Subject, WatchPlan};
use pilotlight_core::session::{HomeId, Key};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::Arc;

/// Selects the relevant events.
#[derive(Default)]
pub(super) struct Filter {
    /// The homes, by their number.
    pub(super) homes: Vec<Home>,
    /// Further paths on the routes to them.
    pub(super) points: HashSet<PathBuf>,
    pub(super) seen: Option<PathBuf>,
    /// All names of the settings file.
    pub(super) config: Vec<PathBuf>,
    /// The sockets that are served.
    pub(super) sockets: Vec<PathBuf>,
}

/// A home whose events are relevant.
pub(super) struct Home {
    pub(super) plan: &'static WatchPlan,
    /// All names of the folder that holds the sessions; none for a home that is no longer followed.
    pub(super) names: Vec<PathBuf>,
}

impl Filter {
    fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        self.homes.iter().flat_map(|home| &home.names)
    }

    /// Whether the sessions of a home share folders.
    #[cfg(target_os = "linux")]
    pub(super) fn has_shared_folders(&self, home: HomeId) -> bool {
        self.homes.get(home.0).is_some_and(|home| home.plan.shares_folders())
    }

    /// Handles an event on a path; `went` if its former file may be gone or replaced. Returns whether the event was
    /// relevant.
    pub(super) fn add(&self, path: &Path, went: bool, hints: &mut Hints) -> bool {
        let leads_home = self.points.contains(path) || self.roots().any(|root| root.starts_with(path));
        // A home, a folder above one, or a folder in one. Nothing below a session's folder is watched.
        if went && (leads_home || self.is_folder_of_sessions(path)) {
            hints.gone.insert(path.to_owned());
        }
        hints.routes |= leads_home;
        let is_socket = went && self.sockets.iter().any(|own| own == path);
        hints.sockets |= is_socket;
        let (is_seen, is_config) = (self.seen.as_deref() == Some(path), self.config.iter().any(|own| own == path));
        (hints.seen, hints.config) = (hints.seen || is_seen, hints.config || is_config);
        self.add_path(path, hints) | leads_home | is_seen | is_config | is_socket
    }

    /// Whether this may be a watched folder of one session or of several.
    fn is_folder_of_sessions(&self, path: &Path) -> bool {
        let is_in = |home: &Home, inside: &Path| match home.plan.layout {
            Layout::Folders { .. } => inside.components().count() == 1,
            Layout::Files { .. } => home.plan.layout.subject(inside) == Subject::List,
        };
        let inside = |home: &Home| home.names.iter().find_map(|root| path.strip_prefix(root).ok()).map(Path::to_owned);
        self.homes.iter().any(|home| inside(home).is_some_and(|inside| is_in(home, &inside)))
    }

    /// Handles an event on a file in a session's own folder, or on the folder itself.
    #[cfg(target_os = "linux")]
    pub(super) fn add_session_file(&self, key: &Key, file: Option<&str>, hints: &mut Hints) {
        let home = self.homes.get(key.home.0).filter(|home| !home.names.is_empty());
        let is_read = |home: &Home| match home.plan.layout {
            Layout::Folders { is_session_file } => file.is_none_or(is_session_file),
            Layout::Files { .. } => false, // no session has one
        };
        if home.is_some_and(is_read) && !hints.folders.contains(key) {
            hints.folders.insert(key.clone());
        }
    }

    /// The sessions whose folders are at or below this path: one, or all of a home (`None`).
    #[cfg(target_os = "linux")]
    pub(super) fn sessions_below(&self, path: &Path) -> Vec<(HomeId, Option<Arc<str>>)> {
        let homes = self.homes.iter().enumerate();
        let names = homes.flat_map(|(home, of)| of.names.iter().map(move |root| (HomeId(home), root)));
        let below = names.filter_map(|(home, root)| match root.starts_with(path) {
            true => Some((home, None)),
            false => {
                let id = path.file_name().and_then(|id| id.to_str()).filter(|_| path.parent() == Some(root))?;
                Some((home, Some(id.into())))
            }
        });
        below.collect()
    }

    fn add_path(&self, path: &Path, hints: &mut Hints) -> bool {
        for (number, home) in self.homes.iter().enumerate() {
            let Some(inside) = home.names.iter().find_map(|root| path.strip_prefix(root).ok()) else { continue };
            return match home.plan.layout.subject(inside) {
                Subject::Session(id) => hints.folders.insert(Key::new(HomeId(number), id)),
                Subject::List => hints.homes.insert(HomeId(number)),
                Subject::Nothing => false,
            };
        }
        let Some((name, folder)) = path.file_name().and_then(|name| name.to_str()).zip(path.parent()) else {
            return false;
        };
        let mut is_relevant = false;
        for (number, Home { plan, names }) in self.homes.iter().enumerate() {
            for (root, home) in names.iter().filter_map(|root| Some((root, root.parent()?))) {
                let logs = plan.logs.filter(|logs| home.join(logs.folder) == folder);
                let locks = plan.locks.filter(|locks| home.join(locks.folder) == folder);
                if let Some((logs, pid)) = logs.and_then(|logs| Some((logs, (logs.pid)(name)?))) {
                    let of = (HomeId(number), pid);
                    is_relevant |= if logs.names_session { hints.named.insert(of) } else { hints.logs.insert(of) };
                } else if let Some(id) = locks.and_then(|locks| (locks.session_of)(name)) {
                    is_relevant |= hints.folders.insert(Key::new(HomeId(number), id));
                } else if plan.notes == Some(name) && home == folder && root != path {
                    is_relevant |= hints.opened.insert(HomeId(number));
                }
            }
        }
        is_relevant
    }
}
