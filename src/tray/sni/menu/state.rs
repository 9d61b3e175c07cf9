//! The menu as panels know it, and what they reported about it. Pure.

use super::super::fit::{Size, fit};
use super::super::layout::{ChangedNames, Changes, Layout, LayoutReply, Wording};
use super::super::presence::Presence;
use super::super::property::{Properties, Property, ROOT};
use super::super::readers::{Readers, Sign};
use super::super::sent_types::{self, SentTypes};
use super::super::stale::Stale;
use crate::tray::messages::Click;
use crate::tray::view::{Item, MenuView};
use pilotlight_core::time::Moment;
use pilotlight_system::clock::Clock;
use std::time::{Duration, Instant};

/// For this long after a new layout, a click may have been meant for an entry of the old one, unless the menu was opened
/// since: a panel that reports nothing may have had it open.
const SETTLE_TIME: Duration = Duration::from_millis(1200);
/// How long a panel that opens the menu, and is told that it is new, may take to read it. GNOME's extension may have lost
/// the reply to an earlier reading, and waits for that for ever.
const READ_MAX: Duration = Duration::from_secs(4);
/// How long after a click on the icon a panel may take to open the menu, which it may also have done just before: GNOME
/// reports a second click as one on the icon.
pub(crate) const ICON_CLICK: Duration = Duration::from_millis(500);
const DOUBLE_CLICK: Duration = Duration::from_secs(1);

/// How many rows are there, shown or hidden, before they are needed, where a panel shows how it adds each: as many as the
/// menu has on a small display.
const SLOTS: usize = 6;

/// The menu as panels know it, and what they reported about it.
pub(crate) struct MenuState {
    layout: Layout,
    readers: Readers,
    sent_types: SentTypes,
    revision: u32,
    /// The items that panels were not sent yet.
    pending: Option<Vec<Item>>,
    presence: Presence,
    /// The bus name of the panel that last opened it.
    opener: Option<String>,
    stale: Stale,
    /// Whether a panel has read the menu.
    was_read: bool,
    /// Whether it reads one level at a time.
    reads_levels: bool,
    /// What GNOME's extension was sent with layouts since it closed the menu: it may have dropped any of those for the next one.
    changed_unseen: ChangedNames,
    /// When a panel was told at an opening that the menu is new, if it has not read it since.
    unread: Option<Instant>,
    /// When the layout last changed.
    rebuilt: Instant,
    /// When the icon itself was last clicked.
    icon_clicked: Option<Instant>,
    /// The clock for ages.
    clock: Clock,
    /// When the menu was opened, while its ages stand still: GTK does not widen an open menu, and draws a label that grows
    /// over the picture beside it.
    ages_at: Option<Moment>,
}

impl MenuState {
    /// Creates the menu with its first view.
    pub(crate) fn new(view: &MenuView, now: Instant) -> Self {
        let (mut layout, clock) = (Layout::default(), view.clock);
        let how = Wording { now: clock.now(), sign: Sign::default(), spaced: false };
        layout.rebuild(&view.items, how, &mut Changes::default());
        Self {
            layout,
            readers: Readers::default(),
            sent_types: SentTypes::default(),
            revision: 1,
            pending: None,
            presence: Presence::new(now),
            opener: None,
            stale: Stale::default(),
            was_read: false,
            reads_levels: false,
            changed_unseen: ChangedNames::new(),
            unread: None,
            rebuilt: now,
            icon_clicked: None,
            clock,
            ages_at: None,
        }
    }

    /// Shows another view: its words at once if the menu is open, everything else when it is opened or read next.
    pub(crate) fn show(&mut self, view: &MenuView, now: Instant) -> Update {
        self.clock = view.clock;
        self.pending = Some(view.items.clone()).filter(|items| !self.layout.shows(items));
        self.release_ages(now);
        if self.presence.is_visible(now) { self.update_words() } else { self.mark(now) }
    }

