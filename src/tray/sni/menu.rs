//! The menu on the bus: `com.canonical.dbusmenu`, as panels call it.

use super::forms::{self, Forms};
use super::layout::{Changes, Layout, Properties, Property, ROOT, Told};
use crate::system::clock::Clock;
use crate::tray::controller;
use crate::tray::view::{Item, MenuView};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zbus::fdo;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::zvariant::Value;

/// Where the menu is on our connection.
pub(super) const PATH: &str = "/MenuBar";
/// For so long after the menu was laid out anew, a click may have been meant for what stood there before: a panel closes what
/// was open then, and opens the submenu of whatever row stands under the pointer now, a quarter of a second later.
const SETTLES: Duration = Duration::from_millis(1200);
/// A layout that was sent so shortly before we heard that the menu was opened may have arrived in the open menu.
const CROSSES: Duration = Duration::from_millis(250);
/// A panel that says for so long neither that the menu was closed nor anything else does not tell when that happens.
const STAYS_OPEN: Duration = Duration::from_secs(60);

/// What a panel shows, and what it has told us.
pub(super) struct Shown {
    layout: Layout,
    forms: Forms,
    revision: u32,
    /// What the menu will be when it is closed.
    next: Option<Vec<Item>>,
    /// The menus that are open.
    open: HashSet<i32>,
    /// When the menu was last opened, and when a panel last said anything; none where it never says the former.
    opened: Option<Instant>,
    heard: Instant,
    laid_out: Instant,
    /// What ages are counted by.
    clock: Clock,
}

impl Shown {
    /// What is shown first.
    pub(super) fn new(view: &MenuView, now: Instant) -> Self {
        let (mut layout, clock) = (Layout::default(), view.clock);
        layout.lay_out(&view.items, clock.now(), &mut Changes::default());
        let forms = Forms::default();
        Self {
            layout,
            forms,
            revision: 1,
            next: None,
            open: HashSet::new(),
            opened: None,
            heard: now,
            laid_out: now,
            clock,
        }
    }

    /// Shows these from now on; where the menu is open, places change only when it is closed.
    pub(super) fn show(&mut self, view: &MenuView, now: Instant) -> Said {
        let mut changes = Changes::default();
        (self.next, self.clock) = (None, view.clock);
        let (items, at) = (&view.items, view.clock.now());
        if self.layout.reword(items, at, &mut changes) {
            return Said { changes, laid_out: None };
        }
        if !self.is_open(now) {
            let laid_out = Some(self.lay_out(items, now, &mut changes));
            return Said { changes, laid_out };
        }
        self.layout.reword_in_place(items, at, &mut changes);
        self.next = Some(items.clone());
        Said { changes, laid_out: None }
    }

    /// The menu is about to be shown, or was opened just now: its ages are worded as they are true now. Its places stay.
    fn renew(&mut self) -> Changes {
        let mut changes = Changes::default();
        self.layout.renew(self.clock.now(), &mut changes);
        changes
    }

    fn is_open(&self, now: Instant) -> bool {
        !self.open.is_empty() && now.saturating_duration_since(self.heard) < STAYS_OPEN
    }

    fn lay_out(&mut self, items: &[Item], now: Instant, changes: &mut Changes) -> u32 {
        self.layout.lay_out(items, self.clock.now(), changes);
        self.revision = self.revision.wrapping_add(1);
        self.laid_out = now;
        self.open.clear();
        self.revision
    }

    /// What a panel says of an entry. `None`: there is no such entry.
    fn hear(&mut self, number: i32, event: &str, now: Instant) -> Option<Heard> {
        if !self.layout.has(number) {
            return None;
        }
        self.heard = now;
        let mut heard = Heard::default();
        match event {
            "opened" => {
                if number == ROOT || self.open.is_empty() {
                    self.opened = Some(now);
                }
                self.open.insert(number);
                heard.changes = self.renew();
            }
            "closed" => {
                self.open.remove(&number);
                if number == ROOT {
                    self.open.clear();
                }
            }
            "clicked" => {
                let item = self.layout.clicked(number).map(|id| id.to_string());
                heard.clicked = item.map(|item| controller::Told::Item { item, aimed: self.is_aimed(now) });
                // Panels close the menu then, and not all say so.
                self.open.clear();
            }
            _ => {}
        }
        if self.open.is_empty()
            && let Some(items) = self.next.take()
        {
            heard.laid_out = Some(self.lay_out(&items, now, &mut heard.changes));
        }
        Some(heard)
    }

    /// Whether who clicks now has seen what stands there.
    fn is_aimed(&self, now: Instant) -> bool {
        let opened_since = self.opened.is_some_and(|opened| self.laid_out + CROSSES <= opened);
        opened_since || now.saturating_duration_since(self.laid_out) >= SETTLES
    }

    /// When a menu that is said to be open no longer counts as open, where that is waited for.
    pub(super) fn waits_until(&self) -> Option<Instant> {
        self.next.as_ref().map(|_| self.heard + STAYS_OPEN)
    }

