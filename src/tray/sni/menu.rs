//! The menu on the bus: `com.canonical.dbusmenu`, as panels call it.

use super::layout::{Changes, Layout, LayoutReply};
use super::property::{Properties, Property, ROOT};
use super::sent_types::{self, SentTypes};
use crate::system::clock::Clock;
use crate::tray::messages::{EventSender, MainEvent};
use crate::tray::view::{Item, MenuView};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zbus::fdo;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::zvariant::Value;

/// The object path of the menu.
pub(super) const PATH: &str = "/MenuBar";
/// For this long after a new layout, a click may have been meant for an entry of the old one: the panel closes the open
/// submenu then, and opens that of the row under the pointer a quarter of a second later.
const SETTLE_TIME: Duration = Duration::from_millis(1200);
/// A layout sent this shortly before the "opened" event may have reached the menu when it was already open.
const CROSSING_TIME: Duration = Duration::from_millis(250);
/// After this long without any event, a menu no longer counts as open: the panel does not report closing it.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);

/// The menu as panels know it, and what they reported about it.
pub(super) struct MenuState {
    layout: Layout,
    sent_types: SentTypes,
    revision: u32,
    /// The items to show once the menu is closed.
    pending: Option<Vec<Item>>,
    /// The open menus, by number.
    open: HashSet<i32>,
    /// When the menu was last opened; `None` if no panel reported it.
    opened: Option<Instant>,
    /// When a panel last sent any event.
    last_event: Instant,
    /// When the layout last changed.
    rebuilt: Instant,
    /// The clock for ages.
    clock: Clock,
}

impl MenuState {
    /// Creates the menu with its first view.
    pub(super) fn new(view: &MenuView, now: Instant) -> Self {
        let (mut layout, clock) = (Layout::default(), view.clock);
        layout.rebuild(&view.items, clock.now(), &mut Changes::default());
        Self {
            layout,
            sent_types: SentTypes::default(),
            revision: 1,
            pending: None,
            open: HashSet::new(),
            opened: None,
            last_event: now,
            rebuilt: now,
            clock,
        }
    }

    /// Shows another view. If the menu is open, its structure changes only when it is closed.
    pub(super) fn show(&mut self, view: &MenuView, now: Instant) -> Update {
        let mut changes = Changes::default();
        (self.pending, self.clock) = (None, view.clock);
        let (items, at) = (&view.items, view.clock.now());
        if self.layout.try_update(items, at, &mut changes) {
            return Update { changes, revision: None };
        }
        if !self.is_open(now) {
            let revision = Some(self.rebuild(items, now, &mut changes));
            return Update { changes, revision };
        }
        self.layout.update_in_place(items, at, &mut changes);
        self.pending = Some(items.clone());
        Update { changes, revision: None }
    }

    /// Updates the ages, for a menu that is about to be shown or was just opened.
    fn refresh_ages(&mut self) -> Changes {
        let mut changes = Changes::default();
        self.layout.refresh_ages(self.clock.now(), &mut changes);
        changes
    }

    fn is_open(&self, now: Instant) -> bool {
        !self.open.is_empty() && now.saturating_duration_since(self.last_event) < OPEN_TIMEOUT
    }

    fn rebuild(&mut self, items: &[Item], now: Instant, changes: &mut Changes) -> u32 {
        self.layout.rebuild(items, self.clock.now(), changes);
        self.revision = self.revision.wrapping_add(1);
        self.rebuilt = now;
        self.open.clear();
        self.revision
    }

    /// Handles a panel's event for an entry. `None` if there is no such entry.
    fn handle_event(&mut self, number: i32, event: &str, now: Instant) -> Option<EventOutcome> {
        if !self.layout.contains(number) {
            return None;
        }
        self.last_event = now;
        let mut outcome = EventOutcome::default();
        match event {
            "opened" => {
                if number == ROOT || self.open.is_empty() {
                    self.opened = Some(now);
                }
                self.open.insert(number);
                outcome.update.changes = self.refresh_ages();
            }
            "closed" => {
                self.open.remove(&number);
                if number == ROOT {
                    self.open.clear();
                }
            }
            "clicked" => {
                let item = self.layout.clicked(number).map(|id| id.to_string());
                outcome.click = item.map(|item| MainEvent::Click { item, aimed: self.is_aimed(now) });
                // Panels close the menu on a click, and not all report it.
                self.open.clear();
            }
            _ => {}
        }
        if self.open.is_empty()
            && let Some(items) = self.pending.take()
        {
            outcome.update.revision = Some(self.rebuild(&items, now, &mut outcome.update.changes));
        }
        Some(outcome)
    }

