//! The menu: which sessions have a row, in which order, and which entries surround them.
//!
//! Sessions that need the user come first, by urgency and then by how long they have waited; up to three have a remedy
//! below their row. Working sessions follow. Idle ones are folded into a submenu if there are more than a few. However
//! many sessions there are, the menu fits a small screen.
//!
//! Everything here is pure: sessions and the time go in, a [`MenuView`] comes out, or nothing if it equals the last
//! one. The order is always the current one. Only the code that shows the menu knows whether it is open, so that code
//! must keep entries from moving under the pointer. Changes of shape are at least a second apart.

mod concerned;
mod flat;
mod footer;
mod headline;
mod hosts;
mod names;
mod remedies;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use footer::{AgentBridge, Bridge};
pub(super) use headline::needs;

use super::actions;
use super::autostart::State as Login;
use super::details::{DetailsContext, Source};
use super::icon::Icon;
use super::notifications::NotificationState;
use super::view::{COLUMNS, Effect, Item, ItemId, Kind, MenuView, ROWS, Text, fold};
use concerned::{ends_with_us, is_unreached, left_open};
use flat::Flat;
use headline::Headline;
use names::Names;
use pilotlight_core::fleet::{Group, State, Summary, folded};
use pilotlight_core::limits::Limits;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::verdict::Status;
use pilotlight_engine::config::{Config, List, Tray};
use pilotlight_engine::{Trouble, Twin};
use pilotlight_system::clock::Clock;
use remedies::remedies;
use std::sync::Arc;

/// Minimum interval between two changes of shape.
const SHAPE_INTERVAL: Span = Span::seconds(1);
/// Where opening the menu is not reported, its ages are updated this often, if something wakes us anyway.
const AGE_INTERVAL: Span = Span::seconds(59);
/// Maximum number of entries: what fits a display of 600 lines with a panel, on all desktops but GNOME ([`flat`]).
const ENTRIES_MAX: usize = 18;
/// Maximum number of sessions that need the user with a row of their own.
const NEED_MAX: usize = 8;
/// Maximum number of idle sessions with a row of their own; more are folded.
const IDLE_MAX: usize = 3;
/// Maximum number of sessions in the menu, as panels build all of it at once.
const SESSIONS_MAX: usize = 60;

/// What the menu says where popups cannot approve.
const POPUPS_ONLY_REVIEW: [&str; 2] =
    ["Popups cannot approve: their server is younger", "than a session. Approve here instead"];

/// Builds the menu, and holds what it depends on besides the sessions.
#[derive(Debug)]
pub struct Menu {
    limits: Limits,
    list: List,
    tray: Tray,
    user_home: Option<String>,
    approves_all: bool,
    /// The command that starts the agent, if one alone is watched.
    program: Option<&'static str>,
    demo: bool,
    notifications: NotificationState,
    login: Login,
    /// The bridges to terminals that can be installed or removed.
    bridges: Vec<AgentBridge>,
    /// Whether there is a settings file, or a place for one.
    edits_settings: bool,
    /// An error in the settings.
    settings_error: Option<String>,
    /// Whether popups cannot approve, because their server was started after a session that asks.
    popups_only_review: bool,
    /// The machines that are not reached.
    troubles: Vec<Trouble>,
    /// The machines whose sessions are listed twice.
    twins: Vec<Twin>,
    /// How many entries fit the display, where submenus open beside it.
    capacity: usize,
    /// How many there are where submenus open in it.
    flat: Option<Flat>,
    clock: Option<Clock>,
    shown: Option<Arc<MenuView>>,
    /// When it was last sent, by the awake clock.
    sent: Time,
    /// When its shape last changed, by the awake clock.
    shaped: Time,
    wake_at: Option<Time>,
}

/// The sessions by group.
struct Sorted<'a> {
    need: Vec<&'a Source<'a>>,
    busy: Vec<&'a Source<'a>>,
    idle: Vec<&'a Source<'a>>,
    ended: Vec<&'a Source<'a>>,
    left_out: usize,
}

impl<'a> Sorted<'a> {
    /// All that have a row.
    fn all(&self) -> impl Iterator<Item = &'a Source<'a>> + '_ {
        [&self.need, &self.busy, &self.idle, &self.ended].into_iter().flatten().copied()
    }
}

