//! The engine's view: makes a menu of what the engine sees, and hands it to the thread that owns the tray when it differs.
//! The [`notifier`](super::notifier) tells what is to be told beside it.
//!
//! What becomes of the desktop comes in beside it, as [`News`], because what to say of it depends on what there is to say it
//! on: where no panel shows the light, the terminal does.

use super::autostart::Login;
use super::details::Source;
use super::menu::{Bridge, Menu};
use super::notifier::Notifier;
use super::notify::{Note, NoteSender};
use super::view::MenuView;
use crate::agent::copilot::bridge::files::Files;
use crate::config::Problem;
use crate::core::fleet::Row;
use crate::core::text::counted;
use crate::core::time::{Moment, Span, Time};
use crate::core::verdict::Status;
use crate::engine::{Fleet, Key, Settings, View};
use crate::system::log;
use crate::system::paths;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::SystemTime;

/// What becomes of the desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The icon stands in the panel.
    Lit,
    /// There is no place for the icon, in words for the user: what is missing, and what still works.
    Dark(String),
    /// The display has room for a menu of so many entries.
    Room(usize),
}

/// What the user is told beside the menu.
pub(crate) trait Tell: Send {
    /// A line, where no panel shows anything.
    fn dark(&mut self, line: &str);
    /// The icon came.
    fn lit(&mut self);
    /// A line, once.
    fn say(&mut self, line: &str);
    /// What else shows the sessions meanwhile.
    fn table(&mut self) -> Option<&mut dyn View>;
}

/// What lies on our disk of the bridge, and whether it is this version's: that is read again where it was written again.
struct BridgeFiles {
    files: Files,
    written: Option<SystemTime>,
    is_current: bool,
}

impl BridgeFiles {
    const fn new(files: Files) -> Self {
        Self { files, written: None, is_current: false }
    }

    fn state(&mut self) -> Bridge {
        if !self.files.key.is_file() {
            return Bridge::Off;
        }
        let written = std::fs::metadata(self.files.extension()).and_then(|meta| meta.modified()).ok();
        if written != self.written {
            (self.written, self.is_current) = (written, self.files.is_current());
        }
        if self.is_current { Bridge::On } else { Bridge::Old }
    }
}

/// Makes menus of what the engine sees.
pub(crate) struct Feed {
    menu: Menu,
    notifier: Notifier,
    login: Login,
    /// What lies on our disk of the bridge to terminals, where that can be switched on.
    bridge: Option<BridgeFiles>,
    send: Box<dyn Fn(Arc<MenuView>) + Send>,
    news: Receiver<News>,
    tell: Box<dyn Tell>,
    lit: Option<bool>,
    welcome: Option<Welcome>,
    /// What ended with Pilotlight before, still to be told.
    ended: Vec<String>,
    /// When what else shows the sessions wants to be called.
    table_at: Option<Time>,
    /// Until when, by the awake clock, the menu rests.
    rests_until: Time,
    /// How long the last one rests.
    rest: Span,
    /// When, by the awake clock, the last one was sent.
    sent: Option<Time>,
    /// Something happened meanwhile.
    owes: bool,
}

/// A menu that was sent rests for so long, however much happens: nobody reads faster, and the panel draws each one.
const REST: Span = Span(100);
/// The same, where something happens all the time.
const REST_MOST: Span = Span(400);
/// When nothing was sent for so long, what happens next is shown at once.
const CALM: Span = Span::seconds(1);

/// The welcome of the first run.
pub(crate) struct Welcome {
    /// The file that says that it was given.
    pub marker: PathBuf,
    /// Sends the notification.
    pub note_sender: NoteSender,
}

impl Feed {
    /// Sends the menus with `send`; `welcome` where this is the first run.
    pub(crate) fn new(
        menu: Menu,
        notifier: Notifier,
        login: Login,
        send: impl Fn(Arc<MenuView>) + Send + 'static,
        news: Receiver<News>,
        tell: Box<dyn Tell>,
        welcome: Option<Welcome>,
    ) -> Self {
        Self {
            menu,
            notifier,
            login,
            bridge: None,
            send: Box::new(send),
            news,
            tell,
            lit: None,
            welcome,
            ended: Vec::new(),
            table_at: None,
            rests_until: Time::default(),
            rest: REST,
            sent: None,
            owes: false,
        }
    }

    /// Tells this at the first look.
    pub(crate) fn telling(self, ended: Vec<String>) -> Self {
        Self { ended, ..self }
    }

    /// Says in the menu whether the bridge is on.
    pub(crate) fn with_bridge(self, bridge: Option<Files>) -> Self {
        Self { bridge: bridge.map(BridgeFiles::new), ..self }
    }

    /// Takes away what was shown, for the end of the program.
    pub(crate) async fn end(self) {
        let Self { notifier, tell, .. } = self;
        drop(tell); // the terminal is as it was before
        notifier.end().await;
    }

    fn update_menu(&mut self, fleet: &Fleet, now: Moment) {
        self.menu.note(self.notifier.notices());
        self.menu.note_login(self.login.state());
        self.menu.note_bridge(self.bridge.as_mut().map(BridgeFiles::state));
        let sources = fleet.entries().map(|(key, entry)| Source {
            key,
            row: &entry.row,
            session: entry.session(),
            path: entry.path(),
        });
        if let Some(view) = self.menu.update(sources, now) {
            (self.send)(view);
            // Each menu is laid out, compared and drawn by two programs: while change follows on change, some are left out.
            let calm = self.sent.is_none_or(|sent| sent + CALM <= now.awake);
            self.rest = if calm { REST } else { REST_MOST.min(self.rest + self.rest) };
            self.rests_until = now.awake + self.rest;
            self.sent = Some(now.awake);
        }
    }

