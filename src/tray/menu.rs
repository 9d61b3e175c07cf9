//! The menu: which sessions have a row, in which order, and what stands around them.
//!
//! Those that need the user come first, by how much and how long, with what puts three of them right below their rows. Then what
//! works; what rests is folded into one submenu as soon as there is more than a little of it. However many sessions there are,
//! the menu fits a small screen.
//!
//! Everything here is pure: sessions and the time come in, a [`MenuView`] goes out, or nothing where it equals the last. The order
//! is always that of now; that nothing moves under the pointer is for whoever shows the menu, who alone knows whether it is open.
//! Further changes of places are at least a second apart.

mod footer;

pub(crate) use footer::Bridge;
mod session;
#[cfg(test)]
mod tests;

use super::actions;
use super::autostart::State as Login;
use super::details::{self, Source, Words};
use super::icon::Icon;
use super::mute::Notices;
use super::view::{DEMO, Effect, Item, ItemId, Kind, MenuView, ROWS, Summary, Text, fold};
use crate::config::{Config, List, Tray};
use crate::core::action::{Action, ServerState, offer};
use crate::core::fleet::{Glance, Group, Kind as Use, State};
use crate::core::limits::Limits;
use crate::core::order::{Ask, Order};
use crate::core::owner::Owner;
use crate::core::time::{Moment, Span, Time};
use crate::system::clock::Clock;
use std::sync::Arc;

/// Two changes of shape are at least this far apart.
const SHAPE_REST: Span = Span::seconds(1);
/// Where no panel says when it opens the menu, its ages are worded anew this often, if something wakes us then.
const AGE_REST: Span = Span::seconds(59);
/// So many entries fit a display of 600 lines, beside the panel, on all desktops but GNOME ([`Menu::make_room`]).
const MOST: usize = 18;
/// With fewer, there would be none for what needs the user.
const LEAST: usize = 12;
/// So many of those that need the user have a row at once.
const NEED: usize = 8;
/// So many of them have what puts them right below their row.
const REMEDIES: usize = 3;
/// So many that rest have a row of their own; more of them are folded.
const IDLE: usize = 3;
/// So many sessions are in the menu at all. Panels build all of it at once.
const SESSIONS: usize = 60;

/// The menu, and what it depends on beside the sessions.
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
    /// Whether sessions in plain terminals can be answered; `None` where that cannot be changed.
    bridge: Option<Bridge>,
    /// What is wrong with the settings.
    wrong: Option<String>,
    /// So many entries have room on the display.
    most: usize,
    clock: Option<Clock>,
    shown: Option<Arc<MenuView>>,
    /// When, by the awake clock, it was last sent, and last laid out anew.
    sent: Time,
    shaped: Time,
    wake_at: Option<Time>,
}

