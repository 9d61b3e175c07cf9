//! Listens to the services that run sessions, where the settings say so: they tell at once that a session asks for a
//! permission, which no log has.

use crate::agent::channel::says::ServiceSays;
use crate::config::ServiceUse;
use crate::core::session::{Key, SourceId};
use crate::core::time::{Span, Time};
use crate::core::verdict::Answer;
use crate::engine::parts::tasks::TaskMessage;
use crate::engine::{Changes, Engine};

/// How long after the end of a connection another one is made, if a session changes.
const AGAIN_AFTER: Span = Span::seconds(10);

impl Engine {
    /// Begins to listen to the services of sessions that have just changed, and ceases if the settings no longer say so.
    pub(in crate::engine) fn watch_services(&mut self, changes: &mut Changes) {
        if self.config.service != ServiceUse::Watch {
            return self.cease_to_watch(changes);
        }
        let now = self.clock.now().awake;
        for key in &changes.updated {
            let is_due = |(task, until): &(tokio::task::AbortHandle, Time)| task.is_finished() && *until <= now;
            if !self.tasks.watches.get(&key.source).is_none_or(is_due) {
                continue;
            }
            let Some(service) = self.service_of(key) else { continue };
            let (sender, source) = (self.tasks.sender(), key.source);
            let task = tokio::spawn(async move {
                let tell = |says| drop(sender.send(TaskMessage::ServiceSays(source, says))); // fails only at the end
                if let Err(failure) = service.watch(tell).await {
                    tracing::info!("a service is no longer listened to: {failure}");
                }
            });
            self.tasks.watches.insert(source, (task.abort_handle(), now + AGAIN_AFTER));
        }
    }

    /// Closes all connections, and forgets what was said over them: nobody would say when it is over.
    fn cease_to_watch(&mut self, changes: &mut Changes) {
        for (source, (task, _)) in std::mem::take(&mut self.tasks.watches) {
            task.abort();
            for key in self.fleet.keys().filter(|key| key.source == source).collect::<Vec<_>>() {
                if let Some(session) = self.fleet.session(&key) {
                    session.vitals.answer = None;
                }
                self.judge(&key, changes);
            }
        }
    }

    /// Applies what a service says of one of its sessions.
    pub(super) fn service_says(&mut self, source: SourceId, says: &ServiceSays, changes: &mut Changes) {
        if self.config.service != ServiceUse::Watch {
            return; // it was said before the settings changed
        }
        let key = Key::new(source, &*says.id);
        if self.fleet.get(&key).is_none() {
            return; // a sub-agent, or not a session
        }
        // What it says is later than what its log has.
        self.read_session_now(&key, changes);
        if let Some(session) = self.fleet.session(&key)
            && let Some(progress) = session.observed.facts.progress
        {
            let (active, requests) = (says.active, says.requests);
            session.vitals.answer = Some(Answer { progress: progress.wall, active, requests });
        }
        self.judge(&key, changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::source::Source;
    use crate::config::Config;
    use crate::engine::last_seen::Seen;
    use serde_json::json;
    use std::fs;

    /// Case 359: what a service said before the settings changed does not stand until the session's next event.
    #[tokio::test]
    async fn case_359_what_a_service_said_is_forgotten_as_soon_as_the_settings_no_longer_ask_for_it() {
        let scratch = tempfile::tempdir().unwrap();
        let (source, id) = (Source::at(scratch.path()), "36535f61-5c7b-4f09-a70b-2f8aed972801");
        fs::create_dir_all(source.path(id)).unwrap();
        let config = Config { service: ServiceUse::Watch, ..Config::default() };
        let mut engine = Engine::new(std::slice::from_ref(&source), config, Seen::default());
        let now = engine.clock.now().wall;
        let event =
            json!({"id": "a", "type": "user.message", "timestamp": now, "parentId": null, "data": {"content": "x"}});
        fs::write(source.log(id), format!("{event}\n")).unwrap();
        let mut changes = Changes::default();
        engine.check_homes();
        engine.rescan_now(&mut changes);
        let (key, says) = (Key::new(SourceId::default(), id), ServiceSays { id: id.into(), active: true, requests: 1 });
        let waits = tokio::spawn(std::future::pending::<()>());
        engine.tasks.watches.insert(key.source, (waits.abort_handle(), Time(i64::MAX)));
        engine.service_says(key.source, &says, &mut changes);
        let asks =
            |engine: &Engine| engine.fleet.get(&key).unwrap().row.because.to_string().contains("permission request");
        assert!(asks(&engine));
        engine.config.service = ServiceUse::Off;
        let mut changes = Changes::default();
        engine.watch_services(&mut changes);
        assert!(!asks(&engine) && changes.updated == [key.clone()], "{:?}", changes.updated);
        assert!(waits.await.unwrap_err().is_cancelled(), "the connection is closed");
        engine.service_says(key.source, &says, &mut changes);
        assert!(!asks(&engine), "it was said before");
    }
}
