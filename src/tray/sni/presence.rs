//! Whether the menu is on the screen, from what panels report. Pure.
//!
//! Panels report different things. Plasma, LXQt and GNOME say `AboutToShow(0)`, "opened" and "closed". Those that are
//! built on GTK (XFCE, MATE, waybar) say `AboutToShow(0)` when the menu opens, "opened" and "closed" for submenus only,
//! and never that the menu is closed. Plasma says "closed" 0.3 ms before "clicked". While the menu may be on the screen,
//! and right after it, it is *held*: no entry moves.

use super::property::ROOT;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// After this long without a sign of life, a menu that was reported open no longer counts as open: the panel does not
/// report closing it.
const REPORTED_OPEN_MAX: Duration = Duration::from_secs(60);
/// The same for a menu that was only announced by `AboutToShow`: such panels never report that it is closed.
const ANNOUNCED_OPEN_MAX: Duration = Duration::from_secs(10);
/// How long before a menu no longer counts as open it is to be found out whether it is.
const DOUBT: Duration = Duration::from_secs(1);
/// How long the menu is held after it was closed: the click that closed it may still be on its way.
const CLOSED_HOLD: Duration = Duration::from_millis(500);
/// Two announcements of the menu further apart than this are two openings: panels repeat it within milliseconds.
const REPEAT_MAX: Duration = Duration::from_secs(1);

/// What panels reported about the menu.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    /// The menus that were reported open and not yet closed, by number.
    open: HashSet<i32>,
    /// Whether it was opened and not closed since.
    visible: bool,
    /// Whether it was announced by `AboutToShow`, and not reported open since.
    announced: bool,
    /// When it was last opened.
    opened: Option<Instant>,
    /// A panel reported that it opens the whole menu, and not only a submenu.
    reported: bool,
    /// A panel said "opened" of the whole menu, which those built on GTK never do.
    says_opened: bool,
    closed: Option<Instant>,
    /// When a panel last reported anything.
    last_sign: Instant,
    /// The last sign of life after which nobody could tell whether the menu is still there.
    doubted: Option<Instant>,
}