/// Sessions by where they belong.
struct Sorted<'a> {
    need: Vec<&'a Source<'a>>,
    busy: Vec<&'a Source<'a>>,
    idle: Vec<&'a Source<'a>>,
    ended: Vec<&'a Source<'a>>,
    left_out: usize,
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
            bridge: None,
            wrong: None,
            most: MOST,
            clock: None,
            shown: None,
            sent: Time::default(),
            shaped: Time::default(),
            wake_at: None,
        }
    }

    /// The same, of sessions that play themselves, or not.
    #[must_use]
    pub(crate) fn of_demo(self, demo: bool) -> Self {
        Self { demo, ..self }
    }

    /// The same menu, with an icon as the user wants it.
    pub(crate) const fn with_icon(mut self, tray: Tray) -> Self {
        self.tray = tray;
        self
    }

    /// Goes by these settings from the next update on; `wrong` is what is wrong with what the user wrote.
    pub(crate) fn configure(&mut self, config: &Config, wrong: Option<String>) {
        (self.limits, self.list, self.tray, self.wrong) = (config.limits, config.list, config.tray, wrong);
    }

    /// Says this of notifications, from the next update on.
    pub(crate) fn note(&mut self, notices: &Notices) {
        if self.notices != *notices {
            self.notices.clone_from(notices);
        }
    }

    /// Says this of the start at login, from the next update on.
    pub(crate) fn note_login(&mut self, login: Login) {
        self.login = login;
    }

    /// Says this of the bridge to terminals, from the next update on.
    pub(crate) const fn note_bridge(&mut self, bridge: Option<Bridge>) {
        self.bridge = bridge;
    }

    /// Has no more entries than this, lines not counted, from the next update on: the display has room for no more.
    pub(crate) fn make_room(&mut self, most: usize) {
        self.most = most.clamp(LEAST, MOST);
    }

    /// A session in the words of a notification.
    pub(crate) fn details(&self, source: &Source<'_>, now: Moment) -> Summary {
        details::summary(source, &self.words(), now)
    }

    /// When, by the awake clock, [`update`](Self::update) is to be called though nothing changed.
    pub(crate) const fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// The menu for these sessions, where it differs from the last one.
    pub fn update<'a>(&mut self, sources: impl Iterator<Item = Source<'a>>, now: Moment) -> Option<Arc<MenuView>> {
        // Its places rest: whatever it becomes until then, it would not be shown.
        if self.wake_at.is_some_and(|at| now.awake < at) {
            return None;
        }
        let mut sources: Vec<_> = sources.collect();
        sources.sort_by(|a, b| (a.row.place(), a.key).cmp(&(b.row.place(), b.key)));
        let clock = *self.clock.get_or_insert_with(|| Clock::going_on(now));
        let view = Arc::new(self.view(&sources, now, clock));
        self.wake_at = None;
        if let Some(shown) = &self.shown {
            if view == *shown {
                let renews =
                    cfg!(not(target_os = "linux")) && self.sent + AGE_REST <= now.awake && has_age(&view.items);
                self.sent = if renews { now.awake } else { self.sent };
                return renews.then_some(view);
            }
            if !view.has_shape_of(shown) {
                let rested = self.shaped + SHAPE_REST;
                if now.awake < rested {
                    self.wake_at = Some(rested);
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

    fn words(&self) -> Words<'_> {
        Words { limits: &self.limits, user_home: self.user_home.as_deref(), notices: &self.notices }
    }

    fn view(&self, sources: &[Source<'_>], now: Moment, clock: Clock) -> MenuView {
        let glance = Glance::of(sources.iter().map(|source| source.row));
        let paused = self.notices.paused();
        let icon = Icon {
            state: glance.state,
            unseen: glance.unseen > 0,
            paused: paused.is_some(),
            count: if self.tray.count { glance.need_you } else { 0 },
            contrast: self.tray.high_contrast,
        };
        let is_attached = |source: &Source<'_>| source.session.control.server.is_attached();
        let approves = (self.approves_all && sources.iter().any(is_attached)).then_some(APPROVES);
        let mut tooltip = if self.demo { format!("{DEMO}{glance}") } else { glance.to_string() };
        for more in approves.map(str::to_owned).into_iter().chain(paused) {
            tooltip = format!("{tooltip}; {more}");
        }
        let mut items: Vec<_> = self.wrong.as_deref().map(footer::wrong).into_iter().collect();
        items.push(Item::text(capital(&if self.demo { format!("{DEMO}{glance}") } else { glance.to_string() })));
        items.extend(approves.map(|approves| Item::text(capital(approves))));
        if self.demo {
            items.push(Item::text("These sessions play themselves"));
        }
        let reopen = actions::reopen(left_open(sources));
        let left = self.most.saturating_sub(items.len() + usize::from(reopen.is_some()) + 3);
        items.push(Item::Separator);
        items.extend(self.rows(&self.sorted(sources, now), left, &glance));
        items.push(Item::Separator);
        // For a single one whose remedy stands below its row, it would be the same entry twice.
        items.extend(reopen.filter(|reopen| !is_remedy(reopen, &items)));
        let ends: Vec<_> = sources.iter().filter(|source| ends_with_us(source)).collect();
        let unseen = glance.unseen > 0
            || sources.iter().any(|source| source.row.needs_you() && source.row.is_put_aside_when_seen());
        items.extend(footer::footer(unseen, &ends, &self.notices, &self.login, self.bridge));
        MenuView { icon, tooltip, items, clock }
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
                _ if n >= SESSIONS => {
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

    /// The rows of the sessions, for which so many entries are left.
    fn rows(&self, sorted: &Sorted<'_>, most: usize, glance: &Glance) -> Vec<Item> {
        let words = self.words();
        let row = |source: &&Source<'_>| session::row(source, &words);
        let folded = |text: String, number, rows: Vec<Item>| {
            Item::submenu(ItemId::own(Kind::Fold(number)), text, fold(rows, ROWS, None, number + 1))
        };
        let Sorted { need, busy, idle, ended, left_out } = sorted;
        let (mut items, mut shown, mut remedies) = (Vec::new(), 0, 0);
        // What works and what rests have an entry each at the least.
        let others = [!busy.is_empty(), !idle.is_empty() || !ended.is_empty(), *left_out > 0];
        let room = most.saturating_sub(others.into_iter().map(usize::from).sum());
        for source in need.iter().take(NEED) {
            let remedy = actions::remedy(source).filter(|_| remedies < REMEDIES);
            let takes = 1 + usize::from(remedy.is_some()) + usize::from(shown + 1 < need.len());
            if shown > 0 && items.len() + takes > room {
                break;
            }
            remedies += usize::from(remedy.is_some());
            items.push(row(source));
            items.extend(remedy);
            shown += 1;
        }
        if need.len() > shown {
            let rest: Vec<_> = need[shown..].iter().map(row).collect();
            items.push(folded(format!("{} more", rest.len()), 0, rest));
        }
        let left = most.saturating_sub(items.len() + usize::from(*left_out > 0));
        let all_fit = idle.len() <= IDLE && busy.len() + idle.len() + usize::from(!ended.is_empty()) <= left;
        let idle_folded = if all_fit { 0 } else { idle.len() };
        let left = left.saturating_sub(usize::from(idle_folded + ended.len() > 0)).max(1);
        let mut others = Vec::new();
        if busy.len() <= left {
            others.extend(busy.iter().map(row));
        } else {
            others.extend(busy[..left - 1].iter().map(row));
            let rest = &busy[left - 1..];
            // By themselves they are counted as in the header.
            let text = match left {
                1 => Glance::of(rest.iter().map(|source| source.row)).to_string(),
                _ => format!("{} more", rest.len()),
            };
            others.push(folded(text, 20, rest.iter().map(row).collect()));
        }
        others.extend(idle[..idle.len() - idle_folded].iter().map(row));
        let rest: Vec<_> = idle[idle.len() - idle_folded..].iter().chain(ended).map(row).collect();
        if !rest.is_empty() {
            let new = idle.iter().filter(|source| source.row.unseen).count();
            let text = match (idle_folded, new) {
                (0, _) => format!("{} ended", rest.len()),
                (_, 0) => format!("{} idle", glance.idle),
                (_, new) => format!("{} idle, {new} new", glance.idle),
            };
            others.push(folded(text, 40, rest));
        }
        if *left_out > 0 {
            others.push(Item::text(format!("{left_out} more: “pilotlight live” shows all")));
        }
        if !items.is_empty() && !others.is_empty() {
            items.push(Item::Separator);
        }
        items.extend(others);
        if need.is_empty() && busy.is_empty() && idle.is_empty() {
            items.insert(0, Item::text("Start “copilot” in a terminal: it will show here"));
        }
        items
    }
}

/// Said where whatever attached sessions ask for is allowed.
const APPROVES: &str = "approving all that attached sessions ask for";

/// Whether one of these does the same.
fn is_remedy(reopen: &Item, items: &[Item]) -> bool {
    let Item::Action { effect: Effect::Reopen(orders), .. } = reopen else { return false };
    let [order] = &orders[..] else { return false };
    let is_same = |other: &Order| other.id == order.id && other.ask == order.ask;
    items.iter().any(|item| matches!(item, Item::Action { effect: Effect::Act(other), .. } if is_same(other)))
}

fn has_age(items: &[Item]) -> bool {
    items.iter().any(|item| item.words().is_some_and(Text::has_age) || has_age(item.children()))
}

/// The sessions whose process went without a word: what was open when the machine went down.
fn left_open(sources: &[Source<'_>]) -> Vec<Order> {
    let was_open = |source: &&Source<'_>| {
        let session = source.session;
        matches!(session.owner, Owner::Gone { .. })
            && session.about.kind != Use::Sdk
            && session.facts.shut_down.is_none()
            && !session.unread
            && offer(Action::Resume, session, source.row.status).is_ok()
    };
    let mut left: Vec<_> = sources.iter().filter(was_open).collect();
    left.sort_by_key(|source| source.key);
    left.iter().map(|source| Order::new(&source.row.id, Ask::Resume).to(&source.row.label)).collect()
}

/// Whether a session's work ends when we let go of it, as far as can be told: who else is attached to its server cannot.
fn ends_with_us(source: &Source<'_>) -> bool {
    match source.session.control.server {
        ServerState::Hosted(_) => true,
        ServerState::Attached => source.session.about.kind != Use::Terminal,
        _ => false,
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

impl MenuView {
    /// What is shown before the first look at the sessions.
    pub(crate) fn before_the_first_look() -> Self {
        let icon = Icon::of(State::Well);
        let mut items = vec![Item::text("Looking for sessions"), Item::Separator];
        items.extend(footer::footer(false, &[], &Notices::default(), &Login::default(), None));
        Self { icon, tooltip: "looking for sessions".into(), items, clock: Clock::start() }
    }
}
