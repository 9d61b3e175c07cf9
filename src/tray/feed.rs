//! The engine's view: builds the menu from the fleet, and sends it to the thread that owns the tray when it differs.
//! The [`notifier`](super::notifier) raises popups from the same updates.
//!
//! Changes of the desktop arrive here as [`DesktopEvent`]s: while no panel shows the icon, the terminal shows the
//! sessions.

use super::autostart::Login;
use super::bridge_offer::BridgeOffer;
use super::menu::{AgentBridge, Bridge, Menu};
use super::messages::DesktopEvent;
use super::notifier::Notifier;
use super::notify::{Note, Offer};
use super::view::{Effect, MenuView};
use pilotlight_agents::bridge::Installer;
use pilotlight_core::agent::counted_sessions;
use pilotlight_core::fleet::Row;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_engine::config::Problem;
use pilotlight_engine::{Fleet, Settings, View};
use pilotlight_system::log::{self, cause, private};
use pilotlight_system::paths;
use pilotlight_system::plain_file;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::SystemTime;

/// The terminal that this program was started from, for what the menu cannot show.
pub(crate) trait Console: Send {
    /// The icon is not shown, for the reason in this line.
    fn icon_missing(&mut self, line: &str);
    /// The icon is shown.
    fn icon_shown(&mut self);
    fn print(&mut self, line: &str);
    /// The table that shows the sessions while there is no icon.
    fn table(&mut self) -> Option<&mut dyn View>;
}

/// The files of a bridge, and whether they are of this version. Read again when the modification time of the main one
/// changes.
struct InstalledBridge {
    installer: Box<dyn Installer>,
    offer: BridgeOffer,
    modified: Option<SystemTime>,
    is_current: bool,
}

impl InstalledBridge {
    fn new((installer, offer): (Box<dyn Installer>, BridgeOffer)) -> Self {
        Self { installer, offer, modified: None, is_current: false }
    }

    fn state(&mut self) -> Bridge {
        if !self.installer.is_installed() {
            return Bridge::Off;
        }
        let modified = std::fs::metadata(self.installer.main_file()).and_then(|meta| meta.modified()).ok();
        if modified != self.modified {
            (self.modified, self.is_current) = (modified, self.installer.is_current());
        }
        if self.is_current { Bridge::On } else { Bridge::Old }
    }

    /// Its entry. An installed bridge settles the offer.
    fn entry(&mut self) -> AgentBridge {
        let state = self.state();
        if state != Bridge::Off {
            self.offer.settle();
        }
        AgentBridge { agent: self.installer.adapter(), state, is_offered: self.offer.is_open() }
    }
}

/// Builds the menu from what the engine knows.
pub(crate) struct Feed {
    menu: Menu,
    notifier: Notifier,
    login: Login,
    /// The bridges to terminals, where they can be switched on.
    bridges: Vec<InstalledBridge>,
    send: Box<dyn Fn(Arc<MenuView>) + Send>,
    desktop: Receiver<DesktopEvent>,
    console: Box<dyn Console>,
    /// Whether the icon is shown; `None` until that is known.
    has_icon: Option<bool>,
    welcome: Option<Welcome>,
    /// Sessions that ended with an earlier run of Pilotlight and were not reported yet.
    ended: Vec<String>,
    /// When the table wants to be redrawn.
    table_at: Option<Time>,
    /// No menu is sent before this, by the awake clock.
    throttled_until: Time,
    /// The current minimum interval between menus.
    interval: Span,
    /// When the last menu was sent, by the awake clock.
    sent: Option<Time>,
    /// Something changed during the interval.
    pending: bool,
}

/// Minimum interval between two menus: nobody reads faster, and the panel draws each one.
const MIN_INTERVAL: Span = Span(100);
/// The interval to which the throttle backs off while changes keep coming.
const MAX_INTERVAL: Span = Span(400);
/// After this long without a menu, the throttle starts at [`MIN_INTERVAL`] again.
const CALM: Span = Span::seconds(1);

/// The notification of the first run.
pub(crate) struct Welcome {
    /// The file that marks the first run as done.
    pub marker: PathBuf,
}

