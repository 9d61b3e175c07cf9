//! What can be done with a session now; and for what cannot, why not.
//!
//! What may be done hangs on who owns the session. A live owner with a server is talked to; a live terminal without one can only
//! be ended; nothing at all is done to a process that cannot be told, or that runs other sessions as well. What nobody runs any
//! more is resumed (`recovery`). What it asks is answered (`answers`) over its server or, in a plain terminal, over the bridge there
//! (`bridge`). Everything here is asked twice: for showing it, and again right before it is done.

mod answers;
mod bridge;
mod recovery;

pub(crate) use answers::questions;
pub(super) use bridge::bridge_of;
pub use bridge::{Bridge, bridge_words, is_bridged};
pub(crate) use recovery::is_cut_off;

use answers::{answer, reply};
use bridge::{let_answer, lifted};
use recovery::{go_on, reconnect, resend, resume};

use super::attempts::{Attempts, Marks};
use super::fleet::{Kind, Session};
use super::owner::{Held, Owner, UNHELD};
use super::text::counted;
use super::time::Time;
use super::verdict::Status;

/// Something that can be done with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Allow what it asks for, once.
    Approve,
    /// Refuse what it asks for.
    Deny,
    /// Answer what it asks its user.
    Answer,
    /// Bring it back under control, and have it go on with what it was told to do.
    Continue,
    /// Bring it back under control: attach to its server, or resume it.
    Reconnect,
    /// The same, and send the last prompt again.
    Resend,
    /// Abort the turn that runs.
    Stop,
    /// Interrupt its process, then terminate it.
    End,
    /// Kill its process.
    ForceQuit,
    /// Resume it in a terminal.
    Resume,
    /// Bring its terminal to the front.
    ShowTerminal,
    /// Detach, where we are attached.
    Detach,
    /// Have Copilot ask in its terminal whether Pilotlight may answer its permission requests.
    LetAnswer,
}

impl Action {
    /// Every action, in the order in which they are shown.
    pub const ALL: [Self; 13] = [
        Self::Approve,
        Self::Deny,
        Self::Answer,
        Self::Continue,
        Self::Reconnect,
        Self::Resend,
        Self::Stop,
        Self::End,
        Self::ForceQuit,
        Self::Resume,
        Self::ShowTerminal,
        Self::Detach,
        Self::LetAnswer,
    ];

    /// Its name in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Answer => "answer",
            Self::Continue => "continue",
            Self::Reconnect => "reconnect",
            Self::Resend => "resend",
            Self::Stop => "stop",
            Self::End => "end",
            Self::ForceQuit => "force-quit",
            Self::Resume => "resume",
            Self::ShowTerminal => "show-terminal",
            Self::Detach => "detach",
            Self::LetAnswer => "let-answer",
        }
    }

    /// What stands on a button, by itself.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Approve => "Approve once",
            Self::Deny => "Deny",
            Self::Answer => "Answer…",
            Self::Continue => "Reconnect and continue",
            Self::Reconnect => "Reconnect",
            Self::Resend => "Send the last prompt again",
            Self::Stop => "Stop",
            Self::End => "End it",
            Self::ForceQuit => "Force quit: nothing is saved",
            Self::Resume => "Resume",
            Self::ShowTerminal => "Show terminal",
            Self::Detach => "Detach",
            Self::LetAnswer => "Let Pilotlight answer here…",
        }
    }
}

/// What is said of an abort where nothing is known of what an open tool waits for.
pub(crate) const ALSO_IF_IT_WAITS: &str = "also if it only waits for you";

/// What is known of a session's server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerState {
    /// Nothing: no live owner, or nobody looked.
    #[default]
    Unknown,
    /// Its owner listens nowhere: it talks to one program alone, or is a plain terminal.
    Nowhere,
    /// Its owner listens on loopback; nobody has tried it.
    Listens,
    /// It was tried in vain, and why.
    Refused(Box<str>),
    /// We are attached to it.
    Attached,
    /// It runs in a server of our own, with this process id. Copilot writes no lock and nothing else before the first prompt.
    Hosted(u32),
}

impl ServerState {
    /// We are attached, to whomever's server.
    pub(crate) const fn is_attached(&self) -> bool {
        matches!(self, Self::Attached | Self::Hosted(_))
    }
}

/// What we have to do with a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Control {
    /// Its server.
    pub server: ServerState,
    /// The bridge to its terminal, where one is.
    pub bridge: Option<Bridge>,
    /// The release of Copilot that the bridge runs in, as it says.
    pub release: Option<Box<str>>,
    /// The bridge is of another version than ours, and stays so until the session is started anew.
    pub old_bridge: bool,
    /// How many other sessions its owner runs, or may run.
    pub others: usize,
    /// What is being done with it.
    pub under_way: Option<Action>,
    /// The recoveries that were tried.
    pub attempts: Attempts,
    /// When a Pilotlight resumed it, by the wall clock, where its new owner is still to be seen.
    pub resumed: Option<Time>,
    /// It is to go on as soon as the turn that was denied is over: how things stood when that was asked.
    pub goes_on: Option<Marks>,
    /// What came of the last thing that was done with it, and when.
    pub outcome: Option<(Time, Box<str>)>,
}

/// An action as it is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Which.
    pub action: Action,
    /// What it would do, or why it is refused.
    pub what: Result<String, String>,
}

/// Every action, with what it would do or why it is refused.
pub(crate) fn offers(session: &Session, status: Status) -> [Offer; 13] {
    Action::ALL.map(|action| Offer { action, what: offer(action, session, status) })
}

