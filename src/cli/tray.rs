//! `pilotlight`: the icon in the panel. Without a panel, a message says so, and on a terminal the live table is shown.
//! The icon appears when a panel does.

#[cfg(unix)]
use super::bridges::listen_to_hooks;
use super::context::{Context, World, demo_hint};
use super::live::LiveTable;
use super::report::say;
use crate::doctor::{examine, report::report};
use crate::tray::autostart::Login;
use crate::tray::feed::Console;
use crate::tray::instance::{Claim, Instance};
use crate::tray::open_files::OpenFiles;
use crate::tray::{self, AtEnd, Start, menu::Menu};
use pilotlight_agents::adapter::FIRST;
use pilotlight_agents::bridge::{Installer, installers};
use pilotlight_agents::copilot::bridge::{BridgeConfig, BridgeEvent, Bridges, Files as BridgeFiles};
use pilotlight_engine::View;
use pilotlight_engine::config::Permissions;
use pilotlight_engine::control::caller::CallerPolicy;
use pilotlight_engine::control::{self, Command, SocketState, origin};
use pilotlight_engine::hosts::Purpose;
use pilotlight_system::log::{self, cause, private};
use pilotlight_system::paths::{self, Folders};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, UnboundedSender};

pub(super) fn run(context: Context) -> anyhow::Result<ExitCode> {
    run_with(context, None, Box::new(|| true))
}

