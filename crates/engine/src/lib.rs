//! The loop of Pilotlight: observations and timers come in, the core judges, a [`View`] shows the result; orders come back.
//! With it, what the loop is given and talks to: the [settings](config), the [control] socket, other machines ([`hosts`]),
//! and [terminals](terminal).
//!
//! Nothing polls. The loop sleeps until a file event, an owner's exit, a signal, or the earliest time at which a status
//! can change without an event. In addition there is a slow rescan, for file systems that lose events, and only while
//! there is something to watch. A changed age does not wake the loop: ages are reworded with the rescan.
//!
//! Nothing blocks the loop for long either: what remains to be read waits in the [agenda](parts::agenda), and each
//! iteration does part of it.
//!
//! One iteration: `next_wakeup` waits, `handle_wakeup` applies what came and records what changed in [`Changes`],
//! `run_due_work` does part of the agenda and everything that is due, and `show_changes` passes the changes to the
//! view.
//!
//! - This file is the loop: the [`Engine`] and its iteration.
//! - [`world`] is what every step works on: the settings, the sessions, the time, and what has changed.
//! - [`disk`] follows what is on disk. It is given the world, and knows nobody else.
//! - [`connections`] talk to servers, bridges and services. They take the world and the disk as arguments.
//! - [`steps`] are the rest of `impl Engine`: what concerns them all, above all orders, one kind of work per file.
//! - [`parts`] are the fields of all these. Each owns its state, knows nothing of the engine and is tested alone.
//! - [`view`] is what shows the result.
//! - [`observation`] is what a command is told: the sessions of a running tray, or of an engine that runs until it has
//!   its first complete picture. [`past`] reads the sessions that an engine does not hold, because they are over.
//! - [`ledger`], [`last_seen`], [`discovered`] and [`exit_note`] are what our processes leave in the state folder for each other.
//!
//! Steps call connections, which call the disk, which changes the world, and all of them call parts: never the other way
//! round.
//!
//! Begin with [`Engine::run`] below.

// Dead code is only reported on Linux, where the tests run. The other systems do not use all that is compiled for them.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]
// What tests write is their own.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod config;
mod connections;
pub mod control;
pub mod discovered;
mod disk;
pub mod exit_note;
pub mod hosts;
pub mod last_seen;
pub mod ledger;
pub mod observation;
mod parts;
pub mod past;
mod steps;
pub mod terminal;
mod view;
mod world;

pub use parts::fleet::{Entry, Fleet, LastProgress, Shown, Trouble, Twin, unreached};
pub use parts::settings_file::SettingsSource;
use pilotlight_system::log;
pub use view::{Settings, View};
use world::Changes;

use crate::config::Config;
use crate::control::opened::OpenedWindows;
use crate::control::{Command, ControlServer};
use crate::hosts::Purpose;
use connections::Connections;
use discovered::Discovered;
use disk::Disk;
use last_seen::LastSeen;
use observation::PendingObservations;
use parts::hosts::Hosts;
use parts::outboxes::Outboxes;
use parts::status_log::StatusLog;
use pilotlight_agents::control::Bridges;
use pilotlight_agents::home::{Home, Resume};
use pilotlight_core::session::Key;
use pilotlight_system::heap;
use pilotlight_system::signals::Signals;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;
use steps::orders::PostponedOrder;
use steps::wakeups::{SignalSource, WakeupSources};
use tokio::sync::mpsc;
use world::{Pace, World};

/// How long to wait at exit for connections to close.
const DISCONNECT_TIMEOUT: Duration = Duration::from_millis(800);

/// The event loop and its state.
pub struct Engine {
    world: World,
    disk: Disk,
    connections: Connections,
    /// Where commands reach this engine.
    control: Option<ControlServer>,
    /// The orders that wait for something to happen.
    postponed: Vec<PostponedOrder>,
    /// Called before the first order that may leave us connected to a session.
    on_first_attach: Option<Box<dyn FnOnce() + Send>>,
    outboxes: Outboxes,
    hosts: Hosts,
    status_log: StatusLog,
    /// The windows that clicks opened.
    windows: OpenedWindows,
    /// Those who asked for the sessions, until what they asked for is read.
    reports: PendingObservations,
    /// The user was told what ends with us: the next Ctrl-C exits.
    warned_of_exit: bool,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Keeps the command channel open even when nobody else has a sender.
    command_sender: mpsc::UnboundedSender<Command>,
}

impl Engine {
    /// Creates an engine for these homes. Nothing is read before [`run`](Self::run).
    pub fn new(homes: &[Home], config: Config, seen: LastSeen) -> Self {
        let world = World::new(config, Pace::Following);
        Self::with(Disk::new(homes, seen, world.now().awake), world)
    }

