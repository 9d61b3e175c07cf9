//! What the main thread holds: the tray, as long as there is a place for it, what it shows, and the hands that do what a
//! click asks for.

use super::autostart::Login;
use super::clipboard::Clipboard;
use super::feed::News;
#[cfg(not(target_os = "linux"))]
use super::native::Tray;
use super::notifier::Word;
use super::notify::{Note, NoteSender};
use super::open;
use super::open_files::OpenFiles;
#[cfg(target_os = "linux")]
use super::sni::Tray;
use super::view::{Effect, ItemId, MenuView};
use crate::agent::copilot::bridge::files::Files;
use crate::core::alert::Detail;
use crate::core::order::{Ask, Given, Order, Outcome, Report};
use crate::core::text::is_uuid;
use crate::engine::{Command, Key};
use crate::system::paths::{self, own_program};
use crate::terminal::Terminals;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedSender};

/// What the main thread is told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// Show this from now on.
    View(Arc<MenuView>),
    /// An item was clicked.
    Item {
        /// Its name.
        item: String,
        /// Who clicked has seen what stood there: the menu did not change under the pointer.
        aimed: bool,
    },
    /// What became of the session bus.
    #[cfg(target_os = "linux")]
    Bus(super::bus::Bus),
    /// The engine has ended.
    End,
}

/// The tray and what it shows.
pub(crate) struct TrayController {
    tray: Option<Tray>,
    view: Arc<MenuView>,
    click_handler: ClickHandler,
    news: Box<dyn Fn(News)>,
    has_icon: Arc<AtomicBool>,
}

impl TrayController {
    /// A controller that is not lit. `news` tells where it is lit and why not.
    pub(crate) fn new(click_handler: ClickHandler, news: Box<dyn Fn(News)>) -> Self {
        let view = Arc::new(MenuView::before_the_first_look());
        Self { tray: None, view, click_handler, news, has_icon: Arc::default() }
    }

    /// Whether the icon is up, for other threads to look at.
    pub(crate) fn has_icon(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_icon)
    }

    /// Puts the icon up, where it is not, with `raise`.
    ///
    /// # Errors
    /// Where the desktop has no place for it.
    pub(crate) fn light(&mut self, raise: impl FnOnce(&MenuView) -> anyhow::Result<Tray>) -> anyhow::Result<()> {
        if self.tray.is_none() {
            self.tray = Some(raise(&self.view)?);
        }
        self.has_icon.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes the icon down: where it stood is gone.
    pub(crate) fn put_out(&mut self) {
        self.has_icon.store(false, Ordering::Release);
        self.tray = None;
    }

    /// Tells where the icon is, or why there is none.
    pub(crate) fn tell(&self, news: News) {
        (self.news)(news);
    }

    /// Shows this from now on.
    pub(crate) fn show(&mut self, view: Arc<MenuView>) {
        if let Some(tray) = &mut self.tray
            && let Err(error) = tray.show(&view)
        {
            tracing::warn!("the menu cannot be shown: {error:#}");
        }
        self.view = view;
    }

    /// An item was clicked; `aimed`, if the menu did not change under the pointer. What it is for is looked up now, in what is
    /// shown now.
    pub(crate) fn item(&mut self, name: &str, aimed: bool) {
        let Ok(id) = name.parse::<ItemId>() else { return };
        match self.view.effect_of(&id) {
            Some(effect) if id.session.is_some() && !aimed => {
                tracing::info!("a click came just after the menu had changed, and was ignored");
                if let Effect::Act(_) = effect {
                    let title = "Nothing was done".into();
                    let body =
                        "The menu changed under the pointer just before your click: look again, and click again."
                            .into();
                    self.click_handler.note(&Note { title, body });
                }
            }
            Some(effect) => {
                self.click_handler.act(id.session.as_ref(), effect.clone());
                self.show_again();
            }
            None => tracing::debug!("a click on something that is no longer shown"),
        }
    }

    /// The tray, where it is up.
    #[cfg(not(target_os = "linux"))]
    pub(crate) const fn tray(&self) -> Option<&Tray> {
        self.tray.as_ref()
    }

    /// A click may have changed a check mark, whatever came of it: what is shown is put right.
    fn show_again(&mut self) {
        if let Some(tray) = &mut self.tray
            && let Err(error) = tray.show(&self.view)
        {
            tracing::warn!("the menu cannot be shown: {error:#}");
        }
    }
}

/// Does what a click asks for.
pub(crate) struct ClickHandler {
    commander: UnboundedSender<Command>,
    note_sender: NoteSender,
    clipboard: Clipboard,
    runtime: Handle,
    own_log: Option<PathBuf>,
    /// Shared with all twins: settings change while the program runs.
    tools: Arc<Mutex<Tools>>,
    notifier: Ear,
    login: Login,
    open_files: OpenFiles,
}

