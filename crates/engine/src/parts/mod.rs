//! The engine's parts. Each owns its state, knows nothing of the engine, and is tested alone.

pub(super) mod agenda;
pub(super) mod file_systems;
pub(super) mod fleet;
pub(super) mod history;
pub(super) mod homes;
pub(super) mod hosts;
pub(super) mod outboxes;
pub(super) mod owners;
pub(super) mod polled;
pub(super) mod process_scans;
pub(super) mod resumes;
pub(super) mod server_searches;
pub(super) mod settings_file;
pub(super) mod shares;
pub(super) mod starts;
pub(super) mod status_log;
pub(super) mod stream_probes;
pub(super) mod tasks;
pub(super) mod throttle;
