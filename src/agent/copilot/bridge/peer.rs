//! Whether who connects is an extension that Copilot started for a session.

use crate::system::process::{ancestors, arguments, executable};
use std::path::Path;

/// What Copilot runs an extension with.
const BOOTSTRAP: &str = "extension_bootstrap.mjs";

/// A command of ours looks whether somebody listens.
pub(crate) const OURSELVES: &str = "it is Pilotlight itself";

/// The process that started this one, where it was started to load an extension and runs the same program. Whether that process
/// owns a session is for whoever knows the owners.
///
/// # Errors
/// What is not so.
pub(crate) fn starter(peer: u32) -> Result<u32, &'static str> {
    if executable(peer).is_some_and(|its| std::env::current_exe().is_ok_and(|ours| its == ours)) {
        return Err(OURSELVES);
    }
    let Some(&starter) = ancestors(peer).first() else { return Err("it is not told who started it") };
    match (executable(peer), executable(starter)) {
        (Some(its), Some(owners)) if its == owners => {}
        _ => return Err("it runs another program than what started it"),
    }
    let loads = |argument: &std::ffi::OsString| Path::new(argument).ends_with(BOOTSTRAP);
    if !arguments(peer).is_some_and(|arguments| arguments.iter().any(loads)) {
        return Err("it was not started to load an extension");
    }
    Ok(starter)
}
