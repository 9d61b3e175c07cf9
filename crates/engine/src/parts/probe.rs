//! A probe of a silent session's server: when one is due, and what it found.

use pilotlight_agents::channel::ServerProbe;
use pilotlight_core::action::ServerState;
use pilotlight_core::fleet::Session;
use pilotlight_core::session::Key;
use pilotlight_core::time::Time;
use pilotlight_core::verdict::{Answer, Status};

/// The result of probing one session.
pub(crate) struct ProbedSession {
    pub(crate) key: Key,
    /// The last sign of life in its log when the probe began.
    pub(crate) progress: Time,
    pub(crate) result: Option<ServerProbe>,
}

/// Applies the result of a probe. It counts only for this progress: what happens later makes it outdated.
pub fn apply_probe(session: &mut Session, progress: Time, result: Option<ServerProbe>, now: Time) {
    let liveness = &mut session.liveness;
    liveness.probing = false;
    liveness.answer = result.map(|ServerProbe { active, requests, .. }| Answer { progress, active, requests });
    let all = result.and_then(|result| result.approves_all);
    liveness.approves_all = all.map(|all| (all, now)).or(liveness.approves_all);
}

/// Whether a session's server should be probed because the session is silent. Returns its owner, whether that may be
/// trusted with a token, and the last sign of life in the log, by the wall clock.
pub fn due_probe(session: &Session, status: Status) -> Option<((u32, bool), Time)> {
    let is_silent = status.is_silent() && session.observed.problem.is_none();
    let is_due = is_silent && session.control.server == ServerState::Listening && session.control.under_way.is_none();
    let (pid, progress) = (session.observed.owner.live()?, session.observed.facts.progress?.wall);
    is_due.then_some(((pid, session.may_be_trusted()), progress))
}
