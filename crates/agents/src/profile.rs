//! What is the same about all homes of an agent: plain data, given by its adapter.

use super::fingerprint::Fingerprint;
use pilotlight_core::agent::Names;
use pilotlight_system::watcher::WatchPlan;
use std::path::Path;

/// What is the same about all homes of an agent.
pub struct Profile {
    /// What the agent is called.
    pub names: Names,
    /// The command that starts it. Empty: there is none.
    pub program: &'static str,
    /// What it, and what its tools start, is recognised by: none of them may answer for the user. `None`: it is no program,
    /// or nothing is known.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// The folders of the user's home in which installers put it, where it is searched besides the search path. Empty: its
    /// adapter knows more about that.
    pub(crate) installed: &'static [&'static str],
    /// The version of it that Pilotlight was tried with.
    pub tried: &'static str,
    /// What cannot be known of its sessions or done with them, in a sentence.
    pub gaps: Option<&'static str>,
    /// The folder of the user's home that is its home, unless another is named. Empty: there is none.
    pub home: &'static str,
    /// The variable that names another home.
    pub home_variable: &'static str,
    /// Whether a folder is one of its homes, by what is in it.
    pub(crate) is_home: fn(&Path) -> bool,
    /// The folder of a home that holds its sessions.
    pub(crate) sessions: &'static str,
    /// What there is to watch in a home.
    pub(crate) watch_plan: WatchPlan,
}

impl Profile {
    /// An agent whose program is not known. What its profile must still have: `names`, `home` and `home_variable`,
    /// `is_home`, `sessions` and `watch_plan`.
    pub(crate) const SHOWN: Self = Self {
        names: Names::new("", "", ""),
        program: "",
        fingerprint: None,
        installed: &[],
        tried: "",
        gaps: None,
        home: "",
        home_variable: "",
        is_home: |_| false,
        sessions: "",
        watch_plan: WatchPlan::files(0, |_| None),
    };
}
