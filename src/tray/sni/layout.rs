//! The menu as a panel knows it: a tree of entries, each with a number. Pure: what is to be said on the bus comes out as values.
//!
//! An entry keeps its number, whatever its words, and another entry never gets that number. So a click that is still on its way
//! when the menu changes does what its entry said, or nothing. Among those that change places some get new numbers, because
//! GNOME's extension leaves a number that it knows where it was ([`kept`]).
//!
//! Places change only while the menu is closed: what stands under the pointer stays there. Meanwhile words change in place, and
//! what is gone is disabled.

use crate::core::fleet::mark;
use crate::core::time::Moment;
use crate::core::verdict::Status;
use crate::tray::icon::badge;
use crate::tray::view::{Item, ItemId, NEWS, Text};
use std::collections::{BTreeMap, HashMap};
use zbus::zvariant::{StructureBuilder, Value};

/// The number that stands for the whole menu.
pub(super) const ROOT: i32 = 0;

/// The properties of an entry that a panel is told of, by their names.
pub(super) type Properties = HashMap<&'static str, Value<'static>>;

/// What changed without anything changing its place.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Entries by their numbers, with the properties that are other ones now.
    pub(super) set: Vec<(i32, Properties)>,
    /// The properties that are what they are where nothing is said.
    pub(super) unset: Vec<(i32, Vec<&'static str>)>,
}

/// The entries, and which numbers were given to them.
#[derive(Debug, Default)]
pub(super) struct Layout {
    entries: Vec<Entry>,
    last: i32,
}

#[derive(Debug)]
struct Entry {
    number: i32,
    /// Which item this is; none for words and lines.
    id: Option<ItemId>,
    looks: Looks,
    /// Its words as panels were last told of a change in them.
    said: String,
    entries: Vec<Self>,
}

/// How an entry looks.
#[derive(Clone, Debug, PartialEq)]
struct Looks {
    text: Option<Text>,
    enabled: bool,
    picture: Option<Status>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Line,
    Submenu,
    /// Whether it has its check mark; none when a panel may have changed that by itself.
    Check(Option<bool>),
}

impl Looks {
    fn of(item: &Item) -> Self {
        let (picture, form) = match item {
            Item::Separator => (None, Form::Line),
            Item::Text(_) | Item::Action { .. } => (None, Form::Plain),
            Item::Check { checked, .. } => (None, Form::Check(Some(*checked))),
            Item::Submenu { picture, .. } => (*picture, Form::Submenu),
        };
        Self { text: item.words().cloned(), enabled: item.is_enabled(), picture, form }
    }

    /// Its words as they are true now.
    fn label(&self, now: Moment) -> String {
        self.text.as_ref().map(|text| text.at(now)).unwrap_or_default()
    }

    fn properties(&self, label: &str) -> Properties {
        let mut properties = Properties::new();
        if self.form == Form::Line {
            properties.insert("type", "separator".into());
            return properties;
        }
        properties.insert("label", escaped(label).into());
        if !self.enabled {
            properties.insert("enabled", false.into());
        }
        if let Some(status) = self.picture {
            properties.insert("icon-data", badge(status).to_vec().into());
        }
        // Without it, MATE's indicators go on saying the first words that an entry had.
        let spoken = self.picture.map_or_else(|| label.trim_start().to_owned(), |status| spoken(status, label));
        properties.insert("accessible-desc", spoken.into());
        match self.form {
            Form::Submenu => {
                properties.insert("children-display", "submenu".into());
            }
            Form::Check(checked) => {
                properties.insert("toggle-type", "checkmark".into());
                properties.insert("toggle-state", i32::from(checked == Some(true)).into());
            }
            Form::Plain | Form::Line => {}
        }
        properties
    }
}

impl Layout {
    /// Lays the menu out anew. Of an entry that keeps its number, what is other than it was is told: GNOME's extension reads the
    /// properties of new numbers alone.
    pub(super) fn lay_out(&mut self, items: &[Item], now: Moment, changes: &mut Changes) {
        let before = std::mem::take(&mut self.entries);
        self.entries = laid_out(items, before, &mut self.last, now, changes);
    }

    /// Takes the words of these items over, where they stand in the same places. False, and nothing is changed, where they do not.
    pub(super) fn reword(&mut self, items: &[Item], now: Moment, changes: &mut Changes) -> bool {
        let same = has_places_of(&self.entries, items);
        if same {
            reword(&mut self.entries, items, now, changes);
        }
        same
    }

