//! Sends GNOME's extension the type of each entry (separator, submenu or standard) only once.
//!
//! After each `LayoutUpdated` the extension calls `GetLayout` for the type properties only, then `GetGroupProperties`
//! for all properties of the entries that are new to it. Each time it receives a type, even an unchanged one, it
//! rebuilds the entry and everything below it; with forty sessions, that kept the shell busy for seconds. So a layout
//! sends it the types of new entries, with their labels, and later replies leave them out. A reader that was restarted
//! and has lost its state asks for all properties of every entry, and gets the types of those that its last layout left
//! out.

use super::property::{Properties, ROOT};

/// The properties that the extension, and no other panel, asks for in a layout.
const TYPE_PROPERTIES: [&str; 2] = ["type", "children-display"];
/// The properties sent instead: it accepts any, and asks for labels only when idle, which left rows blank while the
/// shell was busy.
const LAYOUT_PROPERTIES: [&str; 6] = ["type", "children-display", "label", "enabled", "toggle-type", "toggle-state"];
/// How many panels are remembered; more than one is rare.
const READERS_MAX: usize = 4;

/// The readers that ask for types only, and what each was sent.
#[derive(Debug, Default)]
pub(super) struct SentTypes(Vec<Reader>);

#[derive(Debug)]
struct Reader {
    /// The unique bus name.
    name: String,
    /// The highest entry whose type was sent before the last layout.
    before: i32,
    /// The highest entry whose type was sent up to and including the last layout.
    last: i32,
}

/// The properties that a layout sends to such a reader.
pub(super) fn layout_properties() -> Vec<String> {
    LAYOUT_PROPERTIES.map(String::from).into()
}

impl SentTypes {
    /// Records that a reader with this bus name asks for a layout, by parent id and depth. If it asks for types only,
    /// returns the highest entry whose type it was sent before. `last` is the highest number given out.
    pub(super) fn of_layout(&mut self, name: &str, scope: (i32, i32), names: &[String], last: i32) -> Option<i32> {
        if scope != (ROOT, -1) || names != TYPE_PROPERTIES {
            return None;
        }
        if let Some(reader) = self.0.iter_mut().find(|reader| reader.name == name) {
            (reader.before, reader.last) = (reader.last, last);
            return Some(reader.before);
        }
        if self.0.len() == READERS_MAX {
            self.0.remove(0);
        }
        self.0.push(Reader { name: name.into(), before: ROOT, last });
        Some(ROOT)
    }

    /// Removes the types that the last layout sent to this reader from a reply to `GetGroupProperties`.
    pub(super) fn remove_sent(&self, name: &str, names: &[String], reply: &mut [(i32, Properties)]) {
        let reader = self.0.iter().find(|reader| reader.name == name);
        let Some(reader) = reader.filter(|_| names.is_empty()) else { return };
        for (number, properties) in reply {
            if (reader.before + 1..=reader.last).contains(number) {
                properties.retain(|name, _| !TYPE_PROPERTIES.contains(name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a reader read a layout, then the properties of these entries. Returns the highest entry whose type the
    /// layout left out, and the entries whose types came with the properties.
    fn reads(sent: &mut SentTypes, last: i32, asks_for: &[i32]) -> (i32, Vec<i32>) {
        let known = sent.of_layout("panel", (ROOT, -1), &TYPE_PROPERTIES.map(String::from), last).unwrap();
        let entry = |&number: &i32| (number, Properties::from([("type", "x".into()), ("label", "x".into())]));
        let mut rest: Vec<_> = asks_for.iter().map(entry).collect();
        sent.remove_sent("panel", &[], &mut rest);
        assert!(rest.iter().all(|(_, properties)| properties.contains_key("label")));
        (
            known,
            rest.iter().filter(|(_, properties)| properties.contains_key("type")).map(|(number, _)| *number).collect(),
        )
    }

    #[test]
    fn a_type_is_sent_once_and_again_to_a_reader_that_lost_its_state() {
        let mut sent = SentTypes::default();
        assert_eq!(reads(&mut sent, 3, &[1, 2, 3]), (ROOT, vec![]));
        assert_eq!(reads(&mut sent, 5, &[4, 5]), (3, vec![]));
        assert_eq!(reads(&mut sent, 5, &[]), (5, vec![]));
        // The extension was switched off and on, and kept its bus name.
        assert_eq!(reads(&mut sent, 6, &[1, 2, 3, 4, 5, 6]), (5, vec![1, 2, 3, 4, 5]));
    }

    #[test]
    fn other_readers_get_all_that_they_ask_for() {
        let mut sent = SentTypes::default();
        let types = TYPE_PROPERTIES.map(String::from);
        for (scope, names) in [((ROOT, -1), &types[..1]), ((ROOT, -1), &[]), ((7, -1), &types), ((ROOT, 1), &types)] {
            assert_eq!(sent.of_layout("other", scope, names, 9), None);
        }
        sent.of_layout("panel", (ROOT, -1), &types, 9);
        let mut reply = [(1, Properties::from([("type", "x".into())]))];
        sent.remove_sent("other", &[], &mut reply);
        sent.remove_sent("panel", &types[..1], &mut reply);
        assert_eq!(reply[0].1.len(), 1);
    }
}
