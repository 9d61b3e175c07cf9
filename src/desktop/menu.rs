//! The rules of places: which row stands where in the menu, and for how long.
//!
//! A menu is aimed at. A row that moves between the look and the click makes the user stop the wrong session, so rows keep
//! their places between two *changes of shape*, whatever becomes of their sessions: one that ends stays where it is,
//! disabled, and so does one whose folder is gone. Only when something new wants a place is the menu laid out anew: those
//! that need the user first, then by their start, the ended ones below in "Recent". Words change at once; the first change
//! of shape is shown at once, further ones at most once a second. A row that is over is tidied away after a minute.
//!
//! Ages are worded in steps. They go along with whatever else changes; when nothing else does they are told once a minute, when
//! the engine looks around, and never wake the program.
//!
//! Everything here is pure: sessions and the time come in, a [`MenuView`] goes out, or nothing where it equals the last.

use super::actions::{self, Asked};
use super::autostart::State as Login;
use super::details::{self, Source, Words};
use super::hush::Notices;
use super::icon::{self, Icon};
use super::view::{DEMO, Item, ItemId, Kind, MenuView, Summary, same_shape};
use crate::act::{Ask, Order};
use crate::config::{Config, List, Tray};
use crate::core::action::{Action, Reach, offer};
use crate::core::fleet::{Kind as Use, Row, summary};
use crate::core::limits::Limits;
use crate::core::owner::Owner;
use crate::core::text::counted;
use crate::core::time::{Moment, Span, Time};
use crate::core::verdict::Status;
use crate::engine::Key;
use std::cmp::Reverse;
use std::collections::HashMap;

mod footer;
use footer::footer;

/// Two changes of shape are at least this far apart.
const SHAPE_REST: Span = Span::seconds(1);
/// Two updates that change nothing but ages are at least this far apart: a minute, less what one look around may come sooner
/// after the other.
const AGE_REST: Span = Span::seconds(59);
/// A row that is over is moved to "Recent" after this, if nothing moved it before.
const TIDY_AFTER: Span = Span::minutes(1);
/// So many sessions have a row. A menu with more does not fit a screen.
const ROWS: usize = 30;

/// A row's place.
#[derive(Clone, Debug)]
struct Place {
    key: Key,
    name: String,
    /// The permission requests that it shows.
    asked: Vec<Asked>,
    /// What is in its submenu, for when its session is gone.
    items: Vec<Item>,
    /// Since when, by the awake clock, it is over.
    over: Option<Time>,
}

/// The menu and its memory of who stands where.
#[derive(Debug)]
pub struct Menu {
    limits: Limits,
    list: List,
    tray: Tray,
    user_home: Option<String>,
    approves_all: bool,
    demo: bool,
    notices: Notices,
    login: Login,
    /// What is wrong with the settings.
    wrong: Option<String>,
    open: Vec<Place>,
    recent: Vec<Place>,
    /// When the menu was last laid out.
    shaped: Option<Moment>,
    /// What ages were last counted up to.
    aged: Moment,
    /// When, by the awake clock, the menu was last changed for its ages alone.
    aged_alone: Option<Time>,
    wake_at: Option<Time>,
    shown: Option<MenuView>,
}

impl Menu {
    /// A menu that has shown nothing. `list` says which ended sessions are listed; `user_home` is written `~`; `approves_all`:
    /// whatever attached sessions ask for is allowed, which is said wherever one is.
    pub fn new(limits: Limits, list: List, user_home: Option<String>, approves_all: bool) -> Self {
        Self {
            limits,
            list,
            tray: Tray::default(),
            user_home,
            approves_all,
            demo: false,
            notices: Notices::default(),
            login: Login::default(),
            wrong: None,
            open: Vec::new(),
            recent: Vec::new(),
            shaped: None,
            aged: Moment::default(),
            aged_alone: None,
            wake_at: None,
            shown: None,
        }
    }

