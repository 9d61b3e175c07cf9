//! Which actions a session allows right now, and why the others are refused.
//!
//! This depends on the session's owner. A live owner with a server is contacted through it; a live terminal without one
//! can only be ended. A process that cannot be identified, or that runs other sessions too, is left alone. A session
//! without a process can be resumed (`recovery`). Requests and questions are answered (`answers`) over the server or,
//! in a plain terminal, over the bridge. Every check runs twice: to show the action, and right before
//! executing it.
//!
//! `spec` lists the actions, and what is the same about each for every session; `reach` knows how a session can be
//! reached, and what its bridge may do.

mod answers;
pub(crate) mod reach;
mod recovery;
pub(crate) mod spec;

pub use super::session::{Bridge, Control, ServerState};
pub(crate) use reach::may_await_user;
pub use reach::{OTHER_VERSION, awaits_bridge, bridge_words, has_open_tool, is_bridged, questions};
pub use recovery::{is_cut_off, is_hosting};
pub use spec::{Action, Decision, Denial, Operation, Reply, Which};
pub use spec::{ActionFlag, Callers};

use super::owner::{HoldProof, Owner};
use super::session::{Allows, Kind, Session};
use super::verdict::Status;
use super::verdict::status::Phase;
use super::words::offer::Does;
use super::words::refusal::{Instead, Refusal, Remedy};
use answers::{answer, reply};
use reach::{let_answer, reachable};
use recovery::{go_on, reconnect, resend, resume};

/// Returns what an action would do to a session with this status.
///
/// # Errors
/// Why it is refused.
pub fn offer(action: Action, session: &Session, status: Status) -> Result<Does, Refusal> {
    let control = &session.control;
    if let Some(remote) = &session.remote {
        return remote.offer(action);
    }
    if let Some(under_way) = control.under_way
        && action.excludes_others()
    {
        return Err(Refusal::UnderWay { action: under_way });
    }
    if let Some(no_answer) = &session.no_answer
        && !matches!(action, Action::ShowTerminal | Action::Detach)
    {
        return Err(Refusal::Unanswering { no_answer: no_answer.clone() });
    }
    match &session.observed.allows {
        Allows::Nothing { .. } if is_answer(action) && is_bridged(session) => {}
        Allows::Nothing { .. } if is_answer(action) && session.is_answered_there() => {
            return Err(Refusal::AnsweredThere);
        }
        Allows::Nothing { why } if action != Action::ShowTerminal => {
            let left = left_to_terminal(session).filter(|_| is_answer(action) && session.is_blocked());
            return Err(left.unwrap_or_else(|| Refusal::ReadOnly { why: why.clone() }));
        }
        Allows::Only { actions, why } if !actions.contains(&action) => {
            return Err(Refusal::ReadOnly { why: why.clone() });
        }
        Allows::Process => takes(action, session, status)?,
        Allows::All | Allows::Only { .. } | Allows::Nothing { .. } => {}
    }
    match action {
        Action::Approve | Action::Deny => answer(action, session),
        Action::Answer => reply(session, status),
        Action::Continue => go_on(session, status),
        Action::Reconnect => reconnect(session, status).map(|by| Does::Recovers { by }),
        Action::Resend => resend(session, status),
        Action::Stop => stop(session, status),
        Action::End | Action::ForceQuit => end(action, session),
        Action::Resume => resume(session, status),
        Action::ShowTerminal => show_terminal(session),
        Action::Detach => match control.server {
            ServerState::Hosted(_) => Ok(Does::EndsHosting),
            ServerState::Attached => Ok(Does::Detaches),
            _ => Err(Refusal::NotAttached),
        },
        Action::LetAnswer => let_answer(session),
    }
}

/// Whether an action answers what a session asks.
const fn is_answer(action: Action) -> bool {
    matches!(action, Action::Approve | Action::Deny | Action::Answer)
}

