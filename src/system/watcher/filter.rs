//! Which file events are relevant, and what each of them means.

use super::hints::Hints;
use super::plan::WatchPlan;
use crate::core::session::{Key, SourceId};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::Arc;

/// Selects the relevant events.
pub(super) struct Filter {
    pub(super) plan: &'static WatchPlan,
    /// By home, all names of the folder that holds the session folders; none for a home that is no longer followed.
    pub(super) roots: Vec<Vec<PathBuf>>,
    /// Further paths on the routes to them.
    pub(super) points: HashSet<PathBuf>,
    pub(super) seen: Option<PathBuf>,
    /// All names of the settings file.
    pub(super) config: Vec<PathBuf>,
}

impl Filter {
    /// A filter for homes of this plan, which lets nothing through yet.
    pub(super) fn new(plan: &'static WatchPlan) -> Self {
        Self { plan, roots: Vec::new(), points: HashSet::new(), seen: None, config: Vec::new() }
    }

    /// Handles an event on a path; `went` if its former file may be gone or replaced. Returns whether the event was
    /// relevant.
    pub(super) fn add(&self, path: &Path, went: bool, hints: &mut Hints) -> bool {
        let leads_home = self.points.contains(path) || self.roots.iter().flatten().any(|root| root.starts_with(path));
        // A home, a folder above one, or a session's folder. Nothing below a session's folder is watched.
        let is_session = || self.roots.iter().flatten().any(|root| path.parent() == Some(root.as_path()));
        if went && (leads_home || is_session()) {
            hints.gone.insert(path.to_owned());
        }
        hints.routes |= leads_home;
        let (is_seen, is_config) = (self.seen.as_deref() == Some(path), self.config.iter().any(|own| own == path));
        (hints.seen, hints.config) = (hints.seen || is_seen, hints.config || is_config);
        self.add_path(path, hints) | leads_home | is_seen | is_config
    }

    /// Handles an event on a file in a session's folder, or on the folder itself.
    #[cfg(target_os = "linux")]
    pub(super) fn add_session_file(&self, key: &Key, file: Option<&str>, hints: &mut Hints) {
        let is_followed = self.roots.get(key.source.0).is_some_and(|names| !names.is_empty());
        if is_followed && self.is_of_interest(file) && !hints.folders.contains(key) {
            hints.folders.insert(key.clone());
        }
    }

    /// The sessions whose folders are at or below this path: one, or all of a home (`None`).
    #[cfg(target_os = "linux")]
    pub(super) fn sessions_below(&self, path: &Path) -> Vec<(SourceId, Option<Arc<str>>)> {
        let homes = self.roots.iter().enumerate();
        let names = homes.flat_map(|(home, names)| names.iter().map(move |root| (SourceId(home), root)));
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
        for (home, names) in self.roots.iter().enumerate() {
            let Some(inside) = names.iter().find_map(|root| path.strip_prefix(root).ok()) else { continue };
            let mut parts = inside.components().map(std::path::Component::as_os_str);
            let (Some(id), file, deeper) = (parts.next(), parts.next(), parts.next()) else {
                return hints.homes.insert(SourceId(home));
            };
            let Some(id) = id.to_str().filter(|id| !id.starts_with('.')) else { return false };
            if deeper.is_some() || file.is_some() && !self.is_of_interest(file.and_then(|file| file.to_str())) {
                return false;
            }
            return hints.folders.insert(Key::new(SourceId(home), id));
        }
        let (name, folder) = (path.file_name().and_then(|name| name.to_str()), path.parent());
        let logs_of = |root: &PathBuf| root.parent().map(|home| home.join(self.plan.logs));
        if let Some(pid) = name.and_then(self.plan.log_pid) {
            let is_ours = self.roots.iter().flatten().any(|root| logs_of(root).as_deref() == folder);
            if is_ours {
                hints.logs.insert(pid);
            }
            return is_ours;
        }
        // In the home itself, one file matters.
        let is_in_home = |names: &Vec<PathBuf>| names.iter().any(|root| root.parent() == path.parent() && root != path);
        if path.file_name().is_some_and(|name| name == self.plan.notes) {
            let homes = self.roots.iter().enumerate().filter(|(_, names)| is_in_home(names));
            hints.opened.extend(homes.map(|(home, _)| SourceId(home)));
        }
        !hints.opened.is_empty()
    }

    /// Whether a file of a session folder is ever read. `None` is the folder itself.
    fn is_of_interest(&self, file: Option<&str>) -> bool {
        file.is_none_or(self.plan.is_session_file)
    }
}
