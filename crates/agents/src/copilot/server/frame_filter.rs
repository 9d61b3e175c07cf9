//! Decides what of each frame reaches the SDK.
//!
//! The SDK parses every frame into a tree, which may take a hundred times the frame's bytes, and queues events for slow
//! subscribers. So a frame is measured by the memory that its tree would take, and what nobody needs is dropped:
//!
//! - A **response** is passed on whole. If it is too large, its longest texts are left out; if that is not enough, its
//!   call fails instead. The connection stays open, because closing it may end the session.
//! - **Events** that ask the user something, or end that, are passed on whole, up to a rate limit. Any other event is
//!   replaced by a short one that only signals activity.
//! - A **call** is passed on whole, or without its parameters if it is too large. Too many calls end the connection,
//!   because each needs a response.
//! - **Other notifications** are dropped.

use super::envelope::Envelope;
use std::time::Duration;
use tokio::time::Instant;

/// The largest frame that is passed on, in bytes. Copilot 1.0.102 was seen to send responses of 600 bytes, except for
/// the open requests, each as long as its command; and events of 48 KB.
pub(super) const LENGTH_MAX: usize = 1 << 20;
/// The largest tree that is passed on, in units of [`Weight`]: about 3 MB. Seen with Copilot 1.0.102: 550 units, and
/// 270 for each request.
const WEIGHT_MAX: u32 = 16 << 10;
/// How much of a frame is read to identify it, if it is not passed on, in bytes.
pub(super) const HEAD: usize = 4 << 10;
/// The token bucket for events and calls: its capacity, and its refill per second, in bytes of their trees.
const BURST: u64 = 2 << 20;
const REFILL_PER_SECOND: u64 = 128 << 10;
/// The memory that a frame takes besides its bytes, and for each unit of its weight, in bytes.
const FRAME_OVERHEAD: u64 = 2 << 10;
const UNIT_SIZE: u64 = 40;
/// The minimum interval between two activity events of a session.
const ACTIVITY_INTERVAL: Duration = Duration::from_millis(50);
/// The error code of a call whose response was too large. Neither JSON-RPC nor Copilot uses it.
pub(super) const TOO_LARGE: i64 = -32_098;

/// The memory that the tree of a JSON text would take, estimated without building it. An object counts as much as
/// sixteen numbers, an array as much as four.
#[derive(Debug, Default)]
pub(super) struct Weight {
    units: u32,
    in_text: bool,
    escaped: bool,
}

impl Weight {
    /// Adds the next bytes of the text.
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

    /// Whether the tree is too large to be passed on.
    pub(super) fn is_too_large(&self) -> bool {
        self.units > WEIGHT_MAX
    }
}

/// How much of a frame was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// All but its longest texts.
    Shortened,
    /// Only its head.
    Head,
}

/// The filter of one connection.
#[derive(Debug)]
pub(super) struct FrameFilter {
    /// The tokens left in the bucket, and when it was last refilled.
    tokens: u64,
    refilled_at: Instant,
    /// When the last activity event was passed on, and for which session.
    last_activity: Option<(Instant, String)>,
}

/// The server sends too much: the connection must end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overload;

impl FrameFilter {
    pub(super) fn new(now: Instant) -> Self {
        Self { tokens: BURST, refilled_at: now, last_activity: None }
    }

    /// Returns what to pass on of a frame that has arrived, `None` for nothing. `body` is what was kept of it.
    pub(super) fn filter(
        &mut self,
        body: Vec<u8>,
        extent: Extent,
        weight: &Weight,
        now: Instant,
    ) -> Result<Option<Vec<u8>>, Overload> {
        let is_whole = extent == Extent::Whole;
        let mut envelope = Envelope::read(&body[..body.len().min(HEAD)]);
        // The head names the type of most events.
        if is_whole && body.len() > HEAD && envelope.event.as_deref().is_none_or(is_needed) {
            envelope = Envelope::read(&body);
        }
        match (&envelope.method, envelope.id) {
            (Some(method), Some(id)) => {
                if !self.spend(body.len(), weight, now) {
                    return Err(Overload);
                }
                Ok(Some(if is_whole { body } else { call_without_params(id, method) }))
            }
            (Some(method), None) if method == "session.event" => {
                if is_whole && envelope.event.as_deref().is_some_and(is_needed) && self.spend(body.len(), weight, now) {
                    return Ok(Some(body));
                }
                Ok(envelope.session.and_then(|session| self.activity(session, now)))
            }
            (Some(method), None) => Ok((is_whole && method == "$/cancelRequest").then_some(body)),
            // If it is no message at all, the SDK reports that.
            (None, _) if extent != Extent::Head => Ok(Some(body)),
            (None, Some(id)) => Ok(Some(too_large(id))),
            (None, None) => Err(Overload),
        }
    }

