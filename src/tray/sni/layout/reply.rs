//! The reply to `GetLayout`, as it is serialized to the bus.
//!
//! A panel asks for the whole menu at once, which may be thousands of entries. As `zvariant` values each entry would
//! take kilobytes, and each byte of a picture some eighty. This serializes the same bytes straight from the layout.

use super::appearance::Wording;
use super::changes::ChangedNames;
use super::entry::{Entry, find};
use crate::tray::sni::property::{Properties, ROOT, default_of, filtered, root_properties};
use crate::tray::view::Worded;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;
use zbus::zvariant::{OwnedValue, Signature, Type, as_value};

/// The reply to `GetLayout`: an entry with those below it. Labels with an age are worded beforehand: `zbus` serializes a
/// reply twice, once to learn its length, and the engine may report progress in between. The bus disconnects whoever
/// sends a message of another length than it says.
#[derive(Debug)]
pub(crate) struct LayoutReply {
    pub(super) entries: Arc<Vec<Entry>>,
    pub(super) number: i32,
    pub(super) depth: i32,
    pub(super) filter: PropertyFilter,
}

#[cfg(test)]
impl LayoutReply {
    /// The numbers of the entries right below the root.
    pub(crate) fn numbers(&self) -> Vec<i32> {
        self.entries.iter().map(|entry| entry.number).collect()
    }

    /// The properties that are sent of the entries right below the root.
    pub(crate) fn sent(&self) -> Vec<Properties> {
        self.entries.iter().map(|entry| self.filter.of(entry)).collect()
    }
}

/// Which properties a reply includes.
#[derive(Debug)]
pub(super) struct PropertyFilter {
    pub(super) names: Vec<String>,
    /// Entries up to this number are sent without properties, but for those that changed.
    pub(super) known: Option<i32>,
    pub(super) changed: ChangedNames,
    pub(super) how: Wording,
    /// The labels that have an age, by the number of their entry.
    pub(super) aged: BTreeMap<i32, Worded>,
}

impl PropertyFilter {
    pub(super) fn new(
        entries: &[Entry],
        names: Vec<String>,
        (known, changed): (Option<i32>, ChangedNames),
        how: Wording,
    ) -> Self {
        let mut aged = BTreeMap::new();
        collect_aged(entries, how, &mut aged);
        Self { names, known, changed, how, aged }
    }

    fn of(&self, entry: &Entry) -> Properties {
        let properties = || match self.aged.get(&entry.number) {
            Some(label) => entry.appearance.properties(label, self.how),
            None => entry.properties(self.how),
        };
        match self.known {
            Some(known) if entry.number <= known => {
                let Some(names) = self.changed.get(&entry.number) else { return Properties::new() };
                let mut all = properties();
                let value = |name: &'static str| Some((name, all.remove(name).or_else(|| default_of(name))?));
                filtered(names.iter().copied().filter_map(value).collect(), &self.names)
            }
            _ => filtered(properties(), &self.names),
        }
    }
}

fn collect_aged(entries: &[Entry], how: Wording, aged: &mut BTreeMap<i32, Worded>) {
    for entry in entries {
        aged.extend(entry.appearance.label_with_age(how).map(|label| (entry.number, label)));
        collect_aged(&entry.entries, how, aged);
    }
}

impl Type for LayoutReply {
    const SIGNATURE: &'static Signature = <(i32, Properties, Vec<OwnedValue>)>::SIGNATURE;
}

impl Serialize for LayoutReply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { entries, number, depth, filter } = self;
        let node = match find(entries, *number) {
            Some(entry) => Node::of(entry, *depth, filter),
            None => {
                let children = Children { entries, depth: *depth, filter };
                Node { number: ROOT, properties: filtered(root_properties(), &filter.names), children }
            }
        };
        node.serialize(serializer)
    }
}

/// An entry with those below it.
struct Node<'a> {
    number: i32,
    properties: Properties,
    children: Children<'a>,
}

/// The entries below another, down to `depth` levels.
struct Children<'a> {
    entries: &'a [Entry],
    depth: i32,
    filter: &'a PropertyFilter,
}

impl<'a> Node<'a> {
    fn of(entry: &'a Entry, depth: i32, filter: &'a PropertyFilter) -> Self {
        let children = Children { entries: &entry.entries, depth, filter };
        Self { number: entry.number, properties: filter.of(entry), children }
    }
}

impl Type for Node<'_> {
    const SIGNATURE: &'static Signature = LayoutReply::SIGNATURE;
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.number, &self.properties, &self.children).serialize(serializer)
    }
}

