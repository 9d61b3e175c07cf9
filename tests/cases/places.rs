//! The positions of the menu's rows, whatever happens to the sessions: an open menu must not move under the pointer.

use pilotlight::tray::details::Source;
use pilotlight::tray::menu::Menu;
use pilotlight::tray::view::{Item, ItemId, MenuView};
use pilotlight_agents::home;
use pilotlight_core::fleet::{About, Row, Session};
use pilotlight_core::limits::Limits;
use pilotlight_core::session::{HomeId, Key, Observed};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::verdict::Status;
use pilotlight_engine::LastProgress;
use pilotlight_engine::config::List;
use proptest::prelude::*;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// A change to the sessions.
#[derive(Clone, Debug)]
enum Change {
    /// One appears.
    Appears(u8),
    /// One changes its status.
    Status(u8, usize),
    /// One disappears with its folder.
    Disappears(u8),
    Nothing,
}

fn changes() -> impl Strategy<Value = Vec<(Change, i64)>> {
    let change = prop_oneof![
        2 => (0..8u8).prop_map(Change::Appears),
        6 => (0..8u8, 0..Status::ALL.len()).prop_map(|(which, status)| Change::Status(which, status)),
        1 => (0..8u8).prop_map(Change::Disappears),
        1 => Just(Change::Nothing),
    ];
    let gap = prop::sample::select(vec![1, 40, 300, 999, 1000, 1001, 20_000, 59_999, 60_001]);
    prop::collection::vec((change, gap), 1..40)
}

/// Collects each item's position, as its path of indices through the submenus, and its id.
fn collect_positions(items: &[Item], path: &[usize], positions: &mut Vec<(Vec<usize>, Option<ItemId>)>) {
    for (index, item) in items.iter().enumerate() {
        let path = [path, &[index]].concat();
        positions.push((path.clone(), item.id().cloned()));
        collect_positions(item.children(), &path, positions);
    }
}

fn positions(view: &MenuView) -> Vec<(Vec<usize>, Option<ItemId>)> {
    let mut positions = Vec::new();
    collect_positions(&view.items, &[], &mut positions);
    positions
}

fn session(which: u8, now: Moment) -> (Key, Session, Row) {
    let name = format!("session-{which}");
    let mut session = Session {
        id: name.clone().into(),
        observed: Observed {
            about: About { created: Some(Time(which.into())), cwd: Some("/home/dev/x".into()), ..About::default() },
            has_log: true,
            ..Observed::default()
        },
        ..Session::default()
    };
    session.observed.facts.progress = Some(now);
    let row = Row { name, ..session.row(now, &Limits::default()).0 };
    (Key::new(HomeId::default(), session.id.clone()), session, row)
}

proptest! {
    #[test]
    fn case_106_no_position_changes_its_item_without_a_new_layout(changes in changes()) {
        let mut menu = Menu::new(Limits::default(), List::default(), None, false);
        let mut sessions: Vec<(Key, Session, Row)> = Vec::new();
        let mut now = Moment::of(Time(1_795_197_600_000));
        let (home, last_progress) = (home::Home::at(Path::new("/nowhere")), &LastProgress::default());
        let (mut shown, mut laid_out): (Option<Arc<MenuView>>, Option<Time>) = (None, None);
        for (change, gap) in changes {
            now = now.plus(Span(gap));
            let is = |which: u8, key: &Key| *key.id == *format!("session-{which}");
            match change {
                Change::Appears(which) if !sessions.iter().any(|(key, ..)| is(which, key)) => {
                    sessions.push(session(which, now));
                }
                Change::Status(which, status) => {
                    if let Some((.., row)) = sessions.iter_mut().find(|(key, ..)| is(which, key)) {
                        row.status = Status::ALL[status];
                        row.since = now.wall;
                        row.because = (&*format!("is {} now", row.status)).into();
                    }
                }
                Change::Disappears(which) => sessions.retain(|(key, ..)| !is(which, key)),
                Change::Appears(_) | Change::Nothing => {}
            }
            let readers: Vec<_> = sessions.iter().map(|(key, ..)| home.reader(&key.id)).collect();
            let sources = sessions.iter().zip(&readers);
            let sources =
                sources.map(|((key, session, row), reader)| Source { key, row, session, last_progress, reader: Some(reader) });
            let Some(view) = menu.update(sources, now) else { continue };
            let mut ids = HashSet::new();
            for (_, id) in positions(&view) {
                prop_assert!(id.as_ref().is_none_or(|id| ids.insert(id.clone())), "{:?} has two positions", id);
            }
            if let Some(before) = &shown {
                if positions(&view) == positions(before) {
                    prop_assert!(view.has_shape_of(before), "the same positions are the same shape");
                } else {
                    // A position changes its item only when the panel gets a new layout, at most once a second.
                    prop_assert!(!view.has_shape_of(before), "{:#?}\n{:#?}", positions(before), positions(&view));
                    let gap = laid_out.map(|at| now.awake - at);
                    prop_assert!(gap.is_none_or(|gap| gap >= Span::seconds(1)), "laid out again after {:?}", gap);
                    laid_out = Some(now.awake);
                }
            } else {
                laid_out = Some(now.awake);
            }
            shown = Some(view);
        }
    }
}
