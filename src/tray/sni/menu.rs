//! The menu on the bus: `com.canonical.dbusmenu`, as panels call it.
//!
//! While the menu is closed, a new view is only kept, and panels are told once that what they have is out of date
//! ([`Stale`]). They are sent it when they open the menu, or read it. While the menu is open it stands still
//! ([`Presence`]): words change in place, and everything else waits.

use super::layout::{Changes, Layout, LayoutReply, Meaning};
use super::presence::Presence;
use super::property::{Properties, Property, ROOT};
use super::sent_types::{self, SentTypes};
use super::stale::Stale;
use crate::system::clock::Clock;
use crate::tray::messages::{Click, EventSender, MainEvent};
use crate::tray::view::{Item, MenuView};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use zbus::fdo;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::zvariant::Value;

/// The object path of the menu.
pub(super) const PATH: &str = "/MenuBar";
/// For this long after a new layout, a click may have been meant for an entry of the old one, unless the menu was opened
/// since: a panel that reports nothing may have had it open.
const SETTLE_TIME: Duration = Duration::from_millis(1200);
/// How long a panel that opens the menu, and is told that it is new, may take to read it. GNOME's extension may have lost
/// the reply to an earlier reading, and waits for that for ever.
const READ_MAX: Duration = Duration::from_secs(4);
/// How long after a menu was read its submenus are announced: the panel must know them by then.
const ANNOUNCE_AFTER: Duration = Duration::from_millis(30);

/// The menu as panels know it, and what they reported about it.
pub(super) struct MenuState {
    layout: Layout,
    sent_types: SentTypes,
    revision: u32,
    /// The items that panels were not sent yet.
    pending: Option<Vec<Item>>,
    presence: Presence,
    stale: Stale,
    /// Whether a panel has read the menu.
    was_read: bool,
    /// Whether it reads one level at a time.
    reads_levels: bool,
    /// When a panel was told at an opening that the menu is new, if it has not read it since.
    unread: Option<Instant>,
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
            presence: Presence::new(now),
            stale: Stale::default(),
            was_read: false,
            reads_levels: false,
            unread: None,
            rebuilt: now,
            clock,
        }
    }

    /// Shows another view: its words at once if the menu is open, everything else when it is opened or read next.
    pub(super) fn show(&mut self, view: &MenuView, now: Instant) -> Update {
        self.clock = view.clock;
        self.pending = Some(view.items.clone()).filter(|items| !self.layout.shows(items));
        if self.presence.is_visible(now) { self.update_words() } else { self.mark(now) }
    }

    /// Updates the words of an open menu.
    fn update_words(&mut self) -> Update {
        let mut changes = Changes::default();
        if let Some(items) = self.pending.take() {
            let at = self.clock.now();
            if !self.layout.try_update(&items, at, &mut changes) {
                self.layout.update_in_place(&items, at, &mut changes);
                self.pending = Some(items);
            }
        }
        Update { changes, revision: None }
    }

    /// Tells panels that the menu they have is out of date, if it is time to.
    fn mark(&mut self, now: Instant) -> Update {
        if self.mark_due(now).is_none_or(|due| now < due) {
            return Update::default();
        }
        self.stale.send(now);
        Update { changes: Changes::default(), revision: Some(self.next_revision()) }
    }

    /// When [`on_deadline`](Self::on_deadline) is to be called, unless something happens before; it may be in the past.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        self.mark_due(now).into_iter().chain(self.unread_due()).min()
    }

    /// Does what is due at the deadline. Returns whether a panel that opened the menu no longer reads it.
    pub(super) fn on_deadline(&mut self, now: Instant) -> (Update, bool) {
        let is_unread = self.unread_due().is_some_and(|due| due <= now);
        self.unread = self.unread.filter(|_| !is_unread);
        (self.mark(now), is_unread)
    }

    /// When panels are told that the menu they have is out of date, if it is.
    fn mark_due(&self, now: Instant) -> Option<Instant> {
        let items = self.pending.as_ref()?;
        let is_resized = !self.presence.says_opened() && !self.layout.has_size_of(items);
        self.stale.due(self.presence.is_reported(), is_resized, now).map(|due| self.when_closed(due))
    }

    /// When a panel that has not read the menu is given up: not while its menu is open.
    fn unread_due(&self) -> Option<Instant> {
        self.unread.map(|told| self.when_closed(told + READ_MAX))
    }

    fn when_closed(&self, due: Instant) -> Instant {
        self.presence.held_until().map_or(due, |until| due.max(until))
    }

    fn next_revision(&mut self) -> u32 {
        self.revision = self.revision.wrapping_add(1);
        self.revision
    }

    /// Brings the layout up to date.
    fn flush(&mut self, now: Instant) -> Update {
        let (mut changes, at) = (Changes::default(), self.clock.now());
        let Some(items) = self.pending.take() else { return Update::default() };
        if self.layout.try_update(&items, at, &mut changes) {
            return Update { changes, revision: None };
        }
        self.layout.rebuild(&items, at, &mut changes);
        self.rebuilt = now;
        Update { changes, revision: Some(self.next_revision()) }
    }

    /// Brings a menu that is opened up to date. Any menu gets the current ages.
    fn appear(&mut self, opens: bool, now: Instant) -> Update {
        let mut update = Update::default();
        if opens {
            self.stale.open();
            update = self.flush(now);
            if update.revision.is_some() && self.was_read {
                self.unread = Some(now);
            }
        }
        self.layout.refresh_ages(self.clock.now(), &mut update.changes);
        update
    }

    /// A panel is about to show the menu with this number. `None` if there is none.
    fn about_to_show(&mut self, number: i32, now: Instant) -> Option<Update> {
        if !self.layout.contains(number) {
            return None;
        }
        let opens = self.presence.about_to_show(number, now);
        Some(self.appear(opens, now))
    }

    /// The submenus to announce to panels that read one level at a time: Plasma opens a submenu that it has not read off
    /// the screen, as it does not know its size.
    fn to_announce(&self, number: i32, now: Instant) -> Vec<i32> {
        let is_shown = self.reads_levels && self.presence.is_visible(now);
        if is_shown { self.layout.submenus_of(number) } else { Vec::new() }
    }

    /// A panel reads the menu with this number.
    fn read(&mut self, number: i32, now: Instant) -> Update {
        if number != ROOT {
            return Update::default();
        }
        self.stale.read();
        (self.was_read, self.unread) = (true, None);
        if self.presence.is_held(now) { Update::default() } else { self.flush(now) }
    }

    /// Handles a panel's event for an entry. `None` if there never was such an entry.
    fn handle_event(&mut self, number: i32, event: &str, now: Instant) -> Option<EventOutcome> {
        if !self.layout.was_given(number) {
            return None;
        }
        let mut outcome = EventOutcome::default();
        match event {
            "opened" => {
                let opens = self.presence.opened(number, now);
                outcome.update = self.appear(opens, now);
            }
            "closed" => self.presence.closed(number, now),
            "clicked" => {
                outcome.click = self.click(number, now);
                self.presence.close(now);
            }
            _ => {}
        }
        Some(outcome)
    }

    /// What a click on this entry means; `None` for an entry without a meaning.
    fn click(&mut self, number: i32, now: Instant) -> Option<Click> {
        let is_current = self.layout.contains(number);
        match self.layout.clicked(number) {
            // Its number says which one it was.
            Some(Meaning { id, effect }) if !is_current || self.is_aimed(now) => Some(Click::Item(id, effect)),
            Some(_) => Some(Click::Unaimed),
            None => (!is_current).then_some(Click::Outdated),
        }
    }

    /// Whether a click at this time is meant for the entry that it hits.
    fn is_aimed(&self, now: Instant) -> bool {
        self.presence.opened_since(self.rebuilt) || now.saturating_duration_since(self.rebuilt) >= SETTLE_TIME
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
    click: Option<Click>,
    update: Update,
}

