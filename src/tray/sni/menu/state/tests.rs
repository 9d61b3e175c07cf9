//! The menu while panels of each kind open, read, close and click it.

use super::*;
use crate::tray::sni::readers::GTK_PROPERTIES;
use crate::tray::view::{Effect, ItemId, Kind};
use pilotlight_core::order::{Operation, Order};
use pilotlight_core::session::{HomeId, Key};
use pilotlight_engine::config::Tray;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::collections::BTreeMap;

fn seen(id: &str) -> Item {
    Item::action(ItemId::of(&Key::new(HomeId::default(), id), Kind::Seen), id, Effect::Seen)
}

fn view(items: Vec<Item>) -> MenuView {
    MenuView { items, ..MenuView::initial(Tray::default()) }
}

/// What a panel that reads everything shows: labels by number.
fn labels(state: &MenuState) -> BTreeMap<i32, String> {
    let label = |(number, mut properties): (i32, Properties)| match properties.remove("label") {
        Some(Property::Text(label)) => Some((number, label)),
        _ => None,
    };
    state.layout.properties(&[], &[], state.wording()).into_iter().filter_map(label).collect()
}

fn gtk_properties() -> Vec<String> {
    GTK_PROPERTIES.iter().map(|&name| name.to_owned()).collect()
}

fn number(state: &MenuState, label: &str) -> i32 {
    *labels(state).iter().find(|(_, shown)| *shown == label).unwrap().0
}

fn after(begun: Instant, millis: u64) -> Instant {
    begun + Duration::from_millis(millis)
}

fn click(state: &mut MenuState, number: i32, now: Instant) -> Option<Click> {
    state.handle_event(number, "clicked", now).unwrap().click
}

/// Whoever waits until a menu is doubtful would find it so again and again.
#[test]
fn case_657_a_menu_that_no_panel_announced_is_not_asked_about() {
    let begun = Instant::now();
    let submenu = Item::submenu(ItemId::of(&Key::new(HomeId::default(), "a"), Kind::Row), "a", vec![seen("b")]);
    let mut state = MenuState::new(&view(vec![submenu]), begun);
    let number = number(&state, "a");
    assert!(state.handle_event(number, "opened", begun).is_some());
    assert_eq!((state.doubtful_at(), state.doubted(after(begun, 100_000))), (None, None));
    state.opened_by(":1.7");
    assert!(state.about_to_show(ROOT, after(begun, 100_000)).is_some());
    let at = state.doubtful_at().unwrap();
    assert_eq!(state.doubted(at).as_deref(), Some(":1.7"));
    state.was_closed(at);
    assert_eq!(state.doubtful_at(), None);
}

#[test]
fn the_structure_changes_when_the_menu_is_opened_again() {
    let begun = Instant::now();
    let mut state = MenuState::new(&view(vec![seen("a")]), begun);
    assert!(state.handle_event(ROOT, "opened", begun).is_some());
    let update = state.show(&view(vec![seen("b"), seen("a")]), after(begun, 10));
    assert!(update.revision.is_none() && update.changes.is_empty());
    assert!(state.handle_event(ROOT, "closed", after(begun, 20)).unwrap().update.revision.is_none());
    assert_eq!(state.deadline(after(begun, 30)), Some(after(begun, 520)));
    assert!(state.on_deadline(after(begun, 519)).0.revision.is_none());
    assert_eq!(state.on_deadline(after(begun, 520)).0.revision, Some(2), "what panels have is out of date");
    assert_eq!(labels(&state).len(), 1);
    assert_eq!(state.about_to_show(ROOT, after(begun, 900)).unwrap().update.revision, Some(3));
    assert!(number(&state, "b") > number(&state, "a"));
}

