//! The tray: an icon in the panel whose menu shows the same as `pilotlight status`.
//!
//! There are two threads. The main thread owns the tray, which must stay on one thread: on macOS and Windows it runs
//! winit's loop; on Linux, which needs no display, a channel and the session bus. The engine runs on the other thread,
//! with a [`feed::Feed`] as its view. Menus go to the main thread as values ([`view`]). Clicks come back as item ids,
//! are looked up in the view shown at that time, and leave as commands to the engine or as effects.
//!
//! - [`view`] is the menu as a value; [`menu`] decides which rows it has and where; [`details`] words one session;
//!   [`icon`] is the flame. None of them depends on a desktop, and all are tested without one.
//! - `native`, or `sni` on Linux, puts a view into the panel; [`controller`] is the main thread's state, and `linux` or
//!   `elsewhere` its loop. [`click_handler`] carries out clicks.
//! - [`notifier`] raises popups and acts on clicks on them; [`notifications`] holds the menu entries that silence it,
//!   [`mute`] what they change; [`trust`] decides whose clicks count. `on_change` runs the commands of the settings, by
//!   the same rules. [`focus`] finds out whether the user looks at a session.
//! - [`messages`] is what these send each other.
//! - [`feed`] is the engine's view. `bus` monitors the session bus on Linux.
//! - `bridge_offer` is whether the menu still offers a bridge to terminals.
//! - [`autostart`] starts this program at login; `start_menu` integrates it with the Windows desktop.
//! - [`notify`], [`open`] and [`open_files`] carry out clicks; [`instance`] allows one tray per user.

pub mod actions;
pub mod autostart;
mod bridge_offer;
#[cfg(target_os = "linux")]
pub mod bus;
pub mod click_handler;
pub(crate) mod clipboard;
pub mod controller;
pub mod details;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
pub mod feed;
pub mod focus;
pub mod icon;
pub mod instance;
#[cfg(target_os = "linux")]
mod linux;
pub mod menu;
mod messages;
pub mod mute;
#[cfg(not(target_os = "linux"))]
pub mod native;
mod next;
mod note;
mod notifications;
pub mod notifier;
pub mod notify;
mod on_change;
pub mod open;
pub mod open_files;
#[cfg(target_os = "linux")]
pub mod sni;
#[cfg(windows)]
pub mod start_menu;
mod trust;
pub mod view;

use autostart::Login;
use bridge_offer::BridgeOffer;
use click_handler::{ClickHandler, ClickParts};
use controller::TrayController;
use feed::{Console, Feed, Welcome};
use focus::FocusFinder;
use messages::{MainEvent, NotifierEvent, NotifierSender};
use notifier::Notifier;
use notify::{NoteSender, PopupConfig, Popups};
use on_change::OnChange;
use pilotlight_agents::bridge::Installer;
use pilotlight_engine::Engine;
use pilotlight_engine::config::{self, Notifications};
use pilotlight_engine::control::caller::CallerPolicy;
use pilotlight_engine::control::{self, Command, ControlServer};
use pilotlight_engine::exit_note;
use pilotlight_engine::exit_note::ExitNote;
use pilotlight_system::log::{self, cause};
use pilotlight_system::signals::Signals;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::mpsc::UnboundedSender;
use trust::DesktopTrust;

#[cfg(not(target_os = "linux"))]
use elsewhere::{Follower, Loop};
#[cfg(target_os = "linux")]
use linux::{Follower, Loop};

/// How long the exit waits for the main thread, which may be blocked on a panel that does not answer.
const MAIN_THREAD_TIMEOUT: Duration = Duration::from_millis(300);
/// The file in the state folder that marks the first run as done.
pub(crate) const WELCOMED: &str = "welcomed";

/// What the tray needs to run.
pub(crate) struct Start {
    /// Watches the sessions.
    pub engine: Engine,
    /// Builds the menus.
    pub menu: menu::Menu,
    /// The terminal, for what the menu cannot show.
    pub console: Box<dyn Console>,
    /// The path of our own log.
    pub own_log: Option<PathBuf>,
    /// The folder for state that survives a restart.
    pub state_folder: Option<PathBuf>,
    /// The watched homes.
    pub homes: Vec<PathBuf>,
    /// The user's terminal, as configured.
    pub terminal: Vec<String>,
    /// What comes before the words of a command that is run in a demo.
    pub inside: Vec<OsString>,
    /// The folder of the control socket.
    pub control_folder: Option<PathBuf>,
    /// Decides which callers count as started by Copilot and so may not answer permission requests.
    pub judge: CallerPolicy,
    /// The settings of notifications.
    pub notifications: Notifications,
    /// The commands that are run when the status of a session changes.
    pub on_change: Vec<config::OnChange>,
    /// The files that open in an editor.
    pub open_files: open_files::OpenFiles,
    /// Whether this program starts at login.
    pub login: Login,
    /// The bridges to terminals, where they can be switched on.
    pub bridges: Vec<Box<dyn Installer>>,
    /// What is done once the engine has ended, even if the panel keeps the main thread from returning.
    pub at_end: AtEnd,
}

