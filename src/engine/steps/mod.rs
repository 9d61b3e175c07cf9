//! What the loop does with its parts: the rest of `impl Engine`, one kind of work per file. The loop calls these
//! methods, so the engine imports nothing from here.

mod bridges;
mod file_events;
mod file_systems;
mod history;
mod hosts;
mod initial_scan;
mod looks;
mod orders;
mod processes;
mod resumes;
mod scan;
mod seen;
mod server_probes;
mod server_search;
mod services;
mod sessions;
mod settings;
mod shutdown;
mod task_messages;
mod timers;
mod wakeups;

use super::parts::owners::Owners;
use super::parts::process_scans::ProcessScans;
use crate::agent::reading::Reading;
use crate::agent::tail::ReadContext;
use crate::config::Config;
use crate::core::time::Moment;

/// What a session folder is read with.
fn reading<'a>(config: &'a Config, owners: &'a Owners, process_scans: &'a ProcessScans, now: Moment) -> Reading<'a> {
    Reading {
        context: ReadContext { now, limits: &config.limits, until: None },
        owner_names: &config.owners.names,
        known: owners.known(),
        openings: process_scans.openings(),
        all: false,
    }
}
