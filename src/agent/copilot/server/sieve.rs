//! What of a frame is handed on to the SDK.
//!
//! The SDK makes a tree of every frame, which may take a hundred times the frame's bytes, and keeps events in queues for whoever
//! is slow. So a frame is judged by what its tree would take, and what nobody needs does not reach the SDK:
//!
//! - An **answer** is handed on whole. In place of one that is too large the call fails, and the connection goes on: to lose it
//!   may end the session.
//! - Of **events**, those that ask somebody something, or end that, are handed on whole, as long as they do not come in masses;
//!   of the others, that there was one.
//! - A **call** is handed on whole, or without what it carries; too many of them end the connection, as each wants an answer.
//! - **Anything else** that a server tells is for nobody here.

use super::envelope::Envelope;
use std::time::Duration;
use tokio::time::Instant;

/// The largest frame that is handed on, in bytes. Seen of Copilot 1.0.102: answers of 600 bytes but for the requests that are
/// open, each as long as its command; events of 48 KB.
pub(super) const LENGTH_MAX: usize = 1 << 20;
/// The largest tree that is handed on, by [`Weight`]: some 3 MB. Seen of Copilot 1.0.102: 550 units, and 270 a request.
const WEIGHT_MAX: u32 = 16 << 10;
/// From so much of its beginning a frame that is not handed on is told, in bytes.
pub(super) const HEAD: usize = 4 << 10;
/// What may be handed on of events and calls at once, in bytes of their trees; and how much of that comes back each second.
const BURST: u64 = 2 << 20;
const EACH_SECOND: u64 = 128 << 10;
/// What a frame takes beside its bytes, and for each unit of its weight, in bytes.
const FRAME_TAKES: u64 = 2 << 10;
const UNIT_TAKES: u64 = 40;
/// That there was an event is told at most so often.
const HAPPENED_EVERY: Duration = Duration::from_millis(50);
/// The code by which a call fails whose answer was too large: none of JSON-RPC's own, and none of Copilot's.
pub(super) const TOO_LARGE: i64 = -32_098;

/// What the tree of a JSON text takes, told without making it: an object as much as sixteen numbers, an array as much as four.
#[derive(Debug, Default)]
pub(super) struct Weight {
    units: u32,
    in_text: bool,
    escaped: bool,
}

impl Weight {
    /// Adds what comes next of the text.
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            if self.escaped {
                self.escaped = false;
                bytes = rest;
            } else if self.in_text {
                let Some(end) = memchr::memchr2(b'"', b'\\', bytes) else { return };
                self.in_text = bytes[end] != b'"';
                self.escaped = bytes[end] == b'\\';
                bytes = &bytes[end + 1..];
            } else {
                self.in_text = first == b'"';
                self.units = self.units.saturating_add(match first {
                    b'{' => 16,
                    b'[' => 4,
                    b',' => 1,
                    _ => 0,
                });
                bytes = rest;
            }
        }
    }

    /// Whether that is more than is handed on.
    pub(super) fn is_too_much(&self) -> bool {
        self.units > WEIGHT_MAX
    }
}

/// Decides, over the life of a connection.
#[derive(Debug)]
pub(super) struct Sieve {
    /// What may still be handed on, and since when that is so.
    left: u64,
    since: Instant,
    /// When it was last told that something happened, and in which session.
    happened: Option<(Instant, String)>,
}

/// The connection is to end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuch;

impl Sieve {
    pub(super) fn new(now: Instant) -> Self {
        Self { left: BURST, since: now, happened: None }
    }

    /// What is handed on of a frame that came now: `None` for nothing. `body` is all of it; or its beginning where it is larger than is handed
    /// on.
    pub(super) fn sift(
        &mut self,
        body: Vec<u8>,
        is_whole: bool,
        weight: &Weight,
        now: Instant,
    ) -> Result<Option<Vec<u8>>, TooMuch> {
        let mut envelope = Envelope::read(&body[..body.len().min(HEAD)]);
        // What most events are is told by their beginning.
        if is_whole && body.len() > HEAD && envelope.event.as_deref().is_none_or(asks) {
            envelope = Envelope::read(&body);
        }
        match (&envelope.method, envelope.id) {
            (Some(method), Some(id)) => {
                if !self.affords(body.len(), weight, now) {
                    return Err(TooMuch);
                }
                Ok(Some(if is_whole { body } else { bare_call(id, method) }))
            }
            (Some(method), None) if method == "session.event" => {
                if is_whole && envelope.event.as_deref().is_some_and(asks) && self.affords(body.len(), weight, now) {
                    return Ok(Some(body));
                }
                Ok(envelope.session.and_then(|session| self.happened(session, now)))
            }
            (Some(method), None) => Ok((is_whole && method == "$/cancelRequest").then_some(body)),
            // What is no message at all is for the SDK to say.
            (None, _) if is_whole => Ok(Some(body)),
            (None, Some(id)) => Ok(Some(too_large(id))),
            (None, None) => Err(TooMuch),
        }
    }

