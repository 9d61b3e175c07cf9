//! Numbers, order and properties as panels receive them.

use super::*;
use crate::tray::icon::badge;
use crate::tray::sni::readers::Sign;
use crate::tray::view::{COLUMNS, Effect, ItemId, Kind, Lead, RowName, Text};
use pilotlight_core::order::{Operation, Order};
use pilotlight_core::session::{HomeId, Key};
use pilotlight_core::short_reason::ShortReason;
use pilotlight_core::time::Moment;
use pilotlight_core::time::{Span, Time};
use pilotlight_core::verdict::Status;
use pilotlight_engine::LastProgress;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use unicode_width::UnicodeWidthStr;

const NOW: Wording = Wording { now: Moment::of(Time(1_700_000_000_000)), sign: Sign::Mark, spaced: false };
const DRAWN: Wording = Wording { sign: Sign::Picture, ..NOW };

fn seen(id: &str, text: &str) -> Item {
    Item::action(ItemId::of(&Key::new(HomeId::default(), id), Kind::Seen), text, Effect::Seen)
}

fn row(id: &str, items: Vec<Item>) -> Item {
    Item::submenu(ItemId::of(&Key::new(HomeId::default(), id), Kind::Row), id, items)
}

fn id_of(click: Click) -> ItemId {
    let Click::Item(id, _) = click else { panic!("{click:?}") };
    id
}

/// A click on this item.
fn clicked(item: &Item) -> Option<Click> {
    Some(Click::Item(item.id()?.clone(), item.effect()?.clone()))
}

fn numbers(layout: &Layout) -> Vec<i32> {
    layout.entries.iter().map(|entry| entry.number).collect()
}

#[test]
fn an_entry_keeps_its_number_which_is_never_reused() {
    let mut layout = Layout::default();
    let mut rebuilt = |items: &[Item]| {
        layout.rebuild(items, NOW, &mut Changes::default());
        numbers(&layout)
    };
    let before = rebuilt(&[seen("a", "1"), Item::Separator, seen("b", "2")]);
    let with_c = rebuilt(&[seen("a", "1"), seen("c", "3"), Item::Separator, seen("b", "2")]);
    assert_eq!([with_c[0], with_c[2], with_c[3]], before[..], "matched from both ends");
    assert!(![ROOT].iter().chain(&before).any(|number| *number == with_c[1]));
    let without_a = rebuilt(&[seen("c", "3"), Item::Separator, seen("b", "2")]);
    assert_eq!(without_a, with_c[1..]);
    let again = rebuilt(&[seen("a", "1"), seen("c", "3"), Item::Separator, seen("b", "2")]);
    assert_eq!(again[1..], without_a[..]);
    assert!(!with_c.contains(&again[0]), "an entry that comes back has a new number");
    let clicked = layout.clicked(before[0]).map(id_of);
    assert_eq!((clicked.as_ref(), layout.contains(before[0])), (seen("a", "").id(), false), "it is remembered");
}

/// The order in which GNOME's extension (AppIndicator 46) shows a new layout.
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
    fn gnome_shows_the_entries_in_their_order(
        menus in vec(subsequence(('a'..='k').collect::<Vec<_>>(), 0..=11).prop_shuffle(), 1..6)
    ) {
        let (mut layout, mut shown) = (Layout::default(), Vec::new());
        for menu in menus {
            let items: Vec<_> = menu.iter().map(|id| seen(&id.to_string(), "")).collect();
            layout.rebuild(&items, NOW, &mut Changes::default());
            shown = shown_by_gnome(&shown, &numbers(&layout));
            prop_assert_eq!(&shown, &numbers(&layout));
        }
    }
}

#[test]
fn an_entry_that_is_added_removed_or_moved_leaves_the_others_their_numbers() {
    let mut layout = Layout::default();
    let mut rebuilt = |ids: &str| {
        let items: Vec<_> = ids.chars().map(|id| seen(&id.to_string(), "")).collect();
        layout.rebuild(&items, NOW, &mut Changes::default());
        numbers(&layout)
    };
    let new = |before: &[i32], after: &[i32]| after.iter().filter(|number| !before.contains(number)).count();
    let (all, added) = (rebuilt("abcd"), rebuilt("axbcyd"));
    assert_eq!(new(&all, &added), 2);
    let removed = rebuilt("xcyd");
    assert_eq!(new(&added, &removed), 0);
    let moved_up = rebuilt("dxcy");
    assert_eq!(new(&removed, &moved_up), 1);
    assert_eq!(new(&moved_up, &rebuilt("xdcy")), 1);
}

