//! Checks that a connecting process is an extension that Copilot started for a session.

use super::BOOTSTRAP;
use pilotlight_system::process::{ancestors, arguments, executable};
use std::path::Path;

/// The refusal for a command of ours that only checks whether anybody listens. Not logged.
pub(crate) const OURSELVES: &str = "it is Pilotlight itself";

/// Returns the parent of a peer that was started to load an extension and runs its parent's program. Whether the parent
/// owns a session is for the caller to check.
///
/// # Errors
/// Which of these conditions does not hold.
pub(crate) fn extension_parent(peer: u32) -> Result<u32, &'static str> {
    if executable(peer).is_some_and(|its| std::env::current_exe().is_ok_and(|ours| its == ours)) {
        return Err(OURSELVES);
    }
    let Some(&parent) = ancestors(peer).first() else { return Err("its parent process is unknown") };
    match (executable(peer), executable(parent)) {
        (Some(its), Some(owners)) if its == owners => {}
        _ => return Err("it runs another program than its parent process"),
    }
    let loads = |argument: &std::ffi::OsString| Path::new(argument).ends_with(BOOTSTRAP);
    if !arguments(peer).is_some_and(|arguments| arguments.iter().any(loads)) {
        return Err("it was not started to load an extension");
    }
    Ok(parent)
}
