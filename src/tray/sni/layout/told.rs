//! What a panel reads of the menu, in the form in which it goes over the bus.
//!
//! A panel asks for the whole menu at once, which may be a thousand entries and more. As values of the bus library each of them
//! would take kilobytes, and each byte of a picture some eighty; these types write the same bytes without such values.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
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

/// An entry with those below it, as `GetLayout` answers.
#[derive(Debug)]
pub(in super::super) struct Told {
    pub(in super::super) number: i32,
    pub(in super::super) properties: Properties,
    pub(in super::super) below: Vec<Self>,
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
        let below: Vec<_> = self.below.iter().map(as_value::Serialize).collect();
        (self.number, &self.properties, below).serialize(serializer)
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

    fn structure(told: &Told) -> Value<'static> {
        let below: Vec<_> = told.below.iter().map(structure).collect();
        // As a value it is in the order of the names again.
        let properties: HashMap<_, _> = values(&told.properties).into_iter().collect();
        let fields = StructureBuilder::new().add_field(told.number).add_field(properties).add_field(below);
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
        for (depth, entries) in [(-1, 9), (0, 0), (1, 4), (2, 7)] {
            let told = layout.tell((ROOT, depth), &[], None, NOW).unwrap();
            fn count(told: &Told) -> usize {
                told.below.iter().map(|entry| 1 + count(entry)).sum()
            }
            assert_eq!(count(&told), entries);
            let below: Vec<_> = told.below.iter().map(structure).collect();
            let values = (7_u32, (told.number, values(&told.properties), below));
            same_bytes(&(7_u32, told), &values);
        }
        // As somebody reads it who knows nothing of how it was written.
        let told = to_bytes(Context::new_dbus(LE, 0), &layout.tell((ROOT, -1), &[], None, NOW).unwrap()).unwrap();
        let ((number, _, below), _): ((i32, HashMap<String, OwnedValue>, Vec<OwnedValue>), _) =
            told.deserialize().unwrap();
        assert_eq!((number, below.len()), (ROOT, 4));
        let row: (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>) = below[2].clone().try_into().unwrap();
        assert_eq!(*row.1["label"], Value::from("⚑ billing__api"));
        assert_eq!(*row.1["icon-data"], Value::from(badge(Status::NeedsPermission).to_vec()));
        assert_eq!((&*row.1["children-display"], row.2.len()), (&Value::from("submenu"), 3));
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
