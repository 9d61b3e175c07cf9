//! What is on disk, and how it is followed: the homes of agents with their sessions, the processes that have these
//! open, the settings, and what our own processes leave in the state folder.
//!
//! It knows nothing of servers, orders and views. What changes of sessions that concerns others is in
//! [`Disk::changes`], for the engine to hand on.
//!
//! # What is watched
//!
//! On Linux every session folder has a watch, old ones included, so a session that is resumed after months shows up at once.
//! These watches are added after the first picture is out. Folders that sessions share, those of an agent's days or
//! projects, are watched right before they are listed: each is listed once, and nothing in them is missed. Every
//! folder on the path to a home is watched for being moved or removed, links are watched at both ends, and so is the mount
//! table, so another folder in a home's place is followed at once. Where this is impossible, and on other systems, a check
//! every 5 s covers only whether the homes are still in place.
//!
//! When the system has no more watches to give, that is reported. Live sessions that cannot be watched, or whose file system
//! may change without an event, are looked at every 5 s, all at once, and the rescan covers the rest. When the system lost
//! events, the visible sessions are read right away, everything else at most once a second, and every watch is renewed:
//! a lost event may have been the end of a watch. If file descriptors run short, owners that cannot be waited for are
//! checked every 2 s, so that a reserve stays free.
//!
//! A folder that cannot be listed or read at the moment is not gone. A session is removed only when the system says that it
//! does not exist.

mod discovery;
mod file_events;
mod file_systems;
mod history;
mod initial_scan;
mod processes;
mod resumes;
mod scan;
mod seen;
mod sessions;
mod settings;
mod timers;

use super::discovered::Discovered;
use super::last_seen::LastSeen;
use super::ledger::{Ledger, Page};
use super::parts::agenda::Agenda;
use super::parts::file_systems::FileSystems;
use super::parts::history::History;
use super::parts::homes::Homes;
use super::parts::owners::Owners;
use super::parts::polled::PolledSessions;
use super::parts::process_scans::ProcessScans;
use super::parts::resumes::RecentResumes;
use super::parts::settings_file::SettingsFile;
use super::parts::starts::Starts;
use super::parts::throttle::Throttle;
use crate::config::Config;
use pilotlight_agents::home::Home;
use pilotlight_agents::reading::Reading;
use pilotlight_agents::tail::ReadContext;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_system::watcher::Watcher;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How often everything is checked without an event (file systems that lose events, folders that could not be watched).
const RESCAN_INTERVAL: Span = Span::seconds(60);
/// Minimum interval between full checks after lost file events: in a storm they may be lost many times a second.
const LOST_EVENTS_INTERVAL: Span = Span::seconds(1);

/// What is on disk.
pub(super) struct Disk {
    pub(super) homes: Homes,
    pub(super) settings_file: Option<SettingsFile>,
    /// Where an agent that is used for the first time will make its home.
    pub(super) awaited: Vec<PathBuf>,
    pub(super) history: History,
    pub(super) agenda: Agenda,
    pub(super) watcher: Watcher,
    pub(super) owners: Owners,
    polled_sessions: PolledSessions,
    pub(super) file_systems: FileSystems,
    /// Sessions that are left alone because their file system does not answer.
    untouched: HashSet<Key>,
    /// Homes of which a warning has said that their file system does not answer.
    said_silent: HashSet<HomeId>,
    pub(super) process_scans: ProcessScans,
    starts: Starts,
    /// The homes that nobody named, if any are to be followed.
    discovered: Option<Discovered>,
    pub(super) recent_resumes: RecentResumes,
    pub(super) seen: LastSeen,
    ledger: Ledger,
    pub(super) rescan_at: Time,
    /// Requests for a full check after lost file events.
    lost_events: Throttle,
    buffer: Vec<u8>,
    /// Something was not read because no file descriptor was left.
    pub(super) lacks_descriptors: bool,
    /// What changed since the engine last took it up, in this order.
    pub(super) changes: Vec<DiskChange>,
}

/// A change of a session on disk, for the connections, which keep something about it themselves.
pub(super) enum DiskChange {
    /// It was read.
    Read(Key),
    /// It is gone.
    Gone(Key),
}

impl Disk {
    /// Follows these homes. Nothing is read yet.
    pub(super) fn new(homes: &[Home], seen: LastSeen, now: Time) -> Self {
        let plans = homes.iter().map(|home| (home.watch_plan(), home.root()));
        let watcher = Watcher::new(plans, seen.path().map(Path::to_owned));
        Self::with(watcher, homes, seen, now)
    }

    /// Looks once at these homes, without watching for changes. Nothing is read yet.
    pub(super) fn unwatched(homes: &[Home], seen: LastSeen, now: Time) -> Self {
        Self::with(Watcher::idle(), homes, seen, now)
    }

    fn with(watcher: Watcher, homes: &[Home], seen: LastSeen, now: Time) -> Self {
        Self {
            watcher,
            homes: Homes::new(homes, now),
            settings_file: None,
            awaited: Vec::new(),
            ledger: Ledger::new(seen.path().and_then(Path::parent)),
            history: History::default(),
            agenda: Agenda::default(),
            owners: Owners::new(),
            polled_sessions: PolledSessions::default(),
            file_systems: FileSystems::default(),
            untouched: HashSet::new(),
            said_silent: HashSet::new(),
            process_scans: ProcessScans::new(),
            starts: Starts::default(),
            discovered: None,
            recent_resumes: RecentResumes::default(),
            seen,
            rescan_at: now + RESCAN_INTERVAL,
            lost_events: Throttle::new(LOST_EVENTS_INTERVAL),
            buffer: Vec::new(),
            lacks_descriptors: false,
            changes: Vec::new(),
        }
    }

    /// The session's page, shared by all our processes.
    pub(super) fn page(&self, key: &Key) -> Page {
        self.ledger.page(self.homes.home(key.home), &key.id)
    }
}

#[cfg(test)]
impl Disk {
    /// What is on disk, without anybody else.
    fn alone(homes: &[Home], config: Config, seen: LastSeen) -> (Self, super::world::World) {
        let world = super::world::World::new(config, super::world::Pace::Following);
        (Self::new(homes, seen, world.now().awake), world)
    }
}

/// What a session folder is read with.
fn reading<'a>(config: &'a Config, owners: &'a Owners, process_scans: &'a ProcessScans, now: Moment) -> Reading<'a> {
    Reading {
        context: ReadContext { now, limits: &config.limits, until: None },
        owner_names: &config.owners.names,
        known: owners.known(),
        openings: process_scans.openings(),
        all: false,
    }
}