#[test]
fn case_221_ages_stand_still_in_an_open_menu_of_gtk_which_would_draw_them_over_pictures() {
    let passes = |state: &MenuState| {
        let (before, begun) = (state.wording().now, Instant::now());
        while begun.elapsed() < Duration::from_millis(20) && state.wording().now == before {}
        state.wording().now != before
    };
    let begun = Instant::now();
    let mut state = MenuState::new(&view(vec![seen("a")]), begun);
    state.read_layout("xfce", (ROOT, -1), gtk_properties(), begun);
    assert!(passes(&state));
    state.about_to_show(ROOT, after(begun, 1000));
    assert!(!passes(&state));
    state.about_to_show(number(&state, "a"), after(begun, 2000));
    state.show(&view(vec![seen("a"), seen("b")]), after(begun, 3000));
    assert!(!passes(&state), "the menu is still open");
    let a = number(&state, "a");
    click(&mut state, a, after(begun, 4000));
    state.show(&view(vec![seen("a"), seen("b")]), after(begun, 4100));
    assert!(passes(&state), "closed by the click");
    // Plasma widens a menu.
    let mut state = MenuState::new(&view(vec![seen("a")]), begun);
    state.read_layout("plasma", (ROOT, 1), Vec::new(), begun);
    state.about_to_show(ROOT, after(begun, 1000));
    assert!(passes(&state));
}

#[test]
fn case_246_a_menu_of_gtk_that_is_opened_again_while_it_may_be_open_keeps_its_size() {
    let begun = Instant::now();
    let world = |n: u8| {
        let footer = [Kind::Seen, Kind::LiveTable, Kind::Refresh]
            .map(|kind| Item::action(ItemId::own(kind), "other", Effect::Seen));
        let sessions = World((0..n).map(|id| (id, 1)).collect()).view().items;
        view(sessions.into_iter().chain([Item::Separator]).chain(footer).collect())
    };
    let mut state = MenuState::new(&world(1), begun);
    state.read_layout("xfce", (ROOT, -1), gtk_properties(), begun);
    let size = state.layout.size();
    assert!(!state.about_to_show(ROOT, after(begun, 1000)).unwrap().is_new);
    state.show(&world(2), after(begun, 2000));
    // Dismissed, which GTK does not report.
    assert!(state.about_to_show(ROOT, after(begun, 5000)).unwrap().is_new);
    assert_eq!(state.layout.size(), size);
    number(&state, "More");
    assert!(state.on_deadline(after(begun, 14_999)).0.revision.is_none());
    assert!(state.on_deadline(after(begun, 15_000)).0.revision.is_some(), "it is out of date");
    state.read_layout("xfce", (ROOT, -1), gtk_properties(), after(begun, 15_010));
    assert_eq!(state.layout.size().entries, size.entries + 2);
    assert!(!state.about_to_show(ROOT, after(begun, 16_000)).unwrap().is_new);
}

#[test]
fn nothing_but_one_mark_is_sent_while_the_menu_is_closed() {
    let begun = Instant::now();
    let mut state = MenuState::new(&view(vec![seen("a")]), begun);
    state.handle_event(ROOT, "opened", begun);
    state.handle_event(ROOT, "closed", after(begun, 10));
    let mut marks = 0;
    for second in 1..=3600 {
        let now = after(begun, second * 1000);
        let update = state.show(&view(vec![seen(&second.to_string())]), now);
        assert!(update.changes.is_empty());
        if update.revision.is_some() {
            marks += 1;
            state.read(ROOT, now);
            assert_eq!(labels(&state).len(), 1);
        }
        assert_eq!(state.deadline(now), None);
    }
    assert_eq!(marks, 1);
    assert!(state.about_to_show(ROOT, after(begun, 3_601_000)).unwrap().update.revision.is_some());
    number(&state, "3600");
}

#[test]
fn case_167_a_panel_that_opens_the_menu_and_does_not_read_it_is_given_up_once_it_is_closed() {
    let begun = Instant::now();
    let mut state = MenuState::new(&view(vec![seen("a")]), begun);
    state.read(ROOT, begun);
    state.show(&view(vec![seen("b")]), after(begun, 100));
    assert!(state.about_to_show(ROOT, after(begun, 200)).unwrap().update.revision.is_some());
    assert_eq!(state.deadline(after(begun, 5000)), Some(after(begun, 10_200)), "not while it may be open");
    state.handle_event(ROOT, "closed", after(begun, 5000));
    assert_eq!(state.deadline(after(begun, 5000)), Some(after(begun, 5500)));
    assert!(state.on_deadline(after(begun, 5500)).1);
    assert_eq!(state.deadline(after(begun, 5500)), None);
    // One that reads is not.
    state.show(&view(vec![seen("c")]), after(begun, 6000));
    state.about_to_show(ROOT, after(begun, 7000));
    state.read(ROOT, after(begun, 7010));
    state.handle_event(ROOT, "closed", after(begun, 8000));
    assert_eq!(state.deadline(after(begun, 8000)), None);
}