    /// Whether a click at this time is meant for the entry that it hits.
    fn is_aimed(&self, now: Instant) -> bool {
        let opened_since = self.opened.is_some_and(|opened| self.rebuilt + CROSSING_TIME <= opened);
        opened_since || now.saturating_duration_since(self.rebuilt) >= SETTLE_TIME
    }

    /// When the open menu no longer counts as open, if items are pending.
    pub(super) fn pending_deadline(&self) -> Option<Instant> {
        self.pending.as_ref().map(|_| self.last_event + OPEN_TIMEOUT)
    }

    /// Shows the pending items, if the menu no longer counts as open.
    pub(super) fn apply_overdue(&mut self, now: Instant) -> Option<Update> {
        if self.is_open(now) {
            return None;
        }
        let (items, mut changes) = (self.pending.take()?, Changes::default());
        let revision = Some(self.rebuild(&items, now, &mut changes));
        Some(Update { changes, revision })
    }
}

/// A change of the menu, to be sent as signals.
#[derive(Default)]
pub(super) struct Update {
    changes: Changes,
    /// The revision of a new layout.
    revision: Option<u32>,
}

/// The outcome of a panel's event.
#[derive(Default)]
struct EventOutcome {
    click: Option<MainEvent>,
    update: Update,
}

/// The menu's interface on the bus.
pub(super) struct Menu {
    pub(super) state: Arc<Mutex<MenuState>>,
    pub(super) send: EventSender,
}

pub(super) fn lock(state: &Mutex<MenuState>) -> MutexGuard<'_, MenuState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An event in `EventGroup`: the entry, the event, its data, a timestamp.
type Event<'a> = (i32, &'a str, Value<'a>, u32);

impl Menu {
    async fn handle_event(&self, emitter: &SignalEmitter<'_>, number: i32, event: &str) -> bool {
        let outcome = lock(&self.state).handle_event(number, event, Instant::now());
        let Some(EventOutcome { click, update }) = outcome else { return false };
        if let Some(click) = click {
            (self.send)(click);
        }
        let _ = Self::emit(emitter, update).await;
        true
    }

    /// Emits the signals of an update. Fails only with the bus, which its monitor reports.
    pub(super) async fn emit(emitter: &SignalEmitter<'_>, Update { changes, revision }: Update) -> zbus::Result<()> {
        if !changes.is_empty() {
            Self::items_properties_updated(emitter, changes.set, changes.unset).await?;
        }
        match revision {
            Some(revision) => Self::layout_updated(emitter, revision, ROOT).await,
            None => Ok(()),
        }
    }
}

/// The unique bus name of the caller.
fn caller<'a>(header: &'a Header<'_>) -> &'a str {
    header.sender().map_or("", |sender| sender.as_str())
}

fn no_entry(number: i32) -> fdo::Error {
    fdo::Error::InvalidArgs(format!("there is no entry {number} any more"))
}

#[allow(clippy::needless_pass_by_value, reason = "zbus passes arguments by value")]
#[zbus::interface(name = "com.canonical.dbusmenu")]
impl Menu {
    fn get_layout(
        &self,
        #[zbus(header)] header: Header<'_>,
        parent_id: i32,
        recursion_depth: i32,
        property_names: Vec<String>,
    ) -> fdo::Result<(u32, LayoutReply)> {
        let mut state = lock(&self.state);
        let (scope, last) = ((parent_id, recursion_depth), state.layout.last_number());
        let known = state.sent_types.of_layout(caller(&header), scope, &property_names, last);
        let names = if known.is_some() { sent_types::layout_properties() } else { property_names };
        let reply = state.layout.reply(scope, names, known, state.clock.now());
        reply.map(|reply| (state.revision, reply)).ok_or_else(|| no_entry(parent_id))
    }

    fn get_group_properties(
        &self,
        #[zbus(header)] header: Header<'_>,
        ids: Vec<i32>,
        property_names: Vec<String>,
    ) -> Vec<(i32, Properties)> {
        let state = lock(&self.state);
        let mut reply = state.layout.properties(&ids, &property_names, state.clock.now());
        state.sent_types.remove_sent(caller(&header), &property_names, &mut reply);
        reply
    }

    fn get_property(&self, id: i32, name: String) -> fdo::Result<Property> {
        let state = lock(&self.state);
        let property = state.layout.property(id, &name, state.clock.now()).ok_or_else(|| no_entry(id))?;
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
        if self.handle_event(&emitter, id, event_id).await { Ok(()) } else { Err(no_entry(id)) }
    }

    async fn event_group(
        &self,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        events: Vec<Event<'_>>,
    ) -> fdo::Result<Vec<i32>> {
        let mut unknown = Vec::new();
        for (id, event, ..) in &events {
            if !self.handle_event(&emitter, *id, event).await {
                unknown.push(*id);
            }
        }
        match unknown.len() == events.len() && !unknown.is_empty() {
            true => Err(no_entry(unknown[0])),
            false => Ok(unknown),
        }
    }

