//! Bringing a session back and having it continue: whether that is allowed, and why not.
//!
//! A session is never resumed while its owner lives, because a second owner would corrupt its history. A prompt is never sent
//! again if a tool may already have had its effect.

use super::reach::{has_open_tool, is_bridged, opened, reachable, unheld, uninspectable};
use crate::core::attempts::ATTEMPTS;
use crate::core::owner::Owner;
use crate::core::session::{Kind, Session};
use crate::core::text::is_uuid;
use crate::core::turn::{Closed, DENIED};
use crate::core::verdict::Status;

/// What a session that we host lacks: only the program that started it knew that. Its log may have its instructions.
pub(crate) const fn without_program(has_instructions: bool) -> &'static str {
    if has_instructions {
        "without the tools and hooks that its program gave it"
    } else {
        "without the tools, hooks and instructions that its program gave it"
    }
}

/// Whether reconnecting a session means that we host it.
pub(crate) fn is_hosting(session: &Session) -> bool {
    let runs = matches!(session.runner(), Owner::Alive { .. } | Owner::Opened { .. });
    !runs && session.observed.about.kind == Kind::Sdk && !session.control.server.is_attached()
}

pub(super) fn reconnect(session: &Session, status: Status) -> Result<String, String> {
    match session.runner() {
        Owner::Alive { .. } | Owner::Opened { .. } => {
            let stops = status == Status::Stuck && !has_open_tool(session);
            if session.control.server.is_attached() && !stops {
                return Err("Pilotlight is already attached to it".into());
            }
            let terminal = session.observed.about.kind == Kind::Terminal;
            let why = if terminal {
                "a second process would corrupt its history"
            } else {
                "only the program that started it can talk to it"
            };
            reachable(session, why)?;
            attempts_left(session)?;
            Ok(if stops {
                "attaches to its server, stops the silent turn and keeps the connection".into()
            } else {
                "attaches to its server, takes over what it asks for and keeps the connection".into()
            })
        }
        _ if session.observed.about.kind == Kind::Sdk => {
            resumable(session, status)?;
            attempts_left(session)?;
            Ok(format!(
                "resumes it in a server of our own, for as long as Pilotlight runs, {}; its instructions are kept if its log has \
                 them",
                without_program(true)
            ))
        }
        _ => resume(session, status),
    }
}

/// Whether the last turn was denied, or cut off against the user's will.
pub(crate) fn is_cut_off(session: &Session, status: Status) -> bool {
    let closed = session.observed.facts.closed.as_ref();
    match status {
        Status::PermissionLost | Status::Stuck | Status::Crashed | Status::Failed => true,
        Status::Ended => {
            let denied = session.observed.facts.denials.after(session.live.attached) >= DENIED;
            session.observed.facts.turn.is_some() || denied || closed.is_some_and(Closed::left_work)
        }
        Status::NeedsInput | Status::Idle => session.observed.facts.is_left_undone(session.live.left_undone),
        Status::NeedsPermission | Status::Quiet | Status::Finishing | Status::Working => false,
    }
}

/// Checks that we may send it a prompt at all: not while somebody else has it open and may be about to type.
fn may_be_sent_to(session: &Session) -> Result<(), String> {
    match session.observed.owner {
        Owner::Opened { pid, .. } if !session.control.server.is_attached() => return Err(opened(pid)),
        Owner::Unheld { pid } => return Err(unheld(pid)),
        _ => {}
    }
    Ok(())
}

