//! The bridge to a session in a plain terminal: what it may do, and whether its user can be asked there to allow more.

use super::reach::{bridge_of, is_at_server, questions, release, remedy};
use crate::owner::Owner;
use crate::session::{Bridge, Session};
use crate::words::offer::Does;
use crate::words::refusal::{Refusal, Remedy, untried};

/// What is said of a bridge that is not of this program's version: it runs as long as its session.
pub const OTHER_VERSION: &str = "it is of another version than this Pilotlight: restart the session to have this one";

/// Describes what the bridge to its terminal may do.
pub fn bridge_words(session: &Session) -> Option<String> {
    let words = match bridge_of(session)? {
        Bridge::Watches => untried(&release(session)),
        Bridge::Joined => "a bridge reaches its terminal; permission requests are answered there".into(),
        Bridge::Declined => {
            "a bridge reaches its terminal; you told Copilot there that it may not answer requests".into()
        }
        Bridge::Asking => "a bridge reaches its terminal, where Copilot asks whether it may answer requests".into(),
        Bridge::Elevated => "a bridge reaches its terminal, and may answer its permission requests".into(),
    };
    Some(if session.control.old_bridge { format!("{words}; {OTHER_VERSION}") } else { words })
}

/// Checks that the bridge may answer permission requests.
pub(super) fn may_answer(bridge: Bridge, session: &Session) -> Result<(), Refusal> {
    Err(match bridge {
        Bridge::Elevated => return Ok(()),
        Bridge::Watches => Refusal::Watched { release: release(session) },
        Bridge::Joined => Refusal::AnswerThere,
        Bridge::Declined => Refusal::Declined,
        Bridge::Asking => Refusal::AsksFirst,
    })
}

/// Checks that its user can be asked in the terminal. Never while a dialog may be open there: the question would take
/// the keys meant for it.
pub(super) fn let_answer(session: &Session) -> Result<Does, Refusal> {
    match session.observed.owner {
        Owner::Alive { .. } | Owner::Opened { .. } => {}
        Owner::Unheld { pid } => return Err(Refusal::Unheld { pid }),
        Owner::Unknown { pid } => return Err(Refusal::MayRun { pid }),
        Owner::Doubtful { pid, why } => return Err(Refusal::Doubtful { pid, why }),
        Owner::Gone { .. } | Owner::Never => return Err(Refusal::NoProcess),
    }
    match bridge_of(session) {
        None if is_at_server(session) => return Err(Refusal::AtServer),
        None if remedy(session) == Remedy::Unheard => return Err(Refusal::BridgeUnheard),
        None => return Err(Refusal::NoBridge { remedy: remedy(session) }),
        Some(Bridge::Elevated) => return Err(Refusal::MayAnswer),
        Some(Bridge::Joined) => {}
        Some(Bridge::Watches) => return Err(Refusal::OnlyWatches { release: release(session) }),
        Some(Bridge::Declined) => return Err(Refusal::DeclinedForSession),
        Some(Bridge::Asking) => return Err(Refusal::AlreadyAsking),
    }
    // In autopilot Copilot would refuse on its own, for the whole session.
    if session.observed.facts.autopilot {
        return Err(Refusal::Autopilot);
    }
    if session.observed.facts.turn.is_some()
        || !session.observed.facts.requests.is_empty()
        || !questions(session).is_empty()
    {
        return Err(Refusal::WouldInterrupt);
    }
    Ok(Does::AsksThere)
}