    /// Sends the current ages before the reply. The layout is always up to date, so no update is needed.
    async fn about_to_show(&self, #[zbus(signal_emitter)] emitter: SignalEmitter<'_>, id: i32) -> fdo::Result<bool> {
        let changes = {
            let mut state = lock(&self.state);
            state.layout.contains(id).then(|| state.refresh_ages())
        };
        let changes = changes.ok_or_else(|| no_entry(id))?;
        let _ = Self::emit(&emitter, Update { changes, revision: None }).await;
        Ok(false)
    }

    async fn about_to_show_group(
        &self,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        ids: Vec<i32>,
    ) -> (Vec<i32>, Vec<i32>) {
        let (changes, unknown) = {
            let mut state = lock(&self.state);
            (state.refresh_ages(), ids.into_iter().filter(|id| !state.layout.contains(*id)).collect())
        };
        let _ = Self::emit(&emitter, Update { changes, revision: None }).await;
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
    async fn layout_updated(emitter: &SignalEmitter<'_>, revision: u32, parent: i32) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn items_properties_updated(
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
        MenuView { items, ..MenuView::initial() }
    }

    fn number(state: &MenuState, id: &str) -> i32 {
        let all = state.layout.properties(&[], &[], state.clock.now());
        all.iter().find(|(_, properties)| properties.get("label") == Some(&id.into())).unwrap().0
    }

    fn after(begun: Instant, millis: u64) -> Instant {
        begun + Duration::from_millis(millis)
    }

    #[test]
    fn the_structure_changes_when_the_menu_is_closed() {
        let begun = Instant::now();
        let mut state = MenuState::new(&view(vec![seen("a")]), begun);
        assert!(state.handle_event(ROOT, "opened", begun).is_some());
        let update = state.show(&view(vec![seen("b"), seen("a")]), after(begun, 10));
        assert!(update.revision.is_none() && update.changes.is_empty());
        assert_eq!(state.handle_event(ROOT, "closed", after(begun, 20)).unwrap().update.revision, Some(2));
        assert!(number(&state, "b") > number(&state, "a"));
    }

    #[test]
    fn a_click_counts_if_the_menu_was_opened_after_its_structure_changed() {
        let begun = Instant::now();
        let aimed = |state: &mut MenuState, now| {
            let a = number(state, "a");
            match state.handle_event(a, "clicked", now).unwrap().click {
                Some(MainEvent::Click { aimed, .. }) => aimed,
                other => panic!("{other:?}"),
            }
        };
        // For a panel that never reports opening the menu, only the time since the layout counts.
        let mut state = MenuState::new(&view(vec![seen("a")]), begun);
        assert!(!aimed(&mut state, after(begun, 1100)));
        assert!(aimed(&mut state, after(begun, 1200)));
        // The first click after the menu was opened.
        let mut state = MenuState::new(&view(vec![seen("a")]), begun);
        state.handle_event(ROOT, "opened", after(begun, 300));
        assert!(aimed(&mut state, after(begun, 500)));
        // The layout may have arrived after the menu was opened.
        let mut state = MenuState::new(&view(vec![seen("a")]), begun);
        state.handle_event(ROOT, "opened", after(begun, 200));
        assert!(!aimed(&mut state, after(begun, 500)));
    }

    #[test]
    fn a_panel_that_never_reports_closing_the_menu_delays_changes_by_a_minute() {
        let begun = Instant::now();
        let mut state = MenuState::new(&view(vec![seen("a")]), begun);
        state.handle_event(ROOT, "opened", begun);
        state.show(&view(vec![seen("b")]), begun);
        assert!(state.apply_overdue(after(begun, 59_000)).is_none());
        assert_eq!(state.pending_deadline(), Some(after(begun, 60_000)));
        assert_eq!(state.apply_overdue(after(begun, 60_000)).unwrap().revision, Some(2));
        assert_eq!(state.pending_deadline(), None);
    }

    #[test]
    fn an_open_submenu_also_keeps_the_structure() {
        let begun = Instant::now();
        let row = |items| {
            let id = ItemId::of(&(0, "x".into()), Kind::Row);
            Item::submenu(id, "x", items)
        };
        let mut state = MenuState::new(&view(vec![row(vec![seen("a")])]), begun);
        let x = number(&state, "x");
        state.handle_event(x, "opened", begun);
        assert!(state.show(&view(vec![row(vec![seen("b")])]), begun).revision.is_none());
        assert_eq!(state.handle_event(x, "closed", begun).unwrap().update.revision, Some(2));
        assert!(state.handle_event(99, "opened", begun).is_none(), "there is no such entry");
    }
}
