//! The engine's event loop: observations and timers come in, the core judges, a [`View`] shows the result.
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
//! - [`parts`] are the engine's fields. Each owns its state, knows nothing of the engine and is tested alone.
//! - [`steps`] are the rest of `impl Engine`: what the loop does with its parts, one kind of work per file.
//! - [`command`], [`wakeup`], [`view`], [`changes`] and [`key`] define the types that loop, parts and steps share.
//! - [`snapshot`] reads everything once, for commands that do not run the loop. [`ledger`], [`last_seen`] and
//!   [`exit_note`] are what our processes leave in the state folder for each other.
//!
//! Steps import the engine, and the engine imports its parts: never the other way round.
//!
//! May import: core, system, agent, config, terminal, control, hosts.

mod changes;
pub mod exit_note;
pub mod last_seen;
pub mod ledger;
mod parts;
pub mod snapshot;
mod steps;
mod view;
mod wakeup;

use changes::Changes;
pub(crate) use parts::fleet::Trouble;
pub use parts::fleet::{Entry, Fleet, LastProgress, Shown};
pub(crate) use parts::probe::{apply_probe, due_probe};
pub(crate) use parts::settings_file::SettingsSource;
pub(crate) use view::{Settings, View};

use crate::agent::bridges::Bridges;
use crate::agent::source::{Resume, Source};
use crate::config::Config;
use crate::control::Command;
use crate::core::session::{Key, SourceId};
use crate::core::time::{Span, Time};
use crate::hosts::Purpose;
use crate::system::clock::Clock;
use crate::system::heap;
use crate::system::signals::Signals;
use crate::system::watcher::Watcher;
use last_seen::Seen;
use ledger::Ledger;
use parts::agenda::Agenda;
use parts::file_systems::FileSystems;
use parts::history::History;
use parts::homes::Homes;
use parts::hosts::Hosts;
use parts::looks::Looks;
use parts::orders::Orders;
use parts::outboxes::Outboxes;
use parts::owners::Owners;
use parts::polled_sessions::PolledSessions;
use parts::process_scans::ProcessScans;
use parts::resumes::RecentResumes;
use parts::server_searches::ServerSearches;
use parts::settings_file::SettingsFile;
use parts::status_log::StatusLog;
use parts::tasks::Tasks;
use parts::throttle::Throttle;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use wakeup::WakeupSources;

/// How often everything is checked without an event (file systems that lose events, folders that could not be watched).
const RESCAN_INTERVAL: Span = Span::seconds(60);
/// Minimum interval between full checks after lost file events: in a storm they may be lost many times a second.
const LOST_EVENTS_INTERVAL: Span = Span::seconds(1);
/// How long to wait at exit for connections to close.
const DISCONNECT_TIMEOUT: Duration = Duration::from_millis(800);

/// The event loop and its state.
pub(crate) struct Engine {
    config: Config,
    homes: Homes,
    settings_file: Option<SettingsFile>,
    ledger: Ledger,
    /// The user was told what ends with us: the next Ctrl-C exits.
    warned_of_exit: bool,
    status_log: StatusLog,
    clock: Clock,
    fleet: Fleet,
    history: History,
    agenda: Agenda,
    tasks: Tasks,
    orders: Orders,
    outboxes: Outboxes,
    hosts: Hosts,
    looks: Looks,
    bridges: Bridges,
    watcher: Watcher,
    owners: Owners,
    polled_sessions: PolledSessions,
    file_systems: FileSystems,
    /// Sessions that are left alone because their file system does not answer.
    untouched: HashSet<Key>,
    /// Homes of which a warning has said that their file system does not answer.
    said_silent: HashSet<SourceId>,
    process_scans: ProcessScans,
    recent_resumes: RecentResumes,
    seen: Seen,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Keeps the command channel open even when nobody else has a sender.
    command_sender: mpsc::UnboundedSender<Command>,
    buffer: Vec<u8>,
    rescan_at: Time,
    /// Requests for a full check after lost file events.
    lost_events: Throttle,
    server_searches: ServerSearches,
}

impl Engine {
    /// Creates an engine for these homes. Nothing is read before [`run`](Self::run).
    pub(crate) fn new(sources: &[Source], config: Config, seen: Seen) -> Self {
        let (command_sender, commands) = mpsc::unbounded_channel();
        let clock = Clock::start();
        Self {
            tasks: Tasks::new(),
            orders: Orders::default(),
            outboxes: Outboxes::default(),
            hosts: Hosts::default(),
            looks: Looks::default(),
            bridges: Bridges::default(),
            watcher: Watcher::new(
                sources.iter().map(|source| (source.watch_plan(), source.root())),
                seen.path().map(Path::to_owned),
            ),
            fleet: Fleet::new(config.limits),
            config,
            homes: Homes::new(sources, clock.now().awake),
            settings_file: None,
            ledger: Ledger::new(seen.path().and_then(Path::parent)),
            warned_of_exit: false,
            status_log: StatusLog::default(),
            clock,
            history: History::default(),
            agenda: Agenda::default(),
            owners: Owners::new(),
            polled_sessions: PolledSessions::default(),
            file_systems: FileSystems::default(),
            untouched: HashSet::new(),
            said_silent: HashSet::new(),
            process_scans: ProcessScans::new(),
            recent_resumes: RecentResumes::default(),
            seen,
            commands,
            command_sender,
            buffer: Vec::new(),
            rescan_at: clock.now().awake + RESCAN_INTERVAL,
            lost_events: Throttle::new(LOST_EVENTS_INTERVAL),
            server_searches: ServerSearches::default(),
        }
    }