    /// Words the ages as they are true now.
    pub(super) fn renew(&mut self, now: Moment, changes: &mut Changes) {
        renew(&mut self.entries, now, changes);
    }

    /// Takes over what can be while every entry stays where it is: the words of what is still there. The rest is disabled.
    pub(super) fn reword_in_place(&mut self, items: &[Item], now: Moment, changes: &mut Changes) {
        reword(&mut self.entries, items, now, changes);
    }

    /// A panel was clicked on this entry: the item, where it is one that can be clicked now.
    pub(super) fn clicked(&mut self, number: i32) -> Option<ItemId> {
        let entry = find_mut(&mut self.entries, number)?;
        let id = entry.id.clone().filter(|_| entry.looks.enabled && entry.looks.form != Form::Submenu);
        if let Form::Check(checked) = &mut entry.looks.form {
            *checked = None;
        }
        id
    }

    /// Whether there is such an entry.
    pub(super) fn has(&self, number: i32) -> bool {
        number == ROOT || find(&self.entries, number).is_some()
    }

    /// An entry with so many levels below it (all where that is negative), as `GetLayout` tells it.
    pub(super) fn tell(&self, number: i32, depth: i32, names: &[String], now: Moment) -> Option<Told> {
        if number == ROOT {
            let mut properties = Properties::new();
            properties.insert("children-display", "submenu".into());
            return Some((ROOT, chosen(properties, names), told(&self.entries, depth, names, now)));
        }
        let entry = find(&self.entries, number)?;
        Some((number, chosen(entry.properties(now), names), told(&entry.entries, depth, names, now)))
    }

    /// The properties of these entries, or of all.
    pub(super) fn properties(&self, numbers: &[i32], names: &[String], now: Moment) -> Vec<(i32, Properties)> {
        let mut all = BTreeMap::new();
        gather(&self.entries, &mut all);
        let wanted = all.into_iter().filter(|(number, _)| numbers.is_empty() || numbers.contains(number));
        wanted.map(|(number, entry)| (number, chosen(entry.properties(now), names))).collect()
    }
}

impl Entry {
    fn properties(&self, now: Moment) -> Properties {
        self.looks.properties(&self.looks.label(now))
    }
}

/// Number, properties, entries.
pub(super) type Told = (i32, Properties, Vec<Value<'static>>);

fn told(entries: &[Entry], depth: i32, names: &[String], now: Moment) -> Vec<Value<'static>> {
    if depth == 0 {
        return Vec::new();
    }
    let told = |entry: &Entry| {
        let below = told(&entry.entries, depth.saturating_sub(1).max(-1), names, now);
        let fields = StructureBuilder::new().add_field(entry.number).add_field(chosen(entry.properties(now), names));
        fields.add_field(below).build().ok().map(Value::from)
    };
    entries.iter().filter_map(told).collect()
}

/// Those of these names; all where none is named.
fn chosen(mut properties: Properties, names: &[String]) -> Properties {
    properties.retain(|name, _| names.is_empty() || names.iter().any(|wanted| wanted == name));
    properties
}

/// Which of the entries of before each item is, where it keeps its number. GNOME's extension puts a number that is new at its
/// place among the old ones, those that are gone included, then takes these away, and moves none. So what it knows already must
/// stand in the order of before; and where something new follows, nothing in front of it may be gone.
fn kept(before: &[Entry], items: &[Item]) -> Vec<Option<usize>> {
    let same = |entry: &Entry, item: &Item| entry.id.as_ref() == item.id() && same_form(entry, item);
    let mut kept = vec![None; items.len()];
    let (mut first, mut end) = (items.len(), before.len());
    while first > 0
        && let Some(at) = before[..end].iter().rposition(|entry| same(entry, &items[first - 1]))
    {
        (first, end) = (first - 1, at);
        kept[first] = Some(at);
    }
    let mut next = 0;
    for (kept, item) in kept.iter_mut().zip(&items[..first]) {
        if next < end && same(&before[next], item) {
            *kept = Some(next);
            next += 1;
        }
    }
    kept
}

