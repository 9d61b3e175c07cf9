//! Quiet, as the menu has it: notifications are paused and resumed, sessions and folders are muted.
//!
//! What does not apply has no entry.

use super::view::{Effect, Item, ItemId, Kind};
use crate::core::alert::{Detail, Pause, Quiet};
use crate::core::fleet::Row;
use crate::core::text::counted;
use crate::core::time::{Span, Time};
use crate::engine::Key;
use crate::system::clock::{self, WallClock};

/// A pause until tomorrow ends when the clock on the wall next reads this hour: whoever works past midnight means that too.
const MORNING: i8 = 6;

/// What the user wants to hear, or no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mute {
    /// Nothing for an hour.
    Hour,
    /// Nothing until the next morning.
    Tomorrow,
    /// Nothing until the user says so.
    UntilResumed,
    /// The pause is over.
    Resume,
    /// A session, by its id, is muted or heard again.
    Session(Box<str>, Voice),
    /// The sessions in a folder, and below it, are muted or heard again.
    Folder(Box<str>, Voice),
    /// All that is muted is heard again.
    UnmuteAll,
}

/// Whether something is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// It is not.
    Muted,
    /// It is.
    Heard,
}

impl Mute {
    /// Makes it so.
    pub(crate) fn apply(&self, quiet: &mut Quiet, now: Time) {
        match self {
            Self::Hour => quiet.pause(Pause::Until(now + Span::hours(1))),
            Self::Tomorrow => quiet.pause(Pause::Until(clock::next(MORNING, now))),
            Self::UntilResumed => quiet.pause(Pause::UntilResumed),
            Self::Resume => quiet.resume(),
            Self::Session(id, Voice::Muted) => quiet.mute_session(id),
            Self::Session(id, Voice::Heard) => quiet.unmute_session(id),
            Self::Folder(folder, Voice::Muted) => quiet.mute_folder(folder),
            Self::Folder(folder, Voice::Heard) => quiet.unmute_folder(folder),
            Self::UnmuteAll => quiet.unmute_all(),
        }
    }
}

/// What the menu says of notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notices {
    /// They are not switched off in the config.
    pub enabled: bool,
    /// The part of the day in which nothing is told, in minutes since midnight.
    pub quiet_hours: Option<(u16, u16)>,
    /// It is that part now.
    pub is_quiet_hour: bool,
    /// What is muted, and whether everything is.
    pub quiet: Quiet,
    /// How much of a session is shown to whoever can see the screen.
    pub detail: Detail,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            enabled: true,
            quiet_hours: None,
            is_quiet_hour: false,
            quiet: Quiet::default(),
            detail: Detail::default(),
        }
    }
}

impl Notices {
    /// "notifications are paused until 18:30", where they are; "notifications are quiet until 7:00" in quiet hours.
    pub(crate) fn paused(&self) -> Option<String> {
        self.pause().map(|pause| format!("notifications are {pause}"))
    }

    /// The state of things in the words of the menu's title: "paused until 18:30".
    fn pause(&self) -> Option<String> {
        match self.quiet.paused() {
            _ if !self.enabled => None,
            Some(Pause::Until(until)) => Some(format!("paused until {}", WallClock::at(until))),
            Some(Pause::UntilResumed) => Some("paused until resumed".into()),
            None => {
                let (_, minute) = self.quiet_hours.filter(|_| self.is_quiet_hour)?;
                Some(format!("quiet until {}", WallClock { minute }))
            }
        }
    }

    /// The entry of the footer.
    pub(crate) fn submenu(&self) -> Item {
        let pause = self.pause();
        let text = match (&pause, self.quiet_hours) {
            _ if !self.enabled => "Notifications: off in the config".into(),
            (Some(pause), _) => format!("Notifications: {pause}"),
            (None, Some(hours)) => {
                let [from, to] = <[u16; 2]>::from(hours).map(|minute| WallClock { minute });
                format!("Notifications: on, but from {from} to {to}")
            }
            (None, None) => "Notifications".into(),
        };
        let item = |kind, text: &str, mute| Item::action(ItemId::own(kind), text, Effect::Mute(mute));
        let mut items = Vec::new();
        if self.enabled {
            items.push(item(Kind::PauseHour, "Pause for 1 hour", Mute::Hour));
            items.push(item(Kind::PauseTomorrow, &format!("Pause until tomorrow, {MORNING}:00"), Mute::Tomorrow));
            items.push(item(Kind::PauseOn, "Pause until resumed", Mute::UntilResumed));
            if self.quiet.paused().is_some() {
                items.push(item(Kind::Unpause, "Resume notifications", Mute::Resume));
            }
        }
        let (sessions, folders) = self.quiet.muted();
        if sessions + folders > 0 {
            let muted = format!("Unmute all: {}, {}", counted(sessions, "session"), counted(folders, "folder"));
            items.push(item(Kind::UnmuteAll, &muted, Mute::UnmuteAll));
        }
        items.push(Item::action(ItemId::own(Kind::TestNote), "Test notification", Effect::TestNote));
        Item::submenu(ItemId::own(Kind::Notifications), text, items)
    }

