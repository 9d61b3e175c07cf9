//! What every check is given and returns.

use super::finding::Finding;
use pilotlight_agents::home::Home;
use pilotlight_core::fleet::Session;
use pilotlight_core::time::Time;
use pilotlight_engine::config::{Config, Problem};
use pilotlight_system::mounts::SilentHome;
use std::path::PathBuf;

/// How many findings of the same kind are listed.
pub(super) const EACH: usize = 20;

/// What the checks inspect.
#[derive(Clone, Debug)]
pub(crate) struct CheckContext {
    /// The homes.
    pub homes: Vec<Home>,
    /// Why each is followed.
    pub origins: Vec<HomeOrigin>,
    /// No more homes are followed that nobody named.
    pub are_discovered_full: bool,
    /// Those whose file system does not answer.
    pub silent: Vec<SilentHome>,
    pub config: Config,
    pub config_path: Option<PathBuf>,
    /// What is wrong with the config.
    pub problems: Vec<Problem>,
    /// The sessions in them, those that are over with little more than their ids.
    pub sessions: Vec<Session>,
    pub state_folder: Option<PathBuf>,
    /// Where the lock and the socket of a running tray may be, the best first.
    pub runtime_folders: Vec<PathBuf>,
    pub user_home: Option<PathBuf>,
    /// A home that is absent is no trouble: none was named, and other machines are watched.
    pub is_home_optional: bool,
}

/// Why a home is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HomeOrigin {
    pub why: HomeReason,
    /// Since when a tray follows it.
    pub followed: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HomeReason {
    /// It is where its agent has its home.
    Default,
    /// By an option, a variable or the settings.
    Named(Box<str>),
    /// A process was seen to use it, then.
    Discovered { since: Time, pid: u32 },
}

impl CheckContext {
    /// Whether a home is missed if it is not there.
    pub(super) fn misses(&self, home: &Home) -> bool {
        !(self.is_home_optional && home.is_absent())
    }
}

/// Runs a check that waits for programs or for the bus.
pub(super) fn block_on(check: &'static str, work: impl Future<Output = Vec<Finding>>) -> Vec<Finding> {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(_) => vec![Finding::problem(check, "it cannot be checked: no thread can be started", "try again")],
    }
}
