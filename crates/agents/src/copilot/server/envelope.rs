//! The envelope of a frame: whether it is a response, an event, a call or something else. The payload is skipped, and
//! the frame may be cut off: fields before the cut count.

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The fields of a frame that identify it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Envelope {
    /// The id of a call, or of the call that it responds to.
    pub(super) id: Option<u64>,
    /// The method of a call or notification. A response has none.
    pub(super) method: Option<String>,
    /// The session that it is about.
    pub(super) session: Option<String>,
    /// The type of its event.
    pub(super) event: Option<String>,
}

impl Envelope {
    /// Reads as far as the bytes go.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut envelope = Self::default();
        let mut json = serde_json::Deserializer::from_slice(bytes);
        // On an error, the fields read so far are kept.
        let _ = json.deserialize_map(Fields { into: &mut envelope, level: Level::Message });
        envelope
    }
}

/// The object that a field belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Message,
    Params,
    Event,
}

/// Reads the fields of one level.
struct Fields<'e> {
    into: &'e mut Envelope,
    level: Level,
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { into, level } = self;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match (level, &*key) {
                (Level::Message, "id") => {
                    if let Scalar::Number(id) = map.next_value()? {
                        into.id = Some(id);
                    }
                }
                (Level::Message, "method") => into.method = map.next_value::<Scalar>()?.text(),
                (Level::Message, "params") => map.next_value_seed(Fields { into, level: Level::Params })?,
                (Level::Params, "sessionId") => into.session = map.next_value::<Scalar>()?.text(),
                (Level::Params, "event") => map.next_value_seed(Fields { into, level: Level::Event })?,
                (Level::Event, "type") => into.event = map.next_value::<Scalar>()?.text(),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'de> serde::de::DeserializeSeed<'de> for Fields<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

enum Scalar {
    Number(u64),
    Text(String),
    Other,
}

impl Scalar {
    fn text(self) -> Option<String> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_owned()))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
        }

        json.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<u64>, Option<String>, Option<String>, Option<String>) {
        let Envelope { id, method, session, event } = Envelope::read(text.as_bytes());
        (id, method, session, event)
    }

    #[test]
    fn envelope_fields_are_read_in_any_order_and_up_to_a_cut() {
        let text = |text: &str| Some(text.to_owned());
        let event = r#"{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":"s","event":{"type":"session.idle","data":{"#;
        let expected = (None, text("session.event"), text("s"), text("session.idle"));
        assert_eq!(read(event), expected);
        let reordered = r#"{"params":{"event":{"data":{"type":"x"},"type":"session.idle"},"sessionId":"s"},"method":"session.event"}"#;
        assert_eq!(read(reordered), expected);
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":7,"result":{"items":[{"#), (Some(7), None, None, None));
        assert_eq!(read(r#"{"id":7,"error":{"code":1}}"#), (Some(7), None, None, None));
        assert_eq!(read(r#"{"id":3,"method":"tool.call","params":[1"#), (Some(3), text("tool.call"), None, None));
        for malformed in
            ["", "[]", "7", "{", r#"{"id":"7"}"#, r#"{"id":[{"a":1}],"method":{"a":[]}}"#, r#"{"id":-1.5}"#, "\0"]
        {
            assert_eq!(Envelope::read(malformed.as_bytes()), Envelope::default(), "{malformed:?}");
        }
    }
}