#[test]
fn a_click_counts_if_the_menu_was_opened_after_its_structure_changed() {
    let begun = Instant::now();
    let is_aimed = |state: &mut MenuState, now| {
        let a = number(state, "a");
        matches!(click(state, a, now), Some(Click::Item(..)))
    };
    // For a panel that never reports opening the menu, only the time since the layout counts.
    let mut state = MenuState::new(&view(vec![seen("a")]), begun);
    assert!(!is_aimed(&mut state, after(begun, 1100)));
    assert!(is_aimed(&mut state, after(begun, 1200)));
    // The first click after the menu was opened.
    let mut state = MenuState::new(&view(vec![seen("a")]), begun);
    state.handle_event(ROOT, "opened", after(begun, 300));
    assert!(is_aimed(&mut state, after(begun, 500)));
}

#[test]
fn a_click_on_an_entry_that_is_gone_is_for_what_it_was() {
    let begun = Instant::now();
    let mut state = MenuState::new(&view(vec![seen("a"), seen("b")]), begun);
    state.about_to_show(ROOT, begun);
    let a = number(&state, "a");
    state.show(&view(vec![seen("b")]), after(begun, 10));
    assert_eq!(labels(&state).len(), 2, "it stands still");
    state.handle_event(a, "clicked", after(begun, 20));
    state.about_to_show(ROOT, after(begun, 5000));
    assert_eq!(labels(&state).len(), 1);
    let is_a =
        |click| matches!(click, Some(Click::Item(ItemId { session: Some(Key { id, .. }), .. }, _)) if *id == *"a");
    assert!(is_a(click(&mut state, a, after(begun, 5010))));
    // However much goes at once, all of it is remembered; later it makes room.
    let many: Vec<_> = (0..2000).map(|n| seen(&format!("n{n}"))).collect();
    for (n, items) in [many, vec![seen("c")]].into_iter().enumerate() {
        state.show(&view(items), after(begun, 10_000 + 5000 * n as u64));
        state.about_to_show(ROOT, after(begun, 10_000 + 5000 * n as u64));
    }
    let c = number(&state, "c");
    assert!(matches!(click(&mut state, c - 2000, after(begun, 15_010)), Some(Click::Item(..))));
    assert_eq!(click(&mut state, a, after(begun, 15_020)), Some(Click::Outdated));
    assert!(state.handle_event(c + 1, "clicked", begun).is_none(), "there never was such an entry");
}

/// The kinds of panels, by what they report.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kinds {
    /// Says that it opens the menu, and that it closed it before it says what was clicked.
    Plasma,
    /// Says only that it is about to show the menu.
    Gtk,
    /// Says that it opened the menu, then that it is about to show it.
    Gnome,
}

#[derive(Clone, Debug)]
enum Act {
    /// A session asks for something else, comes or goes; the words of another change.
    Change(u8, u8),
    /// Time passes, in milliseconds.
    Wait(u16),
    Open,
    /// The panel reads again, as it was told that the menu is out of date.
    Read,
    Submenu,
    /// The pointer is pressed on the entry that is shown here; the panel reports it later, after these changes.
    Press(u8, Vec<(u8, u8)>),
    Dismiss,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (any::<u8>(), any::<u8>()).prop_map(|(one, to)| Act::Change(one, to)),
        2 => (0_u16..1500).prop_map(Act::Wait),
        1 => (0_u16..15_000).prop_map(Act::Wait),
        3 => Just(Act::Open),
        1 => Just(Act::Read),
        1 => Just(Act::Submenu),
        5 => (any::<u8>(), vec((any::<u8>(), any::<u8>()), 0..4)).prop_map(|(at, changes)| Act::Press(at, changes)),
        1 => Just(Act::Dismiss),
    ]
}

