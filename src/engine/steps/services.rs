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
    pub(in crate::engine) fn watch_services(&mut self, changes: &Changes) {
        if self.config.service != ServiceUse::Watch {
            return self.tasks.watches.drain().for_each(|(_, (task, _))| task.abort());
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

    /// Applies what a service says of one of its sessions.
    pub(super) fn service_says(&mut self, source: SourceId, says: &ServiceSays, changes: &mut Changes) {
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
            session.live.answer = Some(Answer { progress: progress.wall, active, requests });
        }
        self.judge(&key, changes);
    }
}