/// What is handed to a terminal.
#[derive(Debug, Default)]
struct Tools {
    homes: Vec<PathBuf>,
    terminal: Vec<String>,
    /// How much of a session a popup shows.
    detail: Detail,
}

/// Where the notifier is told something.
pub(crate) type Ear = Arc<dyn Fn(Word) + Send + Sync>;

impl ClickHandler {
    /// What commands the engine, and says with notifications what went wrong. `homes` and `terminal` are for what is shown
    /// in a terminal; `notifier` is told what the user wants to hear; `open_files` is what is opened in an editor.
    #[expect(clippy::too_many_arguments, reason = "each is another one's, and they meet only here")]
    pub(crate) fn new(
        commander: UnboundedSender<Command>,
        note_sender: NoteSender,
        runtime: Handle,
        own_log: Option<PathBuf>,
        homes: Vec<PathBuf>,
        terminal: Vec<String>,
        notifier: Ear,
        login: Login,
        open_files: OpenFiles,
    ) -> Self {
        let tools = Arc::new(Mutex::new(Tools { homes, terminal, detail: Detail::default() }));
        Self {
            commander,
            note_sender,
            clipboard: Clipboard::default(),
            runtime,
            own_log,
            tools,
            notifier,
            login,
            open_files,
        }
    }

    /// Goes by these settings from now on, and so do all twins.
    pub(super) fn configure(&self, homes: &[PathBuf], terminal: &[String], detail: Detail) {
        let tools = Tools { homes: homes.to_vec(), terminal: terminal.to_vec(), detail };
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools;
    }

    /// Further hands that do the same, for another thread.
    pub(crate) fn twin(&self) -> Self {
        let Self { commander, note_sender, clipboard: _, runtime, own_log, tools, notifier, login, open_files } = self;
        Self {
            commander: commander.clone(),
            note_sender: note_sender.clone(),
            clipboard: Clipboard::default(),
            runtime: runtime.clone(),
            own_log: own_log.clone(),
            tools: Arc::clone(tools),
            notifier: Arc::clone(notifier),
            login: login.clone(),
            open_files: open_files.clone(),
        }
    }

    fn command(&self, command: Command) {
        let _ = self.commander.send(command); // fails only when the engine has ended
    }

    /// Shows a notification.
    pub(super) fn note(&self, note: &Note) {
        self.note_sender.send(note, || ());
    }

    /// Does what a click asks for; `session` is the one that was clicked at.
    pub(super) fn act(&mut self, session: Option<&Key>, effect: Effect) {
        if let Some(key) = session {
            // Whatever is clicked in a session's menu, the session was looked at.
            self.command(Command::Seen(vec![key.clone()]));
        }
        match effect {
            Effect::Seen => {}
            Effect::SeenAll => self.command(Command::SeenAll),
            Effect::Refresh => self.command(Command::Refresh),
            Effect::Quit => self.command(Command::Quit),
            Effect::Act(order) => self.order(*order),
            Effect::Reopen(orders) => orders.into_iter().for_each(|order| self.order(order)),
            Effect::Mute(mute) => (self.notifier)(Word::Mute(mute)),
            Effect::TestNote => self.note(&Note::test()),
            Effect::Details { id, request } => self.details(&["approve", "--ask"], &id, &request),
            Effect::Answer { id, request } => self.details(&["answer"], &id, &request),
            Effect::OpenFolder(path) => self.open(path, open::folder),
            Effect::OpenLog(path) => self.open(path, open::log),
            Effect::StartAtLogin(on) => {
                if let Err(error) = self.login.set(on) {
                    self.trouble()(format!("{error:#}"));
                }
                self.command(Command::Redraw);
            }
            Effect::RenewBridge => {
                match paths::project().map(|project| Files::new(&project).write()) {
                    Some(Ok(())) => self.note(&Note {
                        title: "The bridge is renewed".into(),
                        body: "Sessions that you start in terminals from now on have it.".into(),
                    }),
                    Some(Err(error)) => self.trouble()(format!("{error:#}")),
                    None => self.trouble()("there is no folder to put the bridge into: set HOME".into()),
                }
                self.command(Command::Redraw);
            }
            Effect::Bridge(on) => {
                let verb = if on { "install" } else { "remove" };
                self.in_terminal(|program, homes| Some(bridge_command(program, verb, homes)));
            }
            Effect::OwnLog => match self.own_log.clone() {
                Some(path) => self.open(path, open::log),
                None => self.trouble()("there is no folder to keep a log in".into()),
            },
            Effect::OpenSettings => self.open_files.open_settings(self.trouble()),
            Effect::ShowDiagnostics => self.open_files.show_diagnostics(self.trouble()),
            Effect::CopyDiagnostics => match self.open_files.shown() {
                Some(text) => self.clipboard.copy(text, self.trouble()),
                None => self.note(&Note {
                    title: "Nothing was copied".into(),
                    body: "Look at the diagnostics first, with \u{201c}Show diagnostics\u{201d}: what was shown is what is copied."
                        .into(),
                }),
            },
            Effect::Copy(text) => self.clipboard.copy(text, self.trouble()),
        }
    }

