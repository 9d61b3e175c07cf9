//! The protocol between the extension and us: one JSON object a line, at most [`LINE_MAX`] bytes long.
//!
//! The extension sends a hello, we prove that we know the key, then the extension does. After this handshake it sends
//! events and the results of orders, and we send orders. Right before it carries one out, it asks whether the order
//! still stands. Its messages are hostile input until they are checked against
//! the log: a tool that the user allowed the session to run may impersonate the extension.

use crate::channel::request::Request;
use crate::copilot::server::questions;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

/// The longest line, in bytes, including its newline: the extension sends up to a million characters, of up to four
/// bytes each.
pub(crate) const LINE_MAX: usize = 4 << 20;

/// The extension's first message.
#[derive(Clone, Debug, Deserialize)]
pub struct Hello {
    /// The protocol version.
    pub v: u32,
    /// The id of the session that the extension has joined.
    pub session: Box<str>,
    /// The extension's process.
    pub pid: u32,
    /// Its parent process: the session's owner.
    pub ppid: u32,
    /// The version of the CLI.
    #[serde(default)]
    pub cli: Option<Box<str>>,
    /// Whether the extension may answer permission requests.
    pub elevated: bool,
    /// Whether Copilot is asking its user for that right.
    #[serde(default)]
    pub consenting: bool,
    /// Whether the user refused it.
    #[serde(default)]
    pub refused: bool,
    /// The hash of the extension's file when it was started.
    #[serde(default)]
    pub hash: Box<str>,
    /// The nonce for our proof.
    pub nonce: Box<str>,
}

/// A message from the extension.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub enum Message {
    /// Its proof that it knows the key.
    Proof {
        /// Hexadecimal.
        proof: Box<str>,
    },
    /// Something happened in the session.
    Event(Event),
    /// The open permission requests.
    Pending { items: Vec<Pending> },
    /// Copilot asks its user whether the extension may answer, or the user has replied.
    Consent(Consent),
    /// Whether everything is approved without asking, by Copilot's own word.
    Mode { all: bool },
    /// It asks whether the order with this id still stands: right before it carries it out (`ready`), or because it has
    /// to wait.
    Ask { id: u64, ready: bool },
    /// The result of an order.
    Result(OrderResult),
    /// A message of a later version.
    #[serde(other)]
    Unknown,
}

/// An event of the session, in the same form as from a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its `type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The sub-agent that caused it.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// When it was written.
    #[serde(default)]
    pub timestamp: String,
    /// The fields of its type.
    #[serde(default)]
    pub data: Value,
    /// A hash of the whole request as it is shown.
    #[serde(default)]
    pub mark: Option<Box<str>>,
}

impl From<Event> for questions::Event {
    fn from(Event { kind, agent_id, timestamp, data, .. }: Event) -> Self {
        Self { kind, agent_id, timestamp, data }
    }
}

/// An open permission request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    pub request_id: Box<str>,
    /// The request as the terminal shows it, without texts that are too large.
    #[serde(default)]
    pub request: Value,
    /// A hash of the whole request.
    #[serde(default)]
    pub mark: Box<str>,
}

impl Pending {
    /// The request in the form in which it is shown. `None` if it is malformed.
    pub(crate) fn request(&self) -> Option<Request> {
        Request::from_parts(&self.request_id, &self.request)
    }
}

/// The state of the user's consent to the extension answering permission requests.
#[derive(Clone, Debug, Deserialize)]
pub struct Consent {
    /// Whether Copilot is asking.
    pub open: bool,
    /// Whether Copilot asks although no dialog was expected.
    #[serde(default)]
    pub unexpected: bool,
    /// Whether the extension may answer now.
    #[serde(default)]
    pub elevated: bool,
    /// Whether the user refused.
    #[serde(default)]
    pub refused: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderResult {
    /// The order's id.
    pub id: u64,
    /// Whether it was carried out.
    pub ok: bool,
    /// Why it was not.
    #[serde(default)]
    pub error: Option<Box<str>>,
    /// The size of the answer so far, after [`Order::Listen`], if a piece of it came.
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// An order to the extension; there are no others. On the wire, each also has an id (`id`) and a deadline (`by`, in ms
/// since 1970).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Order {
    /// Allow a request, once.
    Approve {
        request_id: Box<str>,
        /// The tool call that the request is for.
        tool_call_id: Option<Box<str>>,
        /// The mark of the request that was shown.
        text: Box<str>,
    },
    /// Refuse a request.
    Deny {
        request_id: Box<str>,
        /// The tool call that the request is for.
        tool_call_id: Option<Box<str>>,
        /// The mark of the request that was shown.
        text: Box<str>,
    },
    /// Answer a form.
    Answer {
        request_id: Box<str>,
        /// The answer in Copilot's form.
        result: Value,
    },
    /// Answer a plan.
    Plan {
        request_id: Box<str>,
        /// The answer in Copilot's form.
        response: Value,
    },
    /// Abort a turn.
    Stop {
        /// The id of the event that opened the turn.
        after: Box<str>,
    },
    /// Wait for the next piece of the model's answer. Changes nothing.
    Listen {
        /// For at most this long, in ms.
        wait: u64,
    },
    /// Send a prompt.
    Send {
        /// The id of the event that opened the last turn.
        after: Box<str>,
        prompt: Box<str>,
    },
    /// Have Copilot ask its user whether the extension may answer permission requests.
    Elevate {
        /// The id of the event that opened the last turn.
        after: Box<str>,
    },
}

/// Encodes bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a string cannot fail
        text
    })
}

/// A side's proof that it knows the key, for a nonce chosen by the other side.
pub(crate) fn proof(key: &[u8], side: &str, nonce: &str, session: &str) -> Vec<u8> {
    mac(key, side, nonce, session).finalize().into_bytes().to_vec()
}

/// Whether `given` is that proof.
pub(crate) fn is_proof(given: &[u8], key: &[u8], side: &str, nonce: &str, session: &str) -> bool {
    mac(key, side, nonce, session).verify_slice(given).is_ok()
}

fn mac(key: &[u8], side: &str, nonce: &str, session: &str) -> Hmac<Sha256> {
    // A key shorter than a block, like ours, is padded with zeros (RFC 2104).
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block.iter_mut().zip(key).for_each(|(byte, of_key)| *byte = *of_key);
    let mut mac = Hmac::<Sha256>::new(&block);
    mac.update(format!("{side}:{nonce}:{session}").as_bytes());
    mac
}