/// The menu's interface on the bus.
pub(super) struct Menu {
    pub(super) state: Arc<Mutex<MenuState>>,
    pub(super) send: EventSender,
    /// Notified when the deadline of the state may have changed.
    pub(super) wake: Arc<Notify>,
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
            (self.send)(MainEvent::Click(click));
        }
        self.wake.notify_one();
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

/// Announces submenus a little later, so that the panel reads them before it shows them.
fn announce(emitter: &SignalEmitter<'_>, revision: u32, submenus: Vec<i32>) {
    if submenus.is_empty() {
        return;
    }
    let emitter = emitter.to_owned();
    tokio::spawn(async move {
        tokio::time::sleep(ANNOUNCE_AFTER).await;
        for submenu in submenus {
            let _ = Menu::layout_updated(&emitter, revision, submenu).await; // fails only with the bus
        }
    });
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
    async fn get_layout(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        parent_id: i32,
        recursion_depth: i32,
        property_names: Vec<String>,
    ) -> fdo::Result<(u32, LayoutReply)> {
        let (now, is_root) = (Instant::now(), parent_id == ROOT);
        let (changes, revision, submenus, reply) = {
            let mut state = lock(&self.state);
            let Update { changes, revision: _ } = state.read(parent_id, now);
            state.reads_levels |= is_root && recursion_depth == 1;
            let submenus = if is_root { state.to_announce(ROOT, now) } else { Vec::new() };
            let (scope, last) = ((parent_id, recursion_depth), state.layout.last_number());
            let known = state.sent_types.of_layout(caller(&header), scope, &property_names, last);
            let names = if known.is_some() { sent_types::layout_properties() } else { property_names };
            (changes, state.revision, submenus, state.layout.reply(scope, names, known, state.clock.now()))
        };
        self.wake.notify_one();
        announce(&emitter, revision, submenus);
        // The reply has the new layout, but GNOME's extension reads only new entries from it.
        let _ = Self::emit(&emitter, Update { changes, revision: None }).await;
        reply.map(|reply| (revision, reply)).ok_or_else(|| no_entry(parent_id))
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

    /// Sends what changed before the reply, which says whether the layout must be read again.
    async fn about_to_show(&self, #[zbus(signal_emitter)] emitter: SignalEmitter<'_>, id: i32) -> fdo::Result<bool> {
        let now = Instant::now();
        let (update, revision, submenus) = {
            let mut state = lock(&self.state);
            (state.about_to_show(id, now), state.revision, state.to_announce(id, now))
        };
        self.wake.notify_one();
        let update = update.ok_or_else(|| no_entry(id))?;
        let is_new = update.revision.is_some();
        if !is_new {
            announce(&emitter, revision, submenus); // else when it was read again
        }
        let _ = Self::emit(&emitter, update).await;
        Ok(is_new)
    }

    async fn about_to_show_group(
        &self,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        ids: Vec<i32>,
    ) -> (Vec<i32>, Vec<i32>) {
        let (mut updated, mut unknown) = (Vec::new(), Vec::new());
        for id in ids {
            let update = lock(&self.state).about_to_show(id, Instant::now());
            match update {
                Some(update) => {
                    updated.extend(update.revision.map(|_| id));
                    let _ = Self::emit(&emitter, update).await;
                }
                None => unknown.push(id),
            }
        }
        self.wake.notify_one();
        (updated, unknown)
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
mod tests;
