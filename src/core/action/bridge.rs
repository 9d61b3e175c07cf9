//! The bridge to a session in a plain terminal: what it may do, and whether its user can be asked there to allow more.

use super::reach::{bridge_of, is_at_server, questions, remedy, unheld, untried};
use crate::core::owner::Owner;
use crate::core::session::{Bridge, Session};

/// What is said of a bridge that is not of this program's version: it runs as long as its session.
pub(crate) const OTHER_VERSION: &str =
    "it is of another version than this Pilotlight: restart the session to have this one";

/// Describes what the bridge to its terminal may do.
pub fn bridge_words(session: &Session) -> Option<String> {
    let words = match bridge_of(session)? {
        Bridge::Watches => untried(session),
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
pub(super) fn may_answer(bridge: Bridge, session: &Session) -> Result<(), String> {
    Err(match bridge {
        Bridge::Elevated => return Ok(()),
        Bridge::Watches => format!("answer it in its terminal ({})", untried(session)),
        Bridge::Joined => {
            "answer it in its terminal; when that is done, “Let Pilotlight answer here” is for the next ones".into()
        }
        Bridge::Declined => "answer it in its terminal: you told Copilot there that Pilotlight may not".into(),
        Bridge::Asking => "Copilot asks in its terminal whether Pilotlight may answer: answer that first".into(),
    })
}

/// Checks that its user can be asked in the terminal. Never while a dialog may be open there: the question would take
/// the keys meant for it.
pub(super) fn let_answer(session: &Session) -> Result<String, String> {
    match session.observed.owner {
        Owner::Alive { .. } | Owner::Opened { .. } => {}
        Owner::Unheld { pid } => return Err(unheld(pid)),
        Owner::Unknown { pid } => return Err(format!("process {pid} may run it, and cannot be inspected")),
        Owner::Gone { .. } | Owner::Never => return Err("no process runs it".into()),
    }
    match bridge_of(session) {
        None if is_at_server(session) => return Err("it is answered over its server".into()),
        None => return Err(format!("there is no bridge to its terminal{}", remedy(session))),
        Some(Bridge::Elevated) => return Err("Pilotlight may already answer there".into()),
        Some(Bridge::Joined) => {}
        Some(Bridge::Watches) => return Err(untried(session)),
        Some(Bridge::Declined) => {
            return Err(
                "you told Copilot there that Pilotlight may not: that holds until the session is restarted".into()
            );
        }
        Some(Bridge::Asking) => return Err("Copilot is already asking in its terminal".into()),
    }
    // In autopilot Copilot would refuse on its own, for the whole session.
    if session.observed.facts.autopilot {
        return Err("not in autopilot, where Copilot asks nobody".into());
    }
    if session.observed.facts.turn.is_some()
        || !session.observed.facts.requests.is_empty()
        || !questions(session).is_empty()
    {
        return Err("only while it waits for your next prompt: the question would interrupt its work".into());
    }
    Ok("Copilot asks in its terminal whether Pilotlight may answer there: 1 for this session, 2 for this folder".into())
}
