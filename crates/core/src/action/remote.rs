//! What may be done with a session on another machine: what its host offers, but for what needs a screen there.

use super::spec::Action;
use crate::session::remote::Remote;
use crate::words::offer::Does;
use crate::words::refusal::Refusal;

/// What an action would do to a session on a host.
///
/// # Errors
/// Why it is refused.
pub(super) fn offer(action: Action, remote: &Remote) -> Result<Does, Refusal> {
    let host = || remote.host.name.clone();
    let Some(told) = remote.offers.iter().find(|told| told.action == action) else {
        return Err(Refusal::Untold { host: host() });
    };
    if let Some(unreached) = &remote.unreached {
        return Err(Refusal::Unreached { host: host(), unreached: unreached.clone() });
    }
    if action == Action::ShowTerminal {
        return Err(Refusal::ShownThere { host: host() });
    }
    if !told.is_possible {
        return Err(Refusal::There { host: host(), why: told.words.clone() });
    }
    match action {
        Action::Resume if !remote.host.has_terminal => Err(Refusal::ResumedThere { host: host() }),
        // It opens a terminal, which is here.
        Action::Resume => Ok(Does::ResumesThere { host: host() }),
        Action::Reconnect if remote.is_resumed_only && remote.host.has_terminal => {
            Ok(Does::ResumesThere { host: host() })
        }
        Action::Reconnect if remote.is_resumed_only => Err(Refusal::ResumedThere { host: host() }),
        Action::Stop => Ok(Does::Stops { even_if_waiting: remote.stops_if_waiting }),
        _ => Ok(Does::There { what: told.words.clone() }),
    }
}