/// `bridges`: the events of scripted sessions' bridges, in a demo. `at_end` is called when all has ended, however.
pub(super) fn run_with(
    context: Context,
    bridges: Option<Receiver<BridgeEvent>>,
    at_end: AtEnd,
) -> anyhow::Result<ExitCode> {
    let project = paths::project();
    let is_demo = context.demo.is_some();
    let (claim, refused) = claim(&project.iter().flat_map(paths::runtime_folders).collect::<Vec<_>>());
    let instance = match claim {
        Some(Claim::Theirs(note)) => {
            writeln!(
                io::stdout(),
                "Pilotlight is already running: {note}. `pilotlight live` shows the table here as well."
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Claim::Ours(ours)) => Some(ours),
        None => None,
    };
    let state_folder = project.as_ref().map(paths::state_folder);
    let own_log = state_folder.as_ref().map(|folder| folder.join(log::FILE));
    log::start(own_log.as_deref(), context.config.log.level);
    log_refusals(&refused, instance.as_ref());
    if let (Some(project), Some(instance)) = (&project, &instance)
        && let Err(error) = paths::note_runtime_folder(project, instance.folder())
    {
        log::warn!("commands of another environment, as over ssh, do not find this tray: {}", cause(&*error));
    }
    say_what_is_missing(&context);
    let menu = menu(&context);
    let inside = context.demo.as_ref().map(World::inside).unwrap_or_default();
    let homes = context.followed().iter().map(|home| home.folder().to_owned()).collect();
    let offered = if is_demo { Vec::new() } else { bridges_to_offer(&context, project.as_ref()) };
    let terminal = context.config.actions.terminal.clone();
    let mut engine = context.engine_with_hosts(Purpose::Act);
    engine.forward_to_holders(project.iter().flat_map(paths::runtime_folders).collect());
    // Only with the lock: without it, another tray may be serving the socket.
    let control_folder = instance.as_ref().map(|instance| instance.folder().to_owned());
    if let Some(bridges) = bridges {
        engine.listen_to_bridges(Bridges::scripted(bridges));
    } else if let (Some(project), Some(folder)) = (&project, &control_folder) {
        engine.listen_to_bridges(Bridges::at(BridgeConfig {
            folder: folder.clone(),
            files: BridgeFiles::new(project),
            is_users: origin::is_listener_of_user,
            shared: false,
            only_looks: false,
        }));
        #[cfg(unix)]
        listen_to_hooks(&mut engine, project, folder, false);
    }
    let judge = CallerPolicy { names: context.agent_names().to_vec() };
    let notifications = context.config.notifications.clone();
    let on_change = context.config.on_change.clone();
    let login = if is_demo { Login::none("not in a demo") } else { Login::find(&context.named_homes) };
    let open_files = OpenFiles::new(context.config_path.clone(), state_folder.clone(), diagnosis(&context));
    let console = Box::new(Terminal::new(context, engine.command_sender(), instance));
    tray::run(Start {
        engine,
        menu,
        console,
        own_log,
        state_folder,
        homes,
        terminal,
        inside,
        control_folder,
        judge,
        notifications,
        on_change,
        open_files,
        login,
        bridges: offered,
        at_end,
    })
}

/// The bridges that can be installed or removed from the menu: those of agents that are used here, and the first agent's.
fn bridges_to_offer(context: &Context, project: Option<&Folders>) -> Vec<Box<dyn Installer>> {
    let followed = context.followed();
    let is_shown = |installer: &dyn Installer| {
        let adapter = installer.adapter();
        let is_used = || !installer.used(&followed, !context.named_homes.is_empty()).is_empty();
        adapter == FIRST || is_used() || installer.is_installed()
    };
    let all = project.filter(|_| cfg!(unix)).map(installers).unwrap_or_default();
    all.into_iter().filter(|installer| is_shown(installer.as_ref())).collect()
}

/// The claim on the first of these folders that has one, and why those before it have none. A tray that runs in any of them,
/// with whatever environment it was started, is the one.
fn claim(folders: &[PathBuf]) -> (Option<Claim>, Vec<anyhow::Error>) {
    let mut refused = Vec::new();
    for folder in folders {
        let is_served =
            |other: &&PathBuf| *other != folder && matches!(control::socket_state(other), Ok(SocketState::Served));
        let elsewhere = folders.iter().find(is_served);
        match Instance::claim(elsewhere.unwrap_or(folder)) {
            Ok(claim) => return (Some(claim), refused),
            Err(error) => refused.push(error),
        }
    }
    (None, refused)
}

/// Logs why folders were refused. Not at once, since the log only starts when no other tray runs.
fn log_refusals(refused: &[anyhow::Error], instance: Option<&Instance>) {
    for reason in refused {
        match instance {
            Some(instance) => log::warn!(
                "a runtime folder cannot be used: {}; using {} instead",
                cause(reason.as_ref()),
                private(&instance.folder().display())
            ),
            // Runs without the lock: two icons are better than none.
            None => log::warn!("commands cannot reach this tray: {}", cause(reason.as_ref())),
        }
    }
}

/// Tells the user what keeps sessions from being seen.
fn say_what_is_missing(context: &Context) {
    context.report_problems();
    for problem in context.unreadable_homes() {
        say(&format!("{problem}; Pilotlight waits for this home"));
    }
    if context.has_no_home() {
        say(&demo_hint());
    }
}

fn menu(context: &Context) -> Menu {
    let user_home = paths::user_home().map(|home| home.to_string_lossy().into_owned());
    let followed = context.followed();
    let programs = followed.iter().map(|home| home.adapter().profile().program);
    let mut programs = programs.filter(|program| !program.is_empty());
    let approves_all = context.config.actions.permissions == Permissions::ApproveAll;
    Menu::new(context.config.limits, context.config.list, user_home, approves_all)
        .for_program(programs.next().filter(|first| programs.all(|program| program == *first)))
        .with_icon(context.config.tray)
        .for_demo(context.demo.is_some())
        .editing_settings(context.config_path.is_some())
}

/// Returns a function that writes the report of `pilotlight doctor`, for the menu.
fn diagnosis(context: &Context) -> impl Fn() -> String + Send + Sync + use<> {
    let (is_demo, named_homes) = (context.demo.is_some(), context.named_homes.clone());
    move || {
        if is_demo {
            return "This is a demo, which examines nothing of yours. For a bug report, run: pilotlight diagnostics\n"
                .into();
        }
        // Reads the settings again: they may have changed since the start.
        let check_context = Context::new(&named_homes).check_context();
        report(&check_context, &examine(&check_context))
    }
}

/// Shows on the terminal or standard error what the menu cannot.
struct Terminal {
    context: Arc<Context>,
    commander: UnboundedSender<Command>,
    instance: Option<Instance>,
    table: Option<LiveTable>,
    lit: bool,
}

impl Terminal {
    fn new(context: Context, commander: UnboundedSender<Command>, instance: Option<Instance>) -> Self {
        Self { context: Arc::new(context), commander, instance, table: None, lit: false }
    }

    fn note(&self, place: &str) {
        if let Some(instance) = &self.instance {
            instance.write_note(place);
        }
    }
}

impl Console for Terminal {
    fn icon_missing(&mut self, line: &str) {
        log::info!("there is no icon: {}", private(line));
        // The commands of a demo are those in its table.
        match self.context.demo.is_some() {
            true => say(line),
            false => say(&format!("{line}. `pilotlight live`, `status` and `watch` still work")),
        }
        self.lit = false;
        if io::stdout().is_terminal() && self.table.is_none() {
            match LiveTable::new(Arc::clone(&self.context), self.commander.clone()) {
                Ok(table) => self.table = Some(table),
                Err(error) => log::warn!("the table cannot be shown: {}", cause(&error)),
            }
        }
        self.note(if self.table.is_some() { "its table is on a terminal" } else { "its icon waits for a panel" });
        if let Some(table) = &mut self.table {
            table.notice = Some(line.to_owned());
        }
    }

    fn icon_shown(&mut self) {
        if std::mem::replace(&mut self.lit, true) {
            return;
        }
        self.note("its icon is in the panel");
        let line = match self.context.demo.is_some() {
            false => "the icon is in your panel; Ctrl-C ends Pilotlight, `pilotlight live` shows the table",
            true => "the demo's icon is in your panel; Ctrl-C ends the demo",
        };
        match &mut self.table {
            Some(table) => table.notice = Some("The icon is in your panel.".into()),
            None if io::stdout().is_terminal() => say(line),
            None => log::info!("the icon is in the panel"),
        }
    }

    fn print(&mut self, line: &str) {
        match &mut self.table {
            Some(table) => {
                let before = table.notice.take().map(|before| format!("{before} · ")).unwrap_or_default();
                table.notice = Some(before + line);
            }
            None => say(line),
        }
    }

    fn table(&mut self) -> Option<&mut dyn View> {
        self.table.as_mut().map(|table| table as &mut dyn View)
    }
}