    fn follow_news(&mut self) {
        while let Ok(news) = self.news.try_recv() {
            match news {
                News::Lit => {
                    self.lit = Some(true);
                    self.tell.lit();
                }
                News::Dark(line) => {
                    self.lit = Some(false);
                    self.tell.dark(&line);
                }
                News::Room(most) => self.menu.make_room(most),
            }
        }
    }

    /// Once in a lifetime, as soon as it is known where the light is and what there is to see.
    fn welcome(&mut self, fleet: &Fleet) {
        let Some(lit) = self.lit else { return };
        let Some(Welcome { marker, note_sender }) = self.welcome.take() else { return };
        let rows: Vec<_> = fleet.rows().filter(|row| row.status != Status::Ended).collect();
        let note = words_of_welcome(&rows, lit);
        if let Err(error) = note_down(&marker) {
            tracing::warn!("the first run cannot be noted, so the next one is welcomed too: {error}");
        }
        if lit {
            let line = format!("{}. {}", note.title, note.body.replace('\n', " "));
            note_sender.send(&note, move || tracing::info!("{line}"));
        } else {
            self.tell.say(&format!("{}. {}", note.title, note.body.replace('\n', " ")));
        }
    }
}

impl View for Feed {
    fn reconnects_by_itself(&self) -> bool {
        true
    }

    fn configure(&mut self, settings: &Settings<'_>) {
        let (config, lines) = (settings.config, settings.lines());
        log::set_level(config.log.level);
        self.menu.configure(config, settings.problems.first().map(Problem::complaint));
        self.notifier.configure(&config.notifications, settings.homes, &config.actions.terminal);
        if !settings.at_start && !lines.is_empty() {
            self.notifier.note(&Note { title: "Pilotlight's settings".into(), body: lines.join("\n") });
        }
        if let Some(table) = self.tell.table() {
            table.configure(settings);
        }
    }

    fn show(&mut self, fleet: &Fleet, changed: &[Key], removed: &[Key], now: Moment) -> ControlFlow<()> {
        for line in std::mem::take(&mut self.ended) {
            self.tell.say(&line);
            self.notifier.note(&Note { title: "Ended with Pilotlight".into(), body: line });
        }
        self.notifier.update(fleet, &self.menu, now);
        self.owes = now.awake < self.rests_until;
        if !self.owes {
            self.update_menu(fleet, now);
        }
        self.follow_news();
        self.welcome(fleet);
        let Some(table) = self.tell.table() else { return ControlFlow::Continue(()) };
        let flow = table.show(fleet, changed, removed, now);
        self.table_at = table.redraw_at();
        flow
    }

    fn part(&mut self, line: &str) {
        self.tell.say(line);
    }

    fn suspend(&mut self) {
        if let Some(table) = self.tell.table() {
            table.suspend();
        }
    }

    fn resume(&mut self) {
        if let Some(table) = self.tell.table() {
            table.resume();
        }
    }

    fn redraw_at(&self) -> Option<Time> {
        let menu = if self.owes { Some(self.rests_until) } else { self.menu.wake_at() };
        [menu, self.notifier.wake_at(), self.table_at].into_iter().flatten().min()
    }
}

/// Whether nobody was welcomed yet.
pub(crate) fn is_first_run(marker: &Path) -> bool {
    !marker.exists()
}

fn note_down(marker: &Path) -> std::io::Result<()> {
    if let Some(folder) = marker.parent() {
        paths::make_folder(folder)?;
    }
    std::fs::write(marker, "the first run was welcomed\n")
}

fn words_of_welcome(rows: &[&Row], lit: bool) -> Note {
    let needs = rows.iter().filter(|row| row.needs_you()).count();
    let needs = match needs {
        0 => "none needs you".to_owned(),
        1 => "1 needs you".to_owned(),
        n => format!("{n} need you"),
    };
    let found = if rows.is_empty() {
        "No Copilot session is open".to_owned()
    } else {
        format!("{}, {needs}", counted(rows.len(), "Copilot session"))
    };
    let place = if lit {
        "The icon in your panel shows how they are. Click it for the menu."
    } else {
        "No panel shows the icon yet. `pilotlight live` shows them as a table."
    };
    Note { title: format!("Pilotlight is running: {found}"), body: place.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::fleet::Session;
    use crate::core::limits::Limits;

    #[test]
    fn the_welcome_says_what_was_found() {
        let row = |status| Row { status, ..Session::default().row(Moment::default(), &Limits::default()).0 };
        let rows = [row(Status::Working), row(Status::Stuck), row(Status::Idle), row(Status::Idle)];
        let rows: Vec<_> = rows.iter().collect();
        assert_eq!(words_of_welcome(&rows, true).title, "Pilotlight is running: 4 Copilot sessions, 1 needs you");
        assert_eq!(
            words_of_welcome(&rows[..1], true).title,
            "Pilotlight is running: 1 Copilot session, none needs you"
        );
        assert_eq!(words_of_welcome(&[], false).title, "Pilotlight is running: No Copilot session is open");
        for lit in [true, false] {
            assert_eq!(words_of_welcome(&rows, lit).body.lines().count(), 1, "two lines in all");
        }
    }

    #[test]
    fn only_the_first_run_is_welcomed() {
        let scratch = tempfile::tempdir().unwrap();
        let marker = scratch.path().join("made").join("welcomed");
        assert!(is_first_run(&marker));
        note_down(&marker).unwrap();
        assert!(!is_first_run(&marker));
    }
}