    /// Takes a frame's tokens from the bucket. Returns whether there were enough.
    fn spend(&mut self, length: usize, weight: &Weight, now: Instant) -> bool {
        let passed = u64::try_from((now - self.refilled_at).as_millis()).unwrap_or(u64::MAX);
        let refill = passed.saturating_mul(REFILL_PER_SECOND) / 1000;
        if refill > 0 {
            self.tokens = self.tokens.saturating_add(refill).min(BURST);
            self.refilled_at = now;
        }
        let cost = FRAME_OVERHEAD + length as u64 + UNIT_SIZE * u64::from(weight.units);
        let left = self.tokens.checked_sub(cost);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }

    /// An event that only signals activity. `None` if one was passed on just before.
    fn activity(&mut self, session: String, now: Instant) -> Option<Vec<u8>> {
        let is_due = |(at, of): &(Instant, String)| *of != session || now - *at >= ACTIVITY_INTERVAL;
        self.last_activity.as_ref().is_none_or(is_due).then(|| {
            let event = serde_json::json!({
                "id": "", "type": "pilotlight.happened", "timestamp": "1970-01-01T00:00:00.000Z", "parentId": null, "data": {},
            });
            let params = serde_json::json!({"sessionId": session, "event": event});
            self.last_activity = Some((now, session));
            message(&serde_json::json!({"jsonrpc": "2.0", "method": "session.event", "params": params}))
        })
    }
}

/// Whether events of this type ask the user something, or end that, as the end of a turn does.
fn is_needed(kind: &str) -> bool {
    ["permission.", "user_input.", "elicitation.", "exit_plan_mode."].iter().any(|prefix| kind.starts_with(prefix))
        || matches!(kind, "session.idle" | "abort" | "session.error" | "session.shutdown")
}

fn call_without_params(id: u64, method: &str) -> Vec<u8> {
    message(&serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}))
}

