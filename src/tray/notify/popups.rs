//! The popups of [`alert`](crate::core::alert) on a Linux desktop: what is wanted on the screen.
//!
//! Whoever wants something only writes it down and is never held up; the [`keeper`](super::keeper) makes it so.

use super::Means;
use super::keeper::Keeper;
use crate::core::alert::{Change, Popup, PopupId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The end of the program waits so long for popups to go.
const FAREWELL: Duration = Duration::from_millis(500);

/// What is to be on the screen.
pub(super) type Wanted = BTreeMap<PopupId, (Popup, State)>;

/// What became of a popup that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The server was not told yet.
    New,
    /// It was.
    Told,
    /// It could not be shown, or is gone with its server. It is tried again.
    Lost,
}

/// Shows popups, takes them back, and tells what the user does with them.
pub struct Popups {
    wanted: Arc<Mutex<Wanted>>,
    nudge: mpsc::Sender<()>,
    task: JoinHandle<()>,
}

impl Popups {
    /// Nothing is shown yet, and no bus is looked for before the first popup.
    pub fn start(means: Means) -> Self {
        let (nudge, nudges) = mpsc::channel(1);
        let wanted = Arc::<Mutex<Wanted>>::default();
        let runtime = means.runtime.clone();
        let keeper = Keeper::new(Arc::clone(&wanted), means);
        let task = runtime.spawn(keeper.run(nudges));
        Self { wanted, nudge, task }
    }

    /// Makes a change; returns at once.
    pub fn apply(&self, change: Change) {
        let mut wanted = lock(&self.wanted);
        match change {
            Change::Raise(popup) => drop(wanted.insert(popup.id, (popup, State::New))),
            // One that was closed meanwhile does not come back by saying something else.
            Change::Replace(popup) => {
                if let Some((known, state)) = wanted.get_mut(&popup.id) {
                    *known = popup;
                    if *state == State::Told {
                        *state = State::New; // one that is lost is tried in its time
                    }
                }
            }
            Change::Withdraw(id) => drop(wanted.remove(&id)),
        }
        drop(wanted);
        let _ = self.nudge.try_send(()); // full: the task is about to look anyway
    }

    /// Takes all popups away, for the end of the program: nobody would hear a click any more.
    pub async fn end(self) {
        let Self { nudge, task, .. } = self;
        drop(nudge);
        let _ = timeout(FAREWELL, task).await;
    }
}

/// What one thread wrote down before it broke is as good as ever.
pub(super) fn lock(wanted: &Mutex<Wanted>) -> MutexGuard<'_, Wanted> {
    wanted.lock().unwrap_or_else(PoisonError::into_inner)
}
