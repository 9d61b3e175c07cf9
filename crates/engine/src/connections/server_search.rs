//! Finds out where a session's server listens: only when it matters, not on every read of the session.

use crate::Entry;
use crate::config::ServiceUse;
use crate::connections::Connections;
use crate::control::{self, SocketState};
use crate::disk::Disk;
use crate::parts::server_searches::server_state;
use crate::world::World;
use pilotlight_agents::channel::{Reach, Servers, Service};
use pilotlight_agents::control::KnownServers;
use pilotlight_agents::home::homes_of;
use pilotlight_core::action::ServerState;
use pilotlight_core::owner::Owner;
use pilotlight_core::session::{Allows, Key, Session};
use std::path::PathBuf;
use std::sync::Arc;

impl Connections {
    /// Updates what is known of a session's server: searches for it when the owner is new, and again while a request
    /// waits and no server was found.
    pub(super) fn update_server(&mut self, world: &mut World, disk: &Disk, key: &Key) {
        let now = world.now().awake;
        let Some(session) = world.fleet.session(key) else { return };
        let alive = session.observed.owner.live().is_some();
        if !alive {
            self.server_searches.forget(key);
        }
        // An owner that cannot be read for a moment is not gone, and disconnecting may end its session.
        let gone = matches!(session.observed.owner, Owner::Gone { .. } | Owner::Never);
        // The server reported its work before the log's last line was written.
        let reported_at = self.tasks.activity_reported_at(key);
        if session
            .observed
            .facts
            .progress
            .is_some_and(|progress| reported_at.is_some_and(|reported_at| progress.awake > reported_at))
        {
            session.liveness.has_active_work = session.liveness.has_active_work.filter(|active| *active);
        }
        let has_waiting_request =
            alive && session.control.server == ServerState::NotListening && !session.observed.facts.requests.is_empty();
        let due = match session.control.server {
            ServerState::Unknown => alive,
            ServerState::NotListening => {
                !alive || has_waiting_request && self.server_searches.is_due(key, now) || disk.rescan_at <= now
            }
            ServerState::Listening | ServerState::Refused(_) => !alive,
            ServerState::Attached => gone,
            ServerState::Hosted(_) => false,
        };
        if due {
            if gone {
                self.tasks.drop_connection(key);
            }
            self.find_server(world, disk, key);
        }
    }

    /// What reaches a session now.
    pub(crate) fn reach(&self, world: &World, disk: &Disk, key: &Key) -> Reach {
        Reach {
            connection: self.tasks.connection_to(key).cloned(),
            servers: self.servers_of(world, disk, key),
            bridge: self.bridge_to(world, key),
            service: self.service_of(world, disk, key),
        }
    }

    /// The service that runs a session, if the settings allow to ask it.
    pub(super) fn service_of(&self, world: &World, disk: &Disk, key: &Key) -> Option<Arc<dyn Service>> {
        let entry = world.fleet.get(key).filter(|_| world.config.service != ServiceUse::Off)?;
        entry.service(disk.homes.home(key.home))
    }

    /// The servers of a session's owner.
    fn servers_of(&self, world: &World, disk: &Disk, key: &Key) -> Option<Arc<dyn Servers>> {
        // One whose agent can do little has no server of the kind that can do more.
        let session =
            world.fleet.get(key).map(Entry::session).filter(|session| !session.observed.allows.names_actions())?;
        self.servers_at(world, disk, key, session.observed.owner.live()?, session.may_be_trusted())
    }

    /// The same, but only if the system lists the addresses on which the owner listens: none that are merely likely.
    pub(super) fn listed_servers_of(&self, world: &World, disk: &Disk, key: &Key) -> Option<Arc<dyn Servers>> {
        self.servers_of(world, disk, key).filter(|servers| servers.are_listed())
    }

    /// The servers of a process of a session's agent. `is_trusted`: whether a token may go there.
    pub(crate) fn servers_at(
        &self,
        world: &World,
        disk: &Disk,
        key: &Key,
        pid: u32,
        is_trusted: bool,
    ) -> Option<Arc<dyn Servers>> {
        let agent = disk.homes.home(key.home).adapter();
        let homes = homes_of(agent, disk.homes.homes());
        agent.control()?.servers(pid, &KnownServers { homes: &homes, settings: &world.config.servers, is_trusted })
    }

    /// The folder in which a command serves this session, if one holds it.
    pub(crate) fn folder_of_holder(&self, disk: &Disk, key: &Key) -> Option<PathBuf> {
        if self.holder_folders.is_empty() || self.tasks.connection_state(key).is_some() {
            return None;
        }
        let page = disk.page(key);
        let folders = self.holder_folders.iter().map(|folder| folder.join(page.key()));
        folders.into_iter().find(|folder| matches!(control::socket_state(folder), Ok(SocketState::Served)))
    }

    /// Determines whether the server of a session's owner can be reached, without connecting to it.
    pub(crate) fn find_server(&mut self, world: &mut World, disk: &Disk, key: &Key) {
        let Some(entry) = world.fleet.get(key) else { return };
        let Session { observed, control, .. } = entry.session();
        let is_told = matches!(control.server, ServerState::Listening | ServerState::Refused(_));
        let server = match self.tasks.connection_state(key) {
            Some(server) => server,
            // A listening server keeps listening. One that refused us is tried again when the user asks for it.
            None if is_told && observed.allows == Allows::All && observed.owner.live().is_some() => return,
            None => server_state(
                observed,
                || self.service_of(world, disk, key).is_some(),
                |pid| {
                    self.servers_at(world, disk, key, pid, false).is_some()
                        || self.folder_of_holder(disk, key).is_some()
                },
            ),
        };
        if let Some(session) = world.fleet.session(key) {
            session.control.server = server;
        }
    }
}