#[test]
fn an_entry_that_moves_into_another_submenu_gets_a_new_number() {
    let mut layout = Layout::default();
    layout.rebuild(&[row("x", vec![seen("a", "1")]), row("y", vec![])], NOW, &mut Changes::default());
    let before = layout.entries[0].entries[0].number;
    layout.rebuild(&[row("x", vec![]), row("y", vec![seen("a", "1")])], NOW, &mut Changes::default());
    assert_ne!(layout.entries[1].entries[0].number, before);
    assert!(!layout.contains(before));
}

#[test]
fn without_a_change_of_structure_only_changed_properties_are_sent() {
    let (mut layout, mut changes) = (Layout::default(), Changes::default());
    layout.rebuild(&[seen("a", "one"), seen("b", "two_")], NOW, &mut Changes::default());
    let b = numbers(&layout)[1];
    assert!(!layout.try_update(&[seen("b", "two"), seen("a", "one")], NOW, &mut changes), "the order changed");
    assert!(layout.try_update(&[seen("a", "one"), seen("b", "2_")], NOW, &mut changes));
    let labels: Vec<_> = changes.set.iter().map(|(number, set)| (*number, set.get("label").cloned())).collect();
    assert_eq!(labels, [(b, Some("2__".into()))]);
    // The label, and the description for screen readers.
    assert_eq!(changes.set[0].1.len(), 2);
}

#[test]
fn an_update_in_place_leaves_entries_that_are_gone_as_they_were() {
    let (mut layout, mut changes) = (Layout::default(), Changes::default());
    layout.rebuild(
        &[seen("a", "1"), row("x", vec![Item::text("words"), seen("b", "2")]), seen("c", "3")],
        NOW,
        &mut Changes::default(),
    );
    let [a, x, c] = numbers(&layout)[..] else { panic!("{layout:?}") };
    let b = layout.entries[1].entries[1].number;
    layout.update_in_place(&[seen("c", "three"), row("x", vec![seen("d", "4")])], NOW, &mut changes);
    assert_eq!(numbers(&layout), [a, x, c]);
    assert!([a, b, c].into_iter().all(|number| layout.clicked(number).is_some()));
    let set: Vec<_> = changes.set.iter().map(|(number, _)| *number).collect();
    assert_eq!(set, [c]);
    // Once the menu is closed, it is rebuilt.
    layout.rebuild(&[seen("c", "three"), row("x", vec![seen("d", "4")])], NOW, &mut Changes::default());
    assert_eq!(Some(&id_of(layout.clicked(numbers(&layout)[0]).unwrap())), seen("c", "").id());
    assert_eq!(numbers(&layout).len(), 2);
}

#[test]
fn case_217_a_fold_of_an_open_menu_says_what_it_holds_on_the_screen() {
    let fold = |label: &str, ids: &str| {
        let rows = ids.chars().map(|id| row(&id.to_string(), vec![seen("x", "")])).collect();
        Item::submenu(ItemId::own(Kind::Fold(0)), label, rows)
    };
    let label = |layout: &Layout| layout.entries[1].appearance.label(NOW).text;
    let mut layout = Layout::default();
    layout.rebuild(&[row("a", Vec::new()), fold("1 more crashed", "b")], NOW, &mut Changes::default());
    let mut changes = Changes::default();
    layout.update_in_place(&[fold("2 more crashed", "ab")], NOW, &mut changes);
    assert_eq!((&*label(&layout), changes.is_empty()), ("1 more crashed", true));
    layout.update_in_place(&[row("a", Vec::new()), fold("1 more stuck", "b")], NOW, &mut changes);
    assert_eq!(label(&layout), "1 more stuck", "it holds the same");
    layout.rebuild(&[fold("2 more crashed", "ab")], NOW, &mut changes);
    assert_eq!(layout.entries[0].appearance.label(NOW).text, "2 more crashed");
}

