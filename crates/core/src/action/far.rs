//! What may be done with a session on another machine: what its host offers, but for what needs a screen there.

use super::verb::Action;
use crate::session::far::Far;
use crate::words::offer::Does;
use crate::words::refusal::Refusal;

/// What an action would do to a session on a host.
///
/// # Errors
/// Why it is refused.
pub(super) fn offer(action: Action, far: &Far) -> Result<Does, Refusal> {
    let host = || far.host.name.clone();
    let Some(told) = far.offers.iter().find(|told| told.action == action) else {
        return Err(Refusal::Untold { host: host() });
    };
    if let Some(unreached) = &far.unreached {
        return Err(Refusal::Unreached { host: host(), unreached: unreached.clone() });
    }
    if action == Action::ShowTerminal {
        return Err(Refusal::ShownThere { host: host() });
    }
    if !told.is_possible {
        return Err(Refusal::There { host: host(), why: told.words.clone() });
    }
    match action {
        Action::Resume if !far.host.has_terminal => Err(Refusal::ResumedThere { host: host() }),
        // It opens a terminal, which is here.
        Action::Resume => Ok(Does::ResumesThere { host: host() }),
        Action::Reconnect if far.is_resumed_only && far.host.has_terminal => Ok(Does::ResumesThere { host: host() }),
        Action::Reconnect if far.is_resumed_only => Err(Refusal::ResumedThere { host: host() }),
        Action::Stop => Ok(Does::Stops { even_if_waiting: far.stops_if_waiting }),
        _ => Ok(Does::There { what: told.words.clone() }),
    }
}
