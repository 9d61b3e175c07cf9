//! The places of the menu's rows, whatever happens to the sessions: an open menu must stay true under the pointer.

use pilotlight::config::List;
use pilotlight::core::fleet::{About, Row, Session};
use pilotlight::core::limits::Limits;
use pilotlight::core::time::{Moment, Span, Time};
use pilotlight::core::verdict::Status;
use pilotlight::engine::Key;
use pilotlight::tray::details::Source;
use pilotlight::tray::menu::Menu;
use pilotlight::tray::view::{Item, ItemId, Kind, MenuView};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// What happens to the sessions.
#[derive(Clone, Debug)]
enum Change {
    /// One comes.
    Comes(u8),
    /// One has another status.
    Is(u8, usize),
    /// One goes with its folder.
    Goes(u8),
    Nothing,
}

fn changes() -> impl Strategy<Value = Vec<(Change, i64)>> {
    let change = prop_oneof![
        2 => (0..8u8).prop_map(Change::Comes),
        6 => (0..8u8, 0..Status::ALL.len()).prop_map(|(which, status)| Change::Is(which, status)),
        1 => (0..8u8).prop_map(Change::Goes),
        1 => Just(Change::Nothing),
    ];
    let gap = prop::sample::select(vec![1, 40, 300, 999, 1000, 1001, 20_000, 59_999, 60_001]);
    prop::collection::vec((change, gap), 1..40)
}

/// What stands where: each item's name, by its way through the submenus.
fn places(items: &[Item], way: &[usize], found: &mut Vec<(Vec<usize>, Option<ItemId>)>) {
    for (index, item) in items.iter().enumerate() {
        let way = [way, &[index]].concat();
        found.push((way.clone(), item.id().cloned()));
        places(item.children(), &way, found);
    }
}

fn all(view: &MenuView) -> Vec<(Vec<usize>, Option<ItemId>)> {
    let mut found = Vec::new();
    places(&view.items, &[], &mut found);
    found
}

/// The sessions' rows at the top, in their order.
fn rows(view: &MenuView) -> Vec<Key> {
    let row = |item: &Item| item.id().filter(|id| id.kind == Kind::Row).and_then(|id| id.session.clone());
    view.items.iter().filter_map(row).collect()
}

fn made(which: u8, now: Moment) -> (Key, Session, Row) {
    let name = format!("session-{which}");
    let mut session = Session {
        id: name.clone().into(),
        about: About { created: Some(Time(which.into())), cwd: Some("/home/dev/x".into()), ..About::default() },
        has_log: true,
        ..Session::default()
    };
    session.facts.progress = Some(now);
    let row = Row { name, ..session.row(now, &Limits::default()).0 };
    ((0, session.id.clone().into()), session, row)
}

proptest! {
    #[test]
    fn case_106_no_place_is_anothers_without_a_change_of_shape(changes in changes()) {
        let mut menu = Menu::new(Limits::default(), List::default(), None, false);
        let mut sessions: Vec<(Key, Session, Row)> = Vec::new();
        let mut now = Moment::of(Time(1_795_197_600_000));
        let (mut shown, mut shaped): (Option<Arc<MenuView>>, Option<Time>) = (None, None);
        for (change, gap) in changes {
            now = now.plus(Span(gap));
            let is = |which: u8, key: &Key| *key.1 == *format!("session-{which}");
            match change {
                Change::Comes(which) if !sessions.iter().any(|(key, ..)| is(which, key)) => {
                    sessions.push(made(which, now));
                }
                Change::Is(which, status) => {
                    if let Some((.., row)) = sessions.iter_mut().find(|(key, ..)| is(which, key)) {
                        row.status = Status::ALL[status];
                        row.since = now.wall;
                        row.because = format!("is {} now", row.status);
                    }
                }
                Change::Goes(which) => sessions.retain(|(key, ..)| !is(which, key)),
                Change::Comes(_) | Change::Nothing => {}
            }
            let path = Path::new("/nowhere");
            let sources = sessions.iter().map(|(key, session, row)| Source { key, row, session, path });
            let Some(view) = menu.update(sources, now) else { continue };
            let names: Vec<_> = all(&view).into_iter().filter_map(|(_, id)| id).collect();
            for (n, name) in names.iter().enumerate() {
                prop_assert!(!names[..n].contains(name), "{:?} stands in two places", name);
            }
            if let Some(before) = &shown {
                if all(&view) == all(before) {
                    prop_assert!(view.has_shape_of(before), "the same places are the same shape");
                } else {
                    // Nothing stands where something else stood, but where the panel lays the menu out anew.
                    prop_assert!(!view.has_shape_of(before), "{:#?}\n{:#?}", all(before), all(&view));
                    let rest = shaped.map(|at| now.awake - at);
                    prop_assert!(rest.is_none_or(|rest| rest >= Span::seconds(1)), "laid out again after {:?}", rest);
                    shaped = Some(now.awake);
                }
                // Who was there before keeps the order, unless something came or went.
                let (old, new) = (rows(before), rows(&view));
                if old.len() == new.len() && old.iter().all(|key| new.contains(key)) && view.has_shape_of(before) {
                    prop_assert_eq!(old, new);
                }
            } else {
                shaped = Some(now.awake);
            }
            shown = Some(view);
        }
    }
}