/// What an action would do to a session with this status.
///
/// # Errors
/// Why it is refused, in words for the user.
pub fn offer(action: Action, session: &Session, status: Status) -> Result<String, String> {
    let control = &session.control;
    if let Some(under_way) = control.under_way
        && action != Action::ShowTerminal
    {
        return Err(format!("{} is under way", under_way.name()));
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
        Action::ShowTerminal => match session.owner {
            Owner::Alive { .. } | Owner::Opened { .. } if session.about.kind != Kind::Sdk => {
                Ok("brings its terminal to the front".into())
            }
            Owner::Alive { .. } | Owner::Opened { .. } => Err("a program runs it, not a terminal".into()),
            Owner::Unheld { pid } => Err(unheld(pid)),
            Owner::Never | Owner::Gone { .. } | Owner::Unknown { .. } => Err("no process runs it".into()),
        },
        Action::Detach => match control.server {
            ServerState::Hosted(_) => {
                Ok("lets go of it: the server that we started for it ends, and it can be resumed".into())
            }
            ServerState::Attached => {
                Ok("lets go of it; where no other client has it open, its server ends its work".into())
            }
            _ => Err("Pilotlight is not attached to it".into()),
        },
        Action::LetAnswer => let_answer(session),
    }
}

/// Whether its owner has a server, whatever came of trying it.
pub(super) const fn is_at_server(session: &Session) -> bool {
    !matches!(session.control.server, ServerState::Nowhere | ServerState::Unknown)
}

/// Whether its server can be talked to; otherwise why not, and what is left to do.
fn reachable(session: &Session, instead: &str) -> Result<(), String> {
    let terminal = session.about.kind == Kind::Terminal;
    match (&session.runner(), &session.control.server) {
        (
            Owner::Alive { .. } | Owner::Opened { .. },
            ServerState::Listens | ServerState::Refused(_) | ServerState::Attached | ServerState::Hosted(_),
        ) => Ok(()),
        (Owner::Opened { pid, .. }, _) => Err(opened(*pid)),
        (Owner::Unheld { pid }, _) => Err(unheld(*pid)),
        // What to do comes first: a menu cuts what is long.
        (Owner::Alive { .. }, _) if terminal => Err(format!("{instead}{}", lifted(session))),
        (Owner::Alive { pid, .. }, _) => Err(format!("{instead} (process {pid} listens on no port)")),
        (Owner::Unknown { pid }, _) => Err(format!(
            "process {pid} may run it, and cannot be inspected (another user's, a container's, or just ending)"
        )),
        (Owner::Gone { .. } | Owner::Never, _) => Err("no process runs it".into()),
    }
}

/// Whether it may be waiting for the user, for all that is known: a tool is open, and who is neither attached nor has a bridge
/// there is not told of what it asks.
pub(crate) fn may_ask(session: &Session) -> bool {
    let tool_open = session.facts.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty());
    tool_open && !session.control.server.is_attached() && bridge_of(session).is_none()
}

fn stop(session: &Session, status: Status) -> Result<String, String> {
    match session.runner() {
        Owner::Gone { .. } | Owner::Never => return Err("no process runs it, there is nothing to stop".into()),
        Owner::Alive { .. } | Owner::Opened { .. } | Owner::Unheld { .. } | Owner::Unknown { .. } => {}
    }
    let terminal = session.about.kind == Kind::Terminal;
    if !is_bridged(session) {
        reachable(
            session,
            if terminal { "press Esc there, or end the session" } else { "stop it in its own program" },
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
    // A question or lost permissions may outlast their turn.
    if !works || session.facts.turn.is_none() && session.facts.agents.is_empty() {
        return Err("no turn is open, there is nothing to stop".into());
    }
    let silent = matches!(status, Status::Quiet | Status::Stuck);
    Ok(if silent && may_ask(session) {
        format!("stops the running turn, {ALSO_IF_IT_WAITS}; the session goes on")
    } else {
        "stops the running turn; the session goes on".into()
    })
}

fn end(action: Action, session: &Session) -> Result<String, String> {
    if let ServerState::Hosted(_) = session.control.server {
        return Err("it runs in a server of our own: let go of it instead".into());
    }
    let pid = match session.owner {
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
    if session.about.kind != Kind::Terminal {
        return Err(format!("process {pid} is not a terminal session: end it in the program that started it"));
    }
    if session.contested {
        return Err("two live processes have a lock on it: end it in the terminal you want to close".into());
    }
    if session.control.others > 0 {
        let others = counted(session.control.others, "other session");
        return Err(format!("process {pid} has {others} open, which would end as well: end it in its terminal"));
    }
    Ok(match action {
        Action::ForceQuit => {
            format!("kills process {pid}: nothing more is saved, its tool may run on; it can be resumed")
        }
        _ => format!("ends process {pid}: its tool is killed, it can be resumed"),
    })
}

/// Whether a click is enough to end a session's process. Where nothing but its lock says that the process is its owner (an
/// older Copilot, a system that does not tell), a person must be asked whether it is meant.
///
/// # Errors
/// Why it is not, with what to do instead.
pub fn may_end_unasked(session: &Session) -> Result<(), String> {
    match (session.held, session.owner.pid()) {
        (Held::Seen, _) | (_, None) => Ok(()),
        (Held::Soon | Held::Untold, Some(pid)) => {
            Err(format!("use `pilotlight stop`, which asks first (only its lock says that process {pid} runs it)"))
        }
    }
}

/// Why nothing is done beside a process that has the session open and was not prompted yet.
fn opened(pid: u32) -> String {
    format!(
        "process {pid} has it open, not prompted yet: go on there, or close it first (a second owner would fork its log)"
    )
}

/// Why nothing is done with a session whose lock is somebody else's.
fn unheld(pid: u32) -> String {
    format!("{UNHELD} (process {pid})")
}