impl Presence {
    /// A menu that no panel has shown.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            open: HashSet::new(),
            visible: false,
            announced: false,
            opened: None,
            reported: false,
            says_opened: false,
            closed: None,
            last_sign: now,
            doubted: None,
        }
    }

    /// A panel is about to show the menu with this number. Returns whether this opens the whole menu.
    pub(super) fn about_to_show(&mut self, number: i32, now: Instant) -> bool {
        let was_visible = self.is_visible(now);
        let is_repeated = || self.opened.is_some_and(|opened| now.saturating_duration_since(opened) < REPEAT_MAX);
        let opens = number == ROOT && !(was_visible && (self.open.contains(&ROOT) || is_repeated()));
        if opens || !was_visible {
            self.open.clear();
            self.opened = Some(now);
        }
        self.reported |= number == ROOT;
        self.announced |= opens;
        (self.visible, self.last_sign) = (true, now);
        opens
    }

    /// The menu with this number was opened. Returns whether this opens the whole menu, and was not announced: a panel may
    /// take seconds from the announcement to here.
    pub(super) fn opened(&mut self, number: i32, now: Instant) -> bool {
        let was_announced = number == ROOT && self.announced && self.is_visible(now);
        let opens = self.about_to_show(number, now) && !was_announced;
        self.says_opened |= number == ROOT;
        self.announced &= number != ROOT;
        self.open.insert(number);
        opens
    }

    /// The menu with this number was closed.
    pub(super) fn closed(&mut self, number: i32, now: Instant) {
        self.last_sign = now;
        self.open.remove(&number);
        if number == ROOT {
            self.close(now);
        }
    }

    /// An entry was clicked, which closes the menu. Not all panels report that.
    pub(super) fn close(&mut self, now: Instant) {
        self.open.clear();
        (self.visible, self.announced, self.closed) = (false, false, Some(now));
    }

    /// Whether the menu may be on the screen.
    pub(super) fn is_visible(&self, now: Instant) -> bool {
        self.visible && self.is_held(now)
    }

    /// Whether no entry may move.
    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.held_until().is_some_and(|until| now < until)
    }

    /// When entries may move again, if no panel reports anything until then.
    pub(super) fn held_until(&self) -> Option<Instant> {
        if !self.visible {
            return self.closed.map(|closed| closed + CLOSED_HOLD);
        }
        Some(self.last_sign + if self.open.is_empty() { ANNOUNCED_OPEN_MAX } else { REPORTED_OPEN_MAX })
    }

    /// When it is to be found out whether a menu is still on the screen whose panel does not say when it closes it.
    pub(super) fn doubtful_at(&self) -> Option<Instant> {
        let until = self.held_until().filter(|_| self.visible && !self.says_opened);
        until.filter(|_| self.doubted != Some(self.last_sign)).map(|until| until - DOUBT)
    }

    /// It was found out: the menu is still there, or nobody can tell.
    pub(super) fn found(&mut self, is_there: bool, now: Instant) {
        if is_there && self.visible {
            self.last_sign = now;
        } else {
            self.doubted = Some(self.last_sign);
        }
    }

    /// Whether the menu was opened at this time or later.
    pub(super) fn opened_since(&self, time: Instant) -> bool {
        self.opened.is_some_and(|opened| time <= opened)
    }

    /// Whether some panel reports that it opens the menu.
    pub(super) const fn is_reported(&self) -> bool {
        self.reported
    }

    /// Whether the whole menu was reported open, and not closed since.
    pub(super) fn is_reported_open(&self) -> bool {
        self.open.contains(&ROOT)
    }

    /// Whether some panel says that the menu is open, and not only that it will be.
    pub(super) const fn says_opened(&self) -> bool {
        self.says_opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(begun: Instant, millis: u64) -> Instant {
        begun + Duration::from_millis(millis)
    }

    #[test]
    fn case_164_a_menu_that_was_only_announced_is_held_for_ten_seconds_after_the_last_sign_of_life() {
        let begun = Instant::now();
        let mut presence = Presence::new(begun);
        assert!(!presence.is_held(begun));
        assert!(presence.about_to_show(ROOT, begun), "it opens");
        assert!(!presence.about_to_show(ROOT, after(begun, 50)), "the same opening");
        assert!(presence.is_visible(after(begun, 10_049)) && !presence.is_held(after(begun, 10_050)));
        presence.about_to_show(ROOT, after(begun, 20_000));
        presence.opened(7, after(begun, 25_000));
        assert!(presence.is_visible(after(begun, 84_999)), "a submenu was reported open");
        presence.closed(7, after(begun, 30_000));
        assert!(presence.is_visible(after(begun, 39_999)), "the pointer went on to another row");
        assert!(!presence.is_held(after(begun, 40_000)));
        assert!(presence.about_to_show(ROOT, after(begun, 31_500)), "closed unseen, and opened again");
        assert!(!presence.about_to_show(8, after(begun, 50_000)), "it is still looked at");
        assert!(presence.is_visible(after(begun, 59_999)) && presence.opened_since(after(begun, 50_000)));
    }

    #[test]
    fn case_654_a_menu_that_is_still_on_the_screen_is_held_for_as_long_as_it_is_there() {
        let begun = Instant::now();
        let mut presence = Presence::new(begun);
        assert_eq!(presence.doubtful_at(), None);
        presence.about_to_show(ROOT, begun);
        for seconds in [9, 18, 27] {
            assert_eq!(presence.doubtful_at(), Some(after(begun, seconds * 1000)));
            presence.found(true, after(begun, seconds * 1000));
        }
        assert!(presence.is_held(after(begun, 36_999)), "nothing moved under a pointer that stood still");
        let mut left = presence.clone();
        left.close(after(begun, 28_000));
        assert_eq!(left.held_until(), Some(after(begun, 28_500)), "it was seen to close");
        presence.found(false, after(begun, 36_000));
        assert_eq!(presence.doubtful_at(), None, "nobody can tell");
        assert!(!presence.is_held(after(begun, 37_000)));
        presence.about_to_show(ROOT, after(begun, 40_000));
        assert_eq!(presence.doubtful_at(), Some(after(begun, 49_000)));
        // One that says what it opens also says what it closes.
        presence.opened(ROOT, after(begun, 40_010));
        assert_eq!(presence.doubtful_at(), None);
    }

    #[test]
    fn case_219_a_menu_that_a_slow_panel_reports_open_long_after_it_announced_it_is_opened_once() {
        let begun = Instant::now();
        let mut presence = Presence::new(begun);
        assert!(presence.about_to_show(ROOT, begun));
        assert!(!presence.opened(ROOT, after(begun, 1935)), "the same opening: it must not be rebuilt on the screen");
        assert!(presence.is_visible(after(begun, 61_934)));
        presence.closed(ROOT, after(begun, 3000));
        assert!(presence.opened(ROOT, after(begun, 4000)), "closed in between");
        presence.closed(ROOT, after(begun, 5000));
        assert!(presence.about_to_show(ROOT, after(begun, 6000)));
        assert!(presence.opened(ROOT, after(begun, 16_001)), "nobody was there for longer than it is held");
    }

    #[test]
    fn a_panel_that_reports_submenus_only_does_not_report_opening_the_menu() {
        let now = Instant::now();
        let mut presence = Presence::new(now);
        presence.about_to_show(5, now);
        presence.opened(5, now);
        assert!(presence.is_visible(now) && !presence.is_reported());
        presence.about_to_show(ROOT, after(now, 50));
        assert!(presence.is_reported());
    }

    #[test]
    fn a_menu_that_was_reported_open_is_held_until_half_a_second_after_it_was_closed() {
        let begun = Instant::now();
        let mut presence = Presence::new(begun);
        assert!(presence.opened(ROOT, begun));
        assert!(!presence.about_to_show(ROOT, after(begun, 5000)), "it is open");
        assert!(presence.is_visible(after(begun, 64_999)) && !presence.is_held(after(begun, 65_000)));
        presence.closed(ROOT, after(begun, 6000));
        assert!(!presence.is_visible(after(begun, 6000)) && presence.is_held(after(begun, 6499)));
        assert!(!presence.is_held(after(begun, 6500)));
        assert!(presence.about_to_show(ROOT, after(begun, 6100)), "opened again");
        presence.close(after(begun, 6200));
        assert!(!presence.is_visible(after(begun, 6200)) && presence.is_held(after(begun, 6699)));
    }
}