/// Sessions whose rows have an entry that does something else from time to time.
#[derive(Default)]
struct World(BTreeMap<u8, u8>);

impl World {
    fn change(&mut self, one: u8, to: u8) {
        if to.is_multiple_of(5) {
            self.0.remove(&(one % 6));
        } else {
            self.0.insert(one % 6, to);
        }
    }

    fn view(&self) -> MenuView {
        let mut rows: Vec<_> = self.0.iter().collect();
        rows.sort_by_key(|(id, to)| (*to % 3, **id));
        let mut items = vec![Item::text(format!("{} sessions", rows.len()))];
        for (id, to) in rows {
            let key = Key::new(HomeId::default(), id.to_string());
            // The label says what the entry does, as the view's do.
            let turn = format!("{}", to % 4);
            let order = Order::new(&id.to_string(), Operation::Stop).on(Some(&turn));
            let label = format!("stop turn {turn} of {id}");
            let stop = Item::action(ItemId::of(&key, Kind::Remedy), label, Effect::Act(Box::new(order)));
            items.push(Item::submenu(ItemId::of(&key, Kind::Row), format!("row {id}"), vec![stop.clone()]));
            items.push(stop);
        }
        items.push(Item::action(ItemId::own(Kind::Quit), "quit", Effect::Quit(Vec::new())));
        view(items)
    }
}

fn does(effect: &Effect) -> String {
    match effect {
        Effect::Act(order) => format!("stop turn {} of {}", order.turn.as_deref().unwrap_or_default(), order.id),
        _ => "quit".into(),
    }
}

/// A panel with its own copy of the menu.
struct Desk {
    state: MenuState,
    kind: Kinds,
    now: Instant,
    world: World,
    /// The menu as the panel shows it.
    copy: BTreeMap<i32, String>,
    /// When it was opened, or last gave a sign of life; `None` while it is closed.
    looked_at: Option<Instant>,
    clicks: u32,
    /// How many clicks were not carried out, which the user was told.
    told: u32,
}

impl Desk {
    fn apply(&mut self, update: &Update) {
        for (number, set) in &update.changes.set {
            if let (Some(shown), Some(Property::Text(label))) = (self.copy.get_mut(number), set.get("label")) {
                shown.clone_from(label);
            }
        }
    }

    fn read(&mut self) {
        let update = self.state.read(ROOT, self.now);
        self.apply(&update);
        let read = labels(&self.state);
        if self.looked_at.is_some_and(|at| self.now - at < Duration::from_secs(10)) && !self.copy.is_empty() {
            let numbers = |copy: &BTreeMap<i32, String>| copy.keys().copied().collect::<Vec<_>>();
            assert_eq!(numbers(&read), numbers(&self.copy), "an open menu stands still");
        }
        self.copy = read;
    }

