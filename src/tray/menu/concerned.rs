//! Which sessions the entries below the list are about.

use crate::tray::details::Source;
use pilotlight_agents::adapter::{Adapter, FIRST};
use pilotlight_core::action::{Action, ServerState, offer};
use pilotlight_core::fleet::Kind as Use;
use pilotlight_core::order::{Operation, Order};
use pilotlight_core::owner::Owner;
use pilotlight_core::session::Allows;

/// Orders to resume the sessions whose process died without a shutdown, as all do when the machine goes down.
pub(super) fn left_open(sources: &[Source<'_>]) -> Vec<Order> {
    let was_open = |source: &&Source<'_>| {
        let session = source.session;
        matches!(session.observed.owner, Owner::Gone { .. })
            && session.observed.about.kind != Use::Sdk
            && session.observed.facts.shut_down.is_none()
            && !session.observed.unread
            && offer(Action::Resume, session, source.row.status).is_ok()
    };
    let mut open: Vec<_> = sources.iter().filter(was_open).collect();
    open.sort_by_key(|source| source.key);
    open.iter().map(|source| Order::new(&source.row.id, Operation::Resume).to(&source.row.label)).collect()
}

/// Whether a session runs in a terminal that nothing of ours reaches, and that a bridge of this agent would: no server of its
/// own, and no bridge.
pub(super) fn is_unreached(source: &Source<'_>, agent: &'static dyn Adapter) -> bool {
    let session = source.session;
    let would_be = match session.observed.allows {
        Allows::All => agent == FIRST && session.control.server == ServerState::NotListening,
        Allows::Process => session.observed.agent == agent.agent(),
        Allows::Only { .. } | Allows::Nothing { .. } => false,
    };
    would_be
        && session.observed.about.kind == Use::Terminal
        && session.observed.owner.live().is_some()
        && session.control.bridge.is_none()
}

/// Whether a session's work may end when we detach. Other clients attached to its server are unknown.
pub(super) fn ends_with_us(source: &Source<'_>) -> bool {
    match source.session.control.server {
        ServerState::Hosted(_) => true,
        ServerState::Attached => source.session.observed.about.kind != Use::Terminal,
        _ => false,
    }
}
