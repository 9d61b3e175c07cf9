//! Bringing a session back and having it continue: whether that is allowed, and why not.
//!
//! A session is never resumed while its owner lives, because a second owner would corrupt its history. A prompt is never sent
//! again if a tool may already have had its effect.

use super::reach::{has_open_tool, is_bridged, reachable};
use crate::attempts::ATTEMPTS;
use crate::owner::Owner;
use crate::session::{Kind, Session};
use crate::text::is_uuid;
use crate::turn::{Closed, DENIED};
use crate::verdict::Status;
use crate::verdict::reported_state::State;
use crate::words::offer::{Does, Sends, Way};
use crate::words::refusal::{Instead, Refusal};

/// Whether reconnecting a session means that we host it.
pub fn is_hosting(session: &Session) -> bool {
    let runs = matches!(session.runner(), Owner::Alive { .. } | Owner::Opened { .. });
    !runs && session.observed.about.kind == Kind::Sdk && !session.control.server.is_attached()
}

pub(super) fn reconnect(session: &Session, status: Status) -> Result<Way, Refusal> {
    match session.runner() {
        Owner::Alive { .. } | Owner::Opened { .. } => {
            let stops = status == Status::Stuck && !has_open_tool(session);
            if session.control.server.is_attached() && !stops {
                return Err(Refusal::AlreadyAttached);
            }
            let terminal = session.observed.about.kind == Kind::Terminal;
            reachable(session, if terminal { Instead::NoSecondProcess } else { Instead::OnlyItsProgram })?;
            attempts_left(session)?;
            Ok(if stops { Way::AttachAndStop } else { Way::Attach })
        }
        _ if session.observed.about.kind == Kind::Sdk => {
            resumable(session, status)?;
            attempts_left(session)?;
            Ok(Way::Host)
        }
        _ => resumable(session, status).map(|()| Way::Resume),
    }
}

/// Whether the last turn was denied, or cut off against the user's will.
pub fn is_cut_off(session: &Session, status: Status) -> bool {
    let closed = session.observed.facts.closed.as_ref();
    match status {
        Status::PermissionLost | Status::Stuck | Status::Crashed | Status::Failed => true,
        Status::Ended => {
            let denied = session.observed.facts.denials.after(session.liveness.attached) >= DENIED;
            session.observed.facts.turn.is_some() || denied || closed.is_some_and(Closed::left_work)
        }
        Status::NeedsInput | Status::Idle => session.observed.facts.is_left_undone(session.liveness.left_undone),
        Status::NeedsPermission | Status::Quiet | Status::Finishing | Status::Working => false,
    }
}

/// Checks that we may send it a prompt at all: not while somebody else has it open and may be about to type.
fn may_be_sent_to(session: &Session) -> Result<(), Refusal> {
    match session.observed.owner {
        Owner::Opened { pid, .. } if !session.control.server.is_attached() => return Err(Refusal::Opened { pid }),
        Owner::Unheld { pid } => return Err(Refusal::Unheld { pid }),
        _ => {}
    }
    Ok(())
}

/// Checks that it can be brought back and made to continue: with its last prompt if no tool ran since, otherwise with a
/// short prompt of ours.
pub(super) fn go_on(session: &Session, status: Status) -> Result<Does, Refusal> {
    let facts = &session.observed.facts;
    let control = &session.control;
    may_be_sent_to(session)?;
    if !is_cut_off(session, status) && control.pending_continue.is_none() {
        return Err(Refusal::NotCutOff { resumable: resumable(session, status).is_ok() });
    }
    if facts.marks.prompt.is_none() {
        return Err(Refusal::NoPrompt);
    }
    if is_bridged(session) {
        return send_on(session);
    }
    let by = if control.server.is_attached() {
        if control.pending_continue.is_none() {
            attempts_left(session)?;
        }
        None
    } else if session.observed.about.kind == Kind::Sdk || matches!(session.observed.owner, Owner::Alive { .. }) {
        Some(reconnect(session, status)?)
    } else {
        return Err(Refusal::ResumeAndTell);
    };
    if is_hosting(session) {
        return Ok(Does::Continues { by, after_turn: false, sends: Sends::Nothing });
    }
    let after_turn = status == Status::PermissionLost && facts.turn.is_some();
    let sends = if facts.ran == 0 { Sends::Prompt } else { Sends::GoOn };
    Ok(Does::Continues { by, after_turn, sends })
}