    fn change(&mut self, one: u8, to: u8) {
        self.world.change(one, to);
        let update = self.state.show(&self.world.view(), self.now);
        self.apply(&update);
        // Those built on GTK do not say that it is.
        if self.looked_at.is_none() && self.kind != Kinds::Gtk {
            assert!(update.changes.is_empty(), "nothing is sent while it is closed");
        }
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(deadline) = self.state.deadline(self.now).filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            let (update, is_unread) = self.state.on_deadline(self.now);
            assert!(!is_unread, "it reads when it is told to");
            assert!(update.revision.is_some(), "a deadline without work would be due for ever");
            self.read();
        }
        self.now = until;
    }

    fn open(&mut self) {
        if self.kind == Kinds::Gnome {
            let update = self.state.handle_event(ROOT, "opened", self.now).unwrap().update;
            self.apply(&update);
            self.copy = labels(&self.state);
        }
        let update = self.state.about_to_show(ROOT, self.now).unwrap().update;
        self.apply(&update);
        self.state.read(ROOT, self.now);
        self.copy = labels(&self.state);
        self.looked_at = Some(self.now);
        if self.kind == Kinds::Plasma {
            self.state.handle_event(ROOT, "opened", self.now);
        }
    }

    fn dismiss(&mut self) {
        self.looked_at = None;
        if self.kind != Kinds::Gtk {
            self.state.handle_event(ROOT, "closed", self.now);
        }
    }

    /// A press on what is shown does just that, whatever changes until it arrives.
    fn press(&mut self, at: u8, changes: &[(u8, u8)]) {
        let entries: Vec<_> = self.copy.iter().filter(|(_, label)| !label.ends_with("sessions")).collect();
        let Some((number, shown)) = entries.get(usize::from(at) % entries.len().max(1)) else { return };
        let (number, shown) = (**number, (*shown).clone());
        if shown.starts_with("row") {
            return;
        }
        for (one, to) in changes {
            self.change(*one, *to);
            self.wait(Duration::from_millis(60));
        }
        if self.kind == Kinds::Plasma {
            self.state.handle_event(ROOT, "closed", self.now);
            self.wait(Duration::from_micros(300));
        }
        let clicked = click(&mut self.state, number, self.now);
        let looked_at = self.looked_at.take();
        // The panel said nothing for so long that its menu no longer counted as open: the user is told.
        if clicked == Some(Click::Unaimed) && looked_at.is_some_and(|at| self.now - at >= Duration::from_secs(10)) {
            self.told += 1;
            return;
        }
        let Some(Click::Item(_, effect)) = clicked else { panic!("{shown} was lost: {clicked:?}") };
        assert_eq!(does(&effect), shown);
        if self.kind == Kinds::Gnome {
            self.state.handle_event(ROOT, "closed", self.now);
        }
        self.clicks += 1;
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Change(one, to) => self.change(*one, *to),
            Act::Wait(millis) => {
                let sign = if self.kind == Kinds::Gtk { 10 } else { 60 };
                self.wait(Duration::from_millis((*millis).into()));
                // Nobody looks at a menu for so long without moving.
                if self.looked_at.is_some_and(|at| self.now - at >= Duration::from_secs(sign)) {
                    self.dismiss();
                }
            }
            Act::Open if self.looked_at.is_none() => {
                // Nobody opens a menu twice within the second in which a panel repeats itself.
                self.wait(Duration::from_secs(1));
                self.open();
            }
            Act::Read => self.read(),
            Act::Submenu if self.looked_at.is_some() => {
                let row = self.copy.iter().find(|(_, label)| label.starts_with("row")).map(|(number, _)| *number);
                if let Some(row) = row {
                    let update = self.state.about_to_show(row, self.now).unwrap().update;
                    self.apply(&update);
                    self.state.handle_event(row, "opened", self.now);
                    self.state.handle_event(row, "closed", self.now);
                    self.looked_at = Some(self.now);
                }
            }
            Act::Press(at, changes) if self.looked_at.is_some() => self.press(*at, changes),
            Act::Dismiss if self.looked_at.is_some() => self.dismiss(),
            Act::Open | Act::Submenu | Act::Press(..) | Act::Dismiss => {}
        }
    }
}

/// On each kind of panel, at any pace of changes: every click does what was shown at the press. The same acts each time
/// make enough clicks to prove something; other acts each time look for what those miss.
#[test]
fn case_163_case_164_case_165_every_click_does_what_was_shown_at_the_press() {
    for kind in [Kinds::Plasma, Kinds::Gtk, Kinds::Gnome] {
        let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
        let (clicks, told) = (Cell::new(0), Cell::new(0));
        let run = |acts: Vec<Act>| {
            let now = Instant::now();
            let (world, copy) = (World::default(), BTreeMap::new());
            let mut state = MenuState::new(&world.view(), now);
            if kind == Kinds::Gtk {
                state.read_layout("xfce", (ROOT, -1), gtk_properties(), now);
            }
            let mut desk = Desk { state, kind, now, world, copy, looked_at: None, clicks: 0, told: 0 };
            acts.iter().for_each(|act| desk.act(act));
            clicks.set(clicks.get() + desk.clicks);
            told.set(told.get() + desk.told);
            Ok(())
        };
        let same = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        TestRunner::new_with_rng(config.clone(), same).run(&vec(act(), 20..60), run).unwrap();
        println!("{kind:?}: {} clicks, {} not carried out", clicks.get(), told.get());
        assert!(clicks.get() >= 600 && told.get() * 100 < clicks.get(), "{kind:?}: {clicks:?}, {told:?}");
        TestRunner::new(config).run(&vec(act(), 20..60), run).unwrap();
    }
}

