//! What a panel reads of the menu, in the form in which it goes over the bus.
//!
//! A panel asks for the whole menu at once, which may be thousands of entries. As values of the bus library each of them would
//! take kilobytes, and each byte of a picture some eighty. Here the same bytes are written straight from the layout.

use super::{Entry, ROOT, chosen, find};
use crate::core::time::Moment;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;
use zbus::zvariant::{OwnedValue, Signature, Type, as_value};

/// The properties of an entry, by their names.
pub(in super::super) type Properties = BTreeMap<&'static str, Property>;

/// One property. On the bus it is a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Property {
    Text(String),
    Flag(bool),
    Number(i32),
    Bytes(&'static [u8]),
}

/// An entry with those below it, as `GetLayout` answers. What it says is worded as it is written to the bus.
#[derive(Debug)]
pub(in super::super) struct Told {
    pub(super) entries: Arc<Vec<Entry>>,
    pub(super) number: i32,
    pub(super) depth: i32,
    pub(super) wanted: Wanted,
}

/// What a panel wants to know of entries.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) names: Vec<String>,
    /// Of entries up to this number, it wants nothing but their places.
    pub(super) known: Option<i32>,
    pub(super) now: Moment,
}

impl Wanted {
    fn of(&self, entry: &Entry) -> Properties {
        match self.known {
            Some(known) if entry.number <= known => Properties::new(),
            _ => chosen(entry.properties(self.now), &self.names),
        }
    }
}

/// What is told of the menu itself.
pub(super) fn of_root() -> Properties {
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

impl Type for Told {
    const SIGNATURE: &'static Signature = <(i32, Properties, Vec<OwnedValue>)>::SIGNATURE;
}

impl Serialize for Told {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { entries, number, depth, wanted } = self;
        let told = match find(entries, *number) {
            Some(entry) => Branch::of(entry, *depth, wanted),
            None => {
                let below = Below { entries, depth: *depth, wanted };
                Branch { number: ROOT, properties: chosen(of_root(), &wanted.names), below }
            }
        };
        told.serialize(serializer)
    }
}

/// One entry of it, with those below.
struct Branch<'a> {
    number: i32,
    properties: Properties,
    below: Below<'a>,
}

/// The entries below one, so many levels deep.
struct Below<'a> {
    entries: &'a [Entry],
    depth: i32,
    wanted: &'a Wanted,
}

impl<'a> Branch<'a> {
    fn of(entry: &'a Entry, depth: i32, wanted: &'a Wanted) -> Self {
        let below = Below { entries: &entry.entries, depth, wanted };
        Self { number: entry.number, properties: wanted.of(entry), below }
    }
}

impl Type for Branch<'_> {
    const SIGNATURE: &'static Signature = Told::SIGNATURE;
}

impl Serialize for Branch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.number, &self.properties, &self.below).serialize(serializer)
    }
}

