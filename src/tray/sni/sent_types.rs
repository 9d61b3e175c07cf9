//! Sends GNOME's extension all properties of an entry once, with the layout that has it first.
//!
//! After each `LayoutUpdated` the extension calls `GetLayout` for the type properties only, then `GetGroupProperties`
//! for all properties of the entries that are new to it. Each time it receives a type, even an unchanged one, it
//! rebuilds the entry and everything below it; with forty sessions, that kept the shell busy for seconds. And it resets
//! each entry that is in the reply to its second call, the type too: it is rebuilt as a row without words, to which the
//! properties of the reply are then applied one by one. So a layout sends it all properties of new entries, and
//! the reply to its second call leaves those entries out: nothing of them is reset. Entries that it asks for once more, or that
//! its last layout left out, as it was restarted and has lost its state, are in the reply with all of their properties.
//!
//! Its second call also proves that it received the reply to the first. If its garbage collection loses that reply, it
//! waits for it for ever and asks for no layout again. It drops a reply that it no longer waits for because it asked
//! again: until its second call, every layout has all properties of what is new since.
//!
//! A change of properties that is signalled while the menu is closed makes it ask for all properties of everything when the
//! menu is opened, and replace all entries on the screen. So such a change goes into the next layout, too: of an entry that it
//! knows, it takes up what a layout has. And it asks whether what it has is current not only when the menu is opened, which it
//! reports before, but also when it is given the menu.
//!
//! It adds new entries to the menu itself one by one, whenever it is idle, each at the place that it had in its layout. A
//! second layout that comes before they are there mixes up the order, and it stays mixed up. So until they must be there, a
//! layout of another structure has new numbers alone: it drops what it has not added yet.

use super::property::{Properties, ROOT};
use std::time::{Duration, Instant};

/// The properties that the extension, and no other panel, asks for in a layout.
pub(super) const TYPE_PROPERTIES: [&str; 2] = ["type", "children-display"];
/// The properties sent instead, which are all that it shows of rows with marks: it accepts any.
const LAYOUT_PROPERTIES: [&str; 7] =
    ["type", "children-display", "label", "enabled", "visible", "toggle-type", "toggle-state"];
/// How many panels are remembered; more than one is rare.
const READERS_MAX: usize = 4;
/// How long after a layout with new entries the extension, which asks for their properties when it is idle, may take.
const PROPERTIES_MAX: Duration = Duration::from_secs(10);

/// How long after it asked for the properties of new entries it may still be adding them, one by one whenever it is idle. A
/// busy machine takes 2 s.
const PLACED_WITHIN: Duration = Duration::from_secs(5);

/// The readers that ask for types only, and what each was sent.
#[derive(Debug, Default)]
pub(super) struct SentTypes(Vec<Reader>);

#[derive(Debug)]
struct Reader {
    /// The unique bus name.
    name: String,
    /// The highest entry that it surely has: the layout after which it last asked for properties was up to here.
    before: i32,
    /// The highest entry of its last layout.
    last: i32,
    /// When it was sent a layout with new entries, if it has not asked for their properties since.
    owes: Option<Instant>,
    /// When it last asked for the properties of new entries.
    asked: Option<Instant>,
}

/// The properties that a layout sends to such a reader.
pub(super) fn layout_properties() -> Vec<String> {
    LAYOUT_PROPERTIES.map(String::from).into()
}

impl SentTypes {
    /// Records that a reader with this bus name asks for a layout, by parent id and depth. If it asks for types only,
    /// returns the highest entry that it surely has. `last` is the highest number given out, `newest` that of
    /// an entry in this layout.
    pub(super) fn of_layout(
        &mut self,
        name: &str,
        scope: (i32, i32),
        names: &[String],
        (last, newest): (i32, i32),
        now: Instant,
    ) -> Option<i32> {
        if !asks_for_types(scope, names) {
            return None;
        }
        if let Some(reader) = self.0.iter_mut().find(|reader| reader.name == name) {
            if reader.owes.is_none() {
                reader.before = reader.last;
            }
            reader.owes = reader.owes.or((newest > reader.last).then_some(now));
            reader.last = last;
            return Some(reader.before);
        }
        if self.0.len() == READERS_MAX {
            self.0.remove(0);
        }
        self.0.push(Reader { name: name.into(), before: ROOT, last, owes: Some(now), asked: None });
        Some(ROOT)
    }

    /// A reader asks for these properties of entries: it received its last layout. Removes from the reply the entries
    /// that came with that.
    pub(super) fn of_properties(
        &mut self,
        name: &str,
        names: &[String],
        reply: &mut Vec<(i32, Properties)>,
        now: Instant,
    ) {
        let reader = self.0.iter_mut().find(|reader| reader.name == name);
        let Some(reader) = reader.filter(|_| names.is_empty()) else { return };
        let sent = reader.before + 1..=reader.last;
        reply.retain(|(number, _)| !sent.contains(number));
        if reader.owes.take().is_some() {
            reader.asked = Some(now);
        }
        reader.before = reader.last;
    }

