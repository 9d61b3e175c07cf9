//! Sends GNOME's extension the type of each entry (separator, submenu or standard) only once.
//!
//! After each `LayoutUpdated` the extension calls `GetLayout` for the type properties only, then `GetGroupProperties`
//! for all properties of the entries that are new to it. Each time it receives a type, even an unchanged one, it
//! rebuilds the entry and everything below it; with forty sessions, that kept the shell busy for seconds. So a layout
//! sends it the types of new entries, with their labels, and later replies leave them out. A reader that was restarted
//! and has lost its state asks for all properties of every entry, and gets the types of those that its last layout left
//! out.
//!
//! Its second call also proves that it received the reply to the first. If its garbage collection loses that reply, it
//! waits for it for ever and asks for no layout again.

use super::property::{Properties, ROOT};
use std::time::{Duration, Instant};

/// The properties that the extension, and no other panel, asks for in a layout.
pub(super) const TYPE_PROPERTIES: [&str; 2] = ["type", "children-display"];
/// The properties sent instead: it accepts any, and asks for labels only when idle, which left rows blank while the
/// shell was busy.
const LAYOUT_PROPERTIES: [&str; 6] = ["type", "children-display", "label", "enabled", "toggle-type", "toggle-state"];
/// How many panels are remembered; more than one is rare.
const READERS_MAX: usize = 4;
/// How long after a layout with new entries the extension, which asks for their properties when it is idle, may take.
const PROPERTIES_MAX: Duration = Duration::from_secs(10);

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
    /// When it was sent a layout with new entries, if it has not asked for their properties since.
    owes: Option<Instant>,
}

/// The properties that a layout sends to such a reader.
pub(super) fn layout_properties() -> Vec<String> {
    LAYOUT_PROPERTIES.map(String::from).into()
}

impl SentTypes {
    /// Records that a reader with this bus name asks for a layout, by parent id and depth. If it asks for types only,
    /// returns the highest entry whose type it was sent before. `last` is the highest number given out, `newest` that of
    /// an entry in this layout.
    pub(super) fn of_layout(
        &mut self,
        name: &str,
        scope: (i32, i32),
        names: &[String],
        (last, newest): (i32, i32),
        now: Instant,
    ) -> Option<i32> {
        if scope != (ROOT, -1) || names != TYPE_PROPERTIES {
            return None;
        }
        if let Some(reader) = self.0.iter_mut().find(|reader| reader.name == name) {
            reader.owes = reader.owes.or((newest > reader.last).then_some(now));
            (reader.before, reader.last) = (reader.last, last);
            return Some(reader.before);
        }
        if self.0.len() == READERS_MAX {
            self.0.remove(0);
        }
        self.0.push(Reader { name: name.into(), before: ROOT, last, owes: Some(now) });
        Some(ROOT)
    }

    /// A reader asks for properties by entry: it received its last layout.
    pub(super) fn asks_for_properties(&mut self, name: &str) {
        if let Some(reader) = self.0.iter_mut().find(|reader| reader.name == name) {
            reader.owes = None;
        }
    }

    /// When a reader that has not asked for the properties of new entries must have lost the layout.
    pub(super) fn lost_at(&self) -> Option<Instant> {
        self.0.iter().filter_map(|reader| reader.owes).min().map(|sent| sent + PROPERTIES_MAX)
    }

    /// Forgets who owes what: the panel is given a new registration.
    pub(super) fn forgive(&mut self) {
        self.0.iter_mut().for_each(|reader| reader.owes = None);
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
        let (names, now) = (TYPE_PROPERTIES.map(String::from), Instant::now());
        let known = sent.of_layout("panel", (ROOT, -1), &names, (last, last), now).unwrap();
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
            assert_eq!(sent.of_layout("other", scope, names, (9, 9), Instant::now()), None);
        }
        sent.of_layout("panel", (ROOT, -1), &types, (9, 9), Instant::now());
        let mut reply = [(1, Properties::from([("type", "x".into())]))];
        sent.remove_sent("other", &[], &mut reply);
        sent.remove_sent("panel", &types[..1], &mut reply);
        assert_eq!(reply[0].1.len(), 1);
    }

    #[test]
    fn case_211_a_reader_that_asks_for_no_properties_of_new_entries_lost_its_layout() {
        let (types, begun) = (TYPE_PROPERTIES.map(String::from), Instant::now());
        let mut sent = SentTypes::default();
        let mut reads = |newest, now| {
            sent.of_layout("panel", (ROOT, -1), &types, (newest, newest), now);
            sent.lost_at()
        };
        assert_eq!(reads(3, begun), Some(begun + PROPERTIES_MAX));
        assert_eq!(reads(5, begun + PROPERTIES_MAX / 2), Some(begun + PROPERTIES_MAX), "the first one is still out");
        sent.asks_for_properties("panel");
        assert_eq!(sent.lost_at(), None);
        // Without new entries there is nothing to ask for.
        sent.of_layout("panel", (ROOT, -1), &types, (5, 4), begun);
        assert_eq!(sent.lost_at(), None);
        sent.of_layout("panel", (ROOT, -1), &types, (6, 6), begun);
        assert!(sent.lost_at().is_some());
        sent.forgive();
        assert_eq!(sent.lost_at(), None);
    }
}