    /// Creates an engine that looks at these homes once: for [`observe`](Self::observe).
    pub fn for_one_look(homes: &[Home], config: Config, seen: LastSeen) -> Self {
        let world = World::new(config, Pace::Once);
        Self::with(Disk::unwatched(homes, seen, world.now().awake), world)
    }

    fn with(disk: Disk, world: World) -> Self {
        let (command_sender, commands) = mpsc::unbounded_channel();
        Self {
            disk,
            world,
            connections: Connections::new(),
            control: None,
            postponed: Vec::new(),
            on_first_attach: None,
            outboxes: Outboxes::default(),
            hosts: Hosts::default(),
            status_log: StatusLog::default(),
            windows: OpenedWindows::default(),
            reports: PendingObservations::default(),
            warned_of_exit: false,
            commands,
            command_sender,
        }
    }

    /// Follows a settings file. Must be called before [`run`](Self::run).
    pub fn follow_settings(&mut self, source: SettingsSource) {
        self.disk.follow_settings(&self.world, source);
    }

    /// Also follows the homes that nobody named, if the settings say so: these, and those that processes are seen to use. Must be
    /// called before [`run`](Self::run), after the settings are followed.
    pub fn discover_homes(&mut self, discovered: Discovered) {
        self.disk.discover_homes(&self.world, discovered);
        self.world.changes.homes = true;
    }

    /// From now on, orders for a session that a command holds are forwarded to that command, which serves it in one of
    /// these folders.
    pub fn forward_to_holders(&mut self, runtime_folders: Vec<PathBuf>) {
        self.connections.holder_folders = runtime_folders;
    }

    /// Calls `serve` once, right before the first order that may leave us connected to a session, and before anything
    /// is sent for it. At that moment, no other process of ours acts on the session or holds it.
    pub fn on_first_attach(&mut self, serve: impl FnOnce() + Send + 'static) {
        self.on_first_attach = Some(Box::new(serve));
    }

    /// Notes the agents whose bridge the user has installed: another process may listen for it.
    pub fn note_bridges(&mut self, agents: Vec<&'static str>) {
        self.connections.bridged_agents = agents;
    }

    /// Listens for the bridges of one more agent. Must be called before [`run`](Self::run).
    pub fn listen_to_bridges(&mut self, bridges: impl Bridges + 'static) {
        self.connections.bridges.push(Box::new(bridges));
    }

    /// Commands reach this engine there, as long as it runs. Must be called before [`run`](Self::run).
    pub fn serve(&mut self, control: ControlServer) {
        self.control = Some(control);
    }

    /// From now on, a session that is to be resumed in a terminal is resumed by whoever receives what to run.
    pub fn resume_here(&mut self, here: mpsc::UnboundedSender<Resume>) {
        self.connections.tasks.resumes_here = Some(here);
    }

    /// Shows the sessions of the machines in the settings as well: of these alone, if any are named, and of these agents.
    pub fn show_hosts(&mut self, only: Vec<String>, agents: Vec<Box<str>>, purpose: Purpose) {
        self.hosts.want(only, agents, purpose);
    }

    /// Where windows are noted that are opened at clicks: what is typed there is the user's.
    pub fn opened_windows(&self) -> OpenedWindows {
        self.windows.clone()
    }

    /// A sender for commands to this engine.
    pub fn command_sender(&self) -> mpsc::UnboundedSender<Command> {
        self.command_sender.clone()
    }

    /// Runs until the view or one of these signals ends the program.
    pub async fn run(mut self, signals: Signals, view: &mut dyn View) {
        let mut signals = SignalSource(Some(signals));
        log::info!(tag = "start", version = env!("CARGO_PKG_VERSION"), "Pilotlight starts watching");
        self.disk.watch_seen();
        if self.start_up(&mut signals, view).await.is_break() {
            return;
        }
        let mut flow = self.show_changes(view);
        let mut sources = WakeupSources::new(signals);
        while flow.is_continue() {
            let wakeup = self.next_wakeup(&mut sources, view).await;
            flow = self.handle_wakeup(wakeup, view);
            if flow.is_continue() {
                flow = self.run_due_work(view);
            }
        }
        self.shut_down().await;
        log::info!(tag = "end", "Pilotlight stops watching");
    }

