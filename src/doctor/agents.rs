//! The agents besides the first: which are watched, their programs, and what cannot be known of their sessions or done with
//! them.

use super::check::{CheckContext, block_on};
use super::finding::Finding;
use super::redact;
use pilotlight_agents::adapter::{ADAPTERS, Adapter, FIRST};
use pilotlight_agents::program_version::printed_version;
use pilotlight_system::paths;
use std::path::Path;
use std::time::Duration;

/// How long a program may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// A finding or more for each agent that is watched, and one for each that is switched off.
pub(super) fn agents(context: &CheckContext) -> Vec<Finding> {
    let mut findings = Vec::new();
    for adapter in ADAPTERS {
        let (profile, agent) = (adapter.profile(), adapter.agent());
        let name = profile.names.name;
        if context.config.agents.off.contains(&name) {
            let text = format!("{agent} is switched off: `[agents] {name} = false` in the settings");
            findings.push(Finding::ok(name, text).redacted("switched off"));
        }
        let is_watched = context.homes.iter().any(|home| home.adapter() == *adapter);
        if *adapter == FIRST || !is_watched || profile.program.is_empty() {
            continue;
        }
        findings.extend(block_on(name, async { vec![program(*adapter).await] }));
        findings.extend(profile.gaps.map(|gaps| Finding::ok(name, gaps)));
    }
    findings
}

/// The agent's program, and whether Pilotlight was tried with its version.
async fn program(adapter: &'static dyn Adapter) -> Finding {
    let profile = adapter.profile();
    let (name, tried) = (profile.names.name, profile.tried);
    let path = std::env::var_os("PATH");
    let Some(program) = paths::program(Path::new(profile.program), path.as_deref()) else {
        let text = format!("no `{}` was found on PATH", profile.program);
        let remedy = "Pilotlight shows its sessions, but cannot resume them. Put it on PATH";
        return Finding::warning(name, text, remedy).redacted("its program was not found");
    };
    match printed_version(&program, VERSION_TIMEOUT).await.map(|printed| redact::version(&printed)) {
        Ok(version) => {
            let untried = if version == tried { "" } else { ", which is untested: its logs may be read only in part" };
            Finding::ok(name, format!("{}, version {version}{untried}", program.display()))
                .redacted(format!("found, version {version} (Pilotlight was tested with {tried})"))
        }
        Err(why) => {
            let remedy =
                "Pilotlight shows its sessions, but cannot resume them. Run it in a terminal, and see what it prints";
            Finding::warning(name, format!("{} {why}", program.display()), remedy)
                .redacted("it does not say its version")
        }
    }
}
