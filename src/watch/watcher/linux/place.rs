//! What a watch is on: the system gives a folder one watch, whatever names it has.

use crate::watch::watcher::Key;
use std::path::Path;
use std::sync::Arc;

/// What a watch is on: usually one place, but a folder may have several names.
pub(super) enum Places {
    One(Place),
    Several(Box<[Place]>),
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A session's folder.
    Session(u32, Arc<str>),
    /// Any other.
    Folder(Arc<Path>),
}

impl Place {
    pub(super) fn of(key: &Key) -> Self {
        Self::Session(u32::try_from(key.0).unwrap_or(u32::MAX), Arc::clone(&key.1))
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

    /// The same without those; `None` if nothing is left.
    pub(super) fn without(&self, goes: impl Fn(&Place) -> bool) -> Option<Self> {
        let mut left: Vec<_> = self.all().iter().filter(|place| !goes(place)).cloned().collect();
        match left.len() {
            0 => None,
            1 => left.pop().map(Self::One),
            _ => Some(Self::Several(left.into())),
        }
    }
}
