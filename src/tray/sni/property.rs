//! The properties of entries, as they are serialized to the bus.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use zbus::zvariant::{Signature, Type, as_value};

/// The number of the root entry.
pub(super) const ROOT: i32 = 0;

/// The properties of an entry, by name.
pub(super) type Properties = BTreeMap<&'static str, Property>;

/// A property, which is a variant on the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Property {
    Text(String),
    Flag(bool),
    Number(i32),
    Bytes(&'static [u8]),
}

/// The properties with these names; all if none is named.
pub(super) fn filtered(mut properties: Properties, names: &[String]) -> Properties {
    properties.retain(|name, _| names.is_empty() || names.iter().any(|wanted| wanted == name));
    properties
}

/// The value of a property that an entry does not have, of those that may change; `None` of others.
pub(super) fn default_of(name: &str) -> Option<Property> {
    Some(match name {
        "enabled" | "visible" => true.into(),
        "label" | "toggle-type" => "".into(),
        "toggle-state" => (-1).into(),
        _ => return None,
    })
}

/// The properties of the root entry.
pub(super) fn root_properties() -> Properties {
    Properties::from([("children-display", "submenu".into())])
}

impl From<&str> for Property {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Property {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Property {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i32> for Property {
    fn from(number: i32) -> Self {
        Self::Number(number)
    }
}

impl Type for Property {
    const SIGNATURE: &'static Signature = &Signature::Variant;
}

impl Serialize for Property {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => as_value::serialize(text, serializer),
            Self::Flag(flag) => as_value::serialize(flag, serializer),
            Self::Number(number) => as_value::serialize(number, serializer),
            Self::Bytes(bytes) => as_value::serialize(bytes, serializer),
        }
    }
}
