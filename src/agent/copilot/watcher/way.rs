//! The way to a home: the folders and links that its path leads through.
//!
//! A watch is on a folder, not on a name: when somebody renames a folder and puts another in its place, the watch goes with the
//! old one. So every folder on the way is watched for being moved or removed, which tells nothing of what happens in it; and
//! the folder that holds a link, or in which the way ends too early, for what comes and goes there.

use crate::agent::copilot::opened::LOGS;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// What is to be told of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// That it was moved or removed.
    Itself,
    /// What is put in place of a file in it, too.
    Replaced,
    /// What comes and goes in it, too.
    Entries,
    /// What is written in it, too.
    Changes,
}

/// More links than this on one way go round in a circle.
const LINKS_MAX: usize = 40;

/// Where the ways to all homes lead through.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ways {
    /// What is to be watched.
    pub(super) folders: BTreeMap<PathBuf, What>,
    /// Every name on the ways, the first one that does not exist included.
    pub(super) points: HashSet<PathBuf>,
    /// The folders of logs that are not there: each is looked for when something else happens in its home.
    pub(super) missing: Vec<PathBuf>,
}

impl Ways {
    pub(super) fn to<'a>(roots: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut ways = Self::default();
        for root in roots {
            ways.walk(root);
        }
        ways
    }

    fn want(&mut self, folder: &Path, what: What) {
        let wanted = self.folders.entry(folder.to_owned()).or_insert(what);
        *wanted = what.max(*wanted);
    }

    fn walk(&mut self, root: &Path) {
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
                    self.want(&next, What::Itself);
                    here = next;
                }
                Ok(meta) if meta.is_symlink() && links < LINKS_MAX => {
                    self.want(&here, What::Entries);
                    links += 1;
                    let Ok(target) = fs::read_link(&next) else { return };
                    if target.is_absolute() {
                        here = PathBuf::from("/");
                    }
                    for part in parts(&target).into_iter().rev() {
                        rest.push_front(part);
                    }
                }
                _ => return self.want(&here, What::Entries),
            }
        }
        // By its own name: that is what is told of it by.
        self.folders.remove(&here);
        self.points.insert(root.to_owned());
        self.want(root, What::Changes);
        // Beside the sessions, a home has a file that says what its terminals have open, and the logs of its processes. What else
        // comes and goes there, journals of a database among it, is nobody's business, whether there are logs or not.
        if let Some(home) = root.parent() {
            self.points.insert(home.to_owned());
            self.want(home, What::Replaced);
            let logs = home.join(LOGS);
            if logs.is_dir() {
                self.want(&logs, What::Changes);
            } else {
                self.missing.push(logs.clone());
            }
            self.points.insert(logs);
        }
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_way_leads_through_folders_and_links_and_ends_where_something_is_missing() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let home = base.join("home");
        let root = home.join("session-state");
        let what = |ways: &Ways, path: &Path| ways.folders.get(path).copied();

        let ways = Ways::to([&*root]);
        assert_eq!((what(&ways, &base), what(&ways, &home)), (Some(What::Entries), None));
        assert!(ways.points.contains(&home) && !ways.points.contains(&root));

        fs::create_dir_all(&root).unwrap();
        let ways = Ways::to([&*root]);
        assert_eq!((what(&ways, &root), what(&ways, &home)), (Some(What::Changes), Some(What::Replaced)));
        assert_eq!((what(&ways, &base), &ways.missing), (Some(What::Itself), &vec![home.join(LOGS)]));
        // The logs of its processes come with the first of them.
        fs::create_dir(home.join(LOGS)).unwrap();
        let ways = Ways::to([&*root]);
        assert_eq!((what(&ways, &home.join(LOGS)), what(&ways, &home)), (Some(What::Changes), Some(What::Replaced)));
        assert!(ways.missing.is_empty());

        // By way of a link that leads to a link.
        symlink("home", base.join("first")).unwrap();
        fs::create_dir(base.join("links")).unwrap();
        symlink("../first/.", base.join("links/second")).unwrap();
        let linked = base.join("links/second/session-state");
        let ways = Ways::to([&*linked]);
        assert_eq!(what(&ways, &linked), Some(What::Changes));
        assert_eq!((what(&ways, &base), what(&ways, &base.join("links"))), (Some(What::Entries), Some(What::Entries)));
        assert_eq!(what(&ways, &home), Some(What::Itself));
        for point in ["first", "links", "links/second", "home", "home/session-state"] {
            assert!(ways.points.contains(&base.join(point)), "{point}");
        }

        symlink("round", base.join("round")).unwrap();
        assert_eq!(what(&Ways::to([&*base.join("round/session-state")]), &base), Some(What::Entries));
    }
}
