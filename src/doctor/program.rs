//! The Copilot CLI: whether there is one that a session can be resumed with, and which.

use super::{Finding, Ground};
use crate::agent::copilot::program::{SAID_WITHIN, find_program, version};
use crate::system::paths::expand;

/// What the CLI was tried with; others may write other events.
const TRIED: &str = "1.0.102";

pub(super) fn copilot(ground: &Ground) -> Vec<Finding> {
    const CHECK: &str = "copilot";
    let named = ground.config.actions.copilot.as_deref();
    let expanded = named.and_then(|named| expand(named, ground.user_home.as_deref()));
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return vec![
            Finding::problem(CHECK, "it cannot be looked for: no thread can be started", "try again").told_to_all(),
        ];
    };
    let found = runtime.block_on(async {
        let program = find_program(expanded.as_deref(), SAID_WITHIN).await?;
        let version = version(&program).await?;
        Ok::<_, String>((program, version))
    });
    vec![match found {
        Ok((program, version)) => {
            let number: String = version.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            let number = number.trim_end_matches('.');
            let said = format!("{}, version {number}", program.display());
            Finding::ok(CHECK, said).redacted(format!("found, version {number} (Pilotlight was tested with {TRIED})"))
        }
        Err(why) => Finding::problem(
            CHECK,
            why,
            "sessions are shown, but none can be resumed without it; `actions.copilot` in the settings says where it is",
        )
        .redacted(if named.is_some() { "what the settings name is not it" } else { "none was found" }),
    }]
}