    /// From now on, orders for a session that a command holds are forwarded to that command, which serves it in one of
    /// these folders.
    pub(crate) fn forward_to_holders(&mut self, runtime_folders: Vec<PathBuf>) {
        self.orders.holder_folders = runtime_folders;
    }

    /// Calls `serve` once, right before the first order that may leave us connected to a session, and before anything
    /// is sent for it. At that moment, no other process of ours acts on the session or holds it.
    pub(crate) fn on_first_attach(&mut self, serve: impl FnOnce() + Send + 'static) {
        self.orders.on_first_attach = Some(Box::new(serve));
    }

    /// From now on, a session that is to be resumed in a terminal is resumed by whoever receives what to run.
    pub(crate) fn resume_here(&mut self, here: mpsc::UnboundedSender<Resume>) {
        self.tasks.resumes_here = Some(here);
    }

    /// Shows the sessions of the machines in the settings as well: of these alone, if any are named, and of these agents.
    pub(crate) fn show_hosts(&mut self, only: Vec<String>, agents: Vec<Box<str>>, purpose: Purpose) {
        self.hosts.want(only, agents, purpose);
    }

    /// A sender for commands to this engine.
    pub(crate) fn command_sender(&self) -> mpsc::UnboundedSender<Command> {
        self.command_sender.clone()
    }

    /// Runs until the view or one of these signals ends the program.
    pub(crate) async fn run(mut self, mut signals: Signals, view: &mut dyn View) {
        let mut changes = Changes::default();
        if self.start_up(&mut signals, view, &mut changes).await.is_break() {
            return;
        }
        let mut flow = self.show_changes(&mut changes, view);
        let mut sources = WakeupSources::new(signals);
        while flow.is_continue() {
            let wakeup = self.next_wakeup(&mut sources, view).await;
            flow = self.handle_wakeup(wakeup, view, &mut changes);
            if flow.is_continue() {
                flow = self.run_due_work(view, &mut changes);
            }
        }
        self.shut_down().await;
    }

    /// Reads everything once. Breaks if a signal ends the program in the meantime.
    async fn start_up(&mut self, signals: &mut Signals, view: &mut dyn View, changes: &mut Changes) -> ControlFlow<()> {
        tracing::info!(tag = "start", version = env!("CARGO_PKG_VERSION"), "Pilotlight starts watching");
        self.file_systems.reload(&self.homes);
        self.ask_file_systems(changes);
        self.bridges.start();
        self.watch_seen();
        self.start_following_config(view);
        self.machines().follow(changes);
        self.scan_processes_now();
        self.run_initial_scan(signals, changes).await?;
        changes.updated.extend(self.fleet.entries().map(|(key, _)| key.clone()));
        self.look_into_silences(view.asks_servers(), changes);
        if view.asks_servers() {
            self.probe_silent_sessions(changes);
            self.watch_services(changes);
        }
        if view.wants_history() {
            self.history.queue_all_to_show();
        }
        // Startup needs much memory that is not needed later: free it before the first display.
        heap::release();
        self.agenda.mark_large();
        ControlFlow::Continue(())
    }

    /// Does part of the agenda and everything that is due, then shows what changed. Breaks if the view ends the
    /// program.
    fn run_due_work(&mut self, view: &mut dyn View, changes: &mut Changes) -> ControlFlow<()> {
        self.ask_file_systems(changes);
        self.work_on_agenda(changes);
        if self.history.has_unshown() && self.agenda.only_long_reads() {
            self.show_history(view)?;
        }
        self.retry_postponed(changes);
        self.run_due_timers(view, changes);
        self.reload_config_if_due(view, changes);
        self.look_into_silences(view.asks_servers(), changes);
        self.reconnect_automatically(view.may_auto_reconnect(), changes);
        if view.asks_servers() {
            self.probe_silent_sessions(changes);
            self.watch_services(changes);
        }
        self.show_changes(changes, view)
    }

    /// Reports outstanding results and closes all connections.
    async fn shut_down(mut self) {
        self.tasks.deliver_remaining();
        self.orders.fail_postponed();
        self.tasks.disconnect_all(DISCONNECT_TIMEOUT).await;
        tracing::info!(tag = "end", "Pilotlight stops watching");
    }

    /// Passes what changed in this iteration to the view.
    fn show_changes(&mut self, changes: &mut Changes, view: &mut dyn View) -> ControlFlow<()> {
        self.fleet.count_shared_owners(self.clock.now(), &mut changes.updated);
        self.fleet.disambiguate_rows(&mut changes.updated);
        // For the view, a session that is no longer listed is gone.
        changes.removed.extend(changes.updated.extract_if(.., |key| self.fleet.shown_as(key).is_none()));
        let told = changes.removed.iter().chain(&changes.updated).filter(|key| key.host.is_none());
        self.outboxes.update(&self.fleet, told, self.clock.now());
        let redraw = changes.redraw || changes.ended_lull && view.shows_ages();
        if changes.updated.is_empty() && changes.removed.is_empty() && !redraw {
            return ControlFlow::Continue(());
        }
        for keys in [&mut changes.updated, &mut changes.removed] {
            keys.sort_unstable();
            keys.dedup();
        }
        for key in changes.updated.iter().filter(|key| key.host.is_none()) {
            self.update_log_views(key);
        }
        let now = self.clock.now();
        self.status_log.log_updated(&self.fleet, changes, now, &self.config.limits);
        let flow = view.show(&self.fleet, &changes.updated, &changes.removed, now);
        *changes = Changes::default();
        flow
    }
}
