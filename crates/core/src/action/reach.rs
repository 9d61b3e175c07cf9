//! How a session can be reached: over its server, over the bridge to its terminal, or not at all, and why not. What the
//! bridge may do there, and whether its user can be asked to allow more.

use crate::owner::Owner;
use crate::session::{Allows, Bridge, BridgeSetup, Kind, ServerState, Session};
use crate::verdict::Asking;
use crate::words::offer::Does;
use crate::words::refusal::{Instead, Refusal, Remedy, untried};

/// What is said of a bridge that is not of this program's version: it runs as long as its session.
pub const OTHER_VERSION: &str = "it is another version of the bridge: restart the session to get this one";

/// Whether its owner has a server, reachable or not.
pub(super) const fn is_at_server(session: &Session) -> bool {
    !matches!(session.control.server, ServerState::NotListening | ServerState::Unknown)
}

/// Checks that its server can be reached. The error says why not, and suggests `instead`.
pub(super) fn reachable(session: &Session, instead: Instead) -> Result<(), Refusal> {
    let terminal = session.observed.about.kind == Kind::Terminal;
    match (&session.runner(), &session.control.server) {
        (
            Owner::Alive { .. } | Owner::Opened { .. },
            ServerState::Listening | ServerState::Refused(_) | ServerState::Attached | ServerState::Hosted(_),
        ) => Ok(()),
        (&Owner::Opened { pid, .. }, _) => Err(Refusal::Opened { pid }),
        (&Owner::Unheld { pid }, _) => Err(Refusal::Unheld { pid }),
        (Owner::Alive { .. }, _) if session.observed.is_served => {
            let instead = if instead == Instead::PressEsc { Instead::EscThere } else { instead };
            Err(Refusal::NoService { instead, agent: session.observed.agent.clone() })
        }
        // The advice comes first, because a menu truncates long text.
        (Owner::Alive { .. }, _) if terminal => Err(Refusal::Unreachable { instead, remedy: remedy(session) }),
        (&Owner::Alive { pid, .. }, _) => Err(Refusal::NoPort { instead, pid }),
        (&Owner::Unknown { pid }, _) => Err(Refusal::MayRun { pid }),
        (&Owner::Doubtful { pid, why }, _) => Err(Refusal::Doubtful { pid, why }),
        (Owner::Gone { .. } | Owner::Never, _) => Err(Refusal::NoProcess),
    }
}

/// The bridge to the session's terminal, while the owner lives.
pub(crate) const fn bridge_of(session: &Session) -> Option<Bridge> {
    match session.observed.owner {
        Owner::Alive { .. } | Owner::Opened { .. } => session.control.bridge,
        _ => None,
    }
}

/// Whether actions on a session go through its terminal's bridge.
pub fn is_bridged(session: &Session) -> bool {
    if let Some(remote) = &session.remote {
        return remote.is_bridged;
    }
    !is_at_server(session) && bridge_of(session).is_some_and(Bridge::accepts_orders)
}

/// Returns the open questions as the server or the bridge reports them, oldest first. The end of a turn ends its
/// questions, even if the server has not said so yet.
pub fn questions(session: &Session) -> &[Asking] {
    if session.remote.is_some() {
        return &session.liveness.questions;
    }
    let works = session.observed.facts.turn.is_some()
        || session.liveness.has_active_work == Some(true)
        || session.observed.hook_report.is_some(); // which knows of no turns
    if works && (session.control.server.is_attached() || session.control.bridge.is_some()) {
        &session.liveness.questions
    } else {
        &[]
    }
}

/// Whether a tool is open, which may work, or wait for the user: a recovery does not abort that, only a stop does.
pub fn has_open_tool(session: &Session) -> bool {
    if let Some(remote) = &session.remote {
        return remote.has_open_tool;
    }
    session.observed.facts.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty())
}

/// Whether it may be waiting for its user without our knowledge: a tool is open, and only an attached client or a
/// bridge hears of its questions.
pub(crate) fn may_await_user(session: &Session) -> bool {
    has_open_tool(session) && !session.control.server.is_attached() && bridge_of(session).is_none()
}

/// What would lift a refusal: a bridge, if none answers in a plain terminal; a Copilot release that it was tried with.
pub(super) fn remedy(session: &Session) -> Remedy {
    if session.observed.allows.names_actions() {
        return Remedy::None;
    }
    let is_terminal =
        session.observed.about.kind == Kind::Terminal && matches!(session.observed.owner, Owner::Alive { .. });
    match (is_terminal && !is_at_server(session), session.control.bridge) {
        (true, None) => match session.control.bridge_setup {
            BridgeSetup::NotInstalled => Remedy::Bridge,
            BridgeSetup::Installed => Remedy::Anew,
            BridgeSetup::Unheard => Remedy::Unheard,
        },
        (true, Some(Bridge::Watches)) => Remedy::Release { release: release(session) },
        _ => Remedy::None,
    }
}

/// The remedy for a session whose agent takes answers over a bridge alone: to install that, or to run what listens to it.
pub(super) fn lacks_bridge(session: &Session) -> Remedy {
    match remedy(session) {
        remedy @ (Remedy::Bridge | Remedy::Unheard) => remedy,
        _ => Remedy::None,
    }
}

/// Whether only a bridge could reach the session, and none is connected that may be there.
pub fn awaits_bridge(session: &Session) -> bool {
    session.observed.allows != Allows::Process && matches!(remedy(session), Remedy::Unheard | Remedy::Anew)
}

/// The release of its Copilot.
fn release(session: &Session) -> Box<str> {
    session.control.release.clone().unwrap_or_else(|| "this version".into())
}

/// Describes what the bridge to its terminal may do.
pub fn bridge_words(session: &Session) -> Option<String> {
    let words = match bridge_of(session)? {
        Bridge::Watches => untried(&release(session)),
        Bridge::Joined => "connected, but you have not let it answer permission requests".into(),
        Bridge::Declined => {
            "connected, but you said no when Copilot asked whether it may answer permission requests".into()
        }
        Bridge::Asking => {
            "connected; Copilot asks you in its terminal whether it may answer permission requests".into()
        }
        Bridge::Elevated => "connected, and may answer its permission requests".into(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::session::Observed;

    /// Case 366: what it advises is not refused in turn, as ending its service is.
    #[test]
    fn case_366_a_service_that_is_not_asked_is_named_with_what_to_do_instead() {
        let owner = Owner::Alive { pid: 7, started: None };
        let observed = Observed { owner, is_served: true, ..Observed::default() };
        let mut session = Session { observed, ..Session::default() };
        session.observed.agent = Agent::reported("Codex").unwrap();
        for (server, refused) in [(ServerState::NotListening, true), (ServerState::Listening, false)] {
            session.control.server = server;
            for (instead, words) in
                [(Instead::AnswerThere, "answer it where it asks"), (Instead::PressEsc, "press Esc in its terminal")]
            {
                let why = reachable(&session, instead).err().map(|why| why.to_string());
                let told = format!("{words}: Codex's daemon is off or not yours");
                assert_eq!(why, refused.then_some(told));
            }
        }
    }
}
