//! A session's permission requests and questions, and whether they can be answered from here.

use super::reach::{bridge_of, is_at_server, may_answer, questions, reachable, remedy};
use super::spec::Action;
use crate::owner::Owner;
use crate::session::{Kind, ServerState, Session};
use crate::turn::{Request, Turn};
use crate::verdict::Status;
use crate::words::offer::Does;
use crate::words::refusal::{Instead, Place, Refusal};

/// Whether permission requests can be answered, and how.
pub(super) fn answer(action: Action, session: &Session) -> Result<Does, Refusal> {
    // The server may know of a request that is not in the log.
    let in_log = session.observed.facts.requests.iter().filter(|request| !request.is_consent()).count();
    let open = in_log.max(session.answer().map_or(0, |answer| answer.requests));
    if open == 0 {
        let consent = session.observed.facts.requests.iter().find(|request| request.is_consent());
        let only_you = |asks: &Request| Refusal::OnlyYou { about_us: asks.is_about_us() };
        return Err(consent.map_or(Refusal::NothingAsked, only_you));
    }
    if !is_at_server(session)
        && let Some(bridge) = bridge_of(session)
    {
        let mut requests = session.observed.facts.requests.iter().filter(|request| !request.is_consent());
        // The terminal's dialog shows the oldest request.
        if requests.next().is_some_and(|request| request.is_managed) {
            return Err(Refusal::Managed);
        }
        may_answer(bridge, session)?;
    } else {
        reachable(session, Instead::AnswerThere)?;
    }
    let verb = if action == Action::Approve { "approves" } else { "denies" };
    Ok(Does::Answers { verb, open })
}

/// Whether its question can be answered from here. Servers report questions to attached clients only.
pub(super) fn reply(session: &Session, status: Status) -> Result<Does, Refusal> {
    if let Owner::Unheld { pid } = session.runner() {
        return Err(Refusal::Unheld { pid });
    }
    let open = questions(session);
    if let Some(asking) = open.iter().find(|asking| asking.form.is_ok()).or(open.first()) {
        if !is_at_server(session) && bridge_of(session).is_some_and(|bridge| !bridge.accepts_orders()) {
            return Err(Refusal::AnswerIn { place: Place::Terminal, remedy: remedy(session) });
        }
        return match &asking.form {
            Ok(_) => Ok(Does::Replies { open: open.len() }),
            Err(why) => Err(Refusal::Unanswerable { why: why.clone() }),
        };
    }
    let by_tool = session.observed.facts.turn.as_ref().and_then(Turn::question).is_some();
    if status != Status::NeedsInput && !by_tool {
        return Err(Refusal::NoQuestion);
    }
    if !by_tool {
        return Err(Refusal::AsksInMessage);
    }
    let place = if session.observed.about.kind == Kind::Terminal { Place::Terminal } else { Place::Program };
    Err(match session.control.server {
        ServerState::Listening | ServerState::Refused(_) => Refusal::ReconnectFirst { place },
        // A tool stays open for a moment after it got its answer.
        ServerState::Attached | ServerState::Hosted(_) => Refusal::NotReported { place },
        ServerState::NotListening | ServerState::Unknown => Refusal::AnswerIn { place, remedy: remedy(session) },
    })
}