impl Feed {
    /// Sends menus with `send`; `welcome` is given on the first run.
    pub(crate) fn new(
        menu: Menu,
        notifier: Notifier,
        login: Login,
        send: impl Fn(Arc<MenuView>) + Send + 'static,
        desktop: Receiver<DesktopEvent>,
        console: Box<dyn Console>,
        welcome: Option<Welcome>,
    ) -> Self {
        Self {
            menu,
            notifier,
            login,
            bridges: Vec::new(),
            send: Box::new(send),
            desktop,
            console,
            has_icon: None,
            welcome,
            ended: Vec::new(),
            table_at: None,
            throttled_until: Time::default(),
            interval: MIN_INTERVAL,
            sent: None,
            pending: false,
        }
    }

    /// Reports these sessions, which ended with an earlier run, at the first update.
    pub(crate) fn with_exit_notes(self, ended: Vec<String>) -> Self {
        Self { ended, ..self }
    }

    /// Shows the state of these bridges in the menu, and offers each while its offer is open.
    pub(crate) fn with_bridges(self, bridges: Vec<(Box<dyn Installer>, BridgeOffer)>) -> Self {
        Self { bridges: bridges.into_iter().map(InstalledBridge::new).collect(), ..self }
    }

    /// Restores the terminal and closes all popups, at exit.
    pub(crate) async fn close(self) {
        let Self { notifier, console, .. } = self;
        drop(console); // restores the terminal
        notifier.close().await;
    }

    fn update_menu(&mut self, fleet: &Fleet, now: Moment) {
        self.menu.set_notifications(self.notifier.notifications());
        self.menu.set_popups_only_review(self.notifier.is_server_young());
        self.menu.set_login(self.login.state());
        self.menu.set_bridges(self.bridges.iter_mut().map(InstalledBridge::entry).collect());
        self.menu.set_troubles(fleet.troubles(), fleet.twins());
        if let Some(view) = self.menu.update(fleet.shown(), now) {
            (self.send)(view);
            // Each menu costs work here and in the panel, so the interval doubles while changes keep coming.
            let calm = self.sent.is_none_or(|sent| sent + CALM <= now.awake);
            self.interval = if calm { MIN_INTERVAL } else { MAX_INTERVAL.min(self.interval + self.interval) };
            self.throttled_until = now.awake + self.interval;
            self.sent = Some(now.awake);
        }
    }

    fn handle_desktop_events(&mut self) {
        while let Ok(event) = self.desktop.try_recv() {
            match event {
                DesktopEvent::IconShown => {
                    self.has_icon = Some(true);
                    self.console.icon_shown();
                }
                DesktopEvent::IconMissing(line) => {
                    self.has_icon = Some(false);
                    self.console.icon_missing(&line);
                }
                DesktopEvent::MenuCapacity(entries) => self.menu.set_capacity(entries),
            }
        }
    }

    /// Welcomes the user on the first run, once it is known whether there is an icon and which sessions there are.
    fn welcome(&mut self, fleet: &Fleet) {
        let Some(has_icon) = self.has_icon else { return };
        let Some(Welcome { marker }) = self.welcome.take() else { return };
        let rows: Vec<_> = fleet.rows().filter(|row| !row.status.has_ended()).collect();
        let note = welcome_note(&rows, has_icon);
        if let Err(error) = write_marker(&marker) {
            log::warn!("the first run cannot be noted, so the next one is welcomed too: {}", cause(&error));
        }
        if has_icon {
            let line = format!("{}. {}", note.title, note.body.replace('\n', " "));
            self.notifier.note_or(&note, move || log::info!("the user is welcomed: {}", private(&line)));
        } else if self.console.table().is_none() {
            // A table shows them itself, as they are at any time.
            self.console.print(&format!("{}. {}", note.title, note.body.replace('\n', " ")));
        }
    }
}

impl View for Feed {
    fn may_auto_reconnect(&self) -> bool {
        true
    }

    fn configure(&mut self, settings: &Settings<'_>) {
        let (config, lines) = (settings.config, settings.lines());
        log::set_level(config.log.level);
        self.menu.configure(config, settings.problems.first().map(Problem::brief));
        self.notifier.configure(config, settings.homes);
        if !settings.at_start && !lines.is_empty() {
            let note = Note::not_done("Pilotlight's settings", lines.join("\n"));
            self.notifier.note(&note.offering(Offer::new("Edit settings", Effect::OpenSettings)));
        }
        if let Some(table) = self.console.table() {
            table.configure(settings);
        }
    }