/// Checks that the bridge may enter a prompt in its terminal: only while the terminal waits for one.
fn send_on(session: &Session) -> Result<Does, Refusal> {
    let facts = &session.observed.facts;
    if facts.turn.is_some() || !facts.requests.is_empty() {
        return Err(Refusal::StopFirst);
    }
    attempts_left(session)?;
    let sends = if facts.ran == 0 { Sends::PromptThere } else { Sends::GoOnThere };
    Ok(Does::Continues { by: None, after_turn: false, sends })
}

/// Checks that the last prompt may be sent again: not if a tool has, or may have, had an effect since.
pub(super) fn resend(session: &Session, status: Status) -> Result<Does, Refusal> {
    may_be_sent_to(session)?;
    let facts = &session.observed.facts;
    if facts.marks.prompt.is_none() {
        return Err(Refusal::NoPrompt);
    }
    let at_rest = facts.turn.is_none() && !status.is_work();
    if !at_rest && status != Status::Stuck && !status.is_over() {
        return Err(Refusal::TurnOpen);
    }
    if facts.ran > 0 {
        return Err(Refusal::ToolRan);
    }
    if session.control.server.is_attached() {
        attempts_left(session)?;
        return Ok(Does::Resends { by: None });
    }
    let by_server = session.observed.about.kind == Kind::Sdk || matches!(session.observed.owner, Owner::Alive { .. });
    if !by_server {
        return Err(Refusal::SendThere);
    }
    Ok(Does::Resends { by: Some(reconnect(session, status)?) })
}

fn attempts_left(session: &Session) -> Result<(), Refusal> {
    match session.control.attempts.count(&session.observed.facts.marks) {
        ATTEMPTS.. => Err(Refusal::TriedEnough),
        _ => Ok(()),
    }
}

/// Checks that no process runs it, so that one may be started.
fn resumable(session: &Session, status: Status) -> Result<(), Refusal> {
    let has_ended =
        session.observed.reported_state.as_ref().is_some_and(|reported_state| reported_state.state == State::Ended);
    match session.runner() {
        Owner::Alive { pid, .. } | Owner::Opened { pid, .. } if session.observed.is_served => {
            return Err(Refusal::IsServed { pid });
        }
        Owner::Alive { pid, .. } => return Err(Refusal::Runs { pid }),
        Owner::Opened { pid, .. } => return Err(Refusal::Opened { pid }),
        Owner::Unheld { pid } => return Err(Refusal::Unheld { pid }),
        Owner::Unknown { pid } => return Err(Refusal::MayRun { pid }),
        Owner::Doubtful { pid, why } => return Err(Refusal::Doubtful { pid, why }),
        Owner::Gone { .. } => {}
        Owner::Never if status == Status::Ended || session.observed.facts.shut_down.is_some() || has_ended => {}
        Owner::Never => return Err(Refusal::OwnerUnknown),
    }
    if session.control.resumed.is_some() {
        return Err(Refusal::JustResumed);
    }
    if !is_uuid(&session.id) {
        return Err(Refusal::NotAnId { agent: session.observed.agent.clone() });
    }
    Ok(())
}

pub(super) fn resume(session: &Session, status: Status) -> Result<Does, Refusal> {
    resumable(session, status).map(|()| Does::Recovers { by: Way::Resume })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Observed;
    use crate::time::Moment;
    use crate::verdict::reported_state::ReportedState;

    fn refusal(observed: Observed, status: Status) -> Option<Refusal> {
        let id = "36535f61-5c7b-4f09-a70b-2f8aed970001".into();
        resume(&Session { id, observed, ..Session::default() }, status).err()
    }

    /// Case 349: of a run that ended with denials nobody is known, and its end is stated.
    #[test]
    fn case_349_a_session_whose_end_is_stated_is_resumed_and_one_that_a_service_runs_is_joined() {
        let ended = ReportedState {
            state: State::Ended,
            since: Moment::default(),
            by: "its process".into(),
            waiting_tool: None,
        };
        let reported_state = Observed { reported_state: Some(ended), ..Observed::default() };
        assert_eq!(refusal(reported_state, Status::Failed), None);
        assert_eq!(refusal(Observed::default(), Status::Failed), Some(Refusal::OwnerUnknown));
        let owner = Owner::Alive { pid: 7, started: None };
        let served = Observed { owner, is_served: true, ..Observed::default() };
        assert_eq!(refusal(served, Status::Working), Some(Refusal::IsServed { pid: 7 }));
    }
}