    /// Lays out what waits for the menu to be closed, if that was not said for too long.
    pub(super) fn wait_no_longer(&mut self, now: Instant) -> Option<Said> {
        if self.is_open(now) {
            return None;
        }
        let (items, mut changes) = (self.next.take()?, Changes::default());
        let laid_out = Some(self.lay_out(&items, now, &mut changes));
        Some(Said { changes, laid_out })
    }
}

/// What is to be said on the bus.
pub(super) struct Said {
    pub(super) changes: Changes,
    /// The revision of a new layout.
    pub(super) laid_out: Option<u32>,
}

/// What comes of a panel's word.
#[derive(Default)]
struct Heard {
    clicked: Option<controller::Told>,
    changes: Changes,
    laid_out: Option<u32>,
}

/// The menu, for the bus.
pub(super) struct Menu {
    pub(super) shown: Arc<Mutex<Shown>>,
    pub(super) tell: super::Tell,
}

pub(super) fn lock(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The event of one entry in `EventGroup`: its number, the event, data, a time stamp.
type Event<'a> = (i32, &'a str, Value<'a>, u32);

impl Menu {
    async fn hear(&self, emitter: &SignalEmitter<'_>, number: i32, event: &str) -> bool {
        let heard = lock(&self.shown).hear(number, event, Instant::now());
        let Some(Heard { clicked, changes, laid_out }) = heard else { return false };
        if let Some(clicked) = clicked {
            (self.tell)(clicked);
        }
        Self::say(emitter, changes).await;
        if let Some(revision) = laid_out {
            // Fails only with the bus, which is noticed elsewhere.
            let _ = Self::layout_updated(emitter, revision, ROOT).await;
        }
        true
    }
}

impl Menu {
    /// Says which entries have other words now.
    async fn say(emitter: &SignalEmitter<'_>, changes: Changes) {
        if !changes.is_empty() {
            // Fails only with the bus, which is noticed elsewhere.
            let _ = Self::items_properties_updated(emitter, changes.set, changes.unset).await;
        }
    }
}

/// Who asks, by its name on the bus.
fn asker<'a>(header: &'a Header<'_>) -> &'a str {
    header.sender().map_or("", |sender| sender.as_str())
}

fn no_entry(number: i32) -> fdo::Error {
    fdo::Error::InvalidArgs(format!("there is no entry {number} any more"))
}

#[allow(clippy::needless_pass_by_value, reason = "what comes over the bus is handed over")]
#[zbus::interface(name = "com.canonical.dbusmenu")]
impl Menu {
    fn get_layout(
        &self,
        #[zbus(header)] header: Header<'_>,
        parent_id: i32,
        recursion_depth: i32,
        property_names: Vec<String>,
    ) -> fdo::Result<(u32, Told)> {
        let mut shown = lock(&self.shown);
        let last = shown.layout.last();
        let known = shown.forms.of_layout(asker(&header), (parent_id, recursion_depth), &property_names, last);
        let names = if known.is_some() { forms::told() } else { property_names };
        let told = shown.layout.tell((parent_id, recursion_depth), names, known, shown.clock.now());
        told.map(|told| (shown.revision, told)).ok_or_else(|| no_entry(parent_id))
    }

    fn get_group_properties(
        &self,
        #[zbus(header)] header: Header<'_>,
        ids: Vec<i32>,
        property_names: Vec<String>,
    ) -> Vec<(i32, Properties)> {
        let shown = lock(&self.shown);
        let mut told = shown.layout.properties(&ids, &property_names, shown.clock.now());
        shown.forms.leave_out(asker(&header), &property_names, &mut told);
        told
    }

    fn get_property(&self, id: i32, name: String) -> fdo::Result<Property> {
        let shown = lock(&self.shown);
        let property = shown.layout.property(id, &name, shown.clock.now()).ok_or_else(|| no_entry(id))?;
        property.ok_or_else(|| fdo::Error::InvalidArgs(format!("entry {id} has no {name}")))
    }

    async fn event(
        &self,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        id: i32,
        event_id: &str,
        _data: Value<'_>,
        _timestamp: u32,
    ) -> fdo::Result<()> {
        if self.hear(&emitter, id, event_id).await { Ok(()) } else { Err(no_entry(id)) }
    }

    async fn event_group(
        &self,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        events: Vec<Event<'_>>,
    ) -> fdo::Result<Vec<i32>> {
        let mut unknown = Vec::new();
        for (id, event, ..) in &events {
            if !self.hear(&emitter, *id, event).await {
                unknown.push(*id);
            }
        }
        match unknown.len() == events.len() && !unknown.is_empty() {
            true => Err(no_entry(unknown[0])),
            false => Ok(unknown),
        }
    }

    /// Places are always up to date; ages are told before the answer is.
    async fn about_to_show(&self, #[zbus(signal_emitter)] emitter: SignalEmitter<'_>, id: i32) -> fdo::Result<bool> {
        let changes = {
            let mut shown = lock(&self.shown);
            shown.layout.has(id).then(|| shown.renew())
        };
        Self::say(&emitter, changes.ok_or_else(|| no_entry(id))?).await;
        Ok(false)
    }

    async fn about_to_show_group(
        &self,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        ids: Vec<i32>,
    ) -> (Vec<i32>, Vec<i32>) {
        let (changes, unknown) = {
            let mut shown = lock(&self.shown);
            (shown.renew(), ids.into_iter().filter(|id| !shown.layout.has(*id)).collect())
        };
        Self::say(&emitter, changes).await;
        (Vec::new(), unknown)
    }

    #[zbus(property)]
    fn version(&self) -> u32 {
        3
    }

    #[zbus(property)]
    fn text_direction(&self) -> String {
        "ltr".into()
    }

    #[zbus(property)]
    fn status(&self) -> String {
        "normal".into()
    }

    #[zbus(property)]
    fn icon_theme_path(&self) -> Vec<String> {
        Vec::new()
    }

    #[zbus(signal)]
    pub(super) async fn layout_updated(emitter: &SignalEmitter<'_>, revision: u32, parent: i32) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(super) async fn items_properties_updated(
        emitter: &SignalEmitter<'_>,
        updated_props: Vec<(i32, Properties)>,
        removed_props: Vec<(i32, Vec<&str>)>,
    ) -> zbus::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tray::view::{Effect, ItemId, Kind};

    fn seen(id: &str) -> Item {
        Item::action(ItemId::of(&(0, id.into()), Kind::Seen), id, Effect::Seen)
    }

    fn view(items: Vec<Item>) -> MenuView {
        MenuView { items, ..MenuView::before_the_first_look() }
    }

    fn number(shown: &Shown, id: &str) -> i32 {
        let all = shown.layout.properties(&[], &[], shown.clock.now());
        all.iter().find(|(_, properties)| properties.get("label") == Some(&id.into())).unwrap().0
    }

    fn after(begun: Instant, millis: u64) -> Instant {
        begun + Duration::from_millis(millis)
    }

    #[test]
    fn places_change_when_the_menu_is_closed() {
        let begun = Instant::now();
        let mut shown = Shown::new(&view(vec![seen("a")]), begun);
        assert!(shown.hear(ROOT, "opened", begun).is_some());
        let said = shown.show(&view(vec![seen("b"), seen("a")]), after(begun, 10));
        assert!(said.laid_out.is_none() && said.changes.is_empty());
        assert_eq!(shown.hear(ROOT, "closed", after(begun, 20)).unwrap().laid_out, Some(2));
        assert!(number(&shown, "b") > number(&shown, "a"));
    }

    #[test]
    fn a_click_counts_where_the_menu_was_opened_after_its_places_changed() {
        let begun = Instant::now();
        let aimed = |shown: &mut Shown, now| {
            let a = number(shown, "a");
            match shown.hear(a, "clicked", now).unwrap().clicked {
                Some(controller::Told::Item { aimed, .. }) => aimed,
                other => panic!("{other:?}"),
            }
        };
        // Of a panel that never says that it opens the menu, only a rest is known.
        let mut shown = Shown::new(&view(vec![seen("a")]), begun);
        assert!(!aimed(&mut shown, after(begun, 1100)));
        assert!(aimed(&mut shown, after(begun, 1200)));
        // The first click after the menu was opened.
        let mut shown = Shown::new(&view(vec![seen("a")]), begun);
        shown.hear(ROOT, "opened", after(begun, 300));
        assert!(aimed(&mut shown, after(begun, 500)));
        // The layout may have come into the open menu.
        let mut shown = Shown::new(&view(vec![seen("a")]), begun);
        shown.hear(ROOT, "opened", after(begun, 200));
        assert!(!aimed(&mut shown, after(begun, 500)));
    }

    #[test]
    fn a_panel_that_never_says_that_the_menu_was_closed_is_not_waited_for() {
        let begun = Instant::now();
        let mut shown = Shown::new(&view(vec![seen("a")]), begun);
        shown.hear(ROOT, "opened", begun);
        shown.show(&view(vec![seen("b")]), begun);
        assert!(shown.wait_no_longer(after(begun, 59_000)).is_none());
        assert_eq!(shown.waits_until(), Some(after(begun, 60_000)));
        assert_eq!(shown.wait_no_longer(after(begun, 60_000)).unwrap().laid_out, Some(2));
        assert_eq!(shown.waits_until(), None);
    }

    #[test]
    fn a_submenu_that_is_open_holds_the_places_too() {
        let begun = Instant::now();
        let row = |items| {
            let id = ItemId::of(&(0, "x".into()), Kind::Row);
            Item::submenu(id, "x", items)
        };
        let mut shown = Shown::new(&view(vec![row(vec![seen("a")])]), begun);
        let x = number(&shown, "x");
        shown.hear(x, "opened", begun);
        assert!(shown.show(&view(vec![row(vec![seen("b")])]), begun).laid_out.is_none());
        assert_eq!(shown.hear(x, "closed", begun).unwrap().laid_out, Some(2));
        assert!(shown.hear(99, "opened", begun).is_none(), "there is no such entry");
    }
}
