//! Sessions that were resumed a moment ago: nobody is offered to resume them again before their new owner shows.

use super::acting::Task;
use super::{Engine, Key};
use crate::agent::copilot::store::owner_now;
use crate::core::action::Action;
use crate::core::fleet::Session;
use crate::core::time::{Moment, Span, Time};
use crate::engine::ledger::{Ledger, Page, Section};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// For so long a resume of ours keeps others from resuming the session, where its new owner is not seen before.
const HOLDS: Span = Span::seconds(60);

/// That a session was resumed, on its page: Copilot shows nothing of that for the first half second, and a terminal may take
/// long to open. Removed when the new owner is seen, and when it failed.
#[derive(Serialize, Deserialize)]
pub(super) struct Resumed {
    /// When, by the wall clock, in milliseconds since 1970.
    pub(super) at: i64,
}

impl Section for Resumed {
    const NAME: &'static str = "resumed";
}

impl Resumed {
    /// How long ago that was; `None` where it says nothing any more: it is too old, or from the future, as after a clock that
    /// was set back.
    fn age(&self, now: Time) -> Option<Span> {
        let age = now.0.checked_sub(self.at).map(Span)?;
        (Span::ZERO..HOLDS).contains(&age).then(|| Span(age.0 - age.0 % 1000))
    }
}

/// A session that was resumed lately.
pub(crate) struct Lately {
    /// Its id.
    pub id: Box<str>,
    /// The key of its page.
    pub page: Box<str>,
    /// When, by the wall clock.
    pub at: Time,
}

/// The sessions that were resumed by us, and whose new owner is still to be seen.
pub(crate) fn resumed_lately(ledger: &Ledger, now: Time) -> Vec<Lately> {
    let pages = ledger.lately::<Resumed>(now - HOLDS).into_iter();
    let holds = pages.filter(|(_, _, resumed)| resumed.age(now).is_some());
    holds.map(|(page, id, resumed)| Lately { id, page, at: Time(resumed.at) }).collect()
}

/// What is known of them.
#[derive(Default)]
pub(super) struct Resumes {
    /// Those that we, or others of our processes, resumed lately.
    lately: Vec<Lately>,
    /// When, by the awake clock, the first of them no longer counts.
    until: Option<Time>,
    /// Those that we resumed, and whose new owner is still to be seen.
    awaited: HashSet<Key>,
}

impl Resumes {
    fn take(&mut self, lately: Vec<Lately>, now: Moment) {
        self.until = lately.iter().map(|resumed| now.awake + (HOLDS - (now.wall - resumed.at))).min();
        self.lately = lately;
    }

    /// When the first of them no longer counts, by the awake clock.
    pub(super) const fn until(&self) -> Option<Time> {
        self.until
    }

    /// When the session of this id and page was resumed, if that was lately.
    fn at(&self, id: &str, page: impl FnOnce() -> Page) -> Option<Time> {
        let mut named = self.lately.iter().filter(|resumed| *resumed.id == *id).peekable();
        named.peek()?;
        let page = page();
        named.find(|resumed| *resumed.page == *page.key()).map(|resumed| resumed.at)
    }
}

/// Whether an action gives a session a new owner, if it has none.
pub(super) const fn makes_an_owner(action: Action) -> bool {
    matches!(action, Action::Resume | Action::Reconnect | Action::Resend | Action::Continue)
}

impl Engine {
    /// Takes over from the pages which sessions were resumed lately, and are still to show their new owner: nobody is offered to
    /// resume them again.
    pub(super) fn note_resumed(&mut self) {
        let now = self.clock.now();
        self.resumes.take(resumed_lately(&self.ledger, now.wall), now);
        for key in self.fleet.keys().collect::<Vec<_>>() {
            let at = self.resumed_at(&key);
            if let Some(folder) = self.fleet.folder(&key)
                && std::mem::replace(&mut folder.session.control.resumed, at) != at
            {
                self.agenda.urgent(key);
            }
        }
    }

    /// When a session was resumed, if that was lately.
    pub(super) fn resumed_at(&self, key: &Key) -> Option<Time> {
        self.resumes.at(&key.1, || self.page(key))
    }

    /// Why a session is not resumed now, though nobody has it open: it was resumed a moment ago, or a Copilot that has just
    /// started may be about to open it, and does not say yet what it will.
    pub(super) fn is_being_opened(&self, key: &Key, action: Action, session: &Session) -> Option<String> {
        if !makes_an_owner(action) || session.runner().live().is_some() {
            return None;
        }
        if let Some(opener) = self.processes.opener(&self.homes, key) {
            return Some(format!(
                "process {} has just started and may be about to open it, which shows in a few seconds: try again then",
                opener.pid
            ));
        }
        let age = self.page(key).read::<Resumed>()?.age(self.clock.now().wall)?;
        Some(format!(
            "it was resumed {age} ago, and its new process does not show yet: if no terminal opened, try again in {}",
            HOLDS - age
        ))
    }

    /// A task that resumed a session is over: others wait for the new owner only where it is still to come.
    pub(super) fn resumed(&mut self, task: Task, key: &Key, done: bool) {
        if !self.acting.resumes(task) {
            return;
        }
        self.look_at_processes();
        let root = self.homes.root(key.0);
        let seen = self.processes.opener(&self.homes, key).is_some()
            || owner_now(root, &key.1, &self.config.owners.names, self.clock.now().wall).live().is_some();
        if !done || seen {
            self.acting.is_settled(task);
        } else {
            self.resumes.awaited.insert(key.clone());
        }
        self.note_resumed();
    }

    /// New owners that came late: nobody need wait for them any more.
    pub(super) fn greet_new_owners(&mut self) {
        let came = |key: &&Key| self.processes.opener(&self.homes, key).is_some();
        let came: Vec<Key> = self.resumes.awaited.iter().filter(came).cloned().collect();
        for key in came {
            self.resumes.awaited.remove(&key);
            // Whoever has the lock now looks at the owner itself.
            if let Ok(hold) = self.page(&key).try_lock("resume")
                && let Err(error) = hold.remove::<Resumed>()
            {
                tracing::warn!("that a session was resumed cannot be taken back for other processes: {error:#}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_117_a_record_holds_for_a_minute_and_never_for_ever() {
        let resumed = Resumed { at: 1_000_000 };
        for (now, age) in [(1_000_000, Some(0)), (1_002_900, Some(2)), (1_059_999, Some(59)), (1_060_000, None)] {
            assert_eq!(resumed.age(Time(now)), age.map(Span::seconds), "{now}");
        }
        assert_eq!(resumed.age(Time(999_999)), None, "from the future");
        for at in [i64::MIN, i64::MAX] {
            assert_eq!(Resumed { at }.age(Time(5)), None);
        }
    }
}