    /// Whether this is the bus name of such a reader.
    pub(super) fn is_reader(&self, name: &str) -> bool {
        self.0.iter().any(|reader| reader.name == name)
    }

    /// Whether a reader may still be adding the entries of its last layout.
    pub(super) fn is_placing(&self, now: Instant) -> bool {
        let has_asked = |at: Instant| now.saturating_duration_since(at) < PLACED_WITHIN;
        self.0.iter().any(|reader| reader.owes.is_some() || reader.asked.is_some_and(has_asked))
    }

    /// When a reader that has not asked for the properties of new entries must have lost the layout.
    pub(super) fn lost_at(&self) -> Option<Instant> {
        self.0.iter().filter_map(|reader| reader.owes).min().map(|sent| sent + PROPERTIES_MAX)
    }

    /// Forgets who owes what: the panel is given a new registration.
    pub(super) fn forgive(&mut self) {
        self.0.iter_mut().for_each(|reader| reader.owes = None);
    }
}

/// Whether a layout is asked for as GNOME's extension does.
pub(super) fn asks_for_types(scope: (i32, i32), names: &[String]) -> bool {
    scope == (ROOT, -1) && names == TYPE_PROPERTIES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a reader read a layout, then the properties of these entries. Returns the highest entry that the layout left
    /// out, and the entries that came with the properties.
    fn reads(sent: &mut SentTypes, last: i32, asks_for: &[i32]) -> (i32, Vec<i32>) {
        let (names, now) = (TYPE_PROPERTIES.map(String::from), Instant::now());
        let known = sent.of_layout("panel", (ROOT, -1), &names, (last, last), now).unwrap();
        (known, asks(sent, asks_for))
    }

    fn asks(sent: &mut SentTypes, asks_for: &[i32]) -> Vec<i32> {
        let entry = |&number: &i32| (number, Properties::from([("type", "x".into()), ("label", "x".into())]));
        let mut reply: Vec<_> = asks_for.iter().map(entry).collect();
        sent.of_properties("panel", &[], &mut reply, Instant::now());
        assert!(reply.iter().all(|(_, properties)| properties.len() == 2), "what it resets is sent whole");
        reply.into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn case_650_an_entry_is_sent_once_and_whole_so_that_nothing_of_it_is_reset() {
        let mut sent = SentTypes::default();
        assert_eq!(reads(&mut sent, 3, &[1, 2, 3]), (ROOT, vec![]));
        assert_eq!(reads(&mut sent, 5, &[4, 5]), (3, vec![]));
        assert_eq!(asks(&mut sent, &[4, 5]), [4, 5], "it asks once more");
        assert_eq!(reads(&mut sent, 5, &[]), (5, vec![]));
        // The extension was switched off and on, and kept its bus name.
        assert_eq!(reads(&mut sent, 6, &[1, 2, 3, 4, 5, 6]), (5, vec![1, 2, 3, 4, 5]));
    }

    #[test]
    fn case_651_a_layout_that_was_dropped_for_the_next_one_is_in_that_again() {
        let (mut sent, types, now) = (SentTypes::default(), TYPE_PROPERTIES.map(String::from), Instant::now());
        reads(&mut sent, 3, &[1, 2, 3]);
        let mut layout = |last| sent.of_layout("panel", (ROOT, -1), &types, (last, last), now);
        assert_eq!((layout(5), layout(5), layout(6)), (Some(3), Some(3), Some(3)));
        assert_eq!(asks(&mut sent, &[4, 5, 6]), Vec::<i32>::new());
        assert_eq!(reads(&mut sent, 7, &[7]), (6, vec![]));
    }

    #[test]
    fn other_readers_get_all_that_they_ask_for() {
        let mut sent = SentTypes::default();
        let types = TYPE_PROPERTIES.map(String::from);
        for (scope, names) in [((ROOT, -1), &types[..1]), ((ROOT, -1), &[]), ((7, -1), &types), ((ROOT, 1), &types)] {
            assert_eq!(sent.of_layout("other", scope, names, (9, 9), Instant::now()), None);
        }
        sent.of_layout("panel", (ROOT, -1), &types, (9, 9), Instant::now());
        let mut reply = vec![(1, Properties::from([("type", "x".into())]))];
        sent.of_properties("other", &[], &mut reply, Instant::now());
        sent.of_properties("panel", &types[..1], &mut reply, Instant::now());
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
        sent.of_properties("panel", &[], &mut Vec::new(), begun);
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