/// Cleans up behind the engine, and says what fails. Returns whether nothing did.
pub(crate) type AtEnd = Box<dyn FnOnce() -> bool + Send>;

/// Runs until Quit, a signal, or the end of the desktop session. Must be called on the main thread.
///
/// # Errors
/// Where the system refuses a thread, a signal handler or, on macOS and Windows, an event loop.
pub(crate) fn run(start: Start) -> anyhow::Result<ExitCode> {
    #[cfg(windows)]
    start_menu::integrate();
    let (engine, login, state_folder) = (start.engine, start.login, start.state_folder);
    let offer = |installer: Box<dyn Installer>| {
        let offer = BridgeOffer::load(state_folder.clone(), installer.adapter());
        (installer, offer)
    };
    let bridges: Vec<_> = start.bridges.into_iter().map(offer).collect();
    let bridge_offers = bridges.iter().map(|(installer, offer)| (installer.adapter().name(), offer.clone())).collect();
    let ended = state_folder.as_deref().map(exit_note::take_all).unwrap_or_default();
    let ended: Vec<_> = ended.iter().map(ExitNote::words).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = catch_signals(&runtime)?;
    let main_loop = Loop::new()?;
    #[cfg(target_os = "linux")]
    let main_loop = main_loop.with_state_folder(state_folder.clone());
    let to_main = main_loop.sender();
    let (to_notifier, for_notifier) = channel_with_redraw(engine.command_sender());
    let to_notifier: NotifierSender = Arc::new(to_notifier);
    let trust = DesktopTrust::new(start.judge.names.clone(), redraw(engine.command_sender()));
    let parts = ClickParts {
        commander: engine.command_sender(),
        note_sender: NoteSender::new(runtime.handle().clone()),
        runtime: runtime.handle().clone(),
        own_log: start.own_log,
        notifier: Arc::clone(&to_notifier),
        login: login.clone(),
        open_files: start.open_files,
        bridge_offers,
        windows: engine.opened_windows(),
        trust: trust.clone(),
        inside: start.inside,
    };
    let click_handler = ClickHandler::new(parts, start.homes, start.terminal);
    let focus_finder = FocusFinder::new(runtime.handle().clone(), Arc::clone(&to_notifier));
    let popups = start_popups(runtime.handle().clone(), trust.clone(), to_notifier);
    let (handler, settings) = (click_handler.clone(), start.notifications);
    let on_change = OnChange::new(&start.on_change, &settings.rules, runtime.handle().clone());
    let notifier = Notifier::new(
        &settings,
        popups,
        on_change,
        focus_finder,
        for_notifier,
        handler,
        state_folder.as_deref(),
        trust,
    );
    let (report_desktop, from_desktop) = channel_with_redraw(engine.command_sender());
    let controller = TrayController::new(start.menu.initial_view(), click_handler, Box::new(report_desktop.clone()));
    let welcome = welcome_of(state_folder);
    #[cfg(target_os = "linux")]
    let followers = linux::followers(
        to_main.clone(),
        report_desktop,
        engine.command_sender(),
        controller.has_icon(),
        login.clone(),
    );
    #[cfg(not(target_os = "linux"))]
    let followers = Vec::new();
    let (send, console) = (to_main.clone(), start.console);
    let show = move |view| send(MainEvent::View(view));
    let menu = start.menu;
    #[cfg(target_os = "linux")]
    let menu = menu.with_capacity(bus::least_capacity());
    let feed = Feed::new(menu, notifier, login, show, from_desktop, console, welcome)
        .with_exit_notes(ended)
        .with_bridges(bridges);
    let (main_returned, main_done) = mpsc::channel::<()>();
    let (control_folder, judge) = (start.control_folder, start.judge);
    let at_end = start.at_end;
    let thread =
        EngineThread { runtime, signals, engine, feed, followers, control_folder, judge, to_main, main_done, at_end };
    let thread = std::thread::Builder::new().name("engine".into()).spawn(move || thread.run())?;
    let ran = main_loop.run(controller);
    drop(main_returned);
    let is_clean = thread.join().map_err(|_| anyhow::anyhow!("the engine broke down"))?;
    ran.map(|()| if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Catches signals from before the icon is shown: whoever sees it may signal us, and a signal that our parent had set to
/// be ignored would be lost.
fn catch_signals(runtime: &Runtime) -> std::io::Result<Signals> {
    let _entered = runtime.enter();
    Signals::new()
}

/// A channel to what the engine's thread reads at each redraw: each event asks for one.
fn channel_with_redraw<E>(commander: UnboundedSender<Command>) -> (impl Fn(E) + Clone, Receiver<E>) {
    let (sender, receiver) = mpsc::channel();
    let send = move |event| {
        // Both fail only when the engine has ended.
        let _ = sender.send(event);
        let _ = commander.send(Command::Redraw);
    };
    (send, receiver)
}

/// Returns a function that has the engine draw anew.
fn redraw(commander: UnboundedSender<Command>) -> impl Fn() {
    move || {
        let _ = commander.send(Command::Redraw); // fails only when the engine has ended
    }
}

/// Starts the popups. Clicks on them go to the notifier.
fn start_popups(runtime: Handle, trust: DesktopTrust, to_notifier: NotifierSender) -> Popups {
    Popups::start(PopupConfig {
        runtime,
        bus: None,
        may_answer: Box::new(move |pid| trust.is_server_of_user(pid)),
        now: Box::new(Instant::now),
        clicked: Box::new(move |id, event| to_notifier(NotifierEvent::Popup(id, event))),
    })
}

/// The welcome, if this is the first run.
fn welcome_of(state_folder: Option<PathBuf>) -> Option<Welcome> {
    let marker = state_folder.map(|folder| folder.join(WELCOMED)).filter(|marker| feed::is_first_run(marker))?;
    Some(Welcome { marker })
}

/// What the engine's thread works with.
struct EngineThread<S> {
    runtime: Runtime,
    signals: Signals,
    engine: Engine,
    feed: Feed,
    /// Follow the desktop beside the engine.
    followers: Vec<Follower>,
    control_folder: Option<PathBuf>,
    judge: CallerPolicy,
    /// Sends events to the main thread.
    to_main: S,
    /// Closed once the main thread has returned from its loop.
    main_done: Receiver<()>,
    at_end: AtEnd,
}

impl<S: Fn(MainEvent)> EngineThread<S> {
    /// Runs the engine to its end, then ends the main thread's loop and cleans up. Returns whether nothing failed there.
    fn run(self) -> bool {
        let Self {
            runtime,
            signals,
            mut engine,
            mut feed,
            followers,
            control_folder,
            judge,
            to_main,
            main_done,
            at_end,
        } = self;
        let orders = engine.command_sender();
        runtime.block_on(async {
            for follower in followers {
                tokio::spawn(follower);
            }
            if let Some(control) = control_folder.and_then(|folder| serve(&folder, judge, orders)) {
                engine.serve(control);
            }
            engine.run(signals, &mut feed).await;
            feed.close().await;
        });
        to_main(MainEvent::End);
        let is_blocked = main_done.recv_timeout(MAIN_THREAD_TIMEOUT) == Err(RecvTimeoutError::Timeout);
        if is_blocked {
            log::debug!("the panel does not answer; quitting without waiting for it");
        }
        // From here on nothing is logged: the log may be in a folder that this removes.
        let is_clean = at_end();
        if is_blocked {
            exit_now(is_clean);
        }
        // Does not wait for blocking tasks that still run, such as host name lookups.
        runtime.shutdown_background();
        is_clean
    }
}

/// Serves the control socket, over which commands hand over their orders. Without it, commands carry them out
/// themselves.
fn serve(folder: &Path, judge: CallerPolicy, commander: UnboundedSender<Command>) -> Option<ControlServer> {
    let handle = move |command| {
        let _ = commander.send(command); // fails only when the engine has ended
    };
    control::serve(folder, judge, handle)
        .inspect_err(|error| log::warn!("commands cannot reach this tray: {}", cause(error)))
        .ok()
}

/// Exits although the main thread does not return. Nothing is left to clean up: the engine has ended, and what had to
/// be done at its end; the terminal is restored, and the system releases the lock.
#[expect(
    clippy::disallowed_methods,
    reason = "the panel may block the main thread for ever, and Quit must not wait for it"
)]
fn exit_now(is_clean: bool) -> ! {
    std::process::exit(if is_clean { 0 } else { 1 })
}
