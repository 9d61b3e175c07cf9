//! Adds to sessions what is not in their logs: what their servers and bridges report. A command that only displays
//! takes this from the running tray, so that both show the same. If no tray has probed a silent session, the command
//! probes that session's server itself, as the tray would: once, and without attaching.

use super::bridges::has_bridge;
use super::context::{Context, runtime};
use super::report::say;
use super::trays::{ask_first, unresponsive};
use pilotlight_agents::channel::PROBE_TIMEOUT;
use pilotlight_agents::channel::site::{PIECE_WITHIN, PIECE_WITHIN_UNSEEN};
use pilotlight_agents::copilot;
use pilotlight_agents::copilot::server::probe::{listen_once, probe};
use pilotlight_agents::copilot::server::servers::{Endpoints, endpoints};
use pilotlight_agents::source::Source;
use pilotlight_core::action::ServerState;
use pilotlight_core::fleet::{Kind, Session};
use pilotlight_core::owner::Owner;
use pilotlight_core::reception::{Finding, Found};
use pilotlight_core::session::BridgeSetup;
use pilotlight_core::time::Moment;
use pilotlight_core::verdict::Reception;
use pilotlight_engine::control;
use pilotlight_engine::{apply_probe, due_probe};
use pilotlight_system::paths;
use pilotlight_system::process::listening;
use std::collections::BTreeMap;
use tokio::task::JoinSet;

/// Adds what is known beyond the logs. `now` is when the sessions were read.
pub(super) fn enrich(sessions: &mut [Session], context: &Context, now: Moment) {
    let is_told = enrich_from_tray(sessions, &context.homes);
    if !is_told && has_bridge() {
        sessions.iter_mut().for_each(|session| session.control.bridge_setup = BridgeSetup::Unheard);
    }
    if context.config.actions.ask_servers {
        if !is_told {
            listen_to_servers(sessions, context, now);
        }
        probe_servers(sessions, context, now);
    }
}

/// Asks the servers of silent sessions that do not seem to receive an answer whether they do.
fn listen_to_servers(sessions: &mut [Session], context: &Context, now: Moment) {
    let is_wanted = |session: &Session| {
        let receives = matches!(session.finding(), Some(Finding::Receiving { .. }));
        session.control.server == ServerState::Listening && session.finding().is_some() && !receives
    };
    let mut owners: BTreeMap<(u32, bool), Vec<usize>> = BTreeMap::new();
    for (index, session) in sessions.iter().enumerate().filter(|(_, session)| is_wanted(session)) {
        if let Some(pid) = session.observed.owner.live() {
            owners.entry((pid, session.may_be_trusted())).or_default().push(index);
        }
    }
    // A connection that belongs to no single session does not show slow answers.
    let is_unseen = |index: &usize| matches!(sessions[*index].finding(), Some(Finding::Unknown(_)));
    let wait = if owners.values().flatten().any(is_unseen) { PIECE_WITHIN_UNSEEN } else { PIECE_WITHIN };
    let words = ask_owners(sessions, owners, context, move |endpoints, ids| async move {
        listen_once(endpoints.all(), &ids, wait).await
    });
    for (index, word) in words {
        let session = &mut sessions[index];
        let streams = session.streams();
        if let (Some(reception), Some(progress)) = (session.vitals.reception, session.observed.facts.progress) {
            let last = reception.last.map(|last| now.since(last));
            let found = Found { finding: reception.finding, last }.with_word(word, streams);
            session.vitals.reception = Some(Reception::new(found, progress.wall, now));
        }
    }
}

/// Asks the servers of these processes about their sessions, all processes at once. Whether a process may be trusted with
/// a token is part of its key.
fn ask_owners<T: Send + 'static, F: Future<Output = Vec<T>> + Send + 'static>(
    sessions: &[Session],
    mut owners: BTreeMap<(u32, bool), Vec<usize>>,
    context: &Context,
    ask: impl Fn(Endpoints, Vec<Box<str>>) -> F,
) -> Vec<(usize, T)> {
    owners.retain(|(pid, _), _| listening(*pid).is_ok());
    if owners.is_empty() {
        return Vec::new();
    }
    let Ok(runtime) = runtime() else { return Vec::new() };
    let user_home = paths::user_home();
    let asked = owners.into_iter().map(|((pid, is_trusted), wanted)| {
        let endpoints =
            endpoints(pid, is_trusted, &copilot::homes(&context.homes), &context.config.servers, user_home.as_deref());
        let asked = ask(endpoints, wanted.iter().map(|index| sessions[*index].id.clone()).collect());
        async move { (wanted, asked.await) }
    });
    let results = runtime.block_on(async { asked.collect::<JoinSet<_>>().join_all().await });
    results.into_iter().flat_map(|(wanted, results)| wanted.into_iter().zip(results)).collect()
}

/// Probes the servers of silent sessions that the tray reported nothing about.
fn probe_servers(sessions: &mut [Session], context: &Context, now: Moment) {
    let mut owners: BTreeMap<(u32, bool), Vec<usize>> = BTreeMap::new();
    for (index, session) in sessions.iter().enumerate() {
        let (row, _) = session.row(now, &context.config.limits);
        let is_known = session.vitals.probing || session.answer().is_some();
        if let Some((owner, _)) = due_probe(session, row.status).filter(|_| !is_known) {
            owners.entry(owner).or_default().push(index);
        }
    }
    let results = ask_owners(sessions, owners, context, |endpoints, ids| async move {
        probe(endpoints.all(), &ids, PROBE_TIMEOUT).await
    });
    for (index, result) in results {
        let session = &mut sessions[index];
        if let Some(progress) = session.observed.facts.progress {
            apply_probe(session, progress.wall, result, now.wall);
        }
    }
}

/// Adds what the running tray knows of these sessions. Whether a tray was asked and answered.
pub(super) fn enrich_from_tray(sessions: &mut [Session], homes: &[Source]) -> bool {
    if !sessions.iter().any(may_have_more) {
        return false;
    }
    let Ok(runtime) = runtime() else { return false };
    let overlays = match runtime.block_on(ask_first(control::ask_for_overlays)) {
        Ok(Some(overlays)) => overlays,
        Ok(None) => return false,
        Err(tray) => {
            say(&unresponsive(tray, "what only it knows is missing here"));
            return false;
        }
    };
    let homes: Vec<_> = homes.iter().map(|source| paths::canonical(source.home())).collect();
    for overlay in overlays.into_iter().filter(|overlay| homes.contains(&overlay.home)) {
        // If two homes have a session of this id, it is unknown which of them this is.
        let mut matches = sessions.iter_mut().filter(|session| session.id == overlay.id);
        if let (Some(session), None) = (matches.next(), matches.next()) {
            overlay.apply(session);
        }
    }
    if has_bridge() {
        sessions.iter_mut().for_each(|session| session.control.bridge_setup = BridgeSetup::Installed);
    }
    true
}

/// Whether a tray can know more of this session than its log says: by a bridge, by its server, or because the tray
/// hosts it.
fn may_have_more(session: &Session) -> bool {
    if session.observed.owner.live().is_some() && has_bridge() {
        return true;
    }
    let is_gone = matches!(session.observed.owner, Owner::Gone { .. } | Owner::Never);
    session.control.server == ServerState::Listening
        // It has looked for longer than a command does.
        || session.vitals.reception.is_some()
        || is_gone && session.observed.about.kind != Kind::Terminal && !session.observed.unread
}
