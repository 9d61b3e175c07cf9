//! Carries out clicks: in the menu, on popups and on notes.

use super::autostart::{Login, StartLine};
use super::bridge_offer::BridgeOffer;
use super::clipboard::Clipboard;
use super::messages::{NotifierEvent, NotifierSender};
use super::notify::{Note, NoteSender, Offer};
use super::open;
use super::open_files::OpenFiles;
use super::trust::DesktopTrust;
use super::view::{Effect, Reviewed};
use pilotlight_agents::bridge::installer_of;
use pilotlight_core::action::{Action, ActionFlag};
use pilotlight_core::alert::Detail;
use pilotlight_core::order::{LOG_DIFFERS, Order, OrderReport, Outcome, ShownRequest};
#[cfg(target_os = "linux")]
use pilotlight_core::order::{Operation, Reply, Which};
use pilotlight_core::session::Key;
use pilotlight_core::text::{capitalised, is_uuid, plain};
use pilotlight_engine::control::opened::OpenedWindows;
use pilotlight_engine::control::{Command, PendingOrder, RetryHost};
use pilotlight_engine::terminal::Terminals;
use pilotlight_system::log::{self, private};
use pilotlight_system::paths::{self, own_program};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedSender};

/// Maximum length of each of two texts that differ, in a note, in characters.
const BOTH_MAX: usize = 200;

/// Carries out clicks. Clones do the same, on other threads.
#[derive(Clone)]
pub(crate) struct ClickHandler {
    parts: ClickParts,
    clipboard: Clipboard,
    /// Shared by all clones, as settings change while the program runs.
    settings: Arc<Mutex<ClickSettings>>,
}

/// What clicks act on.
#[derive(Clone)]
pub(crate) struct ClickParts {
    /// Takes commands for the engine.
    pub(crate) commander: UnboundedSender<Command>,
    /// Shows failures as notifications.
    pub(crate) note_sender: NoteSender,
    pub(crate) runtime: Handle,
    pub(crate) own_log: Option<PathBuf>,
    /// Takes mutes and pauses.
    pub(crate) notifier: NotifierSender,
    pub(crate) login: Login,
    pub(crate) open_files: OpenFiles,
    /// The offers of bridges, with the names of their agents.
    pub(crate) bridge_offers: Vec<(&'static str, BridgeOffer)>,
    /// The windows that clicks opened.
    pub(crate) windows: OpenedWindows,
    pub(crate) trust: DesktopTrust,
    /// What comes before the words of a command that is run in a demo.
    pub(crate) inside: Vec<OsString>,
}

/// The settings that clicks depend on.
#[derive(Debug, Default)]
struct ClickSettings {
    homes: Vec<PathBuf>,
    /// Those that nobody named, besides.
    discovered: Vec<PathBuf>,
    terminal: Vec<String>,
    /// How much a popup says about a session.
    detail: Detail,
}

impl ClickHandler {
    /// Creates a handler. `homes` and `terminal` are for commands run in a terminal.
    pub(crate) fn new(parts: ClickParts, homes: Vec<PathBuf>, terminal: Vec<String>) -> Self {
        let settings =
            Arc::new(Mutex::new(ClickSettings { homes, discovered: Vec::new(), terminal, detail: Detail::default() }));
        Self { parts, clipboard: Clipboard::default(), settings }
    }

    /// What a click in the menu does that this process reports, if that is known: a program that may not be the user's panel
    /// answers nothing. The user is asked in a terminal instead.
    #[cfg(target_os = "linux")]
    pub(super) fn as_reported_by(&self, clicker: Option<u32>, effect: Effect) -> Effect {
        let Effect::Act(order) = &effect else { return effect };
        let (what, request) = match &order.operation {
            Operation::Approve(Which::Shown { id, .. }) | Operation::Always { which: Which::Shown { id, .. }, .. } => {
                (Reviewed::Permission, id.clone())
            }
            Operation::Answer(Reply::Give { request, .. }) => (Reviewed::Question, request.clone()),
            _ => return effect,
        };
        if clicker.is_some_and(|pid| self.parts.trust.is_of_user(pid)) {
            return effect;
        }
        log::info!("a program that is younger than a session says that the user clicked: they are asked in a terminal");
        Effect::Review {
            what,
            id: order.id.clone(),
            host: order.host.as_deref().map(Into::into),
            request: request.into(),
        }
    }

