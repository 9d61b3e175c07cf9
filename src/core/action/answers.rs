//! A session's permission requests and questions, and whether they can be answered from here.

use super::bridge::may_answer;
use super::reach::{bridge_of, is_at_server, questions, reachable, remedy, unheld};
use super::verb::Action;
use crate::core::owner::Owner;
use crate::core::session::{Kind, ServerState, Session};
use crate::core::text::counted;
use crate::core::turn::{Request, Turn};
use crate::core::verdict::Status;

/// Whether permission requests can be answered, and how.
pub(super) fn answer(action: Action, session: &Session) -> Result<String, String> {
    // The server may know of a request that is not in the log.
    let in_log = session.observed.facts.requests.iter().filter(|request| !request.is_consent()).count();
    let open = in_log.max(session.answer().map_or(0, |answer| answer.requests));
    if open == 0 {
        let consent = session.observed.facts.requests.iter().find_map(Request::consent_words);
        return Err(consent.map_or("it asks for no permission".into(), |asks| format!("{asks}: only you can say that")));
    }
    if !is_at_server(session)
        && let Some(bridge) = bridge_of(session)
    {
        let mut requests = session.observed.facts.requests.iter().filter(|request| !request.is_consent());
        // The terminal's dialog shows the oldest request.
        if requests.next().is_some_and(|request| request.is_managed) {
            return Err("answer it in its terminal: your organisation wants a person to answer it there".into());
        }
        may_answer(bridge, session)?;
    } else {
        reachable(session, "answer it where it asks")?;
    }
    let verb = if action == Action::Approve { "allows" } else { "refuses" };
    Ok(format!("{verb} what it asks for, once ({} open)", counted(open, "request")))
}

/// Whether its question can be answered from here. Servers report questions to attached clients only.
pub(super) fn reply(session: &Session, status: Status) -> Result<String, String> {
    if let Owner::Unheld { pid } = session.runner() {
        return Err(unheld(pid));
    }
    let open = questions(session);
    if let Some(asking) = open.iter().find(|asking| asking.form.is_ok()).or(open.first()) {
        if !is_at_server(session) && bridge_of(session).is_some_and(|bridge| !bridge.accepts_orders()) {
            return Err(format!("answer it in its terminal{}", remedy(session)));
        }
        return match &asking.form {
            Ok(_) => Ok(format!("answers what it asks you ({} open)", counted(open.len(), "question"))),
            Err(why) => Err(format!("answer it where it asks: {why}")),
        };
    }
    let by_tool = session.observed.facts.turn.as_ref().and_then(Turn::question).is_some();
    if status != Status::NeedsInput && !by_tool {
        return Err("it asks nothing that Pilotlight can see".into());
    }
    if !by_tool {
        return Err("it asks in its last message: send it a prompt where it runs".into());
    }
    let where_it_runs =
        if session.observed.about.kind == Kind::Terminal { "in its terminal" } else { "in the program that runs it" };
    Err(match session.control.server {
        ServerState::Listening | ServerState::Refused(_) => {
            format!(
                "answer it {where_it_runs}, or reconnect first: its server shows questions to attached clients only"
            )
        }
        // A tool stays open for a moment after it got its answer.
        ServerState::Attached | ServerState::Hosted(_) => {
            format!("its server reports no open question: it was answered just now, or answer it {where_it_runs}")
        }
        ServerState::NotListening | ServerState::Unknown => format!("answer it {where_it_runs}{}", remedy(session)),
    })
}
