//! Where a session's own server listens: looked for when it matters, and not at every look.

use super::{Engine, Key};
use crate::agent::copilot::server::servers::{Endpoint, endpoints};
use crate::core::action::ServerState;
use crate::core::owner::Owner;
use crate::core::time::{Moment, Span, Time};
use crate::system::paths;
use crate::system::process;
use std::collections::HashMap;

/// For so long after the first request that nobody can be reached for, the server is looked for with each event of the session.
const SERVER_LATE: Span = Span::seconds(10);
/// And then no more often than this.
const SERVER_AGAIN: Span = Span::seconds(2);

/// A session that waits for an answer, and whose server was looked for in vain; times are of the awake clock.
struct Sought {
    first: Time,
    last: Time,
    /// Something happened since, and it was not looked again.
    put_off: bool,
}

impl Sought {
    /// When it is looked for again.
    fn again_at(&self) -> Option<Time> {
        self.put_off.then(|| self.last + SERVER_AGAIN)
    }

    /// Whether it is looked for again now; said once.
    fn again(&mut self, now: Time) -> bool {
        let is_due = self.again_at().is_some_and(|at| at <= now);
        self.put_off &= !is_due;
        is_due
    }
}

/// The sessions that wait for an answer, and whose server was looked for in vain.
#[derive(Default)]
pub(super) struct SoughtServers(HashMap<Key, Sought>);

impl SoughtServers {
    /// When one of them is looked for again though nothing happened.
    pub(super) fn again_at(&self) -> Option<Time> {
        self.0.values().filter_map(Sought::again_at).min()
    }

    /// The sessions whose server is looked for again now; each said once.
    pub(super) fn due(&mut self, now: Time) -> Vec<Key> {
        self.0.iter_mut().filter_map(|(key, sought)| sought.again(now).then(|| key.clone())).collect()
    }

    /// Whether it is to be looked for the server of a session now: a look takes longer than all else that an event asks for,
    /// and one that was not there for a while seldom comes.
    fn is_due(&mut self, key: &Key, now: Time) -> bool {
        let (first, last) = (now, now - SERVER_AGAIN);
        let sought = self.0.entry(key.clone()).or_insert(Sought { first, last, put_off: false });
        let is_due = now - sought.first < SERVER_LATE || now - sought.last >= SERVER_AGAIN;
        sought.put_off = !is_due;
        if is_due {
            sought.last = now;
        }
        is_due
    }

    /// A session is gone, or nobody runs it.
    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

impl Engine {
    /// Looks for the server of a new owner, and once more where there was none and a request waits.
    pub(super) fn look_at_server(&mut self, key: &Key, now: Moment) {
        let Some(folder) = self.fleet.folder(key) else { return };
        let session = &mut folder.session;
        let alive = session.owner.live().is_some();
        if !alive {
            self.sought.forget(key);
        }
        // One that cannot be read for once is not gone, and to leave it may end its session.
        let gone = matches!(session.owner, Owner::Gone { .. } | Owner::Never);
        // What the server said of its work was said before what is in the log now.
        let said = self.acting.said_at(key);
        if session.facts.progress.is_some_and(|progress| said.is_some_and(|said| progress.awake > said)) {
            session.live.has_active_work = session.live.has_active_work.filter(|active| *active);
        }
        let waits = alive && session.control.server == ServerState::Nowhere && !session.facts.requests.is_empty();
        let due = match session.control.server {
            ServerState::Unknown => alive,
            ServerState::Nowhere => {
                !alive || waits && self.sought.is_due(key, now.awake) || self.rescan_at <= now.awake
            }
            ServerState::Listens | ServerState::Refused(_) => !alive,
            ServerState::Attached => gone,
            ServerState::Hosted(_) => false,
        };
        if due {
            if gone {
                self.acting.let_go(key);
            }
            self.reach(key);
        }
    }

    /// Where the server of a session's owner can be reached.
    pub(super) fn endpoints_of(&self, key: &Key) -> Vec<Endpoint> {
        let Some(session) = self.fleet.get(key).map(super::Entry::session) else { return Vec::new() };
        let mut endpoints = session.owner.live().map(|pid| self.endpoints_at(pid)).unwrap_or_default();
        if !session.may_be_trusted() {
            endpoints.iter_mut().for_each(|endpoint| endpoint.token = None);
        }
        endpoints
    }

    /// The same, of an owner that the system tells the addresses of: none that is merely likely.
    pub(super) fn verified_endpoints_of(&self, owner: u32, key: &Key) -> Vec<Endpoint> {
        if process::listening(owner).is_ok() { self.endpoints_of(key) } else { Vec::new() }
    }

    fn endpoints_at(&self, pid: u32) -> Vec<Endpoint> {
        let homes: Vec<_> = self.homes.roots().iter().filter_map(|root| root.parent().map(Into::into)).collect();
        endpoints(pid, &homes, &self.config.servers, paths::user_home().as_deref())
    }

    /// Finds out whether the server of a session's owner can be reached, without connecting to it.
    pub(super) fn reach(&mut self, key: &Key) {
        let attached = self.acting.attached(key);
        let Some(folder) = self.fleet.folder(key) else { return };
        let known = &folder.session.control.server;
        let server = match (attached, &folder.session.owner) {
            (Some(server), _) => server,
            (None, owner) if let Some(pid) = owner.live() => {
                match known {
                    // A server that listens goes on listening; what refused us is asked again when the user asks for it.
                    ServerState::Listens | ServerState::Refused(_) => return,
                    ServerState::Unknown | ServerState::Nowhere | ServerState::Attached | ServerState::Hosted(_) => {
                        let listens = !self.endpoints_at(pid).is_empty() || self.holder_of(key).is_some();
                        if listens { ServerState::Listens } else { ServerState::Nowhere }
                    }
                }
            }
            (None, _) => ServerState::Unknown,
        };
        if let Some(folder) = self.fleet.folder(key) {
            folder.session.control.server = server;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_looked_for_with_each_event_for_ten_seconds_and_then_every_two() {
        let (mut sought, key, start) = (SoughtServers::default(), (0, "one".into()), Time(1_000_000));
        for millis in [0, 1, 9_999] {
            assert!(sought.is_due(&key, start + Span(millis)), "{millis}");
        }
        assert!(!sought.is_due(&key, start + Span(10_500)));
        assert_eq!(sought.again_at(), Some(start + Span(11_999)), "what was put off is not forgotten");
        assert!(sought.due(start + Span(11_998)).is_empty());
        assert_eq!(sought.due(start + Span(11_999)), std::slice::from_ref(&key));
        assert!(sought.due(start + Span(11_999)).is_empty() && sought.again_at().is_none(), "it is said once");
        assert!(sought.is_due(&key, start + Span(12_000)));
        sought.forget(&key);
        assert!(sought.is_due(&key, start + Span(12_001)), "another owner's server is another one");
    }
}