    /// Applies new settings to this handler and all its clones.
    pub(super) fn configure(&self, homes: &[PathBuf], terminal: &[String], detail: Detail) {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let discovered = std::mem::take(&mut settings.discovered);
        *settings = ClickSettings { homes: homes.to_vec(), discovered, terminal: terminal.to_vec(), detail };
    }

    /// These homes are followed as well.
    pub(super) fn follow_also(&self, homes: &[PathBuf]) {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).discovered = homes.to_vec();
    }

    fn command(&self, command: Command) {
        let _ = self.parts.commander.send(command); // fails only when the engine has ended
    }

    /// Shows a notification.
    pub(super) fn note(&self, note: &Note) {
        self.note_for(None, note);
    }

    /// Shows a notification whose offer is about this session.
    pub(super) fn note_for(&self, session: Option<&Key>, note: &Note) {
        self.note_or(session, note, || ());
    }

    /// The same. `failed` is called if it cannot be shown.
    pub(super) fn note_or(&self, session: Option<&Key>, note: &Note, failed: impl FnOnce() + Send + 'static) {
        let (handler, session) = (self.clone(), session.cloned());
        let taken = Box::new(move |effect| handler.act(session.as_ref(), effect));
        self.parts.note_sender.send(note, taken, failed);
    }

    /// Shows a notification about a session, once it is known what became of that, and what is next.
    pub(super) fn note_about(&self, session: Option<&Key>, note: Note, became: bool, failed: Option<Action>) {
        match session {
            Some(about) => (self.parts.notifier)(NotifierEvent::Note { about: about.clone(), note, became, failed }),
            None => self.note(&note),
        }
    }

    /// Carries out a click; `session` is the session that the item belongs to.
    pub(super) fn act(&self, session: Option<&Key>, effect: Effect) {
        // Any click in a session's submenu marks the session as seen; an order does once it was carried out, so that a
        // failure keeps its alarm. The table of all sessions shows none in particular.
        if let (Some(key), false) = (session, matches!(effect, Effect::Act(_) | Effect::LiveTable)) {
            self.command(Command::Seen(vec![key.clone()]));
        }
        match effect {
            Effect::Seen => {}
            Effect::SeenAll => self.command(Command::SeenAll),
            Effect::Refresh => self.command(Command::Refresh),
            Effect::LiveTable => {
                self.in_terminal(self.parts.windows.open(None), |program, homes| {
                    Some(own_command(program, homes, &["live"]))
                });
            }
            Effect::Quit(_) => self.command(Command::Quit),
            Effect::Act(order) => self.order(session, *order),
            Effect::Reopen(orders) => orders.into_iter().for_each(|order| self.order(None, order)),
            Effect::Mute(mute) => (self.parts.notifier)(NotifierEvent::Mute(mute)),
            Effect::TestNote => self.note(&Note::test()),
            Effect::Review { what, id, host, request } => self.review(what, (&id, host.as_deref()), &request),
            Effect::RetryHost(host) => self.command(Command::RetryHost(RetryHost { host, anew: false, reply: None })),
            Effect::OpenFolder(path) => self.open(path, open::folder),
            Effect::OpenLog(path) => self.open(path, open::log),
            Effect::StartAtLogin(on) => {
                if let Err(error) = self.parts.login.set(on) {
                    self.failure_reporter()(format!("{error:#}"));
                }
                self.command(Command::Redraw);
            }
            Effect::RenewBridge(agent) => {
                let installer = paths::project().and_then(|project| installer_of(agent, &project));
                match installer.map(|installer| installer.write()) {
                    Some(Ok(())) => self.note(&Note::new(
                        "The bridge is renewed",
                        "Sessions that you start in terminals from now on have it.",
                    )),
                    Some(Err(error)) => self.failure_reporter()(format!("{error:#}")),
                    None => self.failure_reporter()("there is no folder to put the bridge into: set HOME".into()),
                }
                self.command(Command::Redraw);
            }
            Effect::Bridge(agent, on) => {
                let verb = if on { "install" } else { "remove" };
                let words = ["bridge", verb, "--agent", agent, "--wait"];
                self.in_terminal(None, |program, homes| Some(own_command(program, homes, &words)));
                let offers = self.parts.bridge_offers.iter().filter(|(of, _)| *of == agent);
                offers.for_each(|(_, offer)| offer.settle());
                self.command(Command::Redraw);
            }
            Effect::AddHost => self.add_host(),
            Effect::OwnLog => match self.parts.own_log.clone() {
                Some(path) => self.open(path, open::log),
                None => self.failure_reporter()("there is no folder to keep a log in".into()),
            },
            Effect::OpenSettings => self.parts.open_files.open_settings(self.failure_reporter()),
            Effect::ShowDiagnostics => self.parts.open_files.show_diagnostics(self.failure_reporter()),
            Effect::CopyDiagnostics => match self.parts.open_files.shown() {
                Some(text) => self.clipboard.copy(text, self.failure_reporter()),
                None => {
                    let body = "Look at the diagnostics first: only what was shown is copied.";
                    let show = Offer::new("Show diagnostics", Effect::ShowDiagnostics);
                    self.note(&Note::not_done("Nothing was copied", body).offering(show));
                }
            },
            Effect::Copy(text) => self.clipboard.copy(text, self.failure_reporter()),
            Effect::CopyStartLine(line) => {
                let StartLine { of, text, file } = *line;
                let body = format!("{of} starts no desktop entries. Add this line to {file}: {text}");
                self.clipboard.copy(text, self.failure_reporter());
                self.note(&Note::new("The line was copied", body));
            }
        }
    }

