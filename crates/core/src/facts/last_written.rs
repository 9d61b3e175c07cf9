//! What the last progress in a log was, so that an age can say since what it counts.

use crate::event::Event;
use crate::text::{NAME_MAX, plain};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What the last progress in a log was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LastWritten {
    /// A part of a line.
    #[default]
    Part,
    /// An event.
    Event {
        /// Its type.
        kind: EventType,
        /// A sub-agent wrote it.
        by_sub_agent: bool,
    },
}

impl LastWritten {
    /// The same, written by a sub-agent.
    pub(super) const fn by_sub_agent(self) -> Self {
        match self {
            Self::Part => Self::Part,
            Self::Event { kind, .. } => Self::Event { kind, by_sub_agent: true },
        }
    }

    pub(super) fn of(event: &Event<'_>) -> Self {
        Self::Event { kind: EventType::new(event.kind), by_sub_agent: event.sub_agent.is_some() }
    }
}

/// The type of an event. Kept in place, because each event that is folded replaces it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EventType {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl EventType {
    /// Longer types are cut. The longest in the recordings, `session.mode_notice_delivered`, has 29 bytes.
    const MAX: usize = 40;

    fn new(kind: &[u8]) -> Self {
        let kind = &kind[..kind.len().min(Self::MAX)];
        let mut bytes = [0; Self::MAX];
        bytes[..kind.len()].copy_from_slice(kind);
        Self { bytes, len: u8::try_from(kind.len()).unwrap_or_default() }
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.bytes[..usize::from(self.len)] == *kind.as_bytes()
    }
}

/// Its text, made safe to display.
impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&String::from_utf8_lossy(&self.bytes[..usize::from(self.len)]), NAME_MAX))
    }
}

impl Serialize for EventType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.bytes[..usize::from(self.len)].serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<u8>::deserialize(deserializer).map(|kind| Self::new(&kind))
    }
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