    /// Reads everything once. Breaks if a signal ends the program in the meantime.
    async fn start_up(&mut self, signals: &mut SignalSource, view: &mut dyn View) -> ControlFlow<()> {
        self.disk.file_systems.reload(&self.disk.homes);
        self.disk.ask_file_systems(&mut self.world);
        self.connections.start_bridges(&self.world.config);
        self.watch_sockets();
        self.disk.start_following_config(&self.world, view);
        self.machines().follow();
        self.disk.scan_processes_now(&mut self.world);
        self.disk.run_initial_scan(&mut self.world, signals).await?;
        self.take_up_disk_changes();
        self.world.changes.updated.extend(self.world.fleet.entries().map(|(key, _)| key.clone()));
        self.world.changes.redraw = true; // also if there is no session yet
        self.connections.probe_silences(&mut self.world, &self.disk, view.asks_servers());
        if view.asks_servers() {
            self.connections.query_silent_sessions(&mut self.world, &self.disk);
            self.connections.watch_services(&mut self.world, &self.disk);
        }
        if view.wants_history() {
            self.disk.history.queue_all_to_show();
        }
        // Startup needs much memory that is not needed later: free it before the first display.
        heap::release();
        self.disk.agenda.mark_large();
        ControlFlow::Continue(())
    }

    /// Does part of the agenda and everything that is due, then shows what changed. Breaks if the view ends the
    /// program.
    fn run_due_work(&mut self, view: &mut dyn View) -> ControlFlow<()> {
        self.disk.ask_file_systems(&mut self.world);
        self.disk.work_on_agenda(&mut self.world);
        self.take_up_disk_changes();
        if self.disk.history.has_unshown() && self.disk.agenda.only_long_reads() {
            self.disk.show_history(&self.world, view)?;
        }
        self.retry_postponed();
        self.run_due_timers(view);
        self.reload_config_if_due(view);
        self.connections.probe_silences(&mut self.world, &self.disk, view.asks_servers());
        self.reconnect_automatically(view.may_auto_reconnect());
        if view.asks_servers() {
            self.connections.query_silent_sessions(&mut self.world, &self.disk);
            self.connections.watch_services(&mut self.world, &self.disk);
        }
        let flow = self.show_changes(view);
        self.send_observations();
        flow
    }

    /// Watches the sockets that are served: one that is removed is made again.
    fn watch_sockets(&mut self) {
        let control = self.control.as_ref().map(ControlServer::path);
        let sockets: Vec<_> = control.into_iter().chain(self.connections.sockets()).collect();
        self.disk.watcher.watch_sockets(&sockets);
    }

    /// Makes the sockets again that were removed.
    fn renew_sockets(&mut self) {
        if let Some(control) = &mut self.control {
            control.renew();
        }
        self.connections.renew_sockets();
    }

    /// Reports outstanding results and closes all connections.
    async fn shut_down(mut self) {
        self.connections.tasks.deliver_remaining();
        self.fail_postponed();
        self.connections.tasks.disconnect_all(DISCONNECT_TIMEOUT).await;
    }

    /// Passes what changed in this iteration to the view.
    fn show_changes(&mut self, view: &mut dyn View) -> ControlFlow<()> {
        if std::mem::take(&mut self.world.changes.homes) {
            view.follow_also(&self.disk.discovered_folders());
        }
        self.world.count_shared_owners();
        let World { fleet, changes, clock, config, .. } = &mut self.world;
        fleet.disambiguate_rows(&mut changes.updated);
        self.connections
            .tasks
            .update_log_views(fleet, std::mem::take(&mut changes.judged).iter().chain(&changes.updated));
        // For the view, a session that is no longer listed is gone.
        changes.removed.extend(changes.updated.extract_if(.., |key| fleet.shown_as(key).is_none()));
        let told = changes.removed.iter().chain(&changes.updated).filter(|key| key.host.is_none());
        self.outboxes.update(fleet, told, clock.now(), config.list.last_message);
        let redraw = changes.redraw || changes.ended_lull && view.shows_ages();
        if changes.updated.is_empty() && changes.removed.is_empty() && !redraw {
            return ControlFlow::Continue(());
        }
        for keys in [&mut changes.updated, &mut changes.removed] {
            keys.sort_unstable();
            keys.dedup();
        }
        self.status_log.log_updated(fleet, changes);
        let flow = view.show(fleet, &changes.updated, &changes.removed, clock.now());
        *changes = Changes::default();
        flow
    }

    /// Takes up what was seen on disk.
    fn take_up_disk_changes(&mut self) {
        self.connections.take_up_disk_changes(&mut self.world, &mut self.disk);
    }

    /// Reads a session before something is done with it, to the end of its log if that is possible in time.
    fn read_session_now(&mut self, key: &Key) {
        self.disk.read_session_now(&mut self.world, key);
        self.take_up_disk_changes();
    }
}