/// The rows of the menu itself in GNOME's extension (AppIndicator 59 and 66), which adds new ones later, one by one.
#[derive(Default)]
struct Shell {
    /// The entries that it knows, in their order.
    known: Vec<i32>,
    /// Those on the screen.
    shown: Vec<i32>,
    /// Those that are still to be added, each at its place.
    adding: Vec<(i32, usize)>,
    /// Whether it moves an entry on the screen, as 66 does; 59 tries to.
    moves: bool,
}

impl Shell {
    /// As its `_doLayoutUpdate` and `moveItemInMenu` do.
    fn read(&mut self, layout: &[i32]) {
        let mut old = self.known.clone();
        for (at, number) in layout.iter().enumerate() {
            if !old.contains(number) {
                self.known.insert(at, *number);
                self.adding.push((*number, at));
                continue;
            }
            old.retain(|other| other != number);
            let from = self.known.iter().position(|other| other == number).unwrap();
            if from == at {
                continue;
            }
            self.known.remove(from);
            self.known.insert(at, *number);
            if let Some(from) = self.shown.iter().position(|other| other == number).filter(|_| self.moves) {
                let before = self.shown.get(at).copied().filter(|before| before != number);
                self.shown.remove(from);
                let to = before.and_then(|before| self.shown.iter().position(|other| *other == before));
                self.shown.insert(to.unwrap_or(self.shown.len()), *number);
            }
        }
        for gone in &old {
            self.known.retain(|number| number != gone);
            self.shown.retain(|number| number != gone);
            self.adding.retain(|(number, _)| number != gone);
        }
    }

    /// It is idle for so many entries.
    fn idle(&mut self, entries: usize) {
        for (number, at) in self.adding.drain(..entries.min(self.adding.len())) {
            self.shown.insert(at.min(self.shown.len()), number);
        }
    }
}

/// A menu that GNOME's extension has, with the bus name `gnome`.
struct GnomeMenu {
    state: MenuState,
    shell: Shell,
    now: Instant,
}

impl GnomeMenu {
    fn new(items: Vec<Item>, moves: bool) -> Self {
        let now = Instant::now();
        let shell = Shell { moves, ..Shell::default() };
        let mut menu = Self { state: MenuState::new(&view(items), now), shell, now };
        menu.read();
        menu
    }

    /// The numbers of the entries in the menu itself.
    fn numbers(&self) -> Vec<i32> {
        let reply = self.state.layout.reply((ROOT, 1), Vec::new(), (None, ChangedNames::new()), self.state.wording());
        reply.unwrap().numbers()
    }

    fn read(&mut self) -> LayoutRead {
        let names = sent_types::TYPE_PROPERTIES.map(String::from).to_vec();
        let reading = self.state.read_layout("gnome", (ROOT, -1), names, self.now);
        let numbers = self.numbers();
        let new: Vec<_> = numbers.iter().copied().filter(|number| !self.shell.known.contains(number)).collect();
        self.shell.read(&numbers);
        if !new.is_empty() {
            self.state.read_properties("gnome", &new, &[], self.now);
        }
        reading
    }

    fn asks(&mut self) -> Opening {
        self.state.opened_by("gnome");
        self.state.about_to_show(ROOT, self.now).unwrap()
    }
}

