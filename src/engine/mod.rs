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
mod opened;
mod orders;
mod parting;
mod past;
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
pub(crate) use opened::{Lately, resumed_lately};
pub(crate) use settings::{Settings, Source};

use acting::{Acting, Happening};
use agenda::Agenda;
use event::Wait;
use history::History;
use homes::Homes;
use server::Sought;
use sparing::Sparing;

use crate::agent::copilot::opened::{Looking, Noted, Openers, Openings};
use crate::agent::copilot::process::Exits;
use crate::agent::copilot::store::{Reading, SESSIONS};
use crate::agent::copilot::tail::Look;
use crate::agent::copilot::watcher::Watcher;
use crate::config::Config;
use crate::core::fleet::Session;
use crate::core::order::Given;
use crate::core::time::{Moment, Span, Time};
use crate::core::verdict::Status;
use crate::engine::last_seen::Seen;
use crate::engine::ledger::Ledger;
use crate::system::clock::Clock;
use crate::system::heap;
use crate::system::log::{self, story};
use crate::system::signals::Signals;
use std::collections::{HashMap, HashSet};
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
/// Many processes may end at once, and each time all others are to be looked at: once in so long.
const PROCESSES: Span = Span(200);
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
    source: Option<settings::Followed>,
    ledger: Ledger,
    /// The folders in which commands that hold a session serve it.
    holders: Vec<PathBuf>,
    /// What ends with us was named: the next Ctrl-C ends it.
    parting: bool,
    /// The statuses that stand in our log.
    logged: HashMap<Key, Status>,
    clock: Clock,
    fleet: Fleet,
    history: History,
    agenda: Agenda,
    acting: Acting,
    listening: Option<Listening>,
    bridges: bridges::Bridges,
    happenings: mpsc::UnboundedReceiver<Happening>,
    watcher: Watcher,
    exits: Option<Exits>,
    ended: mpsc::UnboundedReceiver<u32>,
    seen: Seen,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Keeps the channel of the commands open where nobody else does.
    commander: mpsc::UnboundedSender<Command>,
    /// Processes whose end will be told.
    known: HashSet<u32>,
    /// Those whose end will not.
    scarce: scarce::Scarce,
    /// Looks for processes that have sessions open without a lock; what it found last.
    openers: Openers,
    openings: Openings,
    /// A look at them that is under way.
    looking: Option<Looking>,
    /// Sessions that we resumed, and whose new owner is still to be seen.
    awaited: HashSet<Key>,
    /// What the terminals of each home had noted as open, when that was last looked at.
    noted: HashMap<usize, Noted>,
    buffer: Vec<u8>,
    rescan_at: Time,
    /// Orders that wait for an owner to be gone.
    late: Vec<orders::Late>,
    /// What processes have written in their logs since those were last looked at: when that is done next, and whose logs.
    written_at: Option<Time>,
    written: HashSet<u32>,
    /// The sessions that we, or others of our processes, resumed lately; and when, by the awake clock, the first of them no longer
    /// counts.
    resumed: Vec<Lately>,
    resumed_until: Option<Time>,
    /// Called before the first order that may leave a connection with us.
    before_holding: Option<Box<dyn FnOnce() + Send>>,
    /// File events were lost: everything is to be looked at.
    lost: Sparing,
    /// A process ended, or a terminal noted something: all processes are to be looked at.
    processes: Sparing,
    /// Sessions that wait for an answer, and whose server was looked for in vain.
    sought: HashMap<Key, Sought>,
    /// Sessions whose lock was too new to tell who holds them, and when, by the awake clock, they are looked at again.
    new_locks: HashMap<Key, Time>,
}

impl Engine {
    /// An engine for these homes. Nothing is read before [`run`](Self::run).
    pub(crate) fn new(homes: &[PathBuf], config: Config, seen: Seen) -> Self {
        let (commander, commands) = mpsc::unbounded_channel();
        let (happen, happenings) = mpsc::unbounded_channel();
        let clock = Clock::start();
        let roots: Vec<_> = homes.iter().map(|home| home.join(SESSIONS)).collect();
        let (tell, ended) = mpsc::unbounded_channel();
        let exits = Exits::new(move |pid| {
            let _ = tell.send(pid); // fails only when the engine is gone
        });
        if let Err(error) = &exits {
            tracing::warn!(%error, "the end of owners cannot be waited for; looking once a minute instead");
        }
        Self {
            acting: Acting::new(happen),
            listening: None,
            bridges: bridges::Bridges::default(),
            happenings,
            watcher: Watcher::new(&roots, seen.path().map(Path::to_owned)),
            fleet: Fleet::new(config.limits),
            config,
            homes: Homes::new(&roots, clock.now().awake),
            source: None,
            ledger: Ledger::new(seen.path().and_then(Path::parent)),
            holders: Vec::new(),
            parting: false,
            logged: HashMap::new(),
            clock,
            history: History::default(),
            agenda: Agenda::default(),
            exits: exits.ok(),
            ended,
            seen,
            commands,
            commander,
            known: HashSet::new(),
            scarce: scarce::Scarce::default(),
            openers: Openers::default(),
            openings: Openings::default(),
            looking: None,
            awaited: HashSet::new(),
            noted: HashMap::new(),
            buffer: Vec::new(),
            rescan_at: clock.now().awake + RESCAN,
            late: Vec::new(),
            written_at: None,
            written: HashSet::new(),
            resumed: Vec::new(),
            resumed_until: None,
            before_holding: None,
            lost: Sparing::every(LOST),
            processes: Sparing::every(PROCESSES),
            sought: HashMap::new(),
            new_locks: HashMap::new(),
        }
    }

    /// From now on orders for a session that a command holds are handed to that command, which serves it in one of these folders.
    pub(crate) fn hand_to_holders(&mut self, runtime_folders: Vec<PathBuf>) {
        self.holders = runtime_folders;
    }

    /// Calls `serve` once, when an order may be carried out that can leave a connection with us, and before anything is sent on
    /// account of it. At that moment no other process of ours acts on the session, and none holds it.
    pub(crate) fn before_holding(&mut self, serve: impl FnOnce() + Send + 'static) {
        self.before_holding = Some(Box::new(serve));
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
        // What was sent meanwhile is told: whoever waits for it must know that it may have happened.
        while let Ok(happening) = self.happenings.try_recv() {
            match happening {
                Happening::Step(task, step, words) => self.acting.step(task, step, words),
                Happening::Over(task, over) => drop(self.acting.over(task, over)),
                Happening::Request(..)
                | Happening::Question(..)
                | Happening::MaySend(..)
                | Happening::Live(_)
                | Happening::Looked(_) => {}
            }
        }
        self.leave_late();
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

fn reading<'a>(config: &'a Config, known: &'a HashSet<u32>, openings: &'a Openings, now: Moment) -> Reading<'a> {
    Reading {
        look: Look { now, limits: &config.limits, until: None },
        owner_names: &config.owners.names,
        known,
        openings,
        all: false,
    }
}
