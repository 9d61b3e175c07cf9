//! The homes that are followed: where each is, and whether the folder there is still the one that was looked into.

use super::Key;
use crate::core::time::{Span, Time};
use crate::system::identity::Identity;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How often it is looked whether homes are where they were, where no event tells: file systems that have none, other systems
/// than Linux, watches that could not be had.
const EVERY: Span = Span::seconds(5);

/// The homes by their numbers. A home keeps its number for as long as the program runs.
pub(super) struct Homes {
    homes: Vec<Home>,
    look_at: Time,
}

struct Home {
    /// The folder that holds the session folders.
    root: PathBuf,
    is_followed: bool,
    stands: Stands,
}

/// What stands in the place of a home's sessions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// Not looked at, or something happened to it since.
    Unknown,
    /// Nothing.
    Nothing,
    /// This folder.
    Folder(Identity),
}

impl Stands {
    fn at(root: &Path) -> Self {
        fs::metadata(root).map_or(Self::Nothing, |meta| Self::Folder(Identity::of(&meta)))
    }
}

impl Home {
    fn at(root: PathBuf) -> Self {
        Self { root, is_followed: true, stands: Stands::Unknown }
    }
}

impl Homes {
    /// The homes of these roots, none of them looked at.
    pub(super) fn new(roots: &[PathBuf], now: Time) -> Self {
        Self { homes: roots.iter().cloned().map(Home::at).collect(), look_at: now }
    }

    /// The folder that holds the session folders of a home.
    pub(super) fn root(&self, home: usize) -> &Path {
        &self.homes[home].root
    }

    /// The folder of a session.
    pub(super) fn folder(&self, key: &Key) -> PathBuf {
        self.root(key.0).join(&*key.1)
    }

    /// The home that a session is in.
    pub(super) fn home_folder(&self, key: &Key) -> &Path {
        let root = self.root(key.0);
        root.parent().unwrap_or(root)
    }

    /// The number of the home with this root.
    pub(super) fn number(&self, root: &Path) -> Option<usize> {
        self.homes.iter().position(|home| home.root == root)
    }

    pub(super) fn is_followed(&self, home: usize) -> bool {
        self.homes.get(home).is_some_and(|home| home.is_followed)
    }

    /// The homes that are followed, with their roots.
    pub(super) fn followed(&self) -> impl Iterator<Item = (usize, &Path)> {
        let homes = self.homes.iter().enumerate().filter(|(_, home)| home.is_followed);
        homes.map(|(number, home)| (number, &*home.root))
    }

    /// The numbers of those that are followed.
    pub(super) fn numbers(&self) -> Vec<usize> {
        self.followed().map(|(home, _)| home).collect()
    }

    /// Their roots.
    pub(super) fn roots(&self) -> Vec<PathBuf> {
        self.followed().map(|(_, root)| root.to_owned()).collect()
    }

    /// Follows a home. Its number, unless it was followed already.
    pub(super) fn follow(&mut self, root: PathBuf) -> Option<usize> {
        let Some(home) = self.number(&root) else {
            self.homes.push(Home::at(root));
            return Some(self.homes.len() - 1);
        };
        let known = &mut self.homes[home];
        (!known.is_followed).then(|| *known = Home::at(root)).map(|()| home)
    }

    /// Follows a home no more.
    pub(super) fn leave(&mut self, home: usize) {
        self.homes[home].is_followed = false;
    }

    /// These paths are gone: with a home every watch below it went, though the same may be back by now.
    pub(super) fn doubt(&mut self, gone: &HashSet<PathBuf>) {
        for home in &mut self.homes {
            if home.root.ancestors().any(|path| gone.contains(path)) {
                home.stands = Stands::Unknown;
            }
        }
    }

    /// Anything may have happened to any of them.
    pub(super) fn doubt_all(&mut self) {
        for home in &mut self.homes {
            home.stands = Stands::Unknown;
        }
    }

    /// The followed homes in whose place something else stands now than when they were last looked at.
    pub(super) fn look(&mut self) -> Vec<usize> {
        let mut others = Vec::new();
        for (number, home) in self.homes.iter_mut().enumerate().filter(|(_, home)| home.is_followed) {
            let stands = Stands::at(&home.root);
            if std::mem::replace(&mut home.stands, stands) != stands {
                others.push(number);
            }
        }
        others
    }

    /// When they are to be looked at where no event tells of them.
    pub(super) fn look_at(&self) -> Option<Time> {
        (!self.homes.is_empty()).then_some(self.look_at)
    }

    /// Whether that is now; then it is again in five seconds.
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.look_at <= now;
        if is_due {
            self.look_at = now + EVERY;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(roots: &[&Path]) -> Homes {
        let roots: Vec<_> = roots.iter().map(|root| root.to_path_buf()).collect();
        Homes::new(&roots, Time(0))
    }

    #[test]
    fn a_home_is_another_when_it_is_made_removed_or_replaced_or_its_way_was() {
        let scratch = tempfile::tempdir().unwrap();
        let (root, aside) = (scratch.path().join("home/sessions"), scratch.path().join("aside"));
        let mut homes = homes(&[&root]);
        assert_eq!((homes.look(), homes.look()), (vec![0], vec![]), "nothing stands there");
        fs::create_dir_all(&root).unwrap();
        assert_eq!((homes.look(), homes.look()), (vec![0], vec![]), "made");
        fs::create_dir(&aside).unwrap();
        fs::remove_dir(&root).unwrap();
        fs::rename(&aside, &root).unwrap();
        assert_eq!((homes.look(), homes.look()), (vec![0], vec![]), "another one");
        homes.doubt(&HashSet::from([scratch.path().join("other")]));
        assert!(homes.look().is_empty());
        homes.doubt(&HashSet::from([scratch.path().join("home")]));
        assert_eq!(homes.look(), [0], "its way was gone for a moment");
        homes.doubt_all();
        assert_eq!(homes.look(), [0]);
    }

    #[test]
    fn a_home_that_is_followed_again_keeps_its_number_and_is_looked_at_anew() {
        let scratch = tempfile::tempdir().unwrap();
        let (a, b) = (scratch.path().join("a"), scratch.path().join("b"));
        let mut homes = homes(&[&a]);
        assert_eq!((homes.follow(b.clone()), homes.follow(b.clone())), (Some(1), None));
        assert_eq!(homes.look(), [0, 1]);
        homes.leave(0);
        assert!(!homes.is_followed(0) && homes.is_followed(1) && !homes.is_followed(2));
        homes.doubt_all();
        assert_eq!((homes.look(), homes.numbers(), homes.roots()), (vec![1], vec![1], vec![b]));
        assert_eq!(homes.follow(a.clone()), Some(0));
        assert_eq!((homes.look(), homes.number(&a)), (vec![0], Some(0)));
    }

    #[test]
    fn homes_are_due_every_five_seconds() {
        let mut homes = homes(&[Path::new("/a")]);
        assert_eq!(homes.look_at(), Some(Time(0)));
        assert!(homes.is_due(Time(0)) && !homes.is_due(Time(4999)) && homes.is_due(Time(5000)));
        assert_eq!(Homes::new(&[], Time(0)).look_at(), None);
    }
}
