//! The state of notifications, and the menu entries that pause them and mute sessions or folders. Those that do not
//! apply are left out.

use super::mute::{MORNING, Mute, MuteChange};
use super::view::{Effect, Item, ItemId, Kind};
use pilotlight_core::alert::{Detail, Pause, Quiet};
use pilotlight_core::fleet::Row;
use pilotlight_core::session::Key;
use pilotlight_core::text::counted;
use pilotlight_system::clock::WallClock;

/// The state of notifications, as the menu shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotificationState {
    /// Whether they are enabled in the config.
    pub enabled: bool,
    /// The quiet hours, from and to, in minutes since midnight.
    pub quiet_hours: Option<(u16, u16)>,
    /// Whether it is a quiet hour now.
    pub is_quiet_hour: bool,
    /// What is muted, and the pause.
    pub quiet: Quiet,
    /// How much popups say about a session.
    pub detail: Detail,
}

impl Default for NotificationState {
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

impl NotificationState {
    /// If they are paused: "notifications are paused until 18:30", or in quiet hours "notifications are quiet until
    /// 7:00".
    pub(crate) fn paused(&self) -> Option<String> {
        self.pause().map(|pause| format!("notifications are {pause}"))
    }

    /// The same without a subject, for the title of the submenu: "paused until 18:30".
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

    /// The submenu in the footer.
    pub(crate) fn submenu(&self) -> Item {
        let pause = self.pause();
        let text = match (&pause, self.quiet_hours) {
            _ if !self.enabled => "Notifications: off in the settings".into(),
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

    /// The entries for a session's submenu.
    pub(crate) fn session_items(&self, key: &Key, row: &Row) -> Vec<Item> {
        let is_muted = self.quiet.is_session_muted(&row.id);
        let (text, change) = match is_muted {
            true => ("Unmute this session", MuteChange::Unmute),
            false => ("Mute this session", MuteChange::Mute),
        };
        let effect = Effect::Mute(Mute::Session(row.id.clone(), change));
        let mut items = vec![Item::action(ItemId::of(key, Kind::MuteSession), text, effect)];
        if let Some(cwd) = row.cwd.as_deref() {
            let (text, mute) = match self.quiet.muted_folder(cwd) {
                Some(folder) => ("Unmute its folder", Mute::Folder(folder.into(), MuteChange::Unmute)),
                None => ("Mute its folder", Mute::Folder(cwd.into(), MuteChange::Mute)),
            };
            items.push(Item::action(ItemId::of(key, Kind::MuteFolder), text, Effect::Mute(mute)));
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::session::HomeId;
    use pilotlight_core::time::{Moment, Span, Time};

    #[test]
    fn a_pause_is_applied_and_worded() {
        let mut state = NotificationState::default();
        let now = Time(1_763_700_000_000);
        let title = |state: &NotificationState| match state.submenu() {
            Item::Submenu { text, .. } => text.at(Moment::default()),
            other => panic!("{other:?}"),
        };
        assert_eq!((title(&state).as_str(), state.paused()), ("Notifications", None));
        Mute::Hour.apply(&mut state.quiet, now);
        let until = WallClock::at(now + Span::hours(1));
        assert_eq!(title(&state), format!("Notifications: paused until {until}"));
        assert_eq!(state.paused(), Some(format!("notifications are paused until {until}")));
        Mute::Tomorrow.apply(&mut state.quiet, now);
        assert_eq!(title(&state), "Notifications: paused until 6:00");
        Mute::UntilResumed.apply(&mut state.quiet, now);
        assert_eq!(title(&state), "Notifications: paused until resumed");
        Mute::Resume.apply(&mut state.quiet, now);
        assert_eq!(state, NotificationState::default());
        state.quiet_hours = Some((22 * 60, 7 * 60 + 30));
        assert_eq!(title(&state), "Notifications: on, but from 22:00 to 7:30");
        state.is_quiet_hour = true;
        assert_eq!(title(&state), "Notifications: quiet until 7:30");
        assert_eq!(state.paused().as_deref(), Some("notifications are quiet until 7:30"));
        let resume = ItemId::own(Kind::Unpause);
        let resumes =
            |state: &NotificationState| state.submenu().children().iter().any(|item| item.id() == Some(&resume));
        assert!(!resumes(&state), "there is no pause to end");
        Mute::Hour.apply(&mut state.quiet, now);
        assert!(resumes(&state));
        state.enabled = false;
        assert_eq!((title(&state).as_str(), state.paused()), ("Notifications: off in the settings", None));
    }

    #[test]
    fn a_mute_of_a_parent_folder_is_undone_for_that_folder() {
        let mut state = NotificationState::default();
        let row = Row {
            cwd: Some("/code/one/deep".into()),
            ..pilotlight_core::fleet::Session { id: "a".into(), ..Default::default() }
                .row(Default::default(), &Default::default())
                .0
        };
        Mute::Folder("/code/one".into(), MuteChange::Mute).apply(&mut state.quiet, Time(0));
        let items = state.session_items(&Key::new(HomeId::default(), "a"), &row);
        let [Item::Action { effect: Effect::Mute(mute), .. }, Item::Action { text, effect, .. }] = &items[..] else {
            panic!("{items:?}")
        };
        let unmute = Effect::Mute(Mute::Folder("/code/one".into(), MuteChange::Unmute));
        assert_eq!((text, effect), (&"Unmute its folder".into(), &unmute));
        mute.apply(&mut state.quiet, Time(0));
        assert!(state.quiet.is_session_muted("a"));
        Mute::UnmuteAll.apply(&mut state.quiet, Time(0));
        assert_eq!(state, NotificationState::default());
    }
}