/// Checks that an action needs nothing but the process and the terminal of a session whose agent takes no orders.
fn takes(action: Action, session: &Session, status: Status) -> Result<(), Refusal> {
    let agent = || session.observed.agent.clone();
    let supervised = session.observed.supervised.as_ref();
    let is_of_program = session.observed.about.kind == Kind::Sdk;
    match action {
        action if is_answer(action) && is_bridged(session) => Ok(()),
        Action::Approve | Action::Deny | Action::Answer => Err(match supervised {
            _ if session.is_answered_there() => Refusal::AnsweredThere,
            Some(supervised) => Refusal::InBackground { attach: supervised.attach.clone() },
            None if is_of_program => Refusal::Unreachable { instead: Instead::AnswerThere, remedy: Remedy::None },
            None if session.is_asked_by_sub_agent() => Refusal::SubAgentAsks,
            None if session.lacks_hook() => match session.observed.untried.clone() {
                Some(release) => Refusal::UntriedHook { agent: agent(), release },
                None => left_to_terminal(session).unwrap_or(Refusal::NoHook),
            },
            None => Refusal::AnswerOnlyThere { agent: agent(), remedy: reach::lacks_bridge(session) },
        }),
        // What a refusal advises must not be refused in turn, as ending this one is.
        Action::Stop if let Some(supervised) = supervised => {
            Err(Refusal::InBackground { attach: supervised.attach.clone() })
        }
        Action::Stop if session.observed.owner.live().is_none() => Ok(()), // it is refused, too, with the reason
        Action::Stop if is_of_program => {
            Err(Refusal::Unreachable { instead: Instead::StopThere, remedy: Remedy::None })
        }
        Action::Stop => Err(Refusal::StopOnlyThere { agent: agent() }),
        Action::LetAnswer => Err(Refusal::OnlyCopilot),
        Action::Continue | Action::Resend | Action::Reconnect => {
            Err(Refusal::NoOrders { agent: agent(), resumable: takes_resume(session, status) })
        }
        Action::Detach => Err(Refusal::NotAttached),
        Action::End | Action::Resume | Action::ForceQuit => match supervised {
            Some(supervised) => Err(Refusal::Supervised { stop: supervised.stop.clone() }),
            None if action == Action::ForceQuit => end(Action::End, session).and(Err(Refusal::NeverKilled)),
            None => Ok(()),
        },
        Action::ShowTerminal => match supervised {
            Some(supervised) => Err(Refusal::InBackground { attach: supervised.attach.clone() }),
            None => Ok(()),
        },
    }
}

/// Why what it asks over its hook is left to its terminal, if it is.
fn left_to_terminal(session: &Session) -> Option<Refusal> {
    if session.observed.contested {
        return Some(Refusal::Contested { agent: session.observed.agent.clone() });
    }
    session.control.let_go.map(|why| Refusal::LetGo { why })
}

/// Whether a session whose agent takes no orders can be resumed.
fn takes_resume(session: &Session, status: Status) -> bool {
    session.observed.supervised.is_none() && resume(session, status).is_ok()
}

/// Whether its terminal can be brought to the front.
fn show_terminal(session: &Session) -> Result<Does, Refusal> {
    match session.observed.owner {
        Owner::Alive { .. } | Owner::Opened { .. } if session.observed.about.kind == Kind::Sdk => {
            Err(Refusal::OfProgram)
        }
        Owner::Alive { pid, .. } | Owner::Opened { pid, .. } if session.observed.is_served => {
            Err(Refusal::ServesTerminals { pid })
        }
        Owner::Alive { pid, .. } | Owner::Opened { pid, .. } => match &session.terminal {
            Some((of, Some(why))) if *of == pid => Err(Refusal::NotShown { why: why.clone() }),
            _ => Ok(Does::ShowsTerminal),
        },
        Owner::Unheld { pid } => Err(Refusal::Unheld { pid }),
        Owner::Doubtful { pid, why } => Err(Refusal::Doubtful { pid, why }),
        Owner::Never | Owner::Gone { .. } | Owner::Unknown { .. } => Err(Refusal::NoProcess),
    }
}

