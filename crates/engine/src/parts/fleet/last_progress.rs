//! When something was last heard of a session.

use pilotlight_core::time::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// When something was last heard of a session, by the wall clock: read by views when they word its age. Progress alone
/// is not reported to them, so what they were given then may be out of date.
#[derive(Clone, Debug, Default)]
pub struct LastProgress(Arc<AtomicI64>);

impl LastProgress {
    /// A time that stays.
    #[cfg(any(test, feature = "testing"))]
    pub fn at(time: Time) -> Self {
        Self(Arc::new(AtomicI64::new(time.0)))
    }

    pub fn set(&self, time: Time) {
        self.0.store(time.0, Ordering::Relaxed);
    }

    pub fn get(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }
}

/// Two are the same if they are of one session.
impl PartialEq for LastProgress {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
