//! What is known of sessions beside their logs: what their servers said, and what they ask. A command that only looks takes over
//! what the running tray knows, so that both say the same. Where no tray has asked about a silent session, it asks that one's
//! server itself, as the tray would: without attaching, and once.

use super::act::place_for_bridges;
use super::{Context, runtime, say};
use crate::agent::copilot::bridge::files::Files;
use crate::agent::copilot::bridge::known::Known;
use crate::agent::copilot::bridge::socket::{Heard, serve};
use crate::agent::copilot::server::look::{LOOKED_WITHIN, Told, look};
use crate::agent::copilot::server::servers::endpoints;
use crate::control;
use crate::core::action::ServerState;
use crate::core::fleet::{Kind, Session};
use crate::core::order::{Ask, Order, Report, Said, real};
use crate::core::owner::Owner;
use crate::core::time::Moment;
use crate::core::verdict::Answer;
use crate::engine::{Listening, wants_a_look};
use crate::system::paths;
use crate::system::process::listening;
use crate::system::runtime::{Runtime, is_stopped, process_in};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long the tray may take. It takes a millisecond; without it, the logs alone decide.
const SAID_WITHIN: Duration = Duration::from_secs(1);
/// A bridge that is there comes within this.
const COMES_WITHIN: Duration = Duration::from_secs(2);

/// Takes over what is known of these sessions. `now` is when they were looked at.
pub(super) fn take_over(sessions: &mut [Session], context: &Context, now: Moment) {
    take_over_from_tray(sessions, &context.homes);
    if context.config.actions.ask_servers {
        ask_servers(sessions, context, now);
    }
}

/// Asks the servers of those that are silent, and of which nothing was told.
fn ask_servers(sessions: &mut [Session], context: &Context, now: Moment) {
    let mut owners: BTreeMap<(u32, bool), Vec<usize>> = BTreeMap::new();
    for (index, session) in sessions.iter().enumerate() {
        let (row, _) = session.row(now, &context.config.limits);
        let is_told = session.live.asking || session.answer().is_some();
        if let Some((owner, _)) = wants_a_look(session, row.status).filter(|_| !is_told) {
            owners.entry(owner).or_default().push(index);
        }
    }
    owners.retain(|(pid, _), _| listening(*pid).is_ok());
    if owners.is_empty() {
        return;
    }
    let Ok(runtime) = runtime() else { return };
    let user_home = paths::user_home();
    let looks = owners.into_iter().map(|((pid, is_trusted), wanted)| {
        let mut endpoints = endpoints(pid, &context.homes, &context.config.servers, user_home.as_deref());
        if !is_trusted {
            endpoints.iter_mut().for_each(|endpoint| endpoint.token = None);
        }
        let ids: Vec<Box<str>> = wanted.iter().map(|index| sessions[*index].id.clone()).collect();
        async move { (wanted, look(&endpoints, &ids, LOOKED_WITHIN).await) }
    });
    let told = runtime.block_on(async { looks.collect::<JoinSet<_>>().join_all().await });
    for (index, told) in told.into_iter().flat_map(|(wanted, told)| wanted.into_iter().zip(told)) {
        let session = &mut sessions[index];
        let answer = told.zip(session.facts.progress);
        session.live.answer =
            answer.map(|(Told { active, requests }, at)| Answer { progress: at.wall, active, requests });
    }
}