/// Checks that it can be brought back and made to continue: with its last prompt if no tool ran since, otherwise with a
/// short prompt of ours.
pub(super) fn go_on(session: &Session, status: Status) -> Result<String, String> {
    let facts = &session.observed.facts;
    let control = &session.control;
    may_be_sent_to(session)?;
    if !is_cut_off(session, status) && control.pending_continue.is_none() {
        let instead = resume(session, status).map_or("", |_| ": there is nothing to go on with; resume it instead");
        return Err(format!("its last turn was neither denied nor cut off{instead}"));
    }
    if facts.marks.prompt.is_none() {
        return Err("its last prompt is not known".into());
    }
    if is_bridged(session) {
        return send_on(session);
    }
    let does = if control.server.is_attached() {
        if control.pending_continue.is_none() {
            attempts_left(session)?;
        }
        String::new()
    } else if session.observed.about.kind == Kind::Sdk || matches!(session.observed.owner, Owner::Alive { .. }) {
        format!("{}; ", reconnect(session, status)?)
    } else {
        return Err("a terminal resumes it: resume it, and tell it there to go on".into());
    };
    if is_hosting(session) {
        return Ok(format!("{does}sends nothing before you tell it to go on once more"));
    }
    let when = if status == Status::PermissionLost && facts.turn.is_some() { "when its turn is over, " } else { "" };
    let sends = if facts.ran == 0 {
        "sends your last prompt again"
    } else {
        "tells it to go on (your last prompt is not sent again: a tool ran since, or may have)"
    };
    Ok(format!("{does}{when}{sends}"))
}

/// Checks that the bridge may enter a prompt in its terminal: only while the terminal waits for one.
fn send_on(session: &Session) -> Result<String, String> {
    let facts = &session.observed.facts;
    if facts.turn.is_some() || !facts.requests.is_empty() {
        return Err("its turn is still open: stop that first".into());
    }
    attempts_left(session)?;
    Ok(match facts.ran {
        0 => "sends your last prompt again, in its terminal".into(),
        _ => "tells it in its terminal to go on (your last prompt is not sent again: a tool ran since, or may have)"
            .into(),
    })
}

/// Checks that the last prompt may be sent again: not if a tool has, or may have, had an effect since.
pub(super) fn resend(session: &Session, status: Status) -> Result<String, String> {
    may_be_sent_to(session)?;
    let facts = &session.observed.facts;
    if facts.marks.prompt.is_none() {
        return Err("its last prompt is not known".into());
    }
    if facts.ran > 0 {
        return Err("a tool ran since, and what it did might be done twice".into());
    }
    let at_rest = facts.turn.is_none() && !status.is_work();
    if !at_rest && !matches!(status, Status::Stuck | Status::Crashed | Status::Ended) {
        return Err("its turn is still open".into());
    }
    if session.control.server.is_attached() {
        attempts_left(session)?;
        return Ok("sends the last prompt again".into());
    }
    let by_server = session.observed.about.kind == Kind::Sdk || matches!(session.observed.owner, Owner::Alive { .. });
    if !by_server {
        return Err("a terminal resumes it: send it there".into());
    }
    Ok(format!("{}; sends the last prompt again", reconnect(session, status)?))
}

fn attempts_left(session: &Session) -> Result<(), String> {
    match session.control.attempts.count(&session.observed.facts.marks) {
        ATTEMPTS.. => Err(format!(
            "it was tried {ATTEMPTS} times, and no turn has completed since: send it a prompt, or start a new session"
        )),
        _ => Ok(()),
    }
}

/// Checks that no process runs it, so that one may be started.
fn resumable(session: &Session, status: Status) -> Result<(), String> {
    match session.runner() {
        Owner::Alive { pid, .. } => {
            return Err(format!("process {pid} runs it: a second process would corrupt its history"));
        }
        Owner::Opened { pid, .. } => return Err(opened(pid)),
        Owner::Unheld { pid } => return Err(unheld(pid)),
        Owner::Unknown { pid } => return Err(uninspectable(pid)),
        Owner::Gone { .. } => {}
        Owner::Never if status == Status::Ended || session.observed.facts.shut_down.is_some() => {}
        Owner::Never => return Err("it was written to a moment ago, and its owner is not known".into()),
    }
    if session.control.resumed.is_some() {
        return Err("it was resumed less than a minute ago, and its new process does not show yet".into());
    }
    if !is_uuid(&session.id) {
        return Err("its id is not in Copilot's form, and no other is passed to a program".into());
    }
    Ok(())
}

pub(super) fn resume(session: &Session, status: Status) -> Result<String, String> {
    resumable(session, status)?;
    Ok("resumes it in a terminal, in its folder".into())
}