/// Reads these menus one after the other: the entries, how many of the last ones were added by then, and after how many
/// seconds. Returns the entries on the screen once all were added, and those that should be.
fn shown_in_the_end(menus: &[(Vec<char>, usize, u64)], moves: bool) -> (Vec<i32>, Vec<i32>) {
    let items = |menu: &[char]| menu.iter().map(|id| seen(&id.to_string())).collect::<Vec<_>>();
    let mut menu = GnomeMenu::new(items(&menus[0].0), moves);
    for (ids, idle, seconds) in menus {
        // It is there within seconds.
        menu.shell.idle(if *seconds >= 5 { usize::MAX } else { *idle });
        menu.now += Duration::from_secs(*seconds);
        menu.state.show(&view(items(ids)), menu.now);
        menu.read();
    }
    menu.shell.idle(usize::MAX);
    let numbers = menu.numbers();
    (menu.shell.shown, numbers)
}

/// Case 670: what the property below found once.
#[test]
fn case_670_menus_that_were_out_of_order() {
    for menus in [[("adeighfkj", 0), ("bjkiehf", 5)], [("i", 0), ("abcefghi", 0)], [("abcefghi", 0), ("aefbkgci", 0)]] {
        let menus = menus.map(|(ids, seconds)| (ids.chars().collect(), 0, seconds));
        for moves in [false, true] {
            let (shown, numbers) = shown_in_the_end(&menus, moves);
            assert_eq!(shown, numbers, "{menus:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Case 670: layouts that follow each other faster than the shell adds their entries.
    #[test]
    fn case_670_gnomes_menu_is_in_order_although_its_entries_are_added_later(
        menus in vec((proptest::sample::subsequence(('a'..='k').collect::<Vec<_>>(), 0..=11).prop_shuffle(), 0_usize..20, 0_u64..9), 1..8),
        moves: bool,
    ) {
        let (shown, numbers) = shown_in_the_end(&menus, moves);
        prop_assert_eq!(shown, numbers);
    }
}

/// Case 671: told of changed properties while it is closed, the extension replaces everything once it is opened.
#[test]
fn case_671_gnomes_extension_is_told_of_no_property_while_the_menu_is_closed() {
    let row = |words: &str| Item::action(ItemId::own(Kind::Quit), words, Effect::Quit(Vec::new()));
    let mut menu = GnomeMenu::new(vec![row("one"), seen("a")], true);
    // It is given the menu, and asks whether it is still current.
    let asked = menu.asks();
    assert!(asked.update.changes.is_empty() && asked.update.revision.is_none() && !asked.is_new);
    let marked = menu.state.show(&view(vec![row("two"), seen("a")]), menu.now);
    assert!(marked.changes.is_empty() && marked.revision.is_some());
    assert!(menu.asks().is_new);
    let read = menu.read();
    assert!(read.changes.is_empty());
    let labels = |reading: LayoutRead| {
        let sent = reading.reply.unwrap().sent().into_iter();
        sent.filter_map(|mut sent| sent.remove("label")).collect::<Vec<_>>()
    };
    assert_eq!(labels(read), ["two".into()], "what it knows already is sent with what changed");
    assert_eq!(labels(menu.read()), ["two".into()], "it may have dropped the one before");
    menu.state.handle_event(ROOT, "opened", menu.now);
    let changed = menu.state.show(&view(vec![row("three"), seen("a")]), menu.now);
    assert_eq!(changed.changes.set.len(), 1, "while it is open it takes them up at once");
    menu.state.handle_event(ROOT, "closed", menu.now);
    menu.now += Duration::from_secs(1);
    assert!(labels(menu.read()).is_empty());
}

/// Case 671: what an entry no longer has is sent as what it is without.
#[test]
fn case_671_what_an_entry_loses_while_the_menu_is_closed_is_in_the_next_layout() {
    let check = |enabled| Item::Check {
        id: ItemId::own(Kind::Quit),
        text: "Start at login".into(),
        enabled,
        checked: false,
        effect: Effect::Quit(Vec::new()),
    };
    let mut menu = GnomeMenu::new(vec![check(false), seen("a")], true);
    menu.state.show(&view(vec![check(true), seen("a")]), menu.now);
    let mut sent = menu.read().reply.unwrap().sent();
    sent.retain(|properties| !properties.is_empty());
    assert_eq!(sent, [Properties::from([("enabled", Property::Flag(true))])], "it was sent as disabled");
}