    fn follow_also(&mut self, homes: &[PathBuf]) {
        self.notifier.follow_also(homes);
        if let Some(table) = self.console.table() {
            table.follow_also(homes);
        }
    }

    fn show(&mut self, fleet: &Fleet, changed: &[Key], removed: &[Key], now: Moment) -> ControlFlow<()> {
        for line in std::mem::take(&mut self.ended) {
            self.console.print(&line);
            self.notifier.note(&Note::not_done("Ended with Pilotlight", line));
        }
        self.notifier.update(fleet, now);
        self.pending = now.awake < self.throttled_until;
        if !self.pending {
            self.update_menu(fleet, now);
        }
        self.handle_desktop_events();
        self.welcome(fleet);
        let Some(table) = self.console.table() else { return ControlFlow::Continue(()) };
        let flow = table.show(fleet, changed, removed, now);
        self.table_at = table.redraw_at();
        flow
    }

    fn shows_ages(&self) -> bool {
        self.table_at.is_some()
    }

    fn show_exit_notice(&mut self, line: &str) {
        self.console.print(line);
    }

    fn leaves_interrupt(&mut self) -> bool {
        self.console.table().is_some_and(View::leaves_interrupt)
    }

    fn suspend(&mut self) {
        if let Some(table) = self.console.table() {
            table.suspend();
        }
    }

    fn resume(&mut self) {
        if let Some(table) = self.console.table() {
            table.resume();
        }
    }

    fn redraw_at(&self) -> Option<Time> {
        let menu = if self.pending { Some(self.throttled_until) } else { self.menu.wake_at() };
        [menu, self.notifier.wake_at(), self.table_at].into_iter().flatten().min()
    }
}

pub(crate) fn is_first_run(marker: &Path) -> bool {
    !marker.exists()
}

fn write_marker(marker: &Path) -> std::io::Result<()> {
    if let Some(folder) = marker.parent() {
        paths::make_folder(folder)?;
    }
    plain_file::create(marker)?.write_all(b"the first run was welcomed\n")
}

fn welcome_note(rows: &[&Row], has_icon: bool) -> Note {
    let needs = match rows.iter().filter(|row| row.needs_you()).count() {
        0 => "none needs you".to_owned(),
        1 => "1 needs you".to_owned(),
        n => format!("{n} need you"),
    };
    let found = if rows.is_empty() {
        "no session is open".to_owned()
    } else {
        format!("{}, {needs}", counted_sessions(rows.iter().map(|row| &row.agent)))
    };
    let place = if has_icon {
        "The icon in your panel shows how they are. Click it for the menu."
    } else {
        "No panel shows the icon yet. `pilotlight live` shows your sessions as a table."
    };
    Note::new(format!("Pilotlight is running: {found}"), place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::fleet::Session;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::verdict::Status;

    #[test]
    fn the_welcome_counts_the_sessions() {
        let row = |status| Row { status, ..Session::default().row(Moment::default(), &Limits::default()).0 };
        let rows = [row(Status::Working), row(Status::Stuck), row(Status::Idle), row(Status::Idle)];
        let rows: Vec<_> = rows.iter().collect();
        assert_eq!(welcome_note(&rows, true).title, "Pilotlight is running: 4 agent sessions, 1 needs you");
        assert_eq!(welcome_note(&rows[..1], true).title, "Pilotlight is running: 1 agent session, none needs you");
        assert_eq!(welcome_note(&[], false).title, "Pilotlight is running: no session is open");
        for has_icon in [true, false] {
            assert_eq!(welcome_note(&rows, has_icon).body.lines().count(), 1, "two lines in all");
        }
    }

    #[test]
    fn only_the_first_run_is_welcomed() {
        let scratch = tempfile::tempdir().unwrap();
        let marker = scratch.path().join("made").join("welcomed");
        assert!(is_first_run(&marker));
        write_marker(&marker).unwrap();
        assert!(!is_first_run(&marker));
    }
}