/// Takes over what the tray that runs knows of these sessions of these homes. Whether one was asked, and has answered.
pub(super) fn take_over_from_tray(sessions: &mut [Session], homes: &[PathBuf]) -> bool {
    // Where there is no server, and no session that could be in one of the tray's, there is nothing to be told.
    if !sessions.iter().any(may_be_known) {
        return false;
    }
    let folders = paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default();
    let Ok(runtime) = runtime() else { return false };
    let first = async {
        for folder in &folders {
            // A folder that is not as it should be is no place to ask in; who gives orders says so.
            let Ok(Some(checked)) = Runtime::open(folder) else { continue };
            match timeout(SAID_WITHIN, ask(folder)).await {
                Ok(None) => {}
                Ok(said) => return said,
                Err(_) => {
                    say(&silent(process_in(&checked.note()), "what only it knows is missing here"));
                    return None;
                }
            }
        }
        None
    };
    let Some(said) = runtime.block_on(first) else { return false };
    let homes: Vec<_> = homes.iter().map(|home| real(home)).collect();
    for said in said.into_iter().filter(|said| homes.contains(&said.home)) {
        // Where two homes have one of that id, it is not told which is meant.
        let mut named = sessions.iter_mut().filter(|session| session.id == said.id);
        if let (Some(session), None) = (named.next(), named.next()) {
            said.apply(session);
        }
    }
    true
}

/// What to say of a tray that does not answer, what comes of that here, and what to do.
pub(super) fn silent(tray: Option<u32>, meanwhile: &str) -> String {
    match tray {
        Some(process) if is_stopped(process) => {
            format!(
                "Pilotlight's tray (process {process}) is stopped: `kill -CONT {process}` lets it go on; {meanwhile}"
            )
        }
        Some(process) => format!(
            "Pilotlight's tray (process {process}) does not answer; {meanwhile}; if it hangs, end process {process} and try \
             again"
        ),
        None => format!("Pilotlight's tray does not answer; {meanwhile}; if it hangs, end it and try again"),
    }
}

/// Whether a bridge that obeys comes from this session's terminal, where no tray runs that would know.
pub(super) fn meets_bridge(session: &Session, context: &Context) -> bool {
    let Some(owner) = session.owner.live().filter(|_| session.control.bridge.is_none()) else { return false };
    let (Some(Listening { folder, files, .. }), Ok(runtime)) = (place_for_bridges(), runtime()) else { return false };
    let untried = context.config.actions.bridge_untried;
    let meets = async {
        let (_served, mut heard) = serve(&folder, files.key()?.to_vec(), false).ok()?;
        while let Some(heard) = heard.recv().await {
            if let Heard::Joined(_, hello, _) = heard
                && (&hello.session, hello.ppid) == (&session.id, owner)
            {
                return Some(Known::new(&hello).bridge(untried).obeys());
            }
        }
        None
    };
    runtime.block_on(async { timeout(COMES_WITHIN, meets).await }).ok().flatten() == Some(true)
}

/// Tells the tray that runs to listen for bridges, or no longer.
pub(super) fn have_it_listen() {
    let folders = paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default();
    let Ok(runtime) = runtime() else { return };
    let told = async {
        for folder in &folders {
            if let Ok(Some(_checked)) = Runtime::open(folder)
                && let Ok(Some(mut asked)) = control::ask(folder, &Order::new("", Ask::Listen)).await
            {
                while let Ok(Some(_)) = asked.next().await {}
            }
        }
    };
    // A tray that does not answer looks when it is started again.
    let _ = runtime.block_on(async { timeout(SAID_WITHIN, told).await });
}

fn may_be_known(session: &Session) -> bool {
    if session.owner.live().is_some() && has_bridge() {
        return true;
    }
    let is_gone = matches!(session.owner, Owner::Gone { .. } | Owner::Never);
    session.control.server == ServerState::Listens || is_gone && session.about.kind != Kind::Terminal && !session.unread
}

/// Whether the user has installed the bridge.
pub(super) fn has_bridge() -> bool {
    paths::project().is_some_and(|project| Files::new(&project).key().is_some())
}

async fn ask(folder: &Path) -> Option<Vec<Said>> {
    let order = Order::new("", Ask::Said);
    let mut asked = control::ask(folder, &order).await.ok()??;
    while let Some(report) = asked.next().await.ok()? {
        if let Report::Said(said) = report {
            return Some(said);
        }
    }
    None
}
