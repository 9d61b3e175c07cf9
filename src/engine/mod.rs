//! The one loop: observations and timers in, the core judges, a [`View`] shows.
//!
//! Nothing polls. The loop sleeps until a file event, the end of an owner, a signal, or the earliest moment at which some
//! status can change by itself. Beside these there is only a slow rescan, for file systems that lose events, and that only
//! while there is something to watch. Ages are nothing to wake for: they are worded anew with the rescan.
//!
//! Nothing keeps it long, either: what is to be looked at waits in the `agenda`, and each turn of the loop does some of it.
//!
//! May import: core, system, agent, config, terminal, control.

mod acting;
mod agenda;
mod asking;
mod bridges;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod clocks;
pub mod ended;
mod event;
mod first;
mod fleet;
mod happenings;
mod history;
mod homes;
pub mod last_seen;
pub mod ledger;
mod orders;
mod owners;
mod parting;
mod past;
mod processes;
mod resumed;
mod scan;
mod scarce;
mod server;
mod settings;
pub mod snapshot;
mod sparing;
mod status_log;
mod waking;
mod work;

pub(crate) use asking::wants_a_look;
pub(crate) use bridges::Listening;
pub use fleet::{BUSY, Entry, Fleet, Key};
pub(crate) use resumed::resumed_lately;
use settings::Reload;
pub(crate) use settings::{Settings, Source};

use acting::Acting;
use agenda::Agenda;
use bridges::Bridges;
use event::Wait;
use history::History;
use homes::Homes;
use orders::Orders;
use owners::Owners;
use processes::Processes;
use resumed::Resumes;
use server::SoughtServers;
use sparing::Sparing;
use status_log::StatusLog;

use crate::agent::copilot::store::{Reading, SESSIONS};
use crate::agent::copilot::tail::Look;
use crate::agent::copilot::watcher::Watcher;
use crate::config::Config;
use crate::core::fleet::Session;
use crate::core::order::Given;
use crate::core::time::{Moment, Span, Time};
use crate::engine::last_seen::Seen;
use crate::engine::ledger::Ledger;
use crate::system::clock::Clock;
use crate::system::heap;
use crate::system::log::{self, story};
use crate::system::signals::Signals;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often everything is looked at without a reason (file systems that lose events, watches that could not be had).
const RESCAN: Span = Span::seconds(60);
/// Where time changed something anyway, a rescan that is due within this is done with it.
const RESCAN_EARLY: Span = Span::seconds(20);
/// File events may be lost many times a second in a storm, and each time everything is to be looked at: once in so long.
const LOST: Span = Span::seconds(1);
/// How long sessions that we hold may take to be let go of at our end.
const LEAVING: Duration = Duration::from_millis(800);
/// How long sessions may still be read before the first picture is shown: their rows say so then.
const FIRST: Duration = Duration::from_millis(200);

/// What the user asks of the engine.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// Something is to be done with a session.
    Act(Given),
    /// These sessions were looked at.
    Seen(Vec<Key>),
    /// All sessions were looked at.
    SeenAll,
    /// Look at everything now.
    Refresh,
    /// Call the view again, though nothing changed.
    Redraw,
    /// End the program.
    Quit,
}

/// Shows what the engine sees.
pub(crate) trait View {
    /// Something changed: `changed` are the sessions whose row differs from what was told before, `removed` those that
    /// went, which may have come back since. Called first with every session. Breaks to end the program.
    fn show(&mut self, fleet: &Fleet, changed: &[Key], removed: &[Key], now: Moment) -> ControlFlow<()>;

    /// Sessions that only a look at their folder is known of: shown once, some at a time, and not kept.
    fn show_history(&mut self, _sessions: &mut dyn Iterator<Item = Session>, _now: Moment) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// The settings are others now, or what was written cannot be used.
    fn configure(&mut self, _settings: &Settings<'_>) {}

    /// Whether sessions are reconnected by themselves, where the settings want that: only by what stays to hold the connection.
    /// A command that watches beside the tray would get in its way.
    fn reconnects_by_itself(&self) -> bool {
        false
    }

    /// When, by the awake clock, the view wants to be called though nothing changed. It is called once a minute anyway.
    fn redraw_at(&self) -> Option<Time> {
        None
    }

    /// Something ends with the program, or would: a line for the user.
    fn part(&mut self, _line: &str) {}

    /// Gives the terminal back, for as long as the program is stopped.
    fn suspend(&mut self) {}

    /// Takes the terminal again, or anew after its size changed: nothing of what was drawn can be relied on.
    fn resume(&mut self) {}

    /// Whether servers may be asked about sessions that became silent: not by who is there for one order.
    fn asks_servers(&self) -> bool {
        true
    }

    /// Whether [`show_history`](Self::show_history) is wanted.
    fn wants_history(&self) -> bool {
        false
    }
}

/// The loop and all that it holds.
pub(crate) struct Engine {
    config: Config,
    homes: Homes,
    reload: Option<Reload>,
    ledger: Ledger,
    /// What ends with us was named: the next Ctrl-C ends it.
    parting: bool,
    status_log: StatusLog,
    clock: Clock,
    fleet: Fleet,
    history: History,
    agenda: Agenda,
    acting: Acting,
    orders: Orders,
    bridges: Bridges,
    watcher: Watcher,
    owners: Owners,
    processes: Processes,
    resumes: Resumes,
    seen: Seen,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Keeps the channel of the commands open where nobody else does.
    commander: mpsc::UnboundedSender<Command>,
    buffer: Vec<u8>,
    rescan_at: Time,
    /// File events were lost: everything is to be looked at.
    lost: Sparing,
    sought: SoughtServers,
}

impl Engine {
    /// An engine for these homes. Nothing is read before [`run`](Self::run).
    pub(crate) fn new(homes: &[PathBuf], config: Config, seen: Seen) -> Self {
        let (commander, commands) = mpsc::unbounded_channel();
        let clock = Clock::start();
        let roots: Vec<_> = homes.iter().map(|home| home.join(SESSIONS)).collect();
        Self {
            acting: Acting::new(),
            orders: Orders::default(),
            bridges: Bridges::default(),
            watcher: Watcher::new(&roots, seen.path().map(Path::to_owned)),
            fleet: Fleet::new(config.limits),
            config,
            homes: Homes::new(&roots, clock.now().awake),
            reload: None,
            ledger: Ledger::new(seen.path().and_then(Path::parent)),
            parting: false,
            status_log: StatusLog::default(),
            clock,
            history: History::default(),
            agenda: Agenda::default(),
            owners: Owners::new(),
            processes: Processes::new(),
            resumes: Resumes::default(),
            seen,
            commands,
            commander,
            buffer: Vec::new(),
            rescan_at: clock.now().awake + RESCAN,
            lost: Sparing::every(LOST),
            sought: SoughtServers::default(),
        }
    }

