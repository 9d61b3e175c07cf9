//! The Copilot CLI that sessions are resumed with: whether there is one, and its version.

use super::check::{Ground, block_on};
use super::finding::Finding;
use super::redact;
use crate::agent::copilot::program::{VERSION_TIMEOUT, find_version};
use crate::system::paths::expand;

/// The release that Pilotlight was tested with; others may write other events.
const TESTED: &str = "1.0.102";

pub(super) fn program(ground: &Ground) -> Vec<Finding> {
    const CHECK: &str = "copilot";
    const REMEDY: &str =
        "sessions are shown, but none can be resumed without it; `actions.copilot` in the settings says where it is";
    let named = ground.config.actions.program.as_deref();
    let expanded = named.and_then(|named| expand(named, ground.user_home.as_deref()));
    block_on(CHECK, async {
        let found = async {
            let (program, version) = find_version(expanded.as_deref(), VERSION_TIMEOUT).await?;
            Ok::<_, String>((program, redact::version(&version)))
        };
        vec![match found.await {
            Ok((program, version)) => Finding::ok(CHECK, format!("{}, version {version}", program.display()))
                .redacted(format!("found, version {version} (Pilotlight was tested with {TESTED})")),
            Err(why) => Finding::problem(CHECK, why, REMEDY).redacted(match named {
                Some(_) => "what the settings name is not it",
                None => "none was found",
            }),
        }]
    })
}