    /// Whether a frame may be handed on beside those before it.
    fn affords(&mut self, length: usize, weight: &Weight, now: Instant) -> bool {
        let passed = u64::try_from((now - self.since).as_millis()).unwrap_or(u64::MAX);
        let back = passed.saturating_mul(EACH_SECOND) / 1000;
        if back > 0 {
            self.left = self.left.saturating_add(back).min(BURST);
            self.since = now;
        }
        let takes = FRAME_TAKES + length as u64 + UNIT_TAKES * u64::from(weight.units);
        let left = self.left.checked_sub(takes);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// An event that says no more than that there was one.
    fn happened(&mut self, session: String, now: Instant) -> Option<Vec<u8>> {
        let is_new = |(at, of): &(Instant, String)| *of != session || now - *at >= HAPPENED_EVERY;
        self.happened.as_ref().is_none_or(is_new).then(|| {
            let event = serde_json::json!({
                "id": "", "type": "pilotlight.happened", "timestamp": "1970-01-01T00:00:00.000Z", "parentId": null, "data": {},
            });
            let params = serde_json::json!({"sessionId": session, "event": event});
            self.happened = Some((now, session));
            message(&serde_json::json!({"jsonrpc": "2.0", "method": "session.event", "params": params}))
        })
    }
}

/// Whether an event of this type asks somebody something, or ends that, as the end of a turn does.
fn asks(kind: &str) -> bool {
    ["permission.", "user_input.", "elicitation.", "exit_plan_mode."].iter().any(|asks| kind.starts_with(asks))
        || matches!(kind, "session.idle" | "abort" | "session.error" | "session.shutdown")
}

fn bare_call(id: u64, method: &str) -> Vec<u8> {
    message(&serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}))
}