    /// From now on orders for a session that a command holds are handed to that command, which serves it in one of these folders.
    pub(crate) fn hand_to_holders(&mut self, runtime_folders: Vec<PathBuf>) {
        self.orders.holders = runtime_folders;
    }

    /// Calls `serve` once, when an order may be carried out that can leave a connection with us, and before anything is sent on
    /// account of it. At that moment no other process of ours acts on the session, and none holds it.
    pub(crate) fn before_holding(&mut self, serve: impl FnOnce() + Send + 'static) {
        self.orders.before_holding = Some(Box::new(serve));
    }

    /// Where commands are sent.
    pub(crate) fn commander(&self) -> mpsc::UnboundedSender<Command> {
        self.commander.clone()
    }

    /// Runs until the view or one of these signals ends it.
    pub(crate) async fn run(mut self, mut signals: Signals, view: &mut dyn View) {
        let mut round = Round::default();
        if self.begin(&mut signals, view, &mut round).await.is_break() {
            return;
        }
        let mut flow = self.show(&mut round, view);
        let mut wait = Wait::new(signals);
        while flow.is_continue() {
            let event = self.next(&mut wait, view).await;
            flow = self.take(event, view, &mut round);
            if flow.is_continue() {
                flow = self.turn(view, &mut round);
            }
        }
        self.leave().await;
    }

    /// Looks at everything once. Breaks where a signal ends the program meanwhile.
    async fn begin(&mut self, signals: &mut Signals, view: &mut dyn View, round: &mut Round) -> ControlFlow<()> {
        let (version, level) = (env!("CARGO_PKG_VERSION"), log::level());
        tracing::info!(target: story::TARGET, tag = story::START, version, level, "Pilotlight starts watching");
        self.listen();
        self.watch_seen();
        self.begin_to_follow_config(view);
        self.look_at_processes();
        self.look_at_all(signals, round).await?;
        round.changed.extend(self.fleet.entries().map(|(key, _)| key.clone()));
        if view.asks_servers() {
            self.ask_servers(round);
        }
        if view.wants_history() {
            self.history.tell_all();
        }
        // The start needed much that is not needed again, and that is not to stand beside the first picture.
        heap::give_back();
        self.agenda.is_long();
        ControlFlow::Continue(())
    }

    /// One turn of the loop: some of what is to be looked at, and what has become due. Breaks where the view ends the program.
    fn turn(&mut self, view: &mut dyn View, round: &mut Round) -> ControlFlow<()> {
        self.work(round);
        if self.history.has_untold() && self.agenda.only_reads() {
            self.show_history(view)?;
        }
        self.act_late(round);
        self.recheck(view, round);
        self.follow_config(view, round);
        self.reconnect_by_itself(view.reconnects_by_itself(), round);
        if view.asks_servers() {
            self.ask_servers(round);
        }
        self.show(round, view)
    }

    /// Lets go of what it holds.
    async fn leave(mut self) {
        self.acting.tell_the_rest();
        self.orders.refuse_late();
        self.acting.leave(LEAVING).await;
        tracing::info!(target: story::TARGET, tag = story::END, "Pilotlight stops watching");
    }

    fn show(&mut self, round: &mut Round, view: &mut dyn View) -> ControlFlow<()> {
        self.fleet.share_owners(self.clock.now(), &mut round.changed);
        self.fleet.name_rows(&mut round.changed);
        // What is no longer to be shown is gone, for whoever looks.
        round.removed.extend(round.changed.extract_if(.., |key| self.fleet.get(key).is_none()));
        if round.changed.is_empty() && round.removed.is_empty() && !round.redraw {
            return ControlFlow::Continue(());
        }
        for keys in [&mut round.changed, &mut round.removed] {
            keys.sort_unstable();
            keys.dedup();
        }
        for key in &round.changed {
            self.tell_sight(key);
        }
        self.log_changes(round);
        let flow = view.show(&self.fleet, &round.changed, &round.removed, self.clock.now());
        *round = Round::default();
        flow
    }
}

/// What one turn of the loop found.
#[derive(Default)]
struct Round {
    changed: Vec<Key>,
    removed: Vec<Key>,
    redraw: bool,
}

fn reading<'a>(config: &'a Config, owners: &'a Owners, processes: &'a Processes, now: Moment) -> Reading<'a> {
    Reading {
        look: Look { now, limits: &config.limits, until: None },
        owner_names: &config.owners.names,
        known: owners.known(),
        openings: processes.openings(),
        all: false,
    }
}
