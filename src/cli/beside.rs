//! What the running tray knows of sessions beside their logs: what their servers said, and what they ask. A command that only looks
//! takes it over, so that both say the same; it asks no server itself, and opens no connection but that to the tray.

use super::runtime;
use crate::act::{Ask, Order, Report, Said};
use crate::control;
use crate::core::action::Reach;
use crate::core::fleet::{Kind, Session};
use crate::core::owner::Owner;
use crate::paths;
use crate::runtime::Runtime;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::timeout;

/// How long the tray may take. It takes a millisecond; without it, the logs alone decide.
const SAID_WITHIN: Duration = Duration::from_secs(1);

/// Takes over what the tray that runs knows of these sessions of these homes.
pub(super) fn take_over(sessions: &mut [Session], homes: &[PathBuf]) {
    // Where there is no server, and no session that could be in one of the tray's, there is nothing to be told.
    if !sessions.iter().any(may_be_known) {
        return;
    }
    let folders = paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default();
    let Ok(runtime) = runtime() else { return };
    let first = async {
        for folder in &folders {
            // A folder that is not as it should be is no place to ask in; who gives orders says so.
            if let Ok(Some(_checked)) = Runtime::open(folder)
                && let Some(said) = ask(folder).await
            {
                return Some(said);
            }
        }
        None
    };
    let said = runtime.block_on(async { timeout(SAID_WITHIN, first).await });
    let Ok(Some(said)) = said else { return };
    for said in said.into_iter().filter(|said| homes.iter().any(|home| home.to_str() == Some(&said.home))) {
        // Where two homes have one of that id, it is not told which is meant.
        let mut named = sessions.iter_mut().filter(|session| session.id == said.id);
        if let (Some(session), None) = (named.next(), named.next()) {
            said.apply(session);
        }
    }
}

fn may_be_known(session: &Session) -> bool {
    let is_gone = matches!(session.owner, Owner::Gone { .. } | Owner::Never);
    session.dealings.reach == Reach::Listens || is_gone && session.about.kind != Kind::Terminal && !session.unread
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