    /// Has the user choose and add another machine in a terminal.
    fn add_host(&self) {
        self.in_terminal(None, |program, _| Some(own_command(program, &[], &["host", "add", "--wait"])));
    }

    /// Sends an order to the engine and reports the outcome, unless a success opens a window and so shows itself.
    fn order(&self, session: Option<&Key>, order: Order) {
        let (action, who, session) = (order.operation.action(), order.who.clone(), session.cloned());
        let (reply, mut reports) = mpsc::unbounded_channel();
        self.command(Command::Act(PendingOrder::by_us(order, reply)));
        let click_handler = self.clone();
        self.parts.runtime.spawn(async move {
            let mut differs = None;
            while let Some(report) = reports.recv().await {
                if let OrderReport::Request(ShownRequest { text, in_log: Some(in_log), .. }) = &report {
                    differs = Some(both_texts(text, in_log));
                }
                let OrderReport::End(outcome) = report else { continue };
                let is_done = matches!(outcome, Outcome::Done(_));
                if let (true, Some(key)) = (is_done, &session) {
                    click_handler.command(Command::Seen(vec![key.clone()]));
                }
                if !(is_done && action.is(ActionFlag::OpensWindow)) {
                    let is_refused = matches!(outcome, Outcome::Refused(_));
                    let mut note = Note::after(click_handler.name(&who), action, &outcome);
                    if let Some(both) = differs.take().filter(|_| is_refused && click_handler.detail() == Detail::Full)
                    {
                        note.body = both;
                    }
                    let failed = (!is_done).then_some(action);
                    click_handler.note_about(session.as_ref(), note, is_refused, failed);
                }
            }
        });
    }

    /// Reports why a click on the session called `who` was not carried out.
    pub(super) fn report_refusal(&self, session: &Key, who: &str, why: String) {
        let note = Note::refused(self.name(who), &Outcome::Refused(why));
        self.note_about(Some(session), note, true, None);
    }