impl Menu {
    /// Creates a menu. `list` decides which ended sessions are listed; `user_home` is shown as `~`. `approves_all` is
    /// whether all requests of attached sessions are approved; the menu warns of that while a session is attached.
    pub fn new(limits: Limits, list: List, user_home: Option<String>, approves_all: bool) -> Self {
        Self {
            limits,
            list,
            tray: Tray::default(),
            user_home,
            approves_all,
            program: None,
            demo: false,
            notifications: NotificationState::default(),
            login: Login::default(),
            bridges: Vec::new(),
            edits_settings: true,
            settings_error: None,
            popups_only_review: false,
            troubles: Vec::new(),
            twins: Vec::new(),
            capacity: ENTRIES_MAX,
            flat: None,
            clock: None,
            shown: None,
            sent: Time::default(),
            shaped: Time::default(),
            wake_at: None,
        }
    }

    /// The same menu, labelled as a demo or not.
    #[must_use]
    pub(crate) fn for_demo(self, demo: bool) -> Self {
        Self { demo, ..self }
    }

    /// The same menu, with or without the entries that change the settings file: there may be no place for one.
    #[must_use]
    pub(crate) fn editing_settings(self, edits_settings: bool) -> Self {
        Self { edits_settings, ..self }
    }

    /// The same menu, for the sessions of the agent that this command starts. `None`: of several.
    #[must_use]
    pub(crate) fn for_program(self, program: Option<&'static str>) -> Self {
        Self { program, ..self }
    }

    /// The same menu, with these settings of the icon.
    pub(crate) const fn with_icon(mut self, tray: Tray) -> Self {
        self.tray = tray;
        self
    }

    /// The view before the first scan.
    pub(crate) fn initial_view(&self) -> MenuView {
        MenuView::initial(self.tray)
    }

    /// Applies new settings, from the next update on; `error` is a mistake in the settings file.
    pub(crate) fn configure(&mut self, config: &Config, error: Option<String>) {
        (self.limits, self.list, self.tray, self.settings_error) = (config.limits, config.list, config.tray, error);
    }

    /// Sets the state of notifications, from the next update on.
    pub(crate) fn set_notifications(&mut self, notifications: &NotificationState) {
        if self.notifications != *notifications {
            self.notifications.clone_from(notifications);
        }
    }

    /// Sets the state of the start at login, from the next update on.
    pub(crate) fn set_login(&mut self, login: Login) {
        self.login = login;
    }

    /// Sets the state of the bridges to terminals, from the next update on.
    pub(crate) fn set_bridges(&mut self, bridges: Vec<AgentBridge>) {
        self.bridges = bridges;
    }

    /// Sets whether popups cannot approve, because their server was started after a session that asks.
    pub(crate) const fn set_popups_only_review(&mut self, they_do: bool) {
        self.popups_only_review = they_do;
    }

    /// Sets which machines are not reached, and which are listed twice, from the next update on.
    pub(crate) fn set_troubles(&mut self, troubles: &[Trouble], twins: &[Twin]) {
        if self.twins != twins {
            self.twins = twins.to_vec();
        }
        if self.troubles != troubles {
            self.troubles = troubles.to_vec();
        }
    }

    /// The same menu, for a desktop that opens submenus below their rows, where so many rows fit until more is known.
    /// `None`: on other desktops.
    #[must_use]
    pub(crate) fn with_capacity(self, rows: Option<usize>) -> Self {
        Self { flat: rows.map(Flat::of), ..self }
    }

    /// Sets how many rows fit the display, not counting separators, on a desktop that opens submenus below their rows; from
    /// the next update on.
    pub(crate) fn set_capacity(&mut self, rows: usize) {
        self.flat = Some(Flat::of(rows));
    }