impl Serialize for Children<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { entries, depth, filter } = *self;
        let entries = if depth == 0 { &[] } else { entries };
        let mut sequence = serializer.serialize_seq(Some(entries.len()))?;
        for entry in entries {
            let node = Node::of(entry, depth.saturating_sub(1).max(-1), filter);
            sequence.serialize_element(&as_value::Serialize(&node))?;
        }
        sequence.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Changes, Layout};
    use super::*;
    use crate::tray::icon::badge;
    use crate::tray::sni::property::Property;
    use crate::tray::sni::readers::Sign;
    use crate::tray::view::{Effect, Item, ItemId, Kind, Text};
    use pilotlight_core::session::{HomeId, Key};
    use pilotlight_core::time::{Moment, Time};
    use pilotlight_core::verdict::Status;
    use pilotlight_engine::LastProgress;
    use std::collections::HashMap;
    use zbus::zvariant::serialized::Context;
    use zbus::zvariant::{DynamicType, LE, StructureBuilder, Value, serialized_size, to_bytes};

    const NOW: Wording = Wording { now: Moment::of(Time(1_700_000_000_000)), sign: Sign::Picture, spaced: false };

    /// Properties as `zvariant` values.
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
        // The conversion sorts them by name again.
        let properties: HashMap<_, _> = values(&entry.properties(NOW)).into_iter().collect();
        let below = below(&entry.entries, depth);
        let fields = StructureBuilder::new().add_field(entry.number).add_field(properties).add_field(below);
        Value::from(fields.build().unwrap())
    }

    /// Asserts that both serialize to the same bytes at any alignment within a message.
    #[track_caller]
    fn same_bytes(ours: &(impl Serialize + DynamicType), values: &(impl Serialize + DynamicType)) {
        assert_eq!(ours.signature(), values.signature());
        for offset in 0..8 {
            let context = Context::new_dbus(LE, offset);
            let (ours, values) = (to_bytes(context, ours).unwrap(), to_bytes(context, values).unwrap());
            assert_eq!(ours.to_vec(), values.to_vec(), "at offset {offset}");
        }
    }

    fn menu() -> Layout {
        let key = Key::new(HomeId::default(), "a");
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
        layout.rebuild(&[Item::text("1 needs you"), Item::Separator, row, empty], NOW, &mut Changes::default());
        layout
    }

    #[test]
    fn a_layout_serializes_like_values() {
        let layout = menu();
        assert_eq!(<(u32, LayoutReply)>::SIGNATURE.to_string_no_parens(), "u(ia{sv}av)");
        for depth in [-1, 0, 1, 2] {
            let reply = layout.reply((ROOT, depth), Vec::new(), (None, ChangedNames::new()), NOW).unwrap();
            let values = (7_u32, (ROOT, values(&root_properties()), below(&layout.entries, depth)));
            same_bytes(&(7_u32, reply), &values);
        }
        let row = &layout.entries[2];
        let reply = layout.reply((row.number, 1), Vec::new(), (None, ChangedNames::new()), NOW).unwrap();
        same_bytes(&reply, &(row.number, values(&row.properties(NOW)), below(&row.entries, 1)));
        assert!(layout.reply((99, -1), Vec::new(), (None, ChangedNames::new()), NOW).is_none());
        // As an independent reader decodes it.
        let bytes = to_bytes(
            Context::new_dbus(LE, 0),
            &layout.reply((ROOT, -1), Vec::new(), (None, ChangedNames::new()), NOW).unwrap(),
        )
        .unwrap();
        let ((number, _, below), _): ((i32, HashMap<String, OwnedValue>, Vec<OwnedValue>), _) =
            bytes.deserialize().unwrap();
        assert_eq!((number, below.len()), (ROOT, 4));
        let row: (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>) = below[2].clone().try_into().unwrap();
        assert_eq!(*row.1["label"], Value::from("⚑ billing__api"));
        assert_eq!(*row.1["icon-data"], Value::from(badge(Status::NeedsPermission).to_vec()));
        assert_eq!((&*row.1["children-display"], row.2.len()), (&Value::from("submenu"), 3));
    }

    /// `zbus` serializes a reply twice, once to learn its length. If the two differ, the bus disconnects us, and the icon
    /// is gone.
    #[test]
    fn a_layout_says_the_same_each_time_it_is_serialized() {
        let last = LastProgress::at(NOW.now.wall);
        let row = Item::action(ItemId::own(Kind::Seen), Text::since_last("Last activity", &last), Effect::Seen);
        let mut layout = Layout::default();
        layout.rebuild(&[row], NOW, &mut Changes::default());
        let reply = layout.reply((ROOT, -1), Vec::new(), (None, ChangedNames::new()), NOW).unwrap();
        let length = || serialized_size(Context::new_dbus(LE, 0), &reply).unwrap().size();
        let before = length();
        last.set(Time(NOW.now.wall.0 - 7_654_321));
        assert_eq!(length(), before);
        assert_eq!(to_bytes(Context::new_dbus(LE, 0), &reply).unwrap().len(), before);
    }

    #[test]
    fn a_layout_omits_entries_the_panel_knows_and_properties_it_did_not_ask_for() {
        let mut layout = menu();
        let known = layout.entries[2].number;
        let reply =
            layout.reply((ROOT, -1), vec!["label".to_owned()], (Some(known), ChangedNames::new()), NOW).unwrap();
        // A change while the reply is being sent does not affect it.
        layout.rebuild(&[], NOW, &mut Changes::default());
        let bytes = to_bytes(Context::new_dbus(LE, 0), &reply).unwrap();
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
    fn properties_serialize_like_values() {
        let layout = menu();
        let ours = layout.properties(&[], &[], NOW);
        assert_eq!(Vec::<(i32, Properties)>::SIGNATURE.to_string(), "a(ia{sv})");
        let all: Vec<_> = ours.iter().map(|(number, properties)| (*number, values(properties))).collect();
        assert_eq!(all.len(), 9);
        // `ItemsPropertiesUpdated` also lists unset properties.
        let unset = vec![(2, vec!["enabled"])];
        same_bytes(&(ours.clone(), unset.clone()), &(all.clone(), unset));
        same_bytes(&ours, &all);
        // `GetProperty`.
        for property in ours.iter().flat_map(|(_, properties)| properties.values()) {
            same_bytes(property, &value(property));
        }
    }
}
