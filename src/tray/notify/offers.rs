//! Waits for clicks on the notes that are on the screen, or in the server's history.

use super::server::{Bus, Server, ServerEvent, Signal};
use crate::tray::note::{Offer, OfferTaken};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The name of a note's button, and of the one that only closes it.
pub(super) const OFFER: &str = "offer";
pub(super) const LATER: [&str; 2] = ["later", "Not now"];
/// How many notes can be clicked at once. The oldest makes room: a history may keep notes for ever.
const LISTENERS_MAX: usize = 8;
/// How long a note can be clicked: servers may never report that it was closed.
const MAX_AGE: Duration = Duration::from_secs(12 * 3600);

/// A note that was sent.
pub(super) struct Shown {
    /// Receives what the server reports.
    pub(super) bus: Bus,
    /// The server that shows it.
    pub(super) server: Server,
    /// The server's number for it.
    pub(super) number: u32,
}

/// The tasks that wait for a click on a note each.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<VecDeque<AbortHandle>>);

impl Listeners {
    /// Calls `taken` with what the user chose, if the note is clicked.
    pub(super) fn listen(&self, shown: Shown, offer: Offer, taken: OfferTaken) {
        if !shown.server.capabilities.actions {
            return;
        }
        let task = tokio::spawn(async move {
            if let Ok(Some(is_button)) = timeout(MAX_AGE, clicked(shown)).await {
                taken(if is_button { offer.effect } else { offer.on_body });
            }
        });
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| !task.is_finished());
        tasks.push_back(task.abort_handle());
        if tasks.len() > LISTENERS_MAX
            && let Some(oldest) = tasks.pop_front()
        {
            oldest.abort();
        }
    }
}

/// Waits until the note is clicked, and returns whether on its button; `None` if it is closed or its server is gone.
async fn clicked(Shown { mut bus, server, number }: Shown) -> Option<bool> {
    loop {
        match bus.next().await {
            ServerEvent::Signal(message) => match server.read(&message) {
                Some((of, Signal::Invoked(action))) if of == number => {
                    let _ = server.close(number).await; // some servers leave that to us, others have done it
                    return match &*action {
                        OFFER => Some(true),
                        "default" => Some(false),
                        _ => None,
                    };
                }
                Some((of, Signal::Closed { .. })) if of == number => return None,
                _ => {}
            },
            ServerEvent::Owner(owner) if owner.as_ref() == Some(&server.owner) => {}
            ServerEvent::Owner(_) | ServerEvent::Lost => return None,
        }
    }
}