    /// The same, of sessions that play themselves, or not.
    #[must_use]
    pub fn of_demo(self, demo: bool) -> Self {
        Self { demo, ..self }
    }

    /// The same menu, with an icon as the user wants it.
    pub const fn with_icon(mut self, tray: Tray) -> Self {
        self.tray = tray;
        self
    }

    /// The menu for these sessions, where it differs from the last one.
    pub fn update<'a>(&mut self, sources: impl Iterator<Item = Source<'a>>, now: Moment) -> Option<MenuView> {
        let sources: HashMap<&Key, Source<'a>> = sources.map(|source| (source.key, source)).collect();
        self.note_what_is_over(&sources, now);
        let wants = self.wants_shape(&sources, now);
        let rested = self.shaped.map(|shaped| shaped.awake + SHAPE_REST);
        let reshapes = wants && rested.is_none_or(|at| at <= now.awake);
        if reshapes {
            self.lay_out(&sources, now);
        }
        let mut view = self.view(&sources);
        let differs = self.shown.as_ref() != Some(&view);
        if differs || self.ages_are_due(&sources, now) {
            // Where there is something to tell anyway the ages go along.
            self.aged_alone = if differs { self.aged_alone } else { Some(now.awake) };
            self.aged = now;
            view = self.view(&sources);
        }
        self.wake_at = self.next_wake(now, rested.filter(|_| wants && !reshapes));
        if self.shown.as_ref() == Some(&view) {
            return None;
        }
        self.shown = Some(view.clone());
        Some(view)
    }

    /// Goes by these settings from the next update on; `wrong` is what is wrong with what the user wrote.
    pub fn configure(&mut self, config: &Config, wrong: Option<String>) {
        (self.limits, self.list, self.tray, self.wrong) = (config.limits, config.list, config.tray, wrong);
    }

    /// Says this of notifications, from the next update on.
    pub fn note(&mut self, notices: &Notices) {
        if self.notices != *notices {
            self.notices.clone_from(notices);
        }
    }

    /// Says this of the start at login, from the next update on.
    pub fn note_login(&mut self, login: Login) {
        self.login = login;
    }

    /// A session in the words of a notification.
    pub fn details(&self, source: &Source<'_>, now: Moment) -> Summary {
        let (limits, user_home) = (&self.limits, self.user_home.as_deref());
        details::summary(source, &Words { limits, user_home, aged: now.wall, notices: &self.notices })
    }

    /// When, by the awake clock, [`update`](Self::update) is to be called though nothing changed, beside the call once a minute
    /// that keeps the ages true.
    pub const fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// Whether some age that is shown is worded otherwise by now, and may be told alone.
    fn ages_are_due(&self, sources: &HashMap<&Key, Source<'_>>, now: Moment) -> bool {
        let mut places = self.open.iter().chain(&self.recent).filter_map(|place| sources.get(&place.key));
        self.aged_alone.is_none_or(|alone| alone + AGE_REST <= now.awake)
            && places.any(|source| source.row.next_age(self.aged.wall) <= now.wall)
    }

    fn next_wake(&self, now: Moment, shape: Option<Time>) -> Option<Time> {
        let tidy = self.open.iter().filter_map(|place| place.over).min().map(|over| over + TIDY_AFTER);
        [tidy, shape].into_iter().flatten().filter(|at| *at > now.awake).min()
    }

    fn note_what_is_over(&mut self, sources: &HashMap<&Key, Source<'_>>, now: Moment) {
        for place in self.open.iter_mut().chain(&mut self.recent) {
            let over = sources.get(&place.key).is_none_or(|source| source.row.status == Status::Ended);
            place.over = over.then(|| place.over.unwrap_or(now.awake));
        }
    }

    /// Whether something wants a place that it does not have.
    fn wants_shape(&self, sources: &HashMap<&Key, Source<'_>>, now: Moment) -> bool {
        if self.shaped.is_none()
            || self.open.iter().any(|place| place.over.is_some_and(|at| at + TIDY_AFTER <= now.awake))
        {
            return true;
        }
        let asks_anew = |place: &Place| {
            sources.get(&place.key).is_some_and(|source| {
                let is_shown = |asked: &Asked| place.asked.iter().any(|shown| shown == asked);
                !actions::asked(source).iter().all(is_shown)
            })
        };
        if self.open.iter().any(asks_anew) {
            return true;
        }
        let stands = |places: &[Place], key: &Key| places.iter().any(|place| place.key == *key);
        let full = self.open.len() >= ROWS && self.open.iter().all(|place| place.over.is_none());
        let yields =
            || self.open.iter().filter_map(|place| sources.get(&place.key)).any(|source| !source.row.needs_you());
        sources.values().any(|source| {
            if source.row.status == Status::Ended {
                let listed = source.row.since >= now.wall - self.list.ended_for;
                let later = self.recent.len() < self.list.ended_most
                    || self.shaped.is_some_and(|shaped| source.row.since > shaped.wall);
                return listed && later && !stands(&self.open, source.key) && !stands(&self.recent, source.key);
            }
            !stands(&self.open, source.key) && (!full || source.row.needs_you() && yields())
        })
    }

    /// Gives every row its place anew.
    fn lay_out(&mut self, sources: &HashMap<&Key, Source<'_>>, now: Moment) {
        let place = |source: &&Source<'_>| Place {
            key: source.key.clone(),
            name: source.row.label.to_string(),
            asked: actions::asked(source),
            items: Vec::new(),
            over: None,
        };
        let (mut recent, mut open): (Vec<&Source<'_>>, Vec<&Source<'_>>) =
            sources.values().partition(|source| source.row.status == Status::Ended);
        let start = |source: &Source<'_>| source.session.about.created.unwrap_or(source.row.since);
        open.sort_by_key(|source| (!source.row.needs_you(), start(source), source.key.clone()));
        open.truncate(ROWS);
        recent.retain(|source| source.row.since >= now.wall - self.list.ended_for);
        recent.sort_by_key(|source| (Reverse(source.row.since), source.key.clone()));
        recent.truncate(self.list.ended_most);
        self.open = open.iter().map(place).collect();
        self.recent = recent.iter().map(place).collect();
        self.shaped = Some(now);
    }

    fn view(&mut self, sources: &HashMap<&Key, Source<'_>>) -> MenuView {
        let words = Words {
            limits: &self.limits,
            user_home: self.user_home.as_deref(),
            aged: self.aged.wall,
            notices: &self.notices,
        };
        let rows: Vec<Row> = sources.values().map(|source| source.row.clone()).collect();
        let seen = sources.values().map(|source| (source.row, source.session.seen));
        let unseen = rows.iter().filter(|row| row.unseen).count();
        let paused = self.notices.paused();
        let coloured = || seen.clone().filter(|(row, seen)| icon::colours(row, *seen)).count();
        let icon = Icon {
            state: icon::state(seen.clone()),
            unseen: unseen > 0,
            paused: paused.is_some(),
            count: if self.tray.count { coloured() } else { 0 },
            contrast: self.tray.high_contrast,
        };
        let attached = |source: &Source<'_>| source.session.dealings.reach.is_attached();
        let mut summary = if self.demo { format!("{DEMO}{}", summary(&rows)) } else { summary(&rows) };
        if self.approves_all && sources.values().any(attached) {
            summary.push_str("; approving all that attached sessions ask");
        }
        if let Some(paused) = paused {
            summary.push_str("; ");
            summary.push_str(&paused);
        }
        if self.wrong.is_some() {
            summary.push_str("; the settings are wrong, see below");
        }
        let mut items = vec![Item::text(match unseen {
            0 => capital(&summary),
            n => format!("{}; {n} not looked at yet", capital(&summary)),
        })];
        if self.demo {
            items.push(Item::text("These sessions play themselves, and silence counts as stuck sooner than usual"));
        }
        items.push(Item::Separator);
        if self.open.is_empty() {
            items.push(Item::text("Start “copilot” in a terminal: it will show here"));
        }
        items.extend(self.open.iter_mut().map(|place| place.item(sources, &words, false)));
        let live = rows.iter().filter(|row| row.status != Status::Ended).count();
        let left_out = live.saturating_sub(self.open.iter().filter(|place| place.over.is_none()).count());
        if self.open.len() >= ROWS {
            // Always there once the menu is full, so that its number changes and its shape does not.
            items.push(Item::text(format!("… and {}: “pilotlight live” shows all", counted(left_out, "more session"))));
        }
        let mut recent: Vec<_> = self.recent.iter_mut().map(|place| place.item(sources, &words, true)).collect();
        let any_recent = !recent.is_empty();
        if !any_recent {
            recent.push(Item::text("Nothing ended lately"));
        }
        let (id, text) = (ItemId::own(Kind::Recent), "Recent".into());
        items.push(Item::Submenu { id, text, enabled: any_recent, items: recent });
        items.push(Item::Separator);
        let keeps = |(row, seen): (&Row, Option<Time>)| icon::keeps_when_seen(row.status) && icon::colours(row, seen);
        let ends: Vec<_> = sources.values().filter(|source| ends_with_us(source)).collect();
        items.extend(footer(
            unseen > 0 || seen.clone().any(keeps),
            left_open(sources),
            &ends,
            &self.notices,
            &self.login,
            self.wrong.as_deref(),
        ));
        MenuView { icon, tooltip: summary, items }
    }
}