    /// How much a popup says about a session.
    fn detail(&self) -> Detail {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).detail
    }

    /// The name of a session, if popups may say it.
    fn name<'a>(&self, who: &'a str) -> &'a str {
        if self.detail() != Detail::None && !who.is_empty() { who } else { "Pilotlight" }
    }

    /// Runs this program in a terminal to show one request or question in full and answer it.
    fn review(&self, what: Reviewed, session: (&str, Option<&str>), request: &str) {
        let verb: &[&str] = match what {
            Reviewed::Permission => &["approve", "--ask"],
            Reviewed::Denial => &["deny", "--ask"],
            Reviewed::Question => &["answer"],
        };
        let ticket = self.parts.windows.open(Some(request));
        self.in_terminal(ticket, |program, homes| review_command(program, verb, homes, session, request));
    }

    /// Runs this program in a terminal. With a ticket, what is typed there is the user's.
    fn in_terminal(&self, ticket: Option<String>, command: impl Fn(OsString, &[PathBuf]) -> Option<Vec<OsString>>) {
        let Some(program) = own_program() else {
            return self.failure_reporter()(
                "this program has been moved or deleted since it started: start it again".into(),
            );
        };
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut homes = settings.homes.clone();
        homes.extend(settings.discovered.iter().filter(|home| !settings.homes.contains(home)).cloned());
        let Some(mut command) = command(program.into(), &homes) else {
            let why = "the id of the session or its request is not valid for its agent, so no terminal is opened: answer it where it asks";
            return self.failure_reporter()(why.into());
        };
        command.splice(1..1, self.parts.inside.iter().cloned().chain(ticket.iter().map(OsString::from)));
        let (terminals, failed) = (Terminals::new(Some(settings.terminal.clone())), self.failure_reporter());
        let windows = self.parts.windows.clone();
        let work = move || {
            if let Err(reason) = terminals.open(&command, None, &[]) {
                let Some(ticket) = ticket else { return failed(reason) };
                windows.revoke(&ticket);
                // The command to type instead is an ordinary one.
                failed(reason.replace(&format!("{ticket} "), ""));
            }
        };
        if let Err(error) = std::thread::Builder::new().name("terminal".into()).spawn(work) {
            self.failure_reporter()(error.to_string());
        }
    }

    fn open(&self, path: PathBuf, open: fn(&std::path::Path) -> anyhow::Result<()>) {
        if let Err(error) = open::spawn(path, open, self.failure_reporter()) {
            self.failure_reporter()(error.to_string());
        }
    }

    /// Returns a function that reports why a click failed.
    fn failure_reporter(&self) -> impl Fn(String) + Send + use<> {
        let handler = self.clone();
        move |reason| {
            log::warn!("a click failed: {}", private(&reason));
            let note = Note::failed("Pilotlight could not do that", reason);
            handler.note(&note.offering(Offer::new("Open the log", Effect::OwnLog)));
        }
    }
}

/// What the user is told of a request that its log has in other words: both, each beginning a line of its own.
fn both_texts(text: &str, in_log: &str) -> String {
    let line = |text: &str| plain(text, BOTH_MAX);
    format!("{}\nIt asks: {}\nIts log says: {}", capitalised(LOG_DIFFERS), line(text), line(in_log))
}

/// The command that shows one request or question and answers it. `None` if an id does not have the form of Copilot's:
/// nothing else may reach a command line.
fn review_command(
    program: OsString,
    verb: &[&str],
    homes: &[PathBuf],
    (id, host): (&str, Option<&str>),
    request: &str,
) -> Option<Vec<OsString>> {
    if !is_uuid(id) || !is_uuid(request) {
        return None;
    }
    let mut command = vec![program];
    command.extend(verb.iter().map(OsString::from));
    command.extend(homes.iter().flat_map(|home| ["--home".into(), home.clone().into_os_string()]));
    // A host's name has a form that the settings check.
    command.extend(host.map(|host| format!("--host={host}").into()));
    command.extend([format!("--request={request}").into(), "--".into(), id.into()]);
    Some(command)
}

/// The command line of this program for these homes.
fn own_command(program: OsString, homes: &[PathBuf], words: &[&str]) -> Vec<OsString> {
    let homes = homes.iter().flat_map(|home| ["--home".into(), home.clone().into_os_string()]);
    [program].into_iter().chain(homes).chain(words.iter().map(OsString::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_ids_reach_a_command_line() {
        const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed972800";
        let command = |id: &str, request: &str| {
            review_command("pilotlight".into(), &["approve", "--ask"], &["/h".into()], (id, None), request)
        };
        let words = ["pilotlight", "approve", "--ask", "--home", "/h", &format!("--request={ID}"), "--", ID];
        assert_eq!(command(ID, ID), Some(words.map(OsString::from).to_vec()));
        for odd in ["", "r-1", "$(touch x)", "--all", &format!("{ID}; reboot")] {
            assert_eq!((command(odd, ID), command(ID, odd)), (None, None), "{odd:?}");
        }
    }
}
