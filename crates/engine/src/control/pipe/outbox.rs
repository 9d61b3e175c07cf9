//! What is still to be told over a pipe: of each session only the latest.

use super::lines::FromHost;
use pilotlight_core::remote::SessionReport;
use pilotlight_core::session::Key;
use pilotlight_core::time::Time;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What is still to be told. The engine puts it in, and whoever serves the pipe takes it out.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Whether it is told how last messages begin.
    messages: bool,
    unsent: Mutex<Unsent>,
    has_changed: Notify,
}

#[derive(Debug, Default)]
struct Unsent {
    /// `None`: the session is gone.
    sessions: BTreeMap<Key, Option<Box<SessionReport>>>,
    heard: BTreeMap<Key, Time>,
    is_ready: bool,
}

impl Outbox {
    pub(super) fn new(messages: bool) -> Self {
        Self { messages, ..Self::default() }
    }

    fn unsent(&self) -> MutexGuard<'_, Unsent> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of a session, new or changed.
    pub(crate) fn put(&self, key: &Key, report: SessionReport) {
        let report = if self.messages { report } else { report.without_message() };
        self.unsent().sessions.insert(key.clone(), Some(Box::new(report)));
        self.has_changed.notify_one();
    }

    /// Tells that a session is gone.
    pub(crate) fn remove(&self, key: &Key) {
        self.unsent().sessions.insert(key.clone(), None);
        self.has_changed.notify_one();
    }

    /// Tells when something was last heard of a session.
    pub(crate) fn hear(&self, key: &Key, at: Time) {
        self.unsent().heard.insert(key.clone(), at);
        self.has_changed.notify_one();
    }

    /// Tells that every session was told.
    pub(crate) fn mark_complete(&self) {
        self.unsent().is_ready = true;
        self.has_changed.notify_one();
    }

    /// Waits until there is something to tell.
    pub(crate) async fn changed(&self) {
        self.has_changed.notified().await;
    }

    /// Takes all that is to be told.
    pub(super) fn take(&self) -> Vec<FromHost> {
        let Unsent { sessions, heard, is_ready } = std::mem::take(&mut *self.unsent());
        let heard: Vec<_> = heard.into_iter().map(|(key, at)| ((*key.id).into(), at)).collect();
        // What is gone comes first: another home may have a session of the same id.
        let (here, gone): (Vec<_>, Vec<_>) = sessions.into_iter().partition(|(_, report)| report.is_some());
        let gone = gone.into_iter().map(|(key, _)| FromHost::Gone((*key.id).into()));
        let here = here.into_iter().filter_map(|(_, report)| report).map(FromHost::Session);
        let heard = (!heard.is_empty()).then_some(FromHost::Heard(heard));
        gone.chain(here).chain(heard).chain(is_ready.then_some(FromHost::Ready)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::fleet::Session;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::session::HomeId;
    use pilotlight_core::time::Moment;

    fn report(id: &str, branch: &str) -> SessionReport {
        let mut session = Session { id: id.into(), ..Session::default() };
        session.observed.about.branch = Some(branch.into());
        let row = session.row(Moment::default(), &Limits::default()).0;
        SessionReport::of(&session, &row, (&row.name, &row.label), Moment::default())
    }

    /// A reader that does not read costs the latest of each session, however often that changes.
    #[test]
    fn case_400_a_pipe_that_is_not_read_holds_the_latest_of_each_session() {
        let outbox = Outbox::default();
        let key = |id: &str| Key::new(HomeId(0), id);
        for n in 0..10_000 {
            outbox.put(&key("a"), report("a", &n.to_string()));
            outbox.hear(&key("a"), Time(n));
        }
        outbox.put(&key("b"), report("b", "main"));
        outbox.remove(&key("b"));
        outbox.mark_complete();
        let told: Vec<_> = outbox.take().iter().map(|message| serde_json::to_string(message).unwrap()).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        assert_eq!(told[0], r#"{"gone":"b"}"#);
        assert!(told[1].contains(r#""branch":"9999""#), "{}", told[1]);
        assert_eq!((&*told[2], &*told[3]), (r#"{"heard":[["a","1970-01-01T00:00:09.999Z"]]}"#, r#""ready""#));
        assert!(outbox.take().is_empty());
    }
}
