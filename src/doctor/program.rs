//! The Copilot CLI that sessions are resumed with: whether there is one, and its version.

use super::check::{CheckContext, block_on};
use super::finding::Finding;
use super::redact;
use pilotlight_agents::copilot::program::{VERSION_TIMEOUT, find_version};
use pilotlight_agents::copilot::{self, PROFILE};
use pilotlight_system::paths::expand;

/// Whether Copilot is used, as far as can be told: a home of it is watched that would be missed, or none of any agent, and none is switched off.
pub(super) fn is_used(context: &CheckContext) -> bool {
    let missed = copilot::homes(context.homes.iter().filter(|home| context.misses(home)));
    context.homes.is_empty() && context.config.agents.off.is_empty() || !missed.is_empty()
}

pub(super) fn program(context: &CheckContext) -> Vec<Finding> {
    const CHECK: &str = "copilot";
    // Other releases may write other events.
    const TESTED: &str = PROFILE.tried;
    const REMEDY: &str = "without it, Pilotlight shows sessions, but cannot resume them. Install it, or set `actions.copilot` in the settings to its path";
    if !is_used(context) {
        return Vec::new();
    }
    let named = context.config.actions.program.as_deref();
    let expanded = named.and_then(|named| expand(named, context.user_home.as_deref()));
    block_on(CHECK, async {
        let found = async {
            let (program, version) = find_version(expanded.as_deref(), VERSION_TIMEOUT).await?;
            Ok::<_, String>((program, redact::version(&version)))
        };
        vec![match found.await {
            Ok((program, version)) => Finding::ok(CHECK, format!("{}, version {version}", program.display()))
                .redacted(format!("found, version {version} (Pilotlight was tested with {TESTED})")),
            Err(why) => Finding::problem(CHECK, why, REMEDY).redacted(match named {
                Some(_) => "the program that the settings name is not Copilot",
                None => "its program was not found",
            }),
        }]
    })
}
