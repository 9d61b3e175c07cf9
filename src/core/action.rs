//! Which actions a session allows right now, and why the others are refused.
//!
//! This depends on the session's owner. A live owner with a server is contacted through it; a live terminal without one
//! can only be ended. A process that cannot be identified, or that runs other sessions too, is left alone. A session
//! without a process can be resumed (`recovery`). Requests and questions are answered (`answers`) over the server or,
//! in a plain terminal, over the bridge (`bridge`). Every check runs twice: to show the action, and right before
//! executing it.
//!
//! `verb` lists the actions, and what is the same about each for every session; `reach` knows how a session can be
//! reached.

mod answers;
mod bridge;
pub(in crate::core) mod reach;
mod recovery;
pub(in crate::core) mod verb;

pub use super::session::{Bridge, Control, ServerState};
pub(crate) use bridge::OTHER_VERSION;
pub use bridge::bridge_words;
pub use reach::is_bridged;
pub(crate) use reach::{has_open_tool, may_await_user, questions};
pub(crate) use recovery::{is_cut_off, is_hosting, without_program};
pub use verb::{Action, Ask, Reply, Which};
pub(crate) use verb::{Callers, Trait};

use super::owner::{Held, Owner};
use super::session::{Kind, Session};
use super::text::counted;
use super::verdict::Status;
use answers::{answer, reply};
use bridge::let_answer;
use reach::{reachable, unheld};
use recovery::{go_on, reconnect, resend, resume};

/// Added to an abort's description when an open tool may be waiting for the user.
pub(crate) const EVEN_IF_WAITING: &str = "even if it only waits for you";

/// An action and whether it is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub action: Action,
    /// What it would do, or why it is refused.
    pub what: Result<String, String>,
}

/// Returns every action, with what it would do or why it is refused.
pub(crate) fn offers(session: &Session, status: Status) -> [Offer; Action::ALL.len()] {
    Action::ALL.map(|action| Offer { action, what: offer(action, session, status) })
}

/// Returns what an action would do to a session with this status.
///
/// # Errors
/// Why it is refused, in words for the user.
pub fn offer(action: Action, session: &Session, status: Status) -> Result<String, String> {
    let control = &session.control;
    if let Some(under_way) = control.under_way
        && action.excludes_others()
    {
        return Err(format!("{} is under way", under_way.name()));
    }
    if let Some(no_answer) = &session.no_answer
        && !matches!(action, Action::ShowTerminal | Action::Detach)
    {
        return Err(format!("{}, so what it does now is unknown", no_answer.words()));
    }
    match action {
        Action::Approve | Action::Deny => answer(action, session),
        Action::Answer => reply(session, status),
        Action::Continue => go_on(session, status),
        Action::Reconnect => reconnect(session, status),
        Action::Resend => resend(session, status),
        Action::Stop => stop(session, status),
        Action::End | Action::ForceQuit => end(action, session),
        Action::Resume => resume(session, status),
        Action::ShowTerminal => show_terminal(session),
        Action::Detach => match control.server {
            ServerState::Hosted(_) => {
                Ok("detaches: the server that Pilotlight started for it ends, and it can be resumed".into())
            }
            ServerState::Attached => Ok("detaches; if no other client has it open, its server ends its work".into()),
            _ => Err("Pilotlight is not attached to it".into()),
        },
        Action::LetAnswer => let_answer(session),
    }
}

/// Whether its terminal can be brought to the front.
fn show_terminal(session: &Session) -> Result<String, String> {
    match session.observed.owner {
        Owner::Alive { .. } | Owner::Opened { .. } if session.observed.about.kind == Kind::Sdk => {
            Err("a program runs it, not a terminal".into())
        }
        Owner::Alive { pid, .. } | Owner::Opened { pid, .. } => match session.terminal {
            Some((of, Some(why))) if of == pid => Err(why.into()),
            _ => Ok("brings its terminal to the front".into()),
        },
        Owner::Unheld { pid } => Err(unheld(pid)),
        Owner::Never | Owner::Gone { .. } | Owner::Unknown { .. } => Err("no process runs it".into()),
    }
}

fn stop(session: &Session, status: Status) -> Result<String, String> {
    match session.runner() {
        Owner::Gone { .. } | Owner::Never => return Err("no process runs it, there is nothing to stop".into()),
        Owner::Alive { .. } | Owner::Opened { .. } | Owner::Unheld { .. } | Owner::Unknown { .. } => {}
    }
    let terminal = session.observed.about.kind == Kind::Terminal;
    if !is_bridged(session) {
        reachable(
            session,
            if terminal {
                "press Esc there, or end the session (`pilotlight stop --end`)"
            } else {
                "stop it in its own program"
            },
        )?;
    }
    let works = matches!(
        status,
        Status::Working
            | Status::Finishing
            | Status::Quiet
            | Status::Stuck
            | Status::NeedsPermission
            | Status::PermissionLost
            | Status::NeedsInput
    );
    // A question, or lost permissions, can outlast the turn.
    if !works || session.observed.facts.turn.is_none() && session.observed.facts.agents.is_empty() {
        return Err("no turn is open, there is nothing to stop".into());
    }
    let silent = matches!(status, Status::Quiet | Status::Stuck);
    Ok(if silent && may_await_user(session) {
        format!("stops the running turn, {EVEN_IF_WAITING}; the session goes on")
    } else {
        "stops the running turn; the session goes on".into()
    })
}

fn end(action: Action, session: &Session) -> Result<String, String> {
    if let ServerState::Hosted(_) = session.control.server {
        return Err("it runs in a server of Pilotlight's own: detach instead".into());
    }
    let pid = match session.observed.owner {
        Owner::Alive { pid, .. } => pid,
        Owner::Opened { .. } => return Err("it was opened and not prompted yet: close it in its terminal".into()),
        Owner::Unheld { pid } => return Err(unheld(pid)),
        Owner::Unknown { pid } => {
            return Err(format!(
                "process {pid} cannot be inspected (another user's, a container's, or just ending): it is never signalled"
            ));
        }
        Owner::Gone { .. } | Owner::Never => return Err("no process runs it, there is nothing to end".into()),
    };
    if session.observed.about.kind != Kind::Terminal {
        return Err(format!("process {pid} is not a terminal session: end it in the program that started it"));
    }
    if session.observed.contested {
        return Err("two live processes have a lock on it: end it in the terminal you want to close".into());
    }
    if session.control.other_sessions > 0 {
        let others = counted(session.control.other_sessions, "other session");
        return Err(format!("process {pid} has {others} open, which would end as well: end it in its terminal"));
    }
    Ok(match action {
        Action::ForceQuit => {
            let tool = if has_open_tool(session) { ", its tool may run on" } else { "" };
            format!("kills process {pid}: nothing more is saved{tool}; it can be resumed")
        }
        _ if has_open_tool(session) => format!("ends process {pid}: its tool is killed, it can be resumed"),
        _ => format!("ends process {pid}: it can be resumed"),
    })
}

/// Whether a click is enough to end a session's process. If only the lock says that the process is the owner (an older
/// Copilot, or a system that cannot show who holds a lock), the user has to confirm.
///
/// # Errors
/// Why a click is not enough, and what to do instead.
pub fn may_end_without_asking(session: &Session) -> Result<(), String> {
    match (session.observed.held, session.observed.owner.pid()) {
        (Held::Verified, _) | (_, None) => Ok(()),
        (Held::Pending | Held::Unverified, Some(pid)) => {
            Err(format!("use `pilotlight stop`, which asks first (only its lock says that process {pid} runs it)"))
        }
    }
}
