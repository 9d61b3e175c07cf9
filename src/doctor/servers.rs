//! Servers: where owners listen, what Copilot's registry says of them, and what the settings name.

use super::{EACH, Finding, Ground};
use crate::agent::copilot::server::servers::{registry, token_trouble};
use crate::core::fleet::Session;
use crate::core::text::counted;
use crate::system::process::{is_of_our_user, listening};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const CHECK: &str = "server";

pub(super) fn servers(ground: &Ground, sessions: &[Session]) -> Vec<Finding> {
    let mut owners: BTreeMap<u32, usize> = BTreeMap::new();
    for session in sessions {
        if let Some(pid) = session.owner.live() {
            *owners.entry(pid).or_default() += 1;
        }
    }
    let mut findings = Vec::new();
    let mut addresses: Vec<SocketAddr> = Vec::new();
    let mut plain = 0;
    for (pid, count) in owners {
        let sessions = counted(count, "session");
        match listening(pid) {
            Ok(found) if found.is_empty() => plain += 1,
            Ok(found) => {
                let places: Vec<_> = found.iter().map(ToString::to_string).collect();
                let said = format!("process {pid} listens on {}: {sessions}", places.join(" and "));
                findings.push(Finding::ok(CHECK, said).redacted(format!("one process listens: {sessions}")));
                addresses.extend(found);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {} // it has just ended
            Err(error) => {
                let remedy = if is_of_our_user(pid) {
                    "its sessions can be watched, and answered in their terminal"
                } else {
                    "it is another user's: its sessions can be watched, and no more"
                };
                let said = format!("cannot find out where process {pid} listens: {error}");
                findings
                    .push(Finding::warning(CHECK, said, remedy).redacted("cannot find out where one process listens"));
            }
        }
    }
    if plain > 0 {
        let noun = if plain == 1 { "process listens" } else { "processes listen" };
        findings.push(
            Finding::ok(
                CHECK,
                format!("{plain} {noun} nowhere: such sessions are watched, and answered in their terminal"),
            )
            .told_to_all(),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, "no live owner, so no server").told_to_all());
    }
    findings.extend(entries(ground));
    findings.extend(settings(ground, &addresses));
    findings
}

/// What Copilot's registry says of servers that are not there.
fn entries(ground: &Ground) -> Vec<Finding> {
    let entries = ground.homes.iter().flat_map(|home| registry(home));
    let troubled = entries.filter_map(|(path, trouble)| Some((path, trouble?)));
    let said = |(path, trouble): (std::path::PathBuf, &'static str)| {
        Finding::warning(
            "registry",
            format!("{} is passed over: {trouble}", path.display()),
            "it is Copilot's own file, and Pilotlight believes it only of a server that listens where it says; a stale one may be deleted",
        )
        .redacted(format!("an entry is passed over: {trouble}"))
    };
    troubled.take(EACH).map(said).collect()
}

/// The servers that the settings name.
fn settings(ground: &Ground, addresses: &[SocketAddr]) -> Vec<Finding> {
    const CHECK: &str = "[[server]]";
    let mut findings = Vec::new();
    for setting in &ground.config.servers {
        let address = setting.address;
        if let Some(trouble) = token_trouble(setting) {
            findings.push(
                Finding::problem(
                    CHECK,
                    format!("the token for {address} cannot be read: {trouble}"),
                    "correct token-file or token-env in the settings; without it the server refuses us",
                )
                .redacted("a token cannot be read"),
            );
        } else if addresses.contains(&address) {
            findings.push(Finding::ok(CHECK, format!("{address}: a session's owner listens there")).redacted("in use"));
        } else {
            findings.push(
                Finding::warning(
                    CHECK,
                    format!("{address}: no session's owner listens there now"),
                    "start that server, or take it out of the settings",
                )
                .redacted("nobody listens there now"),
            );
        }
    }
    findings
}
