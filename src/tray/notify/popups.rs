//! The popups of [`alert`](pilotlight_core::alert) on a Linux desktop.
//!
//! Callers only change the [wanted](Wanted) set, without blocking; the [`Reconciler`] applies it to the screen.

use super::PopupConfig;
use super::reconciler::{Reconciler, State, Wanted, lock};
use pilotlight_core::alert::Change;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long the exit waits for popups to be closed.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Shows and withdraws popups, and reports clicks on them.
pub struct Popups {
    wanted: Arc<Mutex<Wanted>>,
    wake: mpsc::Sender<()>,
    task: JoinHandle<()>,
}

impl Popups {
    /// Starts the task. It does not connect to the bus before the first popup.
    pub fn start(config: PopupConfig) -> Self {
        let (wake, wakes) = mpsc::channel(1);
        let wanted = Arc::<Mutex<Wanted>>::default();
        let runtime = config.runtime.clone();
        let reconciler = Reconciler::new(Arc::clone(&wanted), config);
        let task = runtime.spawn(reconciler.run(wakes));
        Self { wanted, wake, task }
    }

    /// Applies a change without blocking.
    pub fn apply(&self, change: Change) {
        let mut wanted = lock(&self.wanted);
        match change {
            Change::Raise(popup) => drop(wanted.insert(popup.id, (popup, State::New))),
            // A new text does not bring back a popup that was closed in the meantime.
            Change::Replace(popup) => {
                if let Some((known, state)) = wanted.get_mut(&popup.id) {
                    *known = popup;
                    if *state == State::Sent {
                        *state = State::New; // a lost one waits for its retry
                    }
                }
            }
            Change::Withdraw(id) => drop(wanted.remove(&id)),
        }
        drop(wanted);
        let _ = self.wake.try_send(()); // fails only if a wake-up is pending or the task has ended
    }

    /// Closes all popups, at exit: nothing would handle clicks on them any more.
    pub async fn close(self) {
        let Self { wake, task, .. } = self;
        drop(wake);
        let _ = timeout(CLOSE_TIMEOUT, task).await;
    }
}