fn stop(session: &Session, status: Status) -> Result<Does, Refusal> {
    match session.runner() {
        Owner::Gone { .. } | Owner::Never => return Err(Refusal::NothingToStop),
        Owner::Doubtful { pid, why } => return Err(Refusal::Doubtful { pid, why }),
        Owner::Alive { .. } | Owner::Opened { .. } | Owner::Unheld { .. } | Owner::Unknown { .. } => {}
    }
    let terminal = session.observed.about.kind == Kind::Terminal;
    if !is_bridged(session) {
        reachable(session, if terminal { Instead::PressEsc } else { Instead::StopThere })?;
    }
    let works = match status.spec().phase {
        Phase::Waits | Phase::Silent | Phase::Works => true,
        Phase::Over | Phase::Rests => false,
    };
    // A question, or lost permissions, can outlast the turn.
    if !works || session.observed.facts.turn.is_none() && session.observed.facts.sub_agents.is_empty() {
        return Err(Refusal::NoTurn);
    }
    Ok(Does::Stops { even_if_waiting: status.is_silent() && may_await_user(session) })
}

fn end(action: Action, session: &Session) -> Result<Does, Refusal> {
    if let ServerState::Hosted(_) = session.control.server {
        return Err(Refusal::Hosted);
    }
    let pid = match session.observed.owner {
        Owner::Alive { pid, .. } => pid,
        Owner::Opened { .. } => return Err(Refusal::CloseThere),
        Owner::Unheld { pid } => return Err(Refusal::Unheld { pid }),
        Owner::Unknown { pid } => return Err(Refusal::NeverSignalled { pid }),
        Owner::Doubtful { pid, why } => return Err(Refusal::Doubtful { pid, why }),
        Owner::Gone { .. } | Owner::Never => return Err(Refusal::NothingToEnd),
    };
    if session.observed.is_served {
        return Err(Refusal::IsService { pid });
    }
    if session.observed.is_foreign {
        return Err(Refusal::NotItsAgent { pid, agent: session.observed.agent.clone() });
    }
    if session.observed.about.kind != Kind::Terminal {
        return Err(Refusal::NoTerminal { pid });
    }
    if session.observed.contested {
        return Err(Refusal::Contested { agent: session.observed.agent.clone() });
    }
    if session.control.other_sessions > 0 {
        return Err(Refusal::OthersOpen { pid, others: session.control.other_sessions });
    }
    let tool = has_open_tool(session);
    Ok(if action == Action::ForceQuit { Does::Kills { pid, tool } } else { Does::Ends { pid, tool } })
}

/// The process of a session, if only a file says that it runs it, and nothing else bears that out: any program of the user
/// can write such a file. It is signalled only if the user agreed to that process.
pub fn unproven(session: &Session) -> Option<u32> {
    let is_by_file = session.observed.allows == Allows::Process && session.observed.held == HoldProof::Unverified;
    session.observed.owner.live().filter(|_| is_by_file && session.remote.is_none())
}

/// Whether a click is enough to end a session's process. If only the lock says that the process is the owner (an older
/// Copilot, or a system that cannot show who holds a lock), the user has to confirm.
///
/// # Errors
/// Why a click is not enough, and what to do instead.
pub fn may_end_without_asking(session: &Session) -> Result<(), Refusal> {
    if let Some(remote) = session.remote.as_ref()
        && let Some(why) = remote.not_ended_unasked.clone()
    {
        return Err(Refusal::There { host: remote.host.name.clone(), why });
    }
    if let Some(pid) = unproven(session) {
        return Err(Refusal::Unproven { pid });
    }
    match (session.observed.held, session.observed.owner.pid()) {
        (HoldProof::Verified, _) | (_, None) => Ok(()),
        (HoldProof::Pending | HoldProof::Unverified, Some(pid)) => Err(Refusal::OnlyByLock { pid }),
    }
}

#[cfg(test)]
mod tests;