fn laid_out(items: &[Item], before: Vec<Entry>, last: &mut i32, now: Moment, changes: &mut Changes) -> Vec<Entry> {
    let kept = kept(&before, items);
    let mut before: Vec<_> = before.into_iter().map(Some).collect();
    let known: Vec<_> = kept.into_iter().map(|at| before.get_mut(at?)?.take()).collect();
    let lay = |(item, known): (&Item, Option<Entry>)| {
        let looks = Looks::of(item);
        let (number, said, below) = match known {
            Some(entry) if entry.looks == looks => (entry.number, entry.said, entry.entries),
            Some(entry) => {
                let said = looks.label(now);
                changes.note(entry.number, (&entry.looks, &entry.said), (&looks, &said));
                (entry.number, said, entry.entries)
            }
            None => {
                *last = last.checked_add(1).unwrap_or(1);
                (*last, looks.label(now), Vec::new())
            }
        };
        let entries = laid_out(item.children(), below, last, now, changes);
        Entry { number, id: item.id().cloned(), said, looks, entries }
    };
    items.iter().zip(known).map(lay).collect()
}

fn has_places_of(entries: &[Entry], items: &[Item]) -> bool {
    entries.len() == items.len()
        && entries.iter().zip(items).all(|(entry, item)| {
            entry.id.as_ref() == item.id() && same_form(entry, item) && has_places_of(&entry.entries, item.children())
        })
}

/// Panels make another kind of widget of each form, and do not change it later.
fn same_form(entry: &Entry, item: &Item) -> bool {
    std::mem::discriminant(&entry.looks.form) == std::mem::discriminant(&Looks::of(item).form)
}

fn reword(entries: &mut [Entry], items: &[Item], now: Moment, changes: &mut Changes) {
    let same = has_places_of(entries, items);
    for (at, entry) in entries.iter_mut().enumerate() {
        let item = match &entry.id {
            _ if same => items.get(at),
            Some(id) => items.iter().find(|item| item.id() == Some(id)).filter(|item| same_form(entry, item)),
            // Which words they were is not known: they stay.
            None => continue,
        };
        let looks = item.map_or_else(|| Looks { enabled: false, ..entry.looks.clone() }, Looks::of);
        if looks != entry.looks {
            let said = looks.label(now);
            changes.note(entry.number, (&entry.looks, &entry.said), (&looks, &said));
            (entry.looks, entry.said) = (looks, said);
        }
        if let Some(item) = item {
            reword(&mut entry.entries, item.children(), now, changes);
        }
    }
}

fn renew(entries: &mut [Entry], now: Moment, changes: &mut Changes) {
    for entry in entries {
        if entry.looks.text.as_ref().is_some_and(Text::has_age) {
            let said = entry.looks.label(now);
            changes.note(entry.number, (&entry.looks, &entry.said), (&entry.looks, &said));
            entry.said = said;
        }
        renew(&mut entry.entries, now, changes);
    }
}

impl Changes {
    fn note(&mut self, number: i32, (before, said): (&Looks, &str), (now, says): (&Looks, &str)) {
        let (mut set, before_set) = (now.properties(says), before.properties(said));
        let unset: Vec<_> = before_set.keys().copied().filter(|name| !set.contains_key(name)).collect();
        let unsure = matches!(before.form, Form::Check(None));
        set.retain(|name, value| before_set.get(name) != Some(value) || (unsure && *name == "toggle-state"));
        if !set.is_empty() {
            self.set.push((number, set));
        }
        if !unset.is_empty() {
            self.unset.push((number, unset));
        }
    }

    /// Whether there is anything to say.
    pub(super) const fn is_empty(&self) -> bool {
        self.set.is_empty() && self.unset.is_empty()
    }
}

fn find(entries: &[Entry], number: i32) -> Option<&Entry> {
    entries.iter().find_map(|entry| if entry.number == number { Some(entry) } else { find(&entry.entries, number) })
}

fn find_mut(entries: &mut [Entry], number: i32) -> Option<&mut Entry> {
    entries.iter_mut().find_map(|entry| match entry.number == number {
        true => Some(entry),
        false => find_mut(&mut entry.entries, number),
    })
}

fn gather<'a>(entries: &'a [Entry], all: &mut BTreeMap<i32, &'a Entry>) {
    for entry in entries {
        all.insert(entry.number, entry);
        gather(&entry.entries, all);
    }
}

