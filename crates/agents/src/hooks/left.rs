//! What was left to its terminal, although its hook called: why, until its session goes on.

use super::carry::OpenHook;
use pilotlight_core::session::LetGo;
use pilotlight_core::time::Time;
use pilotlight_system::log::{self, private};
use std::collections::BTreeMap;

/// The most sessions of which that is kept, the latest.
const MOST: usize = 64;

/// Why hooks were let go, by the sessions that they asked for.
#[derive(Debug, Default)]
pub(crate) struct Left(BTreeMap<Box<str>, Reason>);

#[derive(Clone, Copy, Debug)]
struct Reason {
    why: LetGo,
    /// The process that started the hook.
    owner: u32,
    /// When, by the wall clock.
    at: Time,
}

impl Left {
    /// A hook that this process started for a session was let go.
    pub(crate) fn note(&mut self, session: &str, owner: u32, why: LetGo, at: Time) {
        self.0.insert(session.into(), Reason { why, owner, at });
        if self.0.len() > MOST {
            let oldest = self.0.iter().min_by_key(|(_, reason)| reason.at).map(|(session, _)| session.clone());
            oldest.map(|oldest| self.0.remove(&oldest));
        }
    }

    /// The hook that was opened, if it was. Else it was let go.
    pub(crate) fn note_unless_opened<A>(
        &mut self,
        session: &str,
        owner: u32,
        at: Time,
        opened: Result<OpenHook<A>, LetGo>,
    ) -> Option<OpenHook<A>> {
        match opened {
            Ok(hook) => {
                log::info!(session = private(session), "a hook asks");
                Some(hook)
            }
            Err(why) => {
                log::warn!(session = private(session), "a hook was let go: there is no room for what it asks");
                self.note(session, owner, why, at);
                None
            }
        }
    }

    /// Forgets why a session's hook was let go. With `since`, only if that was before then: the session has continued since.
    pub(crate) fn forget(&mut self, session: &str, since: Option<Time>) {
        if self.0.get(session).is_some_and(|reason| since.is_none_or(|since| since > reason.at)) {
            self.0.remove(session);
        }
    }

    /// Why what a session asks, which this process runs, is left to its terminal.
    pub(crate) fn why(&self, session: &str, owner: u32) -> Option<LetGo> {
        self.0.get(session).filter(|reason| reason.owner == owner).map(|reason| reason.why)
    }

    /// When a hook of a session, which this process runs, was let go for this reason, if it was for none later.
    pub(crate) fn at(&self, session: &str, owner: u32, why: LetGo) -> Option<Time> {
        self.0.get(session).filter(|reason| reason.owner == owner && reason.why == why).map(|reason| reason.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_862_why_a_hook_was_let_go_is_kept_until_its_session_goes_on() {
        let mut left = Left::default();
        left.note("a", 7, LetGo::Full, Time(1000));
        assert_eq!((left.why("a", 7), left.why("a", 8), left.why("b", 7)), (Some(LetGo::Full), None, None));
        left.forget("a", Some(Time(900)));
        assert_eq!(left.why("a", 7), Some(LetGo::Full));
        left.forget("a", Some(Time(1100)));
        assert_eq!(left.why("a", 7), None);
        (0..500).for_each(|n| left.note(&n.to_string(), 7, LetGo::Full, Time(n)));
        assert_eq!((left.0.len(), left.why("499", 7)), (MOST, Some(LetGo::Full)));
    }
}