    /// Updates the words of an open menu.
    fn update_words(&mut self) -> Update {
        let mut changes = Changes::default();
        if let Some(items) = self.pending.take() {
            let how = self.wording();
            if !self.layout.try_update(&items, how, &mut changes) {
                self.layout.update_in_place(&items, how, &mut changes);
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
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        self.mark_due(now).into_iter().chain(self.unread_due()).min()
    }

    /// Does what is due at the deadline. Returns whether a panel that opened the menu no longer reads it.
    pub(crate) fn on_deadline(&mut self, now: Instant) -> (Update, bool) {
        let is_unread = self.unread_due().is_some_and(|due| due <= now);
        if is_unread {
            self.unread = None;
            self.sent_types.forgive();
        }
        (self.mark(now), is_unread)
    }

    /// When panels are told that the menu they have is out of date, if it is.
    fn mark_due(&self, now: Instant) -> Option<Instant> {
        let items = self.pending.as_ref()?;
        let is_resized = !self.presence.says_opened() && self.layout.size() != Size::of(items);
        self.stale.due(self.presence.is_reported(), is_resized, now).map(|due| self.when_closed(due))
    }

    /// When a panel that has not read the menu, or lost what it read, is given up: not while its menu is open.
    fn unread_due(&self) -> Option<Instant> {
        let told = self.unread.map(|told| told + READ_MAX);
        told.into_iter().chain(self.sent_types.lost_at()).min().map(|due| self.when_closed(due))
    }

    fn when_closed(&self, due: Instant) -> Instant {
        self.presence.held_until().map_or(due, |until| due.max(until))
    }

    fn next_revision(&mut self) -> u32 {
        self.revision = self.revision.wrapping_add(1);
        self.revision
    }

    /// Brings the layout up to date, in its size if it should keep that. Then the whole of it is still pending.
    fn flush(&mut self, keeps_size: bool, now: Instant) -> Update {
        let (mut changes, how) = (Changes::default(), self.wording());
        let Some(mut items) = self.pending.take() else { return Update::default() };
        if let Some(fitting) = Some(self.layout.size()).filter(|_| keeps_size).and_then(|size| fit(&items, size)) {
            self.pending = Some(std::mem::replace(&mut items, fitting));
        }
        if self.layout.try_update(&items, how, &mut changes) {
            return Update { changes, revision: None };
        }
        if self.sent_types.is_placing(now) {
            self.layout.rebuild_anew(&items, how);
        } else {
            self.layout.rebuild(&items, how, &mut changes);
        }
        self.rebuilt = now;
        Update { changes, revision: Some(self.next_revision()) }
    }

    /// Brings a menu that is opened up to date. Any menu gets the current ages.
    fn appear(&mut self, opens: bool, now: Instant) -> Update {
        let mut update = Update::default();
        self.release_ages(now);
        if opens {
            self.stale.open();
            self.ages_at = Some(self.clock.now()).filter(|_| self.is_gtk());
            update = self.flush(self.is_gtk(), now);
            if update.revision.is_some() && self.was_read {
                self.unread = Some(now);
            }
        }
        self.layout.refresh_ages(self.wording(), &mut update.changes);
        update
    }

    /// Whether the panel is one of those that are built on GTK: it does not enlarge a menu that is on the screen.
    fn is_gtk(&self) -> bool {
        self.readers.panel() == Sign::Picture && !self.reads_levels && !self.presence.says_opened()
    }

    /// Lets ages pass again once the menu is closed.
    fn release_ages(&mut self, now: Instant) {
        self.ages_at = self.ages_at.filter(|_| self.presence.is_visible(now) && self.is_gtk());
    }

    /// The wording for what is sent to all.
    fn wording(&self) -> Wording {
        let now = self.ages_at.unwrap_or_else(|| self.clock.now());
        Wording { now, sign: self.readers.panel(), spaced: self.reads_levels }
    }

    /// The wording for a reader with this bus name.
    fn wording_for(&self, caller: &str) -> Wording {
        Wording { sign: self.readers.sign_of(caller), ..self.wording() }
    }

    /// A panel is about to show the menu with this number. `None` if there is none.
    pub(super) fn about_to_show(&mut self, number: i32, now: Instant) -> Option<Opening> {
        if !self.layout.contains(number) {
            return None;
        }
        if number == ROOT && self.asks_unopened() {
            let (is_new, revision) = (self.pending.is_some(), self.revision);
            return Some(Opening { update: Update::default(), is_new, later: Vec::new(), revision });
        }
        let opens = self.presence.about_to_show(number, now);
        let mut update = self.appear(opens, now);
        let is_new = update.revision.is_some();
        // A panel that is told so reads the menu, and Plasma then ignores the next signal that it is new: one that came
        // before the answer would not count, but the next mark would. Others are told where the menu is new.
        let later = match is_new {
            true if self.reads_levels => update.revision.take().map(|_| ROOT).into_iter().collect(),
            true => Vec::new(), // else when it was read again
            false => self.to_announce(number, now),
        };
        Some(Opening { update, is_new, later, revision: self.revision })
    }

    /// Whether the panel that says that it is about to show the menu only asks whether what it has is current: GNOME's
    /// extension, which reports before that it opens it.
    fn asks_unopened(&self) -> bool {
        let is_gnomes = self.opener.as_deref().is_some_and(|opener| self.sent_types.is_reader(opener));
        is_gnomes && !self.presence.is_reported_open()
    }

    /// The menu is no longer on the screen, although its panel does not say so.
    pub(crate) fn was_closed(&mut self, now: Instant) {
        if self.presence.is_visible(now) {
            self.presence.close(now);
        }
    }

    /// The panel with this bus name opens the menu, or a part of it.
    pub(super) fn opened_by(&mut self, caller: &str) {
        if self.opener.as_deref() != Some(caller) {
            self.opener = Some(caller.into());
        }
    }

    /// When it is to be found out whether the menu is still on the screen.
    pub(crate) fn doubtful_at(&self) -> Option<Instant> {
        // One that no panel announced cannot be asked about.
        self.presence.doubtful_at().filter(|_| self.opener.is_some())
    }

    /// The bus name of the panel whose menu may still be on the screen, if that is to be found out now.
    pub(crate) fn doubted(&self, now: Instant) -> Option<String> {
        self.opener.clone().filter(|_| self.doubtful_at().is_some_and(|at| at <= now))
    }

    /// It was found out whether the menu is still on the screen; `false` if nobody can tell.
    pub(crate) fn found(&mut self, is_there: bool, now: Instant) {
        self.presence.found(is_there, now);
    }

    /// The submenus to announce to panels that read one level at a time: Plasma opens a submenu that it has not read off
    /// the screen, as it does not know its size.
    fn to_announce(&self, number: i32, now: Instant) -> Vec<i32> {
        let is_shown = self.reads_levels && self.presence.is_visible(now);
        if is_shown { self.layout.submenus_of(number) } else { Vec::new() }
    }

    /// A reader with this bus name asks for the layout of an entry, down to a depth, with the properties of these names.
    pub(super) fn read_layout(
        &mut self,
        caller: &str,
        scope: (i32, i32),
        names: Vec<String>,
        now: Instant,
    ) -> LayoutRead {
        let (number, depth) = scope;
        self.readers.of_layout(caller, scope, &names);
        let tooltip = self.readers.turns_out_to_read_markup(caller, &names);
        self.release_ages(now);
        if sent_types::asks_for_types(scope, &names) {
            self.layout.use_slots(SLOTS, self.wording());
        }
        self.reads_levels |= number == ROOT && depth == 1;
        let Update { changes, revision: _ } = self.read(number, now);
        let submenus = if number == ROOT { self.to_announce(ROOT, now) } else { Vec::new() };
        let numbers = (self.layout.last_number(), self.layout.newest());
        let known = self.sent_types.of_layout(caller, scope, &names, numbers, now);
        let names = if known.is_some() { sent_types::layout_properties() } else { names };
        let (changes, in_reply) = match known.is_some() && !self.presence.is_reported_open() {
            true => {
                changes.add_names(&mut self.changed_unseen);
                (Changes::default(), self.changed_unseen.clone())
            }
            false => (changes, ChangedNames::new()),
        };
        let reply = self.layout.reply(scope, names, (known, in_reply), self.wording_for(caller));
        LayoutRead { changes, revision: self.revision, submenus, tooltip, reply }
    }

    /// Until when the menu counts as open, if no panel reports anything until then, on a panel that may leave the tooltip
    /// over it: one built on GTK.
    pub(crate) fn covered_until(&self, now: Instant) -> Option<Instant> {
        self.presence.held_until().filter(|_| self.presence.is_visible(now) && !self.presence.says_opened())
    }

    /// Whether the reader with this bus name takes tooltips for markup.
    pub(crate) fn reads_markup(&self, caller: &str) -> bool {
        self.readers.reads_markup(caller)
    }

    /// A reader with this bus name asks for these properties of these entries.
    pub(super) fn read_properties(
        &mut self,
        caller: &str,
        numbers: &[i32],
        names: &[String],
        now: Instant,
    ) -> Vec<(i32, Properties)> {
        let mut reply = self.layout.properties(numbers, names, self.wording_for(caller));
        self.sent_types.of_properties(caller, names, &mut reply, now);
        reply
    }

    /// A reader with this bus name asks for a property of an entry. `None` if there is no such entry, `Some(None)` if it
    /// has no such property.
    pub(super) fn read_property(&self, caller: &str, number: i32, name: &str) -> Option<Option<Property>> {
        self.layout.property(number, name, self.wording_for(caller))
    }

    /// A panel reads the menu with this number.
    fn read(&mut self, number: i32, now: Instant) -> Update {
        if number != ROOT {
            return Update::default();
        }
        self.stale.read();
        (self.was_read, self.unread) = (true, None);
        if self.presence.is_held(now) { Update::default() } else { self.flush(false, now) }
    }

    /// The icon itself was clicked. Returns whether it remains to be seen if the panel opens the menu.
    pub(crate) fn click_icon(&mut self, now: Instant) -> bool {
        let is_repeated = self.icon_clicked.is_some_and(|before| now.saturating_duration_since(before) < DOUBLE_CLICK);
        self.icon_clicked = Some(now);
        !is_repeated
    }

    /// Whether the panel opens the menu on a click on the icon at this time, which was [`ICON_CLICK`] ago.
    pub(crate) fn opened_for(&self, clicked: Instant) -> bool {
        self.presence.opened_since(clicked.checked_sub(DOUBLE_CLICK).unwrap_or(clicked))
    }

    /// Handles a panel's event for an entry. `None` if there never was such an entry.
    pub(super) fn handle_event(&mut self, number: i32, event: &str, now: Instant) -> Option<EventOutcome> {
        if !self.layout.was_given(number) {
            return None;
        }
        let mut outcome = EventOutcome::default();
        match event {
            "opened" => {
                let opens = self.presence.opened(number, now);
                outcome.update = self.appear(opens, now);
            }
            "closed" => {
                self.presence.closed(number, now);
                if number == ROOT {
                    self.changed_unseen.clear();
                }
            }
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
            Some(click) if !is_current || self.is_aimed(now) => Some(click),
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
pub(crate) struct Update {
    pub(super) changes: Changes,
    /// The revision of a new layout.
    pub(super) revision: Option<u32>,
}

/// What a panel that is about to show a menu is sent.
pub(super) struct Opening {
    /// Before the answer.
    pub(super) update: Update,
    /// The answer: whether it must read the menu again.
    pub(super) is_new: bool,
    /// A little later: the menus that are announced as new, by their numbers.
    pub(super) later: Vec<i32>,
    pub(super) revision: u32,
}

/// What a reader of a layout is sent.
pub(super) struct LayoutRead {
    /// Before the answer.
    pub(super) changes: Changes,
    pub(super) revision: u32,
    /// A little later: the submenus that are announced as new, by their numbers.
    pub(super) submenus: Vec<i32>,
    /// Whether it must read the tooltip again.
    pub(super) tooltip: bool,
    /// The answer, if there is such an entry.
    pub(super) reply: Option<LayoutReply>,
}

/// The outcome of a panel's event.
#[derive(Default)]
pub(super) struct EventOutcome {
    pub(super) click: Option<Click>,
    pub(super) update: Update,
}

#[cfg(test)]
mod tests;