/// A row for a screen reader: the status in words where the mark is.
fn spoken(status: Status, label: &str) -> String {
    let words = label.strip_prefix(mark(status).0).unwrap_or(label).trim_start();
    let (news, words) = words.strip_prefix(NEWS).map_or(("", words), |words| ("new, ", words));
    format!("{news}{}: {words}", status.name().replace('-', " "))
}

/// An underline marks the letter behind it as a key of the menu; two of them are one.
fn escaped(text: &str) -> String {
    text.replace('_', "__")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::gist::Gist;
    use crate::core::time::{Span, Time};
    use crate::tray::view::{Effect, Kind};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    const NOW: Moment = Moment::of(Time(1_700_000_000_000));

    fn seen(id: &str, text: &str) -> Item {
        Item::action(ItemId::of(&(0, id.into()), Kind::Seen), text, Effect::Seen)
    }

    fn row(id: &str, items: Vec<Item>) -> Item {
        Item::submenu(ItemId::of(&(0, id.into()), Kind::Row), id, items)
    }

    fn numbers(layout: &Layout) -> Vec<i32> {
        layout.entries.iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn an_entry_keeps_its_number_and_no_other_ever_gets_it() {
        let mut layout = Layout::default();
        let mut laid_out = |items: &[Item]| {
            layout.lay_out(items, NOW, &mut Changes::default());
            numbers(&layout)
        };
        let before = laid_out(&[seen("a", "1"), Item::Separator, seen("b", "2")]);
        let with_c = laid_out(&[seen("a", "1"), seen("c", "3"), Item::Separator, seen("b", "2")]);
        assert_eq!([with_c[0], with_c[2], with_c[3]], before[..], "from the top and from the end");
        assert!(![ROOT].iter().chain(&before).any(|number| *number == with_c[1]));
        let without_a = laid_out(&[seen("c", "3"), Item::Separator, seen("b", "2")]);
        assert_eq!(without_a, with_c[1..]);
        let again = laid_out(&[seen("a", "1"), seen("c", "3"), Item::Separator, seen("b", "2")]);
        assert_eq!(again[1..], without_a[..]);
        assert!(!with_c.contains(&again[0]), "what comes back has another number");
        assert_eq!((layout.clicked(before[0]), layout.has(before[0])), (None, false), "what is gone is not clicked");
    }

    /// What GNOME's extension (AppIndicator 46) shows after another layout.
    fn shown_by_gnome(shown: &[i32], layout: &[i32]) -> Vec<i32> {
        let (mut after, known) = (shown.to_vec(), shown);
        for (at, number) in layout.iter().enumerate().filter(|(_, number)| !known.contains(number)) {
            after.insert(at.min(after.len()), *number);
        }
        after.retain(|number| layout.contains(number));
        after
    }

    proptest! {
        #[test]
        fn gnome_shows_every_entry_in_its_place(
            menus in vec(subsequence(('a'..='k').collect::<Vec<_>>(), 0..=11).prop_shuffle(), 1..6)
        ) {
            let (mut layout, mut shown) = (Layout::default(), Vec::new());
            for menu in menus {
                let items: Vec<_> = menu.iter().map(|id| seen(&id.to_string(), "")).collect();
                layout.lay_out(&items, NOW, &mut Changes::default());
                shown = shown_by_gnome(&shown, &numbers(&layout));
                prop_assert_eq!(&shown, &numbers(&layout));
            }
        }
    }

    #[test]
    fn what_comes_goes_or_moves_leaves_the_others_their_numbers() {
        let mut layout = Layout::default();
        let mut laid_out = |ids: &str| {
            let items: Vec<_> = ids.chars().map(|id| seen(&id.to_string(), "")).collect();
            layout.lay_out(&items, NOW, &mut Changes::default());
            numbers(&layout)
        };
        let new = |before: &[i32], after: &[i32]| after.iter().filter(|number| !before.contains(number)).count();
        let (all, came) = (laid_out("abcd"), laid_out("axbcyd"));
        assert_eq!(new(&all, &came), 2);
        let gone = laid_out("xcyd");
        assert_eq!(new(&came, &gone), 0);
        let moved_up = laid_out("dxcy");
        assert_eq!(new(&gone, &moved_up), 1);
        assert_eq!(new(&moved_up, &laid_out("xdcy")), 1);
    }

    #[test]
    fn what_moves_into_another_submenu_has_another_number() {
        let mut layout = Layout::default();
        layout.lay_out(&[row("x", vec![seen("a", "1")]), row("y", vec![])], NOW, &mut Changes::default());
        let before = layout.entries[0].entries[0].number;
        layout.lay_out(&[row("x", vec![]), row("y", vec![seen("a", "1")])], NOW, &mut Changes::default());
        assert_ne!(layout.entries[1].entries[0].number, before);
        assert!(!layout.has(before));
    }

    #[test]
    fn where_nothing_changes_its_place_only_what_changed_is_said() {
        let (mut layout, mut changes) = (Layout::default(), Changes::default());
        layout.lay_out(&[seen("a", "one"), seen("b", "two_")], NOW, &mut Changes::default());
        let b = numbers(&layout)[1];
        assert!(!layout.reword(&[seen("b", "two"), seen("a", "one")], NOW, &mut changes), "places changed");
        assert!(layout.reword(&[seen("a", "one"), seen("b", "2_")], NOW, &mut changes));
        let said: Vec<_> = changes.set.iter().map(|(number, set)| (*number, set.get("label").cloned())).collect();
        assert_eq!(said, [(b, Some(Value::from("2__")))]);
        // The label, and what a screen reader says.
        assert_eq!(changes.set[0].1.len(), 2);
    }

    #[test]
    fn while_every_entry_stays_where_it_is_what_is_gone_is_disabled() {
        let (mut layout, mut changes) = (Layout::default(), Changes::default());
        layout.lay_out(
            &[seen("a", "1"), row("x", vec![Item::text("words"), seen("b", "2")]), seen("c", "3")],
            NOW,
            &mut Changes::default(),
        );
        let [a, x, c] = numbers(&layout)[..] else { panic!("{layout:?}") };
        let b = layout.entries[1].entries[1].number;
        layout.reword_in_place(&[seen("c", "three"), row("x", vec![seen("d", "4")])], NOW, &mut changes);
        assert_eq!(numbers(&layout), [a, x, c]);
        assert_eq!((layout.clicked(a), layout.clicked(b)), (None, None));
        assert!(layout.clicked(c).is_some());
        let set: Vec<_> = changes.set.iter().map(|(number, _)| *number).collect();
        assert_eq!(set, [a, b, c]);
        // When it closes, everything is where it belongs.
        layout.lay_out(&[seen("c", "three"), row("x", vec![seen("d", "4")])], NOW, &mut Changes::default());
        assert_eq!(layout.clicked(numbers(&layout)[0]).unwrap().to_string(), seen("c", "").id().unwrap().to_string());
        assert_eq!(numbers(&layout).len(), 2);
    }

    #[test]
    fn a_check_mark_that_a_panel_may_have_changed_is_said_again() {
        let id = ItemId::own(Kind::StartAtLogin);
        let check = |checked| Item::Check {
            id: id.clone(),
            text: "Start at login".into(),
            enabled: true,
            checked,
            effect: Effect::StartAtLogin(!checked),
        };
        let (mut layout, mut changes) = (Layout::default(), Changes::default());
        layout.lay_out(&[check(false)], NOW, &mut Changes::default());
        assert!(layout.reword(&[check(false)], NOW, &mut changes) && changes.is_empty());
        assert_eq!(layout.clicked(numbers(&layout)[0]), Some(id.clone()));
        assert!(layout.reword(&[check(false)], NOW, &mut changes));
        assert_eq!(changes.set[0].1.get("toggle-state"), Some(&Value::from(0)));
    }

    #[test]
    fn words_are_not_clicked_and_an_underline_is_no_key() {
        let mut layout = Layout::default();
        layout.lay_out(&[Item::text("a_b && c__d"), row("x", vec![seen("a", "1")])], NOW, &mut Changes::default());
        let [text, x] = numbers(&layout)[..] else { panic!("{layout:?}") };
        assert_eq!((layout.clicked(text), layout.clicked(x)), (None, None));
        assert_eq!(layout.entries[0].properties(NOW)["label"], Value::from("a__b && c____d"));
        let (_, _, all) = layout.tell(ROOT, -1, &[], NOW).unwrap();
        let (_, _, one) = layout.tell(ROOT, 1, &[], NOW).unwrap();
        assert_eq!((all.len(), one.len()), (2, 2));
        assert_ne!(all, one, "one level has no submenus");
        assert_eq!(layout.tell(x, 0, &["label".to_owned()], NOW).unwrap().1.len(), 1);
        assert_eq!(layout.properties(&[x], &[], NOW).len(), 1);
        assert_eq!(layout.properties(&[], &[], NOW).len(), 3);
    }

    /// Of an age nobody is told until the menu is about to be shown, and then of what it is by then, in the same places.
    #[test]
    fn ages_are_worded_when_they_are_asked_for() {
        let done = Gist::Ago("done".into(), NOW.wall);
        let aged = || Item::action(ItemId::own(Kind::Seen), Text::row("a_b".into(), done.clone()), Effect::Seen);
        let (mut layout, later) = (Layout::default(), NOW.plus(Span::seconds(65)));
        layout.lay_out(&[aged(), seen("b", "two")], NOW, &mut Changes::default());
        let (number, mut changes) = (numbers(&layout)[0], Changes::default());
        assert!(layout.reword(&[aged(), seen("b", "two")], later, &mut changes) && changes.is_empty());
        let label = |layout: &Layout| layout.properties(&[number], &[], later)[0].1["label"].clone();
        assert_eq!(label(&layout), Value::from("a__b — done, 1 min ago"), "who asks is told what is true");
        layout.renew(later, &mut changes);
        let said: Vec<_> = changes.set.iter().map(|(number, set)| (*number, set["label"].clone())).collect();
        assert_eq!((said, changes.unset.len()), (vec![(number, label(&layout))], 0));
        let mut again = Changes::default();
        layout.renew(later.plus(Span::seconds(30)), &mut again);
        assert!(again.is_empty(), "true to the step");
    }

    #[test]
    fn a_row_has_the_picture_of_its_status() {
        let with = |status| {
            let id = ItemId::of(&(0, "a".into()), Kind::Row);
            Item::Submenu { id, text: "a".into(), picture: Some(status), items: Vec::new() }
        };
        let (mut layout, mut changes) = (Layout::default(), Changes::default());
        layout.lay_out(&[with(Status::Idle)], NOW, &mut Changes::default());
        let picture = |status| Value::from(badge(status).to_vec());
        assert_eq!(layout.properties(&[], &[], NOW)[0].1["icon-data"], picture(Status::Idle));
        assert!(layout.reword(&[with(Status::Stuck)], NOW, &mut changes));
        assert_eq!((changes.set[0].1.len(), &changes.set[0].1["icon-data"]), (2, &picture(Status::Stuck)));
    }

    #[test]
    fn a_screen_reader_is_told_the_status_in_words() {
        let told = |picture, label: &str| {
            let id = ItemId::of(&(0, "x".into()), Kind::Row);
            let item = Item::Submenu { id, text: label.into(), picture, items: Vec::new() };
            let mut layout = Layout::default();
            layout.lay_out(&[item], NOW, &mut Changes::default());
            String::try_from(layout.properties(&[], &[], NOW)[0].1["accessible-desc"].try_clone().unwrap()).unwrap()
        };
        assert_eq!(told(Some(Status::NeedsPermission), "⚑ a_b · c — ls"), "needs permission: a_b · c — ls");
        assert_eq!(told(Some(Status::Idle), "✓ ● a — done"), "new, idle: a — done");
        assert_eq!(told(None, "     Resume a_b"), "Resume a_b");
    }

    /// GNOME's extension reads the properties of an entry once, by its number: in a menu that was laid out anew it showed the
    /// words of before.
    #[test]
    fn an_entry_that_keeps_its_number_is_told_when_its_words_are_others() {
        let (mut layout, mut changes) = (Layout::default(), Changes::default());
        layout.lay_out(&[Item::text("No session is open"), seen("a", "one")], NOW, &mut changes);
        assert!(changes.is_empty(), "{changes:?}");
        let before = numbers(&layout);
        layout.lay_out(&[Item::text("1 working"), seen("b", "new"), seen("a", "one")], NOW, &mut changes);
        assert_eq!(numbers(&layout)[0], before[0]);
        let [(number, set)] = &changes.set[..] else { panic!("{changes:?}") };
        assert_eq!((*number, &set["label"]), (before[0], &Value::from("1 working")));
    }
}
