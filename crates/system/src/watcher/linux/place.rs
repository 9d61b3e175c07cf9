//! Maps watches to folders. The kernel has one watch for a folder, however many names it has.

use pilotlight_core::session::{HomeId, Key};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::Arc;

/// All watches and their places. There may be tens of thousands.
#[derive(Default)]
pub(super) struct Watches(HashMap<i32, Places>);

impl Watches {
    pub(super) fn get(&self, watch: i32) -> Option<&Places> {
        self.0.get(&watch)
    }

    pub(super) fn add(&mut self, watch: i32, place: Place) {
        match self.0.entry(watch) {
            Entry::Occupied(places) => places.into_mut().add(place),
            Entry::Vacant(none) => drop(none.insert(Places::One(place))),
        }
    }

    pub(super) fn remove(&mut self, watch: i32) -> Option<Places> {
        self.0.remove(&watch)
    }

    /// Removes places from a watch. Returns whether it has none left.
    pub(super) fn leave(&mut self, watch: i32, goes: impl Fn(&Place) -> bool) -> bool {
        let Some(places) = self.0.get_mut(&watch) else { return false };
        match places.without(goes) {
            Some(left) => *places = left,
            None => drop(self.0.remove(&watch)),
        }
        !self.0.contains_key(&watch)
    }

    /// The watches on the folders of a home's sessions.
    pub(super) fn of_home(&self, home: HomeId) -> Vec<i32> {
        let is_of = |place: &Place| matches!(place, Place::Session(of, _) if *of as usize == home.0);
        self.0.iter().filter(|(_, places)| places.all().iter().any(is_of)).map(|(watch, _)| *watch).collect()
    }

    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn home(key: &Key) -> u32 {
    u32::try_from(key.home.0).unwrap_or(u32::MAX)
}

/// The places of a watch: usually one, but a folder may have several names.
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
        Key::new(HomeId(home as usize), Arc::clone(id))
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
