//! When panels are told that the menu they have is out of date. Pure.
//!
//! Nothing else is sent while the menu is closed. GNOME's extension lost a reply in about one of three storms of layouts
//! and then waited for it for ever, and no panel gains from a menu that nobody sees.

use std::time::{Duration, Instant};

/// The interval between the first two marks for panels that do not report opening the menu. It doubles with each
/// further one.
const GAP_MIN: Duration = Duration::from_secs(1);
/// Minimum interval between two marks for panels that must know the menu's size before they open it. Its shape changes at
/// most once a second anyway.
const RESIZED_GAP: Duration = Duration::from_millis(250);
/// Maximum interval between two marks.
const GAP_MAX: Duration = Duration::from_secs(30);

/// The marks that were sent.
#[derive(Debug, Default)]
pub(super) struct Stale {
    /// When the last mark was sent, if the menu was not opened since.
    sent: Option<Instant>,
    /// Whether the menu was read since.
    read: bool,
    /// How many were sent since the menu was last opened.
    count: u32,
}

impl Stale {
    /// When the next mark may be sent, which may be in the past. `None`: not before the menu is opened or read.
    /// `is_resized`: the menu has another number of entries now, and the panel may be one that is built on GTK. Those do not
    /// enlarge a menu that they opened: its last rows could be reached only by scrolling.
    pub(super) fn due(&self, reports_opening: bool, is_resized: bool, now: Instant) -> Option<Instant> {
        match self.sent {
            None => Some(now),
            Some(sent) if is_resized && self.read => Some(sent + RESIZED_GAP),
            // It will ask when it opens the menu.
            Some(_) if reports_opening || !self.read => None,
            Some(sent) => Some(sent + GAP_MAX.min(GAP_MIN * 2_u32.saturating_pow(self.count.saturating_sub(1)))),
        }
    }

    /// A mark was sent.
    pub(super) const fn send(&mut self, now: Instant) {
        (self.sent, self.read, self.count) = (Some(now), false, self.count.saturating_add(1));
    }

    /// A panel read the menu.
    pub(super) const fn read(&mut self) {
        self.read = true;
    }

    /// A panel opened the menu.
    pub(super) fn open(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_that_reports_opening_the_menu_is_sent_one_mark() {
        let now = Instant::now();
        let mut stale = Stale::default();
        assert_eq!(stale.due(true, false, now), Some(now));
        stale.send(now);
        assert_eq!(stale.due(true, false, now), None);
        stale.read();
        assert_eq!(stale.due(true, false, now), None, "it reads at once, and did not show it");
        stale.open();
        assert_eq!(stale.due(true, false, now), Some(now));
    }

    #[test]
    fn others_are_sent_few() {
        let begun = Instant::now();
        let (mut stale, mut now, mut marks) = (Stale::default(), begun, 0);
        while now < begun + Duration::from_secs(3600) {
            now = stale.due(false, false, now).unwrap();
            stale.send(now);
            assert_eq!(stale.due(false, false, now), None, "nobody reads them");
            stale.read();
            marks += 1;
        }
        assert!((100..130).contains(&marks), "{marks} in an hour");
    }

    #[test]
    fn a_panel_built_on_gtk_knows_the_size_of_the_menu_before_it_opens_it() {
        let (now, mut stale) = (Instant::now(), Stale::default());
        stale.send(now);
        assert_eq!(stale.due(true, true, now), None, "it does not read");
        stale.read();
        assert_eq!(stale.due(true, true, now), Some(now + RESIZED_GAP));
        assert_eq!(stale.due(true, false, now), None);
    }
}
