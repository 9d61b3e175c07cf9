//! The route to a home: the folders and links that its path leads through.
//!
//! A watch is on a folder, not on a name: when a folder is renamed and replaced by another, the watch stays with the
//! old one. So every folder on the route is watched for being moved or removed, which causes no events for its
//! contents. A folder that contains a link of the route, or in which the route ends because the next part is missing,
//! is also watched for entries that appear or disappear.

use super::plan::WatchPlan;
use crate::mounts::parts;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Which events of a folder are watched. Each scope includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// The folder is moved or removed.
    Itself,
    /// A file is moved into it.
    Replaced,
    /// Entries appear or disappear.
    Entries,
    /// Files in it are written.
    Changes,
}

/// The most links on a route; more form a loop.
const LINKS_MAX: usize = 40;

/// A part of a route is missing.
struct Missing {
    is_last: bool,
}

/// The routes to all homes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Routes {
    /// The folders to watch.
    pub(super) folders: BTreeMap<PathBuf, Scope>,
    /// Every path on the routes, including the first one that does not exist.
    pub(super) points: HashSet<PathBuf>,
    /// Folders of logs and of locks that do not exist yet. They are looked for at the next event in their home.
    pub(super) missing: Vec<PathBuf>,
}

impl Routes {
    pub(super) fn to<'a>(roots: impl IntoIterator<Item = (&'a WatchPlan, &'a Path)>) -> Self {
        let mut routes = Self::default();
        for (plan, root) in roots {
            routes.walk(plan, root);
        }
        routes
    }

    /// The same, and the routes to homes that are not made yet.
    pub(super) fn and_to(mut self, awaited: &[PathBuf]) -> Self {
        for home in awaited {
            let _ = self.walk_to(home); // one that is there by now is followed like the others soon
        }
        self
    }

    fn want(&mut self, folder: &Path, scope: Scope) {
        let wanted = self.folders.entry(folder.to_owned()).or_insert(scope);
        *wanted = scope.max(*wanted);
    }

    fn walk(&mut self, plan: &WatchPlan, root: &Path) {
        let here = match self.walk_to(root) {
            Ok(here) => here,
            // A process that names its session does so before there is a folder for what it writes.
            Err(Missing { is_last: true }) if plan.names_sessions() => return self.walk_home(plan, root),
            Err(_) => return,
        };
        // By the configured path: that is how its events are recognised.
        self.folders.remove(&here);
        self.points.insert(root.to_owned());
        self.want(root, Scope::Changes);
        self.walk_home(plan, root);
    }

    /// Walks the route to a folder. Returns the folder's path without links, or whether the last part is what is missing.
    fn walk_to(&mut self, root: &Path) -> Result<PathBuf, Missing> {
        let mut rest: VecDeque<OsString> = parts(root);
        let (mut here, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                here.pop();
                continue;
            }
            let next = here.join(part);
            self.points.insert(next.clone());
            match fs::symlink_metadata(&next) {
                Ok(meta) if meta.is_dir() => {
                    self.want(&next, Scope::Itself);
                    here = next;
                }
                Ok(meta) if meta.is_symlink() && links < LINKS_MAX => {
                    self.want(&here, Scope::Entries);
                    links += 1;
                    let Ok(target) = fs::read_link(&next) else { return Err(Missing { is_last: false }) };
                    if target.is_absolute() {
                        here = PathBuf::from("/");
                    }
                    for part in parts(&target).into_iter().rev() {
                        rest.push_front(part);
                    }
                }
                _ => {
                    self.want(&here, Scope::Entries);
                    return Err(Missing { is_last: rest.is_empty() });
                }
            }
        }
        Ok(here)
    }

    /// What a home has besides the sessions: the record of open sessions, the files of its processes, and locks. Everything
    /// else that appears and disappears there, such as database journals, must cause no events. But while there is no folder
    /// yet whose first file nothing else may follow, it must be seen to appear: until then, and for ever in the home of a
    /// release that makes none, each such event wakes the watcher, though not the loop.
    fn walk_home(&mut self, plan: &WatchPlan, root: &Path) {
        let Some(home) = root.parent() else { return };
        self.points.insert(home.to_owned());
        self.want(home, Scope::Replaced);
        for (folder, may_come_last) in plan.folders().map(|(folder, last)| (home.join(folder), last)) {
            if folder.is_dir() {
                self.want(&folder, Scope::Changes);
            } else {
                if may_come_last {
                    self.want(home, Scope::Entries);
                }
                self.missing.push(folder.clone());
            }
            self.points.insert(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watcher::plan::{TEST_FILES, TEST_LOGS, TEST_NAMES, TEST_PLAN};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_route_leads_through_folders_and_links_and_ends_where_something_is_missing() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let home = base.join("home");
        let root = home.join("session-state");
        let scope = |routes: &Routes, path: &Path| routes.folders.get(path).copied();

        let routes = Routes::to([(&TEST_PLAN, &*root)]);
        assert_eq!((scope(&routes, &base), scope(&routes, &home)), (Some(Scope::Entries), None));
        assert!(routes.points.contains(&home) && !routes.points.contains(&root));

        fs::create_dir_all(&root).unwrap();
        let routes = Routes::to([(&TEST_PLAN, &*root)]);
        assert_eq!((scope(&routes, &root), scope(&routes, &home)), (Some(Scope::Changes), Some(Scope::Replaced)));
        assert_eq!((scope(&routes, &base), &routes.missing), (Some(Scope::Itself), &vec![home.join(TEST_LOGS.folder)]));
        // The first process creates the folder of logs.
        fs::create_dir(home.join(TEST_LOGS.folder)).unwrap();
        let routes = Routes::to([(&TEST_PLAN, &*root)]);
        assert_eq!(
            (scope(&routes, &home.join(TEST_LOGS.folder)), scope(&routes, &home)),
            (Some(Scope::Changes), Some(Scope::Replaced))
        );
        assert!(routes.missing.is_empty());

        // The first process that names its session creates the folder for that before any other.
        let first = base.join("first-of-all");
        let root_of = |home: &Path| home.join("projects");
        fs::create_dir(&first).unwrap();
        let routes = Routes::to([(&TEST_NAMES, &*root_of(&first))]);
        assert_eq!(scope(&routes, &first), Some(Scope::Entries));
        fs::create_dir(first.join(TEST_LOGS.folder)).unwrap();
        let routes = Routes::to([(&TEST_NAMES, &*root_of(&first))]);
        assert_eq!(scope(&routes, &first.join(TEST_LOGS.folder)), Some(Scope::Changes));
        fs::remove_dir(first.join(TEST_LOGS.folder)).unwrap();
        fs::create_dir(root_of(&first)).unwrap();
        let routes = Routes::to([(&TEST_NAMES, &*root_of(&first))]);
        assert_eq!(scope(&routes, &first), Some(Scope::Entries));
        fs::create_dir(first.join(TEST_LOGS.folder)).unwrap();
        let routes = Routes::to([(&TEST_NAMES, &*root_of(&first))]);
        assert_eq!(scope(&routes, &first), Some(Scope::Replaced));

        // So does the first owner of a session, whenever it takes its lock.
        let locked = base.join("locked");
        fs::create_dir_all(root_of(&locked)).unwrap();
        let routes = Routes::to([(&TEST_FILES, &*root_of(&locked))]);
        assert_eq!(scope(&routes, &locked), Some(Scope::Entries));
        fs::create_dir(locked.join("locks")).unwrap();
        let routes = Routes::to([(&TEST_FILES, &*root_of(&locked))]);
        assert_eq!(
            (scope(&routes, &locked.join("locks")), scope(&routes, &locked)),
            (Some(Scope::Changes), Some(Scope::Replaced))
        );

        // Through a link to a link.
        symlink("home", base.join("first")).unwrap();
        fs::create_dir(base.join("links")).unwrap();
        symlink("../first/.", base.join("links/second")).unwrap();
        let linked = base.join("links/second/session-state");
        let routes = Routes::to([(&TEST_PLAN, &*linked)]);
        assert_eq!(scope(&routes, &linked), Some(Scope::Changes));
        assert_eq!(
            (scope(&routes, &base), scope(&routes, &base.join("links"))),
            (Some(Scope::Entries), Some(Scope::Entries))
        );
        assert_eq!(scope(&routes, &home), Some(Scope::Itself));
        for point in ["first", "links", "links/second", "home", "home/session-state"] {
            assert!(routes.points.contains(&base.join(point)), "{point}");
        }

        symlink("round", base.join("round")).unwrap();
        assert_eq!(scope(&Routes::to([(&TEST_PLAN, &*base.join("round/session-state"))]), &base), Some(Scope::Entries));
    }
}
