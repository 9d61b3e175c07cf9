//! The light itself: an icon in the panel whose menu says what `pilotlight status` says.
//!
//! Two threads. The main thread owns the tray, which may not change hands: winit's loop on macOS and Windows, on Linux, where
//! no display is needed, a channel and the session bus. The engine runs on the other one, with a [`feed::Feed`] as its view.
//! Menus go one way as values ([`view`]), clicks come back as names of items, are looked up in the view that is shown when
//! they arrive, and leave as commands to the engine or as effects.
//!
//! - [`view`] is the menu as a value; [`menu`] the rules of places; [`details`] the words of one session; [`icon`] the flame.
//!   None of them knows a desktop, and all are tested without one.
//! - `native`, on Linux `sni`, makes a view stand in the panel, [`controller`] holds what the main thread needs, and `linux` or
//!   `elsewhere` is its loop.
//! - [`notifier`] raises popups and does what is clicked on them; [`mute`] is what the menu has to quieten it.
//! - [`feed`] is the engine's view. `bus` tells what becomes of the session bus on Linux.
//! - [`autostart`] is what starts this program at login; `start_menu` is what else Windows must know of it.
//! - [`notify`], [`open`] and [`open_files`] are what a click may lead to; [`instance`] sees that there is one light.
//!
//! May import: core, system, agent, config, terminal, control, engine.

pub mod actions;
pub mod autostart;
#[cfg(target_os = "linux")]
pub mod bus;
mod clipboard;
pub mod controller;
pub mod details;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
pub mod feed;
pub mod icon;
pub mod instance;
#[cfg(target_os = "linux")]
mod linux;
pub mod menu;
pub mod mute;
#[cfg(not(target_os = "linux"))]
pub mod native;
pub mod notifier;
pub mod notify;
pub mod open;
pub mod open_files;
#[cfg(target_os = "linux")]
pub mod sni;
#[cfg(windows)]
pub mod start_menu;
pub mod view;

use crate::agent::copilot::bridge::files::Files;
use crate::agent::copilot::identity::copilot_ancestor;
use crate::config::Notifications;
use crate::control::caller::Judge;
use crate::control::{self, Served};
use crate::engine::ended;
use crate::engine::ended::Ended;
use crate::engine::{Command, Engine};
use crate::system::signals::Signals;
use autostart::Login;
use controller::{ClickHandler, Told, TrayController};
use feed::{Feed, News, Tell, Welcome};
use notifier::{Notifier, Word};
use notify::{Means, NoteSender, Popups};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

#[cfg(not(target_os = "linux"))]
use elsewhere::Loop;
#[cfg(target_os = "linux")]
use linux::Loop;

/// The main thread may be held by a panel that does not answer; it is waited for this long at the end.
const PATIENCE: Duration = Duration::from_millis(300);
/// The file in the state folder that says that the user was welcomed.
pub(crate) const WELCOMED: &str = "welcomed";

/// What the light needs to run.
pub(crate) struct Start {
    /// Looks at the sessions.
    pub engine: Engine,
    /// Makes menus of them.
    pub menu: menu::Menu,
    /// What the user is told beside the menu.
    pub tell: Box<dyn Tell>,
    /// Where our log is.
    pub own_log: Option<PathBuf>,
    /// Where things are remembered.
    pub state_folder: Option<PathBuf>,
    /// The homes that are watched.
    pub homes: Vec<PathBuf>,
    /// The user's terminal, as it is set.
    pub terminal: Vec<String>,
    /// Where the control socket is served.
    pub control_folder: Option<PathBuf>,
    /// What counts as started by Copilot, and answers no permission request.
    pub judge: Judge,
    /// What is told beside the menu.
    pub notifications: Notifications,
    /// What is opened in an editor.
    pub open_files: open_files::OpenFiles,
    /// What starts this program at login.
    pub login: Login,
    /// What lies on our disk of the bridge to terminals, where that can be switched on.
    pub bridge: Option<Files>,
}

