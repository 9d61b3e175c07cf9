//! The bridge to a session in a plain terminal: what it may do, and what its user can be asked there.

use super::{is_at_server, questions, unheld};
use crate::core::fleet::{Kind, Session};
use crate::core::owner::Owner;

/// What the bridge to a session in a terminal may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bridge {
    /// Nothing but tell: it was not tried with this release of Copilot.
    Watches,
    /// Stop the turn, and answer questions.
    Joined,
    /// The same, and its user said no to more.
    Declined,
    /// Its user is being asked in the terminal whether it may answer permission requests.
    Asking,
    /// Answer permission requests, too.
    Elevated,
}

impl Bridge {
    /// Whether it does what it is told.
    pub(crate) const fn obeys(self) -> bool {
        !matches!(self, Self::Watches)
    }

    /// Its name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Elevated => "elevated",
            Self::Watches | Self::Joined | Self::Declined | Self::Asking => "joined",
        }
    }
}

/// The bridge to the live terminal that owns it.
pub(in crate::core) const fn bridge_of(session: &Session) -> Option<Bridge> {
    match session.owner {
        Owner::Alive { .. } | Owner::Opened { .. } => session.control.bridge,
        _ => None,
    }
}

/// Whether what is done with a session is done in its terminal, over a bridge that does what it is told.
pub fn is_bridged(session: &Session) -> bool {
    !is_at_server(session) && bridge_of(session).is_some_and(Bridge::obeys)
}

/// What the bridge to its terminal may do, in words.
pub fn bridge_words(session: &Session) -> Option<String> {
    Some(match bridge_of(session)? {
        Bridge::Watches => untried(session),
        Bridge::Joined => "a bridge reaches its terminal; permission requests are answered there".into(),
        Bridge::Declined => {
            "a bridge reaches its terminal; you told Copilot there that it may not answer requests".into()
        }
        Bridge::Asking => "a bridge reaches its terminal, where Copilot asks whether it may answer requests".into(),
        Bridge::Elevated => "a bridge reaches its terminal, and may answer its permission requests".into(),
    })
}

/// Whether the bridge may answer permission requests.
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

/// Whether its user can be asked in the terminal: never while a dialog may be open there, whose keys it would take.
pub(super) fn let_answer(session: &Session) -> Result<String, String> {
    match session.owner {
        Owner::Alive { .. } | Owner::Opened { .. } => {}
        Owner::Unheld { pid } => return Err(unheld(pid)),
        Owner::Unknown { pid } => return Err(format!("process {pid} may run it, and cannot be inspected")),
        Owner::Gone { .. } | Owner::Never => return Err("no process runs it".into()),
    }
    match bridge_of(session) {
        None if is_at_server(session) => return Err("it is answered over its server".into()),
        None => return Err(format!("there is no bridge to its terminal{}", lifted(session))),
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
    // Copilot refuses by itself there, for the whole session.
    if session.facts.autopilot {
        return Err("not in autopilot, where Copilot asks nobody".into());
    }
    if session.facts.turn.is_some() || !session.facts.requests.is_empty() || !questions(session).is_empty() {
        return Err("only while it waits for your next prompt: the question would interrupt its work".into());
    }
    Ok("Copilot asks in its terminal whether Pilotlight may answer there: 1 for this session, 2 for this folder".into())
}

/// What would lift a refusal: a bridge, where a plain terminal has none; a release of Copilot that it was tried with.
pub(super) fn lifted(session: &Session) -> String {
    let is_terminal = session.about.kind == Kind::Terminal && matches!(session.owner, Owner::Alive { .. });
    match (is_terminal && !is_at_server(session), session.control.bridge) {
        (true, None) => " (its terminal has neither server nor bridge: see `pilotlight bridge status`)".into(),
        (true, Some(Bridge::Watches)) => format!(" ({})", untried(session)),
        _ => String::new(),
    }
}

/// Why a bridge only watches.
fn untried(session: &Session) -> String {
    let release = session.control.release.as_deref().unwrap_or("this version");
    format!("the bridge was not tried with Copilot {release}: it only watches, unless `bridge-untried` is set")
}