    /// When [`update`](Self::update) must be called even if nothing changed, by the awake clock.
    pub(crate) const fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// Returns the menu for these sessions, if it differs from the last one.
    pub fn update<'a>(&mut self, sources: impl Iterator<Item = Source<'a>>, now: Moment) -> Option<Arc<MenuView>> {
        // A change of shape is pending, so no view would be sent before its time.
        if self.wake_at.is_some_and(|at| now.awake < at) {
            return None;
        }
        let mut sources: Vec<_> = sources.collect();
        sources.sort_by(|a, b| (a.row.sort_key(), a.key).cmp(&(b.row.sort_key(), b.key)));
        let clock = *self.clock.get_or_insert_with(|| Clock::continuing(now));
        let view = Arc::new(self.view(&sources, now, clock));
        self.wake_at = None;
        if let Some(shown) = &self.shown {
            if view == *shown {
                let ages_due =
                    cfg!(not(target_os = "linux")) && self.sent + AGE_INTERVAL <= now.awake && has_age(&view.items);
                self.sent = if ages_due { now.awake } else { self.sent };
                return ages_due.then_some(view);
            }
            if !view.has_shape_of(shown) {
                let due = self.shaped + SHAPE_INTERVAL;
                if now.awake < due {
                    self.wake_at = Some(due);
                    return None;
                }
                self.shaped = now.awake;
            }
        } else {
            self.shaped = now.awake;
        }
        self.sent = now.awake;
        self.shown = Some(Arc::clone(&view));
        Some(view)
    }

    fn details_context(&self) -> DetailsContext<'_> {
        let (limits, notifications) = (&self.limits, &self.notifications);
        DetailsContext {
            limits,
            user_home: self.user_home.as_deref(),
            last_message: self.list.last_message,
            notifications,
        }
    }

    fn view(&self, sources: &[Source<'_>], now: Moment, clock: Clock) -> MenuView {
        let summary = Summary::of(sources.iter().map(|source| source.row));
        let rows: Vec<_> = sources.iter().map(|source| source.row).collect();
        let summary = summary.and_unreached(self.troubles.iter().map(|trouble| &*trouble.host), &rows);
        let paused = self.notifications.paused();
        let icon = Icon {
            state: summary.state,
            unseen: summary.unseen > 0,
            paused: paused.is_some(),
            count: if self.tray.count { summary.need_you } else { 0 },
            contrast: self.tray.high_contrast,
        };
        let is_attached = |source: &Source<'_>| source.session.control.server.is_attached();
        let approves = (self.approves_all && sources.iter().any(is_attached)).then_some(APPROVES);
        let sorted = self.sorted(sources, now);
        let names = Names::of(sorted.all());
        let headline = Headline::of(sources, &summary, &names, self.notifications.detail);
        let demo = if self.demo { "demo: " } else { "" };
        let mut tooltip = format!("{demo}{}", headline.tooltip);
        for more in approves.map(str::to_owned).into_iter().chain(paused) {
            tooltip = format!("{tooltip}; {more}");
        }
        let error = self.settings_error.as_deref().filter(|_| self.edits_settings);
        let mut items: Vec<_> = error.map(footer::settings_error).into_iter().collect();
        let text = capital(&format!("{demo}{}", headline.text));
        let effect = if self.flat.is_some() { Effect::LiveTable } else { headline.effect };
        items.push(Item::action(ItemId::own(Kind::Headline), text, effect));
        items.extend(approves.map(|approves| Item::text(capital(approves))));
        let asks = |source: &Source<'_>| matches!(source.row.status, Status::NeedsPermission | Status::NeedsInput);
        if self.popups_only_review && sources.iter().any(asks) {
            items.extend(POPUPS_ONLY_REVIEW.map(Item::text));
        }
        let alone = if self.flat.is_some() && self.troubles.len() > 1 { 0 } else { hosts::ROWS_MAX };
        items.extend(hosts::rows(&self.troubles, alone, now.wall));
        items.extend(self.twins.iter().take(hosts::ROWS_MAX).map(|twin| Item::text(capital(&twin.in_short()))));
        if self.demo && self.flat.is_none() {
            items.push(Item::text("These sessions play themselves"));
        }
        let reopen = actions::reopen(left_open(sources));
        // Where there is little room, it is in the settings alone.
        let is_due = |bridge: &AgentBridge| {
            self.flat.is_none()
                && bridge.is_offered
                && bridge.state == Bridge::Off
                && sources.iter().any(|source| is_unreached(source, bridge.agent))
        };
        let offers = (0..)
            .zip(&self.bridges)
            .filter(|(_, bridge)| is_due(bridge))
            .map(|(number, bridge)| footer::bridge(Kind::OfferBridge(number), bridge, self.bridges.len() > 1));
        let offers: Vec<_> = offers.collect();
        let more = usize::from(reopen.is_some()) + offers.len();
        let others = items.len() + more + 3;
        let flat = self.flat.map(|flat| flat.beside(others));
        let left = flat.map_or(self.capacity, |flat| flat.root).saturating_sub(others);
        items.push(Item::Separator);
        items.extend(match flat {
            Some(flat) => self.flat_rows(flat, &sorted, left, &names),
            None => self.rows(&sorted, left, &summary, &names),
        });
        items.push(Item::Separator);
        // For a single session whose row has a remedy, it would be the same entry twice.
        items.extend(reopen.filter(|reopen| !is_remedy(reopen, &items)));
        items.extend(offers);
        let ends: Vec<_> = sources.iter().filter(|source| ends_with_us(source)).collect();
        let unseen = summary.unseen > 0
            || sources.iter().any(|source| source.row.needs_you() && source.row.is_set_aside_when_seen());
        items.extend(footer::footer(
            unseen,
            &ends,
            &self.notifications,
            &self.login,
            &self.bridges,
            self.edits_settings,
        ));
        if let Some(flat) = flat {
            // Those of the sessions are flat as they are.
            let is_own = |item: &Item| item.id().is_some_and(|id| !matches!(id.kind, Kind::Row | Kind::Fold(_)));
            items = items.into_iter().map(|item| if is_own(&item) { flat.fit(item) } else { item }).collect();
        }
        MenuView { icon, icon_settings: self.tray, demo: self.demo, tooltip, items, clock }
    }

    fn sorted<'a>(&self, sources: &'a [Source<'a>], now: Moment) -> Sorted<'a> {
        let mut sorted =
            Sorted { need: Vec::new(), busy: Vec::new(), idle: Vec::new(), ended: Vec::new(), left_out: 0 };
        for (n, source) in sources.iter().enumerate() {
            let group = match source.row.group() {
                Group::Ended => {
                    let listed = source.row.since >= now.wall - self.list.ended_for;
                    if listed && sorted.ended.len() < self.list.ended_most {
                        sorted.ended.push(source);
                    }
                    continue;
                }
                _ if n >= SESSIONS_MAX => {
                    sorted.left_out += 1;
                    continue;
                }
                Group::NeedsYou => &mut sorted.need,
                Group::Quiet | Group::Working | Group::Aside => &mut sorted.busy,
                Group::Idle => &mut sorted.idle,
            };
            group.push(source);
        }
        sorted
    }

    /// What the menu says if there is no session.
    fn invitation(&self) -> String {
        let what = self.program.map_or_else(|| "an agent".to_owned(), |program| format!("“{program}”"));
        format!("Start {what} in a terminal: it will show here")
    }

    /// The rows of the sessions where submenus open below them, in at most `max` entries.
    fn flat_rows(&self, flat: Flat, sorted: &Sorted<'_>, max: usize, names: &Names<'_>) -> Vec<Item> {
        let is_open = !(sorted.need.is_empty() && sorted.busy.is_empty() && sorted.idle.is_empty());
        let invitation = (!is_open).then(|| Item::text(self.invitation()));
        let max = max - usize::from(invitation.is_some());
        let rows = flat.rows(sorted, max, names, &self.details_context());
        invitation.into_iter().chain(rows).collect()
    }

    /// The rows of the sessions, in at most `max` entries.
    fn rows(&self, sorted: &Sorted<'_>, max: usize, summary: &Summary, names: &Names<'_>) -> Vec<Item> {
        let context = self.details_context();
        let row = |source: &&Source<'_>| session::row(source, names, &context);
        let Sorted { need, busy, idle, ended, left_out } = sorted;
        let (mut items, mut shown) = (Vec::new(), 0);
        // Working and resting sessions need at least one entry each.
        let others = [!busy.is_empty(), !idle.is_empty() || !ended.is_empty(), *left_out > 0];
        let room = max.saturating_sub(others.into_iter().map(usize::from).sum());
        for (source, remedy) in need.iter().zip(remedies(need.iter().take(NEED_MAX), names)) {
            let takes = 1 + usize::from(remedy.is_some()) + usize::from(shown + 1 < need.len());
            if shown > 0 && items.len() + takes > room {
                break;
            }
            items.push(row(source));
            items.extend(remedy);
            shown += 1;
        }
        if need.len() > shown {
            let rest: Vec<_> = need[shown..].iter().map(row).collect();
            items.push(submenu_of(folded(need[shown..].iter().map(|source| source.row), COLUMNS), 0, rest));
        }
        let left = max.saturating_sub(items.len() + usize::from(*left_out > 0));
        let all_fit = idle.len() <= IDLE_MAX && busy.len() + idle.len() + usize::from(!ended.is_empty()) <= left;
        let idle_folded = if all_fit { 0 } else { idle.len() };
        let left = left.saturating_sub(usize::from(idle_folded + ended.len() > 0)).max(1);
        let mut others = Vec::new();
        if busy.len() <= left {
            others.extend(busy.iter().map(row));
        } else {
            others.extend(busy[..left - 1].iter().map(row));
            let rest = &busy[left - 1..];
            // If all of them are folded, they are counted as in the header.
            let text = match left {
                1 => Summary::of(rest.iter().map(|source| source.row)).to_string(),
                _ => folded(rest.iter().map(|source| source.row), COLUMNS),
            };
            others.push(submenu_of(text, 20, rest.iter().map(row).collect()));
        }
        others.extend(idle[..idle.len() - idle_folded].iter().map(row));
        let rest: Vec<_> = idle[idle.len() - idle_folded..].iter().chain(ended).map(row).collect();
        if !rest.is_empty() {
            let idle = (idle_folded > 0).then(|| idle_counted(idle, summary));
            let ended = (!ended.is_empty()).then(|| format!("{} ended", ended.len()));
            let text = idle.into_iter().chain(ended).collect::<Vec<_>>().join(", ");
            others.push(submenu_of(text, 40, rest));
        }
        if *left_out > 0 {
            others.push(Item::action(
                ItemId::own(Kind::LiveTable),
                format!("{left_out} more: show all in a terminal"),
                Effect::LiveTable,
            ));
        }
        if !items.is_empty() && !others.is_empty() {
            items.push(Item::Separator);
        }
        items.extend(others);
        if need.is_empty() && busy.is_empty() && idle.is_empty() {
            items.insert(0, Item::text(self.invitation()));
        }
        items
    }
}

/// Rows that are folded into a submenu.
fn submenu_of(text: String, number: u8, rows: Vec<Item>) -> Item {
    Item::submenu(ItemId::own(Kind::Fold(number)), text, fold(rows, ROWS, None, number + 1))
}

/// How many sessions are idle, and how many of them have something new.
fn idle_counted(idle: &[&Source<'_>], summary: &Summary) -> String {
    match idle.iter().filter(|source| source.row.unseen).count() {
        0 => format!("{} idle", summary.idle),
        new if new == summary.idle => format!("{new} idle, {}", if new == 1 { "new" } else { "all new" }),
        new => format!("{} idle, {new} new", summary.idle),
    }
}

/// The warning that all requests of attached sessions are approved.
const APPROVES: &str = "approving all that attached sessions ask for";

/// Whether one of these items does the same.
fn is_remedy(reopen: &Item, items: &[Item]) -> bool {
    let Item::Action { effect: Effect::Reopen(orders), .. } = reopen else { return false };
    let [order] = &orders[..] else { return false };
    items.iter().any(|item| matches!(item, Item::Action { effect: Effect::Act(other), .. } if order.is_same_as(other)))
}

fn has_age(items: &[Item]) -> bool {
    items.iter().any(|item| item.words().is_some_and(Text::has_age) || has_age(item.children()))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

impl MenuView {
    /// The view before the first scan.
    pub(crate) fn initial(icon_settings: Tray) -> Self {
        let icon = Icon { contrast: icon_settings.high_contrast, ..Icon::of(State::Well) };
        let mut items = vec![Item::text("Looking for sessions"), Item::Separator];
        items.extend(footer::footer(false, &[], &NotificationState::default(), &Login::default(), &[], false));
        let tooltip = "looking for sessions".into();
        Self { icon, icon_settings, demo: false, tooltip, items, clock: Clock::start() }
    }
}
