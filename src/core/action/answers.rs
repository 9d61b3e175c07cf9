//! What a session asks, for a permission or of its user, and whether that can be answered from here.

use super::bridge::{bridge_of, lifted, may_answer};
use super::{Action, ServerState, is_at_server, reachable, unheld};
use crate::core::fleet::{Kind, Session};
use crate::core::owner::Owner;
use crate::core::text::counted;
use crate::core::turn::{Request, Turn};
use crate::core::verdict::{Asking, Status};

/// Whether permission requests can be answered, and how.
pub(super) fn answer(action: Action, session: &Session) -> Result<String, String> {
    // Its server may know of one that is not in the log.
    let asked = session.facts.requests.iter().filter(|request| !request.is_consent()).count();
    let open = asked.max(session.answer().map_or(0, |answer| answer.requests));
    if open == 0 {
        let consent = session.facts.requests.iter().find_map(Request::consent_words);
        return Err(consent.map_or("it asks for no permission".into(), |asks| format!("{asks}: only you can say that")));
    }
    if !is_at_server(session)
        && let Some(bridge) = bridge_of(session)
    {
        let mut requests = session.facts.requests.iter().filter(|request| !request.is_consent());
        // The dialog in the terminal is of the oldest.
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

/// The questions that are open, as an attached session's server tells, the oldest first. What ended the turn ended them, though
/// the server may not have said so yet.
pub(crate) fn questions(session: &Session) -> &[Asking] {
    let works = session.facts.turn.is_some() || session.live.has_active_work == Some(true);
    if works && (session.control.server.is_attached() || session.control.bridge.is_some()) {
        &session.live.questions
    } else {
        &[]
    }
}

/// Whether what it asks its user can be answered from here: only who is attached is told what that is.
pub(super) fn reply(session: &Session, status: Status) -> Result<String, String> {
    if let Owner::Unheld { pid } = session.runner() {
        return Err(unheld(pid));
    }
    let open = questions(session);
    if let Some(asking) = open.iter().find(|asking| asking.form.is_ok()).or(open.first()) {
        if !is_at_server(session) && bridge_of(session).is_some_and(|bridge| !bridge.obeys()) {
            return Err(format!("answer it in its terminal{}", lifted(session)));
        }
        return match &asking.form {
            Ok(_) => Ok(format!("answers what it asks you ({} open)", counted(open.len(), "question"))),
            Err(why) => Err(format!("answer it where it asks: {why}")),
        };
    }
    let by_tool = session.facts.turn.as_ref().and_then(Turn::question).is_some();
    if status != Status::NeedsInput && !by_tool {
        return Err("it asks nothing that Pilotlight can see".into());
    }
    if !by_tool {
        return Err("it asks in its last message: send it a prompt where it runs".into());
    }
    let where_it_runs =
        if session.about.kind == Kind::Terminal { "in its terminal" } else { "in the program that runs it" };
    Err(match session.control.server {
        ServerState::Listens | ServerState::Refused(_) => {
            format!(
                "answer it {where_it_runs}, or reconnect first: its server tells only attached clients what it asks"
            )
        }
        // A tool that has its answer is open for a moment longer.
        ServerState::Attached | ServerState::Hosted(_) => {
            format!("its server tells of no open question: it was answered just now, or answer it {where_it_runs}")
        }
        ServerState::Nowhere | ServerState::Unknown => format!("answer it {where_it_runs}{}", lifted(session)),
    })
}