    /// Has something done with a session, and says what came of it, unless that opens a window.
    fn order(&self, order: Order) {
        let is_seen = matches!(order.ask, Ask::ShowTerminal | Ask::Resume);
        let who = order.who.clone();
        let (reply, mut reports) = mpsc::unbounded_channel();
        self.command(Command::Act(Given::by_us(order, reply)));
        let click_handler = self.twin();
        self.runtime.spawn(async move {
            while let Some(report) = reports.recv().await {
                match report {
                    Report::End(Outcome::Done(_)) if is_seen => {}
                    Report::End(outcome) => click_handler.tell(&who, &outcome),
                    _ => {}
                }
            }
        });
    }

    /// Says what came of something that was asked of a session, which is named if popups may name it.
    pub(super) fn tell(&self, who: &str, outcome: &Outcome) {
        let names = self.tools.lock().unwrap_or_else(PoisonError::into_inner).detail != Detail::None;
        self.note(&Note::after(if names && !who.is_empty() { who } else { "Pilotlight" }, outcome));
    }

    /// Shows a request or a question whole in a terminal, where it can be answered: this program does, asked for that one.
    fn details(&self, verb: &[&str], id: &str, request: &str) {
        self.in_terminal(|program, homes| details_command(program, verb, homes, id, request));
    }

    /// Runs this program in a terminal.
    fn in_terminal(&self, command: impl Fn(OsString, &[PathBuf]) -> Option<Vec<OsString>>) {
        let Some(program) = own_program() else {
            return self.trouble()("this program has been moved or deleted since it started: start it again".into());
        };
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(command) = command(program.into(), &tools.homes) else {
            let why = "the id of the session or of its request is not in Copilot's form, and nothing else is passed to a terminal; answer it where it was asked";
            return self.trouble()(why.into());
        };
        let (terminals, failed) = (Terminals::new(Some(tools.terminal.clone())), self.trouble());
        let work = move || {
            if let Err(reason) = terminals.open(&command, None, &[]) {
                failed(reason);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("terminal".into()).spawn(work) {
            self.trouble()(error.to_string());
        }
    }

    fn open(&self, path: PathBuf, open: fn(&std::path::Path) -> anyhow::Result<()>) {
        if let Err(error) = open::apart(path, open, self.trouble()) {
            self.trouble()(error.to_string());
        }
    }

    /// Says what a click could not do.
    fn trouble(&self) -> impl Fn(String) + Send + use<> {
        let note_sender = self.note_sender.clone();
        move |reason| {
            tracing::warn!("{reason}");
            note_sender.send(&Note { title: "Pilotlight could not do that".into(), body: reason }, || ());
        }
    }
}

/// This program, asked to show one request, or one question, and to answer it. `None` where an id has not the form of Copilot's:
/// nothing else reaches a command line.
fn details_command(
    program: OsString,
    verb: &[&str],
    homes: &[PathBuf],
    id: &str,
    request: &str,
) -> Option<Vec<OsString>> {
    if !is_uuid(id) || !is_uuid(request) {
        return None;
    }
    let mut command = vec![program];
    command.extend(verb.iter().map(OsString::from));
    command.extend(homes.iter().flat_map(|home| ["--home".into(), home.clone().into_os_string()]));
    command.extend([format!("--request={request}").into(), "--".into(), id.into()]);
    Some(command)
}

/// This program, asked to switch the bridge on or off, and to wait until that was read.
fn bridge_command(program: OsString, verb: &str, homes: &[PathBuf]) -> Vec<OsString> {
    let homes = homes.iter().flat_map(|home| ["--home".into(), home.clone().into_os_string()]);
    [program].into_iter().chain(homes).chain(["bridge", verb, "--wait"].map(OsString::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_copilots_form_reach_a_command_line() {
        const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed972800";
        let command = |id: &str, request: &str| {
            details_command("pilotlight".into(), &["approve", "--ask"], &["/h".into()], id, request)
        };
        let words = ["pilotlight", "approve", "--ask", "--home", "/h", &format!("--request={ID}"), "--", ID];
        assert_eq!(command(ID, ID), Some(words.map(OsString::from).to_vec()));
        for odd in ["", "r-1", "$(touch x)", "--all", &format!("{ID}; reboot")] {
            assert_eq!((command(odd, ID), command(ID, odd)), (None, None), "{odd:?}");
        }
    }
}
