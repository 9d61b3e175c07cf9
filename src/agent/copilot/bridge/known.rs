//! What a bridge has told of its session: what it asks its user, which requests are open, and whether we may answer them.

use super::TRIED;
use super::files::hash;
use super::wire::{Consent, Event, Hello, Pending, Told};
use crate::agent::copilot::server::asking::Questions;
use crate::agent::copilot::server::request::Request;
use crate::core::action;
use crate::core::text::plain;

/// So many open requests of a session are kept; the real ones have a few.
const OPEN_MAX: usize = 64;
/// A release's name is at most so long, in characters.
const RELEASE_MAX: usize = 20;

/// What is known over a bridge.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    /// What the session asks its user.
    pub(crate) questions: Questions,
    /// The permission requests that are open.
    open: Vec<Pending>,
    /// The release of Copilot that it runs in.
    pub release: Option<Box<str>>,
    /// It is another version of the extension than ours: of before an update, for as long as its session runs.
    pub is_other: bool,
    /// What was open before it came has been told.
    pub has_told: bool,
    elevated: bool,
    asking: bool,
    declined: bool,
}

impl Known {
    /// Of a bridge that has just come.
    pub(crate) fn new(hello: &Hello) -> Self {
        Self {
            questions: Questions::default(),
            open: Vec::new(),
            release: hello.cli.as_deref().map(|cli| plain(cli, RELEASE_MAX)),
            is_other: *hello.hash != *hash(),
            has_told: false,
            elevated: hello.elevated,
            asking: hello.consenting,
            declined: hello.refused,
        }
    }

    /// What it may do; `untried`: also in releases that it was not tried with.
    pub(crate) fn bridge(&self, untried: bool) -> action::Bridge {
        let tried = untried || self.release.as_deref().is_some_and(|release| TRIED.contains(&release));
        match (tried, self.elevated, self.asking, self.declined) {
            (false, ..) => action::Bridge::Watches,
            (_, true, ..) => action::Bridge::Elevated,
            (_, _, true, _) => action::Bridge::Asking,
            (_, _, _, true) => action::Bridge::Declined,
            _ => action::Bridge::Joined,
        }
    }

    /// Takes what it tells. Whether it changed anything.
    pub(crate) fn hear(&mut self, told: Told) -> bool {
        match told {
            Told::Event(event) => return self.hear_event(event),
            Told::Pending { items } => {
                self.open = items.into_iter().take(OPEN_MAX).collect();
                self.has_told = true;
            }
            Told::Consent(Consent { open, elevated, refused, .. }) => {
                self.asking = open;
                // Copilot may say no where it was taken to have said yes.
                self.elevated = elevated;
                self.declined = refused;
            }
            Told::Proof { .. } | Told::Result(_) | Told::Unknown => return false,
        }
        true
    }

    fn hear_event(&mut self, event: Event) -> bool {
        let before = self.open.len();
        let is_new = self.hear_request(&event);
        self.questions.hear(&event.into()) || is_new || self.open.len() != before
    }

    /// Whether it is of a request that is open from now on.
    fn hear_request(&mut self, event: &Event) -> bool {
        let id = event.data["requestId"].as_str();
        match (&*event.kind, id) {
            ("permission.requested", Some(id)) => {
                // Answered already, by the user's own rules.
                let is_settled = event.data["resolvedByHook"] == true;
                let request = event.data["promptRequest"].clone();
                let Some(mark) = event.mark.clone().filter(|_| !is_settled && self.open.len() < OPEN_MAX) else {
                    return false;
                };
                self.open.retain(|open| *open.request_id != *id);
                self.open.push(Pending { request_id: id.into(), request, mark });
                return true;
            }
            ("permission.completed", Some(id)) => self.open.retain(|open| *open.request_id != *id),
            ("abort" | "session.idle" | "session.error" | "session.shutdown", _) if event.agent_id.is_none() => {
                self.open.clear();
            }
            _ => {}
        }
        false
    }

    /// Copilot asks its user whether we may answer.
    pub(crate) const fn is_asking(&self) -> bool {
        self.asking
    }

    /// The open requests, as they are shown.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.open.iter().filter_map(Request::of).collect()
    }

    /// The open request of this id.
    pub(crate) fn open(&self, request: &str) -> Option<&Pending> {
        self.open.iter().find(|open| *open.request_id == *request)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub(in super::super) fn told(value: Value) -> Told {
        serde_json::from_value(value).unwrap()
    }

    pub(in super::super) fn of(cli: &str) -> Known {
        let hello = json!({"v": 1, "session": "s", "pid": 2, "ppid": 1, "cli": cli, "elevated": false, "nonce": "n"});
        Known::new(&serde_json::from_value(hello).unwrap())
    }

    pub(in super::super) fn asked(id: &str, command: &str) -> Value {
        let request = json!({"kind": "commands", "fullCommandText": command, "toolCallId": "call"});
        json!({"t": "event", "type": "permission.requested", "mark": format!("mark of {id}"),
            "data": {"requestId": id, "promptRequest": request}})
    }

    #[test]
    fn requests_are_open_until_they_are_answered_or_the_turn_ends() {
        let mut known = of("1.0.102");
        assert!(known.hear(told(asked("a", "ls"))) && known.hear(told(asked("b", "rm x"))));
        let texts = |known: &Known| known.requests().into_iter().map(|request| request.text).collect::<Vec<_>>();
        assert_eq!(texts(&known), ["ls", "rm x"]);
        known.hear(told(asked("a", "ls -l")));
        assert_eq!(texts(&known), ["rm x", "ls -l"], "the last word on a request counts");
        known.hear(told(json!({"t": "event", "type": "permission.completed", "data": {"requestId": "b"}})));
        assert_eq!(texts(&known), ["ls -l"]);
        known.hear(told(json!({"t": "event", "type": "abort", "agentId": "helper", "data": {}})));
        assert_eq!(texts(&known), ["ls -l"], "a sub-agent's end is not the turn's");
        known.hear(told(json!({"t": "event", "type": "session.idle", "data": {}})));
        assert!(texts(&known).is_empty());
        let mut hooked = asked("c", "ls");
        hooked["data"]["resolvedByHook"] = true.into();
        assert!(!known.hear(told(hooked)), "nobody waits for it");
        for n in 0..1000 {
            known.hear(told(asked(&n.to_string(), "ls")));
        }
        assert_eq!(known.requests().len(), OPEN_MAX);
    }

    #[test]
    fn what_the_bridge_may_do_follows_from_the_release_and_the_users_word() {
        use action::Bridge::{Asking, Declined, Elevated, Joined, Watches};
        assert_eq!((of("1.2.3").bridge(false), of("").bridge(false)), (Watches, Watches));
        assert_eq!((of("1.2.3").bridge(true), of("1.2.3").release.as_deref()), (Joined, Some("1.2.3")));
        let consent = |open, elevated, refused| {
            told(json!({"t": "consent", "open": open, "elevated": elevated, "refused": refused}))
        };
        let mut known = of("1.0.102");
        assert_eq!(known.bridge(false), Joined);
        known.hear(consent(true, false, false));
        assert_eq!(known.bridge(false), Asking);
        let mut yes = known.clone();
        yes.hear(consent(false, true, false));
        known.hear(consent(false, false, true));
        assert_eq!((yes.bridge(false), known.bridge(false)), (Elevated, Declined));
        yes.hear(consent(false, false, false));
        assert_eq!(yes.bridge(false), Joined, "Copilot said no to an answer");
    }
}