#[test]
fn the_header_of_an_open_menu_is_updated_while_its_rows_change() {
    let mut layout = Layout::default();
    let open = [Item::text("2 working"), Item::Separator, seen("a", "1"), seen("b", "2"), Item::text("words")];
    layout.rebuild(&open, NOW, &mut Changes::default());
    let mut changes = Changes::default();
    let next = [Item::text("1 working"), Item::Separator, seen("b", "2"), Item::text("others"), seen("c", "3")];
    layout.update_in_place(&next, NOW, &mut changes);
    let label = |n: usize| layout.entries[n].appearance.label(NOW).text;
    assert_eq!(
        (label(0), label(4)),
        ("1 working".into(), "words".into()),
        "text after a moved entry is not matched by its index"
    );
    let enabled: Vec<_> = layout.entries[2..].iter().map(|entry| entry.appearance.enabled).collect();
    assert_eq!(enabled, [true, true, false], "a row that is gone says so when it is clicked");
}

#[test]
fn a_check_mark_that_a_panel_may_have_toggled_is_sent_again() {
    let id = ItemId::own(Kind::StartAtLogin);
    let check = |checked| Item::Check {
        id: id.clone(),
        text: "Start at login".into(),
        enabled: true,
        checked,
        effect: Effect::StartAtLogin(!checked),
    };
    let (mut layout, mut changes) = (Layout::default(), Changes::default());
    layout.rebuild(&[check(false)], NOW, &mut Changes::default());
    assert!(layout.try_update(&[check(false)], NOW, &mut changes) && changes.is_empty());
    assert_eq!(id_of(layout.clicked(numbers(&layout)[0]).unwrap()), id);
    assert!(layout.try_update(&[check(false)], NOW, &mut changes));
    assert_eq!(changes.set[0].1.get("toggle-state"), Some(&0.into()));
}

#[test]
fn text_cannot_be_clicked_and_an_underscore_is_no_mnemonic() {
    let mut layout = Layout::default();
    layout.rebuild(&[Item::text("a_b && c__d"), row("x", vec![seen("a", "1")])], NOW, &mut Changes::default());
    let [text, x] = numbers(&layout)[..] else { panic!("{layout:?}") };
    assert_eq!((layout.clicked(text), layout.clicked(x)), (None, None));
    assert_eq!(layout.entries[0].properties(NOW)["label"], "a__b && c____d".into());
    assert_eq!(layout.property(text, "label", NOW), Some(Some("a__b && c____d".into())));
    assert_eq!(layout.property(ROOT, "children-display", NOW), Some(Some("submenu".into())));
    assert_eq!((layout.property(x, "icon-data", NOW), layout.property(99, "label", NOW)), (Some(None), None));
    assert_eq!(layout.properties(&[x], &[], NOW).len(), 1);
    assert_eq!(layout.properties(&[], &[], NOW).len(), 3);
}

/// Nothing is sent when an age changes until the menu is about to be shown.
#[test]
fn ages_are_worded_on_demand() {
    let done = ShortReason::Ago("done".into(), NOW.now.wall);
    let aged = || {
        let (lead, name) =
            (Lead { status: Status::Idle, unseen: false }, RowName { whole: "a_b".into(), ..RowName::default() });
        let row = Text::row(lead, name, done.clone(), &LastProgress::default());
        Item::action(ItemId::own(Kind::Seen), row, Effect::Seen)
    };
    let (mut layout, later) = (Layout::default(), Wording { now: NOW.now.plus(Span::seconds(65)), ..NOW });
    layout.rebuild(&[aged(), seen("b", "two")], NOW, &mut Changes::default());
    let (number, mut changes) = (numbers(&layout)[0], Changes::default());
    assert!(layout.try_update(&[aged(), seen("b", "two")], later, &mut changes) && changes.is_empty());
    let label = |layout: &Layout| layout.properties(&[number], &[], later)[0].1["label"].clone();
    assert_eq!(label(&layout), "✓ a__b — done, 1 min ago".into(), "a query returns the current age");
    layout.refresh_ages(later, &mut changes);
    let labels: Vec<_> = changes.set.iter().map(|(number, set)| (*number, set["label"].clone())).collect();
    assert_eq!((labels, changes.unset.len()), (vec![(number, label(&layout))], 0));
    let mut again = Changes::default();
    layout.refresh_ages(Wording { now: later.now.plus(Span::seconds(10)), ..later }, &mut again);
    assert!(again.is_empty(), "same age step");
}

