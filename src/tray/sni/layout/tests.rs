//! Numbers, places and words as panels are told them.

use super::*;
use crate::core::gist::Gist;
use crate::core::time::{Span, Time};
use crate::core::verdict::Status;
use crate::tray::icon::badge;
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
    assert_eq!(said, [(b, Some("2__".into()))]);
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
fn the_header_of_an_open_menu_stays_true_while_its_rows_change() {
    let mut layout = Layout::default();
    let open = [Item::text("2 working"), Item::Separator, seen("a", "1"), seen("b", "2"), Item::text("words")];
    layout.lay_out(&open, NOW, &mut Changes::default());
    let mut changes = Changes::default();
    let next = [Item::text("1 working"), Item::Separator, seen("b", "2"), Item::text("others"), seen("c", "3")];
    layout.reword_in_place(&next, NOW, &mut changes);
    let label = |n: usize| layout.entries[n].looks.label(NOW);
    assert_eq!((label(0), label(4)), ("1 working".into(), "words".into()), "what moved is not known by its place");
    let enabled: Vec<_> = layout.entries[2..].iter().map(|entry| entry.looks.enabled).collect();
    assert_eq!(enabled, [false, true, false]);
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
    assert_eq!(changes.set[0].1.get("toggle-state"), Some(&0.into()));
}

#[test]
fn words_are_not_clicked_and_an_underline_is_no_key() {
    let mut layout = Layout::default();
    layout.lay_out(&[Item::text("a_b && c__d"), row("x", vec![seen("a", "1")])], NOW, &mut Changes::default());
    let [text, x] = numbers(&layout)[..] else { panic!("{layout:?}") };
    assert_eq!((layout.clicked(text), layout.clicked(x)), (None, None));
    assert_eq!(layout.entries[0].properties(NOW)["label"], "a__b && c____d".into());
    assert_eq!(layout.property(text, "label", NOW), Some(Some("a__b && c____d".into())));
    assert_eq!(layout.property(ROOT, "children-display", NOW), Some(Some("submenu".into())));
    assert_eq!((layout.property(x, "icon-data", NOW), layout.property(99, "label", NOW)), (Some(None), None));
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
    assert_eq!(label(&layout), "a__b — done, 1 min ago".into(), "who asks is told what is true");
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
    let picture = |status| Property::Bytes(badge(status));
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
        layout.properties(&[], &[], NOW)[0].1["accessible-desc"].clone()
    };
    assert_eq!(told(Some(Status::NeedsPermission), "⚑ a_b · c — ls"), "needs permission: a_b · c — ls".into());
    assert_eq!(told(Some(Status::Idle), "✓ ● a — done"), "new, idle: a — done".into());
    assert_eq!(told(None, "     Resume a_b"), "Resume a_b".into());
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
    assert_eq!((*number, &set["label"]), (before[0], &"1 working".into()));
}
