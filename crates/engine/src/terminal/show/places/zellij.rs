//! zellij, over its command line. The process is a descendant of the session's server, which has no terminal; a client
//! shows the session in one.

use super::{Place, ProcessInTerminal, Program, Selector, TerminalVariables, text};
use pilotlight_system::process::{arguments, executable, is_of_our_user, terminal_of};
use std::fs;
use std::path::Path;

/// The session's name.
pub(super) const SESSION: &str = "ZELLIJ_SESSION_NAME";
/// The pane's number.
pub(super) const PANE: &str = "ZELLIJ_PANE_ID";
/// How a server is started.
const SERVER: &str = "--server";

pub(super) fn find(
    told: &TerminalVariables,
    _: Option<&Path>,
    process: &ProcessInTerminal<'_>,
) -> Result<Option<Place>, String> {
    let (Some(session), Some(pane)) = (text(told, SESSION), text(told, PANE)) else { return Ok(None) };
    let is_number = pane.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || !process.chain.iter().any(|pid| is_server(*pid)) {
        return Ok(None);
    }
    let words = [&format!("--session={session}"), "action", "focus-pane-id", &format!("terminal_{pane}")];
    Ok(Some(Place {
        name: "its pane in zellij",
        is_shown: None,
        window: None,
        client: client_of(session),
        how: Selector::Run(Program { name: "zellij", env: None }, words.map(str::to_owned).to_vec()),
    }))
}

fn runs_zellij(pid: u32) -> bool {
    executable(pid).is_some_and(|path| path.file_name().is_some_and(|name| name == "zellij"))
}

fn is_server(pid: u32) -> bool {
    runs_zellij(pid) && arguments(pid).is_some_and(|arguments| arguments.iter().any(|it| it == SERVER))
}

/// The process that shows a session: the one client in a terminal, or of several the one whose arguments name it.
fn client_of(session: &str) -> Option<u32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_client =
        |pid: &u32| is_of_our_user(*pid) && runs_zellij(*pid) && !is_server(*pid) && terminal_of(*pid).is_some();
    let clients: Vec<u32> = pids.filter(is_client).collect();
    let names_it = |pid: &&u32| arguments(**pid).is_some_and(|arguments| arguments.iter().any(|it| it == session));
    match &clients[..] {
        [only] => Some(*only),
        several => several.iter().find(names_it).copied(),
    }
}
