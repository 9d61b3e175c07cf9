//! Servers: where owners listen, stale entries of Copilot's registry, and the servers that the settings name.

use super::check::{CheckContext, EACH};
use super::finding::Finding;
use pilotlight_agents::copilot;
use pilotlight_agents::copilot::server::servers::{registry, token_error};
use pilotlight_core::fleet::Session;
use pilotlight_core::session::Allows;
use pilotlight_core::text::counted;
use pilotlight_system::process::{is_of_our_user, listening};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;

pub(super) fn servers(context: &CheckContext, sessions: &[Session]) -> Vec<Finding> {
    let (mut findings, addresses) = owners(sessions);
    findings.extend(entries(context));
    findings.extend(settings(context, &addresses));
    findings
}

/// Where the owners of sessions listen that are reached over servers, and those addresses.
fn owners(sessions: &[Session]) -> (Vec<Finding>, Vec<SocketAddr>) {
    const CHECK: &str = "server";
    let mut owners: BTreeMap<u32, usize> = BTreeMap::new();
    // Other agents may listen for their own sake.
    let reached = sessions.iter().filter(|session| session.observed.allows == Allows::All);
    for pid in reached.filter_map(|session| session.observed.owner.live()) {
        *owners.entry(pid).or_default() += 1;
    }
    let (mut findings, mut addresses, mut silent) = (Vec::new(), Vec::new(), 0);
    for (pid, count) in owners {
        let sessions = counted(count, "session");
        match listening(pid) {
            Ok(found) if found.is_empty() => silent += 1,
            Ok(found) => {
                let places: Vec<_> = found.iter().map(ToString::to_string).collect();
                let text = format!("process {pid} listens on {}: {sessions}", places.join(" and "));
                findings.push(Finding::ok(CHECK, text).redacted(format!("one process listens: {sessions}")));
                addresses.extend(found);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {} // it has just ended
            Err(error) => {
                let text = format!("cannot find out where process {pid} listens: {error}");
                let remedy = match is_of_our_user(pid) {
                    true => "Pilotlight shows its sessions. Answer them in their terminal",
                    false => "it is another user's: Pilotlight can only show its sessions",
                };
                let redacted = "cannot find out where one process listens";
                findings.push(Finding::warning(CHECK, text, remedy).redacted(redacted));
            }
        }
    }
    if silent > 0 {
        let noun = if silent == 1 { "process listens" } else { "processes listen" };
        let text = format!("{silent} {noun} on no port: to answer its sessions from Pilotlight, you need the bridge");
        findings.push(Finding::ok(CHECK, text).public());
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, "no Copilot session is running, so there is no server to check"));
    }
    (findings, addresses)
}

/// Entries of Copilot's registry whose servers are gone.
fn entries(context: &CheckContext) -> Vec<Finding> {
    const REMEDY: &str =
        "Copilot wrote this file about one of its servers. If that server has ended, you can delete the file";
    let entries = copilot::homes(&context.homes).into_iter().flat_map(|home| registry(&home));
    let findings = entries.filter_map(|(path, trouble)| {
        let trouble = trouble?;
        let text = format!("{} is ignored: {trouble}", path.display());
        Some(Finding::warning("registry", text, REMEDY).redacted(format!("an entry is ignored: {trouble}")))
    });
    findings.take(EACH).collect()
}

/// The servers that the settings name.
fn settings(context: &CheckContext, addresses: &[SocketAddr]) -> Vec<Finding> {
    const CHECK: &str = "[[server]]";
    let servers = context.config.servers.iter().map(|setting| {
        let address = setting.address;
        if let Some(trouble) = token_error(setting) {
            let text = format!("the token for {address} cannot be read: {trouble}");
            let remedy = "correct token-file or token-env in the settings; without it the server refuses Pilotlight";
            Finding::problem(CHECK, text, remedy).redacted("a token cannot be read")
        } else if addresses.contains(&address) {
            Finding::ok(CHECK, format!("{address}: an agent with sessions listens there")).redacted("in use")
        } else {
            let text = format!("{address}: no agent with sessions listens there now");
            let remedy = "start that server, or take it out of the settings";
            Finding::warning(CHECK, text, remedy).redacted("nothing listens there now")
        }
    });
    servers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::owner::Owner;
    use std::net::TcpListener;

    /// Case 328.
    #[test]
    fn case_328_where_an_agent_listens_whose_servers_are_not_reached_is_its_own_affair() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut session = Session::default();
        session.observed.owner = Owner::Alive { pid: std::process::id(), started: None };
        assert!(owners(std::slice::from_ref(&session)).1.contains(&address));
        session.observed.allows = Allows::Process;
        let (findings, addresses) = owners(&[session]);
        assert_eq!((findings.len(), addresses), (1, Vec::new()));
    }
}
