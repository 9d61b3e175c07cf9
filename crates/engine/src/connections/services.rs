//! Listens to the services that run sessions, where the settings say so: they tell at once that a session asks for a
//! permission, which no log has.

use crate::config::ServiceUse;
use crate::connections::Connections;
use crate::disk::Disk;
use crate::parts::tasks::TaskMessage;
use crate::world::World;
use pilotlight_agents::channel::ServiceReport;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_core::time::{Span, Time};
use pilotlight_core::verdict::Answer;
use pilotlight_system::log::{self, private};

/// Minimum delay before reconnecting to a service. A change in one of its sessions triggers the reconnect.
const AGAIN_AFTER: Span = Span::seconds(10);

impl Connections {
    /// Begins to listen to the services of sessions that have just changed, and ceases if the settings no longer say so.
    pub(crate) fn watch_services(&mut self, world: &mut World, disk: &Disk) {
        if world.config.service != ServiceUse::Watch {
            return self.cease_to_watch(world);
        }
        let now = world.now().awake;
        for key in &world.changes.updated {
            let is_due = |(task, until): &(tokio::task::AbortHandle, Time)| task.is_finished() && *until <= now;
            if !self.tasks.watches.get(&key.home).is_none_or(is_due) {
                continue;
            }
            let Some(service) = self.service_of(world, disk, key) else { continue };
            let (sender, home) = (self.tasks.sender(), key.home);
            let task = tokio::spawn(async move {
                let tell = |report| drop(sender.send(TaskMessage::ServiceReports(home, report))); // fails only at the end
                if let Err(failure) = service.watch(&tell).await {
                    log::info!("a service is no longer listened to: {}", private(&failure));
                }
            });
            self.tasks.watches.insert(home, (task.abort_handle(), now + AGAIN_AFTER));
        }
    }

    /// Closes all connections, and forgets what was said over them: nobody would say when it is over.
    fn cease_to_watch(&mut self, world: &mut World) {
        for (home, (task, _)) in std::mem::take(&mut self.tasks.watches) {
            task.abort();
            for key in world.fleet.keys().filter(|key| key.home == home).collect::<Vec<_>>() {
                if let Some(session) = world.fleet.session(&key) {
                    session.liveness.answer = None;
                }
                world.judge(&key);
            }
        }
    }

    /// Applies what a service reports of one of its sessions.
    pub(crate) fn service_reports(&mut self, world: &mut World, disk: &mut Disk, home: HomeId, report: &ServiceReport) {
        if world.config.service != ServiceUse::Watch {
            return; // it was said before the settings changed
        }
        let key = Key::new(home, &*report.id);
        if world.fleet.get(&key).is_none() {
            return; // a sub-agent, or not a session
        }
        // What it says is later than what its log has.
        disk.read_session_now(world, &key);
        self.take_up_disk_changes(world, disk);
        if let Some(session) = world.fleet.session(&key)
            && let Some(progress) = session.observed.facts.progress
        {
            let (active, requests) = (report.active, report.requests);
            session.liveness.answer = Some(Answer { progress: progress.wall, active, requests });
        }
        world.judge(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::last_seen::LastSeen;
    use crate::world::Changes;
    use pilotlight_agents::home::Home;
    use serde_json::json;
    use std::fs;

    /// Case 359: what a service said before the settings changed does not stand until the session's next event.
    #[tokio::test]
    async fn case_359_what_a_service_said_is_forgotten_as_soon_as_the_settings_no_longer_ask_for_it() {
        let scratch = tempfile::tempdir().unwrap();
        let (home, id) = (Home::at(scratch.path()), "36535f61-5c7b-4f09-a70b-2f8aed972801");
        fs::create_dir_all(home.path(id)).unwrap();
        let config = Config { service: ServiceUse::Watch, ..Config::default() };
        let mut world = World::new(config, crate::world::Pace::Following);
        let mut disk = Disk::new(std::slice::from_ref(&home), LastSeen::default(), world.now().awake);
        let mut connections = Connections::new();
        let now = world.now().wall;
        let event =
            json!({"id": "a", "type": "user.message", "timestamp": now, "parentId": null, "data": {"content": "x"}});
        fs::write(home.log(id), format!("{event}\n")).unwrap();
        disk.check_homes(&world);
        disk.rescan_now(&mut world);
        connections.take_up_disk_changes(&mut world, &mut disk);
        let (key, report) =
            (Key::new(HomeId::default(), id), ServiceReport { id: id.into(), active: true, requests: 1 });
        let waits = tokio::spawn(std::future::pending::<()>());
        connections.tasks.watches.insert(key.home, (waits.abort_handle(), Time(i64::MAX)));
        connections.service_reports(&mut world, &mut disk, key.home, &report);
        let asks =
            |world: &World| world.fleet.get(&key).unwrap().row.because.to_string().contains("permission request");
        assert!(asks(&world));
        world.config.service = ServiceUse::Off;
        world.changes = Changes::default();
        connections.watch_services(&mut world, &disk);
        assert!(!asks(&world) && world.changes.updated == [key.clone()], "{:?}", world.changes.updated);
        assert!(waits.await.unwrap_err().is_cancelled(), "the connection is closed");
        connections.service_reports(&mut world, &mut disk, key.home, &report);
        assert!(!asks(&world), "it was said before");
    }
}