fn too_large(id: u64) -> Vec<u8> {
    let error = serde_json::json!({"code": TOO_LARGE, "message": "the response is too large"});
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

    /// Filters a frame, cut to `limit` bytes, with no time passed since the last refill.
    fn filtered(filter: &mut FrameFilter, text: &str, limit: usize) -> Result<Option<Value>, Overload> {
        let weight = weigh(text, 4096);
        let is_whole = text.len() <= limit && !weight.is_too_large();
        let extent = if is_whole { Extent::Whole } else { Extent::Head };
        let body = text.as_bytes()[..text.len().min(limit)].to_vec();
        Ok(filter.filter(body, extent, &weight, filter.refilled_at)?.map(|body| serde_json::from_slice(&body).unwrap()))
    }

    fn event(kind: &str, data: &Value) -> Value {
        let event =
            json!({"type": kind, "data": data, "id": "e", "timestamp": "2026-11-20T18:07:25.003Z", "parentId": null});
        json!({"jsonrpc": "2.0", "method": "session.event", "params": {"sessionId": "s", "event": event}})
    }

    #[test]
    fn the_weight_of_a_tree_does_not_depend_on_how_the_text_is_split() {
        let text = r#"{"a":[1,2,{"b":"{[,\",{\\"}],"c":"\u00e9,"}"#;
        for piece in [1, 2, 3, 7, 4096] {
            assert_eq!(weigh(text, piece).units, 16 + 4 + 1 + 1 + 16 + 1, "pieces of {piece}");
        }
        assert!(!weigh(&json!("x,".repeat(1 << 20)).to_string(), 4096).is_too_large(), "a string is one value");
        assert!(weigh(&"{\"\":0},".repeat(5000), 4096).is_too_large());
    }

    #[test]
    fn a_response_is_whole_or_its_call_fails() {
        let mut filter = FrameFilter::new(Instant::now());
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"items": [{"text": "x".repeat(40_000)}]}});
        assert_eq!(filtered(&mut filter, &answer.to_string(), LENGTH_MAX), Ok(Some(answer.clone())));
        for _ in 0..1000 {
            let failed = filtered(&mut filter, &answer.to_string(), 10_000).unwrap().unwrap();
            assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(7), &json!(TOO_LARGE)));
        }
        let heavy = format!(r#"{{"id":8,"result":[{}0]}}"#, r#"{"":0},"#.repeat(10_000));
        assert_eq!(filtered(&mut filter, &heavy, LENGTH_MAX).unwrap().unwrap()["id"], 8);
        let backwards = format!(r#"{{"result":[{}0],"id":8}}"#, r#"{"":0},"#.repeat(10_000));
        assert_eq!(filtered(&mut filter, &backwards, LENGTH_MAX), Err(Overload), "its call is unknown");
    }

    #[test]
    fn only_events_that_ask_the_user_are_whole() {
        let mut filter = FrameFilter::new(Instant::now());
        let asks = event("permission.requested", &json!({"requestId": "r", "command": "x".repeat(39_000)}));
        assert_eq!(filtered(&mut filter, &asks.to_string(), LENGTH_MAX), Ok(Some(asks.clone())));
        let other = event("tool.execution_complete", &json!({"result": "x".repeat(300_000)}));
        let activity = filtered(&mut filter, &other.to_string(), LENGTH_MAX).unwrap().unwrap();
        assert_eq!((&activity["params"]["sessionId"], &activity["params"]["event"]["data"]), (&json!("s"), &json!({})));
        assert_eq!(
            filtered(&mut filter, &other.to_string(), LENGTH_MAX),
            Ok(None),
            "an activity event was sent just before"
        );
        let weight = weigh(&other.to_string(), 4096);
        let later = filter.refilled_at + ACTIVITY_INTERVAL;
        assert!(
            filter.filter(other.to_string().into(), Extent::Whole, &weight, later).unwrap().is_some(),
            "another is due"
        );
        let elsewhere = other.to_string().replace(r#""sessionId":"s""#, r#""sessionId":"t""#);
        assert_eq!(filtered(&mut filter, &elsewhere, 10_000).unwrap().unwrap()["params"]["sessionId"], "t");
        let too_large = event("permission.requested", &json!({"requestId": "r", "command": "x".repeat(2_000_000)}));
        let activity = filtered(&mut filter, &too_large.to_string(), LENGTH_MAX).unwrap().unwrap();
        assert_eq!(activity["params"]["event"]["type"], "pilotlight.happened", "too large to be passed on");
        for ignored in ["session.lifecycle", "gitHubTelemetry.event", "host.exited"] {
            let notification = json!({"jsonrpc": "2.0", "method": ignored, "params": {"sessionId": "s"}});
            assert_eq!(filtered(&mut filter, &notification.to_string(), LENGTH_MAX), Ok(None), "{ignored}");
        }
    }

    #[test]
    fn a_flood_of_events_or_calls_is_limited() {
        let mut filter = FrameFilter::new(Instant::now());
        let asks = event("permission.requested", &json!({"requestId": "r", "command": "x".repeat(39_000)})).to_string();
        let whole = (0..1000).filter_map(|_| filtered(&mut filter, &asks, LENGTH_MAX).unwrap());
        let whole = whole.filter(|event| event["params"]["event"]["type"] == "permission.requested").count();
        assert!((30..80).contains(&whole), "{whole} of 1000");
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"sessionId": "s"}}).to_string();
        let mut filter = FrameFilter::new(Instant::now());
        let accepted = (0..10_000).take_while(|_| filtered(&mut filter, &call, LENGTH_MAX).is_ok()).count();
        assert!((500..2000).contains(&accepted), "{accepted} calls");
        let mut filter = FrameFilter::new(Instant::now());
        let large =
            json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"text": "x".repeat(20_000)}}).to_string();
        assert_eq!(
            filtered(&mut filter, &large, 10_000).unwrap().unwrap(),
            json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {}})
        );
    }
}