/// Runs until Quit, a signal, or the end of the desktop session. Call it on the main thread.
///
/// # Errors
/// Where the system refuses what every program needs: threads, signals, on macOS and Windows an event loop.
pub(crate) fn run(start: Start) -> anyhow::Result<()> {
    let Start {
        engine,
        menu,
        tell,
        own_log,
        state_folder,
        homes,
        terminal,
        control_folder,
        judge,
        notifications,
        open_files,
        login,
        bridge,
    } = start;
    #[cfg(windows)]
    start_menu::settle();
    let ended = state_folder.as_deref().map(ended::take).unwrap_or_default();
    let ended: Vec<_> = ended.iter().map(Ended::words).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the icon is shown: who sees it may end us, and a signal that was ignored where we were started would be lost.
    let signals = {
        let _entered = runtime.enter();
        Signals::new()?
    };
    let main_loop = Loop::new()?;
    #[cfg(target_os = "linux")]
    let main_loop = main_loop.with_state_folder(state_folder.clone());
    let (to_main, commander) = (main_loop.sender(), engine.commander());
    let (news, news_of_desktop) = mpsc::channel();
    let note_sender = NoteSender::new(runtime.handle().clone());
    let (say, words) = mpsc::channel();
    let tell_herald: controller::Ear = {
        let commander = commander.clone();
        Arc::new(move |word| {
            // Both fail only when the engine has ended.
            let _ = say.send(word);
            let _ = commander.send(Command::Redraw);
        })
    };
    let ear = Arc::clone(&tell_herald);
    let click_handler = ClickHandler::new(
        commander.clone(),
        note_sender.clone(),
        runtime.handle().clone(),
        own_log,
        homes,
        terminal,
        ear,
        login.clone(),
        open_files,
    );
    let names = judge.names.clone();
    let popups = Popups::start(Means {
        runtime: runtime.handle().clone(),
        bus: None,
        may_answer: Box::new(move |pid| copilot_ancestor(pid, &names).is_none()),
        now: Box::new(Instant::now),
        clicked: Box::new(move |id, clicked| tell_herald(Word::Clicked(id, clicked))),
    });
    let notifier = Notifier::new(&notifications, popups, words, click_handler.twin(), state_folder.as_deref());
    let tell_news = move |it: News| {
        // Both fail only when the engine has ended.
        let _ = news.send(it);
        let _ = commander.send(Command::Redraw);
    };
    let controller = TrayController::new(click_handler, Box::new(tell_news.clone()));
    let marker = state_folder.map(|folder| folder.join(WELCOMED)).filter(|marker| feed::is_first_run(marker));
    let welcome = marker.map(|marker| Welcome { marker, note_sender });
    #[cfg(target_os = "linux")]
    let follow_bus = linux::follow_bus(to_main.clone(), tell_news, engine.commander(), controller.has_icon());
    #[cfg(target_os = "linux")]
    let follow_login = {
        let commander = engine.commander();
        login.clone().follow(move || {
            let _ = commander.send(Command::Redraw); // fails only when the engine has ended
        })
    };
    let (main_is_back, back) = mpsc::channel::<()>();
    let orders = engine.commander();
    let work = move || {
        let send = to_main.clone();
        let mut feed =
            Feed::new(menu, notifier, login, move |view| send(Told::View(view)), news_of_desktop, tell, welcome)
                .telling(ended)
                .with_bridge(bridge);
        runtime.block_on(async {
            #[cfg(target_os = "linux")]
            {
                tokio::spawn(follow_bus);
                tokio::spawn(follow_login);
            }
            let _served = control_folder.and_then(|folder| serve(&folder, judge, orders));
            engine.run(signals, &mut feed).await;
            feed.end().await;
        });
        to_main(Told::End);
        if back.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            leave();
        }
        // Lookups of host names and the like that still run are not waited for.
        runtime.shutdown_background();
    };
    let engine = std::thread::Builder::new().name("engine".into()).spawn(work)?;
    let ran = main_loop.run(controller);
    drop(main_is_back);
    engine.join().map_err(|_| anyhow::anyhow!("the engine broke down"))?;
    ran
}

/// Serves the control socket, over which commands hand in what they were asked to do. Where it cannot be, commands do it
/// themselves.
fn serve(folder: &Path, judge: Judge, commander: UnboundedSender<Command>) -> Option<Served> {
    let orders = move |given| {
        let _ = commander.send(Command::Act(given)); // fails only when the engine has ended
    };
    control::serve(folder, judge, orders)
        .inspect_err(|error| tracing::warn!("commands cannot reach this tray: {error}"))
        .ok()
}

/// Ends the program past a main thread that does not come back. Everything that must be put in order has been: the engine is
/// gone, the terminal restored, the lock goes with the process.
#[expect(
    clippy::disallowed_methods,
    reason = "the panel may hold the main thread for ever, and Quit must not wait for it"
)]
fn leave() -> ! {
    tracing::debug!("the panel does not answer; quitting without waiting for it");
    std::process::exit(0)
}
