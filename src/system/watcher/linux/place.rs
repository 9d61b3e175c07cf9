//! Maps watches to folders. The kernel has one watch for a folder, however many names it has.

use crate::core::session::{Key, SourceId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// All watches and their places.
#[derive(Default)]
pub(super) struct Watches {
    /// Watches on the folder of a single old session: watch, home and id, sorted by watch. There may be tens of
    /// thousands.
    old: Vec<(i32, u32, Arc<str>)>,
    others: HashMap<i32, Places>,
}

impl Watches {
    pub(super) fn get(&self, watch: i32) -> Option<Cow<'_, Places>> {
        if let Some(places) = self.others.get(&watch) {
            return Some(Cow::Borrowed(places));
        }
        let at = self.find(watch).ok()?;
        let (_, home, id) = &self.old[at];
        Some(Cow::Owned(Places::One(Place::Session(*home, Arc::clone(id)))))
    }

    fn find(&self, watch: i32) -> Result<usize, usize> {
        self.old.binary_search_by_key(&watch, |(watch, ..)| *watch)
    }

    pub(super) fn add(&mut self, watch: i32, place: Place) {
        match self.remove(watch) {
            Some(mut places) => {
                places.add(place);
                self.others.insert(watch, places);
            }
            None => drop(self.others.insert(watch, Places::One(place))),
        }
    }

    /// Adds an old session's folder to a watch.
    pub(super) fn add_old(&mut self, watch: i32, key: &Key) {
        if self.others.contains_key(&watch) {
            return self.add(watch, Place::of(key));
        }
        let old = (watch, home(key), Arc::clone(&key.id));
        match self.find(watch) {
            Ok(at) if self.old[at] == old => {}
            Ok(_) => self.add(watch, Place::of(key)),
            // Watch descriptors increase until they wrap around, so this is usually the end.
            Err(at) => self.old.insert(at, old),
        }
    }

    pub(super) fn remove(&mut self, watch: i32) -> Option<Places> {
        if let Some(places) = self.others.remove(&watch) {
            return Some(places);
        }
        let (_, home, id) = self.find(watch).ok().map(|at| self.old.remove(at))?;
        Some(Places::One(Place::Session(home, id)))
    }

    /// Removes places from a watch. Returns whether it has none left.
    pub(super) fn leave(&mut self, watch: i32, goes: impl Fn(&Place) -> bool) -> bool {
        let Some(left) = self.get(watch).map(|places| places.without(goes)) else { return false };
        self.remove(watch);
        let is_left = left.is_some();
        self.others.extend(left.map(|left| (watch, left)));
        !is_left
    }

    /// The watches on the folders of a home's sessions.
    pub(super) fn of_home(&self, home: SourceId) -> Vec<i32> {
        let is_of = |place: &Place| matches!(place, Place::Session(of, _) if *of as usize == home.0);
        let others = self.others.iter().filter(|(_, places)| places.all().iter().any(is_of));
        let old = self.old.iter().filter(|(_, of, _)| *of as usize == home.0);
        others.map(|(watch, _)| *watch).chain(old.map(|(watch, ..)| *watch)).collect()
    }

    pub(super) fn shrink(&mut self) {
        self.old.shrink_to_fit();
        self.others.shrink_to_fit();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.old.len() + self.others.len()
    }
}

fn home(key: &Key) -> u32 {
    u32::try_from(key.source.0).unwrap_or(u32::MAX)
}

/// The places of a watch: usually one, but a folder may have several names.
#[derive(Clone)]
pub(super) enum Places {
    One(Place),
    Several(Box<[Place]>),
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A session's folder.
    Session(u32, Arc<str>),
    /// Any other folder.
    Folder(Arc<Path>),
}

impl Place {
    /// The key of the session with this home and id.
    pub(super) fn key(home: u32, id: &Arc<str>) -> Key {
        Key::new(SourceId(home as usize), Arc::clone(id))
    }

    pub(super) fn of(key: &Key) -> Self {
        Self::Session(home(key), Arc::clone(&key.id))
    }
}

impl Places {
    pub(super) fn all(&self) -> &[Place] {
        match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Several(places) => places,
        }
    }

    pub(super) fn add(&mut self, place: Place) {
        if !self.all().contains(&place) {
            *self = Self::Several(self.all().iter().cloned().chain([place]).collect());
        }
    }

    /// The places without some; `None` if none are left.
    pub(super) fn without(&self, goes: impl Fn(&Place) -> bool) -> Option<Self> {
        let mut left: Vec<_> = self.all().iter().filter(|place| !goes(place)).cloned().collect();
        match left.len() {
            0 => None,
            1 => left.pop().map(Self::One),
            _ => Some(Self::Several(left.into())),
        }
    }
}