impl Serialize for Below<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { entries, depth, wanted } = *self;
        let entries = if depth == 0 { &[] } else { entries };
        let mut row = serializer.serialize_seq(Some(entries.len()))?;
        for entry in entries {
            let branch = Branch::of(entry, depth.saturating_sub(1).max(-1), wanted);
            row.serialize_element(&as_value::Serialize(&branch))?;
        }
        row.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Changes, Layout, ROOT};
    use super::*;
    use crate::core::time::{Moment, Time};
    use crate::core::verdict::Status;
    use crate::tray::icon::badge;
    use crate::tray::view::{Effect, Item, ItemId, Kind};
    use std::collections::HashMap;
    use zbus::zvariant::serialized::Context;
    use zbus::zvariant::{DynamicType, LE, StructureBuilder, Value, to_bytes};

    const NOW: Moment = Moment::of(Time(1_700_000_000_000));

    /// The same in values of the bus library.
    type Values = BTreeMap<&'static str, Value<'static>>;

    fn value(property: &Property) -> Value<'static> {
        match property {
            Property::Text(text) => text.clone().into(),
            Property::Flag(flag) => (*flag).into(),
            Property::Number(number) => (*number).into(),
            Property::Bytes(bytes) => bytes.to_vec().into(),
        }
    }

    fn values(properties: &Properties) -> Values {
        properties.iter().map(|(name, property)| (*name, value(property))).collect()
    }

    fn below(entries: &[Entry], depth: i32) -> Vec<Value<'static>> {
        let entries = if depth == 0 { &[] } else { entries };
        entries.iter().map(|entry| structure(entry, depth - 1)).collect()
    }

    fn structure(entry: &Entry, depth: i32) -> Value<'static> {
        // As a value it is in the order of the names again.
        let properties: HashMap<_, _> = values(&entry.properties(NOW)).into_iter().collect();
        let below = below(&entry.entries, depth);
        let fields = StructureBuilder::new().add_field(entry.number).add_field(properties).add_field(below);
        Value::from(fields.build().unwrap())
    }

    /// What goes over the bus, from wherever in a message it begins.
    #[track_caller]
    fn same_bytes(told: &(impl Serialize + DynamicType), values: &(impl Serialize + DynamicType)) {
        assert_eq!(told.signature(), values.signature());
        for begins_at in 0..8 {
            let context = Context::new_dbus(LE, begins_at);
            let (told, values) = (to_bytes(context, told).unwrap(), to_bytes(context, values).unwrap());
            assert_eq!(told.to_vec(), values.to_vec(), "beginning at {begins_at}");
        }
    }

    fn menu() -> Layout {
        let key = (0, "a".into());
        let id = |kind| ItemId::of(&key, kind);
        let effect = Effect::Seen;
        let check = |n, checked| Item::Check {
            id: id(Kind::Fact(n)),
            text: "Start at login".into(),
            enabled: checked,
            checked,
            effect: effect.clone(),
        };
        let deepest = vec![Item::action(id(Kind::Fact(3)), "日本_語", effect.clone()), Item::Separator];
        let inner = vec![Item::submenu(id(Kind::More), "More", deepest), check(1, true), check(2, false)];
        let text = "⚑ billing_api".into();
        let row = Item::Submenu { id: id(Kind::Row), text, picture: Some(Status::NeedsPermission), items: inner };
        let empty = Item::submenu(id(Kind::Why), "", Vec::new());
        let mut layout = Layout::default();
        layout.lay_out(&[Item::text("1 needs you"), Item::Separator, row, empty], NOW, &mut Changes::default());
        layout
    }

    #[test]
    fn a_layout_is_on_the_bus_as_values_would_be() {
        let layout = menu();
        assert_eq!(<(u32, Told)>::SIGNATURE.to_string_no_parens(), "u(ia{sv}av)");
        for depth in [-1, 0, 1, 2] {
            let told = layout.tell((ROOT, depth), Vec::new(), None, NOW).unwrap();
            let values = (7_u32, (ROOT, values(&of_root()), below(&layout.entries, depth)));
            same_bytes(&(7_u32, told), &values);
        }
        let row = &layout.entries[2];
        let told = layout.tell((row.number, 1), Vec::new(), None, NOW).unwrap();
        same_bytes(&told, &(row.number, values(&row.properties(NOW)), below(&row.entries, 1)));
        assert!(layout.tell((99, -1), Vec::new(), None, NOW).is_none());
        // As somebody reads it who knows nothing of how it was written.
        let told =
            to_bytes(Context::new_dbus(LE, 0), &layout.tell((ROOT, -1), Vec::new(), None, NOW).unwrap()).unwrap();
        let ((number, _, below), _): ((i32, HashMap<String, OwnedValue>, Vec<OwnedValue>), _) =
            told.deserialize().unwrap();
        assert_eq!((number, below.len()), (ROOT, 4));
        let row: (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>) = below[2].clone().try_into().unwrap();
        assert_eq!(*row.1["label"], Value::from("⚑ billing__api"));
        assert_eq!(*row.1["icon-data"], Value::from(badge(Status::NeedsPermission).to_vec()));
        assert_eq!((&*row.1["children-display"], row.2.len()), (&Value::from("submenu"), 3));
    }

    /// Of what the panel knows already, and of what it does not ask for, nothing is told.
    #[test]
    fn a_layout_tells_what_is_asked_for() {
        let mut layout = menu();
        let known = layout.entries[2].number;
        let told = layout.tell((ROOT, -1), vec!["label".to_owned()], Some(known), NOW).unwrap();
        // What changes while the answer is on its way is in the next one.
        layout.lay_out(&[], NOW, &mut Changes::default());
        let bytes = to_bytes(Context::new_dbus(LE, 0), &told).unwrap();
        let ((_, properties, below), _): ((i32, HashMap<String, OwnedValue>, Vec<OwnedValue>), _) =
            bytes.deserialize().unwrap();
        assert_eq!((properties.len(), below.len()), (0, 4));
        for entry in below {
            let (number, properties, _): (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>) =
                entry.try_into().unwrap();
            let names: Vec<_> = properties.keys().map(String::as_str).collect();
            assert_eq!(names, if number <= known { vec![] } else { vec!["label"] }, "{number}");
        }
    }

    #[test]
    fn properties_are_on_the_bus_as_values_would_be() {
        let layout = menu();
        let told = layout.properties(&[], &[], NOW);
        assert_eq!(Vec::<(i32, Properties)>::SIGNATURE.to_string(), "a(ia{sv})");
        let all: Vec<_> = told.iter().map(|(number, properties)| (*number, values(properties))).collect();
        assert_eq!(all.len(), 9);
        // `ItemsPropertiesUpdated` tells those that are unset, too.
        let unset = vec![(2, vec!["enabled"])];
        same_bytes(&(told.clone(), unset.clone()), &(all.clone(), unset));
        same_bytes(&told, &all);
        // `GetProperty`.
        for property in told.iter().flat_map(|(_, properties)| properties.values()) {
            same_bytes(property, &value(property));
        }
    }
}
