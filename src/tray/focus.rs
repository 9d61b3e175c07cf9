//! Finds out whether a session's terminal has the focus, for popups that wait while the user looks at it.
//!
//! tmux, the display and the compositor may be slow, so this happens beside the engine's thread, one session after the
//! other.

use super::messages::{NotifierEvent, NotifierSender};
use pilotlight_core::action::{Action, ServerState, offer};
use pilotlight_core::alert::FOCUS_TIMEOUT;
use pilotlight_core::fleet::Session;
use pilotlight_core::session::Key;
use pilotlight_core::verdict::Status;
use pilotlight_core::words::refusal::Refusal;
use pilotlight_engine::terminal::has_focus;
use pilotlight_system::process::{ancestors, terminal_of};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// The process of a session in a terminal that the user may look at, also where nothing can bring that to the front.
pub(super) fn process_in_terminal(session: &Session, status: Status) -> Option<u32> {
    let is_hosted = matches!(session.control.server, ServerState::Hosted(_));
    let shows = offer(Action::ShowTerminal, session, status);
    let has_terminal = matches!(shows, Ok(_) | Err(Refusal::NotShown { .. })) && !is_hosted;
    session.observed.owner.live().filter(|_| has_terminal)
}

/// Finds out whether terminals have the focus.
pub(crate) struct FocusFinder {
    handle: Handle,
    answer: NotifierSender,
    /// One at a time: what hangs takes one thread.
    turns: Arc<Semaphore>,
}

impl FocusFinder {
    /// `answer` gets the answers; `handle` is the runtime that waits for them.
    pub(crate) fn new(handle: Handle, answer: NotifierSender) -> Self {
        Self { handle, answer, turns: Arc::new(Semaphore::new(1)) }
    }

    /// Finds out whether the terminal of this process has the focus; `pane` is the tmux pane that its agent says it is in.
    pub(crate) fn find(&self, key: Key, pid: u32, pane: Option<Box<str>>) {
        let (turns, answer, queried) = (Arc::clone(&self.turns), Arc::clone(&self.answer), Instant::now());
        self.handle.spawn(async move {
            let _turn = turns.acquire().await; // fails only for a closed semaphore, which this is not
            let limit = Duration::from_millis(FOCUS_TIMEOUT.0.unsigned_abs());
            if queried.elapsed() >= limit {
                return; // nobody waits for it any longer
            }
            let find = move || has_focus(pid, &ancestors(pid), terminal_of(pid).as_deref(), pane.as_deref());
            let has_focus = tokio::task::spawn_blocking(find).await.unwrap_or(false);
            answer(NotifierEvent::Focus { about: key, has_focus });
        });
    }
}