#[test]
fn a_row_has_the_picture_of_its_status() {
    let with = |status| {
        let id = ItemId::of(&Key::new(HomeId::default(), "a"), Kind::Row);
        let name = RowName { whole: "a".into(), ..RowName::default() };
        let text = Text::row(Lead { status, unseen: false }, name, ShortReason::of("b"), &LastProgress::default());
        Item::Submenu { id, text, picture: Some(status), items: Vec::new() }
    };
    let (mut layout, mut changes) = (Layout::default(), Changes::default());
    layout.rebuild(&[with(Status::Idle)], DRAWN, &mut Changes::default());
    let picture = |status| Property::Bytes(badge(status));
    assert_eq!(layout.properties(&[], &[], DRAWN)[0].1["icon-data"], picture(Status::Idle));
    assert!(layout.try_update(&[with(Status::Stuck)], DRAWN, &mut changes));
    assert_eq!((changes.set[0].1.len(), &changes.set[0].1["icon-data"]), (2, &picture(Status::Stuck)));
}

#[test]
fn case_210_a_row_has_its_picture_or_its_mark_and_all_columns_either_way() {
    let key = Key::new(HomeId::default(), "a");
    let lead = Lead { status: Status::Working, unseen: true };
    let name = RowName { whole: "n".repeat(99), ..RowName::default() };
    let text = Text::row(lead, name, ShortReason::of("cargo test"), &LastProgress::default());
    let row = Item::Submenu { id: ItemId::of(&key, Kind::Row), text, picture: Some(lead.status), items: Vec::new() };
    let mut layout = Layout::default();
    layout.rebuild(&[row], NOW, &mut Changes::default());
    for (how, mark, has_picture) in [(NOW, "▶ ● ", false), (DRAWN, "● ", true)] {
        let properties = &layout.properties(&[], &[], how)[0].1;
        let Property::Text(label) = &properties["label"] else { panic!("{properties:?}") };
        assert!(label.starts_with(&format!("{mark}nnn")) && label.ends_with("n… — cargo test"), "{label}");
        assert_eq!((label.width(), properties.contains_key("icon-data")), (COLUMNS, has_picture), "{label}");
        let Property::Text(spoken) = &properties["accessible-desc"] else { panic!("{properties:?}") };
        assert!(spoken.starts_with("new, working: nnn"), "{spoken}");
    }
}

#[test]
fn a_screen_reader_gets_the_status_in_words() {
    let description = |text: Text| {
        let id = ItemId::of(&Key::new(HomeId::default(), "x"), Kind::Row);
        let picture = text.lead().map(|lead| lead.status);
        let item = Item::Submenu { id, text, picture, items: Vec::new() };
        let mut layout = Layout::default();
        layout.rebuild(&[item], NOW, &mut Changes::default());
        layout.properties(&[], &[], NOW)[0].1["accessible-desc"].clone()
    };
    let row = |status, unseen, name: &str, short_reason| {
        let name = RowName { whole: name.into(), ..RowName::default() };
        Text::row(Lead { status, unseen }, name, ShortReason::of(short_reason), &LastProgress::default())
    };
    let asks = row(Status::NeedsPermission, false, "a_b · c", "ls");
    assert_eq!(description(asks), "needs permission: a_b · c — ls".into());
    assert_eq!(description(row(Status::Idle, true, "✓ ● a", "done")), "new, idle: ✓ ● a — done".into());
    assert_eq!(description("     Resume a_b".into()), "Resume a_b".into());
}

/// A click must never do what its entry did not say.
#[test]
fn an_entry_that_does_something_else_is_another_entry() {
    let stop = |turn: &str| {
        let order = Order::new("a", Operation::Stop).on(Some(turn));
        Item::action(ItemId::of(&Key::new(HomeId::default(), "a"), Kind::Remedy), "Stop", Effect::Act(Box::new(order)))
    };
    let mut layout = Layout::default();
    layout.rebuild(&[stop("one")], NOW, &mut Changes::default());
    let one = numbers(&layout)[0];
    assert!(!layout.try_update(&[stop("two")], NOW, &mut Changes::default()));
    layout.update_in_place(&[stop("two")], NOW, &mut Changes::default());
    assert_eq!(layout.clicked(one), clicked(&stop("one")));
    layout.rebuild(&[stop("two")], NOW, &mut Changes::default());
    let two = numbers(&layout)[0];
    assert_eq!(layout.clicked(two), clicked(&stop("two")));
    assert_eq!(layout.clicked(one), clicked(&stop("one")));
    assert!(layout.shows(&[stop("two")]) && !layout.shows(&[stop("one")]));
}