    /// The entries of a session's submenu.
    pub(crate) fn of_session(&self, key: &Key, row: &Row) -> Vec<Item> {
        let is_muted = self.quiet.is_session_muted(&row.id);
        let (text, voice) =
            if is_muted { ("Unmute this session", Voice::Heard) } else { ("Mute this session", Voice::Muted) };
        let effect = Effect::Mute(Mute::Session(row.id.clone(), voice));
        let mut items = vec![Item::action(ItemId::of(key, Kind::MuteSession), text, effect)];
        if let Some(cwd) = row.cwd.as_deref() {
            let (text, mute) = match self.quiet.muted_folder(cwd) {
                Some(folder) => ("Unmute its folder", Mute::Folder(folder.into(), Voice::Heard)),
                None => ("Mute its folder", Mute::Folder(cwd.into(), Voice::Muted)),
            };
            items.push(Item::action(ItemId::of(key, Kind::MuteFolder), text, Effect::Mute(mute)));
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Moment;

    #[test]
    fn what_the_user_wants_is_done_and_worded() {
        let mut notices = Notices::default();
        let now = Time(1_763_700_000_000);
        let title = |notices: &Notices| match notices.submenu() {
            Item::Submenu { text, .. } => text.at(Moment::default()),
            other => panic!("{other:?}"),
        };
        assert_eq!((title(&notices).as_str(), notices.paused()), ("Notifications", None));
        Mute::Hour.apply(&mut notices.quiet, now);
        let until = WallClock::at(now + Span::hours(1));
        assert_eq!(title(&notices), format!("Notifications: paused until {until}"));
        assert_eq!(notices.paused(), Some(format!("notifications are paused until {until}")));
        Mute::Tomorrow.apply(&mut notices.quiet, now);
        assert_eq!(title(&notices), "Notifications: paused until 6:00");
        Mute::UntilResumed.apply(&mut notices.quiet, now);
        assert_eq!(title(&notices), "Notifications: paused until resumed");
        Mute::Resume.apply(&mut notices.quiet, now);
        assert_eq!(notices, Notices::default());
        notices.quiet_hours = Some((22 * 60, 7 * 60 + 30));
        assert_eq!(title(&notices), "Notifications: on, but from 22:00 to 7:30");
        notices.is_quiet_hour = true;
        assert_eq!(title(&notices), "Notifications: quiet until 7:30");
        assert_eq!(notices.paused().as_deref(), Some("notifications are quiet until 7:30"));
        let resume = ItemId::own(Kind::Unpause);
        let resumes = |notices: &Notices| notices.submenu().children().iter().any(|item| item.id() == Some(&resume));
        assert!(!resumes(&notices), "there is no pause to end");
        Mute::Hour.apply(&mut notices.quiet, now);
        assert!(resumes(&notices));
        notices.enabled = false;
        assert_eq!((title(&notices).as_str(), notices.paused()), ("Notifications: off in the config", None));
    }

    #[test]
    fn a_mute_is_taken_back_where_it_was_made() {
        let mut notices = Notices::default();
        let row = Row {
            cwd: Some("/code/one/deep".into()),
            ..crate::core::fleet::Session { id: "a".into(), ..Default::default() }
                .row(Default::default(), &Default::default())
                .0
        };
        Mute::Folder("/code/one".into(), Voice::Muted).apply(&mut notices.quiet, Time(0));
        let items = notices.of_session(&(0, "a".into()), &row);
        let [Item::Action { effect: Effect::Mute(mute), .. }, Item::Action { text, effect, .. }] = &items[..] else {
            panic!("{items:?}")
        };
        let heard = Effect::Mute(Mute::Folder("/code/one".into(), Voice::Heard));
        assert_eq!((text, effect), (&"Unmute its folder".into(), &heard));
        mute.apply(&mut notices.quiet, Time(0));
        assert!(notices.quiet.is_session_muted("a"));
        Mute::UnmuteAll.apply(&mut notices.quiet, Time(0));
        assert_eq!(notices, Notices::default());
    }
}
