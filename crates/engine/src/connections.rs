//! The live sources of sessions: servers, services, bridges to terminals, kept connections to these, and the sockets of a silent
//! session's process. They know more than the session's files, and carry out orders.

mod bridges;
mod server_queries;
mod server_search;
mod services;
mod stream_probes;

pub(super) use bridges::next_news;
pub(super) use server_queries::QueriedSession;
pub(super) use server_queries::due_query;

use super::disk::{Disk, DiskChange};
use super::parts::server_searches::ServerSearches;
use super::parts::stream_probes::StreamProbes;
use super::parts::tasks::Tasks;
use super::world::World;
use pilotlight_agents::control::Bridges;
use std::path::PathBuf;

/// The live sources of all sessions.
pub(super) struct Connections {
    /// What is being done with sessions, and the connections that are kept to their servers.
    pub(super) tasks: Tasks,
    /// Those that are listened for, of each agent that has some.
    pub(super) bridges: Vec<Box<dyn Bridges>>,
    /// The agents whose bridge the user has installed, whoever listens for it.
    pub(super) bridged_agents: Vec<&'static str>,
    pub(super) stream_probes: StreamProbes,
    pub(super) server_searches: ServerSearches,
    /// The folders in which commands of ours serve the sessions that they hold.
    pub(super) holder_folders: Vec<PathBuf>,
}

impl Connections {
    /// Nobody is asked yet.
    pub(super) fn new() -> Self {
        Self {
            tasks: Tasks::new(),
            bridges: Vec::new(),
            bridged_agents: Vec::new(),
            stream_probes: StreamProbes::default(),
            server_searches: ServerSearches::default(),
            holder_folders: Vec::new(),
        }
    }

    /// Takes up what was seen on disk: applies what servers and bridges say of the sessions that were read, and judges
    /// these; forgets what is kept of those that are gone.
    pub(super) fn take_up_disk_changes(&mut self, world: &mut World, disk: &mut Disk) {
        for change in std::mem::take(&mut disk.changes) {
            match change {
                DiskChange::Read(key) => {
                    self.update_server(world, disk, &key);
                    self.update_bridge(world, &key);
                    world.judge(&key);
                }
                DiskChange::Gone(key) => {
                    self.server_searches.forget(&key);
                    self.stream_probes.forget(&key);
                    self.tasks.forget(&key);
                }
            }
        }
    }
}