/// GNOME's extension reads the properties of a number once: without this, it showed the old label in a rebuilt menu.
#[test]
fn a_rebuild_sends_the_changed_label_of_an_entry_that_keeps_its_number() {
    let (mut layout, mut changes) = (Layout::default(), Changes::default());
    layout.rebuild(&[Item::text("No session is open"), seen("a", "one")], NOW, &mut changes);
    assert!(changes.is_empty(), "{changes:?}");
    let before = numbers(&layout);
    layout.rebuild(&[Item::text("1 working"), seen("b", "new"), seen("a", "one")], NOW, &mut changes);
    assert_eq!(numbers(&layout)[0], before[0]);
    let [(number, set)] = &changes.set[..] else { panic!("{changes:?}") };
    assert_eq!((*number, &set["label"]), (before[0], &"1 working".into()));
}

/// GNOME's extension shows how it adds each new row, after the menu is open.
#[test]
fn case_656_rows_in_slots_come_and_go_without_a_new_number_in_the_menu_itself() {
    let of = |ids: &str| {
        let rows = ids.chars().map(|id| row(&id.to_string(), vec![seen(&id.to_string(), "x")]));
        let footer = Item::action(ItemId::own(Kind::Quit), "Quit", Effect::Quit(Vec::new()));
        let head = [Item::text("head"), Item::Separator];
        head.into_iter().chain(rows).chain([Item::Separator, footer]).collect::<Vec<_>>()
    };
    let mut layout = Layout::default();
    layout.rebuild(&of("a"), NOW, &mut Changes::default());
    layout.use_slots(4, NOW);
    let (known, a) = (numbers(&layout), layout.entries[2].entries[0].number);
    assert_eq!(known.len(), 8, "three hidden ones");
    assert!(layout.shows(&of("a")) && layout.size() == Size { entries: 3, separators: 2 });
    let shown = |layout: &Layout| -> Vec<String> {
        let rows = layout.properties(&known[2..6], &[], NOW).into_iter().map(|(_, properties)| properties);
        let rows = rows.filter(|properties| !properties.contains_key("visible"));
        rows.map(|properties| format!("{:?}", properties["label"])).collect()
    };
    for ids in ["ba", "dcba", "", "a", "bd"] {
        let mut changes = Changes::default();
        layout.rebuild(&of(ids), NOW, &mut changes);
        assert_eq!(numbers(&layout), known, "{ids}");
        assert_eq!(shown(&layout), ids.chars().map(|id| format!("Text({:?})", id.to_string())).collect::<Vec<_>>());
        assert!(layout.shows(&of(ids)) && !changes.is_empty());
        let children: Vec<_> = layout.entries[2..6].iter().flat_map(|slot| &slot.entries).collect();
        assert_eq!(children.len(), ids.len());
    }
    // What is clicked is never another's.
    assert!(!layout.contains(a));
    assert_eq!(layout.clicked(a), clicked(&seen("a", "x")));
    assert!(known[2..6].iter().all(|slot| layout.clicked(*slot).is_none()), "a slot does nothing");
    layout.rebuild(&of("abcdef"), NOW, &mut Changes::default());
    assert_eq!(numbers(&layout).len(), known.len() + 2, "more than there were slots");
}

#[test]
fn a_label_is_kept_apart_from_the_arrow_of_its_submenu_where_a_panel_does_not() {
    let mut layout = Layout::default();
    layout.rebuild(&[row("x", vec![seen("a", "1")]), seen("b", "2")], NOW, &mut Changes::default());
    let labels = |spaced| {
        let properties = layout.properties(&[], &["label".to_owned()], Wording { spaced, ..DRAWN });
        properties.into_iter().map(|(_, mut properties)| properties.remove("label")).collect::<Vec<_>>()
    };
    let (apart, plain) = (labels(true), labels(false));
    assert_eq!(apart[1..], plain[1..], "only submenus have one");
    let [Some(Property::Text(apart)), Some(Property::Text(plain))] = [&apart[0], &plain[0]] else {
        panic!("{apart:?}")
    };
    assert_eq!(*apart, format!("{plain}\u{a0}\u{a0}"));
}
