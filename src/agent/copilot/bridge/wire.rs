//! What the extension and we say to each other: one JSON object a line, at most [`LINE_MAX`] bytes long.
//!
//! The extension says hello, we prove that we know the key, then it does. From there on it tells events and the results of
//! orders, and we order. What it says is hostile input until it is checked against the log: a tool of the session that the user
//! let run may pass for it.

use crate::agent::copilot::server::asking;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

/// A line is at most so long, in bytes, its break included: one million characters, and what they may take.
pub(crate) const LINE_MAX: usize = 4 << 20;

/// The first words of the extension.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Hello {
    /// The version of the protocol that it speaks.
    pub v: u32,
    /// The id of the session that it has joined.
    pub session: Box<str>,
    /// Its process.
    pub pid: u32,
    /// The process that started it: the session's owner.
    pub ppid: u32,
    /// The version of the CLI.
    #[serde(default)]
    pub cli: Option<Box<str>>,
    /// It may answer permission requests.
    pub elevated: bool,
    /// Its user is being asked whether it may.
    #[serde(default)]
    pub consenting: bool,
    /// Its user said no.
    #[serde(default)]
    pub refused: bool,
    /// The hash of its file, as it was when it was started.
    #[serde(default)]
    pub hash: Box<str>,
    /// What our proof is over.
    pub nonce: Box<str>,
}

/// What the extension tells.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub(crate) enum Told {
    /// It knows the key, too.
    Proof {
        /// In hexadecimal digits.
        proof: Box<str>,
    },
    /// Something happened in the session.
    Event(Event),
    /// The requests that are open.
    Pending {
        /// Each.
        items: Vec<Pending>,
    },
    /// Copilot asks its user whether the extension may answer, or has been answered.
    Consent(Consent),
    /// What came of an order.
    Result(Result),
    /// Something that a later version tells.
    #[serde(other)]
    Unknown,
}

/// An event, in the form of the server's.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The sub-agent that it is of.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// When.
    #[serde(default)]
    pub timestamp: String,
    /// The rest.
    #[serde(default)]
    pub data: Value,
    /// Tells a request, as it is shown, from any other.
    #[serde(default)]
    pub mark: Option<Box<str>>,
}

impl From<Event> for asking::Event {
    fn from(Event { kind, agent_id, timestamp, data, .. }: Event) -> Self {
        Self { kind, agent_id, timestamp, data }
    }
}

/// A permission request that is open.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pending {
    /// Its id.
    pub request_id: Box<str>,
    /// What is asked for, as the terminal shows it.
    #[serde(default)]
    pub request: Value,
    /// Tells it from any other.
    #[serde(default)]
    pub mark: Box<str>,
}

/// The question whether the extension may answer.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Consent {
    /// It is open.
    pub open: bool,
    /// Nobody asked for it.
    #[serde(default)]
    pub unexpected: bool,
    /// The extension may answer now.
    #[serde(default)]
    pub elevated: bool,
    /// The user said no.
    #[serde(default)]
    pub refused: bool,
}

/// What came of an order.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Result {
    /// Of which.
    pub id: u64,
    /// It was done.
    pub ok: bool,
    /// Why not.
    #[serde(default)]
    pub error: Option<Box<str>>,
}

/// What the extension is told to do, each with an id (`id`) and the time after which it no longer counts (`by`, in ms since 1970). It
/// knows nothing else.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "t", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum Order {
    /// Allow a request, once.
    Approve {
        /// Its id.
        request_id: Box<str>,
        /// The tool's call that it is for.
        tool_call_id: Option<Box<str>>,
        /// The mark of what was shown.
        text: Box<str>,
    },
    /// Refuse a request.
    Deny {
        /// Its id.
        request_id: Box<str>,
        /// The tool's call that it is for.
        tool_call_id: Option<Box<str>>,
        /// The mark of what was shown.
        text: Box<str>,
    },
    /// Answer a form.
    Answer {
        /// Its id.
        request_id: Box<str>,
        /// The answer, as Copilot takes it.
        result: Value,
    },
    /// Answer a plan.
    Plan {
        /// Its id.
        request_id: Box<str>,
        /// The answer, as Copilot takes it.
        response: Value,
    },
    /// Abort the turn that this event opened.
    Stop {
        /// Its id.
        after: Box<str>,
    },
    /// Send a prompt, after the turn that this event opened.
    Send {
        /// Its id.
        after: Box<str>,
        /// What.
        prompt: Box<str>,
    },
    /// Have Copilot ask its user whether the extension may answer permission requests.
    Elevate {
        /// The event that opened the last turn, by its id.
        after: Box<str>,
    },
}

/// Bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a text takes everything
        text
    })
}

/// What proves that a side knows the key, over a nonce of the other side's.
pub(crate) fn proof(key: &[u8], side: &str, nonce: &str, session: &str) -> Vec<u8> {
    mac(key, side, nonce, session).finalize().into_bytes().to_vec()
}

/// Whether this proves it.
pub(crate) fn is_proof(given: &[u8], key: &[u8], side: &str, nonce: &str, session: &str) -> bool {
    mac(key, side, nonce, session).verify_slice(given).is_ok()
}

fn mac(key: &[u8], side: &str, nonce: &str, session: &str) -> Hmac<Sha256> {
    // As the standard has it, a key that is shorter than a block, as ours is, is filled up with zeros.
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block.iter_mut().zip(key).for_each(|(byte, of_key)| *byte = *of_key);
    let mut mac = Hmac::<Sha256>::new(&block);
    mac.update(format!("{side}:{nonce}:{session}").as_bytes());
    mac
}