impl Place {
    fn item(&mut self, sources: &HashMap<&Key, Source<'_>>, words: &Words<'_>, recent: bool) -> Item {
        let id = ItemId::of(&self.key, Kind::Row);
        let Some(source) = sources.get(&self.key) else {
            return Item::Submenu { id, text: details::gone(&self.name), enabled: false, items: self.items.clone() };
        };
        self.name = source.row.label.to_string();
        self.items = details::submenu(source, words, &self.asked);
        // In "Recent" everything is over, and there to be looked at; in its old place it only waits to be moved there.
        let enabled = recent || self.over.is_none();
        Item::Submenu { id, text: details::row(source, words), enabled, items: self.items.clone() }
    }
}

/// The sessions whose process went without a word: what was open when the machine went down.
fn left_open(sources: &HashMap<&Key, Source<'_>>) -> Vec<Order> {
    let was_open = |source: &&Source<'_>| {
        let session = source.session;
        matches!(session.owner, Owner::Gone { .. })
            && session.about.kind != Use::Sdk
            && session.facts.shut_down.is_none()
            && !session.unread
            && offer(Action::Resume, session, source.row.status).is_ok()
    };
    let mut left: Vec<_> = sources.values().filter(was_open).collect();
    left.sort_by_key(|source| source.key.clone());
    left.iter().map(|source| Order::new(&source.row.id, Ask::Resume)).collect()
}

/// Whether a session's work ends when we let go of it, as far as can be told: who else is attached to its server cannot.
fn ends_with_us(source: &Source<'_>) -> bool {
    match source.session.dealings.reach {
        Reach::Hosted(_) => true,
        Reach::Attached => source.session.about.kind != Use::Terminal,
        _ => false,
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

impl MenuView {
    /// Whether its sessions play themselves.
    pub fn is_demo(&self) -> bool {
        self.tooltip.starts_with(DEMO)
    }

    /// What is shown before the first look at the sessions.
    pub fn before_the_first_look() -> Self {
        let icon = Icon::of(icon::State::Well);
        let mut items = vec![Item::text("Looking for sessions"), Item::Separator];
        items.extend(footer(false, Vec::new(), &[], &Notices::default(), &Login::default(), None));
        Self { icon, tooltip: "looking for sessions".into(), items }
    }

    /// Whether the same things stand in the same places.
    pub fn has_shape_of(&self, other: &Self) -> bool {
        same_shape(&self.items, &other.items)
    }
}

#[cfg(test)]
mod tests;