fn too_large(id: u64) -> Vec<u8> {
    let error = serde_json::json!({"code": TOO_LARGE, "message": "the answer is larger than is read"});
    message(&serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn message(value: &serde_json::Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn weigh(text: &str, piece: usize) -> Weight {
        let mut weight = Weight::default();
        text.as_bytes().chunks(piece).for_each(|piece| weight.add(piece));
        weight
    }

    /// What comes of a frame that is larger than `length` if it is cut there, and comes at the moment when the sieve was made.
    fn sift(sieve: &mut Sieve, text: &str, most: usize) -> Result<Option<Value>, TooMuch> {
        let weight = weigh(text, 4096);
        let is_whole = text.len() <= most && !weight.is_too_much();
        let body = text.as_bytes()[..text.len().min(most)].to_vec();
        Ok(sieve.sift(body, is_whole, &weight, sieve.since)?.map(|body| serde_json::from_slice(&body).unwrap()))
    }

    fn event(kind: &str, data: &Value) -> Value {
        let event =
            json!({"type": kind, "data": data, "id": "e", "timestamp": "2026-11-20T18:07:25.003Z", "parentId": null});
        json!({"jsonrpc": "2.0", "method": "session.event", "params": {"sessionId": "s", "event": event}})
    }

    #[test]
    fn a_tree_is_weighed_by_what_it_takes_however_the_text_is_cut() {
        let text = r#"{"a":[1,2,{"b":"{[,\",{\\"}],"c":"\u00e9,"}"#;
        for piece in [1, 2, 3, 7, 4096] {
            assert_eq!(weigh(text, piece).units, 16 + 4 + 1 + 1 + 16 + 1, "pieces of {piece}");
        }
        assert!(!weigh(&json!("x,".repeat(1 << 20)).to_string(), 4096).is_too_much(), "a text is one value");
        assert!(weigh(&"{\"\":0},".repeat(5000), 4096).is_too_much());
    }

    #[test]
    fn an_answer_is_whole_or_its_call_fails() {
        let mut sieve = Sieve::new(Instant::now());
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"items": [{"text": "x".repeat(40_000)}]}});
        assert_eq!(sift(&mut sieve, &answer.to_string(), LENGTH_MAX), Ok(Some(answer.clone())));
        for _ in 0..1000 {
            let failed = sift(&mut sieve, &answer.to_string(), 10_000).unwrap().unwrap();
            assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(7), &json!(TOO_LARGE)));
        }
        let heavy = format!(r#"{{"id":8,"result":[{}0]}}"#, r#"{"":0},"#.repeat(10_000));
        assert_eq!(sift(&mut sieve, &heavy, LENGTH_MAX).unwrap().unwrap()["id"], 8);
        let backwards = format!(r#"{{"result":[{}0],"id":8}}"#, r#"{"":0},"#.repeat(10_000));
        assert_eq!(sift(&mut sieve, &backwards, LENGTH_MAX), Err(TooMuch), "whose answer it is cannot be told");
    }

    #[test]
    fn of_events_only_those_that_ask_are_whole() {
        let mut sieve = Sieve::new(Instant::now());
        let asks = event("permission.requested", &json!({"requestId": "r", "command": "x".repeat(39_000)}));
        assert_eq!(sift(&mut sieve, &asks.to_string(), LENGTH_MAX), Ok(Some(asks.clone())));
        let other = event("tool.execution_complete", &json!({"result": "x".repeat(300_000)}));
        let told = sift(&mut sieve, &other.to_string(), LENGTH_MAX).unwrap().unwrap();
        assert_eq!((&told["params"]["sessionId"], &told["params"]["event"]["data"]), (&json!("s"), &json!({})));
        assert_eq!(sift(&mut sieve, &other.to_string(), LENGTH_MAX), Ok(None), "it was said just now");
        let weight = weigh(&other.to_string(), 4096);
        let later = sieve.since + HAPPENED_EVERY;
        assert!(sieve.sift(other.to_string().into(), true, &weight, later).unwrap().is_some(), "it is said again");
        let elsewhere = other.to_string().replace(r#""sessionId":"s""#, r#""sessionId":"t""#);
        assert_eq!(sift(&mut sieve, &elsewhere, 10_000).unwrap().unwrap()["params"]["sessionId"], "t");
        let too_large = event("permission.requested", &json!({"requestId": "r", "command": "x".repeat(2_000_000)}));
        let told = sift(&mut sieve, &too_large.to_string(), LENGTH_MAX).unwrap().unwrap();
        assert_eq!(told["params"]["event"]["type"], "pilotlight.happened", "nobody is asked by it");
        for unheard in ["session.lifecycle", "gitHubTelemetry.event", "host.exited"] {
            let told = json!({"jsonrpc": "2.0", "method": unheard, "params": {"sessionId": "s"}});
            assert_eq!(sift(&mut sieve, &told.to_string(), LENGTH_MAX), Ok(None), "{unheard}");
        }
    }

    #[test]
    fn what_comes_in_masses_is_not_kept() {
        let mut sieve = Sieve::new(Instant::now());
        let asks = event("permission.requested", &json!({"requestId": "r", "command": "x".repeat(39_000)})).to_string();
        let whole = (0..1000).filter_map(|_| sift(&mut sieve, &asks, LENGTH_MAX).unwrap());
        let whole = whole.filter(|told| told["params"]["event"]["type"] == "permission.requested").count();
        assert!((30..80).contains(&whole), "{whole} of 1000");
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"sessionId": "s"}}).to_string();
        let mut sieve = Sieve::new(Instant::now());
        let taken = (0..10_000).take_while(|_| sift(&mut sieve, &call, LENGTH_MAX).is_ok()).count();
        assert!((500..2000).contains(&taken), "{taken} calls");
        let mut sieve = Sieve::new(Instant::now());
        let large =
            json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"text": "x".repeat(20_000)}}).to_string();
        assert_eq!(
            sift(&mut sieve, &large, 10_000).unwrap().unwrap(),
            json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {}})
        );
    }
}
