//! A session's state as reported by its bridge: its questions to the user, its open permission requests, and whether we
//! may answer them.

use super::TESTED_RELEASES;
use super::files::hash;
use super::wire::{Consent, Event, Hello, Message, Pending};
use crate::channel::request::Request;
use crate::copilot::server::questions::Questions;
use pilotlight_core::action;
use pilotlight_core::text::plain;

/// The most open requests kept of a session; real ones have a few.
const OPEN_MAX: usize = 64;
/// The longest name of a release, in characters.
const RELEASE_MAX: usize = 20;

/// The state of a session as reported over its bridge.
#[derive(Clone, Debug, PartialEq)]
pub struct BridgeState {
    /// The session's open questions to its user.
    pub questions: Questions,
    /// The open permission requests.
    open: Vec<Pending>,
    /// The release of Copilot that the session runs in.
    pub release: Option<Box<str>>,
    /// Whether the extension is of another version than ours. After an update, an old one runs as long as its session.
    pub is_other: bool,
    /// Whether the requests that were open before the bridge connected have been received.
    pub pending_received: bool,
    /// Whether everything is approved without asking. `None`: it has not told yet, or the release does not tell.
    pub approves_all: Option<bool>,
    elevated: bool,
    asking: bool,
    declined: bool,
}

impl BridgeState {
    /// The state of a bridge that has just joined.
    pub(crate) fn new(hello: &Hello) -> Self {
        Self {
            questions: Questions::default(),
            open: Vec::new(),
            release: hello.cli.as_deref().map(|cli| plain(cli, RELEASE_MAX)),
            is_other: *hello.hash != *hash(),
            pending_received: false,
            approves_all: None,
            elevated: hello.elevated,
            asking: hello.consenting,
            declined: hello.refused,
        }
    }

    /// What the bridge may do. `untried` allows releases that it was not tested with.
    pub fn bridge(&self, untried: bool) -> action::Bridge {
        let tried = untried || self.release.as_deref().is_some_and(|release| TESTED_RELEASES.contains(&release));
        match (tried, self.elevated, self.asking, self.declined) {
            (false, ..) => action::Bridge::Watches,
            (_, true, ..) => action::Bridge::Elevated,
            (_, _, true, _) => action::Bridge::Asking,
            (_, _, _, true) => action::Bridge::Declined,
            _ => action::Bridge::Joined,
        }
    }

    /// Applies a message. Returns whether anything changed.
    pub(crate) fn hear(&mut self, message: Message) -> bool {
        match message {
            Message::Event(event) => return self.hear_event(event),
            Message::Pending { items } => {
                self.open = items.into_iter().take(OPEN_MAX).collect();
                self.pending_received = true;
            }
            Message::Consent(Consent { open, elevated, refused, .. }) => {
                self.asking = open;
                // Copilot may turn out to have refused a right that was believed to be granted.
                self.elevated = elevated;
                self.declined = refused;
            }
            Message::Mode { all } => return self.approves_all.replace(all) != Some(all),
            Message::Proof { .. } | Message::Ask { .. } | Message::Result(_) | Message::Unknown => return false,
        }
        true
    }

    fn hear_event(&mut self, event: Event) -> bool {
        let before = self.open.len();
        let is_new = self.hear_request(&event);
        self.questions.apply(&event.into()) || is_new || self.open.len() != before
    }

    /// Updates the open requests. Returns whether the event opened one.
    fn hear_request(&mut self, event: &Event) -> bool {
        let id = event.data["requestId"].as_str();
        match (&*event.kind, id) {
            ("permission.requested", Some(id)) => {
                // The user's own hook has answered it already.
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

    /// Whether Copilot is asking its user for consent to our answering.
    pub(crate) const fn is_asking(&self) -> bool {
        self.asking
    }

    /// The open requests in the form in which they are shown.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.open.iter().filter_map(Pending::request).collect()
    }

    /// The open request with this id.
    pub(crate) fn open(&self, request: &str) -> Option<&Pending> {
        self.open.iter().find(|open| *open.request_id == *request)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub(in super::super) fn message(value: Value) -> Message {
        serde_json::from_value(value).unwrap()
    }

    pub(in super::super) fn joined(cli: &str) -> BridgeState {
        let hello = json!({"v": 1, "session": "s", "pid": 2, "ppid": 1, "cli": cli, "elevated": false, "nonce": "n"});
        BridgeState::new(&serde_json::from_value(hello).unwrap())
    }

    pub(in super::super) fn requested(id: &str, command: &str) -> Value {
        let request = json!({"kind": "commands", "fullCommandText": command, "toolCallId": "call"});
        json!({"t": "event", "type": "permission.requested", "mark": format!("mark of {id}"),
            "data": {"requestId": id, "promptRequest": request}})
    }

    #[test]
    fn requests_are_open_until_they_are_answered_or_the_turn_ends() {
        let mut known = joined("1.0.102");
        assert!(known.hear(message(requested("a", "ls"))) && known.hear(message(requested("b", "rm x"))));
        let texts = |known: &BridgeState| known.requests().into_iter().map(|request| request.text).collect::<Vec<_>>();
        assert_eq!(texts(&known), ["ls", "rm x"]);
        known.hear(message(requested("a", "ls -l")));
        assert_eq!(texts(&known), ["rm x", "ls -l"], "the last report of a request counts");
        known.hear(message(json!({"t": "event", "type": "permission.completed", "data": {"requestId": "b"}})));
        assert_eq!(texts(&known), ["ls -l"]);
        known.hear(message(json!({"t": "event", "type": "abort", "agentId": "helper", "data": {}})));
        assert_eq!(texts(&known), ["ls -l"], "a sub-agent's end is not the turn's");
        known.hear(message(json!({"t": "event", "type": "session.idle", "data": {}})));
        assert!(texts(&known).is_empty());
        let mut hook_report = requested("c", "ls");
        hook_report["data"]["resolvedByHook"] = true.into();
        assert!(!known.hear(message(hook_report)), "a hook answered it");
        for n in 0..1000 {
            known.hear(message(requested(&n.to_string(), "ls")));
        }
        assert_eq!(known.requests().len(), OPEN_MAX);
    }

    #[test]
    fn the_bridges_rights_depend_on_the_release_and_the_users_consent() {
        use action::Bridge::{Asking, Declined, Elevated, Joined, Watches};
        assert_eq!((joined("1.2.3").bridge(false), joined("").bridge(false)), (Watches, Watches));
        assert_eq!((joined("1.2.3").bridge(true), joined("1.2.3").release.as_deref()), (Joined, Some("1.2.3")));
        let consent = |open, elevated, refused| {
            message(json!({"t": "consent", "open": open, "elevated": elevated, "refused": refused}))
        };
        let mut known = joined("1.0.102");
        assert_eq!(known.bridge(false), Joined);
        known.hear(consent(true, false, false));
        assert_eq!(known.bridge(false), Asking);
        let mut yes = known.clone();
        yes.hear(consent(false, true, false));
        known.hear(consent(false, false, true));
        assert_eq!((yes.bridge(false), known.bridge(false)), (Elevated, Declined));
        yes.hear(consent(false, false, false));
        assert_eq!(yes.bridge(false), Joined, "Copilot refused an answer");
    }
}
